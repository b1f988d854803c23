// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has tasks share a slot of the module, which was built with one only. Another task reads
 * what looks like a miss, which is none; then misses lose the slot between fault and read.
 *
 *	module-slots NAME FILE WINDOW_KB SECONDS
 *
 * prints what the module has counted as lost after either; the second ends when it counts.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOUCHES	100

static long lost(const char *name)
{
	char path[256], event[32];
	long number;
	FILE *stream;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/statistics", name);
	stream = fopen(path, "re");
	if (!stream)
		err(1, "%s", path);
	while (fscanf(stream, "%31s %ld", event, &number) == 2) {
		if (!strcmp(event, "lost")) {
			fclose(stream);
			return number;
		}
	}
	errx(1, "%s counts none that are lost", path);
}

static int open_file(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", file);
	return fd;
}

/* Writing to a page of one's own asks for the file's each time, and none is mapped along. */
static void take_slot(const char *file)
{
	int fd = open_file(file);
	char *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED)
		err(1, "mmap");
	*page = 1;
	munmap(page, 1);
	close(fd);
}

static pid_t start(void)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

/* Three quarters of a window from the start: the rest is read ahead, as around a miss. */
static void read_beside(const char *file, size_t bytes)
{
	int fd = open_file(file), pipes[2], status;
	char *buffer = malloc(bytes), go;
	pid_t child;

	if (!buffer || pipe(pipes))
		err(1, "a reader");
	/* So that the child needs no pages of its own. */
	memset(buffer, 1, bytes);
	child = start();
	if (!child) {
		close(pipes[1]);
		memset(buffer, 0, bytes);
		if (read(pipes[0], &go, 1) != 1 || pread(fd, buffer, bytes, 0) != (ssize_t)bytes)
			err(1, "read");
		_exit(0);
	}
	usleep(200000);
	take_slot(file);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (write(pipes[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status)
		errx(1, "the reader has failed");
	free(buffer);
}

/* Whatever else runs is interrupted, in the kernel as well. */
static void start_interrupting(const char *file)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (start())
		return;
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		err(1, "sched_setscheduler");
	for (;;) {
		take_slot(file);
		usleep(300);
	}
}

static void touch(const char *file, unsigned int *seed)
{
	long page = sysconf(_SC_PAGESIZE), i;
	int fd = open_file(file);
	struct stat stat;
	volatile char *map;

	if (fstat(fd, &stat))
		err(1, "%s", file);
	map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err(1, "mmap");
	/* The first page is the other's. */
	for (i = 0; i < TOUCHES; i++) {
		if (map[(1 + rand_r(seed) % (stat.st_size / page - 1)) * page])
			errx(1, "a page holds what the file does not");
	}
	munmap((void *)map, stat.st_size);
	posix_fadvise(fd, page, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned int seed = 1;
	cpu_set_t one;
	time_t end;

	if (argc != 5)
		errx(2, "usage: module-slots NAME FILE WINDOW_KB SECONDS");
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		err(1, "sched_setaffinity");
	read_beside(argv[2], atol(argv[3]) * 1024 / 4 * 3);
	printf("%ld ", lost(argv[1]));
	start_interrupting(argv[2]);
	end = time(NULL) + atoi(argv[4]);
	while (!lost(argv[1]) && time(NULL) < end)
		touch(argv[2], &seed);
	printf("%ld\n", lost(argv[1]));
	return 0;
}
