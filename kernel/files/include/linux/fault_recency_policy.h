/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What pages that faults bring in and map earn from the multi-generational LRU,
 * as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_FAULT_RECENCY_POLICY_H
#define _LINUX_FAULT_RECENCY_POLICY_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

/**
 * enum fault_folios - what a folio gets that a fault adds to the LRU
 * @FAULT_FOLIOS_ACTIVE: a place in the youngest generation
 * @FAULT_FOLIOS_ACCESSED: the mark of one access
 * @FAULT_FOLIOS_MAPPED: that mark, once a fault maps what it has asked for
 */
enum fault_folios {
	FAULT_FOLIOS_ACTIVE,
	FAULT_FOLIOS_ACCESSED,
	FAULT_FOLIOS_MAPPED,
	NR_FAULT_FOLIOS,
};

/**
 * enum fault_recency - what a folio earns
 * @FAULT_RECENCY_NONE: nothing
 * @FAULT_RECENCY_MARK: the mark of one access, whatever it has had before
 * @FAULT_RECENCY_ACTIVE: the youngest generation
 */
enum fault_recency {
	FAULT_RECENCY_NONE,
	FAULT_RECENCY_MARK,
	FAULT_RECENCY_ACTIVE,
};

/**
 * enum fault_refault - what is noted of a folio that was evicted not long ago
 * @FAULT_REFAULT_EVICTED: the folio: that it was evicted
 * @FAULT_REFAULT_PROTECTED: the folio: that it was accessed often, so that
 *	reclaim passes over it once; it counts as restored
 * @FAULT_REFAULT_ACTIVATED: it counts as activated
 */
enum fault_refault {
	FAULT_REFAULT_EVICTED	= 1 << 0,
	FAULT_REFAULT_PROTECTED	= 1 << 1,
	FAULT_REFAULT_ACTIVATED	= 1 << 2,
};

/**
 * fault_recency_added - what a folio earns that a fault adds to the LRU
 * @setting: what such folios get
 * @mapped: it has its place in a page table already. So have new anonymous
 *	folios, and never those that readahead brings, from files or from swap.
 *
 * Return: what it earns.
 */
static inline enum fault_recency
fault_recency_added(enum fault_folios setting, bool mapped)
{
	if (setting == FAULT_FOLIOS_ACTIVE)
		return FAULT_RECENCY_ACTIVE;
	if (setting == FAULT_FOLIOS_ACCESSED || mapped)
		return FAULT_RECENCY_MARK;
	return FAULT_RECENCY_NONE;
}

/**
 * fault_recency_refaulted - what is noted of a folio that comes back soon
 * @setting: what folios get that faults add
 * @in_fault: a fault brings it back
 * @often: it was accessed so often before that reclaim should not have taken it
 *
 * A fault that activates the folio proves, by that, an access. Where it does not,
 * the folio may be one that readahead brings once more: then only its own past
 * makes it count.
 *
 * That it was evicted is noted all the same. Who waits for such a folio is
 * waiting for memory, and hits on it do not speak for reading more. Reclaim takes
 * that mark for a second access, and may pass over the folio once for it.
 *
 * Return: set of &enum fault_refault.
 */
static inline unsigned int
fault_recency_refaulted(enum fault_folios setting, bool in_fault, bool often)
{
	bool activated = in_fault && setting == FAULT_FOLIOS_ACTIVE;
	unsigned int noted = 0;

	/* Refaults by system calls count as activated, whatever they get. */
	if (activated || !in_fault)
		noted |= FAULT_REFAULT_ACTIVATED;
	if (activated || often)
		noted |= FAULT_REFAULT_PROTECTED;
	if (in_fault || often)
		noted |= FAULT_REFAULT_EVICTED;
	return noted;
}

#endif /* _LINUX_FAULT_RECENCY_POLICY_H */
