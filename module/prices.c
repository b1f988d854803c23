// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a read request costs, on each device. A price goes with the name that the device has
 * in /sys/class/bdi, so that it holds on to no device. All is static: nothing is to be freed.
 */
#include <linux/backing-dev.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/seqlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "prices.h"

/* What a request costs at most, in KiB read. */
#define MAX_REQUEST_KB	(64 << 10)

#define MAX_PRICES	32

/**
 * struct price - what a request costs on a device
 * @device: its name
 * @kb: KiB that could be read instead
 */
struct price {
	char device[sizeof_field(struct backing_dev_info, dev_name)];
	unsigned int kb;
};

static unsigned int request_kb = 128;

/* Of parameters, one is read or written at a time. The lock is for faults, which never write. */
static struct price prices[MAX_PRICES];
static unsigned int nr_prices;
static DEFINE_SEQLOCK(prices_lock);

/* A fault that comes to one being written asks again. */
static struct price *find(const char *device)
{
	struct price *price;

	for (price = prices; price < prices + nr_prices; price++) {
		if (!strncmp(price->device, device, sizeof(price->device)))
			return price;
	}
	return NULL;
}

unsigned int request_pages(struct inode *inode)
{
	const char *device = inode_to_bdi(inode)->dev_name;
	const struct price *price;
	unsigned int seq, kb;

	do {
		seq = read_seqbegin(&prices_lock);
		price = find(device);
		kb = price ? price->kb : READ_ONCE(request_kb);
	} while (read_seqretry(&prices_lock, seq));
	return max(kb >> (PAGE_SHIFT - 10), 1U);
}

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

static int set_price(const char *device, unsigned int kb)
{
	struct price *price = find(device);

	if (!price && nr_prices == MAX_PRICES)
		return -ENOSPC;
	write_seqlock(&prices_lock);
	if (!price) {
		price = &prices[nr_prices++];
		strscpy(price->device, device, sizeof(price->device));
	}
	price->kb = kb;
	write_sequnlock(&prices_lock);
	return 0;
}

static int forget_price(const char *device)
{
	struct price *price = find(device);

	if (!price)
		return -ENODEV;
	write_seqlock(&prices_lock);
	*price = prices[--nr_prices];
	write_sequnlock(&prices_lock);
	return 0;
}

/* DEVICE=KIB, or DEVICE= for what the others have. */
static int set_request_kb_of(const char *text, const struct kernel_param *param)
{
	const char *value = strchr(text, '=');
	struct price price;
	int err;

	if (!value || value == text || value - text >= sizeof(price.device))
		return -EINVAL;
	strscpy(price.device, text, value - text + 1);
	value++;
	if (sysfs_streq(value, ""))
		return forget_price(price.device);
	err = parse_kb(value, &price.kb);
	return err ?: set_price(price.device, price.kb);
}

static int get_request_kb_of(char *text, const struct kernel_param *param)
{
	const struct price *price;
	int size = 0;

	for (price = prices; price < prices + nr_prices; price++)
		size += sysfs_emit_at(text, size, "%s=%u\n", price->device, price->kb);
	return size;
}

static const struct kernel_param_ops request_kb_of_ops = {
	.set = set_request_kb_of,
	.get = get_request_kb_of,
};
module_param_cb(request_kb_of, &request_kb_of_ops, NULL, 0644);
MODULE_PARM_DESC(request_kb_of, "what it costs on one device: DEVICE=KIB, with a name of /sys/class/bdi; DEVICE= forgets it");
