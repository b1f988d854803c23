/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What pages earn that faults bring in or map: between faults, the LRU and the
 * policy in <linux/fault_recency_policy.h>.
 */
#ifndef __MM_FAULT_RECENCY_H
#define __MM_FAULT_RECENCY_H

#include <linux/fault_recency_policy.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/page-flags.h>

/* Mark a folio as accessed once, and no further: being mapped again is no more. */
static inline void fault_recency_mark(struct folio *folio)
{
	if (!folio_test_referenced(folio))
		folio_set_referenced(folio);
}

#ifdef CONFIG_LRU_GEN
/* Read without a lock: a fault that races with a change uses either setting. */
extern enum fault_folios fault_folios;

extern struct kobj_attribute lru_gen_fault_folios_attr;

/* The setting is FAULT_FOLIOS_MAPPED. */
DECLARE_STATIC_KEY_FALSE(fault_folios_mapped);

/**
 * fault_recency_add - give a folio what it earns by being added in a fault
 * @folio: which goes to the multi-generational LRU, and is evictable
 *
 * All folios are treated alike, whether they are of files, shmem or anonymous
 * memory, new or swapped in. What lru_gen_add_folio() does with those that are
 * not active follows from their kind: anonymous memory and shmem go to the second
 * youngest generation, which is never evicted before it has been aged. Files, and
 * what is in the swap cache, go to one of the oldest; what is swapped in around
 * that cache, as from zram, counts as new. What a NUMA hinting fault migrates is
 * added before it is mapped again: with FAULT_FOLIOS_MAPPED it earns no mark.
 */
static inline void fault_recency_add(struct folio *folio)
{
	switch (fault_recency_added(READ_ONCE(fault_folios),
				    folio_mapped(folio))) {
	case FAULT_RECENCY_ACTIVE:
		folio_set_active(folio);
		break;
	case FAULT_RECENCY_MARK:
		fault_recency_mark(folio);
		break;
	case FAULT_RECENCY_NONE:
		break;
	}
}

/**
 * fault_recency_map - give a folio what it earns by being mapped in a fault
 * @folio: which has just been mapped, by a page table lock that is still held
 * @at_address: its page at the faulting address is among those that were mapped
 *
 * Mappings that are hinted sequential or random give nothing.
 */
static inline void fault_recency_map(struct folio *folio, bool at_address)
{
	if (static_branch_unlikely(&fault_folios_mapped) && at_address &&
	    lru_gen_enabled() && lru_gen_in_fault())
		fault_recency_mark(folio);
}
#else
static inline void fault_recency_add(struct folio *folio)
{
}

static inline void fault_recency_map(struct folio *folio, bool at_address)
{
}
#endif /* CONFIG_LRU_GEN */

#endif /* __MM_FAULT_RECENCY_H */
