// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the adaptive window knows of a file. The first miss allocates it. It goes with the
 * inode, and no control group is charged for it: the one that misses could not get rid of an
 * inode that others have.
 */
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/time64.h>
#include <linux/vmstat.h>

#include "mmap_readahead_file.h"

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

/* The task's control group, only to be compared. */
static const void *current_group(void)
{
	const void *group;

	rcu_read_lock();
	group = mem_cgroup_from_task(current);
	rcu_read_unlock();
	return group;
}
#else
static unsigned long group_pages(void)
{
	return ULONG_MAX;
}

static const void *current_group(void)
{
	return NULL;
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
 * What a request costs is what the disk could read meanwhile. How fast it reads is not
 * measured: 256 MB/s are taken for it, a KiB in 4 us, beyond a wait of a millisecond. Disks and
 * volumes that answer sooner are taken to be worth 128 KiB a request. A price twice too high or
 * too low costs a few percent of the time.
 */
#define LEAST_REQUEST_KB	128U
#define LEAST_WAIT_US		1000U
#define WAIT_US_PER_KB		4U
/* Until a file has waited for it, a disk with a head is taken to answer in so much. */
#define ROTATING_WAIT_US	5000U
/* Beyond that, a wait is one for other requests. */
#define MOST_REQUEST_KB		4096U
/* A wait moves their average so much of the way. */
#define WAIT_SHARE		8

static struct kmem_cache *known_files __ro_after_init;

static int __init mmap_readahead_file_init(void)
{
	known_files = KMEM_CACHE(mmap_readahead_file, SLAB_PANIC | SLAB_RECLAIM_ACCOUNT);
	return 0;
}
core_initcall(mmap_readahead_file_init);

/*
 * Does the disk under the file say that it rotates? A file system on several disks may lose the
 * one that it names while it is mounted: only one that it has opened as its own is there to ask.
 */
static bool rotates(const struct address_space *mapping)
{
	const struct super_block *sb = mapping->host->i_sb;

	return sb->s_bdev_file &&
	       bdev_get_queue(sb->s_bdev)->limits.features & BLK_FEAT_ROTATIONAL;
}

/* Begin to know a file, unless another thread just did. Returns NULL without memory. */
static struct mmap_readahead_file *remember(struct address_space *mapping, gfp_t gfp)
{
	struct mmap_readahead_file *known, *others;

	known = kmem_cache_zalloc(known_files, gfp | __GFP_NORETRY | __GFP_NOWARN);
	if (!known)
		return NULL;
	spin_lock_init(&known->lock);
	known->wait_us = rotates(mapping) ? ROTATING_WAIT_US : LEAST_WAIT_US;
	others = cmpxchg(&mapping->mmap_readahead, NULL, known);
	if (!others)
		return known;
	kmem_cache_free(known_files, known);
	return others;
}

/**
 * mmap_readahead_known - what is known of a file
 * @mapping: of the file, which somebody has open
 * @gfp: how to get memory if nothing is known yet
 *
 * Return: that, for as long as the file is open; NULL without memory.
 */
struct mmap_readahead_file *mmap_readahead_known(struct address_space *mapping, gfp_t gfp)
{
	return READ_ONCE(mapping->mmap_readahead) ?: remember(mapping, gfp);
}

/* The last answer on a processor. */
struct told_memory {
	unsigned long pages;
	const void *group;	/* only to be compared */
	unsigned long when;	/* in jiffies */
};

static DEFINE_PER_CPU(struct told_memory, told_memory);

/**
 * mmap_readahead_memory - how many pages of files memory can hold
 *
 * To work that out takes a hundred instructions, more where there are many nodes. It changes
 * slowly.
 *
 * Return: pages, for the task's control group.
 */
unsigned long mmap_readahead_memory(void)
{
	struct told_memory told = get_cpu_var(told_memory);
	const void *group = current_group();

	put_cpu_var(told_memory);
	if (!told.pages || told.group != group ||
	    !time_in_range(jiffies, told.when, told.when + HZ / 8)) {
		told.pages = max(memory_pages(), 1UL);
		told.group = group;
		told.when = jiffies;
		get_cpu_var(told_memory) = told;
		put_cpu_var(told_memory);
	}
	return told.pages;
}

/**
 * mmap_readahead_request_kb - what a request costs, as far as it is known
 * @known: what mmap_readahead_known() returned, with its lock
 *
 * Return: KiB that the device could read instead.
 */
unsigned int mmap_readahead_request_kb(const struct mmap_readahead_file *known)
{
	unsigned int beyond = max(known->wait_us, LEAST_WAIT_US) - LEAST_WAIT_US;

	return min(LEAST_REQUEST_KB + beyond / WAIT_US_PER_KB, MOST_REQUEST_KB);
}

/**
 * mmap_readahead_waited - a fault has waited for its page, and no other one did at its begin or end
 * @known: what mmap_readahead_known() returned, with its lock
 * @kb: of the read that had the page
 * @ns: for so many nanoseconds
 *
 * What the KiB themselves take is left out, at the price that is known so far.
 */
void mmap_readahead_waited(struct mmap_readahead_file *known, unsigned int kb, u64 ns)
{
	unsigned int request_kb = mmap_readahead_request_kb(known);
	unsigned int most = LEAST_WAIT_US + MOST_REQUEST_KB * WAIT_US_PER_KB;
	unsigned int us = min_t(u64, div_u64(ns, NSEC_PER_USEC), most);

	us = mult_frac(us, request_kb, request_kb + kb);
	if (known->measured) {
		known->wait_us += ((int)us - (int)known->wait_us) / WAIT_SHARE;
		return;
	}
	known->measured = true;
	known->wait_us = us;
	/* If no miss knew that, the next one begins anew, with what is worth reading here. */
	if (ilog2(mmap_readahead_request_kb(known)) != ilog2(request_kb))
		known->state.ahead.patience = 0;
}
