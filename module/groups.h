/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose misses adapt, by control group. Nothing here sleeps. */
#ifndef MODULE_GROUPS_H
#define MODULE_GROUPS_H

#include <linux/jump_label.h>

DECLARE_STATIC_KEY_FALSE(groups_named);

bool named_group_adapts(void);

/**
 * group_adapts - whether misses may adapt of the task that runs
 *
 * Return: true in all control groups, unless some are named.
 */
static inline bool group_adapts(void)
{
	return !static_branch_unlikely(&groups_named) || named_group_adapts();
}

#endif /* MODULE_GROUPS_H */
