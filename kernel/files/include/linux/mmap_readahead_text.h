/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What misses in program text read, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_TEXT_H
#define _LINUX_MMAP_READAHEAD_TEXT_H

#include <linux/minmax.h>

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

#endif /* _LINUX_MMAP_READAHEAD_TEXT_H */
