// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for mapped files: its switches, and the facts that its policy in
 * <linux/mmap_readahead_policy.h> judges.
 */
#include <linux/blk-cgroup.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sysfs.h>

#include "file_folio.h"
#include "internal.h"
#include "mmap_readahead.h"

#define CREATE_TRACE_POINTS
#include <trace/events/mmap_readahead.h>

#define ALL_RULES (MMAP_READAHEAD_HIT_NEEDS_ADDRESS |		\
		   MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY |		\
		   MMAP_READAHEAD_HIT_NEEDS_UNLOCKED |		\
		   MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS |	\
		   MMAP_READAHEAD_TEXT_IN_FOLIOS |		\
		   MMAP_READAHEAD_TEXT_UNCOUNTED |		\
		   MMAP_READAHEAD_HUGE_HINT_CAPPED |		\
		   MMAP_READAHEAD_TEXT_KEEPS_HITS)

/* Off exactly when no rule is set, so that faults then run the stock code. */
DEFINE_STATIC_KEY_TRUE(mmap_readahead_any_rule);

/*
 * Set of enum mmap_readahead_rule. Written under rules_lock; a fault that races
 * with a change may mix both sets.
 */
static unsigned int mmap_readahead_rules __read_mostly = ALL_RULES;

/* Whether a folio of the page cache can be as large as what a PMD maps. */
static bool pmd_fits(void)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	return HPAGE_PMD_ORDER <= MAX_PAGECACHE_ORDER;
#else
	return true;
#endif
}

/* Folio size of a mapping hinted for huge pages, or -1. */
static int huge_order(const struct vm_area_struct *vma, unsigned int rules)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	if (vma->vm_flags & VM_HUGEPAGE &&
	    (pmd_fits() || rules & MMAP_READAHEAD_HUGE_HINT_CAPPED))
		return mmap_readahead_huge_order(HPAGE_PMD_ORDER,
				MAX_PAGECACHE_ORDER,
				mapping_max_folio_order(vma->vm_file->f_mapping),
				PAGE_SHIFT);
#endif
	return -1;
}

/* Folio size of the text that a mapping holds, or -1. */
static int text_order(const struct vm_area_struct *vma, unsigned int rules)
{
	const struct address_space *mapping = vma->vm_file->f_mapping;

	if (!(vma->vm_flags & VM_EXEC) ||
	    !(rules & MMAP_READAHEAD_TEXT_IN_FOLIOS) ||
	    !vma->vm_file->f_ra.ra_pages)
		return -1;
	return mmap_readahead_text_order(file_folio_exec(),
					 mapping_min_folio_order(mapping),
					 mapping_max_folio_order(mapping));
}

/* Whether a miss in a mapping raises the counter. */
static bool misses_count(const struct vm_area_struct *vma, unsigned int rules)
{
	if (rules & MMAP_READAHEAD_TEXT_UNCOUNTED &&
	    text_order(vma, rules) >= 0)
		return false;
	return !(vma->vm_flags & (VM_RAND_READ | VM_SEQ_READ)) &&
	       huge_order(vma, rules) < 0;
}

/*
 * The rules for hits in a mapping. Text is called into nearly at random but
 * densely, so that few hits prove anything while the windows still pay. Unless
 * it has a size of its own it keeps them, by counting as in a stock kernel.
 */
static unsigned int hit_rules(const struct vm_area_struct *vma,
			      unsigned int rules)
{
	if (vma->vm_flags & VM_EXEC &&
	    rules & MMAP_READAHEAD_TEXT_KEEPS_HITS &&
	    text_order(vma, rules) < 0)
		return 0;
	return rules;
}

unsigned int __mmap_readahead_hits_around(const struct vm_fault *vmf,
					  unsigned int nr_pages,
					  bool at_address)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	/* Mapping around skips locked folios, so none of these is. */
	const struct mmap_readahead_hit hit = {
		.nr_pages = nr_pages,
		.at_address = at_address,
		.retried = vmf->flags & FAULT_FLAG_TRIED,
		.uncounted = !misses_count(vmf->vma, rules),
	};

	return mmap_readahead_credit(hit_rules(vmf->vma, rules), &hit);
}

bool __mmap_readahead_hit_found(const struct vm_fault *vmf,
				const struct folio *folio)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	const struct mmap_readahead_hit hit = {
		.nr_pages = 1,
		.at_address = true,
		.locked = folio_test_locked(folio),
		.uncounted = !misses_count(vmf->vma, rules),
	};

	return mmap_readahead_credit(hit_rules(vmf->vma, rules), &hit);
}

/*
 * Read a window that lies in one block of @order, the last @async_size pages of
 * it behind the readahead mark.
 *
 * The file's own state stays as it is: other threads use it meanwhile, and what
 * is read here says nothing about the file's other accesses.
 */
static void read_block(struct file *file,
		       const struct mmap_readahead_window *window,
		       unsigned int async_size, unsigned int order,
		       unsigned long allowed)
{
	struct file_ra_state ra = {
		.start = window->start,
		.size = window->size,
		.async_size = async_size,
		.ra_pages = file->f_ra.ra_pages,
	};
	DEFINE_READAHEAD(ractl, file, &ra, file->f_mapping, window->start);

	page_cache_ra_exact(&ractl, &ra, order, allowed);
}

static void read_text(struct vm_fault *vmf, unsigned int order,
		      struct file **fpin)
{
	/* The mapping may be gone once the fault's lock is dropped. */
	struct vm_area_struct *vma = vmf->vma;
	struct file *file = vma->vm_file;
	const struct mmap_readahead_window window =
		mmap_readahead_block(vmf->pgoff, order, vma->vm_pgoff,
				     vma->vm_pgoff + vma_pages(vma) - 1);

	*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
	trace_mmap_readahead_miss(file, vmf->pgoff, window.start, window.size,
				  0, order, MMAP_READAHEAD_TEXT);
	read_block(file, &window, 0, order, file_folio_always() | BIT(order));
}

/* Read one or two huge folios from that of @index on, the second marked. */
static void read_huge(struct file *file, pgoff_t index, unsigned int order,
		      bool two)
{
	struct mmap_readahead_window window =
		mmap_readahead_block(index, order, 0, ULONG_MAX);

	read_block(file, &window, 0, order, file_folio_always());
	if (two) {
		window.start += window.size;
		read_block(file, &window, window.size, order,
			   file_folio_always());
	}
}

bool __mmap_readahead_uncounted(struct vm_fault *vmf, struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	struct file *file = vmf->vma->vm_file;
	bool two = !(vmf->vma->vm_flags & VM_RAND_READ);
	int order = huge_order(vmf->vma, rules);

	if (order >= 0 && !pmd_fits()) {
		*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
		trace_mmap_readahead_miss(file, vmf->pgoff,
					  round_down(vmf->pgoff, BIT(order)),
					  BIT(order + two),
					  two ? BIT(order) : 0, order,
					  MMAP_READAHEAD_HUGE_HINT);
		read_huge(file, vmf->pgoff, order, two);
		return true;
	}

	order = text_order(vmf->vma, rules);
	if (order < 0 || !(rules & MMAP_READAHEAD_TEXT_UNCOUNTED))
		return false;
	read_text(vmf, order, fpin);
	return true;
}

bool __mmap_readahead_counted(struct vm_fault *vmf, struct file **fpin)
{
	int order = text_order(vmf->vma, READ_ONCE(mmap_readahead_rules));

	if (order < 0)
		return false;
	read_text(vmf, order, fpin);
	return true;
}

bool __mmap_readahead_next(struct vm_fault *vmf, struct folio *folio,
			   struct file **fpin)
{
	int order = huge_order(vmf->vma, READ_ONCE(mmap_readahead_rules));
	struct file *file = vmf->vma->vm_file;

	if (order < 0 || pmd_fits())
		return false;
	/* The mark may also be that of a page under writeback. */
	if (folio_test_writeback(folio))
		return true;
	folio_clear_readahead(folio);
	if (blk_cgroup_congested())
		return true;
	*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
	read_huge(file, round_down(folio->index, BIT(order)) + BIT(order),
		  order, true);
	return true;
}

#ifdef CONFIG_SYSFS
static DEFINE_MUTEX(rules_lock);

struct rule_attribute {
	struct kobj_attribute attr;
	enum mmap_readahead_rule rule;
};

static ssize_t rule_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	const struct rule_attribute *rule =
		container_of(attr, struct rule_attribute, attr);

	return sysfs_emit(buf, "%d\n",
			  !!(READ_ONCE(mmap_readahead_rules) & rule->rule));
}

static ssize_t rule_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	const struct rule_attribute *rule =
		container_of(attr, struct rule_attribute, attr);
	unsigned int rules;
	bool on;
	int err;

	err = kstrtobool(buf, &on);
	if (err)
		return err;

	mutex_lock(&rules_lock);
	rules = on ? mmap_readahead_rules | rule->rule :
		     mmap_readahead_rules & ~rule->rule;
	WRITE_ONCE(mmap_readahead_rules, rules);
	if (rules)
		static_branch_enable(&mmap_readahead_any_rule);
	else
		static_branch_disable(&mmap_readahead_any_rule);
	mutex_unlock(&rules_lock);

	return count;
}

#define RULE_ATTR(_name) __ATTR(_name, 0644, rule_show, rule_store)

static struct rule_attribute rule_attributes[] = {
	{ RULE_ATTR(hit_needs_address), MMAP_READAHEAD_HIT_NEEDS_ADDRESS },
	{ RULE_ATTR(hit_needs_first_try), MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY },
	{ RULE_ATTR(hit_needs_unlocked), MMAP_READAHEAD_HIT_NEEDS_UNLOCKED },
	{ RULE_ATTR(hit_needs_counted_miss),
	  MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS },
	{ RULE_ATTR(text_in_folios), MMAP_READAHEAD_TEXT_IN_FOLIOS },
	{ RULE_ATTR(text_uncounted), MMAP_READAHEAD_TEXT_UNCOUNTED },
	{ RULE_ATTR(text_keeps_hits), MMAP_READAHEAD_TEXT_KEEPS_HITS },
	{ RULE_ATTR(huge_hint_capped), MMAP_READAHEAD_HUGE_HINT_CAPPED },
};

static struct attribute *
mmap_readahead_attrs[ARRAY_SIZE(rule_attributes) + 1];

static const struct attribute_group mmap_readahead_attr_group = {
	.name = "mmap_readahead",
	.attrs = mmap_readahead_attrs,
};

static int __init mmap_readahead_init(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(rule_attributes); i++)
		mmap_readahead_attrs[i] = &rule_attributes[i].attr.attr;
	err = sysfs_create_group(mm_kobj, &mmap_readahead_attr_group);
	if (err)
		pr_err("mmap_readahead: no switches in sysfs: %d\n", err);
	return err;
}
subsys_initcall(mmap_readahead_init);
#endif /* CONFIG_SYSFS */
