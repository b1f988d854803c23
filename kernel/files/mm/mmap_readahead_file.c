// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the adaptive window knows of open files: allocated by the first miss that asks
 * for it, charged to whoever missed, freed with the file or under memory pressure.
 */
#include <linux/backing-dev.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/list_lru.h>
#include <linux/memcontrol.h>
#include <linux/pagemap.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "mmap_readahead_file.h"

struct mmap_readahead_file mmap_readahead_program;

static struct kmem_cache *known_files;
static struct list_lru known_files_lru;

#ifdef CONFIG_MEMCG
/* Pages of files on the lists of the multi-generational LRU, which counts by itself. */
static unsigned long pages_of_generations(const struct lruvec *lruvec, int zone)
{
	unsigned long pages = 0;
#ifdef CONFIG_LRU_GEN
	int gen;

	/* One may be below zero for a moment. */
	for (gen = 0; gen < MAX_NR_GENS; gen++)
		pages += max(READ_ONCE(lruvec->lrugen.nr_pages[gen][LRU_GEN_FILE][zone]), 0L);
#endif
	return pages;
}

/* Pages of files that a control group has, without those of its children. */
static unsigned long file_pages_of(struct mem_cgroup *memcg)
{
	unsigned long pages = 0;
	struct lruvec *lruvec;
	int node, zone;

	for_each_node_state(node, N_MEMORY) {
		lruvec = mem_cgroup_lruvec(memcg, NODE_DATA(node));
		for (zone = 0; zone < MAX_NR_ZONES; zone++) {
			pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_INACTIVE_FILE, zone);
			pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_ACTIVE_FILE, zone);
			pages += pages_of_generations(lruvec, zone);
		}
	}
	return pages;
}

/*
 * The same of the task's control group and of each above it, and what they have room
 * for: the least of all. Those above have pages of other groups as well, which can go;
 * the statistics tell of them some seconds late.
 */
static unsigned long group_pages(void)
{
	unsigned long used, limit, files, pages = ULONG_MAX;
	struct mem_cgroup *memcg, *parent;

	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	for (parent = memcg; parent && !mem_cgroup_is_root(parent);
	     parent = parent_mem_cgroup(parent)) {
		used = page_counter_read(&parent->memory);
		limit = min(READ_ONCE(parent->memory.max),
			    READ_ONCE(parent->memory.high));
		if (parent == memcg)
			files = file_pages_of(memcg);
		else
			files = max(files, memcg_page_state(parent, NR_INACTIVE_FILE) +
					   memcg_page_state(parent, NR_ACTIVE_FILE));
		pages = min(pages, files + (limit > used ? limit - used : 0));
	}
	rcu_read_unlock();
	return pages;
}
#else
static unsigned long group_pages(void)
{
	return ULONG_MAX;
}
#endif

/*
 * How many pages of files memory can hold: those that it has, and what is free. What
 * anonymous pages could leave to them is not counted.
 */
static unsigned long memory_pages(void)
{
	unsigned long pages = global_zone_page_state(NR_FREE_PAGES) +
			      global_node_page_state(NR_ACTIVE_FILE) +
			      global_node_page_state(NR_INACTIVE_FILE);

	return min(pages, group_pages());
}

/*
 * Have the device and the file count so many pages that this open file stands for, and
 * what was paid through it.
 */
static void count_file(struct mmap_readahead_file *known, unsigned long pages,
		       unsigned int paid)
{
	struct address_space *mapping = known->file->f_mapping;
	struct backing_dev_info *bdi = inode_to_bdi(mapping->host);

	if (pages != known->pages)
		atomic_long_add(pages - known->pages, &bdi->mmap_readahead_pages);
	if (known->pages && !pages)
		clear_bit(AS_MMAP_READAHEAD, &mapping->flags);
	/* Terabytes will do, and the sum must not wrap. */
	if (paid > known->paid && atomic_read(&mapping->mmap_readahead_paid) > INT_MAX / 2)
		paid = known->paid;
	if (paid != known->paid) {
		atomic_add(paid - known->paid, &mapping->mmap_readahead_paid);
		atomic_long_add((long)paid - known->paid, &bdi->mmap_readahead_paid);
	}
	known->pages = pages;
	known->paid = paid;
}

/* Among all that have opened a file one stands for its pages, so that it counts once. */
static bool stands_for_file(const struct mmap_readahead_file *known)
{
	unsigned long *flags = &known->file->f_mapping->flags;

	return known->pages || (!test_bit(AS_MMAP_READAHEAD, flags) &&
				!test_and_set_bit(AS_MMAP_READAHEAD, flags));
}

/* Have a file of so many pages counted, and tell what the device has besides. */
static void look_at_others(struct mmap_readahead_file *known,
			   struct mmap_readahead_miss *miss)
{
	struct address_space *mapping = known->file->f_mapping;
	struct backing_dev_info *bdi = inode_to_bdi(mapping->host);
	unsigned long pages;

	if (known->pages != miss->file_pages && stands_for_file(known))
		count_file(known, miss->file_pages, known->paid);

	pages = atomic_long_read(&bdi->mmap_readahead_pages);
	miss->others_pages = pages - min(pages, miss->file_pages);
	/* Others may be adding to only one of them yet, or taking off. */
	miss->file_paid = atomic_read(&mapping->mmap_readahead_paid);
	miss->others_paid = max(atomic_long_read(&bdi->mmap_readahead_paid) -
				(long)miss->file_paid, 0L);
}

/* It is locked, on no list, and counts no more. Faults may be about to lock it still. */
static void forget(struct mmap_readahead_file *known) __releases(&known->lock)
{
	known->file = NULL;
	spin_unlock(&known->lock);
	kfree_rcu(known, rcu);
}

/* Under RCU, for reclaim may have forgotten it since it was looked up. */
static void take_off(struct mmap_readahead_file *known)
{
	if (!known || known == &mmap_readahead_program ||
	    !list_lru_del_obj(&known_files_lru, &known->lru))
		return;
	spin_lock(&known->lock);
	count_file(known, 0, 0);
	forget(known);
}

/* Begin to know a file, unless another thread just did. Returns false without memory. */
static bool remember(struct file *file, gfp_t gfp)
{
	struct mmap_readahead_file *known;

	known = kmem_cache_alloc_lru(known_files, &known_files_lru,
				     gfp | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN);
	if (!known)
		return false;
	spin_lock_init(&known->lock);
	INIT_LIST_HEAD(&known->lru);
	known->file = file;

	spin_lock(&file->f_lock);
	if (rcu_access_pointer(file->f_mmap_readahead)) {
		kmem_cache_free(known_files, known);
	} else {
		/* In this order: reclaim may free it as soon as it is listed. */
		rcu_assign_pointer(file->f_mmap_readahead, known);
		list_lru_add_obj(&known_files_lru, &known->lru);
	}
	spin_unlock(&file->f_lock);
	return true;
}

/**
 * mmap_readahead_trylock - what is known of a file, to decide and to learn
 * @file: an open file, no program
 * @gfp: how to get memory if nothing is known yet
 *
 * Return: NULL if another thread decides just now, or there is no memory. Else
 * mmap_readahead_unlock() has to follow, and nothing may sleep before.
 */
struct mmap_readahead_state *mmap_readahead_trylock(struct file *file, gfp_t gfp)
{
	struct mmap_readahead_file *known;

	if (!rcu_access_pointer(file->f_mmap_readahead) && !remember(file, gfp))
		return NULL;

	rcu_read_lock();
	known = rcu_dereference(file->f_mmap_readahead);
	if (!known || known == &mmap_readahead_program || !spin_trylock(&known->lock))
		goto out;
	if (!known->file) {
		spin_unlock(&known->lock);
		goto out;
	}
	if (!known->in_use)
		WRITE_ONCE(known->in_use, true);
	/* mmap_readahead_unlock() does, but sparse does not look there. */
	__release(&known->lock);
	__release(RCU);
	return &known->state;
out:
	rcu_read_unlock();
	return NULL;
}

/**
 * mmap_readahead_look_around - what memory and other files have to do with a miss
 * @state: what mmap_readahead_trylock() returned
 * @miss: that is added
 */
void mmap_readahead_look_around(struct mmap_readahead_state *state,
				struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_file *known =
		container_of(state, struct mmap_readahead_file, state);

	/* It takes a hundred instructions to tell, and changes slowly. */
	if (!known->memory_pages || time_after(jiffies, known->memory_told + HZ / 8)) {
		known->memory_pages = max(memory_pages(), 1UL);
		known->memory_told = jiffies;
	}
	miss->memory_pages = known->memory_pages;
	look_at_others(known, miss);
}

void mmap_readahead_unlock(struct mmap_readahead_state *state)
{
	struct mmap_readahead_file *known =
		container_of(state, struct mmap_readahead_file, state);

	__acquire(RCU);
	__acquire(&known->lock);
	count_file(known, known->pages, state->paid);
	spin_unlock(&known->lock);
	rcu_read_unlock();
}

/**
 * mmap_readahead_arrived - what was to be read is in the page cache
 * @file: the file
 * @answer: what was to be read
 *
 * Without the lock: what other threads decide meanwhile may be undone, which makes one of
 * them read a page twice at worst.
 */
void mmap_readahead_arrived(struct file *file, const struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_file *known;

	rcu_read_lock();
	known = rcu_dereference(file->f_mmap_readahead);
	if (known && known != &mmap_readahead_program)
		mmap_readahead_submitted(&known->state, answer);
	rcu_read_unlock();
}

/**
 * mmap_readahead_set_program - a file is mapped as program text
 * @file: which stays a program as long as it is open
 */
void mmap_readahead_set_program(struct file *file)
{
	struct mmap_readahead_file *known;

	rcu_read_lock();
	spin_lock(&file->f_lock);
	known = rcu_replace_pointer(file->f_mmap_readahead, &mmap_readahead_program,
				    lockdep_is_held(&file->f_lock));
	spin_unlock(&file->f_lock);
	take_off(known);
	rcu_read_unlock();
}

void __mmap_readahead_release(struct file *file)
{
	rcu_read_lock();
	take_off(rcu_dereference(file->f_mmap_readahead));
	rcu_read_unlock();
}

static enum lru_status isolate(struct list_head *item, struct list_lru_one *list,
			       spinlock_t *lock, void *unused)
{
	struct mmap_readahead_file *known =
		list_entry(item, struct mmap_readahead_file, lru);

	if (READ_ONCE(known->in_use)) {
		WRITE_ONCE(known->in_use, false);
		return LRU_ROTATE;
	}
	if (!spin_trylock(&known->lock))
		return LRU_SKIP;
	/*
	 * As long as the file points here, fput() waits for the list's lock; after that it
	 * may be gone. It may be a program by now.
	 */
	count_file(known, 0, 0);
	unrcu_pointer(cmpxchg(&known->file->f_mmap_readahead, RCU_INITIALIZER(known),
			      NULL));
	list_lru_isolate(list, item);
	forget(known);
	return LRU_REMOVED;
}

static unsigned long count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return list_lru_shrink_count(&known_files_lru, sc) ?: SHRINK_EMPTY;
}

static unsigned long scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	return list_lru_shrink_walk(&known_files_lru, sc, isolate, NULL);
}

static int __init mmap_readahead_file_init(void)
{
	struct shrinker *shrinker;

	shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE | SHRINKER_MEMCG_AWARE,
				  "mmap_readahead");
	if (!shrinker || list_lru_init_memcg(&known_files_lru, shrinker))
		panic("mmap_readahead: no memory at boot\n");
	known_files = KMEM_CACHE(mmap_readahead_file,
				 SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT | SLAB_PANIC);
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return 0;
}
core_initcall(mmap_readahead_file_init);
