/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the page cache and the adaptive window of mapped files. */
#ifndef __MM_MMAP_READAHEAD_ADAPTIVE_H
#define __MM_MMAP_READAHEAD_ADAPTIVE_H

#include <linux/fs.h>
#include <linux/jump_label.h>
#include <linux/mm.h>

DECLARE_STATIC_KEY_TRUE(mmap_readahead_adaptive);

bool __mmap_readahead_adapted(struct vm_fault *vmf, struct file **fpin);
bool __mmap_readahead_marked(struct vm_fault *vmf, struct folio *folio,
			     struct file **fpin);

/**
 * mmap_readahead_range - read pages of a file, and nothing else
 * @file: the file
 * @start: first page
 * @size: pages
 * @async_size: how many of the last ones are behind the readahead mark
 * @order: the largest folios to put them into
 *
 * The file's own readahead state stays as it is: it belongs to those who read without
 * mapping, and what is read here says nothing about them.
 */
void mmap_readahead_range(struct file *file, pgoff_t start, unsigned long size,
			  unsigned long async_size, unsigned int order);

/**
 * mmap_readahead_may_adapt - would misses in a mapping adapt if its file is no program?
 * @vma: the mapping
 *
 * Return: true if it has no hints.
 */
static inline bool mmap_readahead_may_adapt(const struct vm_area_struct *vma)
{
	return static_branch_likely(&mmap_readahead_adaptive) &&
	       !(vma->vm_flags & (VM_EXEC | VM_RAND_READ | VM_SEQ_READ | VM_HUGEPAGE));
}

/**
 * mmap_readahead_adapts - do misses in a mapping adapt their window?
 * @vma: the mapping
 *
 * Text and data of programs push each other out where memory is short, which looks as if
 * windows did not pay.
 *
 * Return: true if they do. Then no miss there counts.
 */
static inline bool mmap_readahead_adapts(const struct vm_area_struct *vma)
{
	return mmap_readahead_may_adapt(vma) && !(READ_ONCE(vma->vm_file->f_mode) & FMODE_PROGRAM);
}

/**
 * mmap_readahead_adapted - read what has paid in this file
 * @vmf: the fault, a synchronous miss
 * @fpin: set if the fault's lock was dropped, as maybe_unlock_mmap_for_io() has it
 *
 * Return: true unless the window of a kernel without this is to be read.
 */
static inline bool mmap_readahead_adapted(struct vm_fault *vmf, struct file **fpin)
{
	return mmap_readahead_adapts(vmf->vma) && __mmap_readahead_adapted(vmf, fpin);
}

/**
 * mmap_readahead_marked - read on at a readahead mark
 * @vmf: the fault
 * @folio: the folio with the mark
 * @fpin: see mmap_readahead_adapted()
 *
 * Return: as mmap_readahead_adapted().
 */
static inline bool mmap_readahead_marked(struct vm_fault *vmf, struct folio *folio,
					 struct file **fpin)
{
	return mmap_readahead_adapts(vmf->vma) && __mmap_readahead_marked(vmf, folio, fpin);
}

/**
 * mmap_readahead_mapped - tell programs and libraries from other files
 * @vma: a new mapping of a file, not linked to it yet, and not touched
 *
 * A file that is mapped executable counts as one as long as it is open. Loaders map
 * all of it before they touch it.
 */
static inline void mmap_readahead_mapped(const struct vm_area_struct *vma)
{
	struct file *file = vma->vm_file;

	if (!(vma->vm_flags & VM_EXEC) || READ_ONCE(file->f_mode) & FMODE_PROGRAM)
		return;
	spin_lock(&file->f_lock);
	WRITE_ONCE(file->f_mode, file->f_mode | FMODE_PROGRAM);
	spin_unlock(&file->f_lock);
}

#endif /* __MM_MMAP_READAHEAD_ADAPTIVE_H */
