// SPDX-License-Identifier: GPL-2.0-only
/*
 * mprotect() in batches against everything else that changes entries or looks at
 * them: faults, fork(), madvise(), writing to swap, compaction, migration and
 * what clears soft-dirty.
 *
 * Each page has a number that only one thread writes, which knows it: it must
 * find it again, whatever signals others gave it in between. A child must go on
 * seeing all numbers of private pages as they were when it was born.
 *
 * Run it as root, in a directory of a file system that swap files can be on, for
 * any number of seconds, 5 by default:
 *
 *	./mprotect_batch_race 60
 *
 * With --control, batching stays as it is, if there is any: a test of the test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"
#include "mprotect_batch_util.h"
#include "page_cache_util.h"

#define PIECE_PAGES	128UL
#define NR_WRITERS	2
#define MPOL_MF_MOVE	2

/* In this order, each of as many pages. The first three are private. */
enum piece { LARGE, SMALL, MIXED, PRIVATE_FILE, SHARED, SHARED_FILE,
	     NR_PIECES };

#define ANON_PAGES	(3 * PIECE_PAGES)
#define PRIVATE_PAGES	(4 * PIECE_PAGES)
#define ALL_PAGES	(NR_PIECES * PIECE_PAGES)

static char *memory;
static unsigned int seconds = 5;
static bool control, over, can_move;

/* What the thread that writes a page last wrote. */
static uint64_t numbers[ALL_PAGES];

static struct worker {
	const char *name;
	void (*step)(struct worker *worker);
	unsigned int nr;
	pthread_t thread;
	struct rng rng;
	unsigned long done, refused;
	bool wrong;
} workers[];

static uint64_t *number_at(unsigned long page)
{
	return (uint64_t *)(memory + page * page_bytes);
}

/* Pages, mostly a few, of the first @limit ones */
static void *random_range(struct worker *worker, unsigned long limit,
			  size_t *bytes)
{
	unsigned long first = random_below(&worker->rng, limit);
	unsigned long pages = 1 + random_below(&worker->rng, limit - first);

	if (pages > 40 && !one_in(&worker->rng, 8))
		pages = 1 + random_below(&worker->rng, 40);
	*bytes = pages * page_bytes;
	return number_at(first);
}

static bool number_right(unsigned long page, uint64_t found)
{
	if (found == numbers[page])
		return true;
	ksft_print_msg("page %lu holds %llu rather than %llu\n", page,
		       (unsigned long long)found,
		       (unsigned long long)numbers[page]);
	return false;
}

/* Workers: each does one step after the other until all is over */

static void write_number(struct worker *worker)
{
	unsigned long page = random_below(&worker->rng, ALL_PAGES / NR_WRITERS);
	uint64_t found, next;

	page = page * NR_WRITERS + worker->nr;
	if (page < ANON_PAGES && one_in(&worker->rng, 64)) {
		madvise(number_at(page), page_bytes, MADV_DONTNEED);
		numbers[page] = 0;
	}
	if (access_page(number_at(page), NULL, &found)) {
		worker->refused++;
		return;
	}
	if (!number_right(page, found))
		worker->wrong = true;
	next = found + 1;
	if (access_page(number_at(page), &next, NULL)) {
		worker->refused++;
		return;
	}
	numbers[page] = next;
	worker->done++;
}

static void read_numbers(struct worker *worker)
{
	unsigned long page = random_below(&worker->rng, ALL_PAGES);
	uint64_t number;

	if (access_page(number_at(page), NULL, &number))
		worker->refused++;
	else
		worker->done++;
}

static void protect(struct worker *worker)
{
	static const int prots[] = {
		PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC,
	};
	size_t bytes;
	void *start = random_range(worker, ALL_PAGES, &bytes);
	int prot = prots[random_below(&worker->rng, ARRAY_SIZE(prots))];

	if (mprotect(start, bytes, prot) ||
	    mprotect(start, bytes, PROT_READ | PROT_WRITE))
		worker->wrong = true;
	worker->done++;
}

static void advise(struct worker *worker)
{
	size_t bytes;
	void *start = random_range(worker, ALL_PAGES, &bytes);

	madvise(start, bytes, one_in(&worker->rng, 4) ? MADV_COLD :
			      MADV_PAGEOUT);
	worker->done++;
	usleep(1000);
}

/* Pages that change their frames, for which there are other entries meanwhile. */
static void move(struct worker *worker)
{
	void *pages[32];
	int nodes[32], status[32];
	unsigned int i;

	if (!can_move || one_in(&worker->rng, 8)) {
		setting_write("/proc/sys/vm/compact_memory", "1");
	} else {
		for (i = 0; i < ARRAY_SIZE(pages); i++) {
			pages[i] = number_at(random_below(&worker->rng,
							  ALL_PAGES));
			nodes[i] = worker->done % 2;
		}
		syscall(__NR_move_pages, 0, ARRAY_SIZE(pages), pages, nodes,
			status, MPOL_MF_MOVE);
	}
	worker->done++;
	usleep(5000);
}

static void clear(struct worker *worker)
{
	clear_references(worker->done % 2 ? "1" : "4");
	worker->done++;
	usleep(20000);
}

static bool look_twice(void)
{
	uint64_t seen[PRIVATE_PAGES];
	unsigned long page;

	if (mprotect(memory, PRIVATE_PAGES * page_bytes, PROT_READ))
		return false;
	for (page = 0; page < PRIVATE_PAGES; page++)
		seen[page] = __atomic_load_n(number_at(page), __ATOMIC_RELAXED);
	usleep(20000);
	for (page = 0; page < PRIVATE_PAGES; page++)
		if (__atomic_load_n(number_at(page), __ATOMIC_RELAXED) !=
		    seen[page])
			return false;
	return true;
}

static void fork_child(struct worker *worker)
{
	pid_t pid = fork_helper();
	int status;

	if (!pid)
		_exit(!look_twice());
	if (waitpid(pid, &status, 0) != pid || status)
		worker->wrong = true;
	worker->done++;
	usleep(2000);
}

/* Mostly, there are batches. */
static void change_switch(struct worker *worker)
{
	if (!control)
		set_batching(!one_in(&worker->rng, 8));
	worker->done++;
	usleep(20000);
}

static struct worker workers[] = {
	{ .name = "numbers written", .step = write_number, .nr = 0 },
	{ .name = "numbers written", .step = write_number, .nr = 1 },
	{ .name = "numbers read", .step = read_numbers },
	{ .name = "protections changed", .step = protect },
	{ .name = "protections changed", .step = protect },
	{ .name = "pages advised", .step = advise },
	{ .name = "moves", .step = move },
	{ .name = "references cleared", .step = clear },
	{ .name = "forks", .step = fork_child },
	{ .name = "switch changed", .step = change_switch },
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		worker->step(worker);
	return NULL;
}

static void map_piece(enum piece piece, int flags, int fd)
{
	if (mmap(number_at(piece * PIECE_PAGES), PIECE_PAGES * page_bytes,
		 PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd,
		 fd < 0 ? 0 : piece * PIECE_PAGES * page_bytes) == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
}

static void map_memory(void)
{
	unsigned long align = PIECE_PAGES * page_bytes, page;
	int fd = make_file();
	unsigned int i;

	if (fd < 0)
		ksft_exit_skip("cannot make a file in the current directory\n");
	if (ftruncate(fd, ALL_PAGES * page_bytes))
		ksft_exit_fail_perror("ftruncate");
	memory = reserve_addresses(ALL_PAGES * page_bytes + align);
	memory += align - (uintptr_t)memory % align;
	map_piece(LARGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map_piece(SMALL, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map_piece(MIXED, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map_piece(PRIVATE_FILE, MAP_PRIVATE, fd);
	map_piece(SHARED, MAP_SHARED | MAP_ANONYMOUS, -1);
	map_piece(SHARED_FILE, MAP_SHARED, fd);
	/* Of 16 pages, if there is such a size, and of any. */
	set_size(16 * page_bytes);
	madvise(number_at(LARGE * PIECE_PAGES), align, MADV_HUGEPAGE);
	for (page = 0; page < PIECE_PAGES; page++)
		numbers[page] = *number_at(page) = page;
	madvise(number_at(MIXED * PIECE_PAGES), align, MADV_HUGEPAGE);
	for (i = 0; i < 8 && nr_sizes; i++) {
		unsigned long part = PIECE_PAGES / 8, first = MIXED *
				     PIECE_PAGES + i * part;

		set_size(sizes[i % nr_sizes]);
		for (page = first; page < first + part; page++)
			numbers[page] = *number_at(page) = page;
	}
	set_size(16 * page_bytes);
}

static void run_workers(void)
{
	struct worker *worker, *end = workers + ARRAY_SIZE(workers);

	for (worker = workers; worker < end; worker++) {
		worker->rng.state = worker - workers;
		start_thread(&worker->thread, work, worker);
	}
	sleep(seconds);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (worker = workers; worker < end; worker++)
		pthread_join(worker->thread, NULL);
}

static bool report_workers(void)
{
	const struct worker *worker, *end = workers + ARRAY_SIZE(workers);
	bool ok = true;

	for (worker = workers; worker < end; worker++) {
		ksft_print_msg("%lu %s, %lu refused%s\n", worker->done,
			       worker->name, worker->refused,
			       worker->wrong ? ": that went wrong" : "");
		ok &= worker->done && !worker->wrong;
	}
	return ok;
}

static bool all_numbers_right(void)
{
	unsigned long page;
	bool ok = true;

	for (page = 0; page < ALL_PAGES; page++)
		ok &= number_right(page, *number_at(page));
	return ok;
}

static bool report_batches(int counter)
{
	uint64_t batches = batches_counted(counter);

	if (counter < 0)
		return true;
	ksft_print_msg("%llu batches\n", (unsigned long long)batches);
	return batches;
}

static void test_race(void)
{
	unsigned long trouble = kernel_trouble();
	int counter = count_batches(true);
	bool ok;

	catch_signals();
	run_workers();
	ok = report_workers();
	ok &= all_numbers_right();
	ok &= report_batches(counter);
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok, "no page is lost whatever else happens to it\n");
}

static void run_tests(void)
{
	ksft_set_plan(1);
	if (!start_swap(128UL << 20))
		ksft_print_msg("no swap here: pages are not written to it\n");
	/* From one node to another; where there is one, by compaction only. */
	can_move = !access("/sys/devices/system/node/node1", F_OK);
	map_memory();
	test_race();
	ksft_finished();
}

int main(int argc, char **argv)
{
	int i;

	ksft_print_header();
	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--control"))
			control = true;
		else
			seconds = strtoul(argv[i], NULL, 10);
	if (geteuid())
		ksft_exit_skip("needs root for swap and settings\n");
	mprotect_batch_init();
	if (!guard_batching() && !control)
		ksft_exit_skip("no batches on this kernel\n");
	guard_sizes();
	guard_swap();
	return run_guarded(run_tests, stop_swap);
}
