/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of the kernel that probes read before and after their work. */
#ifndef FOLIOLAB_COUNTERS_H
#define FOLIOLAB_COUNTERS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

/* A number of a file that has a name and a number in each line. */
static inline bool counter(const char *path, const char *name, uint64_t *value)
{
	FILE *stream = fopen(path, "re");
	bool found = false;
	char key[64];

	if (!stream)
		return false;
	while (!found && fscanf(stream, "%63s %" SCNu64, key, value) == 2)
		found = !strcmp(key, name);
	fclose(stream);
	return found;
}

/* A line of /proc/vmstat, such as "pgpgin" (KiB) or "oom_kill" (events). */
static inline bool vmstat(const char *name, uint64_t *value)
{
	return counter("/proc/vmstat", name, value);
}

/* Reads that a block device has completed since boot. */
struct device_reads {
	uint64_t requests;
	uint64_t bytes;
};

/*
 * Reads of the device that holds a file, by the file's st_dev. False if that
 * is no block device with statistics: tmpfs, overlayfs, btrfs.
 */
static inline bool device_reads(dev_t device, struct device_reads *reads)
{
	char path[64];
	uint64_t sectors;
	FILE *stream;
	bool found;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat",
		 major(device), minor(device));
	stream = fopen(path, "re");
	if (!stream)
		return false;
	found = fscanf(stream, "%" SCNu64 " %*u %" SCNu64,
		       &reads->requests, &sectors) == 2;
	fclose(stream);
	reads->bytes = sectors * 512;
	return found;
}

/*
 * Wait for reads in flight, which a device counts when they complete. For a
 * second at most: the disk of a host may never be idle.
 */
static inline void device_settle(dev_t device)
{
	for (int waited_ms = 0; waited_ms < 1000; waited_ms++) {
		uint64_t reads = 0;
		char path[64];
		FILE *stream;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/inflight",
			 major(device), minor(device));
		stream = fopen(path, "re");
		if (!stream)
			return;
		if (fscanf(stream, "%" SCNu64, &reads) != 1)
			reads = 0;
		fclose(stream);
		if (!reads)
			return;
		usleep(1000);
	}
}

/* The read-ahead limit of a device, or of the disk that a partition is on. */
static inline bool device_read_ahead(dev_t device, uint64_t *kib)
{
	static const char *const places[] = { "", "../" };

	for (size_t i = 0; i < 2; i++) {
		char path[80];
		FILE *stream;
		bool found;

		snprintf(path, sizeof(path),
			 "/sys/dev/block/%u:%u/%squeue/read_ahead_kb",
			 major(device), minor(device), places[i]);
		stream = fopen(path, "re");
		if (!stream)
			continue;
		found = fscanf(stream, "%" SCNu64, kib) == 1;
		fclose(stream);
		return found;
	}
	return false;
}

#endif /* FOLIOLAB_COUNTERS_H */
