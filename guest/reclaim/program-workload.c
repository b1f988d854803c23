// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a real program in a control group that is too small for all that it uses,
 * with nothing cached, and tell what the kernel read, and read again.
 *
 * A disk holds a whole root directory. The program sees that alone, with a
 * /tmp in memory, which counts as the group's.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sys/personality.h>

#define PROBE "program-workload"
#include "json.h"
#include "options.h"
#include "program.h"
#include "root.h"

#define MIB		(UINT64_C(1) << 20)
#define FIO_BLOCK	4096
#define FIO_STRIDE	(64 << 10)
#define FIO_MORE	2	/* seconds */

static struct workload {
	const char *name;
	const char *what;	/* for --help */
	uint64_t memory;	/* the limit unless another is given */
	char *argv[8];		/* nothing: fio's are worked out */
} workloads[] = {
	/* The compiler's own text is most of it. */
	{ "gcc", "compile four files of the project in /src (32M)",
	  32 * MIB, { "make", "--silent", "--directory=/src",
			     "/tmp/evlist.o", "/tmp/evsel.o",
			     "/tmp/parse-options.o", "/tmp/help.o" } },
	/* Start, load much of the standard library, use a little of each. */
	{ "python-start", "run /src/program.py (40M)",
	  40 * MIB, { "python3", "/src/program.py" } },
	{ "sqlite",
	  "look up records of a database of 96 MiB, mostly of few, and read "
	  "all of them in between (48M)",
	  48 * MIB, { "python3", "/src/databases.py", "use", "sqlite" } },
	{ "lmdb", "the same (48M)",
	  48 * MIB, { "python3", "/src/databases.py", "use", "lmdb" } },
	{ "fio-strided",
	  "fio reads 4 KiB of each 64 KiB of a mapped file, from end to end "
	  "and again (400M)",
	  400 * MIB, { NULL } },
	{ "prepare", "make what the others need, which stays on the disk",
	  0, { "make", "--silent", "--directory=/src",
			  "--file=prepare.mk" } },
	{ 0 }
};

static const char *const hints[] = { "none", "sequential", NULL };

static struct env {
	const char *root;
	struct workload *workload;
	uint64_t memory;	/* 0 is unset */
	const char *file;
	uint64_t seconds;
	unsigned int hint;
} env = {
	.seconds = 60,
};

static struct stat file_stat;	/* of what fio reads */

/*
 * What fio tells of the time that it measured itself, a little longer than we
 * do: its own text, which it needs again when it ends, is not to count.
 */
struct fio_result {
	uint64_t reads;
	uint64_t bytes_per_second;
	double seconds;
};

static struct probe_option options[] = {
	{ "root", "DIRECTORY", "the program's root directory",
	  .text = &env.root, .needed = true },
	{ "workload", "WORKLOAD", "what is run, and in how much memory:",
	  .row = &env.workload, ROWS_OF(workloads), .needed = true },
	{ "memory", "BYTES",
	  "limit the group's memory to this (suffixes K, M, G)",
	  .bytes = &env.memory },
	{ "file", "PATH", "fio: the file", .text = &env.file },
	{ "seconds", "N", "fio: measure so long, after half of it to warm up",
	  .number = &env.seconds, .least = 2 },
	{ "hint", "HINT",
	  "fio: what it tells the kernel of the mapping: none (default), or "
	  "sequential, as it does by itself",
	  .choice = &env.hint, .names = hints },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--root DIRECTORY --workload WORKLOAD [OPTION]...\n"
"Run a program from the file system that is mounted on DIRECTORY in a control\n"
"group of little memory, and print as one line of JSON what that made the kernel\n"
"read. Needs root. All caches are emptied before.\n",
	.options = options,
	.notes =
"Example:\n"
"  program-workload --root /data --workload sqlite --memory 32M\n"
"\n"
"For fio everything but peak_memory_bytes, and young_share, which is of the end,\n"
"is of the time that it measures, and of no time else. young_share is null where\n"
"the kernel does not sort pages by generation.\n",
};

static bool is_fio(void)
{
	return !env.workload->argv[0];
}

static void parse_arguments(int argc, char **argv)
{
	static const char *const of_fio[] = { "file", "seconds", "hint" };

	parse_options(argc, argv, &usage);
	for (size_t i = 0; i < sizeof(of_fio) / sizeof(of_fio[0]); i++)
		if (option_given(&usage, of_fio[i]) && !is_fio())
			fail(2, "--workload %s has no --%s.",
			     env.workload->name, of_fio[i]);
	if (is_fio() && !env.file)
		fail(2, "--workload %s needs --file.", env.workload->name);
	if (!env.memory)
		env.memory = env.workload->memory;
}

static const char *below_root(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", env.root, name);
	return path;
}

/* Let the program see the file that fio reads, and tell about its device. */
static dev_t show_file(void)
{
	char directory[4096];
	const char *slash = strrchr(env.file, '/');

	if (stat(env.file, &file_stat))
		fail_io(env.file);
	if (file_stat.st_size < FIO_STRIDE)
		fail(1, "%s holds less than 64K.", env.file);
	snprintf(directory, sizeof(directory), "%.*s",
		 slash ? (int)(slash - env.file) + 1 : 1,
		 slash ? env.file : ".");
	if (mkdir(below_root("tmp/data"), 0755))
		fail_io(below_root("tmp/data"));
	root_mount(env.root, NULL, directory, "tmp/data", MS_BIND);
	return file_stat.st_dev;
}

/*
 * Its own zones, which are meant for this, are of no use: in version 3.33 the
 * engine for mapped files takes every zone's beginning for the file's. Reading
 * on from 60 KiB behind each block is the same.
 */
static noreturn void run_fio(void)
{
	const char *slash = strrchr(env.file, '/');
	char ramp[40], runtime[40], size[40], file[4096];
	char *argv[] = {
		"fio", "--name=strided", file, size,
		"--ioengine=mmap", "--rw=read:60k", "--bs=4k", "--thread",
		"--time_based", ramp, runtime, "--exec_prerun=:",
		"--output=/tmp/result", "--minimal", "--terse-version=3", NULL
	};

	snprintf(ramp, sizeof(ramp), "--ramp_time=%" PRIu64, env.seconds / 2);
	snprintf(runtime, sizeof(runtime), "--runtime=%" PRIu64,
		 env.seconds + FIO_MORE);
	snprintf(size, sizeof(size), "--size=%" PRIu64,
		 (uint64_t)file_stat.st_size);
	snprintf(file, sizeof(file), "--filename=/tmp/data/%s",
		 slash ? slash + 1 : env.file);
	/* What it tells of the command that it is to run first lands here. */
	if (chdir("/tmp"))
		fail_io("/tmp");
	if (!env.hint)
		setenv("LD_PRELOAD", "/usr/lib/no-hint.so", 1);
	execvp(argv[0], argv);
	fail_io(argv[0]);
}

static pid_t start_program(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail_io("No process");
	if (pid)
		return pid;
	dup2(2, 1);
	/* Addresses decide which neighbours a fault maps along. */
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		fail_io("Addresses could not be fixed");
	root_enter(env.root);
	if (is_fio())
		run_fio();
	execvp(env.workload->argv[0], env.workload->argv);
	fail_io(env.workload->argv[0]);
}

/* From when it is warm, which takes it half as long as is measured. */
static void measure_fio(pid_t pid, dev_t device, struct state *before,
			struct state *after)
{
	wait_seconds(pid, INFINITY, below_root("tmp/strided.prerun.txt"));
	wait_seconds(pid, env.seconds / 2, NULL);
	read_state(before, device);
	wait_seconds(pid, env.seconds, NULL);
	read_state(after, device);
}

/* Version, fio's own, name, group, error, KiB, KiB/s, IOPS, ms, and more. */
static void read_fio_result(struct fio_result *result)
{
	FILE *stream = fopen(below_root("tmp/result"), "re");
	uint64_t kib, speed, ms;
	bool found = false;
	char line[256];

	/* It also says where the output of the command before has gone. */
	while (stream && !found && fgets(line, sizeof(line), stream))
		found = sscanf(line, "3;%*[^;];%*[^;];%*u;0;%" SCNu64
			       ";%" SCNu64 ";%*u;%" SCNu64, &kib, &speed,
			       &ms) == 3;
	if (!found)
		fail(1, "fio printed no result.");
	fclose(stream);
	result->reads = kib * 1024 / FIO_BLOCK;
	result->bytes_per_second = speed * 1024;
	result->seconds = ms / 1e3;
	if (!result->reads)
		fail(1, "fio read nothing.");
}

static void print_fio(const struct state *before, const struct state *after)
{
	double elapsed = seconds_between(&before->counters, &after->counters);
	uint64_t refaults = after->reclaim.count[REFAULTS_FILE] -
			    before->reclaim.count[REFAULTS_FILE];
	struct fio_result result;
	double reads;

	read_fio_result(&result);
	reads = result.reads * elapsed / result.seconds;
	printf(", \"file_bytes\": %" PRIu64 ", \"hint\": \"%s\""
	       ", \"seconds\": %.3f, \"program_reads\": %" PRIu64
	       ", \"bytes_per_second\": %" PRIu64,
	       (uint64_t)file_stat.st_size, hints[env.hint],
	       elapsed, (uint64_t)reads, result.bytes_per_second);
	if (before->reclaim.has[REFAULTS_FILE])
		printf(", \"refaults_per_read\": %.9g", refaults / reads);
	else
		printf(", \"refaults_per_read\": null");
}

static void print_result(const struct state *before, const struct state *after)
{
	printf("{\"probe\": \"program-workload\", \"workload\": \"%s\""
	       ", \"root\": ", env.workload->name);
	json_put_string(stdout, env.root);
	printf(", \"memory_bytes\": %" PRIu64, env.memory);
	print_states(before, after);
	if (is_fio())
		print_fio(before, after);
	else
		printf(", \"seconds\": %.6f", seconds_between(&before->counters, &after->counters));
	printf("}\n");
	flush_result();
}

int main(int argc, char **argv)
{
	struct state before, after;
	dev_t device;
	pid_t pid;

	parse_arguments(argc, argv);
	device = root_prepare(env.root);
	cgroup_make(env.memory);
	root_mount(env.root, "tmpfs", "tmpfs", "tmp", 0);
	if (is_fio())
		device = show_file();
	forget_caches(env.root, true);
	read_state(&before, device);
	if (!before.counters.has_device)
		fail(1, "%s is not on a block device.",
		     is_fio() ? env.file : env.root);
	pid = start_program();
	if (is_fio())
		measure_fio(pid, device, &before, &after);
	else
		wait_seconds(pid, INFINITY, NULL);
	wait_for_end(pid, env.workload->name);
	if (!is_fio())
		read_state(&after, device);
	print_result(&before, &after);
	if (is_fio())
		root_umount(env.root, "tmp/data");
	root_umount(env.root, "tmp");
	cgroup_remove();
	return 0;
}
