/* SPDX-License-Identifier: GPL-2.0-only */
/* What the adaptive window knows of a file. */
#ifndef __MM_MMAP_READAHEAD_FILE_H
#define __MM_MMAP_READAHEAD_FILE_H

#include <linux/spinlock.h>

#include "mmap_readahead_window.h"

struct address_space;

/**
 * struct mmap_readahead_file - what is known of a file
 * @lock: of all the rest. No miss waits long for it: nobody sleeps, or reads, with it
 * @state: what the policy knows
 * @memory_pages: what memory can hold, for the control group that last asked
 * @memory_group: that control group, only to be compared
 * @memory_told: in jiffies, when that was
 *
 * All who have opened a file share one page cache. So what they need of it is counted once,
 * whoever has opened it how often, and is known until the inode goes.
 */
struct mmap_readahead_file {
	spinlock_t lock;	/* of all the rest */
	struct mmap_readahead_state state;
	unsigned long memory_pages;
	const void *memory_group;
	unsigned long memory_told;
};

struct mmap_readahead_file *mmap_readahead_known(struct address_space *mapping, gfp_t gfp);
unsigned long mmap_readahead_memory(struct mmap_readahead_file *known);

#endif /* __MM_MMAP_READAHEAD_FILE_H */
