// SPDX-License-Identifier: GPL-2.0-only
/*
 * Touches pages of a file in two mappings: of an open file that is mapped executable as
 * well, as loaders map programs, and of one that is not.
 *
 *	module-text NAME FILE
 *
 * prints how many misses adapted in the first, and in the second.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "module-misses.h"

#define TOUCHES		16
#define STEP_BYTES	(16L << 20)	/* more than a window */

static void *mapped(int fd, size_t size, int protection)
{
	void *map = mmap(NULL, size, protection, MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}

static long adapted(const char *name, const char *file, bool text)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), i;
	long page = sysconf(_SC_PAGESIZE), before = misses(name);
	volatile char *map;
	void *code = NULL;

	if (fd < 0)
		err(1, "%s", file);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	map = mapped(fd, TOUCHES * STEP_BYTES, PROT_READ);
	if (text)
		code = mapped(fd, page, PROT_READ | PROT_EXEC);
	for (i = 0; i < TOUCHES; i++)
		map[i * STEP_BYTES];
	munmap((void *)map, TOUCHES * STEP_BYTES);
	if (code)
		munmap(code, page);
	close(fd);
	return misses(name) - before;
}

int main(int argc, char **argv)
{
	long text;

	if (argc != 3)
		errx(2, "usage: module-text NAME FILE");
	text = adapted(argv[1], argv[2], true);
	printf("%ld %ld\n", text, adapted(argv[1], argv[2], false));
	return 0;
}
