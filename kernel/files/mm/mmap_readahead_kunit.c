// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the policy of readahead for mapped files. */

/* The same regions, and so the same tests, on every kernel. */
#define MMAP_READAHEAD_PAGE_SHIFT	12

#include <kunit/test.h>
#include <asm/page.h>
#include <linux/align.h>
#include <linux/bitmap.h>
#include <linux/bits.h>
#include <linux/file_folio_policy.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/mmap_readahead_policy.h>
#include <linux/module.h>

#define ADDRESS		MMAP_READAHEAD_HIT_NEEDS_ADDRESS
#define FIRST_TRY	MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY
#define UNLOCKED	MMAP_READAHEAD_HIT_NEEDS_UNLOCKED
#define COUNTED_MISS	MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS
#define ALL		(ADDRESS | FIRST_TRY | UNLOCKED | COUNTED_MISS)

struct credit_case {
	const char *name;
	unsigned int rules;
	struct mmap_readahead_hit hit;
	unsigned int credit;
};

static const struct credit_case credit_cases[] = {
	{ "no rule: every mapped page counts",
	  0, { .nr_pages = 16, .at_address = true }, 16 },
	{ "no rule: neighbours count without the address",
	  0, { .nr_pages = 15 }, 15 },
	{ "no rule: a retry counts",
	  0, { .nr_pages = 16, .at_address = true, .retried = true }, 16 },
	{ "no rule: a locked folio counts",
	  0, { .nr_pages = 1, .at_address = true, .locked = true }, 1 },
	{ "no rule: nothing mapped, nothing counted", 0, { }, 0 },
	{ "address: one for the address, none for neighbours",
	  ADDRESS, { .nr_pages = 16, .at_address = true }, 1 },
	{ "address: neighbours alone give nothing",
	  ADDRESS, { .nr_pages = 15 }, 0 },
	{ "address: a retry still counts once",
	  ADDRESS, { .nr_pages = 16, .at_address = true, .retried = true }, 1 },
	{ "address: never more than without rules",
	  ADDRESS, { .nr_pages = 0, .at_address = true }, 0 },
	{ "first try: a retry gives nothing",
	  FIRST_TRY, { .nr_pages = 16, .at_address = true, .retried = true }, 0 },
	{ "first try: the first try counts every page",
	  FIRST_TRY, { .nr_pages = 16, .at_address = true }, 16 },
	{ "unlocked: a locked folio gives nothing",
	  UNLOCKED, { .nr_pages = 1, .at_address = true, .locked = true }, 0 },
	{ "unlocked: any other counts",
	  UNLOCKED, { .nr_pages = 1, .at_address = true }, 1 },
	{ "counted miss: where misses do not count, hits give nothing",
	  COUNTED_MISS, { .nr_pages = 16, .at_address = true, .uncounted = true }, 0 },
	{ "counted miss: elsewhere every page counts",
	  COUNTED_MISS, { .nr_pages = 16, .at_address = true }, 16 },
	{ "no rule: hits count also where misses do not",
	  0, { .nr_pages = 16, .at_address = true, .uncounted = true }, 16 },
	{ "all: the clean hit counts once",
	  ALL, { .nr_pages = 16, .at_address = true }, 1 },
	{ "all: a retry gives nothing",
	  ALL, { .nr_pages = 16, .at_address = true, .retried = true }, 0 },
	{ "all: a locked folio gives nothing",
	  ALL, { .nr_pages = 1, .at_address = true, .locked = true }, 0 },
	{ "no rule: the whole range of the counter fits",
	  0, { .nr_pages = UINT_MAX, .at_address = true }, UINT_MAX },
};

static void credit_case_name(const struct credit_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(credit, credit_cases, credit_case_name);

static void test_credit(struct kunit *test)
{
	const struct credit_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->credit,
			mmap_readahead_credit(param->rules, &param->hit));
}

/* A rule only takes hits away: adding one never raises the credit. */
static void test_credit_only_falls(struct kunit *test)
{
	static const unsigned int nr_pages[] = { 0, 1, 2, 16 };
	unsigned int facts, rules, rule;

	for (facts = 0; facts < 64; facts++) {
		/* Two bits choose the pages, one each the flags. */
		const struct mmap_readahead_hit hit = {
			.nr_pages = nr_pages[facts & 3],
			.at_address = facts & 4,
			.retried = facts & 8,
			.locked = facts & 16,
			.uncounted = facts & 32,
		};

		KUNIT_EXPECT_EQ(test, hit.nr_pages,
				mmap_readahead_credit(0, &hit));
		for (rules = 0; rules <= ALL; rules++)
			for (rule = ADDRESS; rule <= ALL; rule <<= 1)
				KUNIT_EXPECT_LE(test,
						mmap_readahead_credit(rules | rule, &hit),
						mmap_readahead_credit(rules, &hit));
	}
}

struct huge_case {
	const char *name;
	unsigned int pmd, cache, file, page_shift;
	int order;
};

static const struct huge_case huge_cases[] = {
	{ "4 KiB pages: the PMD fits", 9, 9, 9, 12, 9 },
	{ "4 KiB pages: also where the file has no large folios", 9, 9, 0, 12, 9 },
	{ "16 KiB pages: the PMD of 32 MiB fits", 11, 11, 11, 14, 11 },
	{ "64 KiB pages: 2 MiB instead of 512 MiB", 13, 11, 11, 16, 5 },
	{ "64 KiB pages: no more than the file can hold", 13, 11, 3, 16, 3 },
	{ "64 KiB pages: nothing without large folios", 13, 11, 0, 16, -1 },
	{ "a PMD that does not fit with 16 KiB pages", 11, 10, 10, 14, 7 },
	{ "a PMD that does not fit with 4 KiB pages", 10, 8, 10, 12, 9 },
};

static void huge_case_name(const struct huge_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(huge, huge_cases, huge_case_name);

static void test_huge_order(struct kunit *test)
{
	const struct huge_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->order,
			mmap_readahead_huge_order(param->pmd, param->cache,
						  param->file,
						  param->page_shift));
}

struct text_case {
	const char *name;
	int preferred;
	unsigned int min, max;
	int order;
};

static const struct text_case text_cases[] = {
	{ "no preference", -1, 0, 9, -1 },
	{ "no preference, large blocks", -1, 2, 9, -1 },
	{ "64 KiB of 4 KiB pages", 4, 0, 9, 4 },
	{ "64 KiB of 16 KiB pages", 2, 0, 11, 2 },
	{ "64 KiB of 64 KiB pages", 0, 0, 11, 0 },
	{ "one page of a file without large folios", 0, 0, 0, -1 },
	{ "64 KiB of a file without large folios", 4, 0, 0, -1 },
	{ "no more than the file can hold", 9, 0, 4, 4 },
	{ "no less than its blocks need", 2, 4, 9, 4 },
	{ "2 MiB of 4 KiB pages", 9, 0, 9, 9 },
	{ "2 MiB of 64 KiB pages", 5, 0, 11, 5 },
};

static void text_case_name(const struct text_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(text, text_cases, text_case_name);

static void test_text_order(struct kunit *test)
{
	const struct text_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->order,
			mmap_readahead_text_order(param->preferred, param->min,
						  param->max));
}

/* Whatever the limits are, a block holds its page and keeps within them. */
static void test_block(struct kunit *test)
{
	static const unsigned long firsts[] = { 0, 1, 15, 16, 17, 500 };
	static const unsigned long sizes[] = { 1, 2, 15, 16, 17, 600 };
	unsigned int order, i, j;
	unsigned long index;

	for (order = 0; order <= 11; order++)
		for (i = 0; i < ARRAY_SIZE(firsts); i++)
			for (j = 0; j < ARRAY_SIZE(sizes); j++)
				for (index = firsts[i]; index < firsts[i] + sizes[j]; index++) {
					unsigned long first = firsts[i];
					unsigned long last = first + sizes[j] - 1;
					struct mmap_readahead_window block =
						mmap_readahead_block(index, order, first, last);
					unsigned long end = block.start + block.size - 1;

					KUNIT_ASSERT_GE(test, block.start, first);
					KUNIT_ASSERT_LE(test, end, last);
					KUNIT_ASSERT_GE(test, index, block.start);
					KUNIT_ASSERT_LE(test, index, end);
					KUNIT_ASSERT_EQ(test, block.start >> order, end >> order);
					KUNIT_ASSERT_TRUE(test, block.start == first ||
							  IS_ALIGNED(block.start, 1UL << order));
					KUNIT_ASSERT_TRUE(test, end == last ||
							  IS_ALIGNED(end + 1, 1UL << order));
				}
}

static void test_block_at_the_end_of_the_range(struct kunit *test)
{
	struct mmap_readahead_window block =
		mmap_readahead_block(ULONG_MAX - 1, 9, 0, ULONG_MAX);

	KUNIT_EXPECT_EQ(test, block.start, ULONG_MAX - 511);
	KUNIT_EXPECT_EQ(test, block.size, 512);
}

/* Only one size has text; taking it from a size does not touch the others. */
static void test_file_folio_use(struct kunit *test)
{
	struct file_folio_orders orders = { .always = ~0UL, .exec = 4 };
	unsigned int order;

	file_folio_set_use(&orders, 9, FILE_FOLIO_EXEC);
	KUNIT_EXPECT_EQ(test, FILE_FOLIO_EXEC, file_folio_get_use(&orders, 9));
	KUNIT_EXPECT_EQ(test, FILE_FOLIO_ALWAYS, file_folio_get_use(&orders, 4));
	file_folio_set_use(&orders, 4, FILE_FOLIO_NEVER);
	KUNIT_EXPECT_EQ(test, FILE_FOLIO_NEVER, file_folio_get_use(&orders, 4));
	KUNIT_EXPECT_EQ(test, FILE_FOLIO_EXEC, file_folio_get_use(&orders, 9));
	file_folio_set_use(&orders, 9, FILE_FOLIO_ALWAYS | FILE_FOLIO_EXEC);
	file_folio_set_use(&orders, 9, FILE_FOLIO_ALWAYS);
	KUNIT_EXPECT_EQ(test, -1, orders.exec);
	for (order = 1; order < 12; order++)
		KUNIT_EXPECT_EQ(test, order == 4 ? FILE_FOLIO_NEVER : FILE_FOLIO_ALWAYS,
				file_folio_get_use(&orders, order));
}

static void test_file_folio_fit(struct kunit *test)
{
	unsigned long allowed;
	unsigned int order, min, fit;

	for (order = 0; order <= 6; order++)
		for (min = 0; min <= order; min++) {
			KUNIT_EXPECT_EQ(test, order, file_folio_fit(~0UL, order, min));
			KUNIT_EXPECT_EQ(test, min, file_folio_fit(0, order, min));
			for (allowed = 0; allowed < 128; allowed++) {
				fit = file_folio_fit(allowed, order, min);
				KUNIT_EXPECT_GE(test, fit, min);
				KUNIT_EXPECT_LE(test, fit, order);
				KUNIT_EXPECT_TRUE(test, fit == min || allowed & BIT(fit));
				/* None that is larger would have been allowed. */
				KUNIT_EXPECT_EQ(test, 0, allowed & GENMASK(6, 0) &
						~(BIT(fit + 1) - 1) & (BIT(order + 1) - 1));
			}
		}
}

/*
 * The adaptive window
 *
 * A file of eight regions in a page cache without a kernel around it. A fault
 * maps what is cached of its block, as filemap_map_pages() does; what it misses
 * is read at once.
 */

#define FAKE_PAGES	(8UL << MMAP_READAHEAD_REGION_SHIFT)
#define FAKE_BLOCK	16UL
#define HIGHEST_PAGE	(ULONG_MAX >> PAGE_SHIFT)

struct fake_file {
	struct kunit *test;
	struct mmap_readahead_state state;
	/* What does not depend on the page that is missing. */
	struct mmap_readahead_miss facts;
	/* What the last access read, of no size if that was nothing. */
	struct mmap_readahead_answer answer;
	unsigned long misses;
	/* Of what is read, as large as what the last read asked for. */
	unsigned int folio_order;
	bool large_folios;
	DECLARE_BITMAP(cached, FAKE_PAGES);
	DECLARE_BITMAP(used, FAKE_PAGES);
	DECLARE_BITMAP(marked, FAKE_PAGES);
	DECLARE_BITMAP(evicted, FAKE_PAGES);
};

/* Folios are mapped page by page, and used as soon as one is. */
static bool fake_used(const struct fake_file *file, unsigned long index)
{
	unsigned long pages = 1UL << file->folio_order;
	unsigned long start = ALIGN_DOWN(index, pages);

	return find_next_bit(file->used, start + pages, start) < start + pages;
}

static enum mmap_readahead_page fake_look(const void *cache,
					  unsigned long index)
{
	const struct fake_file *file = cache;

	if (index >= FAKE_PAGES)
		return MMAP_READAHEAD_ABSENT;
	if (!test_bit(index, file->cached))
		return test_bit(index, file->evicted) ? MMAP_READAHEAD_EVICTED :
							MMAP_READAHEAD_ABSENT;
	return fake_used(file, index) ? MMAP_READAHEAD_USED :
					MMAP_READAHEAD_CACHED;
}

/* A file that nothing is known of. */
static struct fake_file *fake_file(struct kunit *test, unsigned long pages,
				   unsigned int max_pages,
				   unsigned int request_pages)
{
	struct fake_file *file = kunit_kzalloc(test, sizeof(*file), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, file);
	file->test = test;
	file->facts = (struct mmap_readahead_miss) {
		.file_pages = pages,
		.max_pages = max_pages,
		.request_pages = request_pages,
		.block_shift = ilog2(FAKE_BLOCK),
		.look = fake_look,
		.cache = file,
	};
	return file;
}

static bool side_fits(const struct mmap_readahead_side *side)
{
	return side->order < 31 && side->quiet <= MMAP_READAHEAD_MAX_PATIENCE &&
	       side->patience <= MMAP_READAHEAD_MAX_PATIENCE;
}

/* Does a state hold what later misses rely on? */
static bool state_fits(const struct mmap_readahead_state *state)
{
	const struct mmap_readahead_visits *visits = &state->visits;
	unsigned int i, j;

	for (i = 0; i < MMAP_READAHEAD_READS; i++) {
		const struct mmap_readahead_read *read = &state->reads[i];

		if (read->size &&
		    (read->index < read->start || read->index > read->end ||
		     read->size - 1 > read->end - read->start))
			return false;
	}
	for (i = 0; i < ARRAY_SIZE(state->singles); i++) {
		const struct mmap_readahead_singles *singles = &state->singles[i];
		unsigned long sum = 0;

		for (j = 0; j < MMAP_READAHEAD_REGIONS; j++)
			sum += singles->regions[j];
		if (sum != singles->nr ||
		    singles->losses > MMAP_READAHEAD_MAX_LOSSES ||
		    (singles->filled && singles->fill >> singles->shift >=
					MMAP_READAHEAD_REGIONS))
			return false;
	}
	if (visits->nr_met != hweight32(visits->met) ||
	    visits->misses >= MMAP_READAHEAD_VISIT ||
	    (visits->left | visits->back) & ~visits->dense ||
	    visits->left & visits->back)
		return false;
	return state->next < MMAP_READAHEAD_READS && state->narrow < 32 &&
	       state->allowed <= MMAP_READAHEAD_MAX_ALLOWED &&
	       state->sparse <= MMAP_READAHEAD_READS &&
	       state->irregular <= MMAP_READAHEAD_IRREGULAR &&
	       side_fits(&state->ahead) && side_fits(&state->behind);
}

/* Decide on a miss; whatever the answer is, it has to fit. */
static struct mmap_readahead_answer adapt(struct kunit *test,
					  struct mmap_readahead_state *state,
					  const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_answer answer = mmap_readahead_adapt(state, miss);

	KUNIT_ASSERT_GE(test, answer.size, 1);
	KUNIT_ASSERT_LE(test, answer.size, miss->max_pages);
	KUNIT_ASSERT_LE(test, answer.start, miss->index);
	KUNIT_ASSERT_LT(test, miss->index - answer.start, answer.size);
	KUNIT_ASSERT_LE(test, answer.size, miss->file_pages - answer.start);
	KUNIT_ASSERT_LT(test, answer.async_size, answer.size);
	KUNIT_ASSERT_TRUE(test, state_fits(state));
	return answer;
}

/* Is the mark on the first of so many last pages, or the next one that is not used? */
static bool marks_from(const struct mmap_readahead_miss *mark,
		       const struct mmap_readahead_answer *answer,
		       unsigned int async_size)
{
	unsigned long page = answer->start + answer->size - answer->async_size;
	unsigned int moved = async_size - answer->async_size;

	if (!answer->async_size || moved > MMAP_READAHEAD_NEIGHBOURS)
		return false;
	if (moved < MMAP_READAHEAD_NEIGHBOURS && answer->async_size > 1 &&
	    mmap_readahead_used(mark, page))
		return false;
	while (moved--)
		if (!mmap_readahead_used(mark, --page))
			return false;
	return true;
}

/*
 * Is the next mark where it belongs? That is the first page, but the middle of what
 * was read early. Two reads may answer alike.
 */
static bool mark_fits(const struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *mark,
		      const struct mmap_readahead_answer *answer)
{
	const struct mmap_readahead_read *read = state->reads;
	bool early = false, other = false;

	for (; read < state->reads + MMAP_READAHEAD_READS; read++) {
		if (read->index != mark->index ||
		    read->end != answer->start + answer->size - 1)
			continue;
		if (read->early)
			early = true;
		else
			other = true;
	}
	return (early && marks_from(mark, answer, (answer->size + 1) / 2)) ||
	       ((other || !early) && marks_from(mark, answer, answer->size));
}

/* As adapt(), at a readahead mark. */
static struct mmap_readahead_answer go_on(struct kunit *test,
					  struct mmap_readahead_state *state,
					  const struct mmap_readahead_miss *mark)
{
	struct mmap_readahead_answer answer = mmap_readahead_go_on(state, mark);

	KUNIT_ASSERT_TRUE(test, state_fits(state));
	if (!answer.size)
		return answer;
	KUNIT_ASSERT_LE(test, answer.size, mark->max_pages);
	KUNIT_ASSERT_GT(test, answer.start, mark->index);
	KUNIT_ASSERT_LT(test, answer.start, mark->file_pages);
	KUNIT_ASSERT_LE(test, answer.size, mark->file_pages - answer.start);
	KUNIT_ASSERT_TRUE(test, mark_fits(state, mark, &answer));
	return answer;
}

static struct mmap_readahead_miss fake_miss(const struct fake_file *file,
					    unsigned long index)
{
	struct mmap_readahead_miss miss = file->facts;

	miss.index = index;
	miss.cached_pages += bitmap_weight(file->cached, FAKE_PAGES);
	return miss;
}

static void fake_read(struct fake_file *file)
{
	const struct mmap_readahead_answer *answer = &file->answer;
	unsigned long end = answer->start + answer->size;
	unsigned long mark = end - answer->async_size;

	if (file->large_folios)
		file->folio_order = answer->order;
	if (mark < end && !test_bit(mark, file->cached))
		__set_bit(mark, file->marked);
	bitmap_set(file->cached, answer->start, answer->size);
	bitmap_clear(file->evicted, answer->start, answer->size);
}

static void fake_map_around(struct fake_file *file, unsigned long index)
{
	unsigned long block = 1UL << file->facts.block_shift;
	unsigned long page = ALIGN_DOWN(index, block), i;

	for (i = 0; i < block; i++, page++)
		if (test_bit(page, file->cached) &&
		    !test_bit(page, file->marked))
			__set_bit(page, file->used);
}

static void fake_touch(struct fake_file *file, unsigned long index)
{
	struct mmap_readahead_miss miss;

	file->answer = (struct mmap_readahead_answer) { };
	if (test_bit(index, file->used))
		return;
	fake_map_around(file, index);
	if (test_bit(index, file->used))
		return;
	miss = fake_miss(file, index);
	if (__test_and_clear_bit(index, file->marked)) {
		file->answer = go_on(file->test, &file->state, &miss);
	} else {
		file->answer = adapt(file->test, &file->state, &miss);
		file->misses++;
	}
	fake_read(file);
	/* The mark may be on the page itself. */
	__clear_bit(index, file->marked);
	fake_map_around(file, index);
}

static void fake_evict(struct fake_file *file, unsigned long first,
		       unsigned long nr)
{
	unsigned long page;

	for (page = first; page < first + nr; page++)
		if (__test_and_clear_bit(page, file->cached)) {
			__clear_bit(page, file->used);
			__clear_bit(page, file->marked);
			__set_bit(page, file->evicted);
		}
}

static unsigned long fake_end(const struct fake_file *file)
{
	return file->answer.start + file->answer.size - 1;
}

static unsigned long next_random(u64 *random, unsigned long limit)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (u32)*random % limit;
}

static void test_first_miss(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);

	fake_touch(file, 1000);
	KUNIT_EXPECT_EQ(test, file->answer.start, 1000);
	KUNIT_EXPECT_EQ(test, file->answer.size,
			1 << MMAP_READAHEAD_FIRST_ORDER);
	KUNIT_EXPECT_EQ(test, file->answer.async_size, 0);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_SINGLE);
}

/* When nothing is cached any more, a file is one that nothing is known of. */
static void test_first_miss_again(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long page;

	for (page = 0; page < FAKE_PAGES; page += 1024)
		fake_touch(file, page);
	KUNIT_EXPECT_EQ(test, file->answer.size, 1);
	fake_evict(file, 0, FAKE_PAGES);
	fake_touch(file, 1000);
	KUNIT_EXPECT_EQ(test, file->answer.size,
			1 << MMAP_READAHEAD_FIRST_ORDER);
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

static void machine_case_name(const struct machine_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(machine, machine_cases, machine_case_name);

/* Wherever in their blocks single misses lie, they soon read one page each. */
static void test_sparse(struct kunit *test)
{
	static const unsigned int places[] = { 0, 1, 8, 12, 15 };
	static const unsigned int requests[] = { 1, 2, 32, 33 };
	static const unsigned int shifts[] = { 0, 2, 4, 9 };
	const unsigned int nr = ARRAY_SIZE(places) * ARRAY_SIZE(requests) *
				ARRAY_SIZE(shifts);
	unsigned int i, n, windows, place, request, shift;
	struct fake_file *file;

	for (i = 0; i < nr; i++) {
		place = places[i % ARRAY_SIZE(places)];
		request = requests[i / ARRAY_SIZE(places) % ARRAY_SIZE(requests)];
		shift = shifts[i / ARRAY_SIZE(places) / ARRAY_SIZE(requests)];
		file = fake_file(test, FAKE_PAGES, 1024, request);
		file->facts.block_shift = shift;
		file->large_folios = i % 2;
		for (n = 0, windows = 0; n < 128; n++) {
			/* Farther apart than any request is worth. */
			fake_touch(file, n * 37 % 128 * 1024 + place);
			KUNIT_EXPECT_EQ(test, file->answer.kind,
					MMAP_READAHEAD_SINGLE);
			windows += file->answer.size > 1;
		}
		KUNIT_EXPECT_EQ(test, file->misses, 128);
		KUNIT_EXPECT_GE(test, windows, 4);
		KUNIT_EXPECT_LE(test, windows, 100);
		KUNIT_EXPECT_EQ(test, file->answer.size, 1);
		kunit_kfree(test, file);
	}
}

/* Two misses, then marks; windows that grow, without gap or overlap. */
static void test_forward(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	struct fake_file *file = fake_file(test, FAKE_PAGES, param->max,
					   param->request);
	unsigned long first = 5000, last = first + 32767, page, end = 0;
	unsigned int before = 0, size, most = 0;

	file->facts.file_pages = last + 1;
	for (page = first; page <= last; page++) {
		fake_touch(file, page);
		size = file->answer.size;
		if (!size)
			continue;
		if (before) {
			KUNIT_EXPECT_EQ(test, file->answer.kind,
					MMAP_READAHEAD_FORWARD);
			KUNIT_EXPECT_EQ(test, file->answer.start, end + 1);
		}
		end = fake_end(file);
		most = max(most, size);
		/* From the first mark on they grow, but for what the end cuts off. */
		if (file->answer.async_size == size && end < last)
			KUNIT_EXPECT_GE(test, size,
					min(before + before / 4, param->max));
		if (end < last)
			KUNIT_EXPECT_GE(test, size, before);
		before = size;
	}
	KUNIT_EXPECT_EQ(test, end, last);
	KUNIT_EXPECT_EQ(test, most, param->max);
	KUNIT_EXPECT_EQ(test, bitmap_weight(file->cached, FAKE_PAGES),
			last - first + 1);
	/* A window of one page has no room for a mark. */
	if (param->max > 1)
		KUNIT_EXPECT_LE(test, file->misses, 2);
}

/* Backward, each window ends where the last one began, and is twice as large. */
static void test_backward(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	struct fake_file *file = fake_file(test, FAKE_PAGES, param->max,
					   param->request);
	unsigned long pages = 32768, page, start = 0;
	unsigned int before = 1, size, most = 0;

	for (page = pages; page-- > 0;) {
		fake_touch(file, page);
		size = file->answer.size;
		/* Small windows may not outgrow what one fault maps. */
		if (!size || param->request < FAKE_BLOCK)
			continue;
		if (start) {
			KUNIT_EXPECT_EQ(test, file->answer.kind,
					MMAP_READAHEAD_BACKWARD);
			KUNIT_EXPECT_EQ(test, fake_end(file), start - 1);
			if (file->answer.start)
				KUNIT_EXPECT_EQ(test, size,
						min(2 * before, param->max));
			before = size;
		}
		KUNIT_EXPECT_EQ(test, file->answer.async_size, 0);
		start = file->answer.start;
		most = max(most, size);
	}
	KUNIT_EXPECT_TRUE(test, test_bit(0, file->used));
	if (param->request >= FAKE_BLOCK)
		KUNIT_EXPECT_EQ(test, most, param->max);
}

/* A run may leave pages out; only if reading these costs less than a request. */
static void test_gaps(struct kunit *test)
{
	static const struct {
		unsigned long stride;
		bool run;
	} steps[] = {
		{ 2, true }, { 3, true }, { 7, true }, { 16, true },
		{ 31, true }, { 32, true }, { 33, false }, { 64, false },
		{ 100, false },
	};
	unsigned int i, back, singles;
	struct fake_file *file;
	unsigned long page;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		for (back = 0; back < 2; back++) {
			file = fake_file(test, FAKE_PAGES, 1024, 32);
			for (page = singles = 0; page < 8192;
			     page += steps[i].stride) {
				fake_touch(file, back ? 40000 - page :
							40000 + page);
				singles += file->answer.size &&
					   file->answer.kind ==
					   MMAP_READAHEAD_SINGLE;
			}
			if (steps[i].run) {
				KUNIT_EXPECT_EQ(test, singles, 1);
				KUNIT_EXPECT_LE(test, file->misses, 32);
			} else {
				KUNIT_EXPECT_EQ(test, singles, file->misses);
				KUNIT_EXPECT_LE(test, bitmap_weight(file->cached,
								    FAKE_PAGES), 1024);
			}
			kunit_kfree(test, file);
		}
}

/* A mark is on a page that is read, as none of those is that were used. */
static void test_mark_is_read(struct kunit *test)
{
	static const struct {
		unsigned int before, used, after;
	} cases[] = {
		{ 128, 0, 128 }, { 128, 3, 125 }, { 128, 31, 97 },
		{ 128, MMAP_READAHEAD_NEIGHBOURS, 96 },
		/* It is not looked for any farther. */
		{ 128, MMAP_READAHEAD_NEIGHBOURS + 1, 96 },
		{ 2, 2, 1 },
	};
	struct mmap_readahead_answer answer;
	struct mmap_readahead_miss miss;
	struct fake_file *file;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		file = fake_file(test, FAKE_PAGES, 256, 32);
		bitmap_set(file->cached, 1256 - cases[i].before,
			   cases[i].used);
		bitmap_copy(file->used, file->cached, FAKE_PAGES);
		miss = fake_miss(file, 1000);
		answer = (struct mmap_readahead_answer) {
			.start = 1000,
			.size = 256,
			.async_size = cases[i].before,
		};
		mmap_readahead_place_mark(&miss, &answer);
		KUNIT_EXPECT_EQ(test, answer.async_size, cases[i].after);
		kunit_kfree(test, file);
	}

	/* So a run does not wait where other runs were before. */
	file = fake_file(test, FAKE_PAGES, 32, 32);
	bitmap_set(file->cached, 1024, 4);
	bitmap_set(file->used, 1024, 4);
	for (i = 0; i < 1024; i++) {
		fake_touch(file, 1000 + i);
		if (file->answer.size && file->misses > 1) {
			bitmap_set(file->cached, fake_end(file) + 1, 4);
			bitmap_set(file->used, fake_end(file) + 1, 4);
		}
	}
	KUNIT_EXPECT_EQ(test, file->misses, 2);

	/* What was read for another run, which comes there later, is left to that. */
	file = fake_file(test, FAKE_PAGES, 256, 32);
	bitmap_set(file->cached, 1128, 8);
	miss = fake_miss(file, 1000);
	answer.async_size = 128;
	mmap_readahead_place_mark(&miss, &answer);
	KUNIT_EXPECT_EQ(test, answer.async_size, 128);
}

/* What a run left out is read as well, so that the read is one request. */
static void test_gap_is_read(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long end, start;

	fake_touch(file, 4096);
	fake_touch(file, 4112);
	end = fake_end(file);
	bitmap_zero(file->marked, FAKE_PAGES);
	fake_touch(file, end);
	fake_touch(file, end + 11);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_FORWARD);
	KUNIT_EXPECT_EQ(test, file->answer.start, end + 1);

	fake_touch(file, 65536);
	fake_touch(file, 65535);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_BACKWARD);
	start = file->answer.start;
	fake_touch(file, start);
	fake_touch(file, start - 3);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_BACKWARD);
	KUNIT_EXPECT_EQ(test, fake_end(file), start - 1);
}

/*
 * Access pages of a file that are a @stride apart, after it was read and evicted, in
 * memory that holds @room pages, or has none left of what was read, if that is 0.
 */
static void sweep_again(struct fake_file *file, unsigned long stride,
			unsigned long room)
{
	unsigned long pages = file->facts.file_pages, page;

	file->facts.cached_pages = room;
	fake_evict(file, 0, pages);
	for (page = 0; page < pages; page += stride) {
		if (room && room < pages && page >= room) {
			file->facts.cached_pages = 0;
			fake_evict(file, page - room, stride);
		}
		fake_touch(file, page);
	}
}

/* Pages that memory has room for are read one by one. */
static void test_sweep_again(struct kunit *test)
{
	static const unsigned long strides[] = { 2, 3, 7, 16, 31, 32 };
	const unsigned long pages = 16384, sweeps = 16;
	struct fake_file *file;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(strides); i++) {
		file = fake_file(test, pages, 64, 32);
		for (n = 0; n < sweeps && !file->state.allowed; n++)
			sweep_again(file, strides[i], pages);
		KUNIT_EXPECT_EQ(test, file->state.allowed, 1);
		KUNIT_EXPECT_LE(test, file->state.alone,
				pages / strides[i] * 5 / 4);
		kunit_kfree(test, file);

		/* Where memory has no room for them it is cheaper to go on. */
		file = fake_file(test, pages, 64, 32);
		for (n = 0; n < sweeps; n++)
			sweep_again(file, strides[i], 256);
		KUNIT_EXPECT_EQ(test, file->state.allowed, 0);
		KUNIT_EXPECT_LE(test, file->misses, sweeps * pages / 32);
		kunit_kfree(test, file);
	}
}

/* Where they are lost all the same that is done ever more rarely. */
static void test_sweep_in_vain(struct kunit *test)
{
	const unsigned long pages = 16384, alone = pages / 16 * 5 / 4;
	struct fake_file *file = fake_file(test, pages, 64, 32);
	unsigned int n;

	/* A sweep of windows costs two fifths of that: so after 1, 2.5, 5, 10, 20. */
	for (n = 0; n < 48; n++)
		sweep_again(file, 16, pages);
	KUNIT_EXPECT_EQ(test, file->state.allowed, 5);
	KUNIT_EXPECT_GE(test, file->misses, 4 * alone);
	KUNIT_EXPECT_LE(test, file->misses, 6 * alone);

	/* Nor does it begin anew each time that all of the file was evicted. */
	file = fake_file(test, pages, 64, 32);
	for (n = 0; n < 48; n++)
		sweep_again(file, 16, 0);
	KUNIT_EXPECT_EQ(test, file->state.allowed, 1);
	KUNIT_EXPECT_LE(test, file->misses, 2 * alone);
}

/* Some of such pages are still there: the next one is beyond what a run reaches. */
static void test_sweep_over_holes(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 64, 32);
	unsigned int n;

	sweep_again(file, 16, FAKE_PAGES);
	sweep_again(file, 16, FAKE_PAGES);
	KUNIT_EXPECT_EQ(test, file->state.allowed, 1);
	file->state.alone = 100;
	file->state.sparse = MMAP_READAHEAD_READS;
	fake_evict(file, 0, FAKE_PAGES);
	for (n = 1; n <= MMAP_READAHEAD_READS; n++) {
		fake_touch(file, n * 1024);
		KUNIT_EXPECT_EQ(test, file->answer.size, 1);
	}
	KUNIT_EXPECT_EQ(test, file->state.alone, 100 - MMAP_READAHEAD_READS);
	/* That does not go on for ever, nor where pages were never read. */
	fake_touch(file, n * 1024);
	KUNIT_EXPECT_GT(test, file->answer.size, 1);
	file->state.sparse = MMAP_READAHEAD_READS;
	bitmap_zero(file->evicted, FAKE_PAGES);
	fake_touch(file, n * 2048);
	KUNIT_EXPECT_GT(test, file->answer.size, 1);
}

/* A run that needs all pages is tried ever more rarely, and goes on in blocks. */
static void test_run_again(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);

	sweep_again(file, 1, FAKE_PAGES);
	file->misses = 0;
	sweep_again(file, 1, FAKE_PAGES);
	/* After 16, 128, 1024 and 5120 requests; each costs two. */
	KUNIT_EXPECT_GE(test, file->misses, 2 * 3);
	KUNIT_EXPECT_LE(test, file->misses, 2 * 4 + 4);
	KUNIT_EXPECT_EQ(test, file->state.allowed, 0);

	/* It is not tried any earlier either. */
	file->state.reread = 1;
	file->state.trial = 1000;
	mmap_readahead_put_off(&file->state, &file->facts, 2);
	KUNIT_EXPECT_EQ(test, file->state.trial, 1000);
	file->state.reread = 1000;
	mmap_readahead_put_off(&file->state, &file->facts, 2);
	KUNIT_EXPECT_EQ(test, file->state.trial, 3000);
}

/* A page was read alone, and the one beside it is needed: go on up to a block's end. */
static void test_after_trial(struct kunit *test)
{
	struct fake_file *file;
	unsigned int back;

	for (back = 0; back < 2; back++) {
		file = fake_file(test, FAKE_PAGES, 64, 32);
		fake_touch(file, 40000);
		file->state.reread = 32 * MMAP_READAHEAD_TRIAL;
		__set_bit(1002, file->evicted);
		fake_touch(file, 1002);
		KUNIT_EXPECT_EQ(test, file->answer.size, 1);
		fake_touch(file, back ? 1001 : 1003);
		KUNIT_EXPECT_EQ(test, file->answer.kind,
				back ? MMAP_READAHEAD_BACKWARD :
				       MMAP_READAHEAD_FORWARD);
		KUNIT_EXPECT_EQ(test, file->answer.start, back ? 1000 : 1003);
		KUNIT_EXPECT_EQ(test, fake_end(file), back ? 1001 : 1023);
		kunit_kfree(test, file);
	}
}

/* Objects longer than a window may be: their second one is read before its miss. */
static void test_early(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	unsigned long object, page, early = FAKE_PAGES / 2000 * 1000;
	struct mmap_readahead_miss mark;

	for (object = 1000; object < FAKE_PAGES - 1000; object += 1000) {
		if (object == early)
			file->misses = 0;
		for (page = object; page < object + 64; page++)
			fake_touch(file, page);
	}
	KUNIT_EXPECT_EQ(test, file->misses, (object - early) / 1000);
	KUNIT_EXPECT_TRUE(test, test_bit(object - 1000 + 63, file->cached));

	/* Those that need a little of it do not read a third one. */
	for (object = 1500; object < FAKE_PAGES - 1000; object += 1000)
		for (page = object; page < object + 40; page++)
			fake_touch(file, page);
	KUNIT_EXPECT_FALSE(test, test_bit(object - 1000 + 64, file->cached));

	/* Such as end with a window soon leave it at that. */
	for (object = 1700; object < FAKE_PAGES - 1000; object += 1000)
		for (page = object; page < object + 32; page++)
			fake_touch(file, page);
	KUNIT_EXPECT_FALSE(test, test_bit(object - 1000 + 32, file->cached));

	/* While memory is short windows grow for better reasons, this one does not. */
	mark = fake_miss(file, 0);
	file->state.ahead = (struct mmap_readahead_side) {
		.order = 5,
		.continued = 84,
	};
	KUNIT_EXPECT_FALSE(test, mmap_readahead_early(&file->state, &mark));
	file->state.ahead.continued++;
	KUNIT_EXPECT_TRUE(test, mmap_readahead_early(&file->state, &mark));
	file->state.evicted = 255;
	KUNIT_EXPECT_TRUE(test, mmap_readahead_early(&file->state, &mark));
	KUNIT_EXPECT_FALSE(test, mmap_readahead_too_small(&file->state,
							  &file->state.ahead,
							  &mark));
}

/*
 * Where the page behind a window is cached, nobody can show that it is needed. But to grow
 * a window has to be continued all the same.
 */
static void test_early_or_cached(struct kunit *test)
{
	static const struct {
		unsigned int max;
		bool cached;
		unsigned int continued, async;
	} cases[] = {
		{ 32, false, 0, 0 },
		{ 32, true, 255, 8 },
		{ 64, true, 0, 0 },
	};
	unsigned int i, async;
	struct fake_file *file;
	unsigned long object, page;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		file = fake_file(test, FAKE_PAGES, cases[i].max, 32);
		file->facts.cached_pages = 64;
		file->state.known = true;
		file->state.ahead = (struct mmap_readahead_side) {
			.order = 5,
			.continued = 255,
			.used = 255,
			.patience = MMAP_READAHEAD_PATIENCE,
		};
		for (object = 1000; object < 100000; object += 1000) {
			if (cases[i].cached)
				__set_bit(object + 32, file->cached);
			fake_touch(file, object);
			KUNIT_ASSERT_EQ(test, fake_end(file), object + 31);
			async = file->answer.async_size;
			/* Not as far as the mark. */
			for (page = object; page < object + 24; page++)
				fake_touch(file, page);
		}
		KUNIT_EXPECT_EQ(test, file->state.ahead.continued,
				cases[i].continued);
		KUNIT_EXPECT_EQ(test, async, cases[i].async);
		kunit_kfree(test, file);
	}
}

/* The largest windows take in what they would leave beside what is cached. */
static void test_rest(struct kunit *test)
{
	static const struct {
		unsigned int max, ahead, behind;
		unsigned long cached;
		unsigned int nr_cached;
		unsigned int start, size, mark;
	} cases[] = {
		/* Nothing is cached there, or it is too far away. */
		{ 32, 5, 0, 0, 0, 1000, 32, 1024 },
		{ 32, 5, 0, 900, 83, 1000, 32, 1024 },
		/* Page and mark stay in the window, which becomes no larger. */
		{ 32, 5, 0, 900, 84, 984, 32, 1008 },
		{ 32, 5, 0, 900, 97, 997, 32, 1021 },
		{ 32, 5, 0, 900, 100, 1000, 32, 1024 },
		{ 32, 5, 0, 1035, 20, 1000, 32, 1024 },
		{ 32, 5, 4, 900, 73, 973, 32, 1001 },
		{ 32, 5, 4, 900, 72, 985, 32, 1013 },
		/* There is room for more than the window. */
		{ 63, 5, 0, 900, 97, 997, 35, 1024 },
		{ 63, 5, 0, 1035, 20, 1000, 35, 1024 },
		{ 63, 5, 0, 1048, 20, 1000, 48, 1024 },
		{ 63, 5, 0, 1049, 20, 1000, 32, 1024 },
		{ 40, 5, 0, 1040, 20, 1000, 40, 1024 },
		{ 40, 5, 0, 1041, 20, 1000, 32, 1024 },
		{ 4095, 11, 0, 900, 68, 968, 2080, 2536 },
		{ 4095, 11, 0, 900, 67, 1000, 2048, 2536 },
		/* Windows that may grow do that instead. */
		{ 64, 5, 0, 900, 97, 1000, 32, 1032 },
	};
	struct fake_file *file;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		file = fake_file(test, FAKE_PAGES, cases[i].max, 1024);
		file->state.known = true;
		file->state.ahead = (struct mmap_readahead_side) {
			.order = cases[i].ahead,
			.continued = 255,
			.used = 255,
			.patience = MMAP_READAHEAD_PATIENCE,
		};
		file->state.behind.order = cases[i].behind;
		bitmap_fill(file->evicted, FAKE_PAGES);
		/* Far away, so that the file is not one that nothing is known of. */
		bitmap_set(file->cached, 50000, 64);
		bitmap_set(file->cached, cases[i].cached, cases[i].nr_cached);
		/* Not mapped, or it would look like a run. */
		fake_touch(file, 1000);
		KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_SINGLE);
		KUNIT_EXPECT_EQ(test, file->answer.start, cases[i].start);
		KUNIT_EXPECT_EQ(test, file->answer.size, cases[i].size);
		KUNIT_EXPECT_EQ(test,
				fake_end(file) + 1 - file->answer.async_size,
				cases[i].mark);
		kunit_kfree(test, file);
	}

	/* Pages that were never read are not missing. */
	file = fake_file(test, FAKE_PAGES, 63, 32);
	bitmap_set(file->cached, 1035, 20);
	KUNIT_EXPECT_EQ(test, mmap_readahead_rest(&(struct mmap_readahead_miss) {
		.file_pages = FAKE_PAGES, .look = fake_look, .cache = file,
	}, 1032, 1, 16), 0);
}

/*
 * Of runs that share a file, as many as reads are remembered cost nothing. More
 * are found again by what they used.
 */
static void test_interleaved(struct kunit *test)
{
	static const unsigned int runs[] = {
		2, 3, MMAP_READAHEAD_READS, MMAP_READAHEAD_READS + 1,
		2 * MMAP_READAHEAD_READS,
	};
	struct fake_file *file;
	unsigned int i, run;
	unsigned long page;

	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		file = fake_file(test, FAKE_PAGES, 1024, 32);
		for (page = 0; page < 4096; page++)
			for (run = 0; run < runs[i]; run++)
				fake_touch(file, 10 + run * 6144 + page);
		if (runs[i] <= MMAP_READAHEAD_READS)
			KUNIT_EXPECT_EQ(test, file->misses, 2 * runs[i]);
		else
			KUNIT_EXPECT_LE(test, file->misses, 6 * runs[i]);
		kunit_kfree(test, file);
	}
}

/*
 * A run whose reads are forgotten whenever the others read goes on from its marks:
 * nobody waits for it, and it does not run ahead.
 */
static void test_forgotten_runs(struct kunit *test)
{
	const unsigned long runs = 64, apart = FAKE_PAGES / runs, length = 1500;
	struct fake_file *file = fake_file(test, FAKE_PAGES, 64, 32);
	unsigned long page, run, most = 0;

	for (page = 0; page < length; page++) {
		for (run = 0; run < runs; run++)
			fake_touch(file, run * apart + page);
		if (page == 100)
			file->misses = 0;
		run = find_next_zero_bit(file->cached, FAKE_PAGES, page);
		if (page > 100 && run - page > most)
			most = run - page;
	}
	KUNIT_EXPECT_EQ(test, file->misses, 0);
	KUNIT_EXPECT_LE(test, most, 2 * 64);
	KUNIT_EXPECT_GT(test, most, 64);
	KUNIT_EXPECT_LE(test, bitmap_weight(file->cached, FAKE_PAGES),
			runs * (length + 2 * 64));
}

/* While memory is short such a run never has more than its first window left. */
static void test_forgotten_runs_while_memory_is_short(struct kunit *test)
{
	const unsigned long start = 1000, left = 16;
	struct fake_file *file = fake_file(test, FAKE_PAGES, 64, 32);
	struct mmap_readahead_miss mark;

	/* Nothing is known of this run but what is cached. */
	file->state.known = true;
	bitmap_set(file->used, start, 128);
	bitmap_set(file->cached, start, 128 + left);
	mark = fake_miss(file, start + 128);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).start,
			start + 128 + left);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 64);
	file->state.evicted = 255;
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, left);

	file->state.evicted = 0;
	fake_evict(file, start, 1);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, left);

	/* It has as much left as it would read. */
	bitmap_set(file->cached, start + 128, 128);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
	bitmap_clear(file->cached, start + 128 + left, 128);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, left);

	/* Pages are read alone. */
	file->state.sparse = 1;
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
	file->state.sparse = 0;

	/* What a fault maps around one page is no run. */
	bitmap_clear(file->used, start, 128 - FAKE_BLOCK / 2);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
}

/* Forward from one side and backward from the other, in turn. */
static void test_forward_and_backward(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long n;

	for (n = 0; n < 16384; n++) {
		fake_touch(file, n);
		fake_touch(file, FAKE_PAGES - 1 - n);
	}
	KUNIT_EXPECT_LE(test, file->misses, 32);
}

/* Whatever a miss is taken for, it reads only what it may. */
static void test_limits(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long page;

	/* Single misses near the ends of a small file; adapt() looks at the rest. */
	file->facts.file_pages = 1008;
	fake_touch(file, 1000);
	KUNIT_EXPECT_EQ(test, file->answer.start, 985);
	KUNIT_EXPECT_EQ(test, fake_end(file), 1007);
	fake_touch(file, 5);
	KUNIT_EXPECT_EQ(test, file->answer.start, 0);
	KUNIT_EXPECT_EQ(test, fake_end(file), 20);
	/* One page at a time, whatever was learnt. */
	file->facts.file_pages = FAKE_PAGES;
	file->facts.max_pages = 1;
	for (page = 2000; page < 3000; page++) {
		fake_touch(file, page);
		KUNIT_EXPECT_EQ(test, file->answer.start, page);
		KUNIT_EXPECT_EQ(test, file->answer.size, 1);
	}
}

/* Pages, at random in the first region, that are read until one fills it. */
static unsigned int fill_one_region(struct fake_file *file, u64 *random)
{
	unsigned int n;

	for (n = 0; n < 100000; n++) {
		fake_touch(file, next_random(random,
					     1 << MMAP_READAHEAD_REGION_SHIFT));
		if (file->answer.size &&
		    file->answer.kind == MMAP_READAHEAD_FILL)
			return n;
	}
	KUNIT_FAIL(file->test, "the region does not fill up\n");
	return n;
}

/* Random misses cost a part of the region, and then read aligned blocks of it. */
static void test_fill(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	const unsigned long pages = 1 << MMAP_READAHEAD_REGION_SHIFT;
	struct fake_file *file = fake_file(test, pages, param->max,
					   param->request);
	unsigned long start, cost, page, alone;
	u64 random = 1;

	fill_one_region(file, &random);
	cost = file->misses * param->request;
	KUNIT_EXPECT_GE(test, 8 * cost, 3 * pages);
	KUNIT_EXPECT_LE(test, 8 * cost, 8 * pages);
	alone = file->misses;
	start = file->answer.start;
	KUNIT_EXPECT_EQ(test, file->answer.size, rounddown_pow_of_two(param->max));
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(start, file->answer.size));
	KUNIT_EXPECT_EQ(test, file->answer.async_size, 0);
	/* It goes on until all is there. */
	for (page = 0; page < pages; page++)
		fake_touch(file, page * 6151 % pages);
	KUNIT_EXPECT_EQ(test, bitmap_weight(file->cached, FAKE_PAGES), pages);
	if (param->max > FAKE_BLOCK)
		KUNIT_EXPECT_LE(test, file->misses - alone,
				2 * pages / rounddown_pow_of_two(param->max));

	/* Less will do where misses gather in a small part of the file. */
	kunit_kfree(test, file);
	file = fake_file(test, FAKE_PAGES, param->max, param->request);
	fill_one_region(file, &random);
	KUNIT_EXPECT_LE(test, file->misses, alone);
}

/* Where pages do not stay in memory, a region is not read as a whole. */
static void test_evicted_do_not_fill(struct kunit *test)
{
	const unsigned long pages = 1 << MMAP_READAHEAD_REGION_SHIFT;
	struct fake_file *file = fake_file(test, pages, 1024, 32);
	unsigned long page = 0;
	u64 random = 1;
	unsigned int n;

	for (n = 0; n < 2000; n++) {
		/* Every other page was there before. */
		if (n && next_random(&random, 2))
			fake_evict(file, page, 1);
		else
			page = next_random(&random, pages);
		fake_touch(file, page);
		if (file->answer.size)
			KUNIT_EXPECT_NE(test, file->answer.kind,
					MMAP_READAHEAD_FILL);
	}
	/* Once they stay, it fills up. */
	fill_one_region(file, &random);
}

static void come_back(struct kunit *test, unsigned long part)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long first, before, page;
	unsigned int turn, n;
	u64 random = 1;

	bitmap_fill(file->evicted, FAKE_PAGES);
	/* Besides what these misses read. */
	file->facts.cached_pages = part + part / 4;
	for (turn = 0; turn < 4; turn++) {
		fake_evict(file, 0, FAKE_PAGES);
		first = turn % 2 * FAKE_PAGES / 2;
		before = file->misses;
		n = 0;
		do {
			KUNIT_ASSERT_LT(test, n++, FAKE_PAGES / 16);
			fake_touch(file, first + next_random(&random, part));
		} while (file->answer.kind != MMAP_READAHEAD_FILL);
		if (turn >= 2)
			KUNIT_EXPECT_EQ(test, n, 1);
		/* As long as memory is short blocks are worth two requests. */
		KUNIT_EXPECT_EQ(test, file->answer.size, 64);
		for (page = 0; page < part; page++)
			fake_touch(file, first + page * 6151 % part);
		KUNIT_EXPECT_GE(test, bitmap_weight(file->cached, FAKE_PAGES),
				part);
		KUNIT_EXPECT_LE(test, file->misses - before, part / 8);
		KUNIT_EXPECT_LE(test, file->state.singles[1].losses, 1);
	}
	kunit_kfree(test, file);
}

/*
 * Data that a program left, and that was evicted, comes back in blocks: each time
 * again, as memory can hold it, and at once from the second time on.
 */
static void test_fill_what_comes_back(struct kunit *test)
{
	/* Of 16 regions. */
	come_back(test, FAKE_PAGES / 8);
	come_back(test, FAKE_PAGES / 4);
}

/* A visit in which misses are in some regions, from the first one on. */
static void fake_visit(const struct mmap_readahead_miss *facts,
		       struct mmap_readahead_visits *visits,
		       unsigned int first, unsigned int regions)
{
	struct mmap_readahead_singles singles = { };
	struct mmap_readahead_miss miss = *facts;
	unsigned int n;

	for (n = 0; n < MMAP_READAHEAD_VISIT; n++) {
		miss.index = (unsigned long)(first + n % regions) << visits->shift;
		mmap_readahead_comes_back(&miss, visits, &singles);
	}
}

/* A region that was filled is filled at once when misses come back to it. */
static void test_fill_at_once(struct kunit *test)
{
	const unsigned long region = 1UL << 11;
	struct mmap_readahead_visits visits = { .shift = 11, .dense = 1 << 4 };
	struct mmap_readahead_singles singles = { .filled = true };
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	struct mmap_readahead_miss evicted, absent, elsewhere;

	file->facts.cached_pages = 8 * region;
	bitmap_set(file->evicted, 4 * region, region - 1);
	elsewhere = fake_miss(file, 9 * region);
	evicted = fake_miss(file, 4 * region);
	absent = fake_miss(file, 5 * region - 1);

	/* It has to be left for a whole visit. */
	fake_visit(&elsewhere, &visits, 4, 1);
	KUNIT_EXPECT_EQ(test, visits.left, 0);
	KUNIT_EXPECT_FALSE(test, mmap_readahead_comes_back(&evicted, &visits, &singles));
	fake_visit(&elsewhere, &visits, 9, 1);
	KUNIT_EXPECT_EQ(test, visits.left, 0);
	fake_visit(&elsewhere, &visits, 9, 1);
	KUNIT_EXPECT_EQ(test, visits.left, 1 << 4);

	/* What was never read does not come back. */
	KUNIT_EXPECT_FALSE(test, mmap_readahead_comes_back(&absent, &visits, &singles));
	KUNIT_EXPECT_EQ(test, visits.left, 1 << 4);
	KUNIT_EXPECT_TRUE(test, singles.filled);
	/* What is read now has to show anew whether it stays, but once. */
	KUNIT_EXPECT_TRUE(test, mmap_readahead_comes_back(&evicted, &visits, &singles));
	KUNIT_EXPECT_EQ(test, visits.left, 0);
	KUNIT_EXPECT_EQ(test, visits.back, 1 << 4);
	KUNIT_EXPECT_FALSE(test, singles.filled);
	singles.filled = true;
	KUNIT_EXPECT_TRUE(test, mmap_readahead_comes_back(&evicted, &visits, &singles));
	KUNIT_EXPECT_TRUE(test, singles.filled);
	/* Until it is left once more, and was worth it. */
	bitmap_set(file->cached, 4 * region, region);
	fake_visit(&elsewhere, &visits, 4, 1);
	KUNIT_EXPECT_EQ(test, visits.back, 1 << 4);
	fake_visit(&elsewhere, &visits, 9, 1);
	fake_visit(&elsewhere, &visits, 9, 1);
	KUNIT_EXPECT_EQ(test, visits.back, 0);
	KUNIT_EXPECT_EQ(test, visits.left, 1 << 4);
	/* Hardly any of it is gone: misses were nowhere else. */
	bitmap_clear(file->cached, 4 * region, region / 4);
	KUNIT_EXPECT_FALSE(test, mmap_readahead_comes_back(&evicted, &visits, &singles));
	KUNIT_EXPECT_EQ(test, visits.left | visits.back, 0);
	KUNIT_EXPECT_EQ(test, visits.dense, 1 << 4);
}

/* What a region that came back has in memory when it is left again. */
static void test_worth_coming_back(struct kunit *test)
{
	const unsigned long region = 1UL << 11;
	/* The last region has half as many pages. */
	struct fake_file *file = fake_file(test, 31 * region / 2, 32, 32);
	unsigned long first, eighth;
	unsigned int part;

	for (first = 4; first <= 15; first += 11) {
		eighth = (first == 15 ? region / 2 : region) / 8;
		for (part = 6; part <= 7; part++) {
			struct mmap_readahead_visits visits = {
				.shift = 11,
				.dense = 1 << first | 1 << 2,
				.back = 1 << first,
			};
			struct mmap_readahead_miss miss = fake_miss(file, 0);

			bitmap_zero(file->cached, FAKE_PAGES);
			bitmap_set(file->cached, first * region, part * eighth - 100);
			/* Which page is asked first does not matter. */
			KUNIT_EXPECT_EQ(test, mmap_readahead_sample(&miss, 11,
								    first * region + 5 * eighth,
								    false), part);
			fake_visit(&miss, &visits, 9, 1);
			KUNIT_EXPECT_EQ(test, visits.back, 0);
			KUNIT_EXPECT_EQ(test, visits.dense >> first & 1, part == 7);
			KUNIT_EXPECT_EQ(test, visits.left >> first & 1, part == 7);
			KUNIT_EXPECT_EQ(test, visits.left >> 2 & 1, 1);
		}
	}
}

/* One visit may see both where the program came from, and where it went to. */
static void test_crowded_visit(struct kunit *test)
{
	struct mmap_readahead_visits visits = { .shift = 11, .dense = 1 << 15 };
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	struct mmap_readahead_miss miss;
	unsigned int n;

	/* Seven of eight regions, and one that is not all used. */
	file->facts.cached_pages = 8UL << 11;
	miss = fake_miss(file, 0);
	for (n = 0; n < 8; n++) {
		fake_visit(&miss, &visits, 0, n % 2 ? 9 : 8);
		KUNIT_EXPECT_EQ(test, visits.crowded, n % 2);
		KUNIT_EXPECT_EQ(test, visits.dense, 1 << 15);
		KUNIT_EXPECT_EQ(test, visits.left, 1 << 15);
	}
	fake_visit(&miss, &visits, 0, 9);
	KUNIT_EXPECT_EQ(test, visits.dense, 0);
	KUNIT_EXPECT_EQ(test, visits.left, 0);
}

/* What comes back, but does not stay, is read in blocks no more. */
static void test_lost_after_coming_back(struct kunit *test)
{
	const unsigned long part = FAKE_PAGES / 4;
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	struct mmap_readahead_visits *visits = &file->state.visits;
	unsigned int n, fills = 0;
	u64 random = 1;

	bitmap_fill(file->evicted, FAKE_PAGES);
	file->facts.cached_pages = part + part / 4;
	/* Short of memory, after a visit to another part. */
	for (n = 0; n < 200; n++)
		fake_touch(file, 2 * part + next_random(&random, part));
	fake_evict(file, 0, FAKE_PAGES);
	visits->dense = 0xf;
	visits->left = 0xf;
	for (n = 0; n < 20000; n++) {
		fake_touch(file, next_random(&random, part));
		fake_evict(file, file->answer.start, file->answer.size);
		fills += file->answer.kind == MMAP_READAHEAD_FILL;
	}
	KUNIT_EXPECT_GE(test, fills, 1);
	KUNIT_EXPECT_LE(test, fills, 12);
	KUNIT_EXPECT_GE(test, file->state.singles[1].losses, 4);
}

/* What was read for it and lost counts twice, until misses leave that region. */
static void test_lost_fill_while_memory_is_short(struct kunit *test)
{
	const unsigned long region = 1UL << 13;
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	struct mmap_readahead_singles *singles = &file->state.singles[1];
	unsigned long before, last = 0;
	u64 random = 1;
	unsigned int n;

	bitmap_fill(file->evicted, FAKE_PAGES);
	/* A region fits if hardly any misses are elsewhere. */
	file->facts.cached_pages = region;
	for (n = 0; n < 4; n++) {
		before = file->misses;
		do {
			KUNIT_ASSERT_LT(test, file->misses, 20000);
			fake_touch(file, next_random(&random, region));
			fake_evict(file, file->answer.start, file->answer.size);
		} while (file->answer.kind != MMAP_READAHEAD_FILL);
		KUNIT_EXPECT_EQ(test, singles->shift, 13);
		KUNIT_EXPECT_EQ(test, singles->losses, n);
		if (n > 1)
			KUNIT_EXPECT_GE(test, 10 * (file->misses - before),
					18 * last);
		last = file->misses - before;
	}
	before = file->misses;
	do {
		KUNIT_ASSERT_LT(test, file->misses, 40000);
		fake_touch(file, 5 * region + next_random(&random, region));
		fake_evict(file, file->answer.start, file->answer.size);
	} while (file->answer.kind != MMAP_READAHEAD_FILL);
	KUNIT_EXPECT_EQ(test, singles->losses, 2);
	/* That has nothing to do with what is lost while there is memory. */
	KUNIT_EXPECT_EQ(test, file->state.singles[0].losses, 0);
}

/* Has a region that was filled, and lost, been left, or did it stay for long? */
static void test_left_or_lost(struct kunit *test)
{
	static const struct {
		unsigned char evicted;
		unsigned short there, here;
		unsigned int left;
		unsigned long since;
		bool again;
		unsigned int losses;
	} cases[] = {
		{ 255, 10, 21, 0, 32, true, 2 },
		{ 255, 10, 20, 0, 32, false, 4 },
		{ 255, 20, 20, 0, 32, false, 4 },
		{ 255, 21, 10, 0, 32, false, 4 },
		{ 255, 21, 10, 1 << 1, 32, true, 2 },
		{ 255, 21, 10, 1 << 6, 32, false, 4 },
		{ 255, 21, 10, 0, 1535, false, 4 },
		{ 255, 21, 10, 0, 1536, true, 2 },
		{ MMAP_READAHEAD_SHORT, 10, 21, 1 << 1, 2048, false, 4 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mmap_readahead_singles singles = {
			.regions = { [1] = cases[i].there, [6] = cases[i].here },
			.nr = cases[i].there + cases[i].here,
			.shift = 11,
			.losses = 3,
			.filled = true,
			.fill = 1UL << 11,
			.since = cases[i].since,
		};
		struct mmap_readahead_state state = {
			.evicted = cases[i].evicted,
			.visits = {
				.shift = 11,
				.dense = 1 << 1 | 1 << 6,
				.left = cases[i].left,
				.back = 1 << 1 & ~cases[i].left,
			},
		};
		struct mmap_readahead_miss miss = { .index = 6UL << 11 };

		KUNIT_EXPECT_EQ(test, cases[i].again,
				mmap_readahead_fill_again(&state, &miss, &singles));
		KUNIT_EXPECT_EQ(test, singles.losses, cases[i].losses);
		KUNIT_EXPECT_FALSE(test, singles.filled);
		KUNIT_EXPECT_EQ(test, !singles.nr, !cases[i].again);
		/* Of the visits, only that region is forgotten. */
		KUNIT_EXPECT_EQ(test, state.visits.dense >> 1 & 1, cases[i].again);
		KUNIT_EXPECT_EQ(test, (state.visits.left | state.visits.back) >> 1 & 1,
				cases[i].again);
		KUNIT_EXPECT_EQ(test, state.visits.dense >> 6 & 1, 1);
		KUNIT_EXPECT_EQ(test, state.visits.left >> 6, cases[i].left >> 6);
	}
}

/* Blocks are worth it that stay until nearly all of their region was read. */
static void test_fill_stays_long(struct kunit *test)
{
	const unsigned long region = 1UL << 13, stay = region / 32 * 7 / 8;
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	unsigned long *blocks = kunit_kzalloc(test, stay * sizeof(*blocks),
					      GFP_KERNEL);
	unsigned long nr = 0;
	unsigned int n;
	u64 random = 1;

	KUNIT_ASSERT_NOT_NULL(test, blocks);
	bitmap_fill(file->evicted, FAKE_PAGES);
	file->facts.cached_pages = region;
	for (n = 0; n < 20000; n++) {
		fake_touch(file, next_random(&random, region));
		if (file->answer.kind != MMAP_READAHEAD_FILL)
			continue;
		if (nr >= stay)
			fake_evict(file, blocks[nr % stay], 32);
		blocks[nr++ % stay] = file->answer.start;
	}
	KUNIT_EXPECT_GE(test, nr, 5 * stay);
	KUNIT_EXPECT_EQ(test, file->state.singles[1].losses, 0);
}

/* What fills a region page by page reads nothing that could be lost. */
static void test_fill_with_pages(struct kunit *test)
{
	const unsigned long region = 1UL << 11;
	unsigned int max;

	for (max = 1; max <= 2; max++) {
		struct mmap_readahead_state state = { .visits.shift = 11 };
		struct mmap_readahead_singles singles = { .shift = 11 };
		struct mmap_readahead_answer answer = { };
		struct fake_file *file = fake_file(test, FAKE_PAGES, max, 32);
		struct mmap_readahead_miss miss = fake_miss(file, 3 * region);

		KUNIT_EXPECT_TRUE(test, mmap_readahead_answer_fill(&state, &miss,
								   &singles, &answer));
		KUNIT_EXPECT_EQ(test, answer.size, max);
		KUNIT_EXPECT_EQ(test, singles.filled, max > 1);
		KUNIT_EXPECT_EQ(test, state.visits.dense, max > 1 ? 1 << 3 : 0);
		kunit_kfree(test, file);
	}
}

/* While memory is short, what was counted long ago counts ever less. */
static void test_old_counts(struct kunit *test)
{
	struct mmap_readahead_state state = { .evicted = 255 };
	struct mmap_readahead_singles *singles = &state.singles[1];
	struct mmap_readahead_miss miss = {
		.file_pages = 16UL << 13,
		.cached_pages = 16UL << 13,
		.request_pages = 32,
	};

	/* A region of 2^13 pages costs 256 requests; three eighths of 16 are 1536. */
	singles->shift = 13;
	state.visits.shift = 13;
	singles->nr = 1535;
	KUNIT_EXPECT_FALSE(test, mmap_readahead_old(&state, &miss, singles, 0, 16));
	singles->nr = 1536;
	KUNIT_EXPECT_TRUE(test, mmap_readahead_old(&state, &miss, singles, 0, 16));
	KUNIT_EXPECT_FALSE(test, mmap_readahead_old(&state, &miss, singles, 0, 128));
	state.evicted = 0;
	KUNIT_EXPECT_FALSE(test, mmap_readahead_old(&state, &miss, singles, 0, 16));
	state.evicted = 255;

	/* All of that region's price has to be paid, and misses to be there. */
	singles->regions[0] = 254;
	singles->nr = 508;
	miss.index = 1000;
	KUNIT_EXPECT_FALSE(test, mmap_readahead_fills(&state, &miss, singles));
	miss.index = 5000;
	KUNIT_EXPECT_TRUE(test, mmap_readahead_fills(&state, &miss, singles));
	miss.index = 2000;
	miss.cached_pages = 8192;
	KUNIT_EXPECT_FALSE(test, mmap_readahead_fills(&state, &miss, singles));

	/* Regions of another size begin anew. */
	state.visits = (struct mmap_readahead_visits) {
		.shift = 13, .dense = 7, .left = 3, .back = 4,
	};
	KUNIT_EXPECT_PTR_EQ(test, mmap_readahead_singles(&state, &miss), singles);
	KUNIT_EXPECT_EQ(test, state.visits.left, 3);
	miss.file_pages = 32UL << 13;
	KUNIT_EXPECT_PTR_EQ(test, mmap_readahead_singles(&state, &miss), singles);
	KUNIT_EXPECT_EQ(test, singles->nr, 0);
	KUNIT_EXPECT_EQ(test, singles->shift, 14);
	KUNIT_EXPECT_EQ(test, state.visits.shift, 14);
	KUNIT_EXPECT_EQ(test, state.visits.dense, 0);
	KUNIT_EXPECT_EQ(test, state.visits.left | state.visits.back, 0);
}

/* Nothing is filled where more comes back, evenly, than memory holds. */
static void test_too_much_does_not_fill(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	u64 random = 1;
	unsigned int n;

	bitmap_fill(file->evicted, FAKE_PAGES);
	file->facts.cached_pages = FAKE_PAGES / 3 * 2;
	for (n = 0; n < 20000; n++) {
		fake_touch(file, next_random(&random, FAKE_PAGES));
		fake_evict(file, file->answer.start, file->answer.size);
		KUNIT_EXPECT_NE(test, file->answer.kind, MMAP_READAHEAD_FILL);
	}
}

/* Each time that what was read to fill a region is lost, it costs twice as much. */
static void test_lost_fill(struct kunit *test)
{
	const unsigned long pages = 1 << MMAP_READAHEAD_REGION_SHIFT;
	struct fake_file *file = fake_file(test, pages, 64, 8);
	unsigned long before, last = 0;
	u64 random = 1;
	unsigned int n;

	for (n = 0; n < 3; n++) {
		before = file->misses;
		fill_one_region(file, &random);
		KUNIT_EXPECT_EQ(test, file->state.singles[0].losses, n);
		if (n)
			KUNIT_EXPECT_GE(test, 10 * (file->misses - before),
					18 * last);
		last = file->misses - before;
		fake_evict(file, file->answer.start, file->answer.size);
	}
}

/* Steps of equal length pass through a region, and leave it. */
static void test_equal_steps_do_not_fill(struct kunit *test)
{
	static const unsigned long steps[] = {
		33, 64, 96, 97, 100, 128, 257, 300, 330, 509, 1024, 2053,
	};
	struct fake_file *file;
	unsigned int i, back;
	unsigned long page;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		for (back = 0; back < 2; back++) {
			file = fake_file(test, FAKE_PAGES, 1024, 32);
			for (page = 0; page < FAKE_PAGES; page += steps[i]) {
				fake_touch(file, back ? FAKE_PAGES - 1 - page :
							page);
				KUNIT_EXPECT_EQ(test, file->answer.kind,
						MMAP_READAHEAD_SINGLE);
			}
			KUNIT_EXPECT_LE(test, file->answer.size, 2);
			kunit_kfree(test, file);
		}
}

/* A count that cannot go on is halved, with all others. */
static void test_full_count(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1, 1);
	struct mmap_readahead_state *state = &file->state;

	fake_touch(file, 100000);
	state->singles[0].regions[0] = U16_MAX;
	state->singles[0].regions[3] = 1001;
	state->singles[0].nr = U16_MAX + 1001;
	/* A fill would need more. */
	state->singles[0].losses = MMAP_READAHEAD_MAX_LOSSES;
	file->facts.cached_pages = FAKE_PAGES;
	fake_touch(file, 1000);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_SINGLE);
	KUNIT_EXPECT_EQ(test, state->singles[0].regions[0], U16_MAX / 2 + 1);
	KUNIT_EXPECT_EQ(test, state->singles[0].regions[3], 500);
}

/*
 * A third of the misses have a neighbour that is needed next. While memory is short
 * that pays for less, as all that is read has to be evicted for.
 */
static void test_scarce(struct kunit *test)
{
	struct fake_file *plenty = fake_file(test, FAKE_PAGES, 1024, 32);
	struct fake_file *scarce = fake_file(test, FAKE_PAGES, 1024, 32);
	unsigned long page;

	bitmap_fill(scarce->evicted, FAKE_PAGES);
	for (page = 255; page < FAKE_PAGES - 256; page += 256) {
		fake_touch(plenty, page);
		fake_touch(scarce, page);
		if (page % 3)
			continue;
		fake_touch(plenty, fake_end(plenty) + 1);
		fake_touch(scarce, fake_end(scarce) + 1);
	}
	KUNIT_EXPECT_GE(test, plenty->state.ahead.order, 3);
	KUNIT_EXPECT_LE(test, scarce->state.ahead.order, 2);
}

/* A file of which single misses read a lot, in memory that holds next to nothing. */
static struct fake_file *crowded_file(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 32, 32);
	struct mmap_readahead_side side = {
		.order = 5,
		.used = MMAP_READAHEAD_UNDECIDED,
		.patience = MMAP_READAHEAD_PATIENCE,
	};

	file->state.known = true;
	file->state.ahead = side;
	file->state.behind = side;
	file->facts.cached_pages = 64;
	return file;
}

/* Windows on both sides that exceed the limit together are judged all the same. */
static void test_both_sides(struct kunit *test)
{
	struct fake_file *file = crowded_file(test);
	unsigned long page;

	fake_touch(file, 100);
	KUNIT_EXPECT_EQ(test, file->answer.start, 84);
	KUNIT_EXPECT_EQ(test, file->answer.size, 32);
	for (page = 1000; page < FAKE_PAGES - 1000; page += 1000)
		fake_touch(file, page);
	KUNIT_EXPECT_EQ(test, file->answer.size, 1);
}

/* A few pages that are used in turn stay in memory, if only they are read alone. */
static void test_thrashing(struct kunit *test)
{
	static const unsigned long pages[] = { 818, 801, 1102, 853 };
	struct fake_file *file = crowded_file(test);
	unsigned int round, i;

	for (round = 0; round < 8; round++) {
		for (i = 0; i < ARRAY_SIZE(pages); i++) {
			fake_touch(file, pages[i]);
			fake_evict(file, 0, FAKE_PAGES);
		}
		KUNIT_EXPECT_LE(test, file->answer.size, 32 >> (round / 2));
	}
	KUNIT_EXPECT_EQ(test, file->answer.size, 1);
}

/* Threads that miss the same page at once, or neighbours of it, are no such thing. */
static void test_missed_at_once(struct kunit *test)
{
	struct fake_file *file = crowded_file(test);
	struct mmap_readahead_miss miss;
	unsigned int thread, apart;

	bitmap_fill(file->evicted, FAKE_PAGES);
	for (apart = 0; apart < 2; apart++)
		for (thread = 0; thread < 4; thread++) {
			miss = fake_miss(file, 1000 + 10000 * apart +
					       apart * thread);
			adapt(test, &file->state, &miss);
		}
	KUNIT_EXPECT_EQ(test, file->state.ahead.order, 5);
	KUNIT_EXPECT_EQ(test, file->state.behind.order, 5);
}

/* A run goes on, though what was read around its next page before is gone. */
static void test_run_through_lost_window(struct kunit *test)
{
	struct fake_file *file = crowded_file(test);

	fake_touch(file, 1070);
	KUNIT_EXPECT_EQ(test, file->answer.start, 1054);
	fake_evict(file, 0, FAKE_PAGES);
	file->state.reads[file->state.next++] = (struct mmap_readahead_read) {
		.index = 1040,
		.start = 1000,
		.end = 1053,
		.size = 16,
		.kind = MMAP_READAHEAD_FORWARD,
	};
	bitmap_set(file->cached, 1000, 54);
	bitmap_set(file->used, 1000, 54);
	fake_touch(file, 1054);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_FORWARD);
	/* A whole window, but up to a block's end. */
	KUNIT_EXPECT_EQ(test, fake_end(file), 1071);
}

static enum mmap_readahead_page look_absent(const void *cache,
					    unsigned long index)
{
	return MMAP_READAHEAD_ABSENT;
}

/* A run that comes too late for what it has read is to read less. */
static void test_lost_run(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	struct mmap_readahead_miss miss;
	unsigned long page = 0, end;
	unsigned int n;

	for (n = 0; n < 4; n++) {
		for (end = page + 8192; page < end; page++)
			fake_touch(file, page);
		while (test_bit(end, file->cached))
			end++;
		KUNIT_EXPECT_GT(test, end, page);
		fake_evict(file, page, end - page);
		fake_touch(file, page);
		KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_FORWARD);
		KUNIT_EXPECT_EQ(test, file->answer.start, page);
		KUNIT_EXPECT_LE(test, file->answer.size, 512 >> n);
	}
	KUNIT_EXPECT_GE(test, file->state.narrow, n);
	/* That ends when enough misses had no such reason. */
	miss = fake_miss(file, 0);
	miss.look = look_absent;
	for (n = 0; n < 8 * 256; n++) {
		miss.index = n * 97 % 4096;
		adapt(test, &file->state, &miss);
	}
	KUNIT_EXPECT_EQ(test, file->state.narrow, 0);
}

/* An evicted page before all that a run has read is not one that it lost. */
static void test_evicted_before_a_run(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);

	/* Page 18 by itself, and then a run over a gap, most of which is behind. */
	fake_touch(file, 4096);
	file->facts.file_pages = 19;
	fake_touch(file, 18);
	file->facts.file_pages = FAKE_PAGES;
	fake_touch(file, 35);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_FORWARD);
	KUNIT_EXPECT_EQ(test, file->answer.start, 19);
	fake_evict(file, 0, 64);
	__set_bit(2, file->evicted);
	/* There are not as many pages before this one as it leaves out. */
	fake_touch(file, 2);
	KUNIT_EXPECT_EQ(test, file->answer.kind, MMAP_READAHEAD_SINGLE);
	KUNIT_EXPECT_EQ(test, file->answer.start, 2);
}

/* What is beyond a mark is read once, and in ever larger reads up to the end. */
static void test_marks(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	struct mmap_readahead_answer answer;
	struct mmap_readahead_miss mark;
	unsigned long last = 20000;
	unsigned int n;

	file->facts.file_pages = last + 1;
	fake_touch(file, 1000);
	/* The mark of nobody, or of others, as those who read without mapping. */
	mark = fake_miss(file, 1000);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
	mark = fake_miss(file, 90);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);

	fake_touch(file, 1016);
	for (n = 0; n < 100; n++) {
		answer = file->answer;
		mark = fake_miss(file, answer.start + answer.size -
				       answer.async_size);
		bitmap_set(file->used, 1000, mark.index - 1000);
		file->answer = go_on(test, &file->state, &mark);
		if (!file->answer.size)
			break;
		KUNIT_EXPECT_EQ(test, file->answer.start,
				answer.start + answer.size);
		if (fake_end(file) < last)
			KUNIT_EXPECT_GT(test, file->answer.size,
					answer.size - (answer.size == 1024));
		/* Who comes a second time has nothing to read. */
		KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
		fake_read(file);
	}
	KUNIT_EXPECT_LT(test, n, 100);
	KUNIT_EXPECT_EQ(test, answer.start + answer.size - 1, last);
}

/* A mark that random accesses come across is not one to go on from. */
static void test_mark_without_run(struct kunit *test)
{
	struct fake_file *file = fake_file(test, FAKE_PAGES, 1024, 32);
	struct mmap_readahead_miss mark;

	fake_touch(file, 4096);
	fake_touch(file, 4112);
	mark = fake_miss(file, 4120);
	bitmap_zero(file->used, FAKE_PAGES);
	KUNIT_EXPECT_EQ(test, go_on(test, &file->state, &mark).size, 0);
}

static enum mmap_readahead_page look_evicted(const void *cache,
					     unsigned long index)
{
	return MMAP_READAHEAD_EVICTED;
}

static enum mmap_readahead_page look_cached(const void *cache,
					    unsigned long index)
{
	return MMAP_READAHEAD_CACHED;
}

static enum mmap_readahead_page look_used(const void *cache,
					  unsigned long index)
{
	return MMAP_READAHEAD_USED;
}

/* Misses and marks from a page on, in all directions, as far as the file goes. */
static void adapt_around(struct kunit *test, struct mmap_readahead_state *state,
			 struct mmap_readahead_miss miss)
{
	static const long steps[] = {
		0, 1, 16, 17, -1, -16, -33, 5, 900, 1, 1, -20000, 7, -3, 1,
	};
	enum mmap_readahead_page (*look)(const void *cache,
					 unsigned long index) = miss.look;
	unsigned long start = miss.index;
	unsigned int n;

	for (n = 0; n < 8 * ARRAY_SIZE(steps); n++) {
		miss.index += steps[n % ARRAY_SIZE(steps)];
		if (miss.index >= miss.file_pages)
			miss.index = start;
		miss.look = n % 3 == 2 ? look_evicted : look;
		adapt(test, state, &miss);
		go_on(test, state, &miss);
	}
}

/* Files as small and as large as they can be, and facts that do not fit. */
static void test_extremes(struct kunit *test)
{
	static const unsigned int max_pages[] = { 1, 2, 3, 32, 1024, UINT_MAX / 2 };
	static const unsigned int requests[] = { 1, 32, 16384 };
	static const unsigned long starts[] = {
		0, 1, 63, 5000, UINT_MAX - 8UL, HIGHEST_PAGE - 100, HIGHEST_PAGE,
	};
	static enum mmap_readahead_page (*const looks[])(const void *cache,
							 unsigned long index) = {
		look_absent, look_evicted, look_cached, look_used,
	};
	const unsigned int nr = ARRAY_SIZE(max_pages) * ARRAY_SIZE(requests) *
				ARRAY_SIZE(starts) * ARRAY_SIZE(looks);
	struct mmap_readahead_miss miss;
	struct mmap_readahead_state *state;
	unsigned int i, rest;

	for (i = 0; i < nr; i++) {
		state = kunit_kzalloc(test, sizeof(*state), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, state);
		miss = (struct mmap_readahead_miss) {
			.file_pages = HIGHEST_PAGE + 1,
			.cached_pages = 1,
		};
		rest = i;
		miss.max_pages = max_pages[rest % ARRAY_SIZE(max_pages)];
		rest /= ARRAY_SIZE(max_pages);
		miss.request_pages = requests[rest % ARRAY_SIZE(requests)];
		rest /= ARRAY_SIZE(requests);
		miss.index = starts[rest % ARRAY_SIZE(starts)];
		rest /= ARRAY_SIZE(starts);
		miss.look = looks[rest];
		adapt_around(test, state, miss);
		/* Then the file is cut off after its first page. */
		miss.index = 0;
		miss.file_pages = 1;
		adapt_around(test, state, miss);
		kunit_kfree(test, state);
	}
}

/* Anything may follow anything: adapt() and go_on() see that it fits. */
static void test_any_sequence(struct kunit *test)
{
	const struct machine_case *param = test->param_value;
	struct fake_file *file = fake_file(test, FAKE_PAGES, param->max,
					   param->request);
	unsigned long page = 0, length;
	u64 random = 88172645463325252ULL;
	unsigned int n, i;

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
			fake_evict(file, page, 4096);
			break;
		case 9:
			fake_evict(file, 0, FAKE_PAGES >> length % 8);
			break;
		case 10:
			file->facts.max_pages = 1 + next_random(&random,
						1 << length % 12);
			break;
		case 11:
			file->facts.request_pages = 1 + next_random(&random,
						1 << length % 15);
			break;
		}
		fake_touch(file, page);
	}
}

static struct kunit_case mmap_readahead_cases[] = {
	KUNIT_CASE_PARAM(test_credit, credit_gen_params),
	KUNIT_CASE(test_credit_only_falls),
	KUNIT_CASE_PARAM(test_huge_order, huge_gen_params),
	KUNIT_CASE_PARAM(test_text_order, text_gen_params),
	KUNIT_CASE(test_block),
	KUNIT_CASE(test_block_at_the_end_of_the_range),
	KUNIT_CASE(test_file_folio_use),
	KUNIT_CASE(test_file_folio_fit),
	KUNIT_CASE(test_first_miss),
	KUNIT_CASE(test_first_miss_again),
	KUNIT_CASE(test_sparse),
	KUNIT_CASE_PARAM(test_forward, machine_gen_params),
	KUNIT_CASE_PARAM(test_backward, machine_gen_params),
	KUNIT_CASE(test_gaps),
	KUNIT_CASE(test_mark_is_read),
	KUNIT_CASE(test_gap_is_read),
	KUNIT_CASE(test_sweep_again),
	KUNIT_CASE(test_sweep_in_vain),
	KUNIT_CASE(test_sweep_over_holes),
	KUNIT_CASE(test_run_again),
	KUNIT_CASE(test_after_trial),
	KUNIT_CASE(test_early),
	KUNIT_CASE(test_early_or_cached),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_interleaved),
	KUNIT_CASE(test_forgotten_runs),
	KUNIT_CASE(test_forgotten_runs_while_memory_is_short),
	KUNIT_CASE(test_forward_and_backward),
	KUNIT_CASE(test_limits),
	KUNIT_CASE_PARAM(test_fill, machine_gen_params),
	KUNIT_CASE(test_evicted_do_not_fill),
	KUNIT_CASE(test_fill_what_comes_back),
	KUNIT_CASE(test_fill_at_once),
	KUNIT_CASE(test_worth_coming_back),
	KUNIT_CASE(test_crowded_visit),
	KUNIT_CASE(test_lost_after_coming_back),
	KUNIT_CASE(test_lost_fill_while_memory_is_short),
	KUNIT_CASE(test_left_or_lost),
	KUNIT_CASE(test_fill_stays_long),
	KUNIT_CASE(test_fill_with_pages),
	KUNIT_CASE(test_old_counts),
	KUNIT_CASE(test_too_much_does_not_fill),
	KUNIT_CASE(test_lost_fill),
	KUNIT_CASE(test_equal_steps_do_not_fill),
	KUNIT_CASE(test_full_count),
	KUNIT_CASE(test_scarce),
	KUNIT_CASE(test_both_sides),
	KUNIT_CASE(test_thrashing),
	KUNIT_CASE(test_missed_at_once),
	KUNIT_CASE(test_run_through_lost_window),
	KUNIT_CASE(test_lost_run),
	KUNIT_CASE(test_evicted_before_a_run),
	KUNIT_CASE(test_marks),
	KUNIT_CASE(test_mark_without_run),
	KUNIT_CASE(test_extremes),
	KUNIT_CASE_PARAM(test_any_sequence, machine_gen_params),
	{ }
};

static struct kunit_suite mmap_readahead_suite = {
	.name = "mmap_readahead",
	.test_cases = mmap_readahead_cases,
};

kunit_test_suite(mmap_readahead_suite);

MODULE_DESCRIPTION("KUnit tests of readahead for mapped files");
MODULE_LICENSE("GPL");
