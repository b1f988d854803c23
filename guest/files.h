/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Directories of files of one size, as make-files makes them: DIRECTORY/100x4096
 * has a hundred files of 4,096 pages, named by their numbers from 0.
 */
#ifndef FOLIOLAB_FILES_H
#define FOLIOLAB_FILES_H

#include <inttypes.h>
#include <stdio.h>

#define FILES_PAGE	4096	/* bytes, whatever the machine's are */

static inline void files_directory(char *path, size_t size,
				   const char *directory, uint64_t files,
				   uint64_t pages)
{
	snprintf(path, size, "%s/%" PRIu64 "x%" PRIu64, directory, files,
		 pages);
}

static inline void files_path(char *path, size_t size, const char *directory,
			      uint64_t files, uint64_t pages, uint64_t number)
{
	snprintf(path, size, "%s/%" PRIu64 "x%" PRIu64 "/%" PRIu64, directory,
		 files, pages, number);
}

#endif /* FOLIOLAB_FILES_H */
