// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for mapped files: its switches, and the facts that its policy in
 * <linux/mmap_readahead_policy.h> judges.
 */
#include <linux/jump_label.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/sysfs.h>

#include "mmap_readahead.h"

#define CREATE_TRACE_POINTS
#include <trace/events/mmap_readahead.h>

#define ALL_HIT_RULES (MMAP_READAHEAD_HIT_NEEDS_ADDRESS | \
		       MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY | \
		       MMAP_READAHEAD_HIT_NEEDS_UNLOCKED)

/* Off exactly when hit_rules is 0, so that faults then run the stock code. */
DEFINE_STATIC_KEY_TRUE(mmap_readahead_any_hit_rule);

/*
 * Set of enum mmap_readahead_hit_rule. Written under hit_rules_lock; a fault
 * that races with a change may count for less than under either set.
 */
static unsigned int hit_rules __read_mostly = ALL_HIT_RULES;

unsigned int __mmap_readahead_hits_around(const struct vm_fault *vmf,
					  unsigned int nr_pages,
					  bool at_address)
{
	/* Mapping around skips locked folios, so none of these is. */
	const struct mmap_readahead_hit hit = {
		.nr_pages = nr_pages,
		.at_address = at_address,
		.retried = vmf->flags & FAULT_FLAG_TRIED,
	};

	return mmap_readahead_credit(READ_ONCE(hit_rules), &hit);
}

bool __mmap_readahead_hit_found(const struct folio *folio)
{
	const struct mmap_readahead_hit hit = {
		.nr_pages = 1,
		.at_address = true,
		.locked = folio_test_locked(folio),
	};

	return mmap_readahead_credit(READ_ONCE(hit_rules), &hit);
}

#ifdef CONFIG_SYSFS
static DEFINE_MUTEX(hit_rules_lock);

struct hit_rule_attribute {
	struct kobj_attribute attr;
	enum mmap_readahead_hit_rule rule;
};

static ssize_t hit_rule_show(struct kobject *kobj, struct kobj_attribute *attr,
			     char *buf)
{
	const struct hit_rule_attribute *hit =
		container_of(attr, struct hit_rule_attribute, attr);

	return sysfs_emit(buf, "%d\n", !!(READ_ONCE(hit_rules) & hit->rule));
}

static ssize_t hit_rule_store(struct kobject *kobj, struct kobj_attribute *attr,
			      const char *buf, size_t count)
{
	const struct hit_rule_attribute *hit =
		container_of(attr, struct hit_rule_attribute, attr);
	unsigned int rules;
	bool on;
	int err;

	err = kstrtobool(buf, &on);
	if (err)
		return err;

	mutex_lock(&hit_rules_lock);
	rules = on ? hit_rules | hit->rule : hit_rules & ~hit->rule;
	WRITE_ONCE(hit_rules, rules);
	if (rules)
		static_branch_enable(&mmap_readahead_any_hit_rule);
	else
		static_branch_disable(&mmap_readahead_any_hit_rule);
	mutex_unlock(&hit_rules_lock);

	return count;
}

static struct hit_rule_attribute hit_needs_address = {
	.attr = __ATTR(hit_needs_address, 0644, hit_rule_show, hit_rule_store),
	.rule = MMAP_READAHEAD_HIT_NEEDS_ADDRESS,
};

static struct hit_rule_attribute hit_needs_first_try = {
	.attr = __ATTR(hit_needs_first_try, 0644, hit_rule_show, hit_rule_store),
	.rule = MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY,
};

static struct hit_rule_attribute hit_needs_unlocked = {
	.attr = __ATTR(hit_needs_unlocked, 0644, hit_rule_show, hit_rule_store),
	.rule = MMAP_READAHEAD_HIT_NEEDS_UNLOCKED,
};

static struct attribute *mmap_readahead_attrs[] = {
	&hit_needs_address.attr.attr,
	&hit_needs_first_try.attr.attr,
	&hit_needs_unlocked.attr.attr,
	NULL,
};

static const struct attribute_group mmap_readahead_attr_group = {
	.name = "mmap_readahead",
	.attrs = mmap_readahead_attrs,
};

static int __init mmap_readahead_init(void)
{
	int err = sysfs_create_group(mm_kobj, &mmap_readahead_attr_group);

	if (err)
		pr_err("mmap_readahead: no switches in sysfs: %d\n", err);
	return err;
}
subsys_initcall(mmap_readahead_init);
#endif /* CONFIG_SYSFS */
