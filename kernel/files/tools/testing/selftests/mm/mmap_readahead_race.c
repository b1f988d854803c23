// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults in data whose window adapts, and then in program text, against all that
 * changes their mapping: munmap(), mmap(), mprotect(), fork(), a file that shrinks
 * and grows and gets holes, pages that are dropped, and other settings. And against
 * all that ends what is known of a file: its last page that is dropped, the last
 * close() after unlink(), and for those who opened it once mmap() as text.
 * Whatever can be read must be right, functions must return, and the kernel must not
 * complain; KASAN makes it complain of more.
 *
 * A fault that reads drops its lock, and the mapping may be gone from then on.
 * To find code that looks at it nevertheless takes a mapping that is not only
 * gone but freed, a grace period later, while the fault has got no further than
 * its unlock. A process of two threads on one processor is there for that: one
 * faults, the other, which has real-time priority, is woken by the unlock,
 * unmaps, and keeps the processor.
 *
 * Run it as root, in a directory of the file system to test, for any number of
 * seconds with each, 5 by default:
 *
 *	./mmap_readahead_race 60
 *
 * The tests run in a child. Its parent puts all settings back, however the
 * child ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"
#include "mmap_readahead_util.h"
#include "page_cache_util.h"

/* In blocks, that is, in folios as text is to have them. */
#define TRAP_BLOCKS	4
#define STEADY_BLOCKS	16
#define MOVING_BLOCKS	16
#define ALL_BLOCKS	(TRAP_BLOCKS + STEADY_BLOCKS + MOVING_BLOCKS)

/* Where the function of each page starts; its stamp is at the very start. */
#define FUNCTION_OFFSET	64

/* How long a grace period may take, with what is freed after it. */
#define GRACE_SECONDS	0.04

static const unsigned char return_instruction[] = {
#if defined(__x86_64__)
	0xc3,
#elif defined(__aarch64__)
	0xc0, 0x03, 0x5f, 0xd6,
#else
	/* Functions are left alone; their pages are still compared. */
#endif
};

/*
 * The test file. Its first pages are for the trap; those from moving_page on
 * may be cut off; those in between, from steady_page on, never change.
 */
static int file_fd;
static unsigned long block, steady_page, moving_page, file_pages;

/* Where page 0 of the file is, or would be, mapped; how; and what is mapped. */
static char *start_address;
static int prot, map_fd;

/* The same for files that are opened or made over and over; behind it a page of text. */
static char *fresh_address;

static unsigned int seconds = 5;

struct worker {
	pthread_t thread;
	void (*step)(struct worker *worker);
	const char *name;
	struct rng rng;
	unsigned long done, next, sigbus, sigsegv;
	bool wrong;
};

/* Memory shared with the process of the trap. */
static struct shared {
	bool over;
	struct worker walker, springer;
} *shared;

/*
 * All threads exist before the first works: where one has unmapped, the stack
 * of the next could be, until another mapping replaces it.
 */
static pthread_barrier_t all_started;

static char *address(unsigned long page)
{
	return start_address + page * page_bytes;
}

/* Pages */

static bool write_pages(unsigned long first, unsigned long nr)
{
	unsigned long page;

	for (page = first; page < first + nr; page++) {
		unsigned char data[FUNCTION_OFFSET + 8] = { };
		uint64_t stamp = page + 1;

		memcpy(data, &stamp, sizeof(stamp));
		memcpy(data + FUNCTION_OFFSET, return_instruction,
		       sizeof(return_instruction));
		if (pwrite(file_fd, data, sizeof(data), page * page_bytes) !=
		    sizeof(data))
			return false;
	}
	return true;
}

/*
 * Look at a page, if it is mapped at an address just now, and call its function. It may
 * be one of a hole.
 */
static void use_page_at(struct worker *worker, char *at, unsigned long page, bool hole)
{
	uint64_t stamp = 0;
	int sig = access_page(at, NULL, &stamp);

	if (!sig && stamp != page + 1 && (stamp || !hole))
		worker->wrong = true;
	else if (!sig && !hole && sizeof(return_instruction) && prot & PROT_EXEC)
		sig = call_function((void (*)(void))(at + FUNCTION_OFFSET));
	if (!sig)
		worker->done++;
	else if (sig == SIGBUS)
		worker->sigbus++;
	else
		worker->sigsegv++;
}

static void use_page(struct worker *worker, unsigned long page)
{
	/* What was cut off is zero until it is written again. */
	use_page_at(worker, address(page), page, page >= moving_page);
}

/* Workers: each does one step after the other until all is over */

static void use_any_page(struct worker *worker)
{
	use_page(worker, steady_page +
			 random_below(&worker->rng, file_pages - steady_page));
}

static void read_forward(struct worker *worker)
{
	unsigned long pages = file_pages - steady_page;

	use_page(worker, steady_page + worker->next++ % pages);
}

static void read_backward(struct worker *worker)
{
	unsigned long pages = file_pages - steady_page;

	use_page(worker, file_pages - 1 - worker->next++ % pages);
}

static void use_fresh_page(struct worker *worker)
{
	unsigned long page = steady_page +
			     random_below(&worker->rng, file_pages - steady_page);

	use_page_at(worker, fresh_address + page * page_bytes, page, true);
}

/*
 * Put a file that is opened anew, or a new one, in the place of the last one, which is
 * closed by that, and gone if it was a new one, with what is known of it; half of them
 * become programs while others fault in them.
 */
static void open_anew(struct worker *worker)
{
	int fd = random_below(&worker->rng, 2) ? make_file() : open_again(file_fd);
	size_t bytes = file_pages * page_bytes;
	struct stat st;

	/* A new one is a hole; no other is ever empty. */
	if (fd < 0 || fstat(fd, &st) || (!st.st_size && ftruncate(fd, bytes)))
		ksft_exit_fail_perror("a fresh file");
	if (mmap(fresh_address, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		worker->wrong = true;
	usleep(random_below(&worker->rng, 3000));
	if (mmap(fresh_address + bytes, page_bytes,
		 random_below(&worker->rng, 2) ? PROT_READ : PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		worker->wrong = true;
	close(fd);
	worker->done++;
}

static void map_pages(unsigned long first, unsigned long nr, bool shared)
{
	if (mmap(address(first), nr * page_bytes, prot,
		 (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, map_fd,
		 first * page_bytes) == MAP_FAILED)
		ksft_exit_fail_perror("mmap of the test file");
}

/* What is unmapped can leave the page cache. */
static void drop_pages_of(unsigned long first, unsigned long nr)
{
	posix_fadvise(file_fd, first * page_bytes, nr * page_bytes,
		      POSIX_FADV_DONTNEED);
}

static void change_mappings(struct worker *worker)
{
	unsigned long first = steady_page +
			      random_below(&worker->rng, file_pages - steady_page);
	unsigned long nr = 1 + random_below(&worker->rng, 3 * block);
	void *start = address(first);
	size_t bytes;

	if (nr > file_pages - first)
		nr = file_pages - first;
	bytes = nr * page_bytes;
	switch (random_below(&worker->rng, 8)) {
	case 0:
		mprotect(start, bytes, PROT_NONE);
		break;
	case 1:
		mprotect(start, bytes, PROT_READ);
		break;
	case 2:
		mprotect(start, bytes, prot);
		break;
	case 3:
		madvise(start, bytes, MADV_COLD);
		break;
	case 4:
		madvise(start, bytes, MADV_DONTNEED);
		drop_pages_of(first, nr);
		break;
	case 5:
		munmap(start, bytes);
		drop_pages_of(first, nr);
		break;
	default:
		munmap(start, bytes);
		drop_pages_of(first, nr);
		map_pages(first, nr, random_below(&worker->rng, 2));
	}
	worker->done++;
}

/* Drop all pages, so that what is known begins anew; or have them evicted. */
static void drop_everything(struct worker *worker)
{
	void *start = address(steady_page);
	size_t bytes = (file_pages - steady_page) * page_bytes;

	if (worker->done % 2) {
		madvise(start, bytes, MADV_PAGEOUT);
	} else {
		madvise(start, bytes, MADV_DONTNEED);
		drop_pages_of(0, 0);
	}
	worker->done++;
	usleep(random_below(&worker->rng, 5000));
}

static void resize_file(struct worker *worker)
{
	unsigned long page = moving_page +
			     random_below(&worker->rng, file_pages - moving_page);

	if (ftruncate(file_fd, page * page_bytes) ||
	    ftruncate(file_fd, file_pages * page_bytes) ||
	    !write_pages(page, file_pages - page))
		worker->wrong = true;
	fsync(file_fd);
	worker->done++;
	usleep(20000);
}

static void punch_holes(struct worker *worker)
{
	unsigned long page = moving_page +
			     random_below(&worker->rng, file_pages - moving_page);
	unsigned long nr = 1 + random_below(&worker->rng, file_pages - page);

	if (fallocate(file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      page * page_bytes, nr * page_bytes))
		worker->wrong |= errno != EOPNOTSUPP;
	usleep(random_below(&worker->rng, 5000));
	if (!write_pages(page, nr))
		worker->wrong = true;
	worker->done++;
	usleep(10000);
}

static void fork_child(struct worker *worker)
{
	pid_t pid = fork_helper();
	int i, status;

	if (!pid) {
		for (i = 0; i < 20; i++)
			use_any_page(worker);
		_exit(worker->wrong);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		worker->wrong = true;
	worker->done++;
	usleep(5000);
}

static void change_settings(struct worker *worker)
{
	unsigned int size = nr_folio_sizes ? random_below(&worker->rng, nr_folio_sizes) : 0;
	unsigned int use = random_below(&worker->rng, NR_USES);
	/* Mostly for text, or nothing would be put to the test. */
	unsigned int rules = worker->done % 4 ? ALL_RULES :
			     random_below(&worker->rng, ALL_RULES + 1);

	if (worker->done % 2 && nr_folio_sizes)
		size = folio_size_of(block * page_bytes) - folio_sizes;
	if (worker->done % 4)
		use |= USE_EXEC;
	if (nr_folio_sizes && folio_size_write(&folio_sizes[size], use_names[use]))
		worker->wrong = true;
	if (rules_write(rules))
		worker->wrong = true;
	worker->done++;
	usleep(30000);
}

/* Mostly on, or nothing would be put to the test. */
static void change_adaptive(struct worker *worker)
{
	static const unsigned long requests[] = { 0, 1, 128, 65536 };

	if (setting_write(ADAPTIVE_FILE, worker->done % 4 ? "1" : "0"))
		worker->wrong = true;
	/* Not every device has one. */
	device_setting_write(file_fd, "request_kb", requests[random_below(&worker->rng, 4)]);
	worker->done++;
	usleep(random_below(&worker->rng, 20000));
}

static struct worker text_workers[] = {
	{ .name = "pages used", .step = use_any_page },
	{ .name = "pages used", .step = use_any_page },
	{ .name = "mappings changed", .step = change_mappings },
	{ .name = "resizes", .step = resize_file },
	{ .name = "holes", .step = punch_holes },
	{ .name = "forks", .step = fork_child },
	{ .name = "settings changed", .step = change_settings },
	{ }
};

static struct worker data_workers[] = {
	{ .name = "pages used at random", .step = use_any_page },
	{ .name = "pages used at random", .step = use_any_page },
	{ .name = "pages used forward", .step = read_forward },
	{ .name = "pages used backward", .step = read_backward },
	{ .name = "pages used of fresh files", .step = use_fresh_page },
	{ .name = "pages used of fresh files", .step = use_fresh_page },
	{ .name = "files opened", .step = open_anew },
	{ .name = "mappings changed", .step = change_mappings },
	{ .name = "times all pages dropped", .step = drop_everything },
	{ .name = "resizes", .step = resize_file },
	{ .name = "holes", .step = punch_holes },
	{ .name = "forks", .step = fork_child },
	{ .name = "settings changed", .step = change_adaptive },
	{ }
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	pthread_barrier_wait(&all_started);
	while (!__atomic_load_n(&shared->over, __ATOMIC_RELAXED))
		worker->step(worker);
	return NULL;
}

static void start(struct worker *worker, uint64_t seed)
{
	worker->rng.state = seed;
	start_thread(&worker->thread, work, worker);
}

static bool report(const struct worker *worker)
{
	ksft_print_msg("%lu %s\n", worker->done, worker->name);
	if (worker->sigbus || worker->sigsegv)
		ksft_print_msg("%lu beyond the end, %lu not mapped\n",
			       worker->sigbus, worker->sigsegv);
	if (worker->wrong)
		ksft_print_msg("that went wrong\n");
	return !worker->wrong && worker->done;
}

/*
 * The trap. Faulting in for somebody else, as madvise() does, holds the lock of
 * the address space rather than that of the mapping, which is also dropped to
 * read, and whose unlock leaves no RCU critical section for the mapping to
 * survive in. In a process of its own, nobody else takes that lock.
 */

static void walk_into_trap(struct worker *worker)
{
	madvise(address(random_below(&worker->rng, steady_page)), page_bytes,
		MADV_POPULATE_READ);
	worker->done++;
}

static long blocked_times(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void keep_processor(double seconds)
{
	double end = seconds_now() + seconds;

	while (seconds_now() < end)
		;
}

static void spring_trap(struct worker *worker)
{
	long before;

	drop_pages_of(0, steady_page);
	map_pages(0, steady_page, false);
	usleep(random_below(&worker->rng, 300));
	before = blocked_times();
	munmap(address(0), steady_page * page_bytes);
	/* Otherwise nobody was in the way, and nobody is on it. */
	if (blocked_times() != before) {
		worker->done++;
		keep_processor(GRACE_SECONDS);
	}
}

/* Keep to the last processor, but leave the only one alone. */
static void choose_cpu(void)
{
	cpu_set_t cpus;
	int cpu;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		return;
	for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, &cpus); cpu--)
		;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static pid_t set_trap(void)
{
	struct sched_param param = { .sched_priority = 1 };
	pid_t pid = fork_helper();

	if (pid)
		return pid;
	choose_cpu();
	pthread_barrier_init(&all_started, NULL, 2);
	shared->walker.step = walk_into_trap;
	start(&shared->walker, 0);
	shared->springer.step = spring_trap;
	shared->springer.rng.state = 1;
	sched_setscheduler(0, SCHED_FIFO, &param);
	work(&shared->springer);
	pthread_join(shared->walker.thread, NULL);
	_exit(0);
}

static void run_workers(struct worker *workers)
{
	struct worker *worker;

	for (worker = workers; worker->step; worker++)
		;
	pthread_barrier_init(&all_started, NULL, worker - workers + 1);
	for (worker = workers; worker->step; worker++)
		start(worker, worker - workers + 1);
	pthread_barrier_wait(&all_started);
	sleep(seconds);
	__atomic_store_n(&shared->over, true, __ATOMIC_RELAXED);
	for (worker = workers; worker->step; worker++)
		pthread_join(worker->thread, NULL);
}

static bool report_all(const struct worker *workers)
{
	const struct worker *worker;
	bool ok = true;

	for (worker = workers; worker->step; worker++)
		ok &= report(worker);
	ok &= report(&shared->walker);
	/* Who waits for an unlock may never have to. */
	report(&shared->springer);
	return ok;
}

static void test_race(struct worker *workers, bool folios_made,
		      const char *name)
{
	const struct folio_size *size = folio_size_of(block * page_bytes);
	unsigned long made = size ? folio_size_stat(size, "file_alloc") : 0;
	unsigned long trouble = kernel_trouble();
	bool ok = true;
	pid_t trap;
	int status;

	memset(shared, 0, sizeof(*shared));
	shared->walker.name = "steps into the trap";
	shared->springer.name = "unlocks waited for";
	trap = set_trap();
	catch_signals();
	map_pages(0, file_pages, false);
	run_workers(workers);
	if (waitpid(trap, &status, 0) != trap || status) {
		ksft_print_msg("the trap ended with %#x\n", status);
		ok = false;
	}
	ok &= report_all(workers);
	if (size)
		made = folio_size_stat(size, "file_alloc") - made;
	ksft_print_msg("%lu folios of the size of text\n", made);
	ok &= made || !folios_made;
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok, "%s\n", name);
}

static void run_tests(void)
{
	const struct folio_size *size = folio_size_of(64UL << 10);
	bool large_folios;

	ksft_set_plan(2);
	if (!size)
		size = folio_size_of(2UL << 20);
	if (!size && nr_folio_sizes)
		ksft_exit_skip("neither 64 KiB nor 2 MiB are a folio size\n");
	/* A kernel without large folios has none, PREEMPT_RT for instance. */
	block = size ? size->bytes / page_bytes : 16;
	steady_page = TRAP_BLOCKS * block;
	moving_page = steady_page + STEADY_BLOCKS * block;
	file_pages = ALL_BLOCKS * block;

	file_fd = make_file();
	if (file_fd < 0)
		ksft_exit_skip("cannot make a file in the current directory\n");
	large_folios = has_large_folios(file_fd);
	if (!large_folios)
		ksft_print_msg("no large folios here: text is read as data\n");
	if (ftruncate(file_fd, file_pages * page_bytes) ||
	    !write_pages(0, file_pages) || fsync(file_fd))
		ksft_exit_skip("not enough room for the test file\n");
	start_address = reserve_addresses(file_pages * page_bytes);
	fresh_address = reserve_addresses((file_pages + 1) * page_bytes);
	shared = shared_memory(sizeof(*shared));
	set_rules(ALL_RULES);
	set_all_folio_sizes(USE_ALWAYS);
	/* Windows of many sizes; what is open has that of when it was opened. */
	read_ahead_write(file_fd, 256 * page_bytes >> 10);
	prot = PROT_READ;
	map_fd = open_again(file_fd);
	test_race(data_workers, false,
		  "data is right whatever its window adapts to");

	if (size)
		set_folio_size(size, USE_ALWAYS_EXEC);
	prot = PROT_READ | PROT_EXEC;
	close(map_fd);
	map_fd = file_fd;
	test_race(text_workers, large_folios,
		  "so is text, whatever becomes of its mapping");
	ksft_finished();
}

int main(int argc, char **argv)
{
	ksft_print_header();
	if (argc > 1)
		seconds = strtoul(argv[1], NULL, 10);
	if (geteuid())
		ksft_exit_skip("needs root to choose folio sizes\n");
	page_cache_init();
	guard_switches();
	guard_device_setting("request_kb");
	guard_folio_sizes();
	guard_device_setting("read_ahead_kb");
	return run_guarded(run_tests, NULL);
}
