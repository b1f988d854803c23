/* SPDX-License-Identifier: GPL-2.0-only */
/* Before all else: how messages begin, and what older kernels lack, as Kbuild finds out. */
#ifndef MODULE_COMPAT_H
#define MODULE_COMPAT_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ftrace.h>
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/xarray.h>

#ifndef HAVE_ABS_DIFF
#define abs_diff(a, b) ({			\
	typeof(a) __a = (a);			\
	typeof(b) __b = (b);			\
	__a > __b ? __a - __b : __b - __a;	\
})
#endif

#ifndef HAVE_MAX_FOLIO_ORDER
static inline unsigned int mapping_max_folio_order(struct address_space *mapping)
{
	return mapping_large_folio_support(mapping) ? PMD_SHIFT - PAGE_SHIFT : 0;
}
#endif

#if !defined(ftrace_regs_get_argument) && defined(CONFIG_X86)
#define ftrace_regs_get_argument(fregs, n) regs_get_kernel_argument(&(fregs)->regs, n)
#endif

/*
 * Does anybody map the folio that was found there? To count mappings of its pages, as older
 * kernels do, takes a reference, or it may be split or freed under the count.
 */
static inline bool entry_mapped(struct xa_state *xas, struct folio *folio)
{
#ifdef HAVE_LARGE_MAPCOUNT
	/* Its own flag decides, not the tree: a head has a second page. */
	return atomic_read(PageHead(&folio->page) ? &folio->_large_mapcount :
						    &folio->_mapcount) >= 0;
#else
	bool mapped;

	if (!folio_try_get(folio))
		return false;
	mapped = xas_reload(xas) == folio && folio_mapped(folio);
	folio_put(folio);
	return mapped;
#endif
}

/* Ask for folios of a size. Older kernels choose by themselves. */
static inline void set_order(struct file_ra_state *ra, unsigned int order)
{
#ifdef HAVE_RA_ORDER
	ra->order = order;
#endif
}

#endif /* MODULE_COMPAT_H */
