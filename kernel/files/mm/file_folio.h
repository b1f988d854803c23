/* SPDX-License-Identifier: GPL-2.0-only */
/* Which folio sizes readahead and program text may use. */
#ifndef __MM_FILE_FOLIO_H
#define __MM_FILE_FOLIO_H

#include <linux/compiler.h>
#include <linux/file_folio_policy.h>

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* Read without a lock: a fault that races with a change uses either setting. */
extern struct file_folio_orders file_folio_orders;

/**
 * file_folio_always - the sizes that readahead may use
 *
 * Return: a set of orders, bit n for order n.
 */
static inline unsigned long file_folio_always(void)
{
	return READ_ONCE(file_folio_orders.always);
}

/**
 * file_folio_exec - the size that program text is to have
 *
 * Return: an order, or -1 if no size is preferred.
 */
static inline int file_folio_exec(void)
{
	return READ_ONCE(file_folio_orders.exec);
}
#else
static inline unsigned long file_folio_always(void)
{
	return ~0UL;
}

static inline int file_folio_exec(void)
{
	return -1;
}
#endif /* CONFIG_TRANSPARENT_HUGEPAGE */

#endif /* __MM_FILE_FOLIO_H */
