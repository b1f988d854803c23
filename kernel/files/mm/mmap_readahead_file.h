/* SPDX-License-Identifier: GPL-2.0-only */
/* What the adaptive window knows of a file. */
#ifndef __MM_MMAP_READAHEAD_FILE_H
#define __MM_MMAP_READAHEAD_FILE_H

#include <linux/atomic.h>
#include <linux/spinlock.h>

#include "mmap_readahead_window.h"

struct address_space;

/**
 * struct mmap_readahead_file - what is known of a file
 * @lock: of all the rest but @waiting. No miss waits long for it: nobody sleeps, or reads, with it
 * @waiting: faults that wait for single misses of several pages
 * @wait_us: how long one such fault waits for a request if there is no other, on average
 * @measured: whether one has; until then @wait_us is what the kind of the disk suggests
 * @state: what the policy knows
 *
 * All who have opened a file share one page cache. So what they need of it is counted once,
 * whoever has opened it how often, and is known until the inode goes.
 */
struct mmap_readahead_file {
	spinlock_t lock;	/* of all the rest but @waiting */
	atomic_t waiting;
	unsigned int wait_us;
	bool measured;
	struct mmap_readahead_state state;
};

struct mmap_readahead_file *mmap_readahead_known(struct address_space *mapping, gfp_t gfp);
unsigned long mmap_readahead_memory(void);
unsigned int mmap_readahead_request_kb(const struct mmap_readahead_file *known);
void mmap_readahead_waited(struct mmap_readahead_file *known, unsigned int kb, u64 ns);

#endif /* __MM_MMAP_READAHEAD_FILE_H */
