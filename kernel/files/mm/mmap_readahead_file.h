/* SPDX-License-Identifier: GPL-2.0-only */
/* What the adaptive window knows of open files. */
#ifndef __MM_MMAP_READAHEAD_FILE_H
#define __MM_MMAP_READAHEAD_FILE_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mmap_readahead_window.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

/**
 * struct mmap_readahead_file - what is known of an open file
 * @state: that
 * @lock: of @state; no miss waits for it
 * @in_use: a miss has asked since reclaim last looked
 * @lru: among all that reclaim may free, by control group
 * @rcu: for faults that are still looking
 * @file: whose it is
 * @memory_pages: what memory can hold, for the control group that last asked
 * @memory_told: in jiffies, when that was
 * @pages: size of the file, as counted for its device if this open file stands for it
 * @paid: state.paid, as counted for the device and the file
 *
 * The open file is what stock readahead keeps its state in as well. So nobody learns
 * from, or suffers by, how others use the same file, and a child shares what its
 * parent has opened.
 */
struct mmap_readahead_file {
	struct mmap_readahead_state state;
	spinlock_t lock;	/* of @state */
	bool in_use;
	struct list_head lru;
	struct rcu_head rcu;
	struct file *file;
	unsigned long memory_pages;
	unsigned long memory_told;
	unsigned long pages;
	unsigned int paid;
};

/* What file->f_mmap_readahead points to if the file is a program or a library. */
extern struct mmap_readahead_file mmap_readahead_program;

static inline bool mmap_readahead_is_program(const struct file *file)
{
#ifdef CONFIG_MMU
	return rcu_access_pointer(file->f_mmap_readahead) ==
	       &mmap_readahead_program;
#else
	return false;
#endif
}

void mmap_readahead_set_program(struct file *file);
struct mmap_readahead_state *mmap_readahead_trylock(struct file *file, gfp_t gfp);
void mmap_readahead_look_around(struct mmap_readahead_state *state,
				struct mmap_readahead_miss *miss);
void mmap_readahead_unlock(struct mmap_readahead_state *state);
void mmap_readahead_arrived(struct file *file, const struct mmap_readahead_answer *answer);

#endif /* __MM_MMAP_READAHEAD_FILE_H */
