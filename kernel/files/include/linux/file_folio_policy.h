/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which folio sizes the page cache may use, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_FILE_FOLIO_POLICY_H
#define _LINUX_FILE_FOLIO_POLICY_H

/**
 * enum file_folio_use - what folios of one size are used for
 * @FILE_FOLIO_NEVER: for nothing
 * @FILE_FOLIO_ALWAYS: for whatever readahead reads
 * @FILE_FOLIO_EXEC: for the text of programs; at most one size has this
 */
enum file_folio_use {
	FILE_FOLIO_NEVER	= 0,
	FILE_FOLIO_ALWAYS	= 1 << 0,
	FILE_FOLIO_EXEC		= 1 << 1,
};

/**
 * struct file_folio_orders - the uses of all sizes
 * @always: bit n stands for folios of order n
 * @exec: order of the folios that program text is to have, or -1
 */
struct file_folio_orders {
	unsigned long always;
	int exec;
};

/**
 * file_folio_set_use - give a size its use
 * @orders: the uses of all sizes
 * @order: the size
 * @use: set of &enum file_folio_use; with &FILE_FOLIO_EXEC, the size that had
 *	it before loses it
 */
static inline void file_folio_set_use(struct file_folio_orders *orders,
				      unsigned int order, unsigned int use)
{
	if (use & FILE_FOLIO_ALWAYS)
		orders->always |= 1UL << order;
	else
		orders->always &= ~(1UL << order);

	if (use & FILE_FOLIO_EXEC)
		orders->exec = order;
	else if (orders->exec == (int)order)
		orders->exec = -1;
}

/**
 * file_folio_get_use - look up the use of a size
 * @orders: the uses of all sizes
 * @order: the size
 *
 * Return: set of &enum file_folio_use.
 */
static inline unsigned int
file_folio_get_use(const struct file_folio_orders *orders, unsigned int order)
{
	unsigned int use = FILE_FOLIO_NEVER;

	if (orders->always & 1UL << order)
		use |= FILE_FOLIO_ALWAYS;
	if (orders->exec == (int)order)
		use |= FILE_FOLIO_EXEC;
	return use;
}

/**
 * file_folio_fit - the largest folio that is allowed where one would fit
 * @allowed: bit n allows folios of order n
 * @order: what would fit
 * @min_order: what the file needs at least, and may always have
 *
 * Return: an order from @min_order to @order.
 */
static inline unsigned int file_folio_fit(unsigned long allowed,
					  unsigned int order,
					  unsigned int min_order)
{
	while (order > min_order && !(allowed & 1UL << order))
		order--;
	return order;
}

#endif /* _LINUX_FILE_FOLIO_POLICY_H */
