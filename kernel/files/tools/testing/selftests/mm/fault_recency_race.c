// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults in a file, in a control group whose memory holds half of it, against
 * all that can become of what they bring in: it is evicted, aged, locked,
 * unmapped, moved, shared with children, swapped out, cut off, and judged by
 * other settings; while the group's memory runs out again and again, and takes
 * a process with it. Whatever can be read must be right, nobody may end who was
 * not to, and the kernel must not complain; KASAN makes it complain of more.
 *
 * Run it as root, in a directory of the file system to test, for any number of
 * seconds, 5 by default:
 *
 *	./fault_recency_race --seconds 60
 *
 * The tests run in a child, which changes the settings, outside the group. Its
 * parent puts all settings back, however the child ends, and inherits what
 * processes are left then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"
#include "page_cache_util.h"

#define SWAP_BYTES		(32UL << 20)
/* Of that, what the group may have. */
#define GROUP_SWAP_BYTES	(8UL << 20)

/* What each process may keep of its own, for the rest to be reclaimable. */
#define LOCKED_BYTES		(256UL << 10)
#define PRIVATE_BYTES		(512UL << 10)
#define MAX_SLOTS		64

/* How much longer to wait for what has not happened yet, and for the end. */
#define PATIENCE_SECONDS	60

enum { SHARED, PRIVATE, SPARE, NR_PLACES };

/*
 * The test file holds the number of each page, from 1 on, in its first word;
 * the words after it are the processes'. Pages from moving_page on may be cut
 * off, and are zero until their numbers are written again.
 */
static int file_fd;
static unsigned long moving_page, file_pages, limit_bytes;

static unsigned int seconds = 5;

struct worker {
	const char *name;
	void (*step)(void);
	/* Is it in the group, and is the group's killer to prefer it? */
	bool joins, victim;
	/* In the tests only; 0 if it has ended. */
	pid_t pid;
	unsigned int starts;
	/* Processes of it that the killer took. */
	unsigned long taken;
	unsigned long done;
	const char *wrong;
};

static void use_pages(void);
static void run_out_of_memory(void);
static void resize_file(void);
static void take_memory(void);
static void command_lru_gen(void);

static const struct worker all_workers[] = {
	{ .name = "steps of faults", .step = use_pages, .joins = true },
	{ .name = "steps of faults", .step = use_pages, .joins = true },
	{ .name = "steps of faults", .step = use_pages, .joins = true },
	{ .name = "steps of faults", .step = use_pages, .joins = true },
	/* Two, for one to be there when the other has just been taken. */
	{ .name = "pages filled", .step = run_out_of_memory, .joins = true,
	  .victim = true },
	{ .name = "pages filled", .step = run_out_of_memory, .joins = true,
	  .victim = true },
	{ .name = "resizes", .step = resize_file, .joins = true },
	{ .name = "times memory reclaimed", .step = take_memory },
	{ .name = "commands to lru_gen", .step = command_lru_gen },
};

#define NR_WORKERS	ARRAY_SIZE(all_workers)

/* What is counted by processes that may be killed at any moment. */
enum count {
	PAGES_USED, BEYOND_THE_END, PAGES_WRITTEN, PRIVATE_WRITTEN,
	PRIVATE_COMPARED, MOVES, LOCKS, FORKS, REFUSED, NR_COUNTS
};

static const char * const count_names[NR_COUNTS] = {
	[PAGES_USED] = "pages used",
	[BEYOND_THE_END] = "of them beyond the end",
	[PAGES_WRITTEN] = "shared pages written",
	[PRIVATE_WRITTEN] = "private pages written",
	[PRIVATE_COMPARED] = "private pages compared",
	[MOVES] = "moves of a mapping",
	[LOCKS] = "locked ranges",
	[FORKS] = "forks",
	[REFUSED] = "calls refused for lack of memory",
};

static struct shared {
	bool over;
	unsigned long counts[NR_COUNTS];
	struct worker workers[NR_WORKERS];
} *shared;

/* Of each process: which worker it is, or works for. */
static struct worker *me;
static struct rng rng;

static bool is_over(void)
{
	return __atomic_load_n(&shared->over, __ATOMIC_RELAXED);
}

static void add(unsigned long *sum)
{
	__atomic_fetch_add(sum, 1, __ATOMIC_RELAXED);
}

static void count(enum count nr)
{
	add(&shared->counts[nr]);
}

static void __noreturn go_wrong(const char *what)
{
	me->wrong = what;
	_exit(1);
}

/* A call may fail for lack of memory, as that is what we see to. */
static void expect_no_memory(const char *what)
{
	if (errno != ENOMEM)
		go_wrong(what);
	count(REFUSED);
}

static bool was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

/* Pages, and what is written to private ones */

static char *places[NR_PLACES];
static sigjmp_buf no_access;
static bool may_be_cut_off;

static struct slot {
	unsigned long page;
	uint64_t pattern;	/* 0 if there is none */
} slots[MAX_SLOTS];

static void on_no_access(int sig)
{
	if (!may_be_cut_off)
		go_wrong("SIGBUS where nothing is cut off");
	siglongjmp(no_access, sig);
}

static void *address(unsigned int place, unsigned long page)
{
	return places[place] + page * page_bytes;
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static unsigned long words_of_page(void)
{
	return page_bytes / sizeof(uint64_t);
}

static struct slot *find_slot(unsigned long page)
{
	unsigned int i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (slots[i].pattern && slots[i].page == page)
			return &slots[i];
	return NULL;
}

static void forget_slots(unsigned long first, unsigned long nr)
{
	unsigned int i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (slots[i].page - first < nr)
			slots[i].pattern = 0;
}

static void compare(const struct slot *slot)
{
	const uint64_t *words = address(PRIVATE, slot->page);
	unsigned long i;

	for (i = 0; i < words_of_page(); i++)
		if (load(&words[i]) != slot->pattern + i)
			go_wrong("a private page is not as it was written");
	count(PRIVATE_COMPARED);
}

static void compare_all(void)
{
	unsigned int i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (slots[i].pattern)
			compare(&slots[i]);
}

/* Write one that will not be cut off; the oldest one makes room for it. */
static void write_private(void)
{
	static unsigned int next;
	unsigned int nr_slots = PRIVATE_BYTES / page_bytes;
	unsigned long i, page = random_below(&rng, moving_page);
	struct slot *slot;
	uint64_t *words;

	if (nr_slots > MAX_SLOTS)
		nr_slots = MAX_SLOTS;
	slot = &slots[next++ % nr_slots];
	if (slot->pattern) {
		compare(slot);
		slot->pattern = 0;
		madvise(address(PRIVATE, slot->page), page_bytes,
			MADV_DONTNEED);
	}
	forget_slots(page, 1);
	words = address(PRIVATE, page);
	slot->page = page;
	slot->pattern = random_number(&rng) | 1;
	for (i = 0; i < words_of_page(); i++)
		store(&words[i], slot->pattern + i);
	count(PRIVATE_WRITTEN);
}

static void compare_number(uint64_t number, unsigned long page)
{
	if (number == page + 1)
		return;
	if (page < moving_page || number)
		go_wrong("a page of the file has not its number");
}

static void use_private(unsigned long page)
{
	const struct slot *slot = find_slot(page);

	if (slot)
		compare(slot);
	else
		compare_number(load(address(PRIVATE, page)), page);
}

static void use_shared(unsigned long page)
{
	uint64_t *words = address(SHARED, page);
	uint64_t *own = &words[1 + (me - shared->workers)];
	uint64_t number = (page + 1) * (2 + (me - shared->workers));
	uint64_t written = load(own);

	compare_number(load(words), page);
	if (written && written != number)
		go_wrong("a word that was written to the file is wrong");
	if (!random_below(&rng, 8)) {
		store(own, number);
		count(PAGES_WRITTEN);
	}
}

static void use_page(unsigned long page)
{
	count(PAGES_USED);
	if (sigsetjmp(no_access, 0)) {
		may_be_cut_off = false;
		count(BEYOND_THE_END);
		return;
	}
	may_be_cut_off = page >= moving_page;
	if (random_below(&rng, 3))
		use_shared(page);
	else
		use_private(page);
	may_be_cut_off = false;
}

/* At random, in a run, or with a stride. */
static void use_some_pages(unsigned int nr)
{
	unsigned long strides[] = { 0, 1, 2 + random_below(&rng, 62) };
	unsigned long stride = strides[random_below(&rng, ARRAY_SIZE(strides))];
	unsigned long page = random_below(&rng, file_pages);

	while (nr-- && !is_over()) {
		use_page(page);
		page = stride ? (page + stride) % file_pages :
		       random_below(&rng, file_pages);
	}
}

/* Mappings */

static void map(unsigned int place, unsigned long first, unsigned long nr)
{
	int flags = place == SHARED ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;

	while (mmap(address(place, first), nr * page_bytes,
		    PROT_READ | PROT_WRITE, flags | MAP_FIXED, file_fd,
		    first * page_bytes) == MAP_FAILED) {
		expect_no_memory("mmap of the test file");
		if (is_over())
			_exit(0);
		usleep(1000);
	}
}

static void map_all(void)
{
	struct sigaction action = {
		.sa_handler = on_no_access,
		.sa_flags = SA_NODEFER,
	};
	unsigned int place;

	sigaction(SIGBUS, &action, NULL);
	for (place = 0; place < NR_PLACES; place++) {
		places[place] = mmap(NULL, file_pages * page_bytes, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS |
				     MAP_NORESERVE, -1, 0);
		if (places[place] == MAP_FAILED)
			go_wrong("mmap of an address range");
	}
	map(SHARED, 0, file_pages);
	map(PRIVATE, 0, file_pages);
}

static unsigned long choose_range(unsigned long *first, unsigned long most)
{
	unsigned long nr;

	*first = random_below(&rng, file_pages);
	nr = 1 + random_below(&rng, most);
	return nr < file_pages - *first ? nr : file_pages - *first;
}

static void map_anew(unsigned int place)
{
	unsigned long first, nr = choose_range(&first, file_pages / 4);

	if (place == PRIVATE)
		forget_slots(first, nr);
	munmap(address(place, first), nr * page_bytes);
	map(place, first, nr);
}

/* What moves takes what was written to it along. */
static void move_private(void)
{
	size_t bytes = file_pages * page_bytes;
	char *before = places[PRIVATE];

	if (mremap(before, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		   places[SPARE]) != MAP_FAILED) {
		/* Nothing else is mapped here, so its place stays free. */
		places[PRIVATE] = places[SPARE];
		places[SPARE] = before;
		count(MOVES);
	} else if (errno == EFAULT) {
		/* Parts that have not been merged again cannot move as one. */
		forget_slots(0, file_pages);
		map(PRIVATE, 0, file_pages);
	} else {
		expect_no_memory("mremap");
	}
	compare_all();
}

static void advise(unsigned int place)
{
	static const int advice[] = {
		MADV_DONTNEED, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ,
	};
	int chosen = advice[random_below(&rng, ARRAY_SIZE(advice))];
	unsigned long first, nr = choose_range(&first, file_pages / 16);

	if (place == PRIVATE && chosen == MADV_DONTNEED)
		forget_slots(first, nr);
	/* It may fail on what is locked, cut off, or no longer mapped. */
	madvise(address(place, first), nr * page_bytes, chosen);
}

/* Lock some pages until the next time. */
static void lock_or_unlock(void)
{
	static unsigned long first, nr;
	unsigned long most = LOCKED_BYTES / page_bytes;

	if (nr) {
		munlock(address(SHARED, first), nr * page_bytes);
		nr = 0;
		return;
	}
	nr = choose_range(&first, most);
	if (!mlock(address(SHARED, first), nr * page_bytes))
		count(LOCKS);
}

static void fork_child(void)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid < 0) {
		expect_no_memory("fork");
		return;
	}
	if (!pid) {
		end_with(parent);
		rng.state = random_number(&rng);
		compare_all();
		write_private();
		use_some_pages(16);
		compare_all();
		_exit(0);
	}
	/* At the same time as the child. */
	write_private();
	use_some_pages(16);
	if (waitpid(pid, &status, 0) != pid)
		go_wrong("waitpid");
	if (was_killed(status))
		add(&me->taken);
	else if (status)
		go_wrong(me->wrong ?: "a child did not end well");
	count(FORKS);
}

/* Workers: each does one step after the other until all is over */

static void use_pages(void)
{
	if (!places[SHARED])
		map_all();
	switch (random_below(&rng, 32)) {
	case 0:
		map_anew(SHARED);
		break;
	case 1:
		map_anew(PRIVATE);
		break;
	case 2:
		move_private();
		break;
	case 3:
	case 4:
		advise(SHARED);
		break;
	case 5:
	case 6:
		advise(PRIVATE);
		break;
	case 7:
	case 8:
		lock_or_unlock();
		break;
	case 9:
		fork_child();
		break;
	case 10:
		compare_all();
		break;
	case 11 ... 18:
		write_private();
		break;
	default:
		use_some_pages(32);
	}
	add(&me->done);
}

/* This is the one that memory runs out for. */
static void run_out_of_memory(void)
{
	const size_t bytes = 2 * limit_bytes + GROUP_SWAP_BYTES;
	static size_t used;
	static char *memory;

	if (!memory) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);
		if (memory == MAP_FAILED)
			go_wrong("mmap of anonymous memory");
	}
	if (used == bytes)
		go_wrong("the group got more memory than it may have");
	memory[used] = 1;
	used += page_bytes;
	add(&me->done);
}

/* Stores, as the bytes of what write() copies could be seen one by one. */
static void resize_file(void)
{
	unsigned long page = moving_page +
			     random_below(&rng, file_pages - moving_page);
	const off_t bytes = page * page_bytes;

	if (!places[SHARED])
		map_all();
	if (ftruncate(file_fd, bytes) ||
	    ftruncate(file_fd, file_pages * page_bytes))
		go_wrong("the file could not be resized");
	for (; page < file_pages && !is_over(); page++)
		store(address(SHARED, page), page + 1);
	add(&me->done);
	usleep(20000);
}

static void take_memory(void)
{
	char bytes[32];
	int err;

	snprintf(bytes, sizeof(bytes), "%lu",
		 (1 + random_below(&rng, 64)) * (limit_bytes / 256));
	err = memory_cgroup_write("memory.reclaim", bytes);
	if (!err)
		add(&me->done);
	else if (err != -EAGAIN)
		go_wrong("memory.reclaim");
	usleep(random_below(&rng, 10000));
}

/* Of the group, on the last of its nodes. */
struct generations {
	unsigned long group, node, oldest, youngest;
};

static bool read_generations(struct generations *found)
{
	FILE *file = fopen(GENERATIONS_FILE, "r");
	unsigned long group, seq, age;
	bool ours = false, any = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "memcg %lu", &group) == 1) {
			ours = strstr(line, MEMORY_CGROUP "\n");
			if (ours)
				found->group = group;
		} else if (ours && sscanf(line, " node %lu",
					  &found->node) == 1) {
			any = false;
		} else if (ours && sscanf(line, "%lu %lu", &seq, &age) == 2) {
			if (!any)
				found->oldest = seq;
			found->youngest = seq;
			any = true;
		}
	}
	if (file)
		fclose(file);
	return any;
}

static void command_lru_gen(void)
{
	struct generations found;
	char command[80];

	if (read_generations(&found)) {
		if (random_below(&rng, 2))
			snprintf(command, sizeof(command), "+ %lu %lu %lu 1 %lu",
				 found.group, found.node, found.youngest,
				 random_below(&rng, 2));
		else
			snprintf(command, sizeof(command), "- %lu %lu %lu %lu %lu",
				 found.group, found.node, found.oldest,
				 random_below(&rng, 201), 1 + random_below(&rng, 512));
		/* Refused if others have been faster. */
		if (!setting_write(GENERATIONS_FILE, command))
			add(&me->done);
	}
	usleep(random_below(&rng, 10000));
}

/* The tests' own process */

static unsigned long flips, lru_gen_flips;

static void flip_a_setting(void)
{
	static const char * const earned[] = { "active", "accessed", "mapped" };

	switch (random_below(&rng, 3)) {
	case 0:
		set_setting(FAULT_FOLIOS_FILE,
			    earned[random_below(&rng, ARRAY_SIZE(earned))]);
		break;
	case 1:
		set_setting(PTE_AGE_FILE, random_below(&rng, 2) ? "1" : "0");
		break;
	case 2:
		set_setting(ADAPTIVE_FILE, random_below(&rng, 2) ? "1" : "0");
		break;
	}
	flips++;
	if (flips % 64)
		return;
	/* Mostly on, or little would be put to the test. */
	set_setting(LRU_GEN_FILE, "n");
	usleep(random_below(&rng, 20000));
	set_setting(LRU_GEN_FILE, "y");
	lru_gen_flips++;
}

static void start(struct worker *worker)
{
	pid_t parent = getpid(), pid;

	worker->starts++;
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (pid) {
		worker->pid = pid;
		return;
	}
	end_with(parent);
	me = worker;
	rng.state = worker->starts * NR_WORKERS + (worker - shared->workers);
	/* The others are not to be taken as long as there is a choice. */
	if (setting_write("/proc/self/oom_score_adj",
			  worker->victim ? "1000" : "-900"))
		go_wrong("oom_score_adj");
	if (worker->joins && !memory_cgroup_join())
		go_wrong("it could not join the control group");
	while (!is_over())
		worker->step();
	_exit(0);
}

static bool is_needed(const struct worker *worker)
{
	return worker->step != command_lru_gen ||
	       !access(GENERATIONS_FILE, W_OK);
}

/* Of those that have ended, start again whom the killer has taken. */
static void look_after_workers(void)
{
	struct worker *worker;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (worker = shared->workers;
		     worker < shared->workers + NR_WORKERS; worker++)
			if (worker->pid == pid)
				break;
		/* One that a worker left behind when it was taken. */
		if (worker == shared->workers + NR_WORKERS)
			continue;
		worker->pid = 0;
		if (was_killed(status)) {
			worker->taken++;
			if (!is_over())
				start(worker);
		} else if ((status || !is_over()) && !worker->wrong) {
			ksft_print_msg("it ended with %#x\n", status);
			worker->wrong = "a process did not end well";
		}
	}
}

static bool any_wrong(void)
{
	unsigned int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (shared->workers[i].wrong)
			return true;
	return false;
}

static unsigned int nr_running(void)
{
	unsigned int i, nr = 0;

	for (i = 0; i < NR_WORKERS; i++)
		nr += !!shared->workers[i].pid;
	return nr;
}

static unsigned long nr_taken(bool victims)
{
	unsigned long nr = 0;
	unsigned int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (shared->workers[i].victim == victims)
			nr += shared->workers[i].taken;
	return nr;
}

/* Return: what has not happened so far, or NULL. */
static const char *what_is_missing(void)
{
	unsigned int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (is_needed(&shared->workers[i]) && !shared->workers[i].done)
			return shared->workers[i].name;
	/* Calls need not be refused, nor does a fault have to be so late. */
	for (i = 0; i < NR_COUNTS; i++)
		if (i != REFUSED && i != BEYOND_THE_END && !shared->counts[i])
			return count_names[i];
	if (!lru_gen_flips)
		return "flips of lru_gen";
	if (!nr_taken(true) || memory_cgroup_events("oom_kill") <= 0)
		return "kills";
	if (memory_cgroup_stat("pgmajfault") <= 0)
		return "faults that read";
	if (memory_cgroup_stat("workingset_refault_file") <= 0)
		return "refaults";
	return NULL;
}

static void race(void)
{
	double began = seconds_now(), end;
	unsigned int i;

	for (i = 0; i < NR_WORKERS; i++)
		if (is_needed(&shared->workers[i]))
			start(&shared->workers[i]);
	while (!any_wrong()) {
		double elapsed = seconds_now() - began;

		if (elapsed >= seconds + PATIENCE_SECONDS ||
		    (elapsed >= seconds && !what_is_missing()))
			break;
		flip_a_setting();
		look_after_workers();
		usleep(random_below(&rng, 4000));
	}
	__atomic_store_n(&shared->over, true, __ATOMIC_RELAXED);
	end = seconds_now() + PATIENCE_SECONDS;
	while (nr_running() && seconds_now() < end) {
		look_after_workers();
		usleep(10000);
	}
}

static void print_counts(void)
{
	const struct worker *worker;
	unsigned int i;

	for (worker = shared->workers;
	     worker < shared->workers + NR_WORKERS; worker++) {
		ksft_print_msg("%lu %s, %lu taken, %u starts\n", worker->done,
			       worker->name, worker->taken, worker->starts);
		if (worker->wrong)
			ksft_print_msg("that went wrong: %s\n", worker->wrong);
	}
	for (i = 0; i < NR_COUNTS; i++)
		ksft_print_msg("%lu %s\n", shared->counts[i], count_names[i]);
	ksft_print_msg("%lu flips of settings, %lu of lru_gen\n", flips,
		       lru_gen_flips);
	ksft_print_msg("%ld faults that read, %ld refaults, %ld pages swapped in\n",
		       memory_cgroup_stat("pgmajfault"),
		       memory_cgroup_stat("workingset_refault_file"),
		       memory_cgroup_stat("workingset_refault_anon"));
	ksft_print_msg("%ld kills for lack of memory, %lu of them not meant\n",
		       memory_cgroup_events("oom_kill"), nr_taken(false));
}

static void test_race(void)
{
	unsigned long trouble = kernel_trouble(), taken;
	const char *missing;
	bool ok;

	race();
	print_counts();
	ok = !any_wrong();
	if (nr_running()) {
		ksft_print_msg("%u processes do not end\n", nr_running());
		ok = false;
	}
	/* Who was stopped early did not get to it. */
	missing = ok ? what_is_missing() : NULL;
	if (missing) {
		ksft_print_msg("there were no %s\n", missing);
		ok = false;
	}
	/* Nobody else kills them. */
	taken = nr_taken(true) + nr_taken(false);
	if ((long)taken > memory_cgroup_events("oom_kill")) {
		ksft_print_msg("%lu were killed, more than the kernel did\n",
			       taken);
		ok = false;
	}
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok, "what faults bring in is right when memory runs out\n");
}

static void prepare_file(void)
{
	struct mapping map;
	uint64_t number;

	limit_bytes = (24UL << 20) + 256 * page_bytes;
	file_pages = 2 * limit_bytes / page_bytes;
	moving_page = file_pages / 4 * 3;
	file_fd = make_file();
	if (file_fd < 0)
		ksft_exit_skip("cannot make a file in the current directory\n");
	if (ftruncate(file_fd, file_pages * page_bytes))
		ksft_exit_skip("cannot size the test file\n");
	for (number = 1; number <= file_pages; number++)
		if (pwrite(file_fd, &number, sizeof(number),
			   (number - 1) * page_bytes) != sizeof(number))
			ksft_exit_skip("not enough room for the test file\n");
	if (fsync(file_fd))
		ksft_exit_skip("not enough room for the test file\n");
	/* What is in the cache by now would not be the group's. */
	map_cold(&map, file_fd, file_pages);
	unmap_and_close(&map);
}

static void prepare_group(void)
{
	char bytes[32];

	if (!memory_cgroup_make(limit_bytes))
		ksft_exit_skip("no memory control groups\n");
	if (memory_cgroup_write("memory.oom.group", "0"))
		ksft_exit_fail_msg("cannot have processes killed one by one\n");
	snprintf(bytes, sizeof(bytes), "%lu", GROUP_SWAP_BYTES);
	if (memory_cgroup_write("memory.swap.max", bytes))
		ksft_print_msg("no limit on swap\n");
	if (!start_swap(SWAP_BYTES))
		ksft_print_msg("no swap\n");
}

static void run_tests(void)
{
	ksft_set_plan(1);
	/* What outlives a worker that was killed is for us to bury. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prepare_file();
	prepare_group();
	shared = shared_memory(sizeof(*shared));
	memcpy(shared->workers, all_workers, sizeof(all_workers));
	set_setting(LRU_GEN_FILE, "y");
	test_race();
	ksft_finished();
}

/* All workers die with the tests' process, and are ours then. */
static void clean_up(void)
{
	double end = seconds_now() + PATIENCE_SECONDS;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid)
			continue;
		if (seconds_now() >= end) {
			ksft_print_msg("processes are left that do not end\n");
			return;
		}
		usleep(10000);
	}
	stop_swap();
	memory_cgroup_remove();
}

static void __noreturn print_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--seconds N]\n"
		"  --seconds N  how long to go on, from 1 to 86400 (5)\n",
		name);
	exit(KSFT_FAIL);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ }
	};
	unsigned long given;
	char *end;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option != 's')
			print_usage(argv[0]);
		given = strtoul(optarg, &end, 10);
		if (end == optarg || *end || !given || given > 86400)
			print_usage(argv[0]);
		seconds = given;
	}
	if (optind < argc)
		print_usage(argv[0]);

	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root for a control group and settings\n");
	if (access(FAULT_FOLIOS_FILE, W_OK))
		ksft_exit_skip("no " FAULT_FOLIOS_FILE " on this kernel\n");
	page_cache_init();
	guard_setting(LRU_GEN_FILE);
	guard_setting(FAULT_FOLIOS_FILE);
	guard_setting(PTE_AGE_FILE);
	guard_setting(ADAPTIVE_FILE);
	guard_swap();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return run_guarded(run_tests, clean_up);
}
