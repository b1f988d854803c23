/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that are mapped as a whole, and what they are filled with. */
#ifndef FOLIOLAB_MAPPED_H
#define FOLIOLAB_MAPPED_H

#include <sys/mman.h>
#include <sys/stat.h>

#include "probe.h"

/*
 * Open a file of at least a page anew, for the kernel to know nothing of how it
 * is read, and map all of it. Return: its first byte, with what the file is in
 * @stat.
 */
static inline void *map_file(const char *path, int protection,
			     struct stat *stat)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map;

	if (fd < 0 || fstat(fd, stat))
		fail_io(path);
	if (stat->st_size < sysconf(_SC_PAGESIZE))
		fail(1, "%s holds less than a page.", path);
	map = mmap(NULL, stat->st_size, protection, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail_io(path);
	close(fd);
	return map;
}

/*
 * Append to a file until it has so many bytes: @content of @size bytes over and
 * over, counted from the file's start.
 */
static inline void fill_file(const char *path, const void *content, size_t size,
			     uint64_t wanted)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	struct stat stat;
	uint64_t has;

	if (fd < 0 || fstat(fd, &stat))
		fail_io(path);
	for (has = stat.st_size; has < wanted;) {
		size_t from = has % size, bytes = size - from;
		ssize_t n;

		if (bytes > wanted - has)
			bytes = wanted - has;
		n = write(fd, (const char *)content + from, bytes);
		if (n < 0)
			fail_io(path);
		has += n;
	}
	if (fsync(fd))
		fail_io(path);
	close(fd);
}

#endif /* FOLIOLAB_MAPPED_H */
