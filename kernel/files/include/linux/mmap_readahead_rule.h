/* SPDX-License-Identifier: GPL-2.0-only */
/* What readahead for mapped files does otherwise than in a kernel without its rules. */
#ifndef _LINUX_MMAP_READAHEAD_RULE_H
#define _LINUX_MMAP_READAHEAD_RULE_H

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
 * @MMAP_READAHEAD_TEXT_KEEPS_HITS: hits in text that is read like any other data
 *	count as they do under no rule, and so do those in data of programs that
 *	would adapt if it were other data.
 * @MMAP_READAHEAD_TEXT_IN_FOLIOS: a miss in an executable mapping reads one
 *	folio of the size that text is to have.
 * @MMAP_READAHEAD_TEXT_UNCOUNTED: such a miss does not depend on the counter,
 *	and does not raise it.
 * @MMAP_READAHEAD_TEXT_IN_WINDOWS: such a miss reads on behind that folio, up to
 *	the pages of a window.
 * @MMAP_READAHEAD_HUGE_HINT_CAPPED: where the page cache cannot hold folios of
 *	PMD size, the hint for huge pages asks for folios of up to 2 MiB.
 *
 * Every rule for hits only takes hits away: under no combination does a fault
 * count for more than it does under none.
 */
enum mmap_readahead_rule {
	MMAP_READAHEAD_HIT_NEEDS_ADDRESS	= 1 << 0,
	MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY	= 1 << 1,
	MMAP_READAHEAD_HIT_NEEDS_UNLOCKED	= 1 << 2,
	MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS	= 1 << 3,
	MMAP_READAHEAD_TEXT_KEEPS_HITS		= 1 << 4,
	MMAP_READAHEAD_TEXT_IN_FOLIOS		= 1 << 5,
	MMAP_READAHEAD_TEXT_UNCOUNTED		= 1 << 6,
	MMAP_READAHEAD_TEXT_IN_WINDOWS		= 1 << 7,
	MMAP_READAHEAD_HUGE_HINT_CAPPED		= 1 << 8,
};

#endif /* _LINUX_MMAP_READAHEAD_RULE_H */
