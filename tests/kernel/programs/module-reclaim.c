// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes the files below other processes that fault in them, while a module comes and
 * goes: holes, truncation, writing, new files, programs, and a control group that is short
 * of memory. Processes pause between faults, for unloading waits for all who run.
 *
 *	module-reclaim NAME MODULE DIRECTORY LOADS
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module-misses.h"

#define FILES		3
#define FILE_BYTES	(64L << 20)
#define READERS		4
#define TOUCHES		20
#define MISSES		10	/* that adapt before the module goes again */
#define ROUGH_ROUNDS	32	/* one in so many has long waits and long reads */
#define PROGRESS	100	/* loads from one report to the next */
#define GROUP		"/sys/fs/cgroup/small"

static sigjmp_buf beyond_end;

static void on_bus_error(int signal)
{
	siglongjmp(beyond_end, signal);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

static int open_file(const char *directory, unsigned int number)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/file-%u", directory, number);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

/* Without contents where it was shorter. */
static void lengthen(int fd)
{
	if (ftruncate(fd, FILE_BYTES))
		err(1, "ftruncate");
}

/* An eighth of it, with contents on the disk. */
static void fill(int fd)
{
	static char zeros[1 << 20];
	long at;

	for (at = 0; at < FILE_BYTES; at += 8 * sizeof(zeros)) {
		if (pwrite(fd, zeros, sizeof(zeros), at) < 0)
			err(1, "write");
	}
	fsync(fd);
}

/* Open, map, touch pages at random and a run of them, and close. */
static void read_once(const char *directory, unsigned int *seed)
{
	int fd = open_file(directory, rand_r(seed) % FILES);
	int protection = PROT_READ | (rand_r(seed) % 8 ? 0 : PROT_EXEC);
	long page = sysconf(_SC_PAGESIZE), pages = FILE_BYTES / page, at, i;
	volatile char *map = mmap(NULL, FILE_BYTES, protection, MAP_SHARED, fd, 0);
	char buffer[96 << 10];

	if (map == MAP_FAILED)
		err(1, "mmap");
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	if (!sigsetjmp(beyond_end, 1)) {
		for (i = 0; i < TOUCHES; i++) {
			map[rand_r(seed) % pages * page];
			usleep(10000);
		}
		at = rand_r(seed) % (pages - TOUCHES);
		for (i = 0; i < TOUCHES; i++)
			map[(at + i) * page];
	}
	munmap((void *)map, FILE_BYTES);
	fd = open_file(directory, rand_r(seed) % FILES);
	if (pread(fd, buffer, sizeof(buffer), rand_r(seed) % pages * page) < 0)
		err(1, "read");
	close(fd);
}

/* Holes, a shorter file for some milliseconds, contents, another file of the same name. */
static void change_once(const char *directory, unsigned int *seed)
{
	unsigned int number = rand_r(seed) % FILES;
	int fd = open_file(directory, number);
	long at = rand_r(seed) % (FILE_BYTES >> 12) << 12;
	char name[256];

	switch (rand_r(seed) % 8) {
	case 0:
		if (ftruncate(fd, at))
			err(1, "ftruncate");
		usleep(5000);
		lengthen(fd);
		break;
	case 1:
		fill(fd);
		break;
	case 2:
		snprintf(name, sizeof(name), "%s/file-%u", directory, number);
		unlink(name);
		close(fd);
		fd = open_file(directory, number);
		lengthen(fd);
		break;
	case 3:
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		break;
	default:
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 1 << 20))
			err(1, "fallocate");
	}
	close(fd);
	usleep(200000);
}

/* A reader, or, as the last of all, who changes files. */
static pid_t start(unsigned int number, const char *directory)
{
	unsigned int seed = number + 1;
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_text(GROUP "/cgroup.procs", "0");
	/* Who loads the module goes first. */
	if (nice(10) < 0)
		err(1, "nice");
	signal(SIGBUS, on_bus_error);
	for (;;)
		(number < READERS ? read_once : change_once)(directory, &seed);
}

/* Faults of all processes that had to read, so far. */
static long major_faults(void)
{
	FILE *stream = fopen("/proc/vmstat", "re");
	char name[64];
	long number;

	if (!stream)
		err(1, "/proc/vmstat");
	while (fscanf(stream, "%63s %ld", name, &number) == 2 && strcmp(name, "pgmajfault"))
		;
	fclose(stream);
	return number;
}

/* Whether there were faults meanwhile. */
static bool unload(const char *name)
{
	long before = major_faults();

	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		err(1, "unloading %s", name);
	return major_faults() > before;
}

static bool load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);
	long before = major_faults();

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		err(1, "%s", module);
	close(fd);
	return major_faults() > before;
}

/* Grace periods and windows as they are by default, or shorter, which lets rounds pass sooner. */
static void set_pace(bool rough)
{
	write_text("/sys/kernel/rcu_expedited", rough ? "0" : "1");
	write_text("/sys/block/vda/queue/read_ahead_kb", rough ? "4096" : "128");
}

/* The control group may have no memory left for one. Returns how many that were. */
static unsigned int restart_killed(pid_t *children, const char *directory)
{
	unsigned int i, killed = 0;
	int status;

	for (i = 0; i <= READERS; i++) {
		if (!waitpid(children[i], &status, WNOHANG))
			continue;
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			errx(1, "a process has ended: %#x", status);
		children[i] = start(i, directory);
		killed++;
	}
	return killed;
}

int main(int argc, char **argv)
{
	unsigned int i, rounds, loads, unloads_met = 0, loads_met = 0, killed = 0;
	pid_t children[READERS + 1];
	long adapted = 0;

	if (argc != 5)
		errx(2, "usage: module-reclaim NAME MODULE DIRECTORY LOADS");
	loads = atoi(argv[4]);
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0700))
		err(1, GROUP);
	write_text(GROUP "/memory.max", "24M");
	for (i = 0; i < FILES; i++) {
		int fd = open_file(argv[3], i);

		lengthen(fd);
		fill(fd);
		close(fd);
	}
	for (i = 0; i <= READERS; i++)
		children[i] = start(i, argv[3]);
	for (rounds = 1; rounds <= loads; rounds++) {
		set_pace(rounds % ROUGH_ROUNDS == 1);
		do {
			killed += restart_killed(children, argv[3]);
			usleep(1000);
		} while (misses(argv[1]) < MISSES);
		/* Also what the module knows of files. */
		write_text("/proc/sys/vm/drop_caches", rounds % 2 ? "3" : "2");
		adapted += misses(argv[1]);
		unloads_met += unload(argv[1]);
		loads_met += load(argv[2]);
		if (rounds % PROGRESS && rounds != loads)
			continue;
		printf("loads %u misses %ld loads_in_faults %u unloads_in_faults %u killed %u\n",
		       rounds, adapted, loads_met, unloads_met, killed);
		fflush(stdout);
	}
	for (i = 0; i <= READERS; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}
