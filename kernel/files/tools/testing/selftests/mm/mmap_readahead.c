// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for mapped files: its switches, what they make of a file's miss
 * counter, and the window that adapts.
 *
 * Nothing reports the counter but the tracepoint, so most tests look at what
 * it decides: a miss reads either a window or one page, and mincore() tells
 * which. Every test opens the file anew, because the counter lives as long as
 * the open file does, and drops the file's pages first, because what the adaptive
 * window has learnt lasts as long as one of them is cached. The adaptive window is
 * off in all tests but its own: it would take the place of the counter.
 *
 * Run it as root, in a directory of the file system to test:
 *
 *	./mmap_readahead
 *
 * The tests run in a child. Its parent puts all settings back, however the
 * child ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fuse.h>
#include <linux/mount.h>

#include "../../../../mm/gup_test.h"
#include "../kselftest.h"
#include "mmap_readahead_util.h"
#include "page_cache_util.h"

#define ACCESSES	(MISS_LIMIT + 20)

#define SWITCH_DIR	"/sys/kernel/debug/mmap_readahead"
/* Its rule is one beyond those of enum rule. */
#define ADAPTIVE	(ALL_RULES + 1)

/* Up to this size the file gets data; beyond, a hole has to do. */
#define DATA_BYTES_MAX	(256UL << 20)
/* Where the window is measured: it must not fill half of this hole. */
#define PROBE_BYTES	(128UL << 20)

/* What one access brought into the page cache. */
enum brought { NOTHING, ONE_FOLIO, WINDOW, UNCLEAR };

/* The test file, unlinked from the start. */
static int file_fd;
static unsigned long file_pages;

/* Measured once; all in pages. */
static unsigned long window, one_folio, fault_around;

/* Switches */

/* What a switch takes, for off and on in turn, and what it does not. */
struct syntax {
	const char *name, *good[8], *junk[6];
};

/* As debugfs reads numbers. */
static const struct syntax numbers = {
	.name = "0 and 1",
	.good = { "0", "1", "0\n", "1\n", "00", "01", "0x0", "0x1" },
	.junk = { "2", "-1", "y", " 1", "\n", "0x2" },
};

/* As kstrtobool() reads them. */
static const struct syntax booleans = {
	.name = "booleans",
	.good = { "0", "1", "0\n", "1\n", "n", "y", "N\n", "Y\n" },
	.junk = { "2", "-1", "x", " 1", "\n", "o" },
};

static void test_switch_values(const char *path, const struct syntax *syntax)
{
	int i, err, value = flag_read(path);
	bool ok = value >= 0;

	if (!ok)
		ksft_print_msg("%s reads neither 0 nor 1\n", path);

	for (i = 0; i < (int)ARRAY_SIZE(syntax->good); i++) {
		err = setting_write(path, syntax->good[i]);
		value = flag_read(path);
		if (!err && value == i % 2)
			continue;
		ksft_print_msg("good value %d: error %d, then reads %d\n",
			       i, err, value);
		ok = false;
	}
	for (i = 0; i < (int)ARRAY_SIZE(syntax->junk) * 2; i++) {
		setting_write(path, i % 2 ? "1" : "0");
		err = setting_write(path, syntax->junk[i / 2]);
		value = flag_read(path);
		if (err == -EINVAL && value == i % 2)
			continue;
		ksft_print_msg("junk %d: error %d, then reads %d, not %d\n",
			       i / 2, err, value, i % 2);
		ok = false;
	}
	ksft_test_result(ok, "%s takes %s and nothing else\n", path,
			 syntax->name);
}

static void test_request_values(void)
{
	static const char * const good[][2] = {
		{ "1", "1" }, { "128", "128" }, { "65536\n", "65536" },
		{ "0100", "100" }, { "0", "0" },
	};
	static const char * const junk[] = {
		"65537", "-1", "x", "64k", "1.5", "0x40", " 1", "\n",
		"4294967296", "4294967424", "18446744073709551744",
	};
	const char *name = "request_kb takes 0 to 65536 and nothing else";
	char path[PATH_BYTES], value[SETTING_BYTES];
	unsigned int i;
	bool ok = true;
	int err;

	if (!device_setting_path(AT_FDCWD, "request_kb", path)) {
		ksft_test_result_skip("%s: the device has no such file\n",
				      name);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		err = setting_write(path, good[i][0]);
		if (!err && !setting_read(path, value) &&
		    !strcmp(value, good[i][1]))
			continue;
		ksft_print_msg("good value %u: error %d, then reads %s\n", i,
			       err, value);
		ok = false;
	}
	setting_write(path, "4096");
	for (i = 0; i < ARRAY_SIZE(junk); i++) {
		err = setting_write(path, junk[i]);
		if ((err == -EINVAL || err == -ERANGE) &&
		    !setting_read(path, value) &&
		    !strcmp(value, "4096"))
			continue;
		ksft_print_msg("junk %u: error %d, then reads %s\n", i, err,
			       value);
		ok = false;
	}
	ksft_test_result(ok, "%s\n", name);
}

/* As set_rules(), with ADAPTIVE. */
static void set_all_rules(unsigned int rules)
{
	set_rules(rules & ALL_RULES);
	set_setting(ADAPTIVE_FILE, rules & ADAPTIVE ? "1" : "0");
}

static unsigned int read_all_rules(void)
{
	unsigned int nr, rules = flag_read(ADAPTIVE_FILE) == 1 ? ADAPTIVE : 0;

	for (nr = 0; nr < NR_SWITCHES; nr++)
		if (switch_read(nr) == 1)
			rules |= 1 << nr;
	return rules;
}

/* Each alone, and all but each. */
static void test_switches_independent(void)
{
	unsigned int rule, all = ALL_RULES | ADAPTIVE;
	bool ok = true;

	for (rule = 1; rule <= ADAPTIVE; rule <<= 1) {
		set_all_rules(rule);
		ok &= read_all_rules() == rule;
		set_all_rules(all & ~rule);
		ok &= read_all_rules() == (all & ~rule);
	}
	ksft_test_result(ok, "no switch changes another one\n");
}

/* The test file in the page cache */

/* Open and map the test file anew, with no page of it in the cache. */
static void open_cold(struct mapping *map)
{
	map_cold(map, file_fd, file_pages);
}

/* Pages in the cache that are at most so far from one, once none is on its way. */
static unsigned long cached_around(const struct mapping *map,
				   unsigned long page, unsigned long reach)
{
	unsigned long first = page > reach ? page - reach : 0;
	unsigned long nr = 2 * reach;

	if (nr > map->pages - first)
		nr = map->pages - first;
	return cached_pages(map, first, nr);
}

/* Touch one page; tell what that brought in within a window's reach of it. */
static enum brought touch_and_see(const struct mapping *map,
				  unsigned long page)
{
	unsigned long before = cached_around(map, page, window), more;

	touch(map, page);
	more = cached_around(map, page, window) - before;
	if (!more)
		return NOTHING;
	if (more <= one_folio)
		return ONE_FOLIO;
	/* Where windows overlap, half of each is new. */
	return more >= window / 4 && more <= window ? WINDOW : UNCLEAR;
}

/* Resize the test file; give it data if that is cheap. */
static bool fill_file(unsigned long bytes)
{
	const size_t chunk = 1UL << 20;
	unsigned long done;
	ssize_t written;
	char *data;

	if (ftruncate(file_fd, 0) || ftruncate(file_fd, bytes))
		return false;
	if (bytes > DATA_BYTES_MAX) {
		ksft_print_msg("the file is one hole of %lu MiB\n",
			       bytes >> 20);
		return true;
	}
	data = malloc(chunk);
	if (!data)
		return false;
	memset(data, 0x5a, chunk);
	for (done = 0; done < bytes; done += written) {
		written = pwrite(file_fd, data,
				 bytes - done < chunk ? bytes - done : chunk,
				 done);
		if (written <= 0)
			break;
	}
	free(data);
	return done >= bytes && !fsync(file_fd);
}

/* Memory that can be had without reclaiming what a test has just read. */
static unsigned long available_bytes(void)
{
	unsigned long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib << 10;
}

static void measure_window(void)
{
	struct mapping map;

	open_cold(&map);
	touch(&map, file_pages / 2);
	window = cached_pages(&map, 0, file_pages);
	unmap_and_close(&map);
}

/*
 * Make the test file and learn what this system reads for one miss.
 * Return: NULL, or why the file is of no use.
 */
static const char *prepare_file(void)
{
	struct mapping map;

	file_fd = make_file();
	if (file_fd < 0)
		return "cannot make a file in the current directory";
	if (cachestat_pages(file_fd, 0, 1) < 0)
		return "needs the cachestat() system call";

	/* What has just been written is cached; on tmpfs it stays. */
	if (!fill_file(64 * page_bytes))
		return "cannot write to the current directory";
	map_file(&map, file_fd, 64);
	if (!drop_pages(&map))
		return "files in the current directory cannot be evicted";
	unmap(&map);

	file_pages = PROBE_BYTES / page_bytes;
	if (ftruncate(file_fd, 0) || ftruncate(file_fd, PROBE_BYTES))
		return "the file system has no sparse files";
	set_rules(ALL_RULES);
	open_cold(&map);
	madvise(map.start, PROBE_BYTES, MADV_RANDOM);
	touch(&map, file_pages / 2);
	one_folio = cached_pages(&map, 0, file_pages);
	unmap_and_close(&map);

	measure_window();
	/*
	 * 128 KiB are few pages where these are large. In a window of fewer
	 * than 16, the mark for the next one may be in the folio of the fault,
	 * and faulting around leaves that alone.
	 */
	if (window < 16 * one_folio &&
	    read_ahead_write(file_fd, 16 * one_folio * page_bytes >> 10))
		measure_window();
	fault_around = measure_fault_around(file_fd, file_pages);
	ksft_print_msg("window %lu, fault-around %lu, single read %lu pages\n",
		       window, fault_around, one_folio);
	if (window >= file_pages / 2)
		return "the readahead window is too large to test";
	if (window < 8 * one_folio)
		return "the readahead window is too small to test";
	if (window % (2 * fault_around))
		return "the window is no multiple of two fault-around blocks";
	if (available_bytes() / page_bytes < ACCESSES * window * 5 / 4)
		return "not enough memory for the windows of one test";

	/* Sparse accesses are two windows apart, the first one window in. */
	file_pages = (ACCESSES + 1) * 2 * window;
	if (!fill_file(file_pages * page_bytes))
		return "not enough room for the test file";
	return NULL;
}

/* Page of the n-th of a series of accesses two windows apart. */
static unsigned long sparse_page(unsigned int n)
{
	return window + n * 2 * window;
}

/* Behaviour */

/*
 * Touch ACCESSES pages, stride pages apart, each of them a miss.
 *
 * Return: how many windows were read before the first single page. If
 * anything else happened, or a window came after a single page, it is said
 * and -1 returned.
 */
static int windows_before_stop(const struct mapping *map, unsigned long start,
			       unsigned long stride)
{
	enum brought brought;
	int n, windows = 0;

	for (n = 0; n < ACCESSES; n++) {
		brought = touch_and_see(map, start + n * stride);
		if (brought == WINDOW && windows == n) {
			windows++;
		} else if (brought != ONE_FOLIO) {
			ksft_print_msg("access %d brought %s\n", n,
				       brought == NOTHING ? "nothing" :
				       brought == WINDOW ? "a window again" :
				       "neither a window nor one page");
			return -1;
		}
	}
	return windows;
}

/* As windows_before_stop(), with rules, on a new open file. */
static int windows_with_rules(unsigned int rules, unsigned long start,
			      unsigned long stride)
{
	struct mapping map;
	int windows;

	set_rules(rules);
	open_cold(&map);
	windows = windows_before_stop(&map, start, stride);
	unmap_and_close(&map);
	ksft_print_msg("%d of %d accesses read a window\n", windows, ACCESSES);
	return windows;
}

static void test_window(void)
{
	long kib = read_ahead_read(file_fd);
	const char *name = "a miss reads a window of read_ahead_kb";

	if (kib < 0)
		ksft_test_result_skip("%s: the device has no such file\n",
				      name);
	else
		ksft_test_result(kib == (long)(window * page_bytes >> 10),
				 "%s\n", name);
}

/* Accesses two windows apart: no fault ever sees a neighbour in the cache. */
static void test_sparse(unsigned int rules, bool stops, const char *name)
{
	int windows;

	/* Only fault-around credits a retry. */
	if (!stops && fault_around == 1) {
		ksft_test_result_skip("%s: fault-around is off\n", name);
		return;
	}
	windows = windows_with_rules(rules, sparse_page(0), 2 * window);
	ksft_test_result(windows == (stops ? MISS_LIMIT : ACCESSES), "%s\n",
			 name);
}

/*
 * Half a window apart, each access is the first page that the last window left
 * out, and shares its fault-around block with pages of that window.
 */
static void test_neighbours(unsigned int rules, bool stops, const char *name)
{
	int windows;

	if (fault_around == 1) {
		ksft_test_result_skip("%s: fault-around is off\n", name);
		return;
	}
	windows = windows_with_rules(rules, window + fault_around / 2,
				     window / 2);
	ksft_test_result(windows == (stops ? MISS_LIMIT : ACCESSES), "%s\n",
			 name);
}

/*
 * After ACCESSES - 1 misses, touch the page before some of those that read a
 * window: in the cache, not mapped yet, the last one of a fault-around block
 * that is all in the cache. What these hits count for comes off the counter,
 * which must be below the limit for one more miss to read a window.
 */
static void test_hits(unsigned int rules, unsigned int hits, bool resumes,
		      const char *name)
{
	struct mapping map;
	enum brought brought;
	bool ok = false;
	unsigned int n;

	if (fault_around == 1) {
		ksft_test_result_skip("%s: fault-around is off\n", name);
		return;
	}
	set_rules(rules);
	open_cold(&map);
	for (n = 0; n < ACCESSES - 1; n++)
		touch_and_see(&map, sparse_page(n));
	for (n = 0; n < hits; n++)
		if (touch_and_see(&map, sparse_page(n) - 1) != NOTHING)
			goto out;
	brought = touch_and_see(&map, sparse_page(ACCESSES - 1));
	ok = brought == (resumes ? WINDOW : ONE_FOLIO);
out:
	unmap_and_close(&map);
	ksft_test_result(ok, "%s\n", name);
}

static void test_sequential(void)
{
	unsigned long page, pages = 16 * window;
	struct rusage before, after;
	struct mapping map;
	long major_faults;
	bool ok;

	set_rules(ALL_RULES);
	open_cold(&map);
	getrusage(RUSAGE_SELF, &before);
	for (page = 0; page < pages; page++)
		touch(&map, page);
	getrusage(RUSAGE_SELF, &after);
	major_faults = after.ru_majflt - before.ru_majflt;
	ksft_print_msg("%lu pages, %ld major faults\n", pages, major_faults);
	/* A fault that waits for readahead under way may count as major. */
	ok = major_faults <= 2 * (long)(pages / window);
	ok &= touch_and_see(&map, sparse_page(ACCESSES - 1)) == WINDOW;
	unmap_and_close(&map);
	ksft_test_result(ok, "all rules: a dense reader keeps readahead\n");
}

static void test_random_hint(void)
{
	struct mapping map;
	bool ok = true;
	int n;

	set_rules(ALL_RULES);
	open_cold(&map);
	madvise(map.start, map.pages * page_bytes, MADV_RANDOM);
	for (n = 0; n < ACCESSES - 1; n++)
		ok &= touch_and_see(&map, sparse_page(n)) == ONE_FOLIO;
	madvise(map.start, map.pages * page_bytes, MADV_NORMAL);
	ok &= touch_and_see(&map, sparse_page(n)) == WINDOW;
	unmap_and_close(&map);
	ksft_test_result(ok, "random hint: single pages, and no misses\n");
}

/* The tracepoint */

static bool miss_expected(const struct miss *miss, unsigned int n)
{
	unsigned long index = sparse_page(n);
	bool around = n < MISS_LIMIT;

	if (miss->index != index || miss->mmap_miss != n + 1 ||
	    miss->ra_pages != window ||
	    strcmp(miss->reason, around ? "around" : "misses"))
		return false;
	if (around)
		return miss->start == index - window / 2 &&
		       miss->size == window && miss->async_size == window / 4;
	return miss->start <= index && index < miss->start + miss->size &&
	       miss->size == one_folio && !miss->async_size;
}

/*
 * Touch sparse pages of a map, trace what misses, and close the map. False if
 * there is no tracefs.
 */
static bool trace_sparse(struct mapping *map, struct miss *misses,
			 unsigned int max, unsigned int *nr)
{
	unsigned int n;

	if (!trace_start(map->fd)) {
		unmap_and_close(map);
		return false;
	}
	for (n = 0; n < ACCESSES; n++)
		touch(map, sparse_page(n));
	*nr = trace_stop(misses, max);
	unmap_and_close(map);
	return true;
}

static void test_trace_sparse(void)
{
	const char *name = "trace: misses count up, 'around' turns to 'misses'";
	static struct miss misses[ACCESSES + 1];
	struct mapping map;
	unsigned int n, nr;
	bool ok;

	set_rules(ALL_RULES);
	open_cold(&map);
	if (!trace_sparse(&map, misses, ARRAY_SIZE(misses), &nr)) {
		ksft_test_result_skip("%s: no tracefs\n", name);
		return;
	}

	ok = nr == ACCESSES;
	if (!ok)
		ksft_print_msg("%u misses traced, not %d\n", nr, ACCESSES);
	for (n = 0; ok && n < nr; n++) {
		ok = miss_expected(&misses[n], n);
		if (!ok)
			print_miss(&misses[n]);
	}
	ksft_test_result(ok, "%s\n", name);
}

static void test_trace_hint(int advice, const char *reason)
{
	struct miss miss = { };
	struct mapping map;
	unsigned int nr;

	set_rules(ALL_RULES);
	open_cold(&map);
	if (madvise(map.start, map.pages * page_bytes, advice)) {
		unmap_and_close(&map);
		ksft_test_result_skip("trace: no %s on this kernel\n", reason);
		return;
	}
	if (!trace_start(map.fd)) {
		unmap_and_close(&map);
		ksft_test_result_skip("trace: no tracefs for %s\n", reason);
		return;
	}
	touch(&map, sparse_page(1));
	nr = trace_stop(&miss, 1);
	unmap_and_close(&map);
	/* A kernel whose huge pages the page cache cannot hold reads around. */
	if (nr && advice == MADV_HUGEPAGE && !strcmp(miss.reason, "around")) {
		ksft_test_result_skip("trace: no huge pages in files\n");
		return;
	}
	ksft_test_result(nr == 1 && miss.index == sparse_page(1) &&
			 !miss.mmap_miss && !strcmp(miss.reason, reason),
			 "trace: the reason is %s, and no miss counted\n",
			 reason);
}

/* A block device is named, not the file system that its node or its pages are in. */
static void test_trace_device(void)
{
	const char *name = "trace: misses of a block device name it", *unfit = NULL;
	char path[] = "page_cache_test_device";
	unsigned long page, pages;
	struct miss miss = { };
	struct mapping map;
	struct stat st;
	unsigned int nr;
	int fd = -1;

	if (!fstat(file_fd, &st) && !mknod(path, S_IFBLK | 0600, st.st_dev)) {
		fd = open(path, O_RDONLY);
		unlink(path);
	}
	if (fd < 0) {
		ksft_test_result_skip("%s: the file is on none\n", name);
		return;
	}
	set_all_rules(ALL_RULES);
	pages = lseek(fd, 0, SEEK_END) / page_bytes;
	for (page = pages / 2; page < pages - 1; page++)
		if (!cachestat_pages(fd, page, 1))
			break;
	map_part(&map, fd, page, 1, PROT_READ);
	if (trace_start(fd)) {
		touch(&map, page);
		nr = trace_stop(&miss, 1);
	} else {
		unfit = "no tracefs";
	}
	unmap_and_close(&map);
	if (unfit) {
		ksft_test_result_skip("%s: %s\n", name, unfit);
		return;
	}
	if (nr)
		print_miss(&miss);
	ksft_test_result(nr == 1 && miss.index == page &&
			 miss.major == major(st.st_dev) &&
			 miss.minor == minor(st.st_dev), "%s\n", name);
}

/*
 * The adaptive window
 *
 * Its tests are about pages, whatever their size: a request costs as much as
 * reading 16 of them, and a read has 64 at most. Where it costs as much as few of
 * them, sparse accesses, which are two windows apart or more, do not fill the
 * file's regions.
 */

#define FEW_PAGES	4
#define REQUEST_PAGES	16
#define MANY_PAGES	32
#define MOST_PAGES	64

/* What the first miss of a file reads, and the reads that are remembered. */
#define FIRST_PAGES	16
#define READS		8

static void request_write(unsigned long pages)
{
	if (!device_setting_write(file_fd, "request_kb", pages * page_bytes >> 10))
		ksft_exit_fail_msg("request_kb cannot be set\n");
}

/* Have a file that nothing is known of, where a request costs as much as some pages. */
static void open_adaptive(struct mapping *map, unsigned long request_pages)
{
	set_all_rules(ALL_RULES | ADAPTIVE);
	request_write(request_pages);
	open_cold(map);
}

/*
 * Touch a page; return how many pages that brought, wherever they are. Only for
 * those around it has anybody to wait.
 */
static unsigned long touch_and_count(const struct mapping *map,
				     unsigned long page)
{
	long before = cachestat_pages(map->fd, 0, map->pages);

	touch(map, page);
	cached_around(map, page, MOST_PAGES);
	return cachestat_pages(map->fd, 0, map->pages) - before;
}

/*
 * Wherever in their blocks they are: those farther apart than is worth reading. Three
 * windows apart, no read that could be learnt ends within a block before the next
 * access: faulting around that would map its last page, as if it had been used.
 */
static void test_adaptive_sparse(unsigned int within)
{
	unsigned long stride = 3 * window, brought = 0, first = 0;
	unsigned int accesses = (file_pages - within) / stride;
	unsigned int n, windows = 0;
	struct mapping map;

	open_adaptive(&map, FEW_PAGES);
	for (n = 0; n < accesses; n++) {
		brought = touch_and_count(&map, n * stride + stride / 2 + within);
		windows += brought > one_folio;
		if (!n)
			first = brought;
	}
	unmap_and_close(&map);
	ksft_print_msg("%u of %u accesses read more than a page, the first one %lu pages\n",
		       windows, accesses, first);
	ksft_test_result(first > one_folio && windows < accesses * 3 / 4 &&
			 brought == one_folio,
			 "adaptive: sparse reads come down to one page, %u into a block\n",
			 within);
}

/* Sparse accesses that teach a file to read single pages; some are left. */
#define LESSONS		(ACCESSES - 4)

/* Return: whether it does so now. */
static bool learn_sparse(const struct mapping *map, unsigned int within)
{
	unsigned int n;

	for (n = 0; n < LESSONS; n++)
		touch(map, sparse_page(n) + within);
	return touch_and_count(map, sparse_page(n) + within) == one_folio;
}

/* What is learnt lasts as long as a page of the file is cached, whoever has it open. */
static void test_adaptive_remembers(void)
{
	struct mapping map;
	bool ok;

	open_adaptive(&map, FEW_PAGES);
	ok = learn_sparse(&map, 0);
	unmap_and_close(&map);
	map_file(&map, open_again(file_fd), file_pages);
	ok &= touch_and_count(&map, sparse_page(ACCESSES - 1)) == one_folio;
	unmap(&map);
	/* All but what the first miss read. */
	posix_fadvise(map.fd, sparse_page(1) * page_bytes, 0, POSIX_FADV_DONTNEED);
	map_file(&map, map.fd, file_pages);
	ok &= touch_and_count(&map, sparse_page(ACCESSES - 1)) == one_folio;
	unmap_and_close(&map);
	ksft_test_result(ok, "adaptive: a file is known as long as something of it is cached\n");

	open_cold(&map);
	ok = touch_and_count(&map, sparse_page(ACCESSES - 1)) > one_folio;
	unmap_and_close(&map);
	ksft_test_result(ok, "adaptive: it begins anew when nothing is\n");
}

/* All who have opened a file share what is learnt. */
static void test_adaptive_shared(void)
{
	struct mapping map, theirs;
	int status = -1;
	pid_t pid;
	bool ok;

	open_adaptive(&map, FEW_PAGES);
	pid = fork_helper();
	if (!pid) {
		map_file(&theirs, open_again(file_fd), file_pages);
		_exit(!learn_sparse(&theirs, 0));
	}
	waitpid(pid, &status, 0);
	ok = !status && touch_and_count(&map, sparse_page(ACCESSES - 2)) == one_folio;
	map_file(&theirs, open_again(file_fd), file_pages);
	ok &= touch_and_count(&theirs, sparse_page(ACCESSES - 1)) == one_folio;
	unmap_and_close(&theirs);
	unmap_and_close(&map);
	ksft_test_result(ok, "adaptive: all who open a file share what is known\n");
}

/* A stranger reads another file by the page, which is nothing to this one. */
static void test_adaptive_strangers(void)
{
	struct mapping map, stranger;
	unsigned long before, with;
	int fd = make_file();
	bool ok;

	if (fd < 0 || ftruncate(fd, file_pages * page_bytes))
		ksft_exit_fail_perror("a stranger's file");
	open_adaptive(&map, FEW_PAGES);
	before = touch_and_count(&map, sparse_page(0));
	unmap_and_close(&map);
	map_file(&stranger, fd, file_pages);
	ok = learn_sparse(&stranger, 0);
	open_cold(&map);
	with = touch_and_count(&map, sparse_page(0));
	ok &= touch_and_count(&stranger, sparse_page(ACCESSES - 1)) == one_folio;
	unmap_and_close(&map);
	unmap_and_close(&stranger);
	ksft_print_msg("the first miss reads %lu pages, beside a stranger %lu\n", before, with);
	ksft_test_result(ok && before > one_folio && with == before,
			 "adaptive: files teach each other nothing\n");
}

/*
 * A file has the inode number of one that is gone, and maybe its place in memory, but
 * nothing of what was learnt. What it begins with is cached: it was just written.
 */
static void test_adaptive_recreated(void)
{
	unsigned long ino = 0, brought = 0;
	bool ok = true, again = false;
	unsigned int tries;
	struct mapping map;
	struct stat st;

	set_all_rules(ALL_RULES | ADAPTIVE);
	request_write(FEW_PAGES);
	for (tries = 0; ok && !again && tries < 8; tries++) {
		int fd = make_file();

		if (fd < 0 || ftruncate(fd, file_pages * page_bytes) ||
		    pwrite(fd, "", 1, 0) != 1 || fstat(fd, &st))
			ksft_exit_fail_perror("one more file");
		again = st.st_ino == ino;
		ino = st.st_ino;
		map_file(&map, fd, file_pages);
		brought = touch_and_count(&map, sparse_page(ACCESSES - 1));
		ok = brought > one_folio && learn_sparse(&map, 0);
		unmap_and_close(&map);
	}
	ksft_print_msg("%u files, %s inode number again, %lu pages at first\n",
		       tries, again ? "the" : "never an", brought);
	ksft_test_result(ok, "adaptive: a new file inherits nothing\n");
}

/* Return: pages that it brings to touch those behind a page, as many as a first miss reads. */
static unsigned long brought_behind(const struct mapping *map, unsigned long page)
{
	unsigned long n, brought = 0;

	for (n = 1; n < FIRST_PAGES; n++)
		brought += touch_and_count(map, page + n);
	return brought;
}

/* Who comes to the mark of a single miss reads on, if nothing else is known of that. */
static void test_adaptive_marks(void)
{
	unsigned long remembered, forgotten;
	struct mapping map;
	unsigned int n;

	open_adaptive(&map, REQUEST_PAGES);
	touch(&map, sparse_page(0));
	remembered = brought_behind(&map, sparse_page(0));
	for (n = 1; n < READS + 2; n++)
		touch(&map, sparse_page(n));
	forgotten = brought_behind(&map, sparse_page(1));
	unmap_and_close(&map);
	ksft_print_msg("the mark brings %lu pages, %lu once forgotten\n", remembered, forgotten);
	ksft_test_result(!remembered && forgotten,
			 "adaptive: marks continue single reads that were forgotten\n");
}

/*
 * Read a file without mapping it, in order, with a fault in each page just before that
 * is read if it is at a phase of a window. Return: how often reading has to wait, since
 * nothing was read ahead.
 */
static unsigned int reader_waits(long phase)
{
	unsigned long page, pages = 6 * MOST_PAGES;
	char *data = malloc(page_bytes);
	unsigned int waits = 0;
	struct mapping map;

	if (!data)
		ksft_exit_fail_perror("malloc");
	open_adaptive(&map, REQUEST_PAGES);
	for (page = 0; page < pages; page++) {
		if (cachestat_pages(map.fd, page, 1) != 1)
			waits++;
		else if ((long)page % MOST_PAGES == phase)
			touch(&map, page);
		if (pread(map.fd, data, page_bytes, page * page_bytes) !=
		    (ssize_t)page_bytes)
			ksft_exit_fail_perror("read of the test file");
	}
	unmap_and_close(&map);
	free(data);
	return waits;
}

/* A fault on a readahead mark that a reader needs leaves it there. */
static void test_adaptive_reader(void)
{
	unsigned int alone = reader_waits(-1), most = 0, waits;
	long phase;

	for (phase = 0; phase < MOST_PAGES; phase += 4) {
		waits = reader_waits(phase);
		if (waits > most)
			most = waits;
	}
	ksft_print_msg("read() waits %u times alone, up to %u with faults\n",
		       alone, most);
	/* A fault may take one for a run's, and reads on instead. */
	ksft_test_result(alone && most <= alone + 1,
			 "adaptive: faults take no marks from who reads\n");
}

#define GUP_TEST_FILE	"/sys/kernel/debug/gup_test"
#define FOLL_NOWAIT	0x10
#define NR_NOWAIT	100

/*
 * A fault that must not wait has its page read, and returns: as KVM has it, which finds
 * the page later. A disk may have read one before anybody looks, but not all.
 */
static void test_adaptive_nowait(void)
{
	const char *name = "adaptive: a fault that must not wait does not";
	int fd = open(GUP_TEST_FILE, O_RDWR);
	unsigned int n, returned = 0;
	unsigned long cached = 0;
	struct mapping map;

	if (fd < 0) {
		ksft_test_result_skip("%s: no " GUP_TEST_FILE "\n", name);
		return;
	}
	open_adaptive(&map, FEW_PAGES);
	learn_sparse(&map, 0);
	for (n = 0; n < NR_NOWAIT; n++) {
		unsigned long page = sparse_page(n) + window;
		struct gup_test test = {
			.addr = (unsigned long)page_address(&map, page),
			.size = page_bytes,
			.nr_pages_per_call = 1,
			.gup_flags = FOLL_NOWAIT,
		};

		/* What could not be had is cut off, or all of it is an error. */
		returned += ioctl(fd, GUP_BASIC_TEST, &test) || test.size < page_bytes;
		cached += cached_pages(&map, page, 1);
	}
	unmap_and_close(&map);
	close(fd);
	ksft_print_msg("%u of %d returned, %lu pages came\n", returned, NR_NOWAIT, cached);
	ksft_test_result(returned && cached == NR_NOWAIT, "%s\n", name);
}

/* Touch pages in order; return how many of them were misses, or -1. */
static int misses_of_run(unsigned long first, long step, unsigned long pages,
			 long *major_faults, bool *run)
{
	struct miss misses[64] = { };
	struct rusage before, after;
	struct mapping map;
	unsigned long n;
	unsigned int nr;

	open_adaptive(&map, REQUEST_PAGES);
	if (!trace_start(map.fd)) {
		unmap_and_close(&map);
		return -1;
	}
	getrusage(RUSAGE_SELF, &before);
	for (n = 0; n < pages; n++)
		touch(&map, first + step * (long)n);
	getrusage(RUSAGE_SELF, &after);
	nr = trace_stop(misses, ARRAY_SIZE(misses));
	unmap_and_close(&map);
	*major_faults = after.ru_majflt - before.ru_majflt;
	*run = nr > 0;
	for (n = 0; n < nr; n++)
		if (strcmp(misses[n].reason, !n ? "single" : step > 0 ? "forward" : "backward")) {
			print_miss(&misses[n]);
			*run = false;
		}
	ksft_print_msg("%lu pages, %u misses, %ld major faults\n", pages, nr,
		       *major_faults);
	return nr;
}

static void test_adaptive_runs(void)
{
	unsigned long pages = 16 * MOST_PAGES;
	const char *forward = "adaptive: a run forward is read ahead of";
	const char *backward = "adaptive: so is a run backward, in large reads";
	long major_faults;
	bool run;
	int nr;

	nr = misses_of_run(0, 1, pages, &major_faults, &run);
	if (nr < 0) {
		ksft_test_result_skip("%s: no tracefs\n", forward);
		ksft_test_result_skip("%s: no tracefs\n", backward);
		return;
	}
	/* Faults that wait for what is on its way may count as major ones. */
	ksft_test_result(run && nr <= 2 &&
			 major_faults <= 2 * (long)(pages / REQUEST_PAGES),
			 "%s\n", forward);
	nr = misses_of_run(pages - 1, -1, pages, &major_faults, &run);
	/* Those before the largest windows are reached are few. */
	ksft_test_result(run && nr <= (int)(pages / MOST_PAGES) + 8 &&
			 major_faults <= 2 * nr, "%s\n", backward);
}

/* Of a read that begins with the first page of the file, which is cached already. */
static void test_adaptive_first_page(void)
{
	struct mapping map;
	unsigned long page;
	char byte;
	bool ok;

	open_adaptive(&map, ALL_RULES | ADAPTIVE);
	posix_fadvise(map.fd, 0, 0, POSIX_FADV_RANDOM);
	ok = pread(map.fd, &byte, 1, 0) == 1;
	for (page = 4 * MOST_PAGES; page; page--)
		touch(&map, page);
	ok &= cachestat_pages(map.fd, 0, 4 * MOST_PAGES) == 4 * MOST_PAGES;
	unmap_and_close(&map);
	ksft_test_result(ok, "adaptive: reads go around a first page that is cached\n");
}

/* Random reads of a small file cost more than all of it, so that blocks are read. */
static void test_adaptive_fill(void)
{
	unsigned long brought, most = 0, filled = 0;
	struct rng rng = { 1 };
	unsigned int n, first = 0;
	struct mapping map;

	open_adaptive(&map, MANY_PAGES);
	for (n = 0; n < 400; n++) {
		brought = touch_and_count(&map, random_below(&rng, file_pages));
		if (brought > most)
			most = brought;
		if (brought > MOST_PAGES / 2 && !filled++)
			first = n;
	}
	unmap_and_close(&map);
	ksft_print_msg("%lu of %u accesses read blocks, from number %u on, the largest %lu pages\n",
		       filled, n, first, most);
	ksft_test_result(filled && first > 8,
			 "adaptive: random reads that gather read whole blocks\n");
	ksft_test_result(most <= MOST_PAGES,
			 "adaptive: no read is larger than read_ahead_kb\n");
}

/* Return: how many random reads it takes in turn until a block is read. */
static unsigned int reads_until_filled(const struct mapping *one, const struct mapping *other)
{
	struct rng rng = { 1 };
	unsigned int n;

	for (n = 0; n < 400; n++)
		if (touch_and_count(n % 2 ? other : one, random_below(&rng, file_pages)) >
		    MOST_PAGES / 2)
			break;
	return n;
}

/* A region that is read by two of them fills up as soon as if one had read all of that. */
static void test_adaptive_fill_together(void)
{
	struct mapping one, other;
	unsigned int alone, together;

	open_adaptive(&one, MANY_PAGES);
	alone = reads_until_filled(&one, &one);
	unmap_and_close(&one);

	open_cold(&one);
	map_file(&other, open_again(file_fd), file_pages);
	together = reads_until_filled(&one, &other);
	unmap_and_close(&other);
	unmap_and_close(&one);
	ksft_print_msg("blocks from number %u on, for two together from %u on\n", alone,
		       together);
	ksft_test_result(alone > 8 && alone < 400 && together <= alone + alone / 4,
			 "adaptive: what all read of a region counts\n");
}

/* Pages that three accesses bring to a mapping, with a hint. */
static unsigned long brought_with(unsigned int rules, int prot, int advice)
{
	unsigned long pages;
	struct mapping map;
	unsigned int n;

	set_all_rules(rules);
	open_cold(&map);
	unmap(&map);
	map_part(&map, map.fd, 0, file_pages, prot);
	madvise(map.start, map.pages * page_bytes, advice);
	for (n = 0; n < 3; n++)
		touch(&map, sparse_page(n));
	pages = cached_pages(&map, 0, map.pages);
	unmap_and_close(&map);
	return pages;
}

static void test_adaptive_leaves(int prot, int advice, const char *name)
{
	unsigned long before, with, without;

	without = brought_with(ALL_RULES, prot, advice);
	with = brought_with(ALL_RULES | ADAPTIVE, prot, advice);
	before = brought_with(ALL_RULES, prot, advice);
	if (with != without || before != without)
		ksft_print_msg("%lu pages with, %lu and %lu without\n", with,
			       without, before);
	ksft_test_result(with == without && before == without,
			 "adaptive: %s read what they do without it\n", name);
}

/* The counter is as it was, for whoever turns the switch off. */
static void test_adaptive_off(void)
{
	struct mapping map;
	unsigned int n;
	int windows;

	open_adaptive(&map, REQUEST_PAGES);
	for (n = 0; n < ACCESSES; n++)
		touch(&map, sparse_page(n));
	set_all_rules(ALL_RULES);
	unmap_and_close(&map);
	windows = windows_with_rules(ALL_RULES, sparse_page(0), 2 * window);
	ksft_test_result(windows == MISS_LIMIT,
			 "adaptive: off, sparse reads stop readahead as before\n");
}

/* Neither hits nor misses of the adaptive window count. */
static void test_adaptive_uncounted(void)
{
	const char *name = "adaptive: misses do not count";
	struct miss misses[ACCESSES] = { };
	struct mapping map;
	unsigned int n, nr;
	bool ok;

	open_adaptive(&map, FEW_PAGES);
	if (!trace_sparse(&map, misses, ARRAY_SIZE(misses), &nr)) {
		ksft_test_result_skip("%s: no tracefs\n", name);
		return;
	}
	ok = nr == ACCESSES;
	for (n = 0; ok && n < nr; n++) {
		ok = misses[n].index == sparse_page(n) && !misses[n].mmap_miss &&
		     !strcmp(misses[n].reason, "single");
		if (!ok)
			print_miss(&misses[n]);
	}
	ksft_test_result(ok, "%s\n", name);
}

/* What the first miss is in data of a file of which a page is mapped as text. */
static void first_miss_beside_text(bool same, const char *reason, const char *name)
{
	struct mapping text, data;
	struct miss miss = { };
	unsigned int nr;

	set_all_rules(ALL_RULES | ADAPTIVE);
	open_cold(&data);
	map_part(&text, same ? data.fd : open_again(file_fd), 0, 1,
		 PROT_READ | PROT_EXEC);
	if (!trace_start(data.fd)) {
		ksft_test_result_skip("%s: no tracefs\n", name);
		goto out;
	}
	touch(&data, sparse_page(0));
	nr = trace_stop(&miss, 1);
	if (nr != 1 || strcmp(miss.reason, reason))
		print_miss(&miss);
	ksft_test_result(nr == 1 && !strcmp(miss.reason, reason), "%s\n", name);
out:
	unmap(&text);
	if (!same)
		close(text.fd);
	unmap_and_close(&data);
	set_all_rules(ALL_RULES);
}

/* Data of an open file that was mapped executable before. */
static void test_adaptive_text(unsigned int rules, bool stops, const char *name)
{
	struct mapping text, data;
	int windows;

	/* Only fault-around credits a retry. */
	if (!stops && fault_around == 1) {
		ksft_test_result_skip("%s: fault-around is off\n", name);
		return;
	}
	set_all_rules(rules);
	open_cold(&data);
	map_part(&text, data.fd, 0, 1, PROT_READ | PROT_EXEC);
	unmap(&text);
	windows = windows_before_stop(&data, sparse_page(0), 2 * window);
	unmap_and_close(&data);
	set_all_rules(ALL_RULES);
	ksft_print_msg("%d of %d accesses read a window\n", windows, ACCESSES);
	ksft_test_result(windows == (stops ? MISS_LIMIT : ACCESSES), "%s\n",
			 name);
}

/* Read a file forward that is twice as large as the group's memory, which is full then. */
static void read_in_group(void)
{
	struct rusage before, after;
	struct mapping map;
	unsigned long page;
	long misses;
	int pass;

	if (!memory_cgroup_join())
		_exit(KSFT_SKIP);
	open_adaptive(&map, REQUEST_PAGES);
	for (pass = 0; pass < 2; pass++) {
		getrusage(RUSAGE_SELF, &before);
		for (page = 0; page < file_pages; page++)
			touch(&map, page);
	}
	getrusage(RUSAGE_SELF, &after);
	misses = after.ru_majflt - before.ru_majflt;
	ksft_print_msg("%lu pages, %ld major faults\n", file_pages, misses);
	fflush(stdout);
	/* Some when it begins, and when memory is told anew. */
	_exit(misses < 8 + (long)file_pages / 256 ? KSFT_PASS : KSFT_FAIL);
}

/* How much the group has of files is told by another count in either LRU. */
static void test_adaptive_in_group(const char *lru_gen, const char *which)
{
	const char *name = "adaptive: windows stay large where a control group is full";
	int status = KSFT_SKIP << 8, err = setting_write(LRU_GEN_FILE, lru_gen);
	pid_t pid;

	/* A kernel without generations has the other LRU. */
	if ((!err || (err == -ENOENT && !strcmp(lru_gen, "0"))) &&
	    memory_cgroup_make(file_pages * page_bytes / 2)) {
		pid = fork_helper();
		if (!pid)
			read_in_group();
		waitpid(pid, &status, 0);
		memory_cgroup_remove();
	}
	if (status == KSFT_SKIP << 8)
		ksft_test_result_skip("%s%s\n", name, which);
	else
		ksft_test_result(!status, "%s%s\n", name, which);
}

#define NR_ADAPTIVE_TESTS	23

static void run_adaptive_tests(void)
{
	long kib = read_ahead_read(file_fd);
	char lru_gen[16] = "0";

	if (!read_ahead_write(file_fd, MOST_PAGES * page_bytes >> 10)) {
		skip_tests(NR_ADAPTIVE_TESTS, "adaptive: read_ahead_kb cannot be set");
		return;
	}
	test_adaptive_sparse(0);
	test_adaptive_sparse(13);
	test_adaptive_remembers();
	test_adaptive_shared();
	test_adaptive_strangers();
	test_adaptive_recreated();
	test_adaptive_marks();
	test_adaptive_reader();
	test_adaptive_nowait();
	test_adaptive_runs();
	test_adaptive_first_page();
	test_adaptive_fill();
	test_adaptive_fill_together();
	test_adaptive_uncounted();
	read_text(LRU_GEN_FILE, lru_gen, sizeof(lru_gen));
	test_adaptive_in_group("0", "");
	test_adaptive_in_group("y", ", and has generations");
	setting_write(LRU_GEN_FILE, lru_gen);
	read_ahead_write(file_fd, kib);
	test_adaptive_off();
	test_adaptive_leaves(PROT_READ, MADV_RANDOM, "random mappings");
	test_adaptive_leaves(PROT_READ, MADV_SEQUENTIAL, "sequential mappings");
	test_adaptive_leaves(PROT_READ | PROT_EXEC, MADV_NORMAL,
			     "executable mappings");
	set_all_rules(ALL_RULES);
}

/*
 * Pages found locked, and a file system that drops what it is asked to read ahead
 *
 * A page is locked while it is read, so to keep one locked takes a file whose
 * reads wait for the test: a FUSE mount that is nothing but this file, served
 * by a thread. If it has more requests than it takes, it leaves pages out.
 */

#define SLOW_FILE_BYTES	(64UL << 20)
#define SLOW_FILE_INO	0x5107

static struct {
	pthread_t server;
	/* The connection to the kernel, and the file opened through it. */
	int connection;
	struct mapping map;
	/* The read of this page is held back, once it has been asked for. */
	unsigned long held_page;
	/* The request that asked for it; 0 as long as there is none. */
	uint64_t held_request;
	uint64_t held_offset;
	uint32_t held_bytes;
	/* So many requests at once are too many. */
	unsigned int congestion;
	/* Each request takes so many microseconds more. */
	unsigned int delay;
	/* Pages that the kernel has asked for. */
	unsigned long pages_read;
} slow;

/* At the start of each page. */
static uint64_t slow_stamp(unsigned long page)
{
	return page + 1;
}

static void slow_reply(uint64_t request, int error, const void *data,
		       size_t bytes)
{
	struct fuse_out_header header = {
		.len = sizeof(header) + bytes,
		.error = error,
		.unique = request,
	};
	struct iovec parts[] = {
		{ &header, sizeof(header) },
		{ (void *)data, bytes },
	};

	/* This fails for a reader who was killed; nobody waits then. */
	if (writev(slow.connection, parts, 2) < 0 && errno != ENOENT)
		ksft_perror("reply to FUSE");
}

static void slow_reply_data(uint64_t request, uint64_t offset, uint32_t bytes)
{
	char *data = calloc(1, bytes);
	uint32_t at;

	for (at = 0; data && at < bytes; at += page_bytes)
		*(uint64_t *)(data + at) = slow_stamp((offset + at) / page_bytes);
	slow_reply(request, data ? 0 : -ENOMEM, data, data ? bytes : 0);
	free(data);
}

static void slow_read(uint64_t request, const struct fuse_read_in *read)
{
	unsigned long held = slow.held_page * page_bytes;

	__atomic_fetch_add(&slow.pages_read, read->size / page_bytes, __ATOMIC_RELAXED);
	if (slow.delay)
		usleep(slow.delay);
	if (held && read->offset <= held && held < read->offset + read->size) {
		slow.held_offset = read->offset;
		slow.held_bytes = read->size;
		__atomic_store_n(&slow.held_request, request, __ATOMIC_RELEASE);
	} else {
		slow_reply_data(request, read->offset, read->size);
	}
}

static void slow_serve_one(const struct fuse_in_header *header)
{
	const void *body = header + 1;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.flags = FUSE_ASYNC_READ,
		.max_background = slow.congestion ?: 16,
		.congestion_threshold = slow.congestion ?: 12,
		.max_write = 4096,
		.time_gran = 1,
	};
	struct fuse_attr_out attr = {
		.attr_valid = 3600,
		.attr.ino = SLOW_FILE_INO,
		.attr.size = SLOW_FILE_BYTES,
		.attr.mode = S_IFREG | 0600,
		.attr.nlink = 1,
	};
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };

	switch (header->opcode) {
	case FUSE_INIT:
		init.max_readahead =
			((const struct fuse_init_in *)body)->max_readahead;
		slow_reply(header->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		slow_reply(header->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		slow_reply(header->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		slow_read(header->unique, body);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		slow_reply(header->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		slow_reply(header->unique, -EOPNOTSUPP, NULL, 0);
	}
}

static void *slow_serve(void *arg)
{
	/* The kernel wants room for the largest write, and 8 KiB at least. */
	static uint64_t request[(64 << 10) / sizeof(uint64_t)];
	ssize_t bytes;

	/* ENODEV: unmounted. */
	do {
		bytes = read(slow.connection, request, sizeof(request));
		if (bytes >= (ssize_t)sizeof(struct fuse_in_header))
			slow_serve_one((const void *)request);
	} while (bytes >= 0 || errno != ENODEV);
	return arg;
}

/* Open the only file of a FUSE mount that is not part of any directory tree. */
static int slow_mount_and_open(void)
{
	char connection[16], path[32];
	const char *options[][2] = {
		{ "fd", connection },
		{ "rootmode", "100000" },
		{ "user_id", "0" },
		{ "group_id", "0" },
	};
	int context, mount, fd = -1;
	struct stat st;
	unsigned int i;

	context = syscall(__NR_fsopen, "fuse", FSOPEN_CLOEXEC);
	if (context < 0)
		return -1;
	snprintf(connection, sizeof(connection), "%d", slow.connection);
	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (syscall(__NR_fsconfig, context, FSCONFIG_SET_STRING,
			    options[i][0], options[i][1], 0))
			goto out;
	if (syscall(__NR_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		goto out;
	mount = syscall(__NR_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (mount < 0)
		goto out;
	start_thread(&slow.server, slow_serve, NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mount);
	fd = open(path, O_RDONLY);
	/* No fault asks how large the file is. */
	if (fd < 0 || fstat(fd, &st))
		ksft_exit_fail_perror("open of a file in FUSE");
	close(mount);
out:
	close(context);
	return fd;
}

/* Return: NULL, or why there is no such file. */
static const char *slow_open(unsigned int congestion, unsigned int delay)
{
	int fd;

	memset(&slow, 0, sizeof(slow));
	slow.congestion = congestion;
	slow.delay = delay;
	slow.connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (slow.connection < 0)
		return "no /dev/fuse";
	fd = slow_mount_and_open();
	if (fd < 0) {
		close(slow.connection);
		return "cannot mount FUSE";
	}
	map_file(&slow.map, fd, SLOW_FILE_BYTES / page_bytes);
	return NULL;
}

static void slow_close(void)
{
	unmap_and_close(&slow.map);
	pthread_join(slow.server, NULL);
	close(slow.connection);
}

/* Have another process, which shares the open file, touch a page of it. */
static pid_t slow_touch_elsewhere(unsigned long page)
{
	pid_t pid = fork_helper();

	if (!pid) {
		close(slow.connection);
		touch(&slow.map, page);
		_exit(0);
	}
	return pid;
}

/* Wait until a process sleeps and cannot be interrupted: for a page's lock. */
static bool wait_asleep(pid_t pid)
{
	char path[32], text[256], *state;
	int tries, asleep = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (tries = 0; tries < 5000 && asleep < 10; tries++) {
		file = fopen(path, "r");
		if (!file)
			return false;
		state = fgets(text, sizeof(text), file);
		fclose(file);
		state = state ? strrchr(text, ')') : NULL;
		asleep = state && !strncmp(state, ") D", 3) ? asleep + 1 : 0;
		usleep(2000);
	}
	return asleep;
}

/*
 * Miss three times; have one process miss a fourth page, and another find it
 * while it is read; miss a fifth page; have the fourth one come; miss a sixth.
 *
 * Return: NULL, with the counter as the misses found it; or why not.
 */
static const char *counters_with_locked_page(unsigned int rules,
					     unsigned int *counters)
{
	unsigned long step = SLOW_FILE_BYTES / page_bytes / 8, n;
	struct miss misses[7] = { };
	const char *unfit;
	pid_t reader, finder;
	unsigned int nr;

	set_rules(rules);
	unfit = slow_open(0, 0);
	if (unfit)
		return unfit;
	if (!trace_start(slow.map.fd)) {
		slow_close();
		return "no tracefs";
	}
	for (n = 1; n <= 3; n++)
		touch(&slow.map, n * step);
	slow.held_page = 4 * step;
	reader = slow_touch_elsewhere(slow.held_page);
	for (n = 0; n < 10000; n++) {
		if (__atomic_load_n(&slow.held_request, __ATOMIC_ACQUIRE))
			break;
		usleep(1000);
	}
	finder = slow_touch_elsewhere(slow.held_page);
	if (!wait_asleep(finder))
		ksft_print_msg("nobody waits for the page that is read\n");
	touch(&slow.map, 5 * step);
	slow_reply_data(slow.held_request, slow.held_offset, slow.held_bytes);
	waitpid(reader, NULL, 0);
	waitpid(finder, NULL, 0);
	touch(&slow.map, 6 * step);
	nr = trace_stop(misses, ARRAY_SIZE(misses));
	slow_close();
	for (n = 0; n < 6; n++)
		counters[n] = misses[n].mmap_miss;
	ksft_print_msg("%u misses, counter %u %u %u %u, %u, %u\n", nr,
		       counters[0], counters[1], counters[2], counters[3],
		       counters[4], counters[5]);
	return NULL;
}

static void test_locked(void)
{
	const char *found = "unlocked: a page found locked is no hit";
	const char *waited = "unlocked: nor is it when it has come";
	unsigned int with[6], without[6];
	const char *unfit;

	unfit = counters_with_locked_page(ALL_RULES, with);
	if (!unfit)
		unfit = counters_with_locked_page(ALL_RULES & ~UNLOCKED,
						  without);
	if (unfit) {
		ksft_test_result_skip("%s: %s\n", found, unfit);
		ksft_test_result_skip("%s: %s\n", waited, unfit);
		return;
	}
	ksft_test_result(with[3] == 4 && with[4] == 5 &&
			 without[3] == 4 && without[4] == 4, "%s\n", found);
	/*
	 * A fault that waited under the lock of its VMA is tried again without
	 * FAULT_FLAG_TRIED, because it was no major fault.
	 */
	if (with[5] == 6)
		ksft_test_result_pass("%s\n", waited);
	else
		ksft_test_result_xfail("%s\n", waited);
}

#define NR_CONGESTING	4
#define CONGESTED_PAGES	1024UL

/* Read a part of the file forward, the next one backward; no page is read twice. */
static void read_congested(unsigned int part)
{
	unsigned long first = part * SLOW_FILE_BYTES / page_bytes / NR_CONGESTING;
	unsigned long n, page;
	uint64_t stamp;

	for (n = 0; n < CONGESTED_PAGES; n++) {
		page = first + (part % 2 ? CONGESTED_PAGES - 1 - n : n);
		stamp = __atomic_load_n((uint64_t *)page_address(&slow.map, page),
					__ATOMIC_RELAXED);
		if (stamp != slow_stamp(page))
			_exit(1);
	}
	_exit(0);
}

/* Unmounting drops what is still queued. Return: how many pages were read. */
static unsigned long slow_pages_read(void)
{
	unsigned long before, now = 0;

	do {
		before = now;
		usleep(100000);
		now = __atomic_load_n(&slow.pages_read, __ATOMIC_RELAXED);
	} while (now != before);
	return now;
}

/*
 * Have several processes read a file of FUSE, which takes so many requests at once.
 *
 * Return: NULL, with how many pages were asked for in vain; or why not.
 */
static const char *read_slow_file(unsigned int congestion, long *left_out, bool *ok)
{
	struct rusage before, after;
	pid_t readers[NR_CONGESTING];
	unsigned long asked;
	const char *unfit;
	int i, status;

	unfit = slow_open(congestion, congestion ? 500 : 0);
	if (unfit)
		return unfit;
	getrusage(RUSAGE_CHILDREN, &before);
	asked = vm_counter("mmap_readahead");
	for (i = 0; i < NR_CONGESTING; i++) {
		readers[i] = fork_helper();
		if (!readers[i]) {
			close(slow.connection);
			read_congested(i);
		}
	}
	for (i = 0; i < NR_CONGESTING; i++)
		if (waitpid(readers[i], &status, 0) != readers[i] || status) {
			ksft_print_msg("reader %d ended with %#x\n", i, status);
			*ok = false;
		}
	getrusage(RUSAGE_CHILDREN, &after);
	/* Each miss asks for its page as well. */
	asked = vm_counter("mmap_readahead") - asked + after.ru_majflt - before.ru_majflt;
	*left_out = asked - slow_pages_read();
	slow_close();
	ksft_print_msg("%lu pages asked for, %ld left out\n", asked, *left_out);
	return NULL;
}

/*
 * FUSE does not read what is read ahead while it has requests enough. What it leaves out
 * has to come when it is needed.
 */
static void test_congested(void)
{
	const char *name = "adaptive: what a congested file system leaves out comes later";
	unsigned long trouble = kernel_trouble();
	long at_ease = 0, congested = 0;
	const char *unfit;
	bool ok = true;

	set_all_rules(ALL_RULES | ADAPTIVE);
	unfit = read_slow_file(0, &at_ease, &ok);
	if (!unfit)
		unfit = read_slow_file(1, &congested, &ok);
	if (unfit) {
		ksft_test_result_skip("%s: %s\n", name, unfit);
		return;
	}
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok && congested > at_ease + (long)CONGESTED_PAGES / 16, "%s\n", name);
}

#define PRICE_MISSES	24
#define PRICE_DELAY	20000

/*
 * Miss pages far apart in a file whose requests take long.
 *
 * Return: NULL, with what the last miss read of what the first one did, in pages; or why not.
 */
static const char *miss_slowly(const char *request_kb, unsigned long *first,
			       unsigned long *last)
{
	unsigned long step = SLOW_FILE_BYTES / page_bytes / PRICE_MISSES;
	char path[PATH_BYTES];
	const char *unfit;
	unsigned int n;

	unfit = slow_open(0, PRICE_DELAY);
	if (unfit)
		return unfit;
	if (!device_setting_path(slow.map.fd, "request_kb", path) ||
	    setting_write(path, request_kb)) {
		slow_close();
		return "no price of a file in FUSE";
	}
	for (n = 0; n < PRICE_MISSES; n++) {
		/* What is read behind the block around a fault tells whether it was used. */
		*last = touch_and_count(&slow.map, n * step + fault_around / 2);
		if (!n)
			*first = *last;
	}
	slow_close();
	ksft_print_msg("request_kb %s: the first of %d misses reads %lu pages, the last %lu\n",
		       request_kb, PRICE_MISSES, *first, *last);
	return NULL;
}

/* Where requests take long, windows become smaller only if somebody says that they are cheap. */
static void test_adaptive_price(void)
{
	const char *name = "adaptive: what a request costs is measured";
	unsigned long told[2] = { }, measured[2] = { };
	const char *unfit;

	set_all_rules(ALL_RULES | ADAPTIVE);
	unfit = miss_slowly("128", &told[0], &told[1]);
	if (!unfit)
		unfit = miss_slowly("0", &measured[0], &measured[1]);
	if (unfit)
		ksft_test_result_skip("%s: %s\n", name, unfit);
	else
		ksft_test_result(told[0] > 1 && told[1] < told[0] && measured[0] == told[0] &&
				 measured[1] >= measured[0], "%s\n", name);
}

#define DISK_FILE_BYTES	(64UL << 20)

/* Return: pages that the first miss of a new file reads, in a window of 4 MiB. */
static unsigned long first_read(void)
{
	unsigned long pages = DISK_FILE_BYTES / page_bytes, read;
	struct mapping map;
	int fd = make_file();
	long kib;

	if (fd < 0 || ftruncate(fd, DISK_FILE_BYTES))
		ksft_exit_fail_perror("one more file");
	kib = read_ahead_read(fd);
	if (kib < 0 || !read_ahead_write(fd, 4096))
		ksft_exit_fail_perror("read_ahead_kb");
	map_file(&map, open_again(fd), pages);
	read_ahead_write(fd, kib);
	close(fd);
	read = touch_and_count(&map, pages / 2);
	unmap_and_close(&map);
	return read;
}

/* Until a file has waited for it, a disk that rotates is taken for one that answers late. */
static void test_adaptive_rotating(void)
{
	const char *name = "adaptive: what a request costs begins with the kind of the disk";
	unsigned long still, rotating;
	char path[PATH_BYTES];

	if (!queue_setting_path(AT_FDCWD, "rotational", path)) {
		ksft_test_result_skip("%s: no disk below the file\n", name);
		return;
	}
	set_all_rules(ALL_RULES | ADAPTIVE);
	if (!device_setting_write(AT_FDCWD, "request_kb", 0))
		ksft_exit_fail_msg("request_kb cannot be set\n");
	set_setting(path, "0");
	still = first_read();
	set_setting(path, "1");
	rotating = first_read();
	ksft_print_msg("the first miss reads %lu pages, and %lu where the disk rotates\n",
		       still, rotating);
	ksft_test_result(still > 1 && rotating > still, "%s\n", name);
}

/* Everything at once */

#define NR_FAULTERS	3
#define TURMOIL_SECONDS	3

static struct mapping turmoil_map;
static unsigned long turmoil_pages;
static bool turmoil_over;

struct tally {
	pthread_t thread;
	struct rng rng;
	unsigned long done, sigbus;
	bool failed;
};

static void *fault_pages(void *arg)
{
	struct tally *tally = arg;
	unsigned long page;
	uint64_t value;

	while (!__atomic_load_n(&turmoil_over, __ATOMIC_RELAXED)) {
		page = random_below(&tally->rng, turmoil_pages);
		if (access_page(page_address(&turmoil_map, page), NULL, &value))
			tally->sigbus++;
		else
			tally->done++;
	}
	return NULL;
}

static void *flip_switches(void *arg)
{
	struct tally *tally = arg;
	unsigned int rules;

	/* Often through 0, where the code itself is patched. */
	while (!__atomic_load_n(&turmoil_over, __ATOMIC_RELAXED)) {
		rules = tally->done % 2 ?
			tally->done / 2 * 37 % (2 * ADAPTIVE) : 0;
		if (rules_write(rules & ALL_RULES))
			tally->failed = true;
		if (setting_write(ADAPTIVE_FILE, rules & ADAPTIVE ? "1" : "0"))
			tally->failed = true;
		/* Not every device has one. */
		device_setting_write(file_fd, "request_kb", tally->done % 3 ? 0 : 1);
		tally->done++;
	}
	return NULL;
}

static void *resize_file(void *arg)
{
	struct tally *tally = arg;
	unsigned long pages;

	while (!__atomic_load_n(&turmoil_over, __ATOMIC_RELAXED)) {
		pages = turmoil_pages >> (tally->done % 3);
		if (ftruncate(file_fd, pages * page_bytes))
			tally->failed = true;
		posix_fadvise(file_fd, 0, 0, POSIX_FADV_DONTNEED);
		madvise(turmoil_map.start, turmoil_pages * page_bytes,
			MADV_DONTNEED);
		tally->done++;
		usleep(1000);
	}
	return NULL;
}

/* Last of all: it leaves the test file in pieces. */
static void test_turmoil(void)
{
	struct tally tallies[NR_FAULTERS + 2] = { };
	struct tally *flips = &tallies[NR_FAULTERS];
	struct tally *resizes = &tallies[NR_FAULTERS + 1];
	unsigned long trouble = kernel_trouble(), touched = 0, sigbus = 0;
	bool ok = true;
	int i;

	open_cold(&turmoil_map);
	turmoil_pages = 16 * window;
	catch_signals();
	start_thread(&flips->thread, flip_switches, flips);
	start_thread(&resizes->thread, resize_file, resizes);
	for (i = 0; i < NR_FAULTERS; i++) {
		tallies[i].rng.state = i;
		start_thread(&tallies[i].thread, fault_pages, &tallies[i]);
	}
	sleep(TURMOIL_SECONDS);
	__atomic_store_n(&turmoil_over, true, __ATOMIC_RELAXED);
	for (i = 0; i < NR_FAULTERS + 2; i++) {
		pthread_join(tallies[i].thread, NULL);
		ok &= !tallies[i].failed && tallies[i].done;
	}
	for (i = 0; i < NR_FAULTERS; i++) {
		touched += tallies[i].done;
		sigbus += tallies[i].sigbus;
	}
	unmap_and_close(&turmoil_map);
	ksft_print_msg("%lu pages touched, %lu beyond the end; %lu flips, %lu resizes\n",
		       touched, sigbus, flips->done, resizes->done);
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok, "faults, flips and resizes side by side\n");
}

/* All tests, and those who run them */

struct test_case {
	void (*run)(unsigned int rules, bool stops, const char *name);
	unsigned int rules;
	bool stops;
	const char *name;
};

static const struct test_case test_cases[] = {
	{ test_sparse, ALL_RULES, true,
	  "all rules: sparse reads stop readahead" },
	{ test_sparse, 0, false,
	  "no rule: every sparse read gets a window" },
	{ test_sparse, FIRST_TRY, true,
	  "first try alone: sparse reads stop readahead" },
	{ test_sparse, ADDRESS, false,
	  "address alone: retries pay for sparse reads" },
	{ test_sparse, UNLOCKED, false,
	  "unlocked alone: retries pay for sparse reads" },
	{ test_neighbours, FIRST_TRY, false,
	  "first try alone: neighbours pay for misses" },
	{ test_neighbours, FIRST_TRY | ADDRESS, true,
	  "first try and address: neighbours count for nothing" },
};

#define NR_HIT_TESTS	3
#define NR_HINT_TESTS	3
#define NR_LOCKED_TESTS	2
#define NR_FILE_TESTS	(1 + ARRAY_SIZE(test_cases) + NR_HIT_TESTS + 2 + \
			 1 + NR_HINT_TESTS + 1 + 4 + NR_ADAPTIVE_TESTS + \
			 NR_LOCKED_TESTS + 4)

static void clean_up(void)
{
	trace_clean_up();
	memory_cgroup_remove();
}

static void run_tests(void)
{
	char path[PATH_BYTES];
	const char *unfit;
	unsigned int i;

	ksft_set_plan(NR_SWITCHES + 3 + NR_FILE_TESTS);

	for (i = 0; i < NR_SWITCHES; i++) {
		snprintf(path, sizeof(path), SWITCH_DIR "/%s", switches[i]);
		test_switch_values(path, &numbers);
	}
	test_switch_values(ADAPTIVE_FILE, &booleans);
	test_request_values();
	test_switches_independent();

	set_all_rules(ALL_RULES);
	unfit = prepare_file();
	if (unfit) {
		skip_tests(NR_FILE_TESTS, unfit);
		ksft_finished();
	}

	test_window();
	for (i = 0; i < ARRAY_SIZE(test_cases); i++)
		test_cases[i].run(test_cases[i].rules, test_cases[i].stops,
				  test_cases[i].name);
	/* The last miss finds the counter at 119 less the hits. */
	test_hits(ALL_RULES, ACCESSES - 1 - MISS_LIMIT, false,
		  "all rules: a hit counts once, 19 are not enough");
	test_hits(ALL_RULES, ACCESSES - MISS_LIMIT, true,
		  "all rules: a hit counts once, 20 are enough");
	test_hits(FIRST_TRY, (ACCESSES - MISS_LIMIT) / fault_around + 1, true,
		  "first try alone: a hit counts for all it maps");
	test_sequential();
	test_random_hint();
	test_trace_sparse();
	test_trace_hint(MADV_RANDOM, "random-hint");
	test_trace_hint(MADV_SEQUENTIAL, "sequential-hint");
	test_trace_hint(MADV_HUGEPAGE, "huge-hint");
	test_trace_device();
	first_miss_beside_text(false, "single",
			       "adaptive: it does where somebody else maps text");
	first_miss_beside_text(true, "around",
			       "adaptive: not where the open file is a program");
	test_adaptive_text(ALL_RULES | ADAPTIVE, false,
			   "adaptive: data of programs is read as with no rule");
	test_adaptive_text((ALL_RULES | ADAPTIVE) & ~TEXT_KEEPS_HITS, true,
			   "adaptive: unless the rules for hits apply there");
	run_adaptive_tests();
	test_locked();
	test_congested();
	test_adaptive_price();
	test_adaptive_rotating();
	test_turmoil();
	ksft_finished();
}

int main(void)
{
	char path[PATH_BYTES];

	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root to write the switches\n");
	page_cache_init();
	guard_switches();
	guard_device_setting("request_kb");
	guard_device_setting("read_ahead_kb");
	if (queue_setting_path(AT_FDCWD, "rotational", path))
		guard_setting(path);
	guard_setting(LRU_GEN_FILE);
	return run_guarded(run_tests, clean_up);
}
