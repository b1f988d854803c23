// SPDX-License-Identifier: GPL-2.0-only
/*
 * The age of what is mapped around a fault: the switch
 * /sys/kernel/debug/mmap_readahead/old_prefaulted_ptes.
 */
#include <linux/debugfs.h>
#include <linux/init.h>

#include "mmap_readahead.h"
#include "prefault_age.h"

DEFINE_STATIC_KEY_FALSE(prefaulted_ptes_flipped);

#ifdef CONFIG_MMAP_READAHEAD_DEBUG
static int old_prefaulted_ptes_get(void *unused, u64 *old)
{
	*old = prefaulted_ptes_are_old();
	return 0;
}

static int old_prefaulted_ptes_set(void *unused, u64 old)
{
	if (old > 1)
		return -EINVAL;

	if (old != arch_wants_old_prefaulted_pte())
		static_branch_enable(&prefaulted_ptes_flipped);
	else
		static_branch_disable(&prefaulted_ptes_flipped);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(old_prefaulted_ptes_fops, old_prefaulted_ptes_get,
			 old_prefaulted_ptes_set, "%llu\n");

static int __init prefault_age_init(void)
{
	debugfs_create_file_unsafe("old_prefaulted_ptes", 0644,
				   mmap_readahead_debugfs_dir, NULL,
				   &old_prefaulted_ptes_fops);
	return 0;
}
late_initcall(prefault_age_init);
#endif /* CONFIG_MMAP_READAHEAD_DEBUG */
