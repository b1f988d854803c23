/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What readahead for mapped files decides, but for the adaptive window, as plain
 * arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_POLICY_H
#define _LINUX_MMAP_READAHEAD_POLICY_H

#include <linux/minmax.h>
#include <linux/types.h>

/**
 * enum mmap_readahead_rule - what differs from a kernel without these rules
 * @MMAP_READAHEAD_HIT_NEEDS_ADDRESS: the page at the faulting address was
 *	mapped; the fault then counts once, however many neighbours were mapped
 *	with it.
 * @MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY: the fault is not the retry of a fault
 *	that dropped its lock to read the page, which finds what itself brought.
 * @MMAP_READAHEAD_HIT_NEEDS_UNLOCKED: the folio is not locked, as it is while
 *	another thread's miss is still reading it.
 * @MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS: a miss in the same mapping would have
 *	raised the counter.
 * @MMAP_READAHEAD_TEXT_IN_FOLIOS: a miss in an executable mapping reads one
 *	folio of the size that text is to have.
 * @MMAP_READAHEAD_TEXT_IN_WINDOWS: such a miss reads on behind that folio, up to
 *	the pages of a window.
 * @MMAP_READAHEAD_TEXT_UNCOUNTED: such a miss does not depend on the counter,
 *	and does not raise it.
 * @MMAP_READAHEAD_HUGE_HINT_CAPPED: where the page cache cannot hold folios of
 *	PMD size, the hint for huge pages asks for folios of up to 2 MiB.
 * @MMAP_READAHEAD_TEXT_KEEPS_HITS: hits in text that is read like any other data
 *	count as they do under no rule, and so do those in data of programs that
 *	would adapt if it were other data.
 *
 * Every rule for hits only takes hits away: under no combination does a fault
 * count for more than it does under none.
 */
enum mmap_readahead_rule {
	MMAP_READAHEAD_HIT_NEEDS_ADDRESS	= 1 << 0,
	MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY	= 1 << 1,
	MMAP_READAHEAD_HIT_NEEDS_UNLOCKED	= 1 << 2,
	MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS	= 1 << 3,
	MMAP_READAHEAD_TEXT_IN_FOLIOS		= 1 << 4,
	MMAP_READAHEAD_TEXT_UNCOUNTED		= 1 << 5,
	MMAP_READAHEAD_HUGE_HINT_CAPPED		= 1 << 6,
	MMAP_READAHEAD_TEXT_KEEPS_HITS		= 1 << 7,
	MMAP_READAHEAD_TEXT_IN_WINDOWS		= 1 << 8,
};

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

/* What the hint for huge pages asks for at most if PMD size is too large. */
#define MMAP_READAHEAD_HUGE_SHIFT	21

/**
 * mmap_readahead_huge_order - folio size of mappings hinted for huge pages
 * @pmd_order: what a PMD maps
 * @cache_order: the most that the page cache can hold
 * @file_order: the most that the file can hold, 0 if no large folio at all
 * @page_shift: of a base page
 *
 * Return: an order, or -1 if the hint changes nothing.
 */
static inline int mmap_readahead_huge_order(unsigned int pmd_order,
					    unsigned int cache_order,
					    unsigned int file_order,
					    unsigned int page_shift)
{
	unsigned int cap = MMAP_READAHEAD_HUGE_SHIFT - page_shift;

	if (pmd_order <= cache_order)
		return pmd_order;
	if (!file_order)
		return -1;
	return file_order < cap ? file_order : cap;
}

/**
 * mmap_readahead_text_order - folio size of program text
 * @preferred: what text is to have, or -1
 * @min_order: the least that the file can hold
 * @max_order: the most that the file can hold, 0 if no large folio at all
 *
 * Return: an order, or -1 if the text of this file is to be read like any other
 * data.
 */
static inline int mmap_readahead_text_order(int preferred,
					    unsigned int min_order,
					    unsigned int max_order)
{
	unsigned int order = preferred;

	if (preferred < 0 || !max_order)
		return -1;
	if (order > max_order)
		order = max_order;
	return order < min_order ? min_order : order;
}

/**
 * struct mmap_readahead_window - what a miss reads
 * @start: first page, in pages of the file
 * @size: in pages
 */
struct mmap_readahead_window {
	unsigned long start;
	unsigned long size;
};

/**
 * mmap_readahead_text - what a miss in program text reads
 * @index: the page
 * @order: size of the folio that text is to have
 * @window: most pages to read; less than a folio means one folio
 * @first: first page that may be read
 * @last: last page that may be read; @index lies between these two
 *
 * Windows lie side by side, so that one does not begin in the middle of another.
 *
 * Return: the window of whole folios that holds @index, from @first to @last.
 */
static inline struct mmap_readahead_window
mmap_readahead_text(unsigned long index, unsigned int order, unsigned int window,
		    unsigned long first, unsigned long last)
{
	unsigned long pages = max(window >> order, 1U) << order;
	unsigned long start = index - index % pages;
	unsigned long skipped = start < first ? first - start : 0;

	start += skipped;
	pages -= skipped;
	if (pages > last - start)
		pages = last - start + 1;
	return (struct mmap_readahead_window) { .start = start, .size = pages };
}

#endif /* _LINUX_MMAP_READAHEAD_POLICY_H */
