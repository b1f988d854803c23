// SPDX-License-Identifier: GPL-2.0-only
/*
 * Readahead for program text, and for mappings hinted for huge pages: what one
 * miss reads, and what it does to the file's miss counter.
 *
 * The test gives text a folio size of its own, so that it needs no architecture
 * that prefers one. All but the tests of windows read a single folio. mincore()
 * tells what a miss read, the tracepoint what it was to read, and why.
 *
 * Run it as root, in a directory of a file system with large folios:
 *
 *	./mmap_readahead_text
 *
 * The tests run in a child. Its parent puts all settings back, however the
 * child ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../kselftest.h"
#include "mmap_readahead_util.h"
#include "page_cache_util.h"

/* Text in folios, and nothing behind them. */
#define ONE_FOLIO	(ALL_RULES & ~TEXT_WINDOWS)

/* Blocks of a window, where there are windows of text. */
#define WINDOW_BLOCKS	4

#define NR_BLOCKS	160
#define NR_MISSES	150

#define DATA_MISSES	20
#define OTHER_HITS	10

/* The test file, unlinked from the start. It ends amid a block and a page. */
static int file_fd;
static unsigned long file_pages;

/* What is missing keeps tests from running. */
static bool large_folios;

/*
 * Whether text is read page by page as long as no size is chosen for it: where
 * a page is all that the architecture wants, though it has large ones.
 */
static bool single_pages;

/* The size that text is to have, here also called a block. */
static const struct folio_size *text_size;
static unsigned long block;

/* Measured once; all in pages. */
static unsigned long window, one_folio, fault_around;

/* The value at the start of a block. */
static uint64_t stamp(unsigned long nr)
{
	return nr + 0x5eed;
}

static bool stamp_right(const struct mapping *map, unsigned long nr)
{
	return *(uint64_t *)page_address(map, nr * block) == stamp(nr);
}

/* Give text its size, and leave all others to readahead. */
static void set_text_size(const struct folio_size *size)
{
	set_all_folio_sizes(USE_ALWAYS);
	if (size)
		set_folio_size(size, USE_ALWAYS_EXEC);
}

/*
 * A part of the file mapped as text. Nothing is in the cache. The whole file is
 * mapped as data beside it, to be looked at with mincore().
 */
struct text {
	struct mapping whole, part;
};

static void open_text(struct text *text, unsigned long first,
		      unsigned long pages)
{
	map_cold(&text->whole, file_fd, file_pages);
	map_part(&text->part, text->whole.fd, first, pages,
		 PROT_READ | PROT_EXEC);
}

static void close_text(struct text *text)
{
	unmap(&text->part);
	unmap_and_close(&text->whole);
}

/* What the first miss of a file is to read, and why. */
struct expected {
	const char *reason;
	unsigned long start, size, async_size;
	unsigned int order;
};

/* Exactly these pages are in the cache, as far as the file has them. */
static bool cached_exactly(const struct mapping *whole, unsigned long start,
			   unsigned long size)
{
	unsigned long end = start + size, all;

	/* Blocks of the file system can be larger than pages. */
	start -= start % one_folio;
	end += (one_folio - end % one_folio) % one_folio;
	if (end > file_pages)
		end = file_pages;
	all = cached_pages(whole, 0, file_pages);
	if (all == end - start &&
	    all == cached_pages(whole, start, end - start))
		return true;
	ksft_print_msg("%lu pages are cached, %lu of them within %lu..%lu\n",
		       all, cached_pages(whole, start, end - start), start,
		       end - 1);
	return false;
}

/* Touch a page of a mapping; its first miss must be as expected. */
static bool first_miss_is(const struct mapping *map, unsigned long page,
			  const struct expected *expected)
{
	struct miss miss = { };
	bool traced, ok;

	traced = trace_start(map->fd);
	touch(map, page);
	if (!traced)
		return true;
	ok = trace_stop(&miss, 1) == 1 && miss.index == page &&
	     !strcmp(miss.reason, expected->reason) &&
	     miss.start == expected->start && miss.size == expected->size &&
	     miss.async_size == expected->async_size &&
	     miss.order == expected->order;
	if (!ok)
		print_miss(&miss);
	return ok;
}

/* Touch a page of text, cold; it must read these pages of a block, no others. */
static bool text_reads(unsigned long first, unsigned long pages,
		       unsigned long page, unsigned long start,
		       unsigned long size)
{
	const struct expected expected = {
		.reason = "text",
		.start = start,
		.size = size,
		.order = text_size->order,
	};
	struct text text;
	bool ok;

	open_text(&text, first, pages);
	ok = first_miss_is(&text.part, page, &expected);
	ok &= cached_exactly(&text.whole, start, size);
	/* A readahead mark would read on when it is found. */
	for (page = start; page < start + size && page < file_pages; page++)
		touch(&text.whole, page);
	ok &= cached_exactly(&text.whole, start, size);
	close_text(&text);
	if (!ok)
		ksft_print_msg("for pages %lu..%lu of text %lu..%lu\n", start,
			       start + size - 1, first, first + pages - 1);
	return ok;
}

/* Read pages of the test file one by one, without readahead. */
static void read_page_alone(const struct mapping *map, unsigned long page)
{
	char byte;

	posix_fadvise(map->fd, 0, 0, POSIX_FADV_RANDOM);
	if (pread(map->fd, &byte, 1, page * page_bytes) != 1)
		ksft_exit_fail_perror("read of the test file");
}

/* Tests that take large folios */

struct text_test {
	bool (*run)(void);
	const char *name;
};

static void run_text_tests(const struct text_test *tests, unsigned int nr)
{
	const struct text_test *test;

	if (!large_folios) {
		skip_tests(nr, "no large folios");
		return;
	}
	for (test = tests; test < tests + nr; test++)
		ksft_test_result(test->run(), "%s\n", test->name);
}

/* One block */

static bool test_block(void)
{
	const unsigned long within[] = { 0, 1, block / 2, block - 1 };
	unsigned long nr, i;
	bool ok = true;

	for (i = 0; i < ARRAY_SIZE(within); i++) {
		nr = 10 * (i + 1);
		ok &= text_reads(0, file_pages, nr * block + within[i],
				 nr * block, block);
	}
	return ok;
}

static bool test_one_folio(void)
{
	unsigned long failed = folio_size_stat(text_size, "file_fallback");
	unsigned long made = folio_size_stat(text_size, "file_alloc");
	unsigned long counts[MAX_ORDER_NR];
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	touch(&text.part, 20 * block + 1);
	ok = stamp_right(&text.part, 20);
	failed = folio_size_stat(text_size, "file_fallback") - failed;
	made = folio_size_stat(text_size, "file_alloc") - made;
	if (!count_folios(text.whole.fd, 20 * block, block, counts))
		counts[text_size->order] = made;
	close_text(&text);
	ksft_print_msg("%lu folios counted, %lu seen, %lu fallbacks\n", made,
		       counts[text_size->order], failed);
	return ok && (failed || (made && counts[text_size->order] == 1));
}

/* Also if readahead may use no large folio at all. */
static bool test_exec_alone(void)
{
	bool ok;

	set_all_folio_sizes(USE_NEVER);
	set_folio_size(text_size, USE_EXEC);
	ok = test_one_folio() && test_block();
	set_text_size(text_size);
	return ok;
}

static bool test_start_of_mapping(void)
{
	unsigned long first = 10 * block + 1;

	return text_reads(first, 3 * block, first, first, block - 1) &&
	       text_reads(first, 3 * block, 11 * block - 1, first, block - 1) &&
	       text_reads(first, 3 * block, 11 * block, 11 * block, block);
}

static bool test_end_of_mapping(void)
{
	unsigned long first = 10 * block, end = 12 * block + block / 2;

	return text_reads(first, block / 2 + 1, first, first, block / 2 + 1) &&
	       text_reads(first, end - first, end - 1, 12 * block, block / 2) &&
	       text_reads(first, end - first, 12 * block, 12 * block,
			  block / 2) &&
	       text_reads(first, end - first, 12 * block - 1, 11 * block, block);
}

static bool test_within_block(void)
{
	unsigned long first = 10 * block + 1;

	return text_reads(first, 2, first + 1, first, 2) &&
	       text_reads(first, 1, first, first, 1);
}

/* The tracepoint tells of the window before the end of the file cuts it. */
static bool test_end_of_file(void)
{
	unsigned long last = file_pages - file_pages % block;

	return text_reads(0, last + block, last, last, block) &&
	       text_reads(0, file_pages, file_pages - 1, last, block / 2);
}

/* With one page of the block cached, the others are read, and no more. */
static bool test_cached_page(void)
{
	const unsigned long within[] = { 0, block / 2, block - 1 };
	unsigned long i, page;
	struct text text;
	bool ok = true;

	for (i = 0; i < ARRAY_SIZE(within); i++) {
		open_text(&text, 0, file_pages);
		page = 10 * block + within[i];
		read_page_alone(&text.whole, page);
		ok &= cached_exactly(&text.whole, page, 1);
		touch(&text.part, 10 * block + (within[i] + block / 2) % block);
		ok &= cached_exactly(&text.whole, 10 * block, block);
		ok &= stamp_right(&text.part, 10);
		close_text(&text);
	}
	return ok;
}

/* Does the first miss in text with a hint read as @expected, and no more? */
static bool advised_miss_is(int advice, const struct expected *expected)
{
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	madvise(text.part.start, file_pages * page_bytes, advice);
	ok = first_miss_is(&text.part, 10 * block + 1, expected) &&
	     cached_exactly(&text.whole, expected->start, expected->size);
	close_text(&text);
	return ok;
}

static bool test_hints(void)
{
	/* With large blocks of the file system, no folio is a single page. */
	const struct expected single = {
		.reason = "random-hint",
		.start = (10 * block + 1) / one_folio * one_folio,
		.size = one_folio,
		.order = __builtin_ctzl(one_folio),
	};
	const struct expected one_block = {
		.reason = "text",
		.start = 10 * block,
		.size = block,
		.order = text_size->order,
	};

	return advised_miss_is(MADV_RANDOM, &single) &&
	       advised_miss_is(MADV_SEQUENTIAL, &one_block);
}

static void test_little_memory(void)
{
	const char *name = "one block: smaller folios if memory is short";
	const struct folio_size *huge = folio_size_of(2UL << 20);
	const struct folio_size *half = folio_size_of(1UL << 20);
	unsigned long failed, made, nr, cached;
	struct text text;
	bool ok;

	if (!memory_cgroup_make(3UL << 19)) {
		ksft_test_result_skip("%s: no memory cgroup\n", name);
		return;
	}
	set_text_size(huge);
	failed = folio_size_stat(huge, "file_fallback_charge");
	made = folio_size_stat(half, "file_alloc");
	open_text(&text, 0, file_pages);
	nr = huge->bytes / page_bytes;
	ok = memory_cgroup_touch(&text.part, nr, stamp(nr / block));
	failed = folio_size_stat(huge, "file_fallback_charge") - failed;
	made = folio_size_stat(half, "file_alloc") - made;
	cached = cached_pages(&text.whole, nr, nr);
	ksft_print_msg("%lu fallbacks, %lu of half the size, %lu of %lu pages\n",
		       failed, made, cached, nr);
	ok &= failed && made && cached && cached < nr &&
	     cached == cached_pages(&text.whole, 0, file_pages);
	close_text(&text);
	memory_cgroup_remove();
	set_text_size(text_size);
	ksft_test_result(ok, "%s\n", name);
}

/* A window that begins with a block */

/* Wherever in its block the missing page is: in folios, and without a mark. */
static bool test_window(void)
{
	unsigned long counts[MAX_ORDER_NR], pages = WINDOW_BLOCKS * block;
	struct text text;
	bool ok;

	ok = text_reads(0, file_pages, 20 * block, 20 * block, pages) &&
	     text_reads(0, file_pages, 30 * block + block / 2, 28 * block, pages) &&
	     text_reads(0, file_pages, 44 * block - 1, 40 * block, pages);
	open_text(&text, 0, file_pages);
	touch(&text.part, 50 * block + 1);
	/* The one before is a miss of its own. */
	ok &= cached_exactly(&text.whole, 48 * block, pages);
	touch(&text.part, 48 * block - 1);
	ok &= cached_exactly(&text.whole, 44 * block, 2 * pages);
	if (count_folios(text.whole.fd, 44 * block, 2 * pages, counts))
		ok &= counts[text_size->order] == 2 * WINDOW_BLOCKS;
	close_text(&text);
	return ok;
}

/* Two, behind what is cached; but not if a page of the second one is. */
static bool test_window_goes_on(void)
{
	unsigned long pages = WINDOW_BLOCKS * block;
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	touch(&text.part, 48 * block);
	touch(&text.part, 52 * block + 1);
	ok = cached_exactly(&text.whole, 48 * block, 3 * pages);
	touch(&text.part, 64 * block);
	touch(&text.part, 60 * block);
	ok &= cached_exactly(&text.whole, 48 * block, 5 * pages);
	close_text(&text);

	open_text(&text, 0, 59 * block);
	touch(&text.part, 48 * block);
	touch(&text.part, 52 * block - 1);
	ok &= cached_exactly(&text.whole, 48 * block, pages);
	touch(&text.part, 52 * block);
	ok &= cached_exactly(&text.whole, 48 * block, 11 * block);
	close_text(&text);
	return ok;
}

/* A miss that reads the window around its page. */
static bool reads_as_data(const struct mapping *part, unsigned long page)
{
	unsigned long pages = WINDOW_BLOCKS * block;
	const struct expected expected = {
		.reason = "around",
		.start = page - pages / 2,
		.size = pages,
		.async_size = pages / 4,
	};

	return first_miss_is(part, page, &expected);
}

/* Touch a window of text, and have it evicted. Return: whether nothing is cached then. */
static bool evict_window(struct text *text, unsigned long first)
{
	unsigned long page, pages = WINDOW_BLOCKS * block;
	unsigned int tries = 100;

	for (page = first; page < first + pages; page++)
		touch(&text->part, page);
	/* Folios that somebody else has isolated or locked stay. */
	while (cached_pages(&text->whole, 0, file_pages) && tries--) {
		if (madvise(text->part.start + first * page_bytes,
			    pages * page_bytes, MADV_PAGEOUT))
			ksft_exit_fail_perror("madvise");
		usleep(1000);
	}
	return !cached_pages(&text->whole, 0, file_pages);
}

/* Once reclaim has taken some for want of memory, all text of an open file is read as data. */
static bool test_window_evicted(void)
{
	unsigned long first = 20 * block, pages = WINDOW_BLOCKS * block;
	const struct expected one_block = {
		.reason = "text",
		.start = first + pages - block,
		.size = block,
		.order = text_size->order,
	};
	const struct expected one_window = {
		.reason = "text",
		.start = first,
		.size = pages,
		.order = text_size->order,
	};
	struct mapping other;
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	/* Memory can hold far more: somebody else has evicted it. */
	ok = evict_window(&text, first) && first_miss_is(&text.part, first, &one_window);
	/* A group that could hold the file a few times. */
	if (!memory_cgroup_make(3 * file_pages * page_bytes) || !memory_cgroup_join()) {
		ksft_print_msg("no memory cgroup\n");
		memory_cgroup_remove();
		close_text(&text);
		return ok;
	}
	ok &= evict_window(&text, first);
	/* With one folio a miss, it makes no difference. */
	set_rules(ONE_FOLIO);
	ok &= first_miss_is(&text.part, one_block.start, &one_block);
	set_rules(ALL_RULES);
	ok &= reads_as_data(&text.part, first) &&
	      reads_as_data(&text.part, 60 * block);
	/* Another open file is another matter, until it finds such a page as well. */
	map_part(&other, open_again(file_fd), 0, file_pages, PROT_READ | PROT_EXEC);
	touch(&other, 100 * block);
	ok &= cached_pages(&text.whole, 100 * block, pages) == pages &&
	      reads_as_data(&other, first + pages - 2 * block) &&
	      reads_as_data(&other, 120 * block);
	unmap_and_close(&other);
	close_text(&text);
	ok &= memory_cgroup_leave();
	memory_cgroup_remove();
	return ok && text_reads(0, file_pages, 60 * block, 60 * block, pages);
}

static bool test_window_in_mapping(void)
{
	unsigned long first = 10 * block + 1, pages = WINDOW_BLOCKS * block;

	return text_reads(first, 2 * pages, first, first, 2 * block - 1) &&
	       text_reads(first, 2 * pages, 12 * block - 1, first, 2 * block - 1) &&
	       text_reads(first, 2 * pages, 13 * block + 1, 12 * block, pages) &&
	       text_reads(first, pages, 13 * block, 12 * block,
			  2 * block + 1) &&
	       text_reads(first, 2, first + 1, first, 2);
}

/* The tracepoint tells of the window before the end of the file cuts it. */
static bool test_window_in_file(void)
{
	unsigned long last = file_pages - 1, pages = WINDOW_BLOCKS * block;
	unsigned long start = last - last % pages;

	return text_reads(0, last + 2 * pages, last, start, pages) &&
	       text_reads(0, file_pages, last, start, file_pages - start);
}

/* One that lies within a folio is no window. */
static bool test_small_window(void)
{
	bool ok = true;

	if (block > 1) {
		ok = read_ahead_write(file_fd, text_size->bytes / 2 >> 10) &&
		     text_reads(0, file_pages, 21 * block - 1, 20 * block, block);
		read_ahead_write(file_fd, WINDOW_BLOCKS * text_size->bytes >> 10);
	}
	return ok;
}

/* With pages of the window cached, the others are read, and no more. */
static bool test_window_around_pages(void)
{
	unsigned long pages = WINDOW_BLOCKS * block;
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	read_page_alone(&text.whole, 8 * block + pages / 2 + 1);
	touch(&text.part, 8 * block);
	ok = cached_exactly(&text.whole, 8 * block, pages);
	close_text(&text);
	return ok;
}

/* Behind a page of the window that is cached, it begins with the block. */
static bool test_window_behind_pages(void)
{
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	read_page_alone(&text.whole, 8 * block);
	touch(&text.part, 10 * block + 1);
	ok = cached_pages(&text.whole, 10 * block, 2 * block) == 2 * block &&
	     cached_pages(&text.whole, 0, file_pages) == 2 * block + one_folio;
	close_text(&text);
	return ok;
}

static const struct text_test window_tests[] = {
	{ test_window, "window: the aligned one that holds the page" },
	{ test_window_goes_on, "window: and the next one, behind what is cached" },
	{ test_window_evicted, "window: none once text was evicted" },
	{ test_window_in_mapping, "window: no more than the mapping has" },
	{ test_window_in_file, "window: not beyond the end of the file" },
	{ test_small_window, "window: a block if read_ahead_kb is less" },
	{ test_window_around_pages, "window: around pages that are cached" },
	{ test_window_behind_pages, "window: behind pages that are cached" },
};

static void test_windows(void)
{
	long kib = read_ahead_read(file_fd);

	set_rules(ALL_RULES);
	if (!read_ahead_write(file_fd, WINDOW_BLOCKS * text_size->bytes >> 10))
		ksft_exit_fail_msg("read_ahead_kb cannot be set\n");
	run_text_tests(window_tests, ARRAY_SIZE(window_tests));
	read_ahead_write(file_fd, kib);
	set_rules(ONE_FOLIO);
}

/* What is read otherwise */

/* A miss in text must be as one in data is. */
static bool text_as_data(unsigned long page, const char *reason)
{
	struct miss data_miss = { }, text_miss = { };
	unsigned long cached;
	struct text text;
	bool traced, ok;

	open_text(&text, 0, file_pages);
	traced = trace_start(text.whole.fd);
	touch(&text.whole, page);
	if (traced)
		trace_stop(&data_miss, 1);
	cached = cached_pages(&text.whole, 0, file_pages);
	close_text(&text);

	open_text(&text, 0, file_pages);
	traced = trace_start(text.whole.fd);
	touch(&text.part, page);
	if (traced)
		trace_stop(&text_miss, 1);
	ok = cached == cached_pages(&text.whole, 0, file_pages) &&
	     (!traced || (!strcmp(data_miss.reason, reason) &&
			  !memcmp(&data_miss, &text_miss, sizeof(text_miss))));
	close_text(&text);
	if (!ok) {
		print_miss(&data_miss);
		print_miss(&text_miss);
	}
	return ok;
}

static bool one_page_of_text(unsigned long page)
{
	const struct expected expected = {
		.reason = "text",
		.start = page,
		.size = 1,
	};
	struct text text;
	bool ok;

	open_text(&text, 0, file_pages);
	ok = first_miss_is(&text.part, page, &expected);
	ok &= cached_exactly(&text.whole, page, 1);
	close_text(&text);
	return ok;
}

static bool test_no_choice(void)
{
	unsigned long page = file_pages / 2 + 1;
	bool ok;

	set_text_size(NULL);
	ok = single_pages ? one_page_of_text(page) :
			    text_as_data(page, "around");
	set_text_size(text_size);
	return ok;
}

static bool test_switched_off(void)
{
	bool ok;

	set_rules(ONE_FOLIO & ~TEXT);
	ok = text_as_data(file_pages / 2 + 1, "around");
	set_rules(0);
	ok &= text_as_data(file_pages / 2 + 1, "around");
	set_rules(ONE_FOLIO);
	return ok;
}

static void test_readahead_off(void)
{
	long kib = read_ahead_read(file_fd);
	const char *name = "readahead off: one page";
	bool ok;

	if (kib < 0 || !read_ahead_write(file_fd, 0)) {
		ksft_test_result_skip("%s: the device has no such setting\n",
				      name);
		return;
	}
	ok = text_as_data(file_pages / 2 + 1, "off");
	read_ahead_write(file_fd, kib);
	ksft_test_result(ok, "%s\n", name);
}

/* The counter */

static bool misses_are(unsigned int rules, bool counted)
{
	static struct miss misses[NR_MISSES + 1];
	struct text text;
	unsigned int n, nr;
	bool ok;

	set_rules(rules);
	open_text(&text, 0, file_pages);
	trace_start(text.whole.fd);
	for (n = 0; n < NR_MISSES; n++)
		touch(&text.part, n * block + n % block);
	nr = trace_stop(misses, ARRAY_SIZE(misses));
	ok = nr == NR_MISSES;
	for (n = 0; ok && n < nr; n++) {
		const struct miss *miss = &misses[n];
		bool read = !counted || n < MISS_LIMIT;

		ok = miss->mmap_miss == (counted ? n + 1 : 0) &&
		     !strcmp(miss->reason, read ? "text" : "misses") &&
		     miss->size == (read ? block : one_folio);
		if (!ok)
			print_miss(miss);
	}
	close_text(&text);
	set_rules(ONE_FOLIO);
	ksft_print_msg("%u misses\n", nr);
	return ok;
}

/* Page of the n-th of a series of accesses two windows apart. */
static unsigned long sparse_page(unsigned int n)
{
	return window + n * 2 * window;
}

/*
 * Miss in data, hit what that read in another mapping of the same open file,
 * and miss in data again.
 *
 * Return: what the hits took off the counter.
 */
static unsigned int taken_by_hits(unsigned int rules, int prot, int advice)
{
	struct miss misses[DATA_MISSES + 2] = { };
	struct mapping data, other;
	unsigned int n, nr;

	set_rules(rules);
	map_cold(&data, file_fd, file_pages);
	map_part(&other, data.fd, 0, file_pages, prot);
	if (advice != MADV_NORMAL)
		madvise(other.start, file_pages * page_bytes, advice);
	trace_start(data.fd);
	for (n = 0; n < DATA_MISSES; n++)
		touch(&data, sparse_page(n));
	for (n = 0; n < OTHER_HITS; n++)
		touch(&other, sparse_page(n));
	touch(&data, sparse_page(DATA_MISSES));
	nr = trace_stop(misses, ARRAY_SIZE(misses));
	unmap(&other);
	unmap_and_close(&data);
	set_rules(ONE_FOLIO);
	if (nr != DATA_MISSES + 1 ||
	    misses[DATA_MISSES - 1].mmap_miss != DATA_MISSES) {
		ksft_print_msg("%u misses\n", nr);
		return UINT32_MAX;
	}
	return DATA_MISSES + 1 - misses[DATA_MISSES].mmap_miss;
}

/* Hits count with these rules, but not with those. */
static bool hits_depend(unsigned int with, unsigned int without, int prot,
			int advice)
{
	unsigned int taken = taken_by_hits(with, prot, advice);
	unsigned int otherwise = taken_by_hits(without, prot, advice);

	ksft_print_msg("hits take %u, or %u\n", taken, otherwise);
	return taken == OTHER_HITS && !otherwise;
}

static void test_text_hits(void)
{
	int prot = PROT_READ | PROT_EXEC;
	unsigned int taken, all, without;

	if (large_folios) {
		ksft_test_result(hits_depend(ONE_FOLIO & ~COUNTED_MISS,
					     ONE_FOLIO, prot, MADV_NORMAL),
				 "counter: text hits do not lower it\n");
		ksft_test_result(hits_depend(ONE_FOLIO & ~TEXT_UNCOUNTED,
					     ONE_FOLIO, prot, MADV_NORMAL),
				 "counter: they do if its misses count\n");
	} else {
		skip_tests(2, "no large folios");
	}

	/* Without a size for it, and not even a page, text is read as data. */
	set_text_size(NULL);
	without = single_pages ? TEXT : 0;
	taken = taken_by_hits(ONE_FOLIO & ~without & ~TEXT_KEEPS_HITS, prot,
			      MADV_NORMAL);
	ksft_print_msg("hits take %u\n", taken);
	ksft_test_result(taken == OTHER_HITS,
			 "counter: hits of text read as data may count as data's\n");
	/* Each counts for all that it maps, as long as there is any to take. */
	all = OTHER_HITS * fault_around;
	if (all > DATA_MISSES)
		all = DATA_MISSES;
	taken = taken_by_hits(ONE_FOLIO & ~without, prot, MADV_NORMAL);
	ksft_print_msg("hits take %u, to be %u\n", taken, all);
	ksft_test_result(taken == all,
			 "counter: they count as without rules\n");
	set_text_size(text_size);
}

static void test_hint_hits(void)
{
	const char *random = "counter: nor do hits with the random hint";
	const char *huge = "counter: nor do hits with the huge-page hint";
	unsigned int without = ONE_FOLIO & ~COUNTED_MISS;

	ksft_test_result(hits_depend(without, ONE_FOLIO, PROT_READ,
				     MADV_SEQUENTIAL),
			 "counter: hits with the sequential hint do not lower it\n");
	/* Only faulting around counts such hits. */
	if (fault_around == 1)
		ksft_test_result_skip("%s: fault-around is off\n", random);
	else
		ksft_test_result(hits_depend(without, ONE_FOLIO, PROT_READ,
					     MADV_RANDOM), "%s\n", random);
	if (!large_folios)
		ksft_test_result_skip("%s: no large folios\n", huge);
	else
		ksft_test_result(hits_depend(without, ONE_FOLIO, PROT_READ,
					     MADV_HUGEPAGE), "%s\n", huge);
}

/* The hint for huge pages */

#define NR_HUGE_TESTS	4

/* With hints, a miss must be as expected. What it reads is looked at later. */
static bool hinted_miss_is(const struct mapping *map, bool random,
			   unsigned long page, const struct expected *expected)
{
	if (madvise(map->start, file_pages * page_bytes, MADV_HUGEPAGE))
		return false;
	if (random)
		madvise(map->start, file_pages * page_bytes, MADV_RANDOM);
	return first_miss_is(map, page, expected);
}

/* Where the page cache can hold what a PMD maps, that is read, or twice that. */
static bool test_pmd(bool random, unsigned int rules)
{
	const struct folio_size *pmd = folio_size_of(pmd_bytes());
	unsigned long pages = pmd->bytes / page_bytes;
	const struct expected expected = {
		.reason = "huge-hint",
		.start = 0,
		.size = random ? pages : 2 * pages,
		.async_size = pages,
		.order = pmd->order,
	};
	struct mapping map;
	bool ok;

	set_rules(rules);
	map_cold(&map, file_fd, file_pages);
	ok = hinted_miss_is(&map, random, 1, &expected);
	unmap_and_close(&map);
	set_rules(ONE_FOLIO);
	return ok;
}

/* Where it cannot, folios of 2 MiB are read: two, or one with both hints. */
static bool test_capped(bool random)
{
	unsigned long huge = (2UL << 20) / page_bytes;
	const struct expected expected = {
		.reason = "huge-hint",
		.start = 2 * huge,
		.size = random ? huge : 2 * huge,
		.async_size = random ? 0 : huge,
		.order = ffsl(huge) - 1,
	};
	unsigned long counts[MAX_ORDER_NR];
	struct mapping map;
	bool ok;

	map_cold(&map, file_fd, file_pages);
	ok = hinted_miss_is(&map, random, 2 * huge + 5, &expected) &&
	     cached_exactly(&map, 2 * huge, expected.size);
	if (count_folios(map.fd, 2 * huge, huge, counts))
		ok &= counts[expected.order] == 1;
	unmap_and_close(&map);
	return ok;
}

/* The first access to the second folio reads the next two. */
static bool test_capped_next(void)
{
	unsigned long huge = (2UL << 20) / page_bytes;
	struct mapping map;
	bool ok;

	map_cold(&map, file_fd, file_pages);
	madvise(map.start, file_pages * page_bytes, MADV_HUGEPAGE);
	touch(&map, 5);
	ok = cached_exactly(&map, 0, 2 * huge);
	touch(&map, huge - 1);
	ok &= cached_exactly(&map, 0, 2 * huge);
	touch(&map, huge);
	ok &= cached_exactly(&map, 0, 4 * huge);
	touch(&map, 2 * huge);
	ok &= cached_exactly(&map, 0, 4 * huge);
	touch(&map, 3 * huge);
	ok &= cached_exactly(&map, 0, 6 * huge);
	unmap_and_close(&map);
	return ok;
}

static bool test_capped_off(void)
{
	unsigned long page = file_pages / 2 + 1;
	const struct expected expected = {
		.reason = "around",
		.start = page - window / 2,
		.size = window,
		.async_size = window / 4,
	};
	struct mapping map;
	bool ok;

	set_rules(ONE_FOLIO & ~HUGE_CAPPED);
	map_cold(&map, file_fd, file_pages);
	ok = hinted_miss_is(&map, false, page, &expected);
	unmap_and_close(&map);
	set_rules(ONE_FOLIO);
	return ok;
}

static void test_huge_hint(void)
{
	if (!pmd_bytes()) {
		skip_tests(NR_HUGE_TESTS, "no huge pages");
	} else if (folio_size_of(pmd_bytes())) {
		ksft_test_result(test_pmd(false, ONE_FOLIO),
				 "huge hint: two folios of PMD size\n");
		ksft_test_result(test_pmd(true, ONE_FOLIO),
				 "huge hint: one with the random hint\n");
		ksft_test_result(test_pmd(false, ONE_FOLIO & ~HUGE_CAPPED),
				 "huge hint: the cap does not matter\n");
		ksft_test_result(test_pmd(false, 0),
				 "huge hint: nor does any rule\n");
	} else if (large_folios) {
		ksft_test_result(test_capped(false),
				 "huge hint: two folios of 2 MiB\n");
		ksft_test_result(test_capped(true),
				 "huge hint: one with the random hint\n");
		ksft_test_result(test_capped_next(),
				 "huge hint: the second folio reads on\n");
		ksft_test_result(test_capped_off(),
				 "huge hint: switched off, it does nothing\n");
	} else {
		ksft_test_result(test_capped_off(),
				 "huge hint: nothing without large folios\n");
		skip_tests(NR_HUGE_TESTS - 1, "no large folios");
	}
}

/* Return: NULL, or why the file is of no use. */
static const char *prepare_file(void)
{
	struct mapping map;
	unsigned long nr;
	uint64_t value;

	text_size = folio_size_of(64UL << 10);
	if (!text_size)
		text_size = folio_size_of(2UL << 20);
	if (!text_size)
		return "neither 64 KiB nor 2 MiB are a folio size";
	block = text_size->bytes / page_bytes;

	file_fd = make_file();
	if (file_fd < 0)
		return "cannot make a file in the current directory";
	if (cachestat_pages(file_fd, 0, 1) < 0)
		return "needs the cachestat() system call";
	set_rules(ONE_FOLIO);
	large_folios = has_large_folios(file_fd);
	if (read_ahead_read(file_fd) < 0)
		return "the device does not tell its readahead";
	window = read_ahead_read(file_fd) * 1024 / page_bytes;

	file_pages = (NR_BLOCKS + 1) * block;
	if (file_pages < (DATA_MISSES + 2) * 2 * window)
		file_pages = (DATA_MISSES + 2) * 2 * window;
	file_pages = file_pages - file_pages % block + block / 2;
	if (ftruncate(file_fd, file_pages * page_bytes - page_bytes / 2))
		return "the file system has no sparse files";
	for (nr = 0; nr < NR_BLOCKS; nr++) {
		value = stamp(nr);
		if (pwrite(file_fd, &value, sizeof(value),
			   nr * text_size->bytes) != sizeof(value))
			return "not enough room for the test file";
	}
	fsync(file_fd);

#ifdef __aarch64__
	single_pages = large_folios && page_bytes >= 64UL << 10;
#endif
	set_text_size(text_size);
	map_file(&map, open_again(file_fd), file_pages);
	if (!drop_pages(&map))
		return "files in the current directory cannot be evicted";
	madvise(map.start, file_pages * page_bytes, MADV_RANDOM);
	touch(&map, file_pages / 2);
	one_folio = cached_pages(&map, 0, file_pages);
	unmap_and_close(&map);
	fault_around = measure_fault_around(file_fd, file_pages);

	ksft_print_msg("text %lu, window %lu, fault-around %lu, single read %lu pages\n",
		       block, window, fault_around, one_folio);
	if (one_folio >= block)
		return "the file system has too large blocks";
	map_file(&map, file_fd, 1);
	if (!trace_start(map.fd))
		return "no tracefs";
	trace_stop(NULL, 0);
	unmap(&map);
	return NULL;
}

static const struct text_test block_tests[] = {
	{ test_block, "one block: whichever page is missing" },
	{ test_one_folio, "one block: it is one folio" },
	{ test_exec_alone, "one block: also where no other size is allowed" },
	{ test_start_of_mapping, "one block: not before the mapping" },
	{ test_end_of_mapping, "one block: not beyond the mapping" },
	{ test_within_block, "one block: less if the mapping has less" },
	{ test_end_of_file, "one block: not beyond the end of the file" },
	{ test_cached_page, "one block: around a page that is cached" },
	{ test_hints, "one block: the random hint is heeded, the sequential one does not matter" },
};

#define NR_COUNTER_TESTS	9
#define NR_TESTS	(ARRAY_SIZE(block_tests) + 1 + \
			 ARRAY_SIZE(window_tests) + 3 + \
			 NR_COUNTER_TESTS + NR_HUGE_TESTS)

static void run_tests(void)
{
	const char *unfit;

	ksft_set_plan(NR_TESTS);
	/* Data beside text has a window around each miss, and counts. */
	set_setting(ADAPTIVE_FILE, "0");
	unfit = prepare_file();
	if (unfit) {
		skip_tests(NR_TESTS, unfit);
		ksft_finished();
	}

	run_text_tests(block_tests, ARRAY_SIZE(block_tests));
	test_windows();
	/* Last, for windows look at what was evicted. */
	if (large_folios)
		test_little_memory();
	else
		ksft_test_result_skip("no large folios\n");

	if (large_folios)
		ksft_test_result(test_no_choice(), "no size for text: %s\n",
				 single_pages ? "one page" : "as data");
	else
		ksft_test_result(text_as_data(file_pages / 2 + 1, "around"),
				 "no large folios: as data\n");
	ksft_test_result(test_switched_off(), "switched off: as data\n");
	test_readahead_off();

	if (large_folios) {
		ksft_test_result(misses_are(ONE_FOLIO, false),
				 "counter: text misses neither raise nor heed it\n");
		ksft_test_result(misses_are(ONE_FOLIO & ~TEXT_UNCOUNTED, true),
				 "counter: they do both if they are to count\n");
	} else {
		skip_tests(2, "no large folios");
	}
	test_text_hits();
	test_hint_hits();

	test_huge_hint();
	ksft_finished();
}

static void clean_up(void)
{
	trace_clean_up();
	memory_cgroup_remove();
}

int main(void)
{
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root to choose folio sizes\n");
	page_cache_init();
	guard_switches();
	guard_folio_sizes();
	guard_device_setting("read_ahead_kb");
	return run_guarded(run_tests, clean_up);
}
