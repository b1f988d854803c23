/* SPDX-License-Identifier: GPL-2.0-only */
/* Which folio sizes readahead and program text may use. */
#ifndef __MM_FILE_FOLIO_H
#define __MM_FILE_FOLIO_H

#include <linux/compiler.h>
#include <linux/file_folio_policy.h>

#include <asm/page.h>

/* What becomes of the large folios that readahead wants. */
enum file_folio_event {
	FILE_FOLIO_ALLOCATED,
	FILE_FOLIO_FELL_BACK,
	FILE_FOLIO_NOT_CHARGED,
	NR_FILE_FOLIO_EVENTS,
};

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
#ifdef CONFIG_SYSFS
extern struct kobj_attribute thpsize_file_enabled_attr;
extern struct kobj_attribute thpsize_file_alloc_attr;
extern struct kobj_attribute thpsize_file_fallback_attr;
extern struct kobj_attribute thpsize_file_fallback_charge_attr;
#endif

void file_folio_count(unsigned int order, enum file_folio_event event);

/*
 * What text has as long as no size is chosen for it: one page each, if that is
 * all that the architecture wants, else nothing that it needs to have.
 */
#if defined(CONFIG_ARCH_EXEC_FOLIO_SHIFT) && \
	CONFIG_ARCH_EXEC_FOLIO_SHIFT <= PAGE_SHIFT
#define FILE_FOLIO_EXEC_UNCHOSEN	0
#else
#define FILE_FOLIO_EXEC_UNCHOSEN	(-1)
#endif

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
	int order = READ_ONCE(file_folio_orders.exec);

	return order < 0 ? FILE_FOLIO_EXEC_UNCHOSEN : order;
}
#else
static inline void file_folio_count(unsigned int order,
				    enum file_folio_event event)
{
}

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
