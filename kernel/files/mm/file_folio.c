// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control of the folio sizes that the page cache uses: file_enabled and the
 * counters stats/file_* of each size below
 * /sys/kernel/mm/transparent_hugepage/, and the boot parameter thp_file.
 */
#define pr_fmt(fmt) "thp_file: " fmt

#include <linux/bits.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include <asm/setup.h>

#include "file_folio.h"

struct file_folio_orders file_folio_orders __read_mostly = {
	.always = ~0UL,
#if defined(CONFIG_ARCH_EXEC_FOLIO_SHIFT) && \
	CONFIG_ARCH_EXEC_FOLIO_SHIFT > PAGE_SHIFT
	.exec = CONFIG_ARCH_EXEC_FOLIO_SHIFT - PAGE_SHIFT,
#else
	.exec = -1,
#endif
};

/* By order, of which a PMD has the largest. */
static DEFINE_PER_CPU(unsigned long [ilog2(MAX_PTRS_PER_PTE) + 1]
				     [NR_FILE_FOLIO_EVENTS], events);

/**
 * file_folio_count - count what became of a folio that readahead wanted
 * @order: its size; base pages are not counted
 * @event: what became of it
 */
void file_folio_count(unsigned int order, enum file_folio_event event)
{
	if (order)
		this_cpu_inc(events[order][event]);
}

/* The index is a set of enum file_folio_use. */
static const char * const use_names[] = {
	[FILE_FOLIO_NEVER] = "never",
	[FILE_FOLIO_ALWAYS] = "always",
	[FILE_FOLIO_EXEC] = "exec",
	[FILE_FOLIO_ALWAYS | FILE_FOLIO_EXEC] = "always+exec",
};

#ifdef CONFIG_SYSFS
static DEFINE_SPINLOCK(file_folio_lock);

static ssize_t file_enabled_show(struct kobject *kobj,
				 struct kobj_attribute *attr, char *buf)
{
	struct file_folio_orders orders;
	unsigned int i, use;
	int len = 0;

	spin_lock(&file_folio_lock);
	orders = file_folio_orders;
	spin_unlock(&file_folio_lock);

	use = file_folio_get_use(&orders, to_thpsize(kobj)->order);
	for (i = 0; i < ARRAY_SIZE(use_names); i++)
		len += sysfs_emit_at(buf, len, i == use ? "%s[%s]" : "%s%s",
				     i ? " " : "", use_names[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

static ssize_t file_enabled_store(struct kobject *kobj,
				  struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	struct file_folio_orders orders;
	int use = sysfs_match_string(use_names, buf);

	if (use < 0)
		return use;

	spin_lock(&file_folio_lock);
	orders = file_folio_orders;
	file_folio_set_use(&orders, to_thpsize(kobj)->order, use);
	WRITE_ONCE(file_folio_orders.always, orders.always);
	WRITE_ONCE(file_folio_orders.exec, orders.exec);
	spin_unlock(&file_folio_lock);

	return count;
}

struct kobj_attribute thpsize_file_enabled_attr =
	__ATTR(file_enabled, 0644, file_enabled_show, file_enabled_store);

static ssize_t show_events(struct kobject *kobj, char *buf,
			   enum file_folio_event event)
{
	int order = to_thpsize(kobj)->order;
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(events, cpu)[order][event];
	return sysfs_emit(buf, "%lu\n", sum);
}

static ssize_t file_alloc_show(struct kobject *kobj,
			       struct kobj_attribute *attr, char *buf)
{
	return show_events(kobj, buf, FILE_FOLIO_ALLOCATED);
}

static ssize_t file_fallback_show(struct kobject *kobj,
				  struct kobj_attribute *attr, char *buf)
{
	return show_events(kobj, buf, FILE_FOLIO_FELL_BACK);
}

static ssize_t file_fallback_charge_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	return show_events(kobj, buf, FILE_FOLIO_NOT_CHARGED);
}

struct kobj_attribute thpsize_file_alloc_attr = __ATTR_RO(file_alloc);
struct kobj_attribute thpsize_file_fallback_attr = __ATTR_RO(file_fallback);
struct kobj_attribute thpsize_file_fallback_charge_attr =
	__ATTR_RO(file_fallback_charge);
#endif /* CONFIG_SYSFS */

/* The order that a size such as "64K" stands for, or -EINVAL. */
static int __init parse_order(const char *text)
{
	char *end;
	unsigned long long size = memparse(text, &end);
	int order;

	if (end == text || *end || !is_power_of_2(size) || size < PAGE_SIZE)
		return -EINVAL;
	order = ilog2(size) - PAGE_SHIFT;
	return order < BITS_PER_LONG &&
	       BIT(order) & THP_ORDERS_ALL_FILE_DEFAULT ? order : -EINVAL;
}

/* One "<size>" or "<size>-<size>" with its use. */
static int __init parse_range(struct file_folio_orders *orders, char *range,
			      int use)
{
	char *last = strchr(range, '-');
	int order, end;

	if (last)
		*last++ = '\0';
	order = parse_order(range);
	end = last ? parse_order(last) : order;
	if (order < 0 || end < order)
		return -EINVAL;
	/* Only one size can have text. */
	if (use & FILE_FOLIO_EXEC && end > order)
		return -EINVAL;
	for (; order <= end; order++)
		file_folio_set_use(orders, order, use);
	return 0;
}

static int __init setup_thp_file(char *str)
{
	/* Nothing of a setting is used unless all of it is right. */
	struct file_folio_orders orders = file_folio_orders;
	static char copy[COMMAND_LINE_SIZE] __initdata;
	char *rest = copy, *group, *range;
	int use;

	if (!str || strscpy(copy, str, sizeof(copy)) < 0)
		goto err;
	while ((group = strsep(&rest, ";"))) {
		char *ranges = strsep(&group, ":");

		use = group ? match_string(use_names, ARRAY_SIZE(use_names),
					   group) : -EINVAL;
		if (use < 0)
			goto err;
		while ((range = strsep(&ranges, ",")))
			if (parse_range(&orders, range, use))
				goto err;
	}
	file_folio_orders = orders;
	return 1;
err:
	pr_warn("'%s' makes no sense, ignored\n", str ?: "");
	return 1;
}
__setup("thp_file=", setup_thp_file);
