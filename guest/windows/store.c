// SPDX-License-Identifier: GPL-2.0-only
/*
 * Have a storage engine work on its database in a control group that is too
 * small for all of it, with nothing cached, and tell what the kernel read.
 *
 * Workloads are made here, as operations, one a line: see guest/stores/driver.h.
 * A driver for each engine executes them. It runs from memory, or in a root
 * directory on a disk of its own, so that only its data comes from the disk that
 * is counted.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <math.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#define PROBE "store"
#include "json.h"
#include "options.h"
#include "patterns.h"
#include "program.h"
#include "root.h"

#define MIB		(UINT64_C(1) << 20)
#define LOOKUPS		1000
#define LOADED		8	/* load so many records in all, divided by this */
#define USED		16	/* replace so many records in all, likewise */
#define BATCH		1000	/* puts in a transaction */
#define SPREAD		60013	/* a prime: neighbours in rank are not so in key */
#define DRIVER		"tmp/driver"
#define PATH_ROOM	4096
#define COPY_BYTES	(1 << 20)
#define SYS_CACHESTAT	451	/* of all architectures; no header has it yet */
#define REQUEST_BYTES	(128 << 10)	/* that a request costs as much as */

/*
 * What an engine needs besides the pages of its database comes on top of the
 * share of memory that the database gets.
 */
static const struct store {
	const char *name;
	uint64_t own_memory;
	bool in_root;
	const char *driver;	/* below bin of the store's disk */
	const char *unhinted;	/* another one that is to be used without a hint */
	const char *program;	/* the driver, if it is in the root directory */
} stores[] = {
	{ "lmdb", 4 * MIB, .driver = "lmdb" },
	{ "mdbx", 6 * MIB, .driver = "mdbx" },
	{ "bbolt", 24 * MIB, .driver = "bbolt", .unhinted = "bbolt-no-hint" },
	{ "sqlite", 6 * MIB, .driver = "sqlite" },
	{ "git", 16 * MIB, .in_root = true, .driver = "git" },
	{ "lucene", 80 * MIB, .in_root = true, .program = "/src/lucene" },
	{ 0 }
};

static const char *const hints[] = { "none", "own", NULL };

struct workload;

static struct env {
	const struct store *store;
	const struct workload *workload;
	const char *data, *root;
	uint64_t records;	/* 0 until it is known */
	uint64_t times, seed;
	uint64_t read_ahead_kib;
	unsigned int hint;
} env = {
	.data = "/data",
	.root = "/programs",
	.times = 2,
	.seed = 1,
};

/* The store's directory as we see it, and as its driver does. */
static char here[PATH_ROOM / 2], there[PATH_ROOM / 2];
static FILE *ops;
static uint64_t state_of_random;

static void op(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void op(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vfprintf(ops, format, values);
	va_end(values);
	fputc('\n', ops);
}

static uint64_t any_record(void)
{
	return random_below(&state_of_random, env.records);
}

static void put_all(uint64_t records, bool scattered, uint64_t version)
{
	for (uint64_t i = 0; i < records; i++) {
		uint64_t key = scattered ? i * SPREAD % records : i;

		op("put %" PRIu64 " %" PRIu64, key, version);
		if (i % BATCH == BATCH - 1 || i == records - 1)
			op("commit");
	}
}

/*
 * A load in order, and then some use: engines that write changed pages elsewhere
 * leave the leaves of a tree in short runs.
 */
static void do_build(void)
{
	op("create");
	put_all(env.records, false, 0);
	for (uint64_t i = 0; i < env.records / USED; i++) {
		op("put %" PRIu64 " 1", i * SPREAD % env.records);
		if (i % BATCH == BATCH - 1 || i == env.records / USED - 1)
			op("commit");
	}
}

static void do_uniform(void)
{
	op("open ro");
	for (int i = 0; i < LOOKUPS; i++)
		op("get %" PRIu64, any_record());
}

static void do_zipf(void)
{
	const struct pattern zipf = { PATTERN_ZIPF, .seed = env.seed };
	static uint64_t keys[2 * LOOKUPS];

	op("open ro");
	pattern_plan(&zipf, env.records, keys, 2 * LOOKUPS);
	for (int i = 0; i < 2 * LOOKUPS; i++)
		op("get %" PRIu64, keys[i]);
}

static void do_near(void)
{
	uint64_t key = any_record();

	op("open ro");
	for (int i = 0; i < 2 * LOOKUPS; i++) {
		op("get %" PRIu64, key);
		key = (key + 1 + random_below(&state_of_random, 30)) %
		      env.records;
	}
}

static void do_ranges(void)
{
	op("open ro");
	for (int i = 0; i < LOOKUPS / 20; i++) {
		op("seek %" PRIu64,
		   random_below(&state_of_random, env.records - 100));
		op("next 99");
	}
}

static void do_forward(void)
{
	op("open ro");
	op("first");
	op("next %" PRIu64, env.records - 1);
}

static void do_backward(void)
{
	op("open ro");
	op("last");
	op("prev %" PRIu64, env.records - 1);
}

static void do_mixed(void)
{
	uint64_t step = (env.records - 1) / LOOKUPS;

	op("open ro");
	op("first");
	for (int i = 0; i < LOOKUPS; i++) {
		op("next %" PRIu64, step);
		op("get %" PRIu64, any_record());
	}
}

static void do_load_sorted(void)
{
	op("create");
	put_all(env.records / LOADED, false, 0);
}

static void do_load_random(void)
{
	op("create");
	put_all(env.records / LOADED, true, 0);
}

static void do_update(void)
{
	op("open rw");
	for (int i = 1; i <= LOOKUPS; i++) {
		op("put %" PRIu64 " 1", any_record());
		if (i % (BATCH / 4) == 0)
			op("commit");
	}
}

static void do_compact(void)
{
	op("open ro");
	op("compact %s/made", there);
}

static void do_copy(void)
{
	op("open ro");
	op("copy %s/made", there);
}

static void do_check(void)
{
	op("open ro");
	op("check");
}

static void do_open(void)
{
	op("open ro");
	for (int i = 0; i < 10; i++)
		op("get %" PRIu64, any_record());
}

static void do_index(void)
{
	op("open rw");
	op("index");
}

/* What is worked on: the database, a copy of it, or a new one. */
enum where { DATABASE, COPY, NEW };

static const struct workload {
	const char *name;
	const char *what;	/* it does, for --help */
	void (*operations)(void);
	enum where where;
} workloads[] = {
	{ "uniform", "look up 1,000 records, each as likely",
	  do_uniform, DATABASE },
	{ "zipf", "look up 2,000, a few of them often", do_zipf, DATABASE },
	{ "near", "look up 2,000, each 1 to 30 keys behind the one before",
	  do_near, DATABASE },
	{ "ranges", "50 times, read 100 records in order",
	  do_ranges, DATABASE },
	{ "forward", "read all records in order", do_forward, DATABASE },
	{ "backward", "read all records in the opposite order",
	  do_backward, DATABASE },
	{ "mixed", "read all records in order, with 1,000 looked up meanwhile",
	  do_mixed, DATABASE },
	{ "load-sorted", "write an eighth of the records into a new database",
	  do_load_sorted, NEW },
	{ "load-random", "the same in scattered order", do_load_random, NEW },
	{ "update", "replace 1,000 records of a copy", do_update, COPY },
	{ "compact", "have the engine write a compact copy",
	  do_compact, DATABASE },
	{ "copy", "have the engine write a copy", do_copy, DATABASE },
	{ "check", "have the engine check the database", do_check, DATABASE },
	{ "open", "open it and look up 10 records", do_open, DATABASE },
	{ "index", "make a second index, in a copy", do_index, COPY },
	{ "build", "make the database, which stays on the disk",
	  do_build, DATABASE },
	{ 0 }
};

static struct probe_option options[] = {
	{ "store", "STORE", "lmdb, mdbx, bbolt, sqlite, lucene or git",
	  .row = &env.store, NAMES_OF(stores), .needed = true },
	{ "workload", "WORKLOAD", "what it does:", .row = &env.workload,
	  ROWS_OF(workloads), .needed = true },
	{ "hint", "HINT",
	  "none (default), or own: the engine's own switch against readahead",
	  .choice = &env.hint, .names = hints },
	{ "times", "N",
	  "the database is so many times as large as the memory that it gets",
	  .number = &env.times, .least = 1 },
	{ "read_ahead_kb", "N", "of the disk that the database is on",
	  .number = &env.read_ahead_kib },
	{ "seed", "N", "of random choices", .number = &env.seed },
	{ "records", "N", "for build", .number = &env.records, .least = 1 },
	{ "data", "DIRECTORY",
	  "a directory with the store's disk below it, by its name",
	  .text = &env.data },
	{ "root", "DIRECTORY", "the root directory of engines that need one",
	  .text = &env.root },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--store STORE --workload WORKLOAD [OPTION]...\n"
"Have a storage engine work in a control group of little memory, and print as one\n"
"line of JSON what that made the kernel read. Needs root, and the disks that the\n"
"lab makes. All caches are emptied before.\n",
	.options = options,
	.notes =
"Example:\n"
"  store --store lmdb --workload uniform --read_ahead_kb 4096\n",
};

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	if (env.records && env.workload->operations != do_build)
		fail(2, "--records is for --workload build.");
	state_of_random = env.seed;
	snprintf(here, sizeof(here), "%s/%s", env.data, env.store->name);
	snprintf(there, sizeof(there), "%s",
		 env.store->in_root ? "/tmp/data" : here);
}

static const char *in_store(const char *name)
{
	static char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", here, name);
	return path;
}

static const char *in_root(const char *name)
{
	static char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", env.root, name);
	return path;
}

/* How many records a database has stands beside it. */
static void know_records(void)
{
	FILE *stream = fopen(in_store("records"),
			     env.workload->operations == do_build ? "we" : "re");

	if (!stream)
		fail_io(in_store("records"));
	if (env.workload->operations == do_build)
		fprintf(stream, "%" PRIu64 "\n", env.records);
	else if (fscanf(stream, "%" SCNu64, &env.records) != 1)
		fail(1, "%s holds no number.", in_store("records"));
	if (fclose(stream))
		fail_io(in_store("records"));
	if (env.records < 2 * LOOKUPS)
		fail(1, "A database of %" PRIu64 " records is too small.",
		     env.records);
}

static void copy_file(const char *from, const char *to, mode_t mode)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
	static char data[COPY_BYTES];
	ssize_t n;

	if (in < 0)
		fail_io(from);
	if (out < 0)
		fail_io(to);
	while ((n = read(in, data, sizeof(data))) > 0)
		if (write(out, data, n) != n)
			fail_io(to);
	if (n < 0)
		fail_io(from);
	close(in);
	if (close(out))
		fail_io(to);
}

static uint64_t bytes_below;

static int add_bytes(const char *path, const struct stat *file, int kind,
		     struct FTW *place)
{
	(void)path;
	(void)place;
	if (kind == FTW_F)
		bytes_below += file->st_size;
	return 0;
}

static uint64_t cached_below;

static int add_cached(const char *path, const struct stat *file, int kind,
		      struct FTW *place)
{
	/* struct cachestat_range, and struct cachestat, whose first is nr_cache */
	uint64_t range[2] = { 0, file->st_size }, counts[5];
	int fd;

	(void)place;
	if (kind != FTW_F)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_CACHESTAT, fd, range, counts, 0))
		fail_io(path);
	close(fd);
	cached_below += counts[0] * sysconf(_SC_PAGESIZE);
	return 0;
}

/* What of the files below a directory of the store is in memory, in bytes. */
static uint64_t cached_of(const char *name)
{
	cached_below = 0;
	if (nftw(in_store(name), add_cached, 16, FTW_PHYS))
		fail_io(in_store(name));
	return cached_below;
}

/* All files below a directory of the store, in bytes. */
static uint64_t size_of(const char *name)
{
	bytes_below = 0;
	if (nftw(in_store(name), add_bytes, 16, FTW_PHYS))
		fail_io(in_store(name));
	return bytes_below;
}

static int copy_one(const char *path, const struct stat *file, int kind,
		    struct FTW *place)
{
	char from[PATH_ROOM], to[PATH_ROOM];

	(void)place;
	snprintf(from, sizeof(from), "%s", path);
	snprintf(to, sizeof(to), "%s/work%s", here,
		 path + strlen(here) + strlen("/data"));
	if (kind == FTW_D && mkdir(to, 0755))
		fail_io(to);
	if (kind == FTW_F)
		copy_file(from, to, file->st_mode & 0777);
	return 0;
}

static int remove_one(const char *path, const struct stat *file, int kind,
		      struct FTW *place)
{
	(void)file;
	(void)kind;
	(void)place;
	if (remove(path))
		fail_io(path);
	return 0;
}

static void remove_below(const char *name)
{
	if (!access(in_store(name), F_OK))
		nftw(in_store(name), remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

/* The directory that the driver works on, by its name in the store's. */
static const char *lay_out(void)
{
	switch (env.workload->where) {
	case NEW:
		if (mkdir(in_store("work"), 0755))
			fail_io(in_store("work"));
		return "work";
	case COPY:
		if (nftw(in_store("data"), copy_one, 16, FTW_PHYS))
			fail_io(in_store("data"));
		return "work";
	default:
		return "data";
	}
}

/* What workloads leave would fill the disk in the end. */
static void clear(void)
{
	remove_below("work");
	remove_below("made");
}

/* An engine's code is to come from memory, or from the disk of the root. */
static void bring_driver(void)
{
	const struct store *store = env.store;
	char from[PATH_ROOM], to[PATH_ROOM];

	if (!store->driver)
		return;
	snprintf(from, sizeof(from), "%s/bin/%s", here,
		 store->unhinted && !env.hint ? store->unhinted : store->driver);
	snprintf(to, sizeof(to), "%s/%s", store->in_root ? env.root : "", DRIVER);
	unlink(to);
	copy_file(from, to, 0755);
}

static pid_t start_driver(const char *directory)
{
	const char *program = env.store->program ?: "/" DRIVER;
	char data[PATH_ROOM];
	pid_t pid = fork();

	if (pid < 0)
		fail_io("No process");
	if (pid)
		return pid;
	rewind(ops);
	dup2(fileno(ops), 0);
	dup2(2, 1);
	/* Addresses decide which neighbours a fault maps along. */
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		fail_io("Addresses could not be fixed");
	if (env.store->in_root)
		root_enter(env.root);
	else
		cgroup_enter();
	snprintf(data, sizeof(data), "%s/%s", there, directory);
	execl(program, program, data, hints[env.hint], NULL);
	fail_io(program);
}

static dev_t device_of_store(void)
{
	struct stat status;

	if (stat(here, &status))
		fail_io(here);
	return status.st_dev;
}

static void print_result(uint64_t data_bytes, uint64_t cached, uint64_t limit,
			 const struct state *before, const struct state *after)
{
	const struct device_reads *from = &before->counters.device;
	const struct device_reads *to = &after->counters.device;

	printf("{\"probe\": \"" PROBE "\", \"store\": \"%s\""
	       ", \"workload\": \"%s\", \"hint\": \"%s\""
	       ", \"data_bytes\": %" PRIu64 ", \"memory_bytes\": %" PRIu64,
	       env.store->name, env.workload->name, hints[env.hint], data_bytes,
	       limit);
	print_states(before, after);
	printf(", \"cached_bytes\": %" PRIu64 ", \"price_bytes\": %" PRIu64
	       ", \"seconds\": %.6f}\n", cached,
	       to->bytes - from->bytes +
	       (to->requests - from->requests) * REQUEST_BYTES,
	       seconds_between(&before->counters, &after->counters));
	flush_result();
}

int main(int argc, char **argv)
{
	uint64_t data_bytes, limit;
	struct state before, after;
	const char *directory;
	dev_t device;
	pid_t pid;

	parse_arguments(argc, argv);
	device = device_of_store();
	know_records();
	if (env.store->in_root) {
		root_prepare(env.root);
		root_mount(env.root, "tmpfs", "tmpfs", "tmp", 0);
		if (mkdir(in_root("tmp/data"), 0755))
			fail_io(in_root("tmp/data"));
		root_mount(env.root, NULL, here, "tmp/data", MS_BIND);
	}
	clear();
	data_bytes = size_of("data");
	directory = lay_out();
	bring_driver();
	ops = tmpfile();
	if (!ops)
		fail_io("No temporary file");
	env.workload->operations();
	if (fflush(ops))
		fail_io("No room for the operations");

	limit = data_bytes / env.times + env.store->own_memory;
	cgroup_make(env.workload->operations == do_build ? 0 : limit);
	if (option_given(&usage, "read_ahead_kb"))
		set_read_ahead(device, env.read_ahead_kib);
	forget_caches(here, true);
	read_state(&before, device);
	if (!before.counters.has_device)
		fail(1, "%s is not on a block device.", here);
	pid = start_driver(directory);
	wait_seconds(pid, INFINITY, NULL);
	wait_for_end(pid, env.store->name);
	read_state(&after, device);

	print_result(data_bytes, cached_of(directory), limit, &before, &after);
	clear();
	if (env.store->in_root) {
		root_umount(env.root, "tmp/data");
		root_umount(env.root, "tmp");
	}
	cgroup_remove();
	return 0;
}
