/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What mappings hinted for huge pages read, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_HUGE_H
#define _LINUX_MMAP_READAHEAD_HUGE_H

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

#endif /* _LINUX_MMAP_READAHEAD_HUGE_H */
