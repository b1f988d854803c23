/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the page cache and the policy of readahead for mapped files. */
#ifndef __MM_MMAP_READAHEAD_H
#define __MM_MMAP_READAHEAD_H

#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "mmap_readahead_adaptive.h"

DECLARE_STATIC_KEY_TRUE(mmap_readahead_any_rule);

/* For switches of other files; made before late_initcall(). */
extern struct dentry *mmap_readahead_debugfs_dir;

unsigned int __mmap_readahead_hits_around(const struct vm_fault *vmf,
					  unsigned int nr_pages,
					  bool at_address);
bool __mmap_readahead_hit_found(const struct vm_fault *vmf,
				const struct folio *folio);
bool __mmap_readahead_uncounted(struct vm_fault *vmf, struct file **fpin);
bool __mmap_readahead_counted(struct vm_fault *vmf, struct file **fpin);
bool __mmap_readahead_next(struct vm_fault *vmf, struct folio *folio,
			   struct file **fpin);

/**
 * mmap_readahead_counts - does the folio at the faulting address count as a hit?
 * @folio: the folio, which a fault has just mapped
 *
 * Return: true unless it was evicted recently.
 */
static inline bool mmap_readahead_counts(const struct folio *folio)
{
	return static_branch_likely(&mmap_readahead_any_rule) &&
	       !folio_test_workingset(folio);
}

/**
 * mmap_readahead_hits_around - hits of a fault that mapped pages around itself
 * @vmf: the fault
 * @nr_pages: mapped pages that count when no rule is set
 * @at_address: the faulting address was mapped, from a folio whose hits count
 *
 * Return: what to take off the file's miss counter.
 */
static inline unsigned int
mmap_readahead_hits_around(const struct vm_fault *vmf, unsigned int nr_pages,
			   bool at_address)
{
	if (!static_branch_likely(&mmap_readahead_any_rule) || !nr_pages)
		return nr_pages;
	/* Nothing can be taken off. */
	if (!READ_ONCE(vmf->vma->vm_file->f_ra.mmap_miss))
		return 0;
	return __mmap_readahead_hits_around(vmf, nr_pages, at_address);
}

/**
 * mmap_readahead_hit_found - does a folio found on the first try count as hit?
 * @vmf: the fault
 * @folio: the folio at the faulting address
 *
 * Return: true if the file's miss counter goes down by one.
 */
static inline bool mmap_readahead_hit_found(const struct vm_fault *vmf,
					    const struct folio *folio)
{
	if (!static_branch_likely(&mmap_readahead_any_rule))
		return true;
	return __mmap_readahead_hit_found(vmf, folio);
}

/**
 * mmap_readahead_uncounted - read what does not depend on the miss counter
 * @vmf: the fault, a synchronous miss
 * @fpin: set if the fault's lock was dropped, as maybe_unlock_mmap_for_io() has
 *	it
 *
 * Program text, and mappings hinted for huge pages where a PMD is too large for
 * the page cache.
 *
 * Return: true if that was read.
 */
static inline bool mmap_readahead_uncounted(struct vm_fault *vmf,
					    struct file **fpin)
{
	return static_branch_likely(&mmap_readahead_any_rule) &&
	       vmf->vma->vm_flags & (VM_EXEC | VM_HUGEPAGE) &&
	       __mmap_readahead_uncounted(vmf, fpin);
}

/**
 * mmap_readahead_counted - read what is not a window around the fault
 * @vmf: the fault, a synchronous miss that was counted
 * @fpin: see mmap_readahead_uncounted()
 *
 * Program text, if its misses count.
 *
 * Return: true if that was read.
 */
static inline bool mmap_readahead_counted(struct vm_fault *vmf,
					  struct file **fpin)
{
	return static_branch_likely(&mmap_readahead_any_rule) &&
	       vmf->vma->vm_flags & VM_EXEC &&
	       __mmap_readahead_counted(vmf, fpin);
}

/**
 * mmap_readahead_next - read on after a folio that has the readahead mark
 * @vmf: the fault
 * @folio: the folio that it found
 * @fpin: see mmap_readahead_uncounted()
 *
 * Mappings hinted for huge pages where a PMD is too large for the page cache.
 *
 * Return: true if readahead needs to do nothing else.
 */
static inline bool mmap_readahead_next(struct vm_fault *vmf,
				       struct folio *folio, struct file **fpin)
{
	return static_branch_likely(&mmap_readahead_any_rule) &&
	       vmf->vma->vm_flags & VM_HUGEPAGE &&
	       __mmap_readahead_next(vmf, folio, fpin);
}

#endif /* __MM_MMAP_READAHEAD_H */
