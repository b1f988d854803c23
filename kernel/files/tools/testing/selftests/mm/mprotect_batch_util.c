// SPDX-License-Identifier: GPL-2.0-only
/* What tests of mprotect() in batches share. See mprotect_batch_util.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
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

#ifndef MADV_COLD
#define MADV_COLD	20
#endif

#define TRACEPOINT	"/sys/kernel/tracing/events/mprotect/mprotect_batch"
#define CLEAR_REFS	"/proc/self/clear_refs"
#define THP_DIR		"/sys/kernel/mm/transparent_hugepage"

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

static void size_path(char path[PATH_BYTES], unsigned long bytes,
		      const char *file)
{
	snprintf(path, PATH_BYTES, THP_DIR "/hugepages-%lukB/%s", bytes >> 10,
		 file);
}

void mprotect_batch_init(void)
{
	char path[PATH_BYTES], value[SETTING_BYTES];
	unsigned int order;

	page_cache_init();
	for (order = 1; order < MAX_SIZES; order++) {
		size_path(path, page_bytes << order, "enabled");
		if (!access(path, W_OK))
			sizes[nr_sizes++] = page_bytes << order;
	}
	if (!setting_read(THP_DIR "/hpage_pmd_size", value))
		huge_bytes = strtoul(value, NULL, 10);
}

void guard_sizes(void)
{
	char path[PATH_BYTES];
	unsigned int i;

	for (i = 0; i < nr_sizes; i++) {
		size_path(path, sizes[i], "enabled");
		guard_setting(path);
		size_path(path, sizes[i], "shmem_enabled");
		guard_setting(path);
	}
}

void set_size(unsigned long bytes)
{
	/* Of each size: not known, never, or with MADV_HUGEPAGE. */
	static enum { UNKNOWN, NEVER, ADVISED } state[MAX_SIZES];
	char path[PATH_BYTES];
	unsigned int i;
	int err;

	for (i = 0; i < nr_sizes; i++) {
		bool on = sizes[i] == bytes;

		if (state[i] == (on ? ADVISED : NEVER))
			continue;
		size_path(path, sizes[i], "enabled");
		err = setting_write(path, on ? "madvise" : "never");
		if (err)
			ksft_exit_fail_msg("%s: %s\n", path, strerror(-err));
		/* There is none for all sizes. */
		size_path(path, sizes[i], "shmem_enabled");
		setting_write(path, on ? "advise" : "never");
		state[i] = on ? ADVISED : NEVER;
	}
}

unsigned long size_stat(unsigned long bytes, const char *name)
{
	char path[PATH_BYTES], file[64], value[SETTING_BYTES];

	snprintf(file, sizeof(file), "stats/%s", name);
	size_path(path, bytes, file);
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

void stay_on_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		ksft_exit_fail_perror("sched_setaffinity");
}

/* Accesses */

static sigjmp_buf no_access;

static void on_no_access(int sig)
{
	siglongjmp(no_access, sig);
}

void catch_signals(void)
{
	struct sigaction action = {
		.sa_handler = on_no_access,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

int access_page(void *addr, const uint64_t *write, uint64_t *read)
{
	int sig = sigsetjmp(no_access, 0);

	if (sig)
		return sig;
	if (write)
		__atomic_store_n((uint64_t *)addr, *write, __ATOMIC_RELAXED);
	else
		*read = __atomic_load_n((uint64_t *)addr, __ATOMIC_RELAXED);
	return 0;
}

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

/* More pages than x86 would rather flush one by one. */
#define FLUSHED_PAGES	128

static char *flushed_pages(void)
{
	static char *pages;

	if (!pages)
		pages = mmap(NULL, FLUSHED_PAGES * page_bytes,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		ksft_exit_fail_perror("mmap of pages to flush");
	return pages;
}

void forget_translations(void)
{
	char *pages = flushed_pages();
	uint64_t value;

	access_page(pages, NULL, &value);
	access_page(pages + (FLUSHED_PAGES - 1) * page_bytes, NULL, &value);
	madvise(pages, FLUSHED_PAGES * page_bytes, MADV_DONTNEED);
}

/* Whatever advice this is, it puts an end to all that waits for its list. */
void drain_lists(void)
{
	madvise(flushed_pages(), page_bytes, MADV_COLD);
}

void read_pagemap(const void *start, unsigned long pages, uint64_t *entries)
{
	static int fd = -1;
	ssize_t bytes = pages * sizeof(*entries);

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pread(fd, entries, bytes, (uintptr_t)start / page_bytes *
		  sizeof(*entries)) != bytes)
		ksft_exit_fail_perror("/proc/self/pagemap");
}

void clear_references(const char *which)
{
	if (setting_write(CLEAR_REFS, which))
		ksft_exit_fail_perror(CLEAR_REFS);
}

bool has_soft_dirty(void)
{
	uint64_t entry, value = 1;
	void *page;

	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	access_page(page, &value, NULL);
	read_pagemap(page, 1, &entry);
	munmap(page, page_bytes);
	return entry & PM_SOFT_DIRTY;
}

bool has_hardware_accessed(void)
{
	uint64_t value = 1;
	long before;
	void *page;

	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
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

void wait_for_writeback(const uint64_t *entries, unsigned long pages)
{
	static int fd = -1;
	unsigned long page, tries;
	uint64_t flags;

	if (fd < 0)
		fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	for (page = 0; page < pages; page++) {
		if (!(entries[page] & PM_PRESENT))
			continue;
		for (tries = 0; tries < 10000; tries++) {
			if (pread(fd, &flags, sizeof(flags),
				  PM_FRAME(entries[page]) * sizeof(flags)) !=
			    sizeof(flags))
				ksft_exit_fail_perror("/proc/kpageflags");
			if (!(flags & (1ULL << KPF_WRITEBACK)))
				break;
			usleep(100);
		}
	}
}
