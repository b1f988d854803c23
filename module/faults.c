// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a fault to what it reads. When a fault is about to read ahead, all that the kernel
 * passes on is the window around its page, which begins at page 0 for many pages. So each
 * fault leaves its page in a slot of its task before.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "devices.h"
#include "faults.h"
#include "groups.h"
#include "known_files.h"

/* A slot matters for the microseconds from a fault's begin to its read. Tests have one only. */
#ifndef SLOT_BITS
#define SLOT_BITS	10
#endif

/* What faults map around themselves, as all kernels have it unless debugfs changes it. */
#define FAULT_AROUND_SHIFT	(16 - PAGE_SHIFT)

/*
 * Faults of a task, one in LOOK_EVERY, are looked at: is their page missing? If so many that
 * were are not followed by a read, the kernel reads for them by other ways. One that waits
 * faults twice, so that an even number might look at the second time only.
 */
#define LOOK_EVERY	5
#define MOST_UNREAD	64

/**
 * struct slot - the last fault of a task
 * @lock: of the slot; nobody waits for it
 * @task: whose it is; only to be compared
 * @file: what is mapped; only to be compared, for it may be closed
 * @index: the page
 * @mark: page of the readahead mark that the fault has come to
 * @marked: the read for that mark, if it has come to one; only to be compared
 * @adapts: it may still read
 * @writes: the mapping can write to the file
 * @nr_adaptive: faults that might
 * @nr_unread: of those that were looked at, how many missed since one was read for
 * @arriving: of the file, if what @answer asked for is not in the page cache yet; only to be
 *	compared
 * @answer: what was read for the fault
 */
struct slot {
	spinlock_t lock;	/* of the slot */
	const struct task_struct *task;
	const struct file *file;
	pgoff_t index;
	pgoff_t mark;
	const struct readahead_control *marked;
	bool adapts;
	bool writes;
	unsigned int nr_adaptive;
	unsigned int nr_unread;
	const struct address_space *arriving;
	struct mmap_readahead_answer answer;
};

static struct slot slots[1 << SLOT_BITS];

static unsigned long pages_of(const struct address_space *mapping)
{
	return DIV_ROUND_UP(i_size_read(mapping->host), PAGE_SIZE);
}

void faults_init(void)
{
	struct slot *slot;

	for (slot = slots; slot < slots + ARRAY_SIZE(slots); slot++)
		spin_lock_init(&slot->lock);
}

static struct slot *slot_of_current(void)
{
	return &slots[SLOT_BITS ? hash_ptr(current, SLOT_BITS) : 0];
}

/* Will the kernel read for a fault, unless its page comes meanwhile? */
static bool has_to_read(const struct file *file, pgoff_t index)
{
	struct address_space *mapping = file->f_mapping;
	const void *entry;

	if (!READ_ONCE(file->f_ra.ra_pages) || index >= pages_of(mapping))
		return false;
	entry = xa_load(&mapping->i_pages, index);
	return !entry || xa_is_value(entry);
}

/* With the slot's lock. Return: false if too many faults were not read for. */
static bool check_read(struct slot *slot, const struct file *file)
{
	if (++slot->nr_adaptive % LOOK_EVERY || !has_to_read(file, slot->index))
		return true;
	if (++slot->nr_unread < MOST_UNREAD)
		return true;
	/* Whoever has them adapt again begins anew. */
	slot->nr_unread = 0;
	return false;
}

bool fault_begins(struct vm_fault *vmf, bool adaptive)
{
	const vm_flags_t hints = VM_EXEC | VM_RAND_READ | VM_SEQ_READ | VM_HUGEPAGE;
	struct vm_area_struct *vma = vmf->vma;
	struct file *file = vma->vm_file;
	bool adapts = adaptive && !(vma->vm_flags & hints) &&
		      device_adapts(file->f_mapping->host) && group_adapts() &&
		      !known_file_is_program(file);
	struct slot *slot = slot_of_current();
	bool read;

	/* It was mapped before the module came. */
	if (vma->vm_flags & VM_EXEC)
		known_file_set_program(file);

	if (!spin_trylock(&slot->lock))
		return true;
	/* A task that faults again, or anybody later, has seen the read return. */
	if (slot->arriving)
		known_file_arrived(slot->arriving, &slot->answer);
	slot->task = current;
	slot->file = file;
	slot->index = vmf->pgoff;
	slot->adapts = adapts;
	slot->writes = (vma->vm_flags & (VM_SHARED | VM_WRITE)) == (VM_SHARED | VM_WRITE);
	slot->marked = NULL;
	slot->arriving = NULL;
	read = !adapts || check_read(slot, file);
	spin_unlock(&slot->lock);

	/* Otherwise the kernel stops to read ahead, and nobody is asked. */
	if (adapts && read && READ_ONCE(file->f_ra.mmap_miss))
		WRITE_ONCE(file->f_ra.mmap_miss, 0);
	return read;
}

void fault_at_mark(const struct readahead_control *ractl, const struct folio *folio)
{
	struct slot *slot = slot_of_current();

	if (!spin_trylock(&slot->lock))
		return;
	if (slot->task == current && slot->adapts && slot->file == ractl->file &&
	    slot->index == readahead_index((struct readahead_control *)ractl)) {
		slot->marked = ractl;
		/* Nothing of a large folio was used yet: look before it. */
		slot->mark = folio->index;
	}
	spin_unlock(&slot->lock);
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
		page = entry_mapped(&xas, folio) ? MMAP_READAHEAD_USED :
						   MMAP_READAHEAD_CACHED;
	rcu_read_unlock();
	return page;
}

/* Begun inside a large folio, page_cache_next_miss() would count wrongly. */
static unsigned long next_miss(const void *cache, unsigned long index, unsigned long most)
{
	XA_STATE(xas, &((struct address_space *)cache)->i_pages, index);
	unsigned long end = index + most;
	struct folio *folio;

	rcu_read_lock();
	xas_for_each(&xas, folio, end - 1) {
		if (xas_retry(&xas, folio))
			continue;
		if (xa_is_value(folio) || xas.xa_index > index)
			break;
		index = (xas.xa_index | (BIT(xa_get_order(xas.xa, xas.xa_index)) - 1)) + 1;
	}
	rcu_read_unlock();
	return min(index, end);
}

/* The facts that the policy judges, but for the page and memory. */
static void describe(const struct readahead_control *ractl, pgoff_t index,
		     struct device_facts *device, struct mmap_readahead_miss *miss)
{
	struct address_space *mapping = ractl->mapping;

	*miss = (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = pages_of(mapping),
		.cached_pages = READ_ONCE(mapping->nrpages),
		/* fadvise() may set it to none meanwhile. */
		.max_pages = clamp(READ_ONCE(ractl->ra->ra_pages), 1, SZ_1G >> PAGE_SHIFT),
		.request_pages = device_request_pages(device, mapping->host),
		.max_order = mapping_max_folio_order(mapping),
		.block_shift = FAULT_AROUND_SHIFT,
		.look = look,
		.next_miss = next_miss,
		.cache = mapping,
	};
}

/* Is this the window around some page, which misses in mapped files read? */
static bool looks_around(const struct file_ra_state *ra)
{
	return ra->size == ra->ra_pages && ra->async_size == ra->ra_pages / 4;
}

/* A miss that has no slot to tell its page; who reads by other means counts no misses. */
static void count_lost(const struct readahead_control *ractl)
{
	struct inode *inode = ractl->mapping->host;

	if (looks_around(ractl->ra) && READ_ONCE(ractl->ra->mmap_miss) && device_adapts(inode) &&
	    group_adapts())
		device_count(device_of(inode), FAULT_LOST, 1);
}

/*
 * Is it the one around this page? Threads share what the file says, and may have changed
 * it since, but not where the read begins. When a file is read(), both say the same.
 */
static bool is_around(const struct readahead_control *ractl, pgoff_t index)
{
	const struct file_ra_state *ra = ractl->ra;
	pgoff_t start = readahead_index((struct readahead_control *)ractl);

	return start == max_t(long, 0, index - ra->ra_pages / 2) &&
	       (looks_around(ra) || ra->start != start);
}

/* Both return false if the kernel is to read what it was about to. */

static bool adapt(struct slot *slot, struct mmap_readahead_miss *miss, struct device_facts *device)
{
	struct mmap_readahead_state *state = known_file_lock(miss->cache);

	if (!state) {
		device_count(device, FAULT_UNKNOWN, 1);
		return false;
	}
	if (!mmap_readahead_settled(state, miss, &slot->answer)) {
		miss->page = look(miss->cache, miss->index);
		miss->memory_pages = known_file_memory(state);
		mmap_readahead_adapt(state, miss, &slot->answer);
	}
	known_file_unlock(state);
	device_count(device, FAULT_MISSES, 1);
	device_count(device, FAULT_AHEAD, slot->answer.size - 1);
	return true;
}

static bool read_on(struct slot *slot, struct mmap_readahead_miss *mark,
		    struct device_facts *device)
{
	struct mmap_readahead_state *state = known_file_lock(mark->cache);
	bool ours;

	if (!state)
		return false;
	mark->memory_pages = known_file_memory(state);
	ours = mmap_readahead_mark(state, mark, &slot->answer);
	known_file_unlock(state);
	/* It is of somebody who read() the file. */
	if (!ours)
		return false;
	if (slot->answer.size) {
		device_count(device, FAULT_MARKS, 1);
		device_count(device, FAULT_AHEAD, slot->answer.size);
	}
	return true;
}

/* Replace what is to be read. Behind the end of the file there is nothing. */
static void rewrite(struct readahead_control *ractl, struct file_ra_state *ra,
		    const struct mmap_readahead_answer *answer, pgoff_t end)
{
	if (!answer->size) {
		ractl->_index = end;
		return;
	}
	ra->start = answer->start;
	ra->size = answer->size;
	ra->async_size = answer->async_size;
	set_order(ra, answer->order);
	ractl->_index = answer->start;
}

void fault_reads(struct readahead_control *ractl, struct file_ra_state *ra)
{
	struct slot *slot = slot_of_current();
	struct mmap_readahead_miss miss;
	struct device_facts *device;
	bool marked;

	/* Headers do not tell whether the arguments are what they are meant to be. */
	if (!object_is_on_stack(ractl) || ractl->ra != ra || !ra || !ra->ra_pages)
		return;
	if (!spin_trylock(&slot->lock)) {
		count_lost(ractl);
		return;
	}
	if (slot->task != current)
		count_lost(ractl);
	if (slot->task != current || !slot->adapts || slot->file != ractl->file ||
	    ra != &ractl->file->f_ra)
		goto out;
	marked = slot->marked == ractl;
	/* A sign of life also where @ra has the place of another miss of this open file. */
	if (!marked)
		slot->nr_unread = 0;
	device = device_of(ractl->mapping->host);
	describe(ractl, marked ? slot->mark : slot->index, device, &miss);
	miss.writes = slot->writes;
	if (miss.index >= miss.file_pages || !(marked || is_around(ractl, miss.index)))
		goto out;
	slot->adapts = false;
	if (!(marked ? read_on(slot, &miss, device) : adapt(slot, &miss, device)))
		goto out;
	rewrite(ractl, ra, &slot->answer, miss.file_pages);
	if (slot->answer.size > 1)
		slot->arriving = ractl->mapping;
out:
	spin_unlock(&slot->lock);
}
