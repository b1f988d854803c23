/* SPDX-License-Identifier: GPL-2.0-only */
/* Recording which pages of mapped files are touched, see page_touch.c. */
#ifndef _MM_PAGE_TOUCH_H
#define _MM_PAGE_TOUCH_H

#include <linux/jump_label.h>
#include <linux/mm_types.h>

#ifdef CONFIG_PAGE_TOUCH

DECLARE_STATIC_KEY_FALSE(page_touch_on);

bool __page_touch_watches(struct vm_area_struct *vma);
void page_touch_mapped(const struct vm_area_struct *vma, pgoff_t index);

/* Whether each page of a mapping is to have a fault of its own. */
static inline bool page_touch_watches(struct vm_area_struct *vma)
{
	return static_branch_unlikely(&page_touch_on) &&
	       __page_touch_watches(vma);
}

#else

static inline bool page_touch_watches(struct vm_area_struct *vma)
{
	return false;
}

static inline void page_touch_mapped(const struct vm_area_struct *vma,
				     pgoff_t index)
{
}

#endif /* CONFIG_PAGE_TOUCH */

#endif /* _MM_PAGE_TOUCH_H */
