// SPDX-License-Identifier: GPL-2.0-only
/* How many pages of files memory can hold. */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_counter.h>
#include <linux/vmstat.h>

#include "memory.h"

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
		lruvec = &memcg->nodeinfo[node]->lruvec;
		for (zone = 0; zone < MAX_NR_ZONES; zone++) {
			pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_INACTIVE_FILE, zone);
			pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_ACTIVE_FILE, zone);
			pages += pages_of_generations(lruvec, zone);
		}
	}
	return pages;
}

const void *current_group(void)
{
	const void *group;

	rcu_read_lock();
	group = mem_cgroup_disabled() ? NULL : mem_cgroup_from_task(current);
	rcu_read_unlock();
	return group;
}

/*
 * The least that the task's control group and those above it have room for, besides the
 * pages of files that it has. What other groups below those above could give back is not
 * counted: a module cannot ask for it.
 */
static unsigned long group_pages(void)
{
	unsigned long used, limit, files = 0, pages = ULONG_MAX;
	struct mem_cgroup *memcg, *parent;

	rcu_read_lock();
	memcg = mem_cgroup_disabled() ? NULL : mem_cgroup_from_task(current);
	for (; memcg && (parent = parent_mem_cgroup(memcg)); memcg = parent) {
		limit = min(READ_ONCE(memcg->memory.max), READ_ONCE(memcg->memory.high));
		if (limit == PAGE_COUNTER_MAX)
			continue;
		if (!files)
			files = file_pages_of(mem_cgroup_from_task(current));
		used = page_counter_read(&memcg->memory);
		pages = min(pages, files + (limit > used ? limit - used : 0));
	}
	rcu_read_unlock();
	return pages;
}
#else
const void *current_group(void)
{
	return NULL;
}

static unsigned long group_pages(void)
{
	return ULONG_MAX;
}
#endif

unsigned long file_memory_pages(void)
{
	unsigned long pages = global_zone_page_state(NR_FREE_PAGES) +
			      global_node_page_state(NR_ACTIVE_FILE) +
			      global_node_page_state(NR_INACTIVE_FILE);

	return max(min(pages, group_pages()), 1UL);
}
