// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read one half of a mapped file while another process, of another user, does its
 * worst elsewhere, and tell what was read for the reader alone.
 *
 * Reader and stranger take turns, and counters are read around the turns of the
 * reader. A few turns of its own let the kernel learn the reader's pattern first.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PROBE	"strangers"
#include "files.h"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "patterns.h"

#define RECORD		6	/* pages */
#define TURN		6	/* the reader's touches */
#define LEARNING	200	/* turns before any stranger comes */
#define NOBODY		65534

enum stranger { NONE, MANY_FILES, RANDOM, SCAN, EXEC };

static const char *const strangers[] = {
	"none", "many-files", "random", "scan", "exec", NULL
};

static const char *const stranger_helps[] = {
	"nobody",
	"somebody who maps the others and reads each of them, all within as "
	"many turns as the reader has",
	"somebody who has opened the file as well and touches 32 pages of its "
	"second half at random each time",
	"the same, 64 pages in order",
	"like random, in an executable mapping",
};

/* Touches in a turn of each. */
static const uint64_t efforts[] = {
	[RANDOM] = 32, [SCAN] = 64, [EXEC] = 32,
};

enum reader { SINGLE, RECORDS };

static const char *const readers[] = { "random", "records", NULL };

static struct env {
	const char *directory;
	uint64_t file_pages;	/* as make-files counts them */
	uint64_t others;
	uint64_t other_pages;
	enum reader reader;
	enum stranger stranger;
	uint64_t turns;
	uint64_t seed;
	bool drop_caches;
} env = {
	.file_pages = 131072,
	.others = 10000,
	.other_pages = 16,
	.turns = 500,
	.seed = 1,
};

static struct {
	char path[4096];	/* of the file that is read */
	size_t page_size;
	uint64_t pages;		/* of that file */
	dev_t device;
	uint64_t *plan;
	const volatile char *map;
} work;

/* The stranger waits for a byte before each turn, and sends one after it. */
static int to_stranger[2], from_stranger[2];

static struct probe_option options[] = {
	{ "directory", "PATH",
	  "where make-files made a file for each stranger, and others",
	  .text = &env.directory, .needed = true },
	{ "file_pages", "N", "of 4 KiB, in each of the five",
	  .number = &env.file_pages, .least = 1 },
	{ "others", "N", "how many others there are",
	  .number = &env.others, .least = 1 },
	{ "other_pages", "N", "in each of these",
	  .number = &env.other_pages, .least = 1 },
	{ "reader", "PATTERN",
	  "random (default): single pages; records: of 6 pages",
	  .choice = &env.reader, .names = readers },
	{ "stranger", "WHO", "the other process:", .choice = &env.stranger,
	  .names = strangers, .whats = stranger_helps },
	{ "turns", "N", "of the reader, with 6 touches each",
	  .number = &env.turns, .least = 1 },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--directory PATH [OPTION]...\n"
"Touch pages in the first half of a file, by turns with another process, and\n"
"print as one line of JSON what was read for these touches.\n",
	.options = options,
	.notes =
"Example:\n"
"  make-files . 5 131072; make-files . 10000 16\n"
"  strangers --directory . --stranger scan\n"
"\n"
"Run by root, the stranger is the user 65534. read_bytes and read_requests are\n"
"null where the file's device keeps no statistics.\n",
};

static void touch(const volatile char *map, uint64_t page)
{
	(void)map[page * work.page_size];
}

/* So many others that all have had their turn in the end. */
static void read_others(uint64_t turn)
{
	uint64_t pages = env.other_pages * FILES_PAGE / work.page_size;
	struct stat stat;
	char path[4096];

	for (uint64_t i = pattern_part(env.others, env.turns, turn);
	     i < pattern_part(env.others, env.turns, turn + 1); i++) {
		const volatile char *map;

		files_path(path, sizeof(path), env.directory, env.others,
			   env.other_pages, i);
		map = map_file(path, PROT_READ, &stat);
		for (uint64_t page = 0; page < pages; page++)
			touch(map, page);
	}
}

static noreturn void be_stranger(void)
{
	uint64_t half = work.pages / 2, next = 0, state = ~env.seed;
	const volatile char *map = NULL;
	struct stat stat;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!geteuid() && (setgroups(0, NULL) || setgid(NOBODY) ||
			   setuid(NOBODY)))
		fail_io("The stranger could not become another user");
	for (uint64_t turn = 0; read(to_stranger[0], &byte, 1) == 1; turn++) {
		if (!map)
			map = map_file(work.path, PROT_READ |
				       (env.stranger == EXEC ? PROT_EXEC : 0),
				       &stat);
		if (env.stranger == MANY_FILES)
			read_others(turn);
		for (uint64_t i = 0; i < efforts[env.stranger]; i++)
			touch(map, half + (env.stranger == SCAN ? next++ % half :
					   random_below(&state, half)));
		if (write(from_stranger[1], &byte, 1) != 1)
			fail_io("The stranger was left alone");
	}
	exit(0);
}

static pid_t start_stranger(void)
{
	pid_t child;

	if (pipe2(to_stranger, O_CLOEXEC) || pipe2(from_stranger, O_CLOEXEC))
		fail_io("No pipe");
	child = fork();
	if (child < 0)
		fail_io("No child process");
	if (!child) {
		close(to_stranger[1]);
		be_stranger();
	}
	close(from_stranger[1]);
	return child;
}

static void let_stranger_work(void)
{
	char byte = 0;

	if (write(to_stranger[1], &byte, 1) != 1 ||
	    read(from_stranger[0], &byte, 1) != 1)
		fail(1, "The stranger has gone.");
}

static void prepare(void)
{
	struct pattern pattern = {
		.kind = env.reader == RECORDS ? PATTERN_OBJECTS : PATTERN_RANDOM,
		.object = RECORD,
		.seed = env.seed,
	};
	uint64_t count = (LEARNING + env.turns) * TURN;
	struct stat stat;

	/* One for each: what a stranger does to a file may last. */
	files_path(work.path, sizeof(work.path), env.directory,
		   sizeof(strangers) / sizeof(strangers[0]) - 1, env.file_pages,
		   env.stranger);
	forget_caches(work.path, env.drop_caches);
	work.page_size = sysconf(_SC_PAGESIZE);
	work.map = map_file(work.path, PROT_READ, &stat);
	work.device = stat.st_dev;
	work.pages = stat.st_size / work.page_size;
	if (work.pages / 2 < RECORD)
		fail(1, "%s holds less than two records.", work.path);
	work.plan = calloc(count, sizeof(*work.plan));
	if (!work.plan || !pattern_plan(&pattern, work.pages / 2, work.plan,
					count))
		fail(1, "No memory for %" PRIu64 " touches.", count);
}

static void take_turn(uint64_t turn)
{
	for (int i = 0; i < TURN; i++)
		touch(work.map, work.plan[turn * TURN + i]);
}

/* Pages that only the counted turns touch, each once. */
static uint64_t count_floor(void)
{
	bool *seen = calloc(work.pages, sizeof(*seen));
	uint64_t distinct = 0;

	if (!seen)
		fail(1, "No memory to tell pages apart.");
	for (uint64_t i = 0; i < (LEARNING + env.turns) * TURN; i++) {
		distinct += i >= LEARNING * TURN && !seen[work.plan[i]];
		seen[work.plan[i]] = true;
	}
	free(seen);
	return distinct;
}

struct sums {
	bool has_device;
	uint64_t bytes, requests;
	long major, minor;
	double seconds;
};

static void add(struct sums *sums, const struct counters *before,
		const struct counters *after)
{
	sums->has_device = before->has_device && after->has_device;
	sums->bytes += after->device.bytes - before->device.bytes;
	sums->requests += after->device.requests - before->device.requests;
	sums->major += after->usage.ru_majflt - before->usage.ru_majflt;
	sums->minor += after->usage.ru_minflt - before->usage.ru_minflt;
	sums->seconds += seconds_between(before, after);
}

/* Unlike read_device(), without what is slow to read so often. */
static void read_disk(struct counters *counters)
{
	device_settle(work.device);
	counters->has_device = device_reads(work.device, &counters->device);
}

static void work_by_turns(struct sums *sums)
{
	for (uint64_t turn = 0; turn < LEARNING; turn++)
		take_turn(turn);
	for (uint64_t turn = 0; turn < env.turns; turn++) {
		struct counters before, after;

		if (env.stranger != NONE)
			let_stranger_work();
		read_disk(&before);
		read_process(&before);
		take_turn(LEARNING + turn);
		read_process(&after);
		read_disk(&after);
		add(sums, &before, &after);
	}
}

static void print_result(const struct sums *sums)
{
	printf("{\"probe\": \"strangers\", \"reader\": \"%s\", \"stranger\": \"%s\"",
	       readers[env.reader], strangers[env.stranger]);
	print_count("turns", true, env.turns);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("read_bytes", sums->has_device, sums->bytes);
	print_count("read_requests", sums->has_device, sums->requests);
	print_count("major_faults", true, sums->major);
	print_count("minor_faults", true, sums->minor);
	print_count("floor_bytes", true, count_floor() * work.page_size);
	printf(", \"seconds\": %.9f}\n", sums->seconds);
	flush_result();
}

int main(int argc, char **argv)
{
	struct sums sums = { 0 };
	pid_t stranger = 0;
	int status = 0;

	parse_options(argc, argv, &usage);
	prepare();
	signal(SIGPIPE, SIG_IGN);
	if (env.stranger != NONE)
		stranger = start_stranger();
	work_by_turns(&sums);
	close(to_stranger[1]);
	if (stranger && (waitpid(stranger, &status, 0) < 0 || status))
		fail(1, "The stranger failed.");
	print_result(&sums);
	return 0;
}
