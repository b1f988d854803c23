/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What Linux reads for mapped files: a window around each miss, and windows one
 * after the other as marks are met.
 */
#ifndef MODEL_POLICIES_LINUX_H
#define MODEL_POLICIES_LINUX_H

#include "../policy.h"

/* struct file_ra_state */
struct linux_state {
	uint64_t start;
	uint32_t size, async_size;
	uint32_t misses;	/* mmap_miss */
};

/* do_sync_mmap_readahead(): a window around the page. */
struct window linux_around(const struct model_machine *machine,
			   const struct file *file, uint64_t index);

/* The same, but the page alone once there were many more misses than hits. */
struct window linux_miss(const struct model_machine *machine,
			 const struct file *file, uint64_t index);

/* page_cache_async_ra() */
struct window linux_go_on(const struct model_machine *machine,
			  const struct file *file, uint64_t index);

/* The same; a mark counts as a hit. */
struct window linux_mark(const struct model_machine *machine,
			 const struct file *file, uint64_t index);

void linux_count_hits(const struct file *file, uint32_t hits);

/* The same for a fault that finds the page at its own address, on its first try. */
void linux_count_hit(const struct file *file, const struct hit *hit,
		     uint32_t hits);

#endif /* MODEL_POLICIES_LINUX_H */
