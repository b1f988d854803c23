/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What counts as a hit in a mapped file, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_HITS_H
#define _LINUX_MMAP_READAHEAD_HITS_H

#include <linux/mmap_readahead_rule.h>
#include <linux/types.h>

/**
 * struct mmap_readahead_hit - what one fault found in the page cache
 * @nr_pages: pages that count when no rule is set
 * @at_address: one of them is the page at the faulting address
 * @retried: the fault was tried before, and dropped its lock to read
 * @locked: the folio at the faulting address is locked
 * @uncounted: a miss in the same mapping would not raise the counter
 */
struct mmap_readahead_hit {
	unsigned int nr_pages;
	bool at_address;
	bool retried;
	bool locked;
	bool uncounted;
};

/**
 * mmap_readahead_credit - how much one fault lowers the file's miss counter
 * @rules: set of &enum mmap_readahead_rule
 * @hit: what the fault found
 *
 * Return: hits to credit, from 0 to @hit->nr_pages.
 */
static inline unsigned int
mmap_readahead_credit(unsigned int rules, const struct mmap_readahead_hit *hit)
{
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY) && hit->retried)
		return 0;
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_UNLOCKED) && hit->locked)
		return 0;
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS) && hit->uncounted)
		return 0;
	if (rules & MMAP_READAHEAD_HIT_NEEDS_ADDRESS)
		return hit->nr_pages && hit->at_address;
	return hit->nr_pages;
}

#endif /* _LINUX_MMAP_READAHEAD_HITS_H */
