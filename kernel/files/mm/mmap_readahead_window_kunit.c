// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the adaptive window, included by what they test. */

#include <kunit/test.h>
#include <asm/page.h>
#include <linux/align.h>
#include <linux/bitmap.h>
#include <linux/bits.h>
#include <linux/hash.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/sizes.h>

/*
 * A file of eight regions in a page cache without a kernel around it. A fault maps
 * what is cached of its block, as filemap_map_pages() does; what it misses is read
 * at once.
 */

#define REGION_PAGES	BIT(13)
#define FAKE_PAGES	(8 * REGION_PAGES)
#define FAKE_BLOCK	16UL
/* With 32 bits the highest that a file can have, else higher than that. */
#define HIGHEST_PAGE	(BITS_PER_LONG == 32 ? ULONG_MAX - 1 : ULONG_MAX >> PAGE_SHIFT)
/* The most look-ups that one miss may take, while the file's state is locked. */
#define MOST_LOOKS	32

#define SINGLE		MMAP_READAHEAD_SINGLE
#define FORWARD		MMAP_READAHEAD_FORWARD
#define BACKWARD	MMAP_READAHEAD_BACKWARD
#define FILL		MMAP_READAHEAD_FILL

#define ABSENT		MMAP_READAHEAD_ABSENT
#define EVICTED		MMAP_READAHEAD_EVICTED
#define CACHED		MMAP_READAHEAD_CACHED
#define USED		MMAP_READAHEAD_USED

struct fake_file {
	struct kunit *test;
	struct mmap_readahead_state state;
	/* What does not depend on the page that is missing. */
	struct mmap_readahead_miss facts;
	/* What the last access read, of no size if that was nothing. */
	struct mmap_readahead_answer answer;
	/* The last mark was not that of somebody who read()s the file. */
	bool ours;
	unsigned int misses;
	unsigned int looks;
	/* The next page to evict. */
	unsigned long hand;
	DECLARE_BITMAP(marked, FAKE_PAGES);
	/* Of each page, its enum mmap_readahead_page. */
	unsigned char pages[FAKE_PAGES];
};

static enum mmap_readahead_page fake_look(const void *cache,
					  unsigned long index)
{
	struct fake_file *file = (struct fake_file *)cache;

	file->looks++;
	return index < FAKE_PAGES ? file->pages[index] : ABSENT;
}

static bool fake_cached(const struct fake_file *file, unsigned long index)
{
	return file->pages[index] >= CACHED;
}

static unsigned long fake_next_miss(const void *cache, unsigned long index,
				    unsigned long most)
{
	while (most-- && fake_cached(cache, index))
		index++;
	return index;
}

static void fake_set(struct fake_file *file, unsigned long first,
		     unsigned long nr, enum mmap_readahead_page page)
{
	unsigned long i;

	for (i = first; i < first + nr; i++) {
		file->facts.cached_pages -= fake_cached(file, i);
		file->pages[i] = page;
		file->facts.cached_pages += fake_cached(file, i);
	}
}

/* A file that nothing is known of. */
static struct fake_file *fake_file(struct kunit *test, unsigned int max_pages,
				   unsigned int request_pages)
{
	struct fake_file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, file);
	file->test = test;
	file->facts = (struct mmap_readahead_miss) {
		.file_pages = FAKE_PAGES,
		.memory_pages = 16 * FAKE_PAGES,
		.max_pages = max_pages,
		.request_pages = request_pages,
		.max_order = 9,
		.block_shift = ilog2(FAKE_BLOCK),
		.look = fake_look,
		.next_miss = fake_next_miss,
		.cache = file,
	};
	return file;
}

/* One with much cached, as it is behind its first miss. */
static struct fake_file *known_file(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);

	begin(&file->state, &file->facts);
	file->facts.cached_pages = FAKE_PAGES;
	return file;
}

/* As known_file(), with a recent read of these pages. */
static struct fake_file *file_with_read(struct kunit *test,
					enum mmap_readahead_kind kind,
					unsigned long start, unsigned int size,
					unsigned long index)
{
	const struct mmap_readahead_answer answer = { .size = size, .kind = kind };
	struct fake_file *file = known_file(test);

	file->state.reads[0] = (struct mmap_readahead_read) {
		.index = index,
		.start = start,
		.end = start + size - 1,
		.size = size,
		.kind = kind,
		.order = order_of(&answer, false),
	};
	return file;
}

/* Does a state hold what later misses rely on? */
static bool state_fits(const struct mmap_readahead_state *state)
{
	const struct mmap_readahead_read *read;
	unsigned int i, sum = 0;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS;
	     read++)
		if (read->size &&
		    (read->index < read->start || read->index > read->end ||
		     read->size - 1 > read->end - read->start))
			return false;
	for (i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		sum += state->regions.misses[i];
	return sum == state->regions.nr && state->next < MMAP_READAHEAD_READS &&
	       state->ahead.order < 31 && state->behind.order < 31;
}

/* Decide on a miss; whatever the answer is, it has to fit. */
static void fake_miss(struct fake_file *file, unsigned long index)
{
	struct mmap_readahead_answer *answer = &file->answer;
	struct mmap_readahead_miss *miss = &file->facts;

	miss->index = index;
	file->looks = 0;
	file->misses++;
	if (!mmap_readahead_settled(&file->state, miss, answer)) {
		miss->page = miss->look(miss->cache, index);
		mmap_readahead_adapt(&file->state, miss, answer);
	}
	KUNIT_ASSERT_GE(file->test, answer->size, 1);
	KUNIT_ASSERT_LE(file->test, answer->size, miss->max_pages);
	KUNIT_ASSERT_LE(file->test, answer->start, index);
	KUNIT_ASSERT_LT(file->test, index - answer->start, answer->size);
	KUNIT_ASSERT_LE(file->test, answer->size, miss->file_pages - answer->start);
	KUNIT_ASSERT_LE(file->test, answer->async_size, answer->size);
	KUNIT_ASSERT_EQ(file->test, answer->order, order_of(answer, miss->writes));
	/* A fault that maps all of its folio must not map the mark of its stream. */
	if (answer->kind == FORWARD && answer->async_size)
		KUNIT_ASSERT_LE(file->test, 1UL << answer->order,
				answer->start + answer->size - answer->async_size - index);
	KUNIT_ASSERT_TRUE(file->test, state_fits(&file->state));
	KUNIT_ASSERT_LE(file->test, file->looks, MOST_LOOKS);
}

/* As fake_miss(), at a readahead mark. */
static void fake_mark(struct fake_file *file, unsigned long index)
{
	struct mmap_readahead_answer *answer = &file->answer;
	struct mmap_readahead_miss *mark = &file->facts;

	mark->index = index;
	file->looks = 0;
	file->ours = mmap_readahead_mark(&file->state, mark, answer);
	KUNIT_ASSERT_TRUE(file->test, state_fits(&file->state));
	KUNIT_ASSERT_LE(file->test, file->looks, MOST_LOOKS);
	if (!answer->size)
		return;
	KUNIT_ASSERT_TRUE(file->test, file->ours);
	KUNIT_ASSERT_LE(file->test, answer->size, mark->max_pages);
	KUNIT_ASSERT_GT(file->test, answer->start, index);
	KUNIT_ASSERT_LT(file->test, answer->start, mark->file_pages);
	KUNIT_ASSERT_LE(file->test, answer->size, mark->file_pages - answer->start);
	KUNIT_ASSERT_EQ(file->test, answer->async_size,
			answer->size < mark->file_pages - answer->start ? answer->size : 0);
	KUNIT_ASSERT_EQ(file->test, answer->order, ilog2(answer->size));
	KUNIT_ASSERT_EQ(file->test, answer->kind, FORWARD);
}

static void fake_map_around(struct fake_file *file, unsigned long index)
{
	unsigned long block = 1UL << file->facts.block_shift;
	unsigned long page = ALIGN_DOWN(index, block), i;

	for (i = 0; i < block; i++, page++)
		if (fake_cached(file, page) && !test_bit(page, file->marked))
			fake_set(file, page, 1, USED);
}

/* Read what was answered, and evict first what was read first. */
static void fake_read(struct fake_file *file)
{
	const struct mmap_readahead_answer *answer = &file->answer;
	unsigned long end = answer->start + answer->size, page;

	if (answer->size > 1)
		mmap_readahead_submitted(&file->state, answer);
	if (answer->async_size && !fake_cached(file, end - answer->async_size))
		__set_bit(end - answer->async_size, file->marked);
	for (page = answer->start; page < end; page++)
		if (!fake_cached(file, page))
			fake_set(file, page, 1, CACHED);
	while (file->facts.cached_pages > file->facts.memory_pages) {
		page = file->hand;
		file->hand = (page + 1) % FAKE_PAGES;
		__clear_bit(page, file->marked);
		if (fake_cached(file, page))
			fake_set(file, page, 1, EVICTED);
	}
}

static void fake_touch(struct fake_file *file, unsigned long index)
{
	file->answer = (struct mmap_readahead_answer) { };
	if (file->pages[index] == USED)
		return;
	fake_map_around(file, index);
	if (file->pages[index] == USED)
		return;
	if (__test_and_clear_bit(index, file->marked))
		fake_mark(file, index);
	else
		fake_miss(file, index);
	fake_read(file);
	/* The mark may be on the page itself. */
	__clear_bit(index, file->marked);
	fake_map_around(file, index);
}

static unsigned long next_random(u64 *random, unsigned long limit)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (u32)*random % limit;
}

static void expect_read(struct fake_file *file, enum mmap_readahead_kind kind,
			unsigned long start, unsigned int size,
			unsigned int async_size)
{
	KUNIT_EXPECT_EQ(file->test, file->answer.kind, kind);
	KUNIT_EXPECT_EQ(file->test, file->answer.start, start);
	KUNIT_EXPECT_EQ(file->test, file->answer.size, size);
	KUNIT_EXPECT_EQ(file->test, file->answer.async_size, async_size);
}

/* A file of which only one read is known, and one miss or mark. */
struct window_case {
	const char *name;
	struct mmap_readahead_read read;
	unsigned long miss;
	/* Pages that something is known of: so many before this one. */
	struct {
		unsigned long nr, end;
		enum mmap_readahead_page page;
	} pages;
	/* What is read. */
	struct {
		enum mmap_readahead_kind kind;
		unsigned long start;
		unsigned int size, async_size;
	} answer;
	/* If not 0: facts. */
	unsigned int max, request, shift, evicted;
	unsigned long memory, file;
	/* If not 0: what single misses read ahead, with their own page; how often they go on. */
	unsigned int ahead, continued;
	bool under_way;
	/* The stream left pages out. */
	bool gaps;
	/* A mark: what stock reads is to be read; it tells that misses were continued. */
	bool stock, learns;
};

static struct fake_file *file_of_case(struct kunit *test,
				      const struct window_case *param)
{
	struct fake_file *file = known_file(test);

	file->state.reads[0] = param->read;
	file->state.evicted = param->evicted;
	file->facts.max_pages = param->max ?: 1024;
	file->facts.request_pages = param->request ?: 32;
	file->facts.block_shift = param->shift ?: ilog2(FAKE_BLOCK);
	file->facts.memory_pages = param->memory ?: 16 * FAKE_PAGES;
	file->facts.file_pages = param->file ?: FAKE_PAGES;
	if (param->ahead)
		file->state.ahead.order = ilog2(param->ahead);
	file->state.ahead.continued = param->continued;
	fake_set(file, param->pages.end - param->pages.nr, param->pages.nr,
		 param->pages.page);
	return file;
}

static void test_arithmetic(struct kunit *test)
{
	/* Of a single miss and backward, of what goes on and fills. */
	static const unsigned int orders[][3] = {
		{ 1, 0, 0 }, { 3, 0, 1 }, { 4, 2, 2 }, { 63, 2, 5 }, { 64, 3, 6 }, { 128, 4, 7 },
	};
	struct mmap_readahead_answer read = {};
	unsigned int i, all;

	KUNIT_EXPECT_LE(test, sizeof(struct mmap_readahead_state), 384);
	for (i = 0; i < ARRAY_SIZE(orders); i++)
		for (read.kind = SINGLE; read.kind <= FILL; read.kind++) {
			read.size = orders[i][0];
			all = read.kind == FORWARD || read.kind == FILL ? 2 : 1;
			KUNIT_EXPECT_EQ(test, order_of(&read, false), orders[i][all]);
			/* Who writes here and there dirties no neighbours. */
			KUNIT_EXPECT_EQ(test, order_of(&read, true),
					read.kind == FORWARD ? orders[i][all] : 0);
		}
	for (i = 0; i < 255; i++) {
		KUNIT_EXPECT_GT(test, moved_share(i, true), i);
		KUNIT_EXPECT_LE(test, moved_share(i + 1, false), i);
	}
	KUNIT_EXPECT_EQ(test, moved_share(255, true), 255);
	KUNIT_EXPECT_EQ(test, moved_share(0, false), 0);
	KUNIT_EXPECT_EQ(test, moved_share(0, true), 32);
	/* 16 pages more pay for a request of 32 once in three times. */
	KUNIT_EXPECT_TRUE(test, pays(85, 16, 32));
	KUNIT_EXPECT_FALSE(test, pays(84, 16, 32));
}

struct init_case {
	const char *name;
	unsigned long file_pages;
	bool known, cached;
	unsigned int ahead, behind;
};

static const struct init_case init_cases[] = {
	{ "small file", 4223, false, false, 4, 4 },
	{ "large file", 4224, false, false, 4, 0 },
	{ "not known, but cached", 4224, false, true, 4, 0 },
	{ "known, but nothing is cached any more", 4224, true, false, 4, 0 },
	{ "known", 4224, true, true, 2, 3 },
};

KUNIT_ARRAY_PARAM_DESC(init, init_cases, name);

static void test_init(struct kunit *test)
{
	const struct init_case *param = test->param_value;
	struct fake_file *file = fake_file(test, 1024, 32);
	struct mmap_readahead_side *ahead = &file->state.ahead;

	file->facts.file_pages = param->file_pages;
	file->facts.cached_pages = param->cached;
	ahead->order = 2;
	ahead->patience = param->known;
	file->state.behind.order = 3;
	fake_miss(file, 1000);
	KUNIT_EXPECT_EQ(test, ahead->order, param->ahead);
	KUNIT_EXPECT_EQ(test, file->state.behind.order, param->behind);
	if (param->known && param->cached)
		return;
	KUNIT_EXPECT_EQ(test, ahead->used, (ALL + 1) / 2);
	KUNIT_EXPECT_EQ(test, file->state.behind.patience, PATIENCE);
	/* Around the miss, if the file is small. */
	if (param->behind)
		expect_read(file, SINGLE, 985, 31, 7);
	else
		expect_read(file, SINGLE, 1000, 16, 7);
}

/* What is known is known as long as a page is cached, and begins anew after that. */
static void test_begins_anew(struct kunit *test)
{
	struct fake_file *fresh = fake_file(test, 1024, 32);
	struct fake_file *file = fake_file(test, 1024, 32);
	unsigned int n;

	/* Until single pages are read without more ado. */
	for (n = 0; n < 100; n++)
		fake_touch(file, n * 37 % 128 * 512);
	expect_read(file, SINGLE, 99 * 37 % 128 * 512, 1, 0);
	/* All goes but a page. */
	fake_set(file, 1, FAKE_PAGES - 1, ABSENT);
	bitmap_zero(file->marked, FAKE_PAGES);
	fake_touch(file, 40000);
	expect_read(file, SINGLE, 40000, 1, 0);

	fake_set(file, 0, FAKE_PAGES, EVICTED);
	fake_touch(file, 50000);
	fake_set(fresh, 50000, 1, EVICTED);
	fake_touch(fresh, 50000);
	expect_read(file, SINGLE, 50000, 16, 7);
	KUNIT_EXPECT_MEMEQ(test, &file->state, &fresh->state, sizeof(fresh->state));
}

/* Streams */

struct goes_on_case {
	const char *name;
	/* The miss, the one that asked for the read, and a page that was used. */
	unsigned long miss, index, used;
	bool goes_on;
	/* If not 0: of the read, of a block, of the longest read. */
	unsigned int size, shift, max;
	enum mmap_readahead_kind kind;
};

/* The read ends with 2100, and begins with 2000 unless it has another size. */
static const struct goes_on_case goes_on_cases[] = {
	{ "last page used", 2101, 2050, 2100, true },
	{ "not used", 2101, 2050, 0, false },
	{ "a request's worth behind", 2132, 2050, 2100, true },
	{ "farther behind", 2133, 2050, 2100, false },
	{ "half of the largest window behind", 2104, 2050, 2100, true, .max = 8 },
	{ "farther behind, small windows", 2105, 2050, 2100, false, .max = 8 },
	{ "behind, windows of a page", 2101, 2050, 2100, true, .max = 1 },
	{ "another page used", 2101, 2050, 2099, false },
	{ "the miss was near", 2101, 2069, 0, true },
	{ "the miss was not that near", 2102, 2069, 0, false },
	{ "mapped by the read's own miss", 2104, 2070, 2100, false, .shift = 6 },
	{ "another block mapped", 2104, 2040, 2100, true, .shift = 6 },
	{ "the same folio mapped", 2104, 2070, 2100, false, 512 },
	{ "smaller folios", 2104, 2070, 2100, true, 256 },
	{ "a block of a region", 2101, 2095, 2100, false, .kind = FILL },
	{ "on from a run forward", 2101, 2047, 2100, true, .kind = FORWARD },
	{ "a folio of a run forward holds both", 2101, 2048, 2100, false, .kind = FORWARD },
	{ "on from a run backward", 2101, 2050, 2100, true, .kind = BACKWARD },
	{ "inside", 2090, 2095, 2100, false },
	{ "the last page itself", 2100, 2095, 2100, false },
	{ "no read", 2101, 2100, 2100, false, UINT_MAX },
};

KUNIT_ARRAY_PARAM_DESC(goes_on, goes_on_cases, name);

/* Folios and blocks of up to 512 pages lie alike on both sides of this. */
#define MIRRORED(page)	(4095 - (page))

static void test_goes_on(struct kunit *test)
{
	const struct goes_on_case *param = test->param_value;
	unsigned int size = param->size ?: 101, back;
	struct fake_file *file;

	size = size == UINT_MAX ? 0 : size;
	for (back = 0; back < 2; back++) {
		file = file_with_read(test, param->kind,
				      back ? MIRRORED(2100) : 2101 - size, size,
				      back ? MIRRORED(param->index) : param->index);
		if (param->shift)
			file->facts.block_shift = param->shift;
		if (param->max)
			file->facts.max_pages = param->max;
		if (param->used)
			fake_set(file, back ? MIRRORED(param->used) : param->used,
				 1, USED);
		fake_miss(file, back ? MIRRORED(param->miss) : param->miss);
		KUNIT_EXPECT_EQ(test, file->answer.kind, !param->goes_on ? SINGLE :
				back ? BACKWARD : FORWARD);
	}
}

/* The pages of the read, the miss, a page that was used, and what is read. */
static const struct window_case stream_cases[] = {
	{ "twice as much", { 4008, 4008, 4023, 16, FORWARD, .unsure = true, .gaps = true },
	  4024, { }, { FORWARD, 4024, 32, 16 } },
	{ "up to the limit", { 4600, 4008, 4607, 600, FORWARD }, 4608, { },
	  { FORWARD, 4608, 1024, 512 } },
	{ "with the gap", { 4008, 4008, 4023, 16, FORWARD }, 4029, { },
	  { FORWARD, 4024, 37, 16 }, .gaps = true },
	{ "a gap that is smaller", { 4008, 4008, 4009, 2, FORWARD }, 4013, { },
	  { FORWARD, 4010, 7, 2 }, .gaps = true },
	{ "as large a gap", { 4008, 4008, 4009, 2, FORWARD }, 4014, { },
	  { FORWARD, 4014, 4, 2 }, .gaps = true },
	{ "a gap that fits", { 4023, 4008, 4023, 16, FORWARD }, 4029, { },
	  { FORWARD, 4024, 37, 16 }, .gaps = true, .max = 37 },
	{ "a gap that does not fit", { 4023, 4008, 4023, 16, FORWARD }, 4029, { },
	  { FORWARD, 4029, 32, 16 }, .gaps = true, .max = 36 },
	{ "behind a page that was read alone", { 4008, 4008, 4008, 1, FORWARD }, 4009,
	  { }, { FORWARD, 4009, 2, 1 } },
	{ "backward", { 4008, 4008, 4023, 16, BACKWARD }, 4007, { }, { BACKWARD, 3976, 32 } },
	{ "backward, up to the limit", { 4008, 4008, 4607, 600, BACKWARD }, 4007, { },
	  { BACKWARD, 2984, 1024 } },
	{ "backward, with the gap", { 4008, 4008, 4023, 16, BACKWARD }, 4002, { },
	  { BACKWARD, 3971, 37 }, .gaps = true },
	{ "backward, a larger gap", { 4008, 4008, 4009, 2, BACKWARD }, 4002, { },
	  { BACKWARD, 3999, 4 }, .gaps = true },
	{ "backward, before a page", { 4008, 4008, 4008, 1, BACKWARD }, 4007, { },
	  { BACKWARD, 4006, 2 } },
	{ "backward to the beginning", { 10, 10, 25, 16, BACKWARD }, 9, { },
	  { BACKWARD, 0, 10 } },
	{ "turns about", { 4008, 4008, 4023, 16, FORWARD }, 4007, { }, { BACKWARD, 3976, 32 } },
	{ "backward from a single miss", { 4008, 4008, 4023, 16, SINGLE }, 4007, { },
	  { BACKWARD, 4006, 2 } },
	{ "forward, to the end of the file", { 4008, 4008, 4023, 16, FORWARD }, 4024,
	  { }, { FORWARD, 4024, 12 }, .file = 4036 },
	{ "single, at the end of the file", { }, 3999, { }, { SINGLE, 3999, 1 }, .file = 4000 },

	{ "forward from a single miss", { 4039, 4008, 4039, 32, SINGLE }, 4040, { },
	  { FORWARD, 4040, 16, 8 } },

	/* A run that was forgotten is found by what was used of it. */
	{ "run: a page", { }, 4000, { 1, 4000, USED }, { SINGLE, 4000, 16, 7 } },
	{ "run: two single reads", { }, 4000, { 31, 4000, USED }, { SINGLE, 4000, 16, 7 } },
	{ "run: a page more", { }, 4000, { 32, 4000, USED }, { FORWARD, 4000, 32, 16 } },
	{ "run: where pages are read alone", { }, 4000, { 4, 4000, USED },
	  { FORWARD, 4000, 4, 2 }, .ahead = 1 },
	{ "run: too short even there", { }, 4000, { 3, 4000, USED },
	  { SINGLE, 4000, 1 }, .ahead = 1 },
	{ "run: long", { }, 4000, { 3000, 4000, USED }, { FORWARD, 4000, 32, 16 } },
	{ "run: requests are dear", { }, 4000, { 3000, 4000, USED },
	  { FORWARD, 4000, 256, 128 }, .request = 500 },
	{ "run: requests are cheap", { }, 4000, { 3000, 4000, USED },
	  { FORWARD, 4000, 32, 16 }, .request = 1 },
	{ "run: memory is short", { }, 4000, { 3000, 4000, USED },
	  { FORWARD, 4000, 20, 10 }, .memory = 16 * 20 },
	{ "run: large blocks", { }, 4000, { 3000, 4000, USED },
	  { FORWARD, 4000, 1024, 512 }, .shift = 9 },
	{ "run: not the page before", { }, 4000, { 1000, 3999, USED }, { SINGLE, 4000, 16, 7 } },
	{ "run: only cached", { }, 4000, { 99, 4000, CACHED }, { SINGLE, 4000, 16, 7 } },
	{ "run: from the beginning", { }, 32, { 32, 32, USED }, { FORWARD, 32, 32, 16 } },

	/* Two windows for each stream fit into memory. */
	{ "limit: memory", { 5999, 4000, 5999, 2000, FORWARD }, 6000, { },
	  { FORWARD, 6000, 500, 250 }, .memory = 16 * 500 + 15 },
	{ "limit: a page", { 5999, 4000, 5999, 2000, FORWARD }, 6000, { },
	  { FORWARD, 6000, 1, 0 }, .memory = 15 },
	{ "limit: next to nothing fits", { 4000, 4000, 5999, 2000, BACKWARD }, 3999, { },
	  { BACKWARD, 3999, 1 }, .memory = 1 },
	{ "limit: not short", { 5999, 4000, 5999, 2000, FORWARD }, 6000, { },
	  { FORWARD, 6000, 1024, 512 }, .evicted = 32 },
	{ "limit: not by evictions", { 5999, 4000, 5999, 2000, FORWARD }, 6000, { },
	  { FORWARD, 6000, 1024, 512 }, .evicted = 33 },
	{ "limit: short and little memory", { 4000, 4000, 5999, 2000, BACKWARD }, 3999,
	  { }, { BACKWARD, 3980, 20 }, .evicted = 33, .memory = 16 * 20 },

	/* What another thread is reading is read no more, and teaches nothing. */
	{ "under way, first page", { 4050, 4000, 4099, 40, FORWARD, true }, 4060, { },
	  { SINGLE, 4060, 1 }, .under_way = true },
	{ "under way, last page", { 4050, 4000, 4099, 40, FORWARD, true }, 4099, { },
	  { SINGLE, 4099, 1 }, .under_way = true },
	{ "under way, was evicted before", { 4050, 4000, 4099, 40, FORWARD, true }, 4070,
	  { 40, 4100, EVICTED }, { SINGLE, 4070, 1 }, .under_way = true },
	{ "has come, was evicted since", { 4050, 4000, 4099, 40, FORWARD }, 4070,
	  { 40, 4100, EVICTED }, { SINGLE, 4070, 16, 7 } },
	{ "was cut off before the page", { 4050, 4000, 4099, 40, FORWARD }, 4060,
	  { 1, 4060, CACHED }, { SINGLE, 4060, 16, 7 } },
	{ "under way, but read before", { 4050, 4000, 4099, 40, FORWARD, true }, 4059, { },
	  { SINGLE, 4059, 16, 7 } },
	{ "under way, behind it", { 4099, 4000, 4099, 40, FORWARD, true }, 4100, { },
	  { FORWARD, 4100, 80, 40 } },
	{ "read alone before", { 4060, 4060, 4060, 1, SINGLE }, 4060, { },
	  { SINGLE, 4060, 16, 7 } },
	{ "alone, was evicted since", { 4060, 4060, 4060, 1, SINGLE }, 4060,
	  { 1, 4061, EVICTED }, { SINGLE, 4060, 16, 7 } },
	{ "under way backward, first page", { 4050, 4000, 4099, 40, BACKWARD, true }, 4000,
	  { }, { SINGLE, 4000, 1 }, .under_way = true },
	{ "under way backward, last page", { 4050, 4000, 4099, 40, BACKWARD, true }, 4039,
	  { }, { SINGLE, 4039, 1 }, .under_way = true },
	{ "under way backward, but read before", { 4050, 4000, 4099, 40, BACKWARD, true },
	  4040, { }, { SINGLE, 4040, 16, 7 } },
};

KUNIT_ARRAY_PARAM_DESC(stream, stream_cases, name);

static void test_stream(struct kunit *test)
{
	const struct window_case *param = test->param_value;
	struct fake_file *file = file_of_case(test, param);
	struct mmap_readahead_read *read = file->state.reads;
	const struct mmap_readahead_state before = file->state;
	unsigned long start = param->answer.start;
	unsigned long end = start + param->answer.size - 1;

	fake_miss(file, param->miss);
	expect_read(file, param->answer.kind, start, param->answer.size,
		    param->answer.async_size);
	if (param->under_way) {
		KUNIT_EXPECT_MEMEQ(test, &file->state, &before, sizeof(before));
		return;
	}
	/* It is the same read if it was gone on from, and all of both. */
	if (!file->state.next) {
		start = min(start, param->read.start);
		end = max(end, param->read.end);
	}
	KUNIT_EXPECT_EQ(test, read->index, param->miss);
	KUNIT_EXPECT_EQ(test, read->start, start);
	KUNIT_EXPECT_EQ(test, read->end, end);
	KUNIT_EXPECT_EQ(test, read->size, param->answer.size);
	KUNIT_EXPECT_EQ(test, read->kind, param->answer.kind);
	KUNIT_EXPECT_TRUE(test, read->pending == (param->answer.size > 1));
	KUNIT_EXPECT_TRUE(test, read->gaps == param->gaps);
	KUNIT_EXPECT_FALSE(test, read->mark_met);
	KUNIT_EXPECT_FALSE(test, read->unsure);
}

/* An answer is under way until it was submitted, or forgotten. */
static void test_submitted(struct kunit *test)
{
	struct fake_file *file = known_file(test);
	struct mmap_readahead_read *read = file->state.reads;
	struct mmap_readahead_answer first, mark;
	unsigned int i;

	fake_miss(file, 4000);
	first = file->answer;
	fake_miss(file, 4008);
	expect_read(file, SINGLE, 4008, 1, 0);
	mmap_readahead_submitted(&file->state, &first);
	KUNIT_EXPECT_FALSE(test, read->pending);
	fake_miss(file, 4016);
	expect_read(file, FORWARD, 4016, 16, 8);
	mmap_readahead_submitted(&file->state, &file->answer);
	fake_mark(file, 4024);
	mark = file->answer;
	KUNIT_EXPECT_TRUE(test, read->pending);
	fake_miss(file, mark.start);
	expect_read(file, SINGLE, mark.start, 1, 0);
	mmap_readahead_submitted(&file->state, &mark);
	KUNIT_EXPECT_FALSE(test, read->pending);
	/* Another read has its place. */
	for (i = 1; i <= MMAP_READAHEAD_READS; i++)
		fake_miss(file, 4000 + 5000 * i);
	KUNIT_EXPECT_TRUE(test, read->pending);
	mmap_readahead_submitted(&file->state, &first);
	KUNIT_EXPECT_TRUE(test, read->pending);
}

struct machine_case {
	const char *name;
	unsigned int max, request;
};

static const struct machine_case machine_cases[] = {
	{ "128 KiB of 4 KiB pages, a request costs as much", 32, 32 },
	{ "4 MiB, a request costs 128 KiB", 1024, 32 },
	{ "4 MiB, a request costs 1 MiB", 1024, 256 },
	{ "1 MiB, a request costs 4 MiB", 256, 1024 },
	{ "4 MiB, a request costs 4 KiB", 1024, 1 },
	{ "1 MiB of 64 KiB pages, a request costs 128 KiB", 16, 2 },
	{ "no power of two", 1000, 33 },
	{ "a single page", 1, 32 },
};

KUNIT_ARRAY_PARAM_DESC(machine, machine_cases, name);

/* Two misses, then marks; windows that grow, without gap or overlap. */
static void test_forward(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	struct fake_file *file = fake_file(test, param->max, param->request);
	unsigned long first = 5000, last = first + 32767, page, end = 0;
	unsigned int before = 0, size;

	file->facts.file_pages = last + 1;
	for (page = first; page <= last; page++) {
		fake_touch(file, page);
		size = file->answer.size;
		if (!size)
			continue;
		if (before) {
			KUNIT_EXPECT_EQ(test, file->answer.kind, FORWARD);
			KUNIT_EXPECT_EQ(test, file->answer.start, end + 1);
		}
		end = file->answer.start + size - 1;
		/* The first one may read behind as well. */
		size = end + 1 - max(file->answer.start, first);
		/* What ends where a block does has become less than half shorter. */
		if (end < last)
			KUNIT_EXPECT_GT(test, 2 * size, before);
		before = max(before, size);
	}
	KUNIT_EXPECT_EQ(test, end, last);
	KUNIT_EXPECT_EQ(test, before,
			ALIGN_DOWN(param->max, min_t(unsigned int, param->max, FAKE_BLOCK)));
	for (page = first; page <= last; page++)
		KUNIT_EXPECT_TRUE(test, fake_cached(file, page));
	/* A window of one page has no room for a mark. */
	if (param->max > 1)
		KUNIT_EXPECT_EQ(test, file->misses, 2);
}

/* Neighbourhood */

struct single_case {
	const char *name;
	unsigned int ahead, behind, max, shift;
	unsigned long miss, start;
	unsigned int size;
};

static const struct single_case single_cases[] = {
	{ "a page", 0, 0, 1024, 4, 1003, 1003, 1 },
	{ "two pages, too few for a mark", 1, 0, 1024, 4, 1003, 1003, 2 },
	{ "four pages", 2, 0, 1024, 4, 1003, 1003, 4 },
	{ "ahead", 5, 0, 1024, 4, 1003, 1003, 32 },
	{ "behind", 0, 3, 1024, 4, 1003, 996, 8 },
	{ "both, less behind", 5, 2, 1024, 4, 1003, 1000, 35 },
	{ "both, less ahead", 2, 5, 1024, 4, 1003, 972, 35 },
	{ "both", 3, 3, 1024, 4, 1003, 996, 15 },
	{ "blocks of a page", 4, 0, 1024, 0, 1003, 1003, 16 },
	{ "blocks of a page, nothing pays", 0, 0, 1024, 0, 1003, 1003, 1 },
	{ "at the beginning of the file", 5, 2, 1024, 4, 1, 0, 33 },
	{ "more than may be read", 9, 9, 512, 4, 1003, 747, 512 },
	{ "the limit is no power of two", 9, 9, 1000, 4, 1003, 503, 1000 },
	{ "a page more than may be read", 9, 2, 514, 4, 1003, 1000, 514 },
	{ "less than was learnt ahead", 10, 0, 32, 4, 1003, 1003, 32 },
	{ "less than was learnt behind", 0, 10, 32, 4, 1003, 972, 32 },
};

KUNIT_ARRAY_PARAM_DESC(single, single_cases, name);

static void test_single(struct kunit *test)
{
	const struct single_case *param = test->param_value;
	struct fake_file *file = known_file(test);

	file->facts.max_pages = param->max;
	file->facts.block_shift = param->shift;
	file->state.ahead.order = param->ahead;
	file->state.behind.order = param->behind;
	fake_miss(file, param->miss);
	/* The mark is in the middle of what is read ahead. */
	expect_read(file, SINGLE, param->start, param->size,
		    (param->start + param->size - 1 - param->miss) / 2);
	KUNIT_EXPECT_EQ(test, file->state.next, 1);
}

struct continued_case {
	const char *name;
	unsigned int order, continued, evicted, max, patience;
	unsigned int order_after, patience_after;
};

static const struct continued_case continued_cases[] = {
	{ "often enough", 4, 60, 0, 1024, 4, 5, 8 },
	{ "not often enough", 4, 59, 0, 1024, 4, 4, 4 },
	{ "a small one grows at once", 0, 0, 0, 1024, 4, 1, 8 },
	{ "patience has a limit", 4, 60, 0, 1024, 64, 5, 64 },
	{ "up to the largest read", 9, 255, 0, 1024, 4, 10, 8 },
	{ "and no farther", 10, 255, 0, 2047, 4, 10, 4 },
	{ "memory is not short", 4, 60, 32, 1024, 4, 5, 8 },
	{ "memory is short", 4, 220, 33, 1024, 4, 4, 4 },
	{ "memory is short, but it is sure to pay", 4, 223, 33, 1024, 4, 5, 8 },
};

KUNIT_ARRAY_PARAM_DESC(continued, continued_cases, name);

/* The side grows where reads are continued, and only that one. */
static void test_continued(struct kunit *test)
{
	const struct continued_case *param = test->param_value;
	struct mmap_readahead_side *side, *other;
	struct fake_file *file;
	unsigned int back;

	for (back = 0; back < 2; back++) {
		file = file_with_read(test, SINGLE, 4000, 8, 4000);
		side = back ? &file->state.behind : &file->state.ahead;
		other = back ? &file->state.ahead : &file->state.behind;
		other->order = 4;
		side->order = param->order;
		side->continued = param->continued;
		side->patience = param->patience;
		side->used = 200;
		side->quiet = 3;
		file->state.evicted = param->evicted;
		file->facts.max_pages = param->max;
		fake_miss(file, back ? 3999 : 4008);
		KUNIT_EXPECT_EQ(test, file->answer.size,
				1 << max(param->order, 1U));
		KUNIT_EXPECT_EQ(test, side->order, param->order_after);
		KUNIT_EXPECT_EQ(test, side->patience, param->patience_after);
		KUNIT_EXPECT_EQ(test, side->continued,
				moved_share(param->continued, true));
		KUNIT_EXPECT_EQ(test, side->quiet, 0);
		KUNIT_EXPECT_EQ(test, side->used,
				side->order > param->order ? (ALL + 1) / 2 :
							     200);
		KUNIT_EXPECT_EQ(test, other->order, 4);
		KUNIT_EXPECT_EQ(test, other->continued, 0);
	}
}

struct forgotten_case {
	const char *name;
	unsigned long index;
	/* Pages ahead of it that the read had, and 2^order that are read now. */
	unsigned int had, order;
	/* A page that was used, how often it was before, and misses since. */
	unsigned long page;
	unsigned int used, quiet;
	unsigned int order_after, used_after, quiet_after;
	enum mmap_readahead_kind kind;
};

/* Windows of 16 pages ahead of 1000 end outside of its block, which is 992 to 1007. */
static const struct forgotten_case forgotten_cases[] = {
	{ "still pays", 1000, 15, 4, 0, 59, 0, 4, 51, 1 },
	{ "does not pay any more", 1000, 15, 4, 0, 58, 0, 3, 128, 0 },
	{ "far page used", 1000, 15, 4, 1015, 58, 0, 4, 83, 1 },
	{ "near page used", 1000, 15, 4, 1010, 58, 0, 4, 83, 1 },
	{ "another page used", 1000, 15, 4, 1012, 58, 0, 3, 128, 0 },
	{ "near page mapped by the miss itself", 1013, 15, 4, 1023, 58, 0, 3, 128, 0 },
	{ "far page beside it", 1013, 15, 4, 1028, 58, 0, 4, 83, 1 },
	{ "all mapped by the miss: patience", 1008, 15, 4, 0, 58, 2, 4, 58, 3 },
	{ "all mapped by the miss: no more of it", 1008, 15, 4, 1023, 58, 3, 3, 128, 0 },
	{ "no window", 1000, 0, 0, 0, 58, 9, 0, 58, 9 },
	{ "half of the window", 1000, 16, 5, 0, 40, 0, 4, 128, 0 },
	{ "near page of half of it", 1000, 16, 5, 1010, 64, 0, 5, 88, 1 },
	{ "less than half", 1000, 15, 5, 0, 40, 0, 5, 40, 0 },
	{ "a larger window", 1000, 31, 2, 0, 4, 0, 1, 128, 0 },
	{ "nothing on this side", 1000, 0, 1, 0, 0, 9, 1, 0, 9 },
	{ "forward", 1000, 15, 4, 0, 0, 9, 4, 0, 9, FORWARD },
	{ "backward", 1000, 15, 4, 0, 0, 9, 4, 0, 9, BACKWARD },
	{ "a block of a region", 1000, 15, 4, 0, 0, 9, 4, 0, 9, FILL },
};

KUNIT_ARRAY_PARAM_DESC(forgotten, forgotten_cases, name);

/* Blocks lie alike on both sides of this. */
#define MIRRORED_NEAR(page)	(2015 - (page))

/* The side shrinks where the outer half was not used. */
static void test_forgotten(struct kunit *test)
{
	const struct forgotten_case *param = test->param_value;
	struct mmap_readahead_side *side;
	unsigned long index = param->index, page = param->page;
	struct fake_file *file;
	unsigned int back;
	bool judged;

	for (back = 0; back < 2; back++) {
		if (back) {
			index = MIRRORED_NEAR(index);
			page = page ? MIRRORED_NEAR(page) : 0;
		}
		file = file_with_read(test, param->kind,
				      back ? index - param->had : index,
				      param->had + 1, index);
		/* The other side is not judged. */
		file->state.ahead.order = 4;
		file->state.behind.order = 4;
		side = back ? &file->state.behind : &file->state.ahead;
		side->order = param->order;
		side->used = param->used;
		side->quiet = param->quiet;
		side->continued = 128;
		if (page)
			fake_set(file, page, 1, USED);
		fake_miss(file, 30000);
		KUNIT_EXPECT_EQ(test, side->order, param->order_after);
		KUNIT_EXPECT_EQ(test, side->used, param->used_after);
		KUNIT_EXPECT_EQ(test, side->quiet, param->quiet_after);
		KUNIT_EXPECT_EQ(test, side->patience, PATIENCE);
		/* Whatever is judged was not continued. */
		judged = param->used_after != param->used ||
			 param->quiet_after != param->quiet;
		KUNIT_EXPECT_EQ(test, side->continued, judged || !param->order ? 112 : 128);
		side = back ? &file->state.ahead : &file->state.behind;
		KUNIT_EXPECT_EQ(test, side->continued, 0);
		KUNIT_EXPECT_EQ(test, side->quiet, 0);
	}
}

/* Wherever in their blocks single misses lie, they soon read as little as they may. */
static void test_sparse(struct kunit *test)
{
	static const unsigned int places[] = { 0, 1, 8, 12, 15 };
	static const unsigned int shifts[] = { 0, 1, 2, 4, 9 };
	const struct machine_case *param = test->param_value;
	unsigned int i, n, windows, least;
	struct fake_file *file;

	for (i = 0; i < ARRAY_SIZE(places) * ARRAY_SIZE(shifts); i++) {
		file = fake_file(test, param->max, min(param->request, 64U));
		least = 2 * BIT(least_order(&file->state, &file->facts)) - 1;
		file->facts.block_shift = shifts[i / ARRAY_SIZE(places)];
		for (n = 0, windows = 0; n < 128; n++) {
			/* Farther apart than any request is worth. */
			fake_touch(file, n * 37 % 128 * 512 +
				   places[i % ARRAY_SIZE(places)]);
			KUNIT_EXPECT_EQ(test, file->answer.kind, SINGLE);
			windows += file->answer.size > least;
		}
		KUNIT_EXPECT_EQ(test, file->misses, 128);
		KUNIT_EXPECT_LE(test, windows, 110);
		if (param->max > 1)
			KUNIT_EXPECT_GE(test, windows, 4);
		kunit_kfree(test, file);
	}
}

struct step_case {
	const char *name;
	unsigned int step, request;
	unsigned long memory, swept;
	enum mmap_readahead_kind kind;
	enum mmap_readahead_page page;
	bool mark_met;
	unsigned char evicted;
	bool alone;
};

static const struct step_case step_cases[] = {
	{ "so far", 9, 32, 8000, 0, SINGLE, EVICTED, false, 33, true },
	{ "a quarter of a request", 8, 32, 8000, 0, SINGLE, EVICTED, false, 33 },
	{ "two blocks", 32, 32, 8000, 0, SINGLE, EVICTED, false, 33, true },
	{ "more than two blocks", 33, 32, 8000, 0, SINGLE, EVICTED, false, 33 },
	{ "three pages", 3, 2, FAKE_PAGES / 2, 0, SINGLE, EVICTED, false, 33, true },
	{ "two pages, without a mark yet", 2, 2, FAKE_PAGES - 1, 0, SINGLE, EVICTED, false, 33 },
	{ "the mark was met", 16, 32, 8000, 0, SINGLE, EVICTED, true, 33 },
	{ "of a stream", 16, 32, 8000, 0, FORWARD, EVICTED, false, 33 },
	{ "was not read before", 16, 32, 8000, 0, SINGLE, ABSENT, false, 33 },
	{ "memory is not short", 16, 32, 8000, 0, SINGLE, EVICTED, false, 32 },
	{ "memory just holds no such", 16, 32, FAKE_PAGES / 16, 0, SINGLE, EVICTED, false, 33 },
	{ "memory just holds all", 16, 32, FAKE_PAGES / 16 + 1, 0, SINGLE, EVICTED, false, 33,
	  true },
	{ "memory does not hold the file", 16, 32, FAKE_PAGES - 1, 0, SINGLE, EVICTED, false, 33,
	  true },
	{ "memory holds the file", 16, 32, FAKE_PAGES, 0, SINGLE, EVICTED, false, 33 },
	{ "nearly four sweeps", 16, 32, 8000, 4 * FAKE_PAGES - 1, SINGLE, EVICTED, false, 33,
	  true },
	{ "four sweeps", 16, 32, 8000, 4 * FAKE_PAGES, SINGLE, EVICTED, false, 33 },
};

KUNIT_ARRAY_PARAM_DESC(step, step_cases, name);

/* Which steps are read alone, forward and backward. */
static void test_step(struct kunit *test)
{
	const struct step_case *param = test->param_value;
	struct fake_file *file = fake_file(test, 1024, param->request);
	struct mmap_readahead_read read = {
		.index = 4000,
		.start = 4000,
		.end = 4000,
		.size = 1,
		.kind = param->kind,
		.mark_met = param->mark_met,
	};

	file->facts.memory_pages = param->memory;
	file->facts.page = param->page;
	file->state.evicted = param->evicted;
	file->state.swept = param->swept;
	file->facts.index = 4000 + param->step;
	KUNIT_EXPECT_EQ(test, is_sparse_sweep(&file->state, &file->facts, &read), param->alone);
	file->facts.index = 4000 - param->step;
	KUNIT_EXPECT_EQ(test, is_sparse_sweep(&file->state, &file->facts, &read), param->alone);
}

struct sweep_case {
	const char *name;
	unsigned int step;
	unsigned long memory;
	/* Whether the pages of sweeps stay, or are read in windows. */
	bool stay;
};

static const struct sweep_case sweep_cases[] = {
	{ "all pages of the sweeps fit", 16, FAKE_PAGES / 2, true },
	{ "steps of two blocks", 32, FAKE_PAGES / 16, true },
	{ "they do not fit", 16, FAKE_PAGES / 20 },
	{ "steps over a little", 8, FAKE_PAGES / 2 },
};

KUNIT_ARRAY_PARAM_DESC(sweep, sweep_cases, name);

/* What sweeps need again stays, if memory can hold that and not the file. */
static void test_sweeps(struct kunit *test)
{
	const struct sweep_case *param = test->param_value;
	struct fake_file *file = fake_file(test, 32, 32);
	unsigned int sweep, reads, misses;
	unsigned long page;

	file->facts.memory_pages = param->memory;
	for (sweep = 0; sweep < 8; sweep++) {
		reads = 0;
		misses = file->misses;
		for (page = 0; page < FAKE_PAGES; page += param->step) {
			fake_touch(file, page);
			reads += file->answer.size > 0;
		}
	}
	if (param->stay) {
		KUNIT_EXPECT_EQ(test, reads, 0);
		return;
	}
	/* Each read is a window, and nearly all begin at marks. */
	KUNIT_EXPECT_GE(test, reads, FAKE_PAGES / 64);
	KUNIT_EXPECT_LE(test, file->misses - misses, 8);
}

/* Others need the memory: sweeps whose pages never stay are read in windows after four. */
static void test_sweeps_in_vain(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 32, 32);
	unsigned int sweep, misses;
	unsigned long page;

	file->facts.memory_pages = FAKE_PAGES / 2;
	for (sweep = 0; sweep < 8; sweep++) {
		misses = file->misses;
		/* But for one, as nothing is known of a file of which nothing is cached. */
		fake_set(file, 0, FAKE_PAGES - 1, EVICTED);
		fake_set(file, FAKE_PAGES - 1, 1, CACHED);
		for (page = 0; page < FAKE_PAGES - 16; page += 16)
			fake_touch(file, page);
	}
	KUNIT_EXPECT_GE(test, file->state.swept, 4 * FAKE_PAGES);
	KUNIT_EXPECT_LE(test, file->misses - misses, 8);
}

/* Where a request is worth 128 pages, 4 on a side are free, unless memory is short. */
static void test_least(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 128);
	unsigned int n;

	for (n = 0; n < 128; n++)
		fake_touch(file, n * 37 % 128 * 512 + 8);
	expect_read(file, SINGLE, 127 * 37 % 128 * 512 + 5, 7, 1);
	fake_set(file, 1, FAKE_PAGES - 1, EVICTED);
	fake_set(file, 0, 1, CACHED);
	for (n = 0; n < 128; n++)
		fake_touch(file, n * 37 % 128 * 512 + 8);
	expect_read(file, SINGLE, 127 * 37 % 128 * 512 + 8, 1, 0);
}

/* Region */

struct region_case {
	const char *name;
	/* Misses that were counted in the region of the miss, and elsewhere. */
	unsigned int here, elsewhere;
	bool fills;
	/* Misses that are counted in the region and in all after that. */
	unsigned int here_after, nr_after;
	/* Shares before the miss, which comes in the same direction. */
	unsigned int turns, evicted;
	/* If not 0: facts, and a distance to the last miss. */
	unsigned long memory, file, cached, request, distance;
	/* If not 0: log2 of the pages of a region, and of what it was. */
	unsigned int shift, old_shift;
	bool turned;
};

#define TURNS		255
#define SHORT		255

static const struct region_case region_cases[] = {
	{ "has cost as much", 93, 0, true, 94, 94 },
	{ "has not cost as much", 92, 0, false, 93, 93 },
	{ "other regions do not matter", 93, 9999, true, 94, 10093 },
	{ "steps of three requests' worth", 93, 0, false, 93, 93, .distance = 96 },
	{ "such steps in a full region", 94, 0, true, 94, 94, .distance = 96 },
	{ "the same, memory does not hold both regions", 94, 658, false, 94, 752,
	  .distance = 96, .memory = 13107 },
	{ "the same, but it does with a quarter more", 94, 658, true, 94, 752,
	  .distance = 96, .memory = 13108 },
	{ "the same, not all is there any more: anew", 94, 906, false, 0, 0,
	  .distance = 96, .cached = 999 },
	{ "the same, short", 250, 0, false, 250, 250, 0, SHORT, .distance = 96 },
	{ "larger steps", 93, 0, true, 94, 94, .distance = 97 },
	{ "small steps, seldom turns", 93, 0, false, 93, 93, 37, .distance = 96 },
	{ "small steps, turns", 93, 0, true, 94, 94, 38, .distance = 96 },
	{ "the end of the file is a small region", 5, 0, true, 6, 6,
	  .file = REGION_PAGES + 512, .shift = 10 },
	{ "too little for the end of the file", 4, 0, false, 5, 5,
	  .file = REGION_PAGES + 512, .shift = 10 },
	{ "requests are dear: no region is worth fewer than 32", 11, 0, true, 12, 12,
	  .request = 1024, .shift = 15 },
	{ "requests are dear, too few", 10, 0, false, 11, 11, .request = 1024, .shift = 15 },
	{ "large file", 5957, 0, true, 5958, 5958, .file = 1 << 22, .shift = 19 },
	{ "large file, not much of it", 5956, 0, false, 5957, 5957, .file = 1 << 22,
	  .shift = 19 },
	{ "more than 16 bits of misses", 1 << 21, 0, true, (1 << 21) + 1, (1 << 21) + 1,
	  .file = 1 << 30, .cached = 1 << 24, .shift = 27 },

	{ "short: the full price", 249, 0, true, 250, 250, .evicted = SHORT },
	{ "short: no less", 248, 0, false, 249, 249, .evicted = SHORT },
	{ "a little is not short", 93, 0, true, 94, 94, .evicted = 37 },
	{ "a little more is", 93, 0, false, 94, 94, .evicted = 38 },

	{ "turns, all in one: less will do", 16, 0, true, 94, 94, TURNS },
	{ "turns, all in one: not that little", 15, 0, false, 16, 16, TURNS },
	{ "turns, half as many elsewhere", 35, 16, true, 94, 110, TURNS },
	{ "turns, half as many elsewhere: too few", 33, 15, false, 34, 49, TURNS },
	{ "turns, less than half as many elsewhere", 17, 6, true, 94, 100, TURNS },
	{ "turns, elsewhere is full", 17, 94, true, 94, 188, TURNS },
	{ "turns, elsewhere is nearly full", 17, 93, false, 18, 111, TURNS },
	{ "turns, in two thirds of the file: as without", 11, 11, true, 12, 23, TURNS,
	  .file = 3 * REGION_PAGES, .request = 256 },
	{ "turns, in two thirds of the file: no less", 10, 10, false, 11, 21, TURNS,
	  .file = 3 * REGION_PAGES, .request = 256 },
	{ "turns and short, all in one: as if not short", 17, 0, true, 250, 250, TURNS, SHORT },
	{ "turns and short, too little", 15, 0, false, 16, 16, TURNS, SHORT },
	{ "turns seldom", 17, 0, false, 18, 18, 74 },
	{ "turns more often", 17, 0, true, 94, 94, 75 },
	{ "has just turned, seldom", 17, 0, false, 18, 18, 36, .turned = true },
	{ "has just turned, more often", 17, 0, true, 94, 94, 37, .turned = true },

	{ "turns, memory holds the region", 93, 44, true, 94, 138, TURNS, .memory = 6554 },
	{ "turns, memory does not", 93, 0, false, 94, 94, TURNS, .memory = 6553 },
	{ "turns, does not hold another one", 93, 45, false, 94, 139, TURNS, .memory = 6554 },
	{ "turns, memory does not hold both regions", 93, 658, false, 94, 752, TURNS,
	  .memory = 13107 },
	{ "turns, but it does with a quarter more", 93, 658, true, 94, 752, TURNS,
	  .memory = 13108 },
	{ "short, memory does not hold both regions", 500, 500, false, 251, 501,
	  0, SHORT, .memory = 13107 },
	{ "short, but it does with a quarter more", 500, 500, true, 251, 501,
	  0, SHORT, .memory = 13108 },
	{ "a sweep, not short: memory does not matter", 93, 658, true, 94, 752,
	  .memory = 1000 },

	{ "short, as much as memory holds: aged", 99, 11, false, 50, 55, 0, SHORT,
	  .memory = 3520 },
	{ "short, not as much: not aged", 99, 10, false, 100, 110, 0, SHORT, .memory = 3520 },
	{ "not short: not aged", 99, 11, true, 100, 111, .memory = 3520 },
	{ "not all is there any more: anew", 1000, 1000, false, 1, 1, .cached = 1999 },
	{ "it may all be there", 1000, 1000, true, 1001, 2001, .cached = 2000 },
	{ "the file has grown: anew", 1000, 0, false, 1, 1, .old_shift = 11 },
	{ "the price was quite another: anew", 1000, 0, false, 1, 1, .old_shift = 15 },
	{ "the price was another: as it was", 1000, 0, true, 1001, 1001, .request = 512 },
};

KUNIT_ARRAY_PARAM_DESC(region, region_cases, name);

static void test_region(struct kunit *test)
{
	const struct region_case *param = test->param_value;
	struct fake_file *file = known_file(test);
	struct mmap_readahead_regions *regions = &file->state.regions;
	unsigned long miss = REGION_PAGES + 500, here;
	unsigned long start, size;
	unsigned int shift;

	/* More than a region has. */
	file->facts.max_pages = 16384;
	if (param->file)
		file->facts.file_pages = param->file;
	/* Not enough for the file. */
	file->facts.memory_pages = param->memory ?: file->facts.file_pages - 1;
	if (param->cached)
		file->facts.cached_pages = param->cached;
	if (param->request)
		file->facts.request_pages = param->request;
	shift = param->shift ?: ilog2(REGION_PAGES);
	here = miss >> shift;
	regions->misses[here] = param->here;
	regions->misses[2] = param->elsewhere;
	regions->nr = param->here + param->elsewhere;
	regions->shift = param->old_shift ?: shift;
	regions->turns = param->turns;
	regions->up = !param->turned;
	regions->last = param->distance ? miss - param->distance : 0;
	file->state.evicted = param->evicted;
	fake_miss(file, miss);
	size = min(BIT(shift), BIT(ilog2(most_at_once(&file->facts))));
	if (param->evicted == SHORT)
		size = 64;
	start = round_down(miss, size);
	size = min(size, file->facts.file_pages - start);
	if (param->fills)
		expect_read(file, FILL, start, size, 0);
	else
		KUNIT_EXPECT_EQ(test, file->answer.kind, SINGLE);
	KUNIT_EXPECT_EQ(test, regions->misses[here], param->here_after);
	KUNIT_EXPECT_EQ(test, regions->nr, param->nr_after);
	KUNIT_EXPECT_EQ(test, regions->last, miss);
	KUNIT_EXPECT_TRUE(test, regions->up);
}

/* Settled */

struct settled_case {
	const char *name;
	/* Misses that were counted in the region of the miss; the file's size, if not 0. */
	unsigned int here;
	unsigned long file;
	/* What is known of what single misses read. */
	struct mmap_readahead_side ahead, behind;
	/* If not 0: from the last miss to this one. */
	unsigned long distance;
	/* The page before is mapped; no page is cached. */
	bool used, empty;
	bool judged;
};

static const struct settled_case settled_cases[] = {
	{ "the first four are judged", 3, .judged = true },
	{ "28 more are not", 4 },
	{ "the last of these", 31 },
	{ "the next four are judged", 32, .judged = true },
	{ "the last of these", 35, .judged = true },
	{ "less than two thirds of what fills the region", 62 },
	{ "two thirds", 63, .judged = true },
	{ "it is full", 200, .judged = true },
	{ "less than two thirds of what fills the end of the file", 7,
	  .file = REGION_PAGES + 1024 },
	{ "two thirds of what fills the end of the file", 8,
	  .file = REGION_PAGES + 1000, .judged = true },
	{ "windows ahead", 4, .ahead.order = 1, .judged = true },
	{ "windows behind", 4, .behind.order = 1, .judged = true },
	{ "some went on", 4, .ahead.continued = 1, .judged = true },
	{ "some went on backward", 4, .behind.continued = 1, .judged = true },
	{ "near the last one", 4, .distance = 96, .judged = true },
	{ "not so near", 4, .distance = 97 },
	{ "behind a used page", 4, .used = true, .judged = true },
	{ "the file has become larger", 4, .file = 1UL << 30, .judged = true },
	{ "nothing is cached any more", 4, .empty = true, .judged = true },
};

KUNIT_ARRAY_PARAM_DESC(settled, settled_cases, name);

/* Where single pages do, most misses read one without more ado. */
static void test_settled(struct kunit *test)
{
	const struct settled_case *param = test->param_value;
	struct fake_file *file = known_file(test);
	struct mmap_readahead_regions *regions = &file->state.regions;
	unsigned long miss = REGION_PAGES + 500;
	unsigned int before;

	file->state.ahead = param->ahead;
	file->state.behind = param->behind;
	file->state.ahead.patience = PATIENCE;
	if (param->file) {
		file->facts.file_pages = param->file;
		miss = param->file - 1;
	}
	regions->misses[1] = param->here;
	regions->nr = param->here;
	regions->shift = ilog2(REGION_PAGES);
	regions->last = param->distance ? miss - param->distance : 0;
	if (param->used)
		fake_set(file, miss - 1, 1, USED);
	if (param->empty)
		file->facts.cached_pages = 0;
	before = file->state.next;
	fake_miss(file, miss);
	/* What is judged is remembered. */
	KUNIT_EXPECT_EQ(test, file->state.next != before, param->judged);
	if (param->judged)
		return;
	expect_read(file, SINGLE, miss, 1, 0);
	KUNIT_EXPECT_EQ(test, regions->misses[1], param->here + 1);
	KUNIT_EXPECT_EQ(test, regions->last, miss);
}

/* Marks */

/* Marks of the last window of a stream, of others, and of what was forgotten. */
static const struct window_case mark_cases[] = {
	{ "a small one doubles", { 4000, 4000, 4031, 16, FORWARD }, 4016, { },
	  { FORWARD, 4032, 32, 32 } },
	{ "up to a multiple of half of it", { 4000, 4000, 4030, 16, FORWARD }, 4015, { },
	  { FORWARD, 4031, 17, 17 } },
	{ "of 14 pages, of four", { 4000, 4000, 4006, 7, FORWARD }, 4000, { },
	  { FORWARD, 4007, 13, 13 } },
	{ "of 62 pages, of a block", { 4000, 4000, 4030, 31, FORWARD }, 4000, { },
	  { FORWARD, 4031, 49, 49 } },
	{ "of 62 pages, of a block of four", { 4000, 4000, 4030, 31, FORWARD }, 4000, { },
	  { FORWARD, 4031, 61, 61 }, .shift = 2 },
	{ "of two pages, of one", { 4000, 4000, 4000, 1, FORWARD }, 4000, { },
	  { FORWARD, 4001, 2, 2 } },
	{ "all of it, with gaps", { 4000, 4000, 4030, 31, FORWARD, .gaps = true }, 4000, { },
	  { FORWARD, 4031, 62, 62 } },
	{ "one of a request's worth as well", { 4000, 4000, 4031, 32, FORWARD },
	  4000, { }, { FORWARD, 4032, 64, 64 } },
	{ "up to the limit", { 4200, 4000, 5119, 1000, FORWARD }, 4200, { },
	  { FORWARD, 5120, 1024, 1024 } },
	{ "no less where pages are evicted", { 4200, 4000, 5119, 1000, FORWARD }, 4200,
	  { }, { FORWARD, 5120, 1024, 1024 }, .evicted = 33 },
	{ "on the last page", { 4032, 4032, 4095, 64, FORWARD }, 4095, { },
	  { FORWARD, 4096, 128, 128 } },
	{ "on the first page of the last window", { 4032, 4032, 4287, 64, FORWARD },
	  4224, { }, { FORWARD, 4288, 128, 128 } },
	{ "of the window before it", { 4032, 4032, 4287, 64, FORWARD }, 4223,
	  { 192, 4224, USED }, { } },
	{ "to the end of the file", { 4000, 4000, 4063, 64, FORWARD }, 4000, { },
	  { FORWARD, 4064, 5, 5 }, .file = 4069 },
	{ "at the end of the file", { 4000, 4000, 4063, 64, FORWARD }, 4000, { }, { },
	  .file = 4064 },
	{ "in a single read", { 4000, 4000, 4063, 64, SINGLE }, 4031, { 100, 4032, USED }, { } },
	{ "where 64 pages more just pay not", { 4000, 4000, 4063, 64, SINGLE }, 4031, { }, { },
	  .continued = 169 },
	{ "where they do", { 4000, 4000, 4063, 64, SINGLE }, 4031, { },
	  { FORWARD, 4064, 64, 64 }, .continued = 170 },
	{ "where they would, but most were not continued", { 4000, 4000, 4063, 64, SINGLE }, 4031,
	  { }, { }, .request = 999, .continued = 127 },
	{ "and where most were", { 4000, 4000, 4063, 64, SINGLE }, 4031, { },
	  { FORWARD, 4064, 64, 64 }, .request = 999, .continued = 128 },
	{ "of the first page of the file", { 0, 0, 15, 16, SINGLE }, 9, { },
	  { FORWARD, 16, 16, 16 } },
	{ "of the first page of a file that ends there", { 0, 0, 15, 16, SINGLE }, 9, { }, { },
	  .file = 16 },
	{ "behind which an unsure stream goes on",
	  { 4000, 4000, 4063, 32, FORWARD, .unsure = true }, 4032, { },
	  { FORWARD, 4064, 64, 64 }, .learns = true },
	{ "on the first page of a single read", { 4000, 4000, 4063, 64, SINGLE }, 4000,
	  { 100, 4001, USED }, { } },
	{ "on the last page of a single read", { 4000, 4000, 4063, 64, SINGLE }, 4063,
	  { 100, 4064, USED }, { } },
	{ "in a backward stream", { 4000, 4000, 4063, 64, BACKWARD }, 4031, { 100, 4032, USED },
	  { } },
	{ "in a block of a region", { 4000, 4000, 4063, 64, FILL }, 4031, { 100, 4032, USED },
	  { } },

	{ "not used in a single read", { 4000, 4000, 4063, 64, SINGLE }, 4031, { }, { } },
	{ "forgotten, and as much as single misses read is still there", { }, 4000,
	  { 17, 4017, CACHED }, { }, .ahead = 16 },
	{ "not used in a stream", { 4032, 4032, 4095, 64, FORWARD }, 4063,
	  { }, { FORWARD, 4096, 128, 128 } },

	/* As much as is used before it, but no less than single misses read. */
	{ "forgotten", { }, 4000, { 1000, 4001, USED }, { FORWARD, 4001, 32, 32 },
	  .learns = true },
	{ "forgotten, long enough", { }, 4000, { 33, 4001, USED },
	  { FORWARD, 4001, 32, 32 }, .learns = true },
	{ "forgotten, not that long", { }, 4000, { 32, 4001, USED },
	  { FORWARD, 4001, 16, 16 }, .learns = true },
	{ "forgotten, a page", { }, 4000, { 2, 4001, USED }, { FORWARD, 4001, 16, 16 },
	  .learns = true },
	{ "forgotten, where pages are read alone", { }, 4000, { 1, 4001, USED }, { },
	  .ahead = 1, .stock = true },
	{ "forgotten, where two pages are read, without a mark", { }, 4000, { 1, 4001, USED }, { },
	  .ahead = 2, .stock = true },
	{ "forgotten, where four are, with one", { }, 4000, { 1, 4001, USED },
	  { FORWARD, 4001, 4, 4 }, .ahead = 4, .learns = true },
	{ "forgotten, where eight are free", { }, 4000, { 1, 4001, USED }, { },
	  .ahead = 8, .request = 256, .stock = true },
	{ "forgotten, long, where pages are read alone", { }, 4000, { 9, 4001, USED },
	  { FORWARD, 4001, 8, 8 }, .ahead = 1, .learns = true },
	{ "forgotten, no more than a request", { }, 4000, { 2, 4001, USED },
	  { FORWARD, 4001, 32, 32 }, .ahead = 128, .learns = true },
	{ "forgotten, dear requests", { }, 4000, { 3000, 4001, USED },
	  { FORWARD, 4001, 256, 256 }, .request = 500, .learns = true },
	{ "forgotten, large blocks", { }, 4000, { 3000, 4001, USED },
	  { FORWARD, 4001, 32, 32 }, .shift = 9, .learns = true },
	{ "forgotten, little memory", { }, 4000, { 1000, 4001, USED },
	  { FORWARD, 4001, 20, 20 }, .memory = 16 * 20 },
	{ "forgotten, goes on behind what is cached", { }, 4000, { 1000, 4008, USED },
	  { FORWARD, 4008, 32, 32 }, .learns = true },
	{ "forgotten, to the end of the file", { }, 4000, { 1000, 4001, USED },
	  { FORWARD, 4001, 5, 5 }, .file = 4006, .learns = true },
	{ "forgotten, at the end of the file", { }, 4000, { 1000, 4001, USED }, { },
	  .file = 4001, .learns = true },
	{ "read before the mark", { 3900, 3900, 3999, 99, FORWARD }, 4000,
	  { 99, 4001, USED }, { FORWARD, 4001, 32, 32 }, .learns = true },
	{ "read behind the mark", { 4001, 4001, 4099, 99, FORWARD }, 4000,
	  { 99, 4001, USED }, { FORWARD, 4001, 32, 32 }, .learns = true },
	{ "memory holds 512 such windows", { }, 4000,
	  { 1000, 4001, USED }, { FORWARD, 4001, 32, 32 },
	  .ahead = 32, .memory = 512 * 32, .learns = true },
	{ "memory does not hold 512 such windows", { }, 4000, { 1000, 4001, USED },
	  { FORWARD, 4001, 32, 32 }, .ahead = 32, .memory = 512 * 32 - 1 },
};

KUNIT_ARRAY_PARAM_DESC(mark, mark_cases, name);

static void test_mark(struct kunit *test)
{
	const struct window_case *param = test->param_value;
	struct fake_file *file = file_of_case(test, param);
	struct mmap_readahead_state after = file->state;

	fake_mark(file, param->miss);
	KUNIT_EXPECT_EQ(test, file->ours, !param->stock);
	KUNIT_EXPECT_EQ(test, file->answer.size, param->answer.size);
	if (param->answer.size)
		KUNIT_EXPECT_EQ(test, file->answer.start, param->answer.start);
	if (param->learns)
		learn_continued(&after, &file->facts, &after.ahead);
	after.reads[0].mark_met = param->read.kind == SINGLE && param->read.size &&
				  !param->answer.size;
	/* A stream went on, or a single miss became one that is not sure. */
	if (param->answer.size && param->answer.start == param->read.end + 1) {
		after.reads[0].unsure = param->read.kind == SINGLE;
		after.reads[0].kind = FORWARD;
		after.reads[0].index = param->miss;
		after.reads[0].size = param->answer.size;
		after.reads[0].order = ilog2(param->answer.size);
		after.reads[0].pending = true;
		after.reads[0].end += param->answer.size;
	}
	KUNIT_EXPECT_MEMEQ(test, &file->state, &after, sizeof(after));
}

/* Of a file that nobody has missed in, somebody has read() what has the mark. */
static void test_mark_unknown(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);

	file->state = (struct mmap_readahead_state) { };
	fake_mark(file, 4000);
	KUNIT_EXPECT_FALSE(test, file->ours);
	KUNIT_EXPECT_EQ(test, file->answer.size, 0);
}

/* A single miss leaves a mark, which says nothing until the read is forgotten. */
static void test_single_mark(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);
	const struct mmap_readahead_side *ahead = &file->state.ahead;
	unsigned int n;

	fake_touch(file, 4000);
	fake_touch(file, 10000);
	KUNIT_EXPECT_TRUE(test, test_bit(4009, file->marked));
	KUNIT_EXPECT_TRUE(test, test_bit(10009, file->marked));
	fake_touch(file, 4008);
	fake_touch(file, 4009);
	KUNIT_EXPECT_TRUE(test, file->ours);
	KUNIT_EXPECT_EQ(test, file->answer.size, 0);
	KUNIT_EXPECT_EQ(test, ahead->continued, 0);
	for (n = 1; n <= MMAP_READAHEAD_READS; n++)
		fake_touch(file, 10000 + 5000 * n);
	/* Not where it was left. */
	KUNIT_EXPECT_EQ(test, ahead->continued, 0);
	fake_touch(file, 10008);
	fake_touch(file, 10009);
	expect_read(file, FORWARD, 10016, 16, 16);
	KUNIT_EXPECT_GT(test, ahead->continued, 0);
	/* The next one is where that begins. */
	KUNIT_EXPECT_TRUE(test, test_bit(10016, file->marked));
}

/*
 * A read that went on at the mark of a single miss is a stream. What single misses learn of it is
 * what they would have learnt without: it was continued if its next mark is met, or the miss
 * behind it, and else not.
 */
static void test_heeded_mark(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);
	const struct mmap_readahead_side *ahead = &file->state.ahead;
	unsigned int n, continued;

	for (n = 0; n < 3; n++) {
		fake_touch(file, 4096 + 1024 * n);
		file->state.ahead.continued = 200;
		fake_mark(file, 4105 + 1024 * n);
		expect_read(file, FORWARD, 4112 + 1024 * n, 16, 16);
		KUNIT_EXPECT_EQ(test, ahead->continued, 200);
	}
	fake_mark(file, 4112);
	continued = moved_share(200, true);
	KUNIT_EXPECT_EQ(test, ahead->continued, continued);
	/* The next mark is one of a stream as any other. */
	fake_mark(file, file->answer.start);
	KUNIT_EXPECT_EQ(test, ahead->continued, continued);
	/* The pages came too late, or were evicted meanwhile. */
	fake_set(file, file->state.reads[1].end, 1, USED);
	fake_miss(file, file->state.reads[1].end + 1);
	KUNIT_EXPECT_EQ(test, file->answer.kind, FORWARD);
	KUNIT_EXPECT_FALSE(test, file->state.reads[1].unsure);
	continued = moved_share(continued, true);
	KUNIT_EXPECT_EQ(test, ahead->continued, continued);
	/* Nobody came to the third, which tells once it is forgotten, if more could come. */
	for (n = 0; n < 2; n++) {
		file->state.next = 2;
		file->state.reads[2] = (struct mmap_readahead_read) {
			6153, 6144, 6175, 16, FORWARD, .unsure = true,
		};
		file->facts.file_pages = n ? FAKE_PAGES : 6176;
		continued = n ? moved_share(continued, false) : continued;
		fake_miss(file, 3000 + 500 * n);
		KUNIT_EXPECT_EQ(test, ahead->continued, continued);
	}
}

/* A fault for each block, and none for marks alone, from wherever a stream begins in order. */
static void test_faults_of_marks(struct kunit *test)
{
	unsigned long first, page;
	struct fake_file *file;
	bool fault;

	for (first = 4096; first < 4096 + FAKE_BLOCK; first++) {
		file = fake_file(test, 32, 32);
		for (page = first; page < first + 1024; page++) {
			fault = file->pages[page] != USED;
			fake_touch(file, page);
			if (page > first + 128)
				KUNIT_EXPECT_EQ(test, fault, page % FAKE_BLOCK == 0);
		}
		KUNIT_EXPECT_LE(test, file->misses, 2);
	}
}

/* Nor does it while the file is about to begin anew, and it is nobody else's. */
static void test_mark_before_a_beginning(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);

	fake_touch(file, 4000);
	file->state.ahead.patience = 0;
	fake_touch(file, 4009);
	KUNIT_EXPECT_TRUE(test, file->ours);
	KUNIT_EXPECT_EQ(test, file->answer.size, 0);
	KUNIT_EXPECT_FALSE(test, test_bit(4016, file->marked));
}

/* More streams than are remembered read on at marks, and ever more at once. */
static void test_streams(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);
	unsigned long page, stream, nr = FAKE_PAGES / 1024;
	unsigned int reads = 0;

	for (page = 0; page < 512; page++) {
		/* Once each has begun, few misses are waited for. */
		if (page == 128)
			file->misses = 0;
		for (stream = 0; stream < nr; stream++) {
			fake_touch(file, 1024 * stream + page);
			reads += file->answer.size > 0;
		}
	}
	KUNIT_EXPECT_LE(test, file->misses, nr);
	KUNIT_EXPECT_LE(test, reads, nr * 512 / 16);
	KUNIT_EXPECT_GE(test, file->state.ahead.order, 5);
}

/* A file that memory does not hold, again and again, from end to end. */
static void test_again(struct kunit *test)
{
	struct fake_file *file = fake_file(test, 1024, 32);
	unsigned int n;

	file->facts.memory_pages = FAKE_PAGES / 8;
	for (n = 0; n < 16 * FAKE_PAGES; n++)
		fake_touch(file, n % FAKE_PAGES);
	KUNIT_EXPECT_LE(test, file->misses, 16 * FAKE_PAGES / 512);
}

/* All of it */

/* Anything may be there, but it is the same whenever one looks. */
static enum mmap_readahead_page look_anywhere(const void *cache,
					      unsigned long index)
{
	const unsigned int *seed = cache;

	return *seed < 4 ? *seed : hash_long(index, 2);
}

static unsigned long next_miss_anywhere(const void *cache, unsigned long index,
					unsigned long most)
{
	return index + min(most / 2, HIGHEST_PAGE + 1 - index);
}

/* A miss that might go on from each read, and then goes on from a run. */
static void test_looks(struct kunit *test)
{
	struct fake_file *file = known_file(test);
	unsigned int i;

	fake_set(file, 29000, 1000, CACHED);
	for (i = 0; i < MMAP_READAHEAD_READS; i++)
		file->state.reads[i] = (struct mmap_readahead_read) {
			29800, 29700, 29983 - i, 64, SINGLE,
		};
	for (i = 1; i <= 32; i *= 2)
		fake_set(file, 30000 - i, 1, USED);
	file->state.behind.order = 4;
	fake_miss(file, 30000);
	expect_read(file, FORWARD, 30000, 32, 16);
	/* One for each of them, and six for the run. */
	KUNIT_EXPECT_GE(test, file->looks, MMAP_READAHEAD_READS + 6);
}

/* Files as small and as large as they can be, and facts that do not fit. */
static void test_extremes(struct kunit *test)
{
	static const unsigned int max_pages[] = { 1, 2, 3, 32, 1024, SZ_1G >> 12 };
	static const unsigned int requests[] = { 1, 32, SZ_64M >> 12 };
	static const unsigned long memories[] = { 0, 1000, HIGHEST_PAGE };
	static const unsigned long starts[] = {
		0, 1, 63, 5000, UINT_MAX - 8UL, HIGHEST_PAGE - 100, HIGHEST_PAGE,
	};
	static const long steps[] = {
		0, 1, 16, 17, -1, -16, -33, 5, 900, 1, 1, -20000, 7, -3, 1,
	};
	struct fake_file *file = fake_file(test, 1, 1);
	struct mmap_readahead_miss *miss = &file->facts;
	unsigned int pages, n;
	u64 random = 88172645463325252ULL;

	miss->look = look_anywhere;
	miss->next_miss = next_miss_anywhere;
	miss->cache = &pages;
	miss->cached_pages = 1;
	for (n = 0; n < 100000; n++) {
		if (n % 100 == 0) {
			memset(&file->state, 0, sizeof(file->state));
			pages = next_random(&random, 8);
			miss->max_pages = max_pages[next_random(&random, ARRAY_SIZE(max_pages))];
			miss->request_pages = requests[next_random(&random, ARRAY_SIZE(requests))];
			miss->memory_pages = memories[next_random(&random, ARRAY_SIZE(memories))];
			miss->block_shift = next_random(&random, 10);
			miss->writes = next_random(&random, 2);
		}
		/* In the end the file is cut off after its first page. */
		miss->file_pages = n % 100 < 90 ? HIGHEST_PAGE + 1 : 1;
		if (n % 50 == 0)
			miss->index = starts[next_random(&random, ARRAY_SIZE(starts))];
		miss->index += steps[next_random(&random, ARRAY_SIZE(steps))];
		if (miss->index >= miss->file_pages)
			miss->index = miss->file_pages - 1;
		fake_miss(file, miss->index);
		fake_mark(file, miss->index);
	}
}

/* Anything may follow anything: fake_miss() and fake_mark() see that it fits. */
static void test_any_sequence(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	struct fake_file *file = fake_file(test, param->max, param->request);
	unsigned long page = 0, length, i;
	u64 random = 88172645463325252ULL;
	unsigned int n;

	for (n = 0; n < 3000; n++) {
		length = next_random(&random, 40);
		switch (next_random(&random, 12)) {
		case 0 ... 3:
			page = next_random(&random, FAKE_PAGES - 4096);
			break;
		case 4 ... 5:
			for (i = 0; i < length; i++)
				fake_touch(file, page + i);
			break;
		case 6:
			for (i = 0; i < length && i <= page; i++)
				fake_touch(file, page - i);
			break;
		case 7:
			for (i = 0; i < length; i++)
				fake_touch(file, page + 77 * i);
			break;
		case 8:
			file->facts.memory_pages = 1 + next_random(&random,
						1 << length % 17);
			break;
		case 9:
			file->facts.max_pages = 1 + next_random(&random,
						1 << length % 12);
			break;
		case 10:
			file->facts.request_pages = 1 + next_random(&random,
						1 << length % 15);
			break;
		case 11:
			file->facts.block_shift = length % 10;
			break;
		}
		fake_touch(file, page);
	}
}

static struct kunit_case mmap_readahead_window_cases[] = {
	KUNIT_CASE(test_arithmetic),
	KUNIT_CASE_PARAM(test_init, init_gen_params),
	KUNIT_CASE(test_begins_anew),
	KUNIT_CASE_PARAM(test_goes_on, goes_on_gen_params),
	KUNIT_CASE_PARAM(test_stream, stream_gen_params),
	KUNIT_CASE(test_submitted),
	KUNIT_CASE_PARAM(test_forward, machine_gen_params),
	KUNIT_CASE_PARAM(test_single, single_gen_params),
	KUNIT_CASE_PARAM(test_continued, continued_gen_params),
	KUNIT_CASE_PARAM(test_forgotten, forgotten_gen_params),
	KUNIT_CASE_PARAM(test_sparse, machine_gen_params),
	KUNIT_CASE_PARAM(test_step, step_gen_params),
	KUNIT_CASE_PARAM(test_sweeps, sweep_gen_params),
	KUNIT_CASE(test_sweeps_in_vain),
	KUNIT_CASE(test_least),
	KUNIT_CASE_PARAM(test_region, region_gen_params),
	KUNIT_CASE_PARAM(test_settled, settled_gen_params),
	KUNIT_CASE_PARAM(test_mark, mark_gen_params),
	KUNIT_CASE(test_mark_unknown),
	KUNIT_CASE(test_single_mark),
	KUNIT_CASE(test_heeded_mark),
	KUNIT_CASE(test_faults_of_marks),
	KUNIT_CASE(test_mark_before_a_beginning),
	KUNIT_CASE(test_streams),
	KUNIT_CASE(test_again),
	KUNIT_CASE(test_looks),
	KUNIT_CASE(test_extremes),
	KUNIT_CASE_PARAM(test_any_sequence, machine_gen_params),
	{ }
};

static struct kunit_suite mmap_readahead_window_suite = {
	.name = "mmap_readahead_window",
	.test_cases = mmap_readahead_window_cases,
};

kunit_test_suite(mmap_readahead_window_suite);
