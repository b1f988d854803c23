// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes the files below other processes that fault in them, while a module comes and
 * goes: holes, truncation, writing, new files, programs, and a control group that is short
 * of memory.
 *
 *	module-reclaim NAME MODULE DIRECTORY SECONDS
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES		3
#define FILE_BYTES	(16L << 20)
#define READERS		4
#define TOUCHES		200
#define MISSES		50	/* that adapt before the module goes again */
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

/* All of it, with contents on the disk. */
static void fill(int fd)
{
	static char zeros[1 << 20];
	long at;

	for (at = 0; at < FILE_BYTES; at += sizeof(zeros)) {
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
	close(fd);
	if (!sigsetjmp(beyond_end, 1)) {
		for (i = 0; i < TOUCHES; i++)
			map[rand_r(seed) % pages * page];
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

/* Holes, a shorter file, a full one, another one of the same name. */
static void change_once(const char *directory, unsigned int *seed)
{
	int fd = open_file(directory, rand_r(seed) % FILES);
	long at = rand_r(seed) % (FILE_BYTES >> 12) << 12;
	char name[256];

	switch (rand_r(seed) % 8) {
	case 0:
		if (ftruncate(fd, at))
			err(1, "ftruncate");
		break;
	case 1:
		fill(fd);
		break;
	case 2:
		snprintf(name, sizeof(name), "%s/file-%u", directory, rand_r(seed) % FILES);
		unlink(name);
		break;
	case 3:
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		break;
	default:
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 1 << 20))
			err(1, "fallocate");
	}
	close(fd);
	usleep(20000);
}

static pid_t start(void (*once)(const char *, unsigned int *), const char *directory,
		   unsigned int seed)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_text(GROUP "/cgroup.procs", "0");
	/* Loading takes the work of a second: half of all CPUs is for that. */
	if (nice(10) < 0)
		err(1, "nice");
	signal(SIGBUS, on_bus_error);
	for (;;)
		once(directory, &seed);
}

/* What the module has counted since it was loaded. */
static long misses(const char *name)
{
	char path[256];
	long number;
	FILE *stream;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/statistics", name);
	stream = fopen(path, "re");
	if (!stream || fscanf(stream, "misses %ld", &number) != 1)
		err(1, "%s", path);
	fclose(stream);
	return number;
}

static void reload(const char *name, const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);

	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		err(1, "unloading %s", name);
	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		err(1, "%s", module);
	close(fd);
}

int main(int argc, char **argv)
{
	pid_t children[READERS + 1];
	unsigned int i, rounds;
	long adapted = 0;
	time_t end;
	int status;

	if (argc != 5)
		errx(2, "usage: module-reclaim NAME MODULE DIRECTORY SECONDS");
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0700))
		err(1, GROUP);
	write_text(GROUP "/memory.max", "24M");
	for (i = 0; i < FILES; i++) {
		int fd = open_file(argv[3], i);

		fill(fd);
		close(fd);
	}
	for (i = 0; i <= READERS; i++)
		children[i] = start(i < READERS ? read_once : change_once, argv[3], i + 1);
	end = time(NULL) + atoi(argv[4]);
	for (rounds = 0; time(NULL) < end; rounds++) {
		while (misses(argv[1]) < MISSES && time(NULL) < end)
			usleep(10000);
		/* Also what the module knows of files. */
		write_text("/proc/sys/vm/drop_caches", rounds % 2 ? "3" : "2");
		adapted += misses(argv[1]);
		reload(argv[1], argv[2]);
	}
	for (i = 0; i <= READERS; i++) {
		if (waitpid(children[i], &status, WNOHANG))
			errx(1, "a process has ended: %#x", status);
		kill(children[i], SIGKILL);
		waitpid(children[i], &status, 0);
	}
	printf("rounds: %u misses: %ld\n", rounds, adapted);
	return 0;
}
