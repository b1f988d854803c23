/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of readahead for mapped files share: its switches and its trace. */
#ifndef __MMAP_READAHEAD_UTIL_H
#define __MMAP_READAHEAD_UTIL_H

#include <stdbool.h>

/* MMAP_LOTSAMISS in mm/filemap.c: more misses than this stop readahead. */
#define MISS_LIMIT	100

enum rule {
	ADDRESS		= 1 << 0,
	FIRST_TRY	= 1 << 1,
	UNLOCKED	= 1 << 2,
	COUNTED_MISS	= 1 << 3,
	TEXT_KEEPS_HITS	= 1 << 4,
	TEXT		= 1 << 5,
	TEXT_UNCOUNTED	= 1 << 6,
	TEXT_WINDOWS	= 1 << 7,
	HUGE_CAPPED	= 1 << 8,
	ALL_RULES	= (1 << 9) - 1,
};

/* In the order of the bits of enum rule. */
#define NR_SWITCHES	9

extern const char * const switches[NR_SWITCHES];

/* Have run_guarded() put all switches back; skip all tests if there are none. */
void guard_switches(void);
/* Return: 0 or -errno. */
int switch_write(unsigned int nr, const char *text);
/* Return: 0 or 1, negative if there is no such value. */
int flag_read(const char *path);
int switch_read(unsigned int nr);
/* Write all switches. Return: 0 or -errno. */
int rules_write(unsigned int rules);
/* The same; if it fails, so do all tests. */
void set_rules(unsigned int rules);

/* One record of the tracepoint. */
struct miss {
	unsigned int major, minor;
	unsigned long index, start;
	unsigned int size, async_size, order, ra_pages, mmap_miss;
	char reason[24];
};

/*
 * Trace the misses of a file or a block device into a buffer of their own; false if
 * impossible.
 */
bool trace_start(int fd);
/* Return: how many misses were traced, up to @max. */
unsigned int trace_stop(struct miss *misses, unsigned int max);
/* For run_guarded(). */
void trace_clean_up(void);
void print_miss(const struct miss *miss);

#endif /* __MMAP_READAHEAD_UTIL_H */
