// SPDX-License-Identifier: GPL-2.0-only
/*
 * The adaptive window of mapped files: its switch, and the facts that its policy in
 * mmap_readahead_window.c judges.
 */
#include <linux/backing-dev.h>
#include <linux/blk-cgroup.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/mmap_readahead_reason.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>
#include <linux/xarray.h>
#include <trace/events/mmap_readahead.h>

#include "internal.h"
#include "mmap_readahead_adaptive.h"
#include "mmap_readahead_file.h"

/* Faults that race with a change may do either. */
DEFINE_STATIC_KEY_TRUE(mmap_readahead_adaptive);

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
		/* Ask the folio: only a large one has a large mapcount. */
		page = atomic_read(PageHead(&folio->page) ? &folio->_large_mapcount :
							    &folio->_mapcount) < 0 ?
		       MMAP_READAHEAD_CACHED : MMAP_READAHEAD_USED;
	rcu_read_unlock();
	return page;
}

static unsigned long next_miss(const void *cache, unsigned long index,
			       unsigned long most)
{
	return mmap_readahead_next_miss((void *)cache, index, index + most);
}

/*
 * The facts about a fault that the policy judges, but for what the cache has of its page, for
 * memory, and for the price of a request. To be called as long as the fault's lock is held,
 * since the mapping may be gone after that.
 */
static void describe(const struct vm_fault *vmf, struct mmap_readahead_miss *miss)
{
	struct file *file = vmf->vma->vm_file;
	loff_t size = i_size_read(file->f_mapping->host);

	miss->index = vmf->pgoff;
	miss->file_pages = DIV_ROUND_UP(size, PAGE_SIZE);
	/* Racy: others read and reclaim the file meanwhile. */
	miss->cached_pages = data_race(file->f_mapping->nrpages);
	miss->max_pages = min(READ_ONCE(file->f_ra.ra_pages), SZ_1G >> PAGE_SHIFT);
	miss->max_order = mapping_max_folio_order(file->f_mapping);
	miss->block_shift = ilog2(max(READ_ONCE(fault_around_pages), 1UL));
	miss->writes = (vmf->vma->vm_flags & (VM_SHARED | VM_WRITE)) == (VM_SHARED | VM_WRITE);
	miss->look = look;
	miss->next_miss = next_miss;
	miss->cache = file->f_mapping;
}

/* What a request costs as somebody has said of the device, in KiB; 0 if nobody has. */
static unsigned int told_request_kb(const struct file *file)
{
	return READ_ONCE(inode_to_bdi(file->f_mapping->host)->request_kb);
}

/* What it costs in pages: as told, or as measured. The file's lock is held. */
static unsigned int request_pages(unsigned int told_kb, const struct mmap_readahead_file *known)
{
	unsigned int kb = told_kb ?: mmap_readahead_request_kb(known);

	return max(kb >> (PAGE_SHIFT - 10), 1U);
}

/* Is there nothing to read? The file has become shorter, or its readahead is off. */
static bool nothing_to_read(const struct mmap_readahead_miss *miss)
{
	return miss->index >= miss->file_pages || !miss->max_pages;
}

/* Count pages that a fault reads beyond the one that it needs. */
static void count_ahead(struct mm_struct *mm, unsigned long pages)
{
	count_vm_events(MMAP_READAHEAD, pages);
	count_memcg_events_mm(mm, MMAP_READAHEAD, pages);
}

static void read_adapted(struct vm_fault *vmf, struct file **fpin,
			 struct mmap_readahead_file *known,
			 const struct mmap_readahead_answer *answer)
{
	struct file *file = vmf->vma->vm_file;

	*fpin = maybe_unlock_mmap_for_io(vmf, *fpin);
	mmap_readahead_range(file, answer->start, answer->size, answer->async_size,
			     answer->order);
	if (answer->size > 1) {
		spin_lock(&known->lock);
		mmap_readahead_submitted(&known->state, answer);
		spin_unlock(&known->lock);
	}
}

/* Wait for a page that is being read, as the fault would next. Return: whether it was read. */
static bool wait_for_page(struct address_space *mapping, pgoff_t index)
{
	struct folio *folio = filemap_get_folio(mapping, index);
	bool arrived = false;

	if (!IS_ERR(folio)) {
		arrived = !folio_wait_locked_killable(folio) && folio_test_uptodate(folio);
		folio_put(folio);
	}
	return arrived;
}

/*
 * Read, and have the file know how long the fault waits. One that is not alone waits for
 * the others as well, and tells nothing of the device.
 */
static void read_and_wait(struct vm_fault *vmf, struct file **fpin,
			  struct mmap_readahead_file *known,
			  const struct mmap_readahead_answer *answer)
{
	struct address_space *mapping = vmf->vma->vm_file->f_mapping;
	bool alone = atomic_inc_return(&known->waiting) == 1;
	u64 begun = ktime_get_ns();

	read_adapted(vmf, fpin, known, answer);
	if (wait_for_page(mapping, vmf->pgoff) && alone && atomic_read(&known->waiting) == 1) {
		spin_lock(&known->lock);
		mmap_readahead_waited(known, answer->size << (PAGE_SHIFT - 10),
				      ktime_get_ns() - begun);
		spin_unlock(&known->lock);
	}
	atomic_dec(&known->waiting);
}

/* Decide what to read. Return: what is known of the file, or NULL without memory for that. */
static struct mmap_readahead_file *decide(struct address_space *mapping, gfp_t gfp,
					  unsigned int told_kb, struct mmap_readahead_miss *miss,
					  struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_file *known = mmap_readahead_known(mapping, gfp);

	if (!known)
		return NULL;
	spin_lock(&known->lock);
	miss->request_pages = request_pages(told_kb, known);
	if (!mmap_readahead_settled(&known->state, miss, answer)) {
		miss->page = look(miss->cache, miss->index);
		miss->memory_pages = mmap_readahead_memory();
		mmap_readahead_adapt(&known->state, miss, answer);
	}
	spin_unlock(&known->lock);
	return known;
}

bool __mmap_readahead_adapted(struct vm_fault *vmf, struct file **fpin)
{
	struct file *file = vmf->vma->vm_file;
	struct mm_struct *mm = vmf->vma->vm_mm;
	bool nowait = vmf->flags & FAULT_FLAG_RETRY_NOWAIT;
	struct mmap_readahead_answer answer = { .start = vmf->pgoff, .size = 1 };
	unsigned int told_kb = told_request_kb(file);
	struct mmap_readahead_file *known = NULL;
	struct mmap_readahead_miss miss;

	describe(vmf, &miss);
	if (nothing_to_read(&miss))
		return true;
	/* In windows of a page there is nothing to decide. */
	if (miss.max_pages > 1) {
		known = decide(file->f_mapping, nowait ? GFP_NOWAIT : GFP_KERNEL, told_kb, &miss,
			       &answer);
		if (!known)
			return false;
	}
	trace_mmap_readahead_miss(file, vmf->pgoff, answer.start, answer.size,
				  answer.async_size, answer.order,
				  MMAP_READAHEAD_ADAPTED + answer.kind);
	/*
	 * The fault reads one page itself, which is cheapest, but waits for that, and on
	 * a block device leaves it with a buffer head of 104 bytes for each block.
	 */
	if (answer.size > 1 && answer.kind == MMAP_READAHEAD_SINGLE && !nowait && !told_kb)
		read_and_wait(vmf, fpin, known, &answer);
	else if (answer.size > 1 || nowait || S_ISBLK(file_inode(file)->i_mode))
		read_adapted(vmf, fpin, known, &answer);
	if (answer.size > 1)
		count_ahead(mm, answer.size - 1);
	return true;
}

/* Is it the mark that the next read() of this open file comes to? See page_cache_async_ra(). */
static bool marked_by_read(const struct file_ra_state *ra, const struct folio *folio)
{
	/* Racy: a read() may move its mark meanwhile. */
	const struct file_ra_state now = data_race(*ra);

	return now.size && folio->index == round_down(now.start + now.size - now.async_size,
						      folio_nr_pages(folio));
}

bool __mmap_readahead_marked(struct vm_fault *vmf, struct folio *folio,
			     struct file **fpin)
{
	struct file *file = vmf->vma->vm_file;
	struct mm_struct *mm = vmf->vma->vm_mm;
	struct mmap_readahead_answer answer;
	struct mmap_readahead_file *known;
	struct mmap_readahead_miss mark;
	unsigned int told_kb;
	bool ours;

	/* As long as nothing is known, no miss has left a mark. */
	known = READ_ONCE(file->f_mapping->mmap_readahead);
	if (!known || marked_by_read(&file->f_ra, folio))
		return false;
	/* The mark may be that of a page under writeback. */
	if (folio_test_writeback(folio))
		return true;
	told_kb = told_request_kb(file);
	describe(vmf, &mark);
	if (nothing_to_read(&mark) || blk_cgroup_congested()) {
		folio_clear_readahead(folio);
		return true;
	}

	spin_lock(&known->lock);
	/* Nothing of a large folio was used yet: look before it. */
	mark.index = folio->index;
	mark.request_pages = request_pages(told_kb, known);
	mark.memory_pages = mmap_readahead_memory();
	ours = mmap_readahead_mark(&known->state, &mark, &answer);
	spin_unlock(&known->lock);
	if (!ours)
		return false;

	folio_clear_readahead(folio);
	if (answer.size) {
		read_adapted(vmf, fpin, known, &answer);
		count_ahead(mm, answer.size);
	}
	return true;
}

static bool adaptive_at_boot __initdata = true;

static int __init adaptive_setup(char *str)
{
	return kstrtobool(str, &adaptive_at_boot);
}
early_param("mmap_readahead", adaptive_setup);

/* Not all architectures can patch code as early as the parameter is read. */
static int __init adaptive_init(void)
{
	if (!adaptive_at_boot)
		static_branch_disable(&mmap_readahead_adaptive);
	return 0;
}
core_initcall(adaptive_init);

#ifdef CONFIG_SYSFS
static ssize_t adaptive_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&mmap_readahead_adaptive));
}

static ssize_t adaptive_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	bool on;
	int err;

	err = kstrtobool(buf, &on);
	if (err)
		return err;
	if (on)
		static_branch_enable(&mmap_readahead_adaptive);
	else
		static_branch_disable(&mmap_readahead_adaptive);
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
