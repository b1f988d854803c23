// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a program of the user's in a guest, after dropped caches, and count what
 * it made the kernel do. The program has this one's input and output; the
 * counts go to a file of their own, as one JSON object.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define PROBE	"measure"
#include "options.h"
#include "settings.h"
#include "snapshot.h"

#define CHUNK		(1 << 20)

static struct env {
	const char *counters;
	const char *root;	/* "" is the guest's own */
	const char *input;	/* a device, or NULL */
	uint64_t input_bytes;
	struct disk_names disks;
	char **command;
} env = {
	.root = "",
};

static void add_disk(const char *option, const char *name)
{
	if (env.disks.count == MAX_DISKS)
		fail(2, "--%s can be given %d times.", option, MAX_DISKS);
	env.disks.names[env.disks.count++] = name;
}

static struct probe_option options[] = {
	{ "counters", "FILE", "where to write", .text = &env.counters,
	  .needed = true },
	{ "disk", "NAME",
	  "count the requests of this disk (vda); can be repeated",
	  .call = add_disk },
	{ "root", "DIRECTORY", "run it with this as its root directory",
	  .text = &env.root },
	{ "input", "DEVICE", "what it is to read from its standard input",
	  .text = &env.input },
	{ "input-bytes", "N", "how much of DEVICE that is",
	  .number = &env.input_bytes },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--counters FILE [OPTION]... PROGRAM [ARGUMENT]...\n"
"Run PROGRAM after dropped caches, and write what the kernel counted meanwhile\n"
"to FILE. Its status is that of PROGRAM. Needs root, and a guest of its own.\n",
	.options = options,
	.command = true,
};

static void parse_arguments(int argc, char **argv)
{
	env.command = argv + parse_options(argc, argv, &usage);
	if (!*env.command)
		fail(2, "PROGRAM is missing; see --help.");
}

static void in_root(char *path, size_t size, const char *directory)
{
	snprintf(path, size, "%s%s", env.root, directory);
	if (mkdir(path, 0755) && errno != EEXIST)
		fail_io(path);
}

static void mount_in_root(const char *source, const char *directory,
			  const char *type, unsigned long flags,
			  const char *data)
{
	char path[4096];

	in_root(path, sizeof(path), directory);
	if (mount(source, path, type, flags, data))
		fail_io(path);
}

/* Package scripts would have made this; programs look their user up there. */
static void name_root_user(void)
{
	static const char user[] = "root:x:0:0:root:/:/bin/sh\n";
	char path[4096];
	int fd;

	in_root(path, sizeof(path), "/etc");
	snprintf(path, sizeof(path), "%s/etc/passwd", env.root);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST)
		return;
	if (fd < 0 || write(fd, user, sizeof(user) - 1) < 0)
		fail_io(path);
	close(fd);
}

/* What programs expect to find. What one leaves in memory, none inherits. */
static void prepare_root(void)
{
	static const char *const shared[] = {
		"/dev", "/proc", "/sys", "/data", "/files"
	};

	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		fail_io("Only root can do this: mounts of our own");
	if (*env.root) {
		for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
			if (!access(shared[i], F_OK))
				mount_in_root(shared[i], shared[i], NULL,
					      MS_BIND | MS_REC, NULL);
		name_root_user();
	}
	mount_in_root("tmpfs", "/tmp", "tmpfs", 0, "mode=1777");
	mount_in_root("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
}

static noreturn void run_program(char **argv, int input)
{
	if (input >= 0 && dup2(input, 0) < 0)
		fail_io("The standard input");
	if (*env.root && (chroot(env.root) || chdir("/")))
		fail_io(env.root);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: cannot be run: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126); /* as a shell has it */
}

/* Write the input to a pipe, past the page cache: memory is the program's. */
static noreturn void feed(int pipe)
{
	int fd = open(env.input, O_RDONLY | O_DIRECT | O_CLOEXEC);
	uint64_t left = env.input_bytes;
	char *chunk = aligned_alloc(4096, CHUNK);

	if (fd < 0 || !chunk)
		fail_io(env.input);
	while (left) {
		ssize_t size = read(fd, chunk, CHUNK);
		ssize_t sent = 0;

		if (size <= 0)
			fail_io(env.input);
		if ((uint64_t)size > left)
			size = left;
		while (sent < size) {
			ssize_t n = write(pipe, chunk + sent, size - sent);

			if (n < 0)
				_exit(1);
			sent += n;
		}
		left -= size;
	}
	_exit(0);
}

/* Run the program to its end; returns its status, as wait() has it. */
static int attend(char **argv)
{
	int ends[2] = { -1, -1 };
	pid_t program, feeder = -1;
	int status;

	if (env.input && pipe2(ends, O_CLOEXEC))
		fail_io("A pipe");
	program = fork();
	if (!program)
		run_program(argv, ends[0]);
	if (env.input) {
		close(ends[0]);
		feeder = fork();
		if (!feeder)
			feed(ends[1]);
		close(ends[1]);
	}
	if (program < 0 || (env.input && feeder < 0))
		fail_io("A process could not be started");
	while (waitpid(program, &status, 0) < 0)
		if (errno != EINTR)
			fail_io("wait");
	if (feeder > 0)
		kill(feeder, SIGKILL);
	return status;
}

static noreturn void end_as(int status)
{
	static const struct rlimit none;

	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	/* The program has left what there is to leave. */
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	_exit(1);
}

int main(int argc, char **argv)
{
	static struct snapshot before, after;
	struct timespec start, end;
	double seconds;
	FILE *out;
	int status;

	parse_arguments(argc, argv);
	out = fopen(env.counters, "we");
	if (!out)
		fail_io(env.counters);
	prepare_root();
	drop_caches();
	read_snapshot(&before, &env.disks);
	clock_gettime(CLOCK_MONOTONIC, &start);
	status = attend(env.command);
	clock_gettime(CLOCK_MONOTONIC, &end);
	/* What it wrote is its own, also if it did not wait for the disk. */
	sync();
	read_snapshot(&after, &env.disks);
	seconds = end.tv_sec - start.tv_sec +
		  (end.tv_nsec - start.tv_nsec) * 1e-9;
	print_snapshots(out, seconds, &env.disks, &before, &after);
	if (fclose(out))
		fail_io(env.counters);
	end_as(status);
}
