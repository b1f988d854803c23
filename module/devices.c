// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of devices: whether misses adapt there, what a read request costs, and what
 * happened. All goes with the name that a device has in /sys/class/bdi, so that the module
 * holds on to no device. All is static: nothing is to be freed.
 */
#include <linux/backing-dev.h>
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/kdev_t.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/namei.h>
#include <linux/part_stat.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "devices.h"

/* What a request costs at most, in KiB read. */
#define MAX_REQUEST_KB	(64 << 10)

#define MAX_DEVICES	64
/* Of them, those of which only a miss tells. The others are for names that users write. */
#define MAX_MET		48

/*
 * A request costs what the disk could read meanwhile, as in mm/mmap_readahead_file.c: 128 KiB
 * where it takes a millisecond or less, and a KiB more for each 4 us beyond that. The kernel
 * times what faults wait. A module is not told when a wait ends, and takes what reads of the
 * disk took by the disk's statistics.
 */
#define LEAST_REQUEST_KB	128U
#define LEAST_WAIT_US		1000U
#define WAIT_US_PER_KB		4U
/* Beyond that, a read waits for others. */
#define MOST_MEASURED_KB	4096U
#define MOST_WAIT_US		(LEAST_WAIT_US + MOST_MEASURED_KB * WAIT_US_PER_KB)
/* So many reads are worth a look, which moves the average so much of the way. */
#define LEAST_READS		8
#define WAIT_SHARE		8

/* Of what users call a device, such as disk/by-id/..., in bytes. */
#define MAX_NAME	128

/**
 * struct reads - what the statistics of a disk tell of its reads
 * @nr: how many there were
 * @sectors: sectors that they read
 * @ns: nanoseconds that they took, one after the other
 * @busy: jiffies in which the disk had anything to do
 */
struct reads {
	unsigned long nr;
	unsigned long sectors;
	u64 ns;
	unsigned long busy;
};

/**
 * struct device_facts - what is known of a device
 * @name: its name, or of a partition that was named, its numbers
 * @number: the same as a number; 0 of what is no block device
 * @named: it is one of those that adapt, if not all do
 * @request_kb: KiB that could be read instead of a request, 0 for what the others have
 * @last_kb: what it was for the last miss
 * @wait_us: what a request takes; 0 if that is not known
 * @told: when its statistics were looked at, in jiffies; 0 if never
 * @diskseq: which disk had the name by then
 * @reads: what its statistics told when they moved @wait_us last
 * @events: how often each happened
 */
struct device_facts {
	char name[sizeof_field(struct backing_dev_info, dev_name)];
	dev_t number;
	bool named;
	unsigned int request_kb;
	unsigned int last_kb;
	unsigned int wait_us;
	unsigned long told;
	u64 diskseq;
	struct reads reads;
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
/* 0: what was measured. */
static unsigned int request_kb;

/*
 * For who adds devices, or looks at their statistics. Parameters are read or written one at a
 * time.
 */
static DEFINE_SPINLOCK(devices_lock);

static const struct device_facts *end_of_devices(void)
{
	/* Pairs with find_or_add(), which has given them names before. */
	return devices + smp_load_acquire(&nr_devices);
}

static struct device_facts *find(const char *name)
{
	const struct device_facts *end = end_of_devices();
	struct device_facts *device;

	for (device = devices; device < end; device++) {
		if (!strncmp(name, device->name, sizeof(device->name)))
			return device;
	}
	return NULL;
}

/* Two numbers with a colon between them; 0 of other names. */
static dev_t number_of(const char *name)
{
	unsigned int major, minor;
	int length = 0;

	if (sscanf(name, "%9u:%9u%n", &major, &minor, &length) != 2 || name[length] ||
	    major >= 1U << (32 - MINORBITS) || minor > MINORMASK)
		return 0;
	return MKDEV(major, minor);
}

/* Returns NULL if so many are known already, or if it has no name. */
static struct device_facts *find_or_add(const char *name, unsigned int most)
{
	struct device_facts *device = find(name);

	if (device || !*name || READ_ONCE(nr_devices) >= most)
		return device;
	spin_lock(&devices_lock);
	device = find(name);
	if (!device && nr_devices < most) {
		device = &devices[nr_devices];
		strscpy(device->name, name, sizeof(device->name));
		device->number = number_of(name);
		/* Pairs with end_of_devices(): who sees the device sees its name. */
		smp_store_release(&nr_devices, nr_devices + 1);
	}
	spin_unlock(&devices_lock);
	return device;
}

struct device_facts *device_of(struct inode *inode)
{
	return find_or_add(inode_to_bdi(inode)->dev_name, MAX_MET) ?: &devices[MAX_DEVICES];
}

bool device_adapts(struct inode *inode)
{
	const struct device_facts *end = end_of_devices();
	const struct device_facts *device;
	const char *name;
	dev_t number;

	if (READ_ONCE(all_adapt))
		return true;
	name = inode_to_bdi(inode)->dev_name;
	/* A file system has the number of its partition, and the name of the disk. */
	number = S_ISBLK(inode->i_mode) ? inode->i_rdev : inode->i_sb->s_dev;
	for (device = devices; device < end; device++) {
		if (READ_ONCE(device->named) &&
		    ((device->number && device->number == number) ||
		     !strncmp(name, device->name, sizeof(device->name))))
			return true;
	}
	return false;
}

static unsigned int measured_kb(const struct device_facts *device)
{
	unsigned int wait_us = max(READ_ONCE(device->wait_us), LEAST_WAIT_US);

	return min(LEAST_REQUEST_KB + (wait_us - LEAST_WAIT_US) / WAIT_US_PER_KB, MOST_MEASURED_KB);
}

/*
 * Move what a request takes towards what reads since the last look took, with the lock. What
 * their KiB take is left out, at the price that is known so far. Large reads take most of their
 * time for these, and can only tell that a request takes less than was known.
 */
static void learn_wait(struct device_facts *device, const struct reads *since)
{
	unsigned int kb = div64_ul(since->sectors / 2, since->nr);
	unsigned int price = measured_kb(device);
	unsigned int us;

	/* Where reads wait for each other, their sum is longer than the disk was busy. */
	us = div64_ul(min(div_u64(since->ns, NSEC_PER_USEC),
			  (u64)since->busy * (USEC_PER_SEC / HZ)), since->nr);
	us = mult_frac(min(us, 4 * MOST_WAIT_US), price, price + kb);
	us = min(us, MOST_WAIT_US);
	if (kb > LEAST_REQUEST_KB && us > device->wait_us)
		return;
	if (device->wait_us)
		us = device->wait_us + ((int)us - (int)device->wait_us) / WAIT_SHARE;
	WRITE_ONCE(device->wait_us, max(us, 1U));
}

/* With the lock. */
static void look_at(struct device_facts *device, struct block_device *disk)
{
	struct reads now = {
		.nr = part_stat_read(disk, ios[STAT_READ]),
		.sectors = part_stat_read(disk, sectors[STAT_READ]),
		.ns = part_stat_read(disk, nsecs[STAT_READ]),
		.busy = part_stat_read(disk, io_ticks),
	};
	struct reads since;

	WRITE_ONCE(device->told, jiffies);
	/* The first look is at all since boot, also where another disk has got the name. */
	if (device->diskseq != disk->bd_disk->diskseq) {
		device->diskseq = disk->bd_disk->diskseq;
		device->reads = (struct reads) { };
		WRITE_ONCE(device->wait_us, 0);
	}
	since = (struct reads) {
		.nr = now.nr - device->reads.nr,
		.sectors = now.sectors - device->reads.sectors,
		.ns = now.ns - device->reads.ns,
		.busy = now.busy - device->reads.busy,
	};
	if (since.nr < LEAST_READS)
		return;
	device->reads = now;
	learn_wait(device, &since);
}

/*
 * The disk or partition under a file, or NULL. A file system on several disks may lose the one
 * that it names while it is mounted: only one that it has opened as its own, as it tells since
 * Linux 6.9, is there to ask.
 */
static struct block_device *disk_under(struct inode *inode)
{
	if (S_ISBLK(inode->i_mode))
		return I_BDEV(inode);
#ifdef HAVE_S_BDEV_FILE
	if (!inode->i_sb->s_bdev_file)
		return NULL;
#endif
	return inode->i_sb->s_bdev;
}

/* Ask the disk under a file, four times a second; where many disks share @device, none. */
static void measure(struct device_facts *device, struct inode *inode)
{
	struct block_device *part = disk_under(inode);
	unsigned long told = READ_ONCE(device->told);

	if (!part || device == &devices[MAX_DEVICES] ||
	    (told && time_before(jiffies, told + HZ / 4)) || !spin_trylock(&devices_lock))
		return;
	look_at(device, bdev_whole(part));
	spin_unlock(&devices_lock);
}

unsigned int device_request_pages(struct device_facts *device, struct inode *inode)
{
	unsigned int kb = READ_ONCE(device->request_kb) ?: READ_ONCE(request_kb);

	if (!kb) {
		measure(device, inode);
		kb = measured_kb(device);
	}
	if (READ_ONCE(device->last_kb) != kb)
		WRITE_ONCE(device->last_kb, kb);
	return max(kb >> (PAGE_SHIFT - 10), 1U);
}

void device_count(struct device_facts *device, enum fault_event event, unsigned long by)
{
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
	long count;

	for (device = devices; device < devices + ARRAY_SIZE(devices); device++) {
		if (!has_events(device))
			continue;
		size += sysfs_emit_at(text, size, "%s", device->name);
		for (event = 0; event < NR_FAULT_EVENTS; event++) {
			count = atomic_long_read(&device->events[event]);
			if (count)
				size += sysfs_emit_at(text, size, " %s %ld", event_names[event],
						      count);
		}
		size += sysfs_emit_at(text, size, " request_kb %u\n",
				      READ_ONCE(device->last_kb));
	}
	return size;
}

static const struct kernel_param_ops device_statistics_ops = {
	.get = get_device_statistics,
};
module_param_cb(device_statistics, &device_statistics_ops, NULL, 0444);
MODULE_PARM_DESC(device_statistics, "what happened on each device since the module was loaded, and what a request costs there");

static bool has_window(const char *name)
{
	char path[MAX_NAME];
	struct path found;

	snprintf(path, sizeof(path), "/sys/class/bdi/%s", name);
	if (kern_path(path, LOOKUP_FOLLOW, &found))
		return false;
	path_put(&found);
	return true;
}

/*
 * Find what a user calls a device. Numbers may be those of a device that comes later. Names are
 * those in /dev, with or without that before them, or in /sys/class/bdi.
 */
static int resolve(const char *parameter, const char *text, size_t length,
		   char name[sizeof(devices->name)])
{
	char path[MAX_NAME];
	dev_t number;

	if (!length || length >= MAX_NAME - sizeof("/dev/"))
		return -EINVAL;
	snprintf(path, sizeof(path), "%s%.*s", *text == '/' ? "" : "/dev/", (int)length, text);
	strscpy(name, text, min(length + 1, sizeof(devices->name)));
	number = length < sizeof(devices->name) ? number_of(name) : 0;
	/* However it is written, it gets the name that the kernel gives it. */
	if (number || !lookup_bdev(path, &number)) {
		snprintf(name, sizeof(devices->name), "%u:%u", MAJOR(number), MINOR(number));
		return 0;
	}
	if (length < sizeof(devices->name) && *name != '.' && !strchr(name, '/') &&
	    has_window(name))
		return 0;
	pr_err("%s: %.*s is no block device in /dev, no name in /sys/class/bdi, and no pair of numbers such as 8:0.\n",
	       parameter, (int)length, text);
	return -ENODEV;
}

/* Find or add each device of a list, and have it adapt if @named. */
static int name_devices(const char *list, bool named)
{
	char name[sizeof(devices->name)];
	struct device_facts *device;
	size_t length;
	int err;

	do {
		length = strcspn(list, ",\n");
		err = resolve("devices", list, length, name);
		if (err)
			return err;
		device = find_or_add(name, MAX_DEVICES);
		if (!device) {
			pr_err("devices: %s is one too many.\n", name);
			return -ENOSPC;
		}
		if (named)
			WRITE_ONCE(device->named, true);
		list += length;
	} while (*list++ == ',');
	return 0;
}

/*
 * "all", or names with commas between them. What cannot be set changes nothing. For a moment
 * none of the named devices adapts.
 */
static int set_devices(const char *text, const struct kernel_param *param)
{
	bool all = sysfs_streq(text, "all");
	struct device_facts *device;
	int err = all ? 0 : name_devices(text, false);

	if (err)
		return err;
	for (device = devices; device < end_of_devices(); device++)
		WRITE_ONCE(device->named, false);
	if (!all)
		name_devices(text, true);
	WRITE_ONCE(all_adapt, all);
	return 0;
}

static int get_devices(char *text, const struct kernel_param *param)
{
	const struct device_facts *device;
	int size = 0;

	if (all_adapt)
		return sysfs_emit(text, "all\n");
	for (device = devices; device < end_of_devices(); device++) {
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
MODULE_PARM_DESC(devices, "where misses adapt: all, which is the default, or disks and partitions with commas between them: sda, sda1, 8:0, or a name of /sys/class/bdi");

static int parse_kb(const char *text, unsigned int *kb)
{
	int err = kstrtouint(text, 0, kb);

	if (err)
		return err;
	return *kb <= MAX_REQUEST_KB ? 0 : -EINVAL;
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
MODULE_PARM_DESC(request_kb, "what a read request costs, in KiB read: 1 to 65536, or 0 to measure it, which is the default");

static int set_price(const char *name, unsigned int kb)
{
	struct device_facts *device = find_or_add(name, MAX_DEVICES);

	if (!device)
		return -ENOSPC;
	WRITE_ONCE(device->request_kb, kb);
	return 0;
}

static int forget_price(const char *name)
{
	struct device_facts *device = find(name);

	if (!device || !device->request_kb)
		return -ENODEV;
	return set_price(name, 0);
}

/* DISK=KIB, or DISK= for what the others have. */
static int set_request_kb_of(const char *text, const struct kernel_param *param)
{
	char name[sizeof(devices->name)];
	const char *value = strchr(text, '=');
	unsigned int kb;
	int err;

	if (!value)
		return -EINVAL;
	err = resolve("request_kb_of", text, value - text, name);
	if (err)
		return err;
	if (!isdigit(*text) && !has_window(name)) {
		pr_err("request_kb_of: %.*s is a part of a disk. A request costs what it does on the disk.\n",
		       (int)(value - text), text);
		return -EINVAL;
	}
	value++;
	if (sysfs_streq(value, ""))
		return forget_price(name);
	err = parse_kb(value, &kb);
	if (err)
		return err;
	return kb ? set_price(name, kb) : -EINVAL;
}

static int get_request_kb_of(char *text, const struct kernel_param *param)
{
	const struct device_facts *device;
	int size = 0;

	for (device = devices; device < end_of_devices(); device++) {
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
MODULE_PARM_DESC(request_kb_of, "what it costs on one disk: DISK=KIB, such as sda=1024 or 8:0=1024; DISK= forgets it");
