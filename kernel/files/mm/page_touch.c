// SPDX-License-Identifier: GPL-2.0-only
/*
 * Record which pages of mapped files are touched, and in which order.
 *
 * The hardware tells that a page was touched since one looked, but not when.
 * A fault tells at once, but only of the first touch. So the last few pages that
 * faults have mapped are remembered, and a page that drops out of them is
 * unmapped: its next touch is a fault again.
 *
 * Meant for one who studies a program, at the price of the many more faults.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/path.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "page_touch.h"

#define CREATE_TRACE_POINTS
#include <trace/events/page_touch.h>

/* So that all pages that one instruction needs are mapped at once. */
#define PAGE_TOUCH_LEAST	8
/* Each fault looks at all of them. */
#define PAGE_TOUCH_MOST		256

DEFINE_STATIC_KEY_FALSE(page_touch_on);

struct touched_page {
	struct work_struct work;
	/*
	 * Keeps the inode, and the file system mounted. A file would do that,
	 * too, but its owner may wait for the end of it, for the lock it holds.
	 */
	struct path path;
	struct address_space *mapping;
	pgoff_t index;
	struct list_head node;
};

/* The last pages that faults have mapped, the oldest first. */
static struct {
	/* Protects all of it, and makes the events come in order of seq. */
	spinlock_t lock;
	struct list_head pages;
	unsigned int window, count;
	u64 seq;
} touches = {
	.lock = __SPIN_LOCK_UNLOCKED(touches.lock),
	.pages = LIST_HEAD_INIT(touches.pages),
};

/* Serializes those who change the settings. */
static DEFINE_MUTEX(page_touch_mutex);

/* Of the only file system that is watched; 0 is all. */
static dev_t page_touch_device;

bool __page_touch_watches(struct vm_area_struct *vma)
{
	const struct inode *inode;
	const struct module *owner;
	dev_t device = READ_ONCE(page_touch_device);

	/* Text is no data, and what is locked must not be unmapped. */
	if (!vma->vm_file || vma_is_anon_shmem(vma) ||
	    (vma->vm_flags & (VM_EXEC | VM_LOCKED)))
		return false;
	inode = file_inode(vma->vm_file);
	/* A path keeps the file system's module, and no other one. */
	owner = vma->vm_file->f_op->owner;
	if (owner && owner != inode->i_sb->s_type->owner)
		return false;
	return S_ISREG(inode->i_mode) &&
	       inode->i_mapping == vma->vm_file->f_mapping &&
	       (!device || inode->i_sb->s_dev == device);
}

static void release(struct touched_page *page)
{
	path_put(&page->path);
	kfree(page);
}

static void release_in_worker(struct work_struct *work)
{
	release(container_of(work, struct touched_page, work));
}

/* The fault holds locks under which the last reference to an inode must not be dropped. */
static void release_later(struct touched_page *page)
{
	INIT_WORK(&page->work, release_in_worker);
	queue_work(system_unbound_wq, &page->work);
}

static void unmap(const struct touched_page *page)
{
	unmap_mapping_pages(page->mapping, page->index, 1, false);
}

static bool is_among_last(const struct address_space *mapping, pgoff_t index)
{
	const struct touched_page *page;

	list_for_each_entry(page, &touches.pages, node)
		if (page->mapping == mapping && page->index == index)
			return true;
	return false;
}

static struct touched_page *take_oldest(void)
{
	struct touched_page *page = list_first_entry(&touches.pages, struct touched_page, node);

	list_del(&page->node);
	touches.count--;
	return page;
}

/**
 * page_touch_mapped - record that a fault has mapped a page
 * @vma: a mapping for which page_touch_watches() is true
 * @index: of the page in the file
 *
 * What is mapped is always recorded afterwards, and what drops out of the last
 * pages is always unmapped afterwards. So whatever happens at the same time, a
 * page is not left mapped without being one of them.
 *
 * The caller may hold the folio's lock, but no spinlock.
 */
void page_touch_mapped(const struct vm_area_struct *vma, pgoff_t index)
{
	struct file *file = vma->vm_file;
	struct touched_page *page, *unused, *oldest = NULL;

	/* Writeback may wait for the folio, and reclaim through a file system for writeback. */
	page = kmalloc(sizeof(*page), GFP_NOFS | __GFP_NOFAIL);
	page->path = file->f_path;
	path_get(&page->path);
	page->mapping = file->f_mapping;
	page->index = index;
	unused = page;

	spin_lock(&touches.lock);
	if (touches.window) {
		trace_page_touch(page->mapping->host, index, touches.seq++);
		if (!is_among_last(page->mapping, index)) {
			if (touches.count == touches.window)
				oldest = take_oldest();
			list_add_tail(&page->node, &touches.pages);
			touches.count++;
			unused = NULL;
		}
	}
	spin_unlock(&touches.lock);

	/* Not the last reference: the mapping has a file. */
	if (unused)
		release(unused);
	if (!oldest)
		return;
	unmap(oldest);
	if (path_equal(&oldest->path, &file->f_path))
		release(oldest);
	else
		release_later(oldest);
}

/* Unmap all, so that what is switched on next sees each of them again. */
static void forget_all(void)
{
	struct touched_page *page;

	for (;;) {
		spin_lock(&touches.lock);
		page = touches.count ? take_oldest() : NULL;
		spin_unlock(&touches.lock);
		if (!page)
			return;
		unmap(page);
		release(page);
	}
}

static void set_window(unsigned int window)
{
	spin_lock(&touches.lock);
	touches.window = window;
	touches.seq = 0;
	spin_unlock(&touches.lock);
}

static int window_get(void *data, u64 *value)
{
	*value = READ_ONCE(touches.window);
	return 0;
}

static int window_set(void *data, u64 value)
{
	if (value && (value < PAGE_TOUCH_LEAST || value > PAGE_TOUCH_MOST))
		return -EINVAL;

	mutex_lock(&page_touch_mutex);
	/* The key comes first and goes last, so that it is no part of the order. */
	if (value)
		static_branch_enable(&page_touch_on);
	set_window(0);
	forget_all();
	set_window(value);
	if (!value)
		static_branch_disable(&page_touch_on);
	mutex_unlock(&page_touch_mutex);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(window_fops, window_get, window_set, "%llu\n");

static int device_get(void *data, u64 *value)
{
	*value = new_encode_dev(READ_ONCE(page_touch_device));
	return 0;
}

static int device_set(void *data, u64 value)
{
	if (value > U32_MAX)
		return -EINVAL;
	WRITE_ONCE(page_touch_device, new_decode_dev(value));
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(device_fops, device_get, device_set, "%llu\n");

static int __init page_touch_init(void)
{
	struct dentry *directory = debugfs_create_dir("page_touch", NULL);

	debugfs_create_file_unsafe("window", 0600, directory, NULL,
				   &window_fops);
	debugfs_create_file_unsafe("device", 0600, directory, NULL,
				   &device_fops);
	return 0;
}
late_initcall(page_touch_init);
