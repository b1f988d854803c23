// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of devices: whether misses adapt there, what a read request costs, and what
 * happened. All goes with the name that a device has in /sys/class/bdi, so that the module
 * holds on to no device. All is static: nothing is to be freed.
 */
#include <linux/backing-dev.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/seqlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "devices.h"

/* What a request costs at most, in KiB read. */
#define MAX_REQUEST_KB	(64 << 10)

#define MAX_DEVICES	64

/**
 * struct device_facts - what is known of a device
 * @name: its name
 * @named: it is one of those that adapt, if not all do
 * @request_kb: KiB that could be read instead of a request, 0 for what the others have
 * @events: how often each happened
 */
struct device_facts {
	char name[sizeof_field(struct backing_dev_info, dev_name)];
	bool named;
	unsigned int request_kb;
	atomic_long_t events[NR_FAULT_EVENTS];
};

static const char * const event_names[NR_FAULT_EVENTS] = {
	[FAULT_MISSES] = "misses",
	[FAULT_AHEAD] = "ahead",
	[FAULT_MARKS] = "marks",
	[FAULT_UNKNOWN] = "unknown",
	[FAULT_LOST] = "lost",
};

/*
 * They are added by their first miss, or when something is said of them, and stay. All that
 * find no room are one, the last.
 */
static struct device_facts devices[MAX_DEVICES + 1] = {
	[MAX_DEVICES] = { .name = "others" },
};

static unsigned int nr_devices;
static bool all_adapt = true;
static unsigned int request_kb = 128;

/* Of parameters, one is read or written at a time. Faults read, and add devices. */
static DEFINE_SEQLOCK(devices_lock);

static const char *name_of(struct inode *inode)
{
	return inode_to_bdi(inode)->dev_name;
}

static struct device_facts *find(const char *name)
{
	struct device_facts *device;

	for (device = devices; device < devices + nr_devices; device++) {
		if (!strncmp(name, device->name, sizeof(device->name)))
			return device;
	}
	return NULL;
}

/* To be called with the lock held for writing. Returns NULL if there is no room. */
static struct device_facts *find_or_add(const char *name)
{
	struct device_facts *device = find(name);

	if (device || nr_devices == MAX_DEVICES || !*name)
		return device;
	device = &devices[nr_devices++];
	strscpy(device->name, name, sizeof(device->name));
	return device;
}

bool device_adapts(struct inode *inode)
{
	const struct device_facts *device;
	unsigned int seq;
	bool adapts;

	if (READ_ONCE(all_adapt))
		return true;
	do {
		seq = read_seqbegin(&devices_lock);
		device = find(name_of(inode));
		adapts = all_adapt || (device && device->named);
	} while (read_seqretry(&devices_lock, seq));
	return adapts;
}

unsigned int device_request_pages(struct inode *inode)
{
	const struct device_facts *device;
	unsigned int seq, kb;

	do {
		seq = read_seqbegin(&devices_lock);
		device = find(name_of(inode));
		kb = device && device->request_kb ? device->request_kb : READ_ONCE(request_kb);
	} while (read_seqretry(&devices_lock, seq));
	return max(kb >> (PAGE_SHIFT - 10), 1U);
}

void device_count(struct inode *inode, enum fault_event event, unsigned long by)
{
	struct device_facts *device;
	unsigned int seq;

	do {
		seq = read_seqbegin(&devices_lock);
		device = find(name_of(inode));
	} while (read_seqretry(&devices_lock, seq));
	if (!device) {
		write_seqlock(&devices_lock);
		device = find_or_add(name_of(inode)) ?: &devices[MAX_DEVICES];
		write_sequnlock(&devices_lock);
	}
	atomic_long_add(by, &device->events[event]);
}

int show_events(char *text)
{
	const struct device_facts *device;
	unsigned int event;
	int size = 0;
	long sum;

	for (event = 0; event < NR_FAULT_EVENTS; event++) {
		sum = 0;
		for (device = devices; device < devices + ARRAY_SIZE(devices); device++)
			sum += atomic_long_read(&device->events[event]);
		size += sysfs_emit_at(text, size, "%s %ld\n", event_names[event], sum);
	}
	return size;
}

static bool has_events(const struct device_facts *device)
{
	unsigned int event;

	for (event = 0; event < NR_FAULT_EVENTS; event++) {
		if (atomic_long_read(&device->events[event]))
			return true;
	}
	return false;
}

/* A line for each device on which anything happened. */
static int get_device_statistics(char *text, const struct kernel_param *param)
{
	const struct device_facts *device;
	unsigned int event;
	int size = 0;

	for (device = devices; device < devices + ARRAY_SIZE(devices); device++) {
		if (!has_events(device))
			continue;
		size += sysfs_emit_at(text, size, "%s", device->name);
		for (event = 0; event < NR_FAULT_EVENTS; event++)
			size += sysfs_emit_at(text, size, " %s %ld", event_names[event],
					      atomic_long_read(&device->events[event]));
		size += sysfs_emit_at(text, size, "\n");
	}
	return size;
}

static const struct kernel_param_ops device_statistics_ops = {
	.get = get_device_statistics,
};
module_param_cb(device_statistics, &device_statistics_ops, NULL, 0444);
MODULE_PARM_DESC(device_statistics, "what happened on each device since the module was loaded");

/* With the lock held for writing: add each device of a list, and have it adapt if @named. */
static int name_devices(const char *list, bool named)
{
	char name[sizeof(devices->name)];
	struct device_facts *device;
	size_t length;

	do {
		length = strcspn(list, ",\n");
		if (!length || length >= sizeof(name))
			return -EINVAL;
		strscpy(name, list, length + 1);
		device = find_or_add(name);
		if (!device)
			return -ENOSPC;
		device->named |= named;
		list += length;
	} while (*list++ == ',');
	return 0;
}

/* "all", or names with commas between them. What cannot be set changes nothing. */
static int set_devices(const char *text, const struct kernel_param *param)
{
	bool all = sysfs_streq(text, "all");
	struct device_facts *device;
	int err;

	write_seqlock(&devices_lock);
	err = all ? 0 : name_devices(text, false);
	if (!err) {
		for (device = devices; device < devices + nr_devices; device++)
			device->named = false;
		if (!all)
			name_devices(text, true);
		WRITE_ONCE(all_adapt, all);
	}
	write_sequnlock(&devices_lock);
	return err;
}

static int get_devices(char *text, const struct kernel_param *param)
{
	const struct device_facts *device;
	int size = 0;

	if (all_adapt)
		return sysfs_emit(text, "all\n");
	for (device = devices; device < devices + nr_devices; device++) {
		if (device->named)
			size += sysfs_emit_at(text, size, "%s%s", size ? "," : "", device->name);
	}
	return size + sysfs_emit_at(text, size, "\n");
}

static const struct kernel_param_ops devices_ops = {
	.set = set_devices,
	.get = get_devices,
};
module_param_cb(devices, &devices_ops, NULL, 0644);
MODULE_PARM_DESC(devices, "where misses adapt: all, which is the default, or names of /sys/class/bdi with commas between them");

static int parse_kb(const char *text, unsigned int *kb)
{
	int err = kstrtouint(text, 0, kb);

	if (err)
		return err;
	return *kb && *kb <= MAX_REQUEST_KB ? 0 : -EINVAL;
}

static int set_request_kb(const char *text, const struct kernel_param *param)
{
	unsigned int kb;
	int err = parse_kb(text, &kb);

	if (!err)
		WRITE_ONCE(request_kb, kb);
	return err;
}

static const struct kernel_param_ops request_kb_ops = {
	.set = set_request_kb,
	.get = param_get_uint,
};
module_param_cb(request_kb, &request_kb_ops, &request_kb, 0644);
MODULE_PARM_DESC(request_kb, "what a read request costs, in KiB read: 1 to 65536, default 128");

static int set_price(const char *name, unsigned int kb)
{
	struct device_facts *device;

	write_seqlock(&devices_lock);
	device = find_or_add(name);
	if (device)
		device->request_kb = kb;
	write_sequnlock(&devices_lock);
	return device ? 0 : -ENOSPC;
}

static int forget_price(const char *name)
{
	struct device_facts *device = find(name);

	if (!device || !device->request_kb)
		return -ENODEV;
	return set_price(name, 0);
}

/* DEVICE=KIB, or DEVICE= for what the others have. */
static int set_request_kb_of(const char *text, const struct kernel_param *param)
{
	char name[sizeof(devices->name)];
	const char *value = strchr(text, '=');
	unsigned int kb;
	int err;

	if (!value || value == text || value - text >= sizeof(name))
		return -EINVAL;
	strscpy(name, text, value - text + 1);
	value++;
	if (sysfs_streq(value, ""))
		return forget_price(name);
	err = parse_kb(value, &kb);
	return err ?: set_price(name, kb);
}

static int get_request_kb_of(char *text, const struct kernel_param *param)
{
	const struct device_facts *device;
	int size = 0;

	for (device = devices; device < devices + nr_devices; device++) {
		if (device->request_kb)
			size += sysfs_emit_at(text, size, "%s=%u\n", device->name,
					      device->request_kb);
	}
	return size;
}

static const struct kernel_param_ops request_kb_of_ops = {
	.set = set_request_kb_of,
	.get = get_request_kb_of,
};
module_param_cb(request_kb_of, &request_kb_of_ops, NULL, 0644);
MODULE_PARM_DESC(request_kb_of, "what it costs on one device: DEVICE=KIB, with a name of /sys/class/bdi; DEVICE= forgets it");
