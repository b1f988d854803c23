/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What readahead for mapped files decides, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_POLICY_H
#define _LINUX_MMAP_READAHEAD_POLICY_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

/**
 * enum mmap_readahead_reason - why a miss in a mapped file read what it read
 * @MMAP_READAHEAD_HUGE_HINT: the mapping asks for huge pages
 * @MMAP_READAHEAD_RANDOM_HINT: the mapping is hinted random: one folio
 * @MMAP_READAHEAD_OFF: readahead is switched off for the file: one folio
 * @MMAP_READAHEAD_SEQUENTIAL_HINT: the mapping is hinted sequential
 * @MMAP_READAHEAD_MISSES: too many misses, too few hits: one folio
 * @MMAP_READAHEAD_AROUND: none of these: a full window around the fault
 */
enum mmap_readahead_reason {
	MMAP_READAHEAD_HUGE_HINT,
	MMAP_READAHEAD_RANDOM_HINT,
	MMAP_READAHEAD_OFF,
	MMAP_READAHEAD_SEQUENTIAL_HINT,
	MMAP_READAHEAD_MISSES,
	MMAP_READAHEAD_AROUND,
};

/**
 * enum mmap_readahead_hit_rule - what a fault must show to count as a hit
 * @MMAP_READAHEAD_HIT_NEEDS_ADDRESS: the page at the faulting address was
 *	mapped; the fault then counts once, however many neighbours were mapped
 *	with it.
 * @MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY: the fault is not the retry of a fault
 *	that dropped its lock to read the page, which finds what itself brought.
 * @MMAP_READAHEAD_HIT_NEEDS_UNLOCKED: the folio is not locked, as it is while
 *	another thread's miss is still reading it.
 *
 * Every rule only takes hits away: under no combination does a fault count
 * for more than it does under none.
 */
enum mmap_readahead_hit_rule {
	MMAP_READAHEAD_HIT_NEEDS_ADDRESS	= 1 << 0,
	MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY	= 1 << 1,
	MMAP_READAHEAD_HIT_NEEDS_UNLOCKED	= 1 << 2,
};

/**
 * struct mmap_readahead_hit - what one fault found in the page cache
 * @nr_pages: pages that count when no rule is set
 * @at_address: one of them is the page at the faulting address
 * @retried: the fault was tried before, and dropped its lock to read
 * @locked: the folio at the faulting address is locked
 */
struct mmap_readahead_hit {
	unsigned int nr_pages;
	bool at_address;
	bool retried;
	bool locked;
};

/**
 * mmap_readahead_credit - how much one fault lowers the file's miss counter
 * @rules: set of &enum mmap_readahead_hit_rule
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
	if (rules & MMAP_READAHEAD_HIT_NEEDS_ADDRESS)
		return hit->nr_pages && hit->at_address;
	return hit->nr_pages;
}

#endif /* _LINUX_MMAP_READAHEAD_POLICY_H */
