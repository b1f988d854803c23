/* SPDX-License-Identifier: GPL-2.0-only */
/* The age of what is mapped around a fault. */
#ifndef __MM_PREFAULT_AGE_H
#define __MM_PREFAULT_AGE_H

#include <linux/jump_label.h>
#include <linux/pgtable.h>

#ifndef arch_wants_old_prefaulted_pte
static inline bool arch_wants_old_prefaulted_pte(void)
{
	/*
	 * Transitioning a PTE from 'old' to 'young' can be expensive on
	 * some architectures, even if it's performed in hardware. By
	 * default, "false" means prefaulted entries will be 'young'.
	 */
	return false;
}
#endif

/* The age of prefaulted PTEs is not what the architecture wants. */
DECLARE_STATIC_KEY_FALSE(prefaulted_ptes_flipped);

/**
 * prefaulted_ptes_are_old - the age of what a fault maps around its address
 *
 * What the architecture wants may depend on a feature of the processors, which
 * are not all known when the first faults are handled: so ask each time.
 *
 * Return: true if these PTEs look as if they had not been used.
 */
static inline bool prefaulted_ptes_are_old(void)
{
	return arch_wants_old_prefaulted_pte() !=
	       static_branch_unlikely(&prefaulted_ptes_flipped);
}

#endif /* __MM_PREFAULT_AGE_H */
