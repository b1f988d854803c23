/* SPDX-License-Identifier: GPL-2.0-only */
/* What the first misses of files have taught; see <linux/mmap_readahead_window.h>. */
#ifndef _LINUX_MMAP_READAHEAD_PRIOR_H
#define _LINUX_MMAP_READAHEAD_PRIOR_H

#include <linux/types.h>

/**
 * struct mmap_readahead_beginning - what first misses read on one side
 * @continued: how often that was too little, in 1/65535
 * @files: of so many files, at most 64
 * @order: 2^order pages, the missing one among them
 * @waits: the last file has missed only once yet
 * @quiet: so many such files were followed by the next one
 * @patience: so many make a read smaller, to see what happens
 */
struct mmap_readahead_beginning {
	unsigned short continued;
	unsigned char files;
	unsigned char order;
	bool waits;
	unsigned char quiet;
	unsigned char patience;
};

/**
 * struct mmap_readahead_prior - how files of a device begin; all zero: nothing is known
 * @start: those that begin with their first page, which has nothing before it
 * @ahead: the others
 * @behind: these as well
 */
struct mmap_readahead_prior {
	struct mmap_readahead_beginning start;
	struct mmap_readahead_beginning ahead;
	struct mmap_readahead_beginning behind;
};

#endif /* _LINUX_MMAP_READAHEAD_PRIOR_H */
