/* SPDX-License-Identifier: GPL-2.0-only */
/* What a read request costs, on each device. Nothing here sleeps. */
#ifndef MODULE_PRICES_H
#define MODULE_PRICES_H

#include <linux/fs.h>

/**
 * request_pages - what a read request costs on the device of a file
 * @inode: of the file
 *
 * Return: pages that could be read instead, at least 1.
 */
unsigned int request_pages(struct inode *inode);

#endif /* MODULE_PRICES_H */
