// SPDX-License-Identifier: GPL-2.0-only
/* What tests of mprotect() in batches share. See mprotect_batch_util.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/kernel-page-flags.h>
#include <linux/perf_event.h>

#include "../kselftest.h"
#include "mprotect_batch_util.h"
#include "page_cache_util.h"

#define TRACEPOINT	"/sys/kernel/tracing/events/mprotect/mprotect_batch"

unsigned long sizes[MAX_SIZES];
unsigned int nr_sizes;
unsigned long huge_bytes;

/* The switch */

static int switch_fd = -1;

bool guard_batching(void)
{
	guard_setting(BATCH_SWITCH);
	switch_fd = open(BATCH_SWITCH, O_WRONLY);
	return switch_fd >= 0;
}

void set_batching(bool on)
{
	static int current = -1;

	if (switch_fd >= 0 && on != current &&
	    pwrite(switch_fd, on ? "1" : "0", 1, 0) != 1)
		ksft_exit_fail_perror(BATCH_SWITCH);
	/* Whatever a parent believes of it, a child may have changed. */
	current = on;
}

int count_batches(bool threads)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.inherit = threads,
	};
	char value[SETTING_BYTES];

	if (setting_read(TRACEPOINT "/id", value))
		return -1;
	attr.config = strtoul(value, NULL, 10);
	return syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
}

uint64_t batches_counted(int fd)
{
	uint64_t count = 0;

	if (fd >= 0 && read(fd, &count, sizeof(count)) != sizeof(count))
		ksft_exit_fail_perror("read of the tracepoint's counter");
	return count;
}

/* Folio sizes */

void mprotect_batch_init(void)
{
	char path[PATH_BYTES];
	unsigned int order;

	page_cache_init();
	for (order = 1; order < MAX_SIZES; order++) {
		folio_size_path(path, page_bytes << order, "enabled");
		if (!access(path, W_OK))
			sizes[nr_sizes++] = page_bytes << order;
	}
	huge_bytes = pmd_bytes();
}

void guard_sizes(void)
{
	char path[PATH_BYTES];
	unsigned int i;

	for (i = 0; i < nr_sizes; i++) {
		folio_size_path(path, sizes[i], "enabled");
		guard_setting(path);
		folio_size_path(path, sizes[i], "shmem_enabled");
		guard_setting(path);
	}
}

void set_size(unsigned long bytes)
{
	/* Of each size: not known, never, or with MADV_HUGEPAGE. */
	static enum { UNKNOWN, NEVER, ADVISED } state[MAX_SIZES];
	char path[PATH_BYTES];
	unsigned int i;

	for (i = 0; i < nr_sizes; i++) {
		bool on = sizes[i] == bytes;

		if (state[i] == (on ? ADVISED : NEVER))
			continue;
		folio_size_path(path, sizes[i], "enabled");
		set_setting(path, on ? "madvise" : "never");
		/* There is none for all sizes. */
		folio_size_path(path, sizes[i], "shmem_enabled");
		setting_write(path, on ? "advise" : "never");
		state[i] = on ? ADVISED : NEVER;
	}
}

unsigned long size_stat(unsigned long bytes, const char *name)
{
	char path[PATH_BYTES], file[64], value[SETTING_BYTES];

	snprintf(file, sizeof(file), "stats/%s", name);
	folio_size_path(path, bytes, file);
	if (setting_read(path, value))
		return 0;
	return strtoul(value, NULL, 10);
}

/* Peace */

static const struct {
	const char *path, *value;
} peace[] = {
	{ "/proc/sys/kernel/numa_balancing", "0" },
	{ "/proc/sys/vm/compaction_proactiveness", "0" },
	/* Swap is to be read page by page. */
	{ "/proc/sys/vm/page-cluster", "0" },
	/* To write a page makes its entries clean and read-only. */
	{ "/proc/sys/vm/dirty_writeback_centisecs", "0" },
	{ "/sys/kernel/mm/ksm/run", "0" },
	{ THP_DIR "/khugepaged/scan_sleep_millisecs", "3600000" },
};

void guard_peace(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(peace); i++)
		guard_setting(peace[i].path);
	guard_device_setting("min_ratio");
}

void keep_peace(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(peace); i++)
		setting_write(peace[i].path, peace[i].value);
	/*
	 * A device's share of the dirty pages is its share of what was written
	 * of late. One that has written nothing would write the first ones.
	 */
	if (!device_setting_write(AT_FDCWD, "min_ratio", 99))
		ksft_print_msg("cannot keep the device from writing early\n");
}

/* Accesses */

void touch_all(void *memory, size_t bytes)
{
	char *byte;

	/* No page is smaller. */
	for (byte = memory; byte < (char *)memory + bytes; byte += 4096)
		__atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
}

long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static char *map_pages(unsigned long nr)
{
	char *pages = mmap(NULL, nr * page_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		ksft_exit_fail_perror("mmap of a few pages");
	return pages;
}

/* More pages than x86 would rather flush one by one. */
#define FLUSHED_PAGES	128

void forget_translations(void)
{
	static char *pages;
	uint64_t value;

	if (!pages)
		pages = map_pages(FLUSHED_PAGES);
	access_page(pages, NULL, &value);
	access_page(pages + (FLUSHED_PAGES - 1) * page_bytes, NULL, &value);
	madvise(pages, FLUSHED_PAGES * page_bytes, MADV_DONTNEED);
}

void read_entries(const void *start, unsigned long pages, uint64_t *entries)
{
	if (!read_pagemap(start, pages, entries))
		ksft_exit_fail_perror("/proc/self/pagemap");
}

void clear_references(const char *which)
{
	set_setting("/proc/self/clear_refs", which);
}

bool has_soft_dirty(void)
{
	uint64_t entry, value = 1;
	void *page = map_pages(1);

	access_page(page, &value, NULL);
	read_entries(page, 1, &entry);
	munmap(page, page_bytes);
	return entry & PM_SOFT_DIRTY;
}

bool has_hardware_accessed(void)
{
	void *page = map_pages(1);
	uint64_t value = 1;
	long before;

	access_page(page, &value, NULL);
	clear_references("1");
	forget_translations();
	faults();
	before = faults();
	access_page(page, NULL, &value);
	before -= faults();
	munmap(page, page_bytes);
	return !before;
}

static bool is_written(unsigned long frame)
{
	uint64_t flags;

	if (!read_page_flags(frame, &flags))
		ksft_exit_fail_perror("/proc/kpageflags");
	return flags & 1ULL << KPF_WRITEBACK;
}

void wait_for_writeback(const uint64_t *entries, unsigned long pages)
{
	unsigned long page, tries;

	for (page = 0; page < pages; page++) {
		if (!(entries[page] & PM_PRESENT))
			continue;
		for (tries = 0; tries < 10000; tries++) {
			if (!is_written(PM_FRAME(entries[page])))
				break;
			usleep(100);
		}
	}
}
