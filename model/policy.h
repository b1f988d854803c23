/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a way to read does: it is asked on misses and marks, and told of hits.
 *
 * All pages are numbered within one file. What is cached of an answer is not
 * read again, and what lies beyond the file is not read at all.
 */
#ifndef MODEL_POLICY_H
#define MODEL_POLICY_H

#include <stddef.h>

#include "memory.h"

/* Pages to read; none are if size is 0. */
struct window {
	uint64_t start;
	uint32_t size;
	uint32_t async_size;	/* the first of so many last ones is marked */
	uint32_t kind;		/* enum mmap_readahead_kind, if told */
	uint32_t looks;		/* at pages to decide on this, if told */
};

/* What a fault found to map, before or after a read. */
struct hit {
	uint64_t index;
	uint32_t nr_pages;	/* cached around it, which it maps */
	bool at_address;	/* and its own page is one of them */
	bool retried;		/* it was a miss, and finds what itself read */
};

struct policy {
	/* All begin as zeroes. */
	size_t state_size;	/* of an open file */
	size_t shared_size;	/* of a file, for all who open it */
	bool tells_kinds;
	/* A fault maps what is cached of an aligned block of so many pages. */
	unsigned int block_shift;

	/* Of a state; may be NULL. */
	void (*init)(void *state);
	/* A page is not cached. The answer contains it, and is waited for. */
	struct window (*miss)(const struct model_machine *machine,
			      const struct file *file, uint64_t index);
	/* A marked page is accessed. May be NULL if the policy marks none. */
	struct window (*mark)(const struct model_machine *machine,
			      const struct file *file, uint64_t index);
	/* The answer is read at once, and is not waited for. May be NULL. */
	struct window (*hit)(const struct model_machine *machine,
			     const struct file *file, const struct hit *hit);
};

extern const struct policy policy_off;
extern const struct policy policy_published;
extern const struct policy policy_adaptive;
extern const struct policy policy_random;
extern const struct policy policy_fixed;
extern const struct policy policy_xnu;
extern const struct policy policy_freebsd;
extern const struct policy policy_zfetch;
extern const struct policy policy_competitive;
extern const struct policy policy_linux_7_3;
extern const struct policy policy_first_steps;

/* fault_around_bytes of Linux */
#define POLICY_BLOCK_SHIFT	4

static inline bool policy_is_cached(const struct file *file, uint64_t index)
{
	return file->pages[index] & CACHED;
}

/*
 * A missing page, with so many before and behind it at most: up to the next
 * cached page on each side, and within the file.
 */
static inline struct window policy_between(const struct file *file,
					   uint64_t index, uint64_t before,
					   uint64_t behind)
{
	uint64_t start = index, end = index + 1;

	while (before-- && start && !policy_is_cached(file, start - 1))
		start--;
	while (behind-- && end < file->nr_pages && !policy_is_cached(file, end))
		end++;
	return (struct window) { .start = start, .size = end - start };
}

#endif /* MODEL_POLICY_H */
