// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for mapped files: its switches, and the facts that its policies in
 * <linux/mmap_readahead_policy.h> and <linux/mmap_readahead_window.h> judge.
 */
#include <linux/backing-dev.h>
#include <linux/blk-cgroup.h>
#include <linux/debugfs.h>
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>

#include "file_folio.h"
#include "internal.h"
#include "mmap_readahead.h"
#include "mmap_readahead_file.h"

#define CREATE_TRACE_POINTS
#include <trace/events/mmap_readahead.h>

#define ALL_RULES (MMAP_READAHEAD_HIT_NEEDS_ADDRESS |		\
		   MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY |		\
		   MMAP_READAHEAD_HIT_NEEDS_UNLOCKED |		\
		   MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS |	\
		   MMAP_READAHEAD_TEXT_IN_FOLIOS |		\
		   MMAP_READAHEAD_TEXT_IN_WINDOWS |		\
		   MMAP_READAHEAD_TEXT_UNCOUNTED |		\
		   MMAP_READAHEAD_HUGE_HINT_CAPPED |		\
		   MMAP_READAHEAD_TEXT_KEEPS_HITS |		\
		   MMAP_READAHEAD_ADAPTIVE)

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

/* Would misses in a mapping adapt their window if its file is no program? */
static bool may_adapt(const struct vm_area_struct *vma, unsigned int rules)
{
	return rules & MMAP_READAHEAD_ADAPTIVE &&
	       !(vma->vm_flags & (VM_EXEC | VM_RAND_READ | VM_SEQ_READ)) &&
	       huge_order(vma, rules) < 0;
}

/*
 * Do misses in a mapping adapt their window? Then hits do not matter there. Text
 * and data of programs push each other out where memory is short, which looks as
 * if windows did not pay.
 */
static bool adapts(const struct vm_area_struct *vma, unsigned int rules)
{
	return may_adapt(vma, rules) && !mmap_readahead_is_program(vma->vm_file);
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
				       may_adapt(vma, rules)))
		return 0;
	return rules;
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

	if (adapts(vmf->vma, rules))
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

	if (adapts(vmf->vma, rules))
		return false;
	hit.uncounted = !misses_count(vmf->vma, rules);
	return mmap_readahead_credit(hit_rules(vmf->vma, rules), &hit);
}

/*
 * Read a range in folios of up to @order, of sizes in @allowed, the last @async_size
 * pages behind the readahead mark.
 *
 * The file's own readahead state stays as it is: it belongs to those who read without
 * mapping, and what is read here says nothing about them.
 */
static void read_range(struct file *file, pgoff_t start, unsigned long size,
		       unsigned long async_size, unsigned int order,
		       unsigned long allowed)
{
	struct file_ra_state ra = {
		.start = start,
		.size = size,
		.async_size = async_size,
		.ra_pages = file->f_ra.ra_pages,
	};
	DEFINE_READAHEAD(ractl, file, &ra, file->f_mapping, start);

	page_cache_ra_exact(&ractl, order, allowed);
}

static void read_text(struct vm_fault *vmf, unsigned int order, unsigned int rules,
		      struct file **fpin)
{
	/* The mapping may be gone once the fault's lock is dropped. */
	struct vm_area_struct *vma = vmf->vma;
	struct file *file = vma->vm_file;
	bool more = rules & MMAP_READAHEAD_TEXT_IN_WINDOWS &&
		    !(vma->vm_flags & VM_RAND_READ);
	unsigned int window = more ? READ_ONCE(file->f_ra.ra_pages) : 0;
	const struct mmap_readahead_window text =
		mmap_readahead_text(vmf->pgoff, order, window, vma->vm_pgoff,
				    vma->vm_pgoff + vma_pages(vma) - 1);

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

	read_range(file, start, size, 0, order, file_folio_always());
	if (two)
		read_range(file, start + size, size, size, order,
			   file_folio_always());
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

	order = text_order(vmf->vma, rules);
	if (order < 0 || !(rules & MMAP_READAHEAD_TEXT_UNCOUNTED))
		return false;
	read_text(vmf, order, rules, fpin);
	return true;
}

bool __mmap_readahead_counted(struct vm_fault *vmf, struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	int order = text_order(vmf->vma, rules);

	if (order < 0)
		return false;
	read_text(vmf, order, rules, fpin);
	return true;
}

/*
 * Without a reference, for that costs more than the answer is worth: a folio that goes
 * away meanwhile may get the answer of what takes its place.
 */
static enum mmap_readahead_page look(const void *cache, unsigned long index)
{
	XA_STATE(xas, &((struct address_space *)cache)->i_pages, index);
	enum mmap_readahead_page page = MMAP_READAHEAD_ABSENT;
	struct folio *folio;

	rcu_read_lock();
	do {
		folio = xas_load(&xas);
	} while (xas_retry(&xas, folio));
	if (xa_is_value(folio))
		page = MMAP_READAHEAD_EVICTED;
	else if (folio)
		page = atomic_read(xas_get_order(&xas) ? &folio->_large_mapcount :
							 &folio->_mapcount) < 0 ?
		       MMAP_READAHEAD_CACHED : MMAP_READAHEAD_USED;
	rcu_read_unlock();
	return page;
}

static unsigned long next_miss(const void *cache, unsigned long index,
			       unsigned long most)
{
	unsigned long miss;

	rcu_read_lock();
	miss = page_cache_next_miss((void *)cache, index, most);
	rcu_read_unlock();
	return miss;
}

/*
 * The facts about a fault that the policy judges, but for what the cache has of its page,
 * and for memory and other files. To be called as long as the fault's lock is held, since
 * the mapping may be gone after that.
 */
static void describe(const struct vm_fault *vmf, struct mmap_readahead_miss *miss)
{
	struct file *file = vmf->vma->vm_file;
	struct backing_dev_info *bdi = inode_to_bdi(file->f_mapping->host);
	loff_t size = i_size_read(file->f_mapping->host);

	miss->index = vmf->pgoff;
	miss->file_pages = DIV_ROUND_UP(size, PAGE_SIZE);
	miss->cached_pages = READ_ONCE(file->f_mapping->nrpages);
	miss->max_pages = min(READ_ONCE(file->f_ra.ra_pages), SZ_1G >> PAGE_SHIFT);
	miss->least_pages = mapping_min_folio_nrpages(file->f_mapping);
	miss->request_pages = max(READ_ONCE(bdi->request_kb) >> (PAGE_SHIFT - 10), 1U);
	miss->block_shift = ilog2(max(READ_ONCE(fault_around_pages), 1UL));
	miss->look = look;
	miss->next_miss = next_miss;
	miss->cache = file->f_mapping;
	/* Files that begin at once may undo what each other taught. */
	miss->prior = &bdi->mmap_readahead_prior;
}

/* Is there nothing to read? The file has become shorter, or its readahead is off. */
static bool nothing_to_read(const struct mmap_readahead_miss *miss)
{
	return miss->index >= miss->file_pages || !miss->max_pages;
}

/* Count pages that a fault reads beyond the one that it needs. */
static void count_ahead(unsigned long pages)
{
	struct mem_cgroup *memcg;

	count_vm_events(MMAP_READAHEAD, pages);
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	if (memcg)
		count_memcg_events(memcg, MMAP_READAHEAD, pages);
	rcu_read_unlock();
}

static void read_adapted(struct vm_fault *vmf, struct file **fpin,
			 const struct mmap_readahead_answer *answer)
{
	struct file *file = vmf->vma->vm_file;

	*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
	read_range(file, answer->start, answer->size, answer->async_size,
		   answer->order, file_folio_always());
	if (answer->size > 1)
		mmap_readahead_arrived(file, answer);
}

bool __mmap_readahead_adapted(struct vm_fault *vmf, struct file **fpin)
{
	struct file *file = vmf->vma->vm_file;
	bool nowait = vmf->flags & FAULT_FLAG_RETRY_NOWAIT;
	struct mmap_readahead_answer answer = { .start = vmf->pgoff, .size = 1 };
	struct mmap_readahead_state *state;
	struct mmap_readahead_miss miss;

	if (!adapts(vmf->vma, READ_ONCE(mmap_readahead_rules)))
		return false;
	describe(vmf, &miss);
	if (nothing_to_read(&miss))
		return true;
	miss.page = look(miss.cache, miss.index);

	/* Who finds it busy, or gets no memory, reads one page, and nothing is learnt. */
	state = mmap_readahead_trylock(file, &miss, nowait ? GFP_NOWAIT : GFP_KERNEL);
	if (state) {
		mmap_readahead_adapt(state, &miss, &answer);
		mmap_readahead_unlock(state);
	}
	trace_mmap_readahead_miss(file, vmf->pgoff, answer.start, answer.size,
				  answer.async_size, answer.order,
				  MMAP_READAHEAD_ADAPTED + answer.kind);
	/*
	 * The fault reads one page itself, which is cheapest, but waits for that, and on
	 * a block device leaves it with a buffer head of 104 bytes for each block.
	 */
	if (answer.size > 1 || nowait || S_ISBLK(file_inode(file)->i_mode))
		read_adapted(vmf, fpin, &answer);
	if (answer.size > 1)
		count_ahead(answer.size - 1);
	return true;
}

/* The mark may be that of a page under writeback, or of somebody who read()s the file. */
static bool go_on_adapted(struct vm_fault *vmf, struct folio *folio,
			  struct file **fpin)
{
	struct mmap_readahead_answer answer;
	struct mmap_readahead_state *state;
	struct mmap_readahead_miss mark;

	if (folio_test_writeback(folio) || blk_cgroup_congested())
		return true;
	describe(vmf, &mark);
	if (nothing_to_read(&mark))
		return true;

	/* Nothing of a large folio was used yet: look before it. */
	mark.index = folio->index;

	state = mmap_readahead_trylock(vmf->vma->vm_file, &mark, GFP_NOWAIT);
	if (!state)
		return true;
	mmap_readahead_mark(state, &mark, &answer);
	mmap_readahead_unlock(state);

	if (answer.size) {
		folio_clear_readahead(folio);
		read_adapted(vmf, fpin, &answer);
		count_ahead(answer.size);
	}
	return true;
}

bool __mmap_readahead_next(struct vm_fault *vmf, struct folio *folio,
			   struct file **fpin)
{
	unsigned int rules = READ_ONCE(mmap_readahead_rules);
	int order = huge_order(vmf->vma, rules);
	struct file *file = vmf->vma->vm_file;

	if (adapts(vmf->vma, rules))
		return go_on_adapted(vmf, folio, fpin);
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

static DEFINE_MUTEX(rules_lock);

static int __maybe_unused rule_get(void *rule, u64 *on)
{
	*on = !!(READ_ONCE(mmap_readahead_rules) & (unsigned long)rule);
	return 0;
}

static int __maybe_unused rule_set(void *rule, u64 on)
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

#ifdef CONFIG_DEBUG_FS
DEFINE_DEBUGFS_ATTRIBUTE(rule_fops, rule_get, rule_set, "%llu\n");

static const struct {
	const char *name;
	unsigned long rule;
} rules_in_debugfs[] = {
	{ "hit_needs_address", MMAP_READAHEAD_HIT_NEEDS_ADDRESS },
	{ "hit_needs_first_try", MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY },
	{ "hit_needs_unlocked", MMAP_READAHEAD_HIT_NEEDS_UNLOCKED },
	{ "hit_needs_counted_miss", MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS },
	{ "text_in_folios", MMAP_READAHEAD_TEXT_IN_FOLIOS },
	{ "text_in_windows", MMAP_READAHEAD_TEXT_IN_WINDOWS },
	{ "text_uncounted", MMAP_READAHEAD_TEXT_UNCOUNTED },
	{ "text_keeps_hits", MMAP_READAHEAD_TEXT_KEEPS_HITS },
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
#endif /* CONFIG_DEBUG_FS */

#ifdef CONFIG_SYSFS
static ssize_t adaptive_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	u64 on;

	rule_get((void *)MMAP_READAHEAD_ADAPTIVE, &on);
	return sysfs_emit(buf, "%llu\n", on);
}

static ssize_t adaptive_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	bool on;
	int err;

	err = kstrtobool(buf, &on);
	if (err)
		return err;
	rule_set((void *)MMAP_READAHEAD_ADAPTIVE, on);
	return count;
}

static struct kobj_attribute adaptive_attr = __ATTR_RW(adaptive);

static struct attribute *mmap_readahead_attrs[] = {
	&adaptive_attr.attr,
	NULL,
};

static const struct attribute_group mmap_readahead_attr_group = {
	.name = "mmap_readahead",
	.attrs = mmap_readahead_attrs,
};

static int __init mmap_readahead_sysfs_init(void)
{
	int err = sysfs_create_group(mm_kobj, &mmap_readahead_attr_group);

	if (err)
		pr_err("mmap_readahead: no switch in sysfs: %d\n", err);
	return err;
}
subsys_initcall(mmap_readahead_sysfs_init);
#endif /* CONFIG_SYSFS */
