// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the adaptive window knows of open files: allocated by the first miss that asks
 * for it, charged to whoever missed, freed with the file or under memory pressure.
 */
#include <linux/backing-dev.h>
#include <linux/init.h>
#include <linux/list_lru.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "mmap_readahead_file.h"

struct mmap_readahead_file mmap_readahead_program;

static struct kmem_cache *known_files;
static struct list_lru known_files_lru;

static struct backing_dev_info *device_of(const struct mmap_readahead_file *known)
{
	return inode_to_bdi(known->file->f_mapping->host);
}

/* Have the device count a file of so many pages, for which so much was paid. */
static void count_file(struct mmap_readahead_file *known, unsigned long pages,
		       unsigned long paid)
{
	struct backing_dev_info *bdi = device_of(known);

	if (pages != known->pages)
		atomic_long_add(pages - known->pages, &bdi->mmap_readahead_pages);
	if (paid != known->paid)
		atomic_long_add(paid - known->paid, &bdi->mmap_readahead_paid);
	known->pages = pages;
	known->paid = paid;
}

/* It is locked, and on no list any more. Faults may be about to lock it still. */
static void forget(struct mmap_readahead_file *known)
{
	count_file(known, 0, 0);
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
 * @miss: what other files of the device have to do with it is added
 * @gfp: how to get memory if nothing is known yet
 *
 * Return: NULL if another thread decides just now, or there is no memory. Else
 * mmap_readahead_unlock() has to follow, and nothing may sleep before.
 */
struct mmap_readahead_state *mmap_readahead_trylock(struct file *file,
						    struct mmap_readahead_miss *miss,
						    gfp_t gfp)
{
	struct mmap_readahead_file *known;
	struct backing_dev_info *bdi;

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
	bdi = device_of(known);
	count_file(known, miss->file_pages, known->paid);
	miss->others_pages = atomic_long_read(&bdi->mmap_readahead_pages) - known->pages;
	miss->others_paid = atomic_long_read(&bdi->mmap_readahead_paid) - known->paid;
	return &known->state;
out:
	rcu_read_unlock();
	return NULL;
}

void mmap_readahead_unlock(struct mmap_readahead_state *state)
{
	struct mmap_readahead_file *known =
		container_of(state, struct mmap_readahead_file, state);

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
	/* The file is there as long as this is listed, but may have become a program. */
	unrcu_pointer(cmpxchg(&known->file->f_mmap_readahead, RCU_INITIALIZER(known),
			      NULL));
	list_lru_isolate(list, item);
	forget(known);
	return LRU_REMOVED;
}

static unsigned long count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return list_lru_shrink_count(&known_files_lru, sc);
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
