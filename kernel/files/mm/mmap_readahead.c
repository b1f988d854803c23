// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for mapped files where no window adapts: its switches, and the facts that its
 * policy in <linux/mmap_readahead_hits.h>, <linux/mmap_readahead_text.h> and
 * <linux/mmap_readahead_huge.h> judges.
 */
#include <linux/blk-cgroup.h>
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mmap_readahead_hits.h>
#include <linux/mmap_readahead_huge.h>
#include <linux/mmap_readahead_rule.h>
#include <linux/mmap_readahead_text.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/xarray.h>
#include <trace/events/mmap_readahead.h>

#include "file_folio.h"
#include "internal.h"
#include "mmap_readahead.h"
#include "mmap_readahead_file.h"

#define HIT_RULES (MMAP_READAHEAD_HIT_NEEDS_ADDRESS |		\
		   MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY |		\
		   MMAP_READAHEAD_HIT_NEEDS_UNLOCKED |		\
		   MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS)

#define ALL_RULES (HIT_RULES |					\
		   MMAP_READAHEAD_TEXT_KEEPS_HITS |		\
		   MMAP_READAHEAD_TEXT_IN_FOLIOS |		\
		   MMAP_READAHEAD_TEXT_UNCOUNTED |		\
		   MMAP_READAHEAD_TEXT_IN_WINDOWS |		\
		   MMAP_READAHEAD_HUGE_HINT_CAPPED)

/* Memory that can hold so many times the file is not short for its text, */
#define MUCH_MEMORY	8
/* unless it is less than this part of the machine's. */
#define SMALL_SHARE	8

/* With small windows, the rules for hits cost more than they save. */
#define BOOT_RULES (ALL_RULES & ~HIT_RULES)

/* Off exactly when no rule is set, so that faults then run the stock code. */
DEFINE_STATIC_KEY_TRUE(mmap_readahead_any_rule);

/*
 * Set of enum mmap_readahead_rule. Written under rules_lock; a fault that races
 * with a change may mix both sets.
 */
static unsigned int mmap_readahead_rules __read_mostly = BOOT_RULES;

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
	const struct file_ra_state *ra = &vma->vm_file->f_ra;

	if ((vma->vm_flags & (VM_EXEC | VM_RAND_READ)) != VM_EXEC ||
	    !(rules & MMAP_READAHEAD_TEXT_IN_FOLIOS) || !ra->ra_pages ||
	    (rules & MMAP_READAHEAD_TEXT_IN_WINDOWS && READ_ONCE(ra->text_evicted)))
		return -1;
	return mmap_readahead_text_order(file_folio_exec(),
					 mapping_min_folio_order(mapping),
					 mapping_max_folio_order(mapping));
}

/*
 * Can pages of a file be evicted for want of memory? Where that can hold far more, an eviction
 * proves no shortage: it may be by MADV_PAGEOUT. A program in a small control group uses many
 * files, of which one tells little.
 */
static bool memory_may_be_short(const struct address_space *mapping)
{
	unsigned long pages = DIV_ROUND_UP(i_size_read(mapping->host), PAGE_SIZE);

	return mmap_readahead_memory() < max(MUCH_MEMORY * pages,
					     totalram_pages() / SMALL_SHARE);
}

/*
 * The same of a miss, which sees whether its page was evicted. A folio is evicted as
 * a whole: where memory is short, text is not to be in larger ones than it has to be.
 */
static int missed_text_order(const struct vm_fault *vmf, unsigned int rules)
{
	struct file *file = vmf->vma->vm_file;
	int order = text_order(vmf->vma, rules);

	if (order <= (int)mapping_min_folio_order(file->f_mapping) ||
	    !(rules & MMAP_READAHEAD_TEXT_IN_WINDOWS) ||
	    !xa_is_value(xa_load(&file->f_mapping->i_pages, vmf->pgoff)) ||
	    !memory_may_be_short(file->f_mapping))
		return order;
	WRITE_ONCE(file->f_ra.text_evicted, true);
	/* So far no hit in text has lowered it. */
	WRITE_ONCE(file->f_ra.mmap_miss, 0);
	return -1;
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
 * The rules for hits in a mapping that does not adapt. Text is called into nearly
 * at random but densely, so that few hits prove anything while the windows still
 * pay. Unless it has a size of its own it keeps them, by counting as in a stock
 * kernel, and so does data of programs if other data adapts.
 */
static unsigned int hit_rules(const struct vm_area_struct *vma,
			      unsigned int rules)
{
	if (rules & MMAP_READAHEAD_TEXT_KEEPS_HITS &&
	    (vma->vm_flags & VM_EXEC ? text_order(vma, rules) < 0 :
				       mmap_readahead_may_adapt(vma)))
		return 0;
	return rules;
}

/*
 * Has a miss in a mapping that adapts been decided? Without memory for what is known of the
 * file, none has, and misses count.
 */
static bool is_known(const struct vm_area_struct *vma)
{
	return mmap_readahead_adapts(vma) && READ_ONCE(vma->vm_file->f_mapping->mmap_readahead);
}

unsigned int __mmap_readahead_hits_around(const struct vm_fault *vmf,
					  unsigned int nr_pages,
					  bool at_address)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	/* Mapping around skips locked folios, so none of these is. */
	struct mmap_readahead_hit hit = {
		.nr_pages = nr_pages,
		.at_address = at_address,
		.retried = vmf->flags & FAULT_FLAG_TRIED,
	};

	if (is_known(vmf->vma))
		return 0;
	hit.uncounted = !misses_count(vmf->vma, rules);
	return mmap_readahead_credit(hit_rules(vmf->vma, rules), &hit);
}

bool __mmap_readahead_hit_found(const struct vm_fault *vmf,
				const struct folio *folio)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	struct mmap_readahead_hit hit = {
		.nr_pages = 1,
		.at_address = true,
		.locked = folio_test_locked(folio),
	};

	if (is_known(vmf->vma))
		return false;
	hit.uncounted = !misses_count(vmf->vma, rules);
	return mmap_readahead_credit(hit_rules(vmf->vma, rules), &hit);
}

/* Read a range in folios of up to @order, of sizes in @allowed. */
static void read_range(struct file *file, pgoff_t start, unsigned long size,
		       unsigned long async_size, unsigned int order,
		       unsigned long allowed)
{
	struct file_ra_state ra = {
		.start = start,
		.size = size,
		.async_size = async_size,
		.ra_pages = READ_ONCE(file->f_ra.ra_pages),
	};
	DEFINE_READAHEAD(ractl, file, &ra, file->f_mapping, start);

	page_cache_ra_exact(&ractl, order, allowed);
}

void mmap_readahead_range(struct file *file, pgoff_t start, unsigned long size,
			  unsigned long async_size, unsigned int order)
{
	read_range(file, start, size, async_size, order, file_folio_always());
}

/* Is one of these pages cached? */
static bool has_page(const struct file *file, pgoff_t start, unsigned long nr)
{
	loff_t at = (loff_t)start << PAGE_SHIFT;

	return filemap_range_has_page(file->f_mapping, at,
				      at + ((loff_t)nr << PAGE_SHIFT) - 1);
}

static void read_text(struct vm_fault *vmf, unsigned int order, unsigned int rules,
		      struct file **fpin)
{
	/* The mapping may be gone once the fault's lock is dropped. */
	struct vm_area_struct *vma = vmf->vma;
	struct file *file = vma->vm_file;
	unsigned int window = rules & MMAP_READAHEAD_TEXT_IN_WINDOWS ?
			      READ_ONCE(file->f_ra.ra_pages) : 0;
	pgoff_t last = vma->vm_pgoff + vma_pages(vma) - 1;
	struct mmap_readahead_window second = { }, text =
		mmap_readahead_text(vmf->pgoff, order, window, vma->vm_pgoff, last);
	pgoff_t next = text.start + text.size, folio = round_down(vmf->pgoff, BIT(order));

	/* Where some of it is cached already, the folio of the missing page will do. */
	if (text.start < folio && has_page(file, text.start, folio - text.start)) {
		text.size -= folio - text.start;
		text.start = folio;
	}
	/* Text that is run through: two windows are cheaper than one twice. */
	if (window >= BIT(order) && next <= last && text.start > vma->vm_pgoff &&
	    has_page(file, text.start - 1, 1))
		second = mmap_readahead_text(next, order, window, next, last);
	if (second.size && !has_page(file, second.start, second.size))
		text.size += second.size;

	*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
	trace_mmap_readahead_miss(file, vmf->pgoff, text.start, text.size, 0, order,
				  MMAP_READAHEAD_TEXT);
	read_range(file, text.start, text.size, 0, order,
		   file_folio_always() | BIT(order));
}

/* Read one or two huge folios from @start on, the second marked. */
static void read_huge(struct file *file, pgoff_t start, unsigned int order,
		      bool two)
{
	unsigned long size = BIT(order);

	mmap_readahead_range(file, start, size, 0, order);
	if (two)
		mmap_readahead_range(file, start + size, size, size, order);
}

bool __mmap_readahead_uncounted(struct vm_fault *vmf, struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	struct file *file = vmf->vma->vm_file;
	bool two = !(vmf->vma->vm_flags & VM_RAND_READ);
	int order = huge_order(vmf->vma, rules);

	if (order >= 0 && !pmd_fits()) {
		pgoff_t start = round_down(vmf->pgoff, BIT(order));

		*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
		trace_mmap_readahead_miss(file, vmf->pgoff, start, BIT(order + two),
					  two ? BIT(order) : 0, order,
					  MMAP_READAHEAD_HUGE_HINT);
		read_huge(file, start, order, two);
		return true;
	}

	order = missed_text_order(vmf, rules);
	if (order < 0 || !(rules & MMAP_READAHEAD_TEXT_UNCOUNTED))
		return false;
	read_text(vmf, order, rules, fpin);
	return true;
}

bool __mmap_readahead_counted(struct vm_fault *vmf, struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	int order = missed_text_order(vmf, rules);

	if (order < 0)
		return false;
	read_text(vmf, order, rules, fpin);
	return true;
}

bool __mmap_readahead_next(struct vm_fault *vmf, struct folio *folio,
			   struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	int order = huge_order(vmf->vma, rules);
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

#ifdef CONFIG_MMAP_READAHEAD_DEBUG
static DEFINE_MUTEX(rules_lock);

static int rule_get(void *rule, u64 *on)
{
	*on = !!(READ_ONCE(mmap_readahead_rules) & (unsigned long)rule);
	return 0;
}

static int rule_set(void *rule, u64 on)
{
	unsigned int rules;

	if (on > 1)
		return -EINVAL;

	mutex_lock(&rules_lock);
	rules = on ? mmap_readahead_rules | (unsigned long)rule :
		     mmap_readahead_rules & ~(unsigned long)rule;
	WRITE_ONCE(mmap_readahead_rules, rules);
	if (rules)
		static_branch_enable(&mmap_readahead_any_rule);
	else
		static_branch_disable(&mmap_readahead_any_rule);
	mutex_unlock(&rules_lock);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(rule_fops, rule_get, rule_set, "%llu\n");

static const struct {
	const char *name;
	unsigned long rule;
} rules_in_debugfs[] = {
	{ "hit_needs_address", MMAP_READAHEAD_HIT_NEEDS_ADDRESS },
	{ "hit_needs_first_try", MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY },
	{ "hit_needs_unlocked", MMAP_READAHEAD_HIT_NEEDS_UNLOCKED },
	{ "hit_needs_counted_miss", MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS },
	{ "text_keeps_hits", MMAP_READAHEAD_TEXT_KEEPS_HITS },
	{ "text_in_folios", MMAP_READAHEAD_TEXT_IN_FOLIOS },
	{ "text_uncounted", MMAP_READAHEAD_TEXT_UNCOUNTED },
	{ "text_in_windows", MMAP_READAHEAD_TEXT_IN_WINDOWS },
	{ "huge_hint_capped", MMAP_READAHEAD_HUGE_HINT_CAPPED },
};

struct dentry *mmap_readahead_debugfs_dir __initdata;

static int __init mmap_readahead_debugfs_init(void)
{
	int i;

	mmap_readahead_debugfs_dir = debugfs_create_dir("mmap_readahead", NULL);
	for (i = 0; i < ARRAY_SIZE(rules_in_debugfs); i++)
		debugfs_create_file_unsafe(rules_in_debugfs[i].name, 0644,
					   mmap_readahead_debugfs_dir,
					   (void *)rules_in_debugfs[i].rule,
					   &rule_fops);
	return 0;
}
subsys_initcall(mmap_readahead_debugfs_init);
#endif /* CONFIG_MMAP_READAHEAD_DEBUG */

/* "off" takes all rules at once; mmap_readahead_adaptive.c has the same parameter. */
static int __init mmap_readahead_setup(char *str)
{
	bool on;
	int err = kstrtobool(str, &on);

	if (!err)
		mmap_readahead_rules = on ? BOOT_RULES : 0;
	return err;
}
early_param("mmap_readahead", mmap_readahead_setup);

/* Not all architectures can patch code as early as the parameter is read. */
static int __init mmap_readahead_init_rules(void)
{
	if (!mmap_readahead_rules)
		static_branch_disable(&mmap_readahead_any_rule);
	return 0;
}
core_initcall(mmap_readahead_init_rules);
