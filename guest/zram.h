/* SPDX-License-Identifier: GPL-2.0-only */
/* Compressed block devices in memory that are made for a while. */
#ifndef FOLIOLAB_ZRAM_H
#define FOLIOLAB_ZRAM_H

#include "settings.h"

#define ZRAM_CONTROL	"/sys/class/zram-control/"

struct zram {
	char number[16];	/* "" is none */
	char path[32];
};

/* Nothing, if there is none. May be called from a signal's handler. */
static inline void zram_remove(struct zram *device)
{
	char path[64];

	if (!device->number[0])
		return;
	snprintf(path, sizeof(path), "/sys/block/zram%s/reset", device->number);
	write_word(path, "1");
	write_word(ZRAM_CONTROL "hot_remove", device->number);
	device->number[0] = '\0';
}

static inline void zram_setting(const struct zram *device, const char *name,
				uint64_t value)
{
	char path[96], word[24];

	snprintf(path, sizeof(path), "/sys/block/zram%s/%s", device->number,
		 name);
	snprintf(word, sizeof(word), "%" PRIu64, value);
	if (!write_word(path, word))
		fail_io(path);
}

static inline void zram_make(struct zram *device, uint64_t bytes)
{
	if (!read_word(ZRAM_CONTROL "hot_add", device->number,
		       sizeof(device->number)))
		fail(1, "A device in memory takes root and a kernel with zram: %s.",
		     strerror(errno));
	snprintf(device->path, sizeof(device->path), "/dev/zram%s",
		 device->number);
	zram_setting(device, "disksize", bytes);
}

#endif /* FOLIOLAB_ZRAM_H */
