/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that the kernel counts, for disks and in /proc/vmstat, at one moment,
 * and empty caches to begin with.
 */
#ifndef FOLIOLAB_SNAPSHOT_H
#define FOLIOLAB_SNAPSHOT_H

#include <sys/stat.h>

#include "settings.h"

#define MAX_DISKS	8
#define MAX_LINES	1024

struct disk_names {
	const char *names[MAX_DISKS];	/* as below /dev */
	size_t count;
};

/* What a disk has done since boot, in the order of its file in sysfs. */
struct disk {
	uint64_t read_requests, read_sectors;
	uint64_t write_requests, write_sectors;
};

struct line {
	char name[64];
	int64_t value;
};

struct snapshot {
	struct disk disks[MAX_DISKS];
	struct line lines[MAX_LINES];	/* of /proc/vmstat */
	size_t nr_lines;
};

static inline void drop_caches(void)
{
	static const char knob[] = "/proc/sys/vm/drop_caches";

	sync();
	if (!write_word(knob, "3"))
		fail_io(knob);
}

static inline void read_disk(const char *name, struct disk *disk)
{
	struct stat device;
	char path[300];
	FILE *stream;

	snprintf(path, sizeof(path), "/dev/%s", name);
	if (stat(path, &device))
		fail_io(path);
	device_settle(device.st_rdev);
	snprintf(path, sizeof(path), "/sys/block/%s/stat", name);
	stream = fopen(path, "re");
	if (!stream || fscanf(stream, "%" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64
			      " %*u %" SCNu64,
			      &disk->read_requests, &disk->read_sectors,
			      &disk->write_requests, &disk->write_sectors) != 4)
		fail(1, "%s cannot be read.", path);
	fclose(stream);
}

static inline void read_snapshot(struct snapshot *now,
				 const struct disk_names *disks)
{
	FILE *stream;

	for (size_t i = 0; i < disks->count; i++)
		read_disk(disks->names[i], &now->disks[i]);
	/* CPUs keep some of what they count for themselves, unless asked. */
	write_word("/proc/sys/vm/stat_refresh", "1");
	stream = fopen("/proc/vmstat", "re");
	if (!stream)
		fail_io("/proc/vmstat");
	while (now->nr_lines < MAX_LINES &&
	       fscanf(stream, "%63s %" SCNd64, now->lines[now->nr_lines].name,
		      &now->lines[now->nr_lines].value) == 2)
		now->nr_lines++;
	fclose(stream);
}

static inline void print_disk(FILE *out, const char *name,
			      const struct disk *before,
			      const struct disk *after)
{
	fprintf(out, "\"%s\": {\"read_requests\": %" PRIu64
		", \"read_bytes\": %" PRIu64 ", \"write_requests\": %" PRIu64
		", \"write_bytes\": %" PRIu64 "}", name,
		after->read_requests - before->read_requests,
		(after->read_sectors - before->read_sectors) * 512,
		after->write_requests - before->write_requests,
		(after->write_sectors - before->write_sectors) * 512);
}

/* What was counted between two moments, as one JSON object. */
static inline void print_snapshots(FILE *out, double seconds,
				   const struct disk_names *disks,
				   const struct snapshot *before,
				   const struct snapshot *after)
{
	fprintf(out, "{\"seconds\": %.6f, \"disks\": {", seconds);
	for (size_t i = 0; i < disks->count; i++) {
		fputs(i ? ", " : "", out);
		print_disk(out, disks->names[i], &before->disks[i],
			   &after->disks[i]);
	}
	fputs("}, \"vmstat\": {", out);
	for (size_t i = 0; i < before->nr_lines; i++)
		fprintf(out, "%s\"%s\": %" PRId64, i ? ", " : "",
			before->lines[i].name,
			after->lines[i].value - before->lines[i].value);
	fputs("}}\n", out);
}

#endif /* FOLIOLAB_SNAPSHOT_H */
