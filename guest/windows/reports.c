// SPDX-License-Identifier: GPL-2.0-only
/*
 * Do what users have reported: processes that each open one file, threads that
 * scan it in pieces, mappings of parts of it, reclaim meanwhile; and tell what
 * that made the kernel read, and how long it took.
 *
 * All sizes follow from the file, and are as reported with one of 512 MiB. The
 * touches are worked out before the clock starts.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE	"reports"
#include "cases.h"
#include "cgroup.h"
#include "options.h"
#include "protect.h"

#define REQUEST_BYTES	(128 << 10)	/* that a request costs as much as */
#define LEAST_PAGES	1024	/* of a file */
#define SPLIT		64	/* pages; every other such part is protected */
#define NOBODY		65534
#define PATH_ROOM	4096
#define SYS_CACHESTAT	451	/* of all architectures; no header has it yet */

/* With a file of 512 MiB, in pages of 4 KiB. */
#define REPORTED_PAGES	131072
#define SPARSE_PAGES	4194304	/* of the stranger's file */
#define SPARSE_TOUCHES	80000
#define RECLAIM_PAGES	8192	/* each time */
#define TEXT_PAGES	8192
#define TEXT_TOUCHES	1000	/* between two times when it is paged out */

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

/* What a report does unless its form says otherwise. */
struct report {
	const char *name;
	const char *what;	/* it does, for --help */
	enum case_kind plan;	/* if it has one */
	void (*prepare)(void);
	void (*work)(void);
	bool many;		/* there may be more runners, or less */
};

/* In which order a form touches pages that no plan of a case has. */
enum order { PLANNED, FORWARD, SHUFFLED, RANDOM };

struct form {
	const char *name;
	const char *what;	/* it is, for --help */
	const char *report;
	void (*prepare)(void);
	void (*work)(void);
	void (*between)(void);	/* two phases */
	enum order order;
	uint32_t pages;		/* touched in that order, or of these so many */
	uint32_t unit;		/* pages of a mapping */
	uint32_t units, count;	/* other phases than those of the plan */
	uint32_t passes;
	int advice;
	struct protect_case protect;
};

static struct env {
	const struct report *report;
	const struct form *form;
	const char *file;
	uint64_t runners;	/* 0: as reported */
	uint64_t read_ahead_kib;
	uint64_t seed;
	bool drop_caches;
} env = {
	.seed = 1,
};

static struct {
	size_t page_size;
	uint64_t file_pages;
	dev_t device;
	struct case_settings settings;
	struct case_touches plan;	/* one runner's after the other's */
	uint64_t *first;		/* of each runner, and the end */
	uint64_t last_phase;
	uint64_t floor_pages;
	int fd;
	char *map;
	pthread_barrier_t *barrier;	/* in memory that processes share */
	char *text;
	uint64_t text_state;
	unsigned char *inside;		/* pages that some mapping has */
	bool has_cached, has_outside;
	uint64_t cached_pages;		/* once the hint was given */
	uint64_t outside_pages;		/* read, though no mapping has them */
	struct protect_times protect;
} work = {
	.fd = -1,
};

static char sparse[PATH_ROOM];	/* the stranger's file */

/* What is to be undone, by the process that did it. */
static struct {
	pid_t owner;
	pid_t stranger;
	bool sparse;
	bool group;
} made;

/* As many as go with the file, of so many that were reported. */
static uint64_t scaled(uint64_t reported)
{
	uint64_t here = reported * work.file_pages / REPORTED_PAGES;

	return here ? here : 1;
}

/* Mappings and touches. */

static char *map_pages(int fd, uint64_t first, uint64_t pages, int access,
		       int flags)
{
	char *map = mmap(NULL, pages * work.page_size, access, flags, fd,
			 first * work.page_size);

	if (map == MAP_FAILED)
		fail_io(env.file);
	return map;
}

static void open_file(int flags)
{
	work.fd = open(env.file, flags | O_CLOEXEC);
	if (work.fd < 0)
		fail_io(env.file);
}

static void map_file(int access, int sharing)
{
	work.map = map_pages(work.fd, 0, work.file_pages, access, sharing);
}

static void map_to_read(void)
{
	open_file(O_RDONLY);
	map_file(PROT_READ, MAP_SHARED);
}

static void map_to_write(void)
{
	open_file(O_RDWR);
	map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void map_private(void)
{
	open_file(O_RDONLY);
	map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void touch_at(char *map, const struct case_touch *touch)
{
	volatile char *byte = map + touch->page * work.page_size;

	if (touch->write)
		*byte = 1;
	else
		(void)*byte;
}

static void touch_pages_of(uint64_t runner)
{
	for (uint64_t i = work.first[runner]; i < work.first[runner + 1]; i++)
		touch_at(work.map, &work.plan.touches[i]);
}

static void touch_all(void)
{
	touch_pages_of(0);
}

static void touch_in_phases(void)
{
	const struct case_touch *touch = work.plan.touches;
	uint64_t phase = 0;

	for (uint64_t i = 0; i < work.plan.count; i++, touch++) {
		if (touch->phase != phase && env.form->between)
			env.form->between();
		phase = touch->phase;
		touch_at(work.map, touch);
	}
}

/* Processes and threads. */

static void make_barrier(uint64_t runners)
{
	pthread_barrierattr_t shared;

	work.barrier = mmap(NULL, sizeof(*work.barrier), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (work.barrier == MAP_FAILED)
		fail_io("No memory to share");
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(work.barrier, &shared, runners);
}

static void prepare_processes(void)
{
	make_barrier(work.settings.runners - work.settings.in_turn);
}

static void prepare_one_opener(void)
{
	map_to_read();
	prepare_processes();
}

static void start_process(uint64_t runner)
{
	pid_t pid = fork();

	if (pid < 0)
		fail_io("No process");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (case_maps_private(work.settings.kind))
		map_private();
	else if (!work.map)
		map_to_read();
	if (runner >= work.settings.in_turn)
		pthread_barrier_wait(work.barrier);
	touch_pages_of(runner);
	_exit(0);
}

/* Others may wait for one that has failed, and said why: they end with us. */
static void await_process(void)
{
	int status;

	if (wait(&status) < 0 || status)
		fail(1, "A process that touches pages has failed.");
}

static void run_processes(void)
{
	uint64_t runners = work.settings.runners, runner = 0;

	for (; runner < work.settings.in_turn; runner++) {
		start_process(runner);
		await_process();
	}
	for (; runner < runners; runner++)
		start_process(runner);
	for (runner = work.settings.in_turn; runner < runners; runner++)
		await_process();
}

static void prepare_threads(void)
{
	map_to_read();
	make_barrier(work.settings.runners);
}

/* Nobody begins with a phase before all have done with the one before. */
static void *run_thread(void *number)
{
	uint64_t runner = (uintptr_t)number, phase = 0;

	for (uint64_t i = work.first[runner]; i < work.first[runner + 1]; i++) {
		for (; phase < work.plan.touches[i].phase; phase++)
			pthread_barrier_wait(work.barrier);
		touch_at(work.map, &work.plan.touches[i]);
	}
	for (; phase < work.last_phase; phase++)
		pthread_barrier_wait(work.barrier);
	return NULL;
}

static void run_threads(void)
{
	static pthread_t threads[MAX_THREADS];

	for (uint64_t t = 0; t < work.settings.runners; t++) {
		errno = pthread_create(&threads[t], NULL, run_thread,
				       (void *)(uintptr_t)t);
		if (errno)
			fail_io("A thread could not be started");
	}
	for (uint64_t t = 0; t < work.settings.runners; t++)
		pthread_join(threads[t], NULL);
}

/* Too little memory, and reclaim. */

static void enter_group(uint64_t pages)
{
	cgroup_make(pages * work.page_size);
	made.group = true;
	cgroup_enter();
}

static void prepare_little_memory(void)
{
	enter_group(work.file_pages / 8 * 5);
	prepare_threads();
}

static void prepare_group(void)
{
	enter_group(work.file_pages);
	map_to_read();
}

/* It takes less than that if there is no more to be taken. */
static void reclaim_some(void)
{
	char bytes[24];

	snprintf(bytes, sizeof(bytes), "%" PRIu64,
		 scaled(RECLAIM_PAGES) * work.page_size);
	if (!write_word(CGROUP "/memory.reclaim", bytes) && errno != EAGAIN)
		fail_io(CGROUP "/memory.reclaim");
}

static void use_text(void)
{
	for (uint64_t i = 0; i < scaled(TEXT_TOUCHES); i++)
		(void)*(volatile char *)(work.text + work.page_size *
			random_below(&work.text_state, scaled(TEXT_PAGES)));
}

static void page_out_text(void)
{
	if (madvise(work.text, scaled(TEXT_PAGES) * work.page_size,
		    MADV_PAGEOUT))
		fail_io("The text could not be paged out");
	use_text();
}

/* It is the end of the file, opened anew as a program would be. */
static void prepare_text(void)
{
	uint64_t pages = scaled(TEXT_PAGES);

	prepare_group();
	work.text = map_pages(open(env.file, O_RDONLY | O_CLOEXEC),
			      work.file_pages - pages, pages,
			      PROT_READ | PROT_EXEC, MAP_PRIVATE);
	work.text_state = ~env.seed;
	use_text();
}

/* A stranger with a file of his own. */

static noreturn void be_stranger(int done)
{
	uint64_t state = ~env.seed, pages = scaled(SPARSE_PAGES);
	const volatile char *map;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!geteuid() && (setgroups(0, NULL) || setgid(NOBODY) ||
			   setuid(NOBODY)))
		fail_io("The stranger could not become another user");
	fd = open(sparse, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_io(sparse);
	map = map_pages(fd, 0, pages, PROT_READ, MAP_SHARED);
	for (uint64_t i = 0; i < scaled(SPARSE_TOUCHES); i++)
		(void)map[random_below(&state, pages) * work.page_size];
	if (write(done, "", 1) != 1)
		fail_io("The stranger was left alone");
	for (;;)
		pause();
}

/* Who has it open keeps it. */
static void forget_sparse_file(void)
{
	if (made.sparse)
		unlink(sparse);
	made.sparse = false;
}

static void make_sparse_file(void)
{
	int fd;

	snprintf(sparse, sizeof(sparse), "%s.sparse", env.file);
	fd = open(sparse, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	made.sparse = fd >= 0;
	if (fd < 0 || ftruncate(fd, scaled(SPARSE_PAGES) * work.page_size))
		fail_io(sparse);
	close(fd);
}

static void prepare_stranger(void)
{
	int done[2];
	char byte;

	make_sparse_file();
	if (pipe2(done, O_CLOEXEC))
		fail_io("No pipe");
	made.stranger = fork();
	if (made.stranger < 0)
		fail_io("No process");
	if (!made.stranger)
		be_stranger(done[1]);
	close(done[1]);
	if (read(done[0], &byte, 1) != 1)
		fail(1, "The stranger has failed.");
	forget_sparse_file();
	map_to_read();
}

/* Parts of the file. */

/* Each as the plan has it; all stay. */
static void map_places(void)
{
	const struct case_touch *touch = work.plan.touches;
	uint64_t unit = work.settings.unit, state;

	for (uint64_t part = 0; part < work.settings.units; part++) {
		uint64_t first = case_part(&work.settings, part, &state);
		char *map = map_pages(work.fd, first, unit, PROT_READ,
				      MAP_SHARED);

		memset(work.inside + first, 1, unit);
		for (uint64_t i = 0; i < work.settings.count; i++, touch++)
			touch_at(map - first * work.page_size, touch);
	}
}

/* In order: map one, read it, unmap it. */
static void map_in_turn(void)
{
	uint64_t unit = env.form->unit, at = 0;

	while (at < work.plan.count) {
		uint64_t part = pattern_clamp(work.plan.count - at, unit);
		char *map = map_pages(work.fd, at, part, PROT_READ, MAP_SHARED);

		for (uint64_t page = 0; page < part; page++)
			touch_at(map - at * work.page_size,
				 &work.plan.touches[at + page]);
		munmap(map, part * work.page_size);
		at += part;
	}
}

static void prepare_parts(void)
{
	open_file(O_RDONLY);
	work.inside = calloc(work.file_pages, 1);
	if (!work.inside)
		fail(1, "No memory to tell pages apart.");
}

/* Each other part is writable, so that no two are one mapping. */
static void prepare_split(void)
{
	uint64_t bytes = SPLIT * work.page_size;

	open_file(O_RDONLY);
	map_file(PROT_READ, MAP_PRIVATE);
	for (uint64_t at = bytes; at + bytes <= work.file_pages * work.page_size;
	     at += 2 * bytes)
		if (mprotect(work.map + at, bytes, PROT_READ | PROT_WRITE))
			fail_io("mprotect");
}

/* What was read is in memory still. */
static void count_outside(void)
{
	unsigned char *cached = calloc(work.file_pages, 1);
	char *map = map_pages(work.fd, 0, work.file_pages, PROT_READ, MAP_SHARED);

	if (!cached || mincore(map, work.file_pages * work.page_size, cached))
		fail_io(env.file);
	for (uint64_t page = 0; page < work.file_pages; page++)
		work.outside_pages += (cached[page] & 1) && !work.inside[page];
	work.has_outside = true;
	free(cached);
}

/* Hints. */

static void hint_and_touch(void)
{
	/* struct cachestat_range, and struct cachestat, whose first is nr_cache */
	uint64_t range[2] = { 0, work.plan.count * work.page_size }, counts[5];

	if (env.form->advice &&
	    madvise(work.map, range[1], env.form->advice))
		fail_io("The hint was refused");
	work.has_cached = !syscall(SYS_CACHESTAT, work.fd, range, counts, 0);
	work.cached_pages = counts[0];
	touch_all();
}

static void change_protection(void)
{
	work.protect = protect_measure(&env.form->protect);
}

/* The program. */

static const struct report reports[] = {
	{ "openers", "32 processes touch random pages of the first quarter",
	  .plan = CASE_OPENERS, .work = run_processes, .many = true },
	{ "stranger", "all pages of a half at random, beside another user",
	  .work = touch_all },
	{ "pieces", "32 threads scan one tensor after the other, each a piece",
	  .plan = CASE_PIECES, .work = run_threads, .many = true },
	{ "snapshot",
	  "processes restore a private mapping, five by turns, four at once",
	  .plan = CASE_SNAPSHOT, .prepare = prepare_processes,
	  .work = run_processes },
	{ "parts", "mappings of parts of the file",
	  .plan = CASE_PARTS, .work = touch_all },
	{ "reclaim", "a few pages often, by Zipf's law, with memory to spare",
	  .plan = CASE_RECLAIM, .work = touch_in_phases },
	{ "protect", "memory without a file changes its protection",
	  .work = change_protection },
	{ "willneed", "24 MiB are read page by page",
	  .prepare = map_to_read, .work = hint_and_touch },
	{ "remote", "24 threads read a tensor each, in a random order",
	  .plan = CASE_REMOTE, .prepare = prepare_threads, .work = run_threads,
	  .many = true },
	{ "writes", "random pages of a shared mapping are written to",
	  .plan = CASE_WRITES, .prepare = map_to_write, .work = touch_all },
	{ 0 }
};

static const struct form forms[] = {
	{ "each", "each process opens the file", "openers",
	  .prepare = prepare_processes },
	{ "once", "they have it from a parent that has opened it", "openers",
	  .prepare = prepare_one_opener },
	{ "alone", "there is no other user", "stranger",
	  .prepare = map_to_read, .order = SHUFFLED, .pages = 65536 },
	{ "beside",
	  "he has touched 80,000 random pages of a sparse file of 16 GiB",
	  "stranger",
	  .prepare = prepare_stranger, .order = SHUFFLED, .pages = 65536 },
	{ "fits", "all tensors fit in memory", "pieces",
	  .prepare = prepare_threads },
	{ "exceeds", "memory for five sixths of them, and four passes",
	  "pieces", .prepare = prepare_little_memory, .passes = 4 },
	{ "places", "400 of 256 KiB at random places, with 4 touches each",
	  "parts", .prepare = prepare_parts, .work = map_places },
	{ "by-64k", "256 MiB are read in order, by mappings of 64 KiB", "parts",
	  .prepare = prepare_parts, .work = map_in_turn,
	  .order = FORWARD, .pages = 65536, .unit = 16 },
	{ "by-1m", "the same, by mappings of 1 MiB", "parts",
	  .prepare = prepare_parts, .work = map_in_turn,
	  .order = FORWARD, .pages = 65536, .unit = 256 },
	{ "forward", "the same, by one mapping", "parts",
	  .prepare = map_to_read, .order = FORWARD, .pages = 65536 },
	{ "split-forward",
	  "the same, where every other 64 pages have another protection",
	  "parts",
	  .prepare = prepare_split, .order = FORWARD, .pages = 65536 },
	{ "random", "8,000 random pages of one mapping", "parts",
	  .prepare = map_to_read, .order = RANDOM, .pages = 8000 },
	{ "split-random",
	  "the same, where every other 64 pages have another protection",
	  "parts",
	  .prepare = prepare_split, .order = RANDOM, .pages = 8000 },
	{ "undisturbed", "without reclaim", "reclaim",
	  .prepare = prepare_group },
	{ "group", "32 MiB are reclaimed after each 4,000 touches", "reclaim",
	  .prepare = prepare_group, .between = reclaim_some },
	{ "text", "program text is used after each 10,000 touches", "reclaim",
	  .prepare = prepare_text, .between = use_text,
	  .units = 4, .count = 10000 },
	{ "text-out", "the same, and is paged out before", "reclaim",
	  .prepare = prepare_text, .between = page_out_text,
	  .units = 4, .count = 10000 },
	{ "4k", "4 KiB become inaccessible and writable again", "protect",
	  .protect = { protect_all, 4 << 10 } },
	{ "400k", "400 KiB do", "protect",
	  .protect = { protect_all, 400 << 10 } },
	{ "4000k", "4,000 KiB do", "protect",
	  .protect = { protect_all, 4000 << 10 } },
	{ "40m", "40 MiB do", "protect", .protect = { protect_all, 40 << 20 } },
	{ "regions",
	  "two regions of 123 pages become executable and writable again",
	  "protect",
	  .protect = { protect_regions, 2 * PROTECT_REGION } },
	{ "singles",
	  "single pages within 64 MiB become inaccessible and writable again",
	  "protect", .protect = { protect_singles, 64 << 20 } },
	{ "empty",
	  "64 MiB of unused space become usable and unusable again, by steps "
	  "of 64 KiB",
	  "protect", .protect = { protect_empty, 64 << 20, .empty = true } },
	{ "unhinted", "without a hint", "willneed",
	  .order = FORWARD, .pages = 6144 },
	{ "hinted", "after MADV_WILLNEED", "willneed",
	  .order = FORWARD, .pages = 6144, .advice = MADV_WILLNEED },
	{ 0 }
};

static struct probe_option options[] = {
	{ "case", "CASE", "what was reported:", .row = &env.report,
	  ROWS_OF(reports), .needed = true },
	{ "form", "FORM", "of a case that has several:", .row = &env.form,
	  ROWS_OF(forms) },
	{ "file", "PATH", "the file to map", .text = &env.file, .needed = true },
	{ "runners", "N",
	  "processes of openers, threads of pieces and remote",
	  .number = &env.runners, .least = 1, .most = MAX_THREADS },
	{ "read_ahead_kb", "N", "of the disk that the file is on; needs root",
	  .number = &env.read_ahead_kib },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--case CASE --file PATH [OPTION]...\n"
"Do with a file what users have reported, and print as one line of JSON what that\n"
"made the kernel read, and how long it took.\n",
	.options = options,
	.notes =
"Examples:\n"
"  reports --case openers --file data --runners 8\n"
"  reports --case pieces --form fits --file data --runners 64\n"
"\n"
"Sizes are those for a file of 512 MiB, and smaller with a smaller one; what\n"
"protect does is the same with any. A page is written to by writes and in memory\n"
"of its own by snapshot. exceeds, and all of reclaim, need root; beside makes\n"
"PATH.sparse for a while, and run by root its stranger is the user 65534.\n"
"Faults of the stranger are not counted. price_bytes are what was read, and 128\n"
"KiB for each request; outside_bytes were read though no mapping of the form\n"
"places has them; cached_bytes are there once willneed has given its hint.\n"
"undisturbed_seconds is what protect would take if all rounds had been like the\n"
"fastest. Counts are null where they are not known.\n",
};

static bool has_forms(const struct report *report)
{
	for (const struct form *form = forms; form->name; form++)
		if (!strcmp(form->report, report->name))
			return true;
	return false;
}

static void parse_arguments(int argc, char **argv)
{
	static const struct form none;
	const char *name;

	parse_options(argc, argv, &usage);
	name = env.report->name;
	if (!env.form && has_forms(env.report))
		fail(2, "--case %s needs --form.", name);
	if (env.form && strcmp(env.form->report, name))
		fail(2, "--case %s has no --form %s.", name, env.form->name);
	if (env.runners && !env.report->many)
		fail(2, "--case %s has no --runners.", name);
	if (!env.form)
		env.form = &none;
}

static void look_at_file(void)
{
	struct stat status;

	work.page_size = sysconf(_SC_PAGESIZE);
	if (stat(env.file, &status))
		fail_io(env.file);
	work.device = status.st_dev;
	work.file_pages = status.st_size / work.page_size;
	if (work.file_pages < LEAST_PAGES)
		fail(1, "%s holds less than %d pages.", env.file, LEAST_PAGES);
}

/* Sizes of tensors and mappings are as reported; there are fewer of them. */
static void set_sizes(void)
{
	struct case_settings *settings = &work.settings;
	const struct form *form = env.form;

	*settings = case_reported[env.report->plan];
	settings->pages = scaled(settings->pages);
	if (settings->kind == CASE_PARTS)
		settings->units = scaled(settings->units);
	else
		settings->count = scaled(form->count ?: settings->count);
	if (form->units)
		settings->units = form->units;
	if (settings->kind == CASE_REMOTE)
		settings->unit = scaled(settings->unit);
	settings->passes = form->passes ?: settings->passes;
	settings->runners = env.runners ?: settings->runners;
	settings->seed = env.seed;
}

static void plan_in_order(enum order order, uint64_t count)
{
	uint64_t state = env.seed;
	uint32_t *pages = calloc(count, sizeof(*pages));

	work.plan.touches = calloc(count, sizeof(*work.plan.touches));
	work.settings.runners = 1;
	if (!pages || !work.plan.touches)
		fail(1, "No memory for %" PRIu64 " touches.", count);
	for (uint64_t i = 0; i < count; i++)
		pages[i] = order == RANDOM ?
			   random_below(&state, work.file_pages) : i;
	if (order == SHUFFLED)
		case_shuffle(&state, pages, count);
	for (uint64_t i = 0; i < count; i++)
		case_add(&work.plan, pages[i], 0, 0, false);
	free(pages);
}

static void count_floor(void)
{
	char *seen = calloc(work.file_pages, 1);

	if (!seen)
		fail(1, "No memory to tell pages apart.");
	for (uint64_t i = 0; i < work.plan.count; i++) {
		char *page = &seen[work.plan.touches[i].page];

		work.floor_pages += !*page;
		*page = 1;
	}
	free(seen);
}

/* Put each runner's touches together, in their order. */
static void sort_by_runner(void)
{
	struct case_touches *plan = &work.plan;
	struct case_touch *sorted = calloc(plan->count, sizeof(*sorted));
	uint64_t *next = calloc(work.settings.runners + 2, sizeof(*next));

	if (!sorted || !next)
		fail(1, "No memory for %" PRIu64 " touches.", plan->count);
	for (uint64_t i = 0; i < plan->count; i++)
		next[plan->touches[i].runner + 2]++;
	for (uint64_t runner = 0; runner < work.settings.runners; runner++)
		next[runner + 2] += next[runner + 1];
	work.last_phase = plan->touches[plan->count - 1].phase;
	for (uint64_t i = 0; i < plan->count; i++)
		sorted[next[plan->touches[i].runner + 1]++] = plan->touches[i];
	free(plan->touches);
	plan->touches = sorted;
	work.first = next;
}

static void plan_touches(void)
{
	set_sizes();
	if (env.form->order != PLANNED)
		plan_in_order(env.form->order, scaled(env.form->pages));
	else if (!case_plan(&work.settings, &work.plan))
		fail(1, "No memory for %" PRIu64 " touches.",
		     case_count(&work.settings));
	count_floor();
	sort_by_runner();
}

static void undo(void)
{
	if (getpid() != made.owner)
		return;
	if (made.stranger > 0)
		kill(made.stranger, SIGKILL);
	made.stranger = 0;
	forget_sparse_file();
	if (made.group && write_word(CGROUPS "/cgroup.procs", "0"))
		rmdir(CGROUP);
	made.group = false;
}

static void prepare(void)
{
	void (*prepare)(void) = env.form->prepare ?: env.report->prepare;

	settings_init(undo);
	made.owner = getpid();
	if (env.report->work != change_protection)
		plan_touches();
	if (option_given(&usage, "read_ahead_kb"))
		set_read_ahead(work.device, env.read_ahead_kib);
	forget_caches(env.file, env.drop_caches);
	if (prepare)
		prepare();
}

/* None of those that it has waited for had begun before. */
static void add_processes(struct counters *counters)
{
	struct rusage children;

	getrusage(RUSAGE_CHILDREN, &children);
	counters->usage.ru_majflt += children.ru_majflt;
	counters->usage.ru_minflt += children.ru_minflt;
}

static void print_result(const struct counters *before,
			 const struct counters *after)
{
	bool protects = work.protect.calls, known = before->has_device &&
						    after->has_device;

	printf("{\"probe\": \"" PROBE "\", \"case\": \"%s\"",
	       env.report->name);
	if (env.form->name)
		printf(", \"form\": \"%s\"", env.form->name);
	else
		printf(", \"form\": null");
	print_count("runners", !protects, work.settings.runners);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("file_bytes", true, work.file_pages * work.page_size);
	print_reads(before, after);
	print_count("price_bytes", known, after->device.bytes -
		    before->device.bytes + REQUEST_BYTES *
		    (after->device.requests - before->device.requests));
	print_count("floor_bytes", !protects,
		    work.floor_pages * work.page_size);
	print_count("outside_bytes", work.has_outside,
		    work.outside_pages * work.page_size);
	print_count("cached_bytes", work.has_cached,
		    work.cached_pages * work.page_size);
	print_count("calls", protects, work.protect.calls);
	if (protects)
		printf(", \"undisturbed_seconds\": %.9f, \"seconds\": %.9f}\n",
		       work.protect.undisturbed, work.protect.seconds);
	else
		printf(", \"undisturbed_seconds\": null, \"seconds\": %.9f}\n",
		       seconds_between(before, after));
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;

	parse_arguments(argc, argv);
	look_at_file();
	prepare();
	read_device(&before, work.device);
	read_process(&before);
	(env.form->work ?: env.report->work)();
	read_process(&after);
	read_device(&after, work.device);
	add_processes(&after);
	if (env.form->work == map_places)
		count_outside();
	print_result(&before, &after);
	return 0;
}
