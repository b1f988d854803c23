/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module knows of devices. Nothing here sleeps. */
#ifndef MODULE_DEVICES_H
#define MODULE_DEVICES_H

#include <linux/fs.h>

/**
 * enum fault_event - what is counted, for each device
 * @FAULT_MISSES: misses that adapted
 * @FAULT_AHEAD: pages that they and readahead marks read beyond those that were missing
 * @FAULT_MARKS: readahead marks at which they were followed by more
 * @FAULT_UNKNOWN: misses that read what the kernel wanted, because there was no memory
 * @FAULT_LOST: misses that read what the kernel wanted, because two tasks shared a slot
 */
enum fault_event {
	FAULT_MISSES,
	FAULT_AHEAD,
	FAULT_MARKS,
	FAULT_UNKNOWN,
	FAULT_LOST,
	NR_FAULT_EVENTS,
};

struct device_facts;

/**
 * device_of - what is known of the device of a file
 * @inode: of the file
 *
 * Return: facts, which stay as long as the module; of all that are one too many, the same.
 */
struct device_facts *device_of(struct inode *inode);

/**
 * device_adapts - whether misses may adapt on the device of a file
 * @inode: of the file
 *
 * Return: true on all devices, unless some are named.
 */
bool device_adapts(struct inode *inode);

/**
 * device_request_pages - what a read request costs
 * @device: where
 * @inode: of a file there
 *
 * Return: pages that could be read instead, at least 1.
 */
unsigned int device_request_pages(struct device_facts *device, struct inode *inode);

/**
 * device_count - count what happened
 * @device: where
 * @event: what
 * @by: how often, or how many pages
 */
void device_count(struct device_facts *device, enum fault_event event, unsigned long by);

/**
 * show_events - what happened on all devices together
 * @text: a page to write that to, a line for each event
 *
 * Return: bytes that were written.
 */
int show_events(char *text);

#endif /* MODULE_DEVICES_H */
