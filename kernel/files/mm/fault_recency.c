// SPDX-License-Identifier: GPL-2.0-only
/*
 * What pages earn that faults bring in or map: the switch
 * /sys/kernel/mm/lru_gen/fault_folios.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "fault_recency.h"

#ifdef CONFIG_LRU_GEN
enum fault_folios fault_folios __read_mostly = FAULT_FOLIOS_ACTIVE;

DEFINE_STATIC_KEY_FALSE(fault_folios_mapped);

/* Keeps setting and key together. */
static DEFINE_MUTEX(fault_folios_lock);

static const char * const fault_folios_names[NR_FAULT_FOLIOS] = {
	[FAULT_FOLIOS_ACTIVE] = "active",
	[FAULT_FOLIOS_ACCESSED] = "accessed",
	[FAULT_FOLIOS_MAPPED] = "mapped",
};

static ssize_t fault_folios_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	unsigned int i, setting = READ_ONCE(fault_folios);
	int len = 0;

	for (i = 0; i < NR_FAULT_FOLIOS; i++)
		len += sysfs_emit_at(buf, len,
				     i == setting ? "%s[%s]" : "%s%s",
				     i ? " " : "", fault_folios_names[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t fault_folios_store(struct kobject *kobj,
				  struct kobj_attribute *attr, const char *buf,
				  size_t count)
{
	int setting = sysfs_match_string(fault_folios_names, buf);

	if (setting < 0)
		return setting;

	mutex_lock(&fault_folios_lock);
	WRITE_ONCE(fault_folios, setting);
	if (setting == FAULT_FOLIOS_MAPPED)
		static_branch_enable(&fault_folios_mapped);
	else
		static_branch_disable(&fault_folios_mapped);
	mutex_unlock(&fault_folios_lock);

	return count;
}

/* One of the files of lru_gen, which mm/vmscan.c makes. */
struct kobj_attribute lru_gen_fault_folios_attr =
	__ATTR(fault_folios, 0644, fault_folios_show, fault_folios_store);
#endif /* CONFIG_LRU_GEN */
