// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the policy of readahead for mapped files. */

#include <kunit/test.h>
#include <asm/page.h>
#include <linux/bits.h>
#include <linux/file_folio_policy.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
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
	{ "no rule: every mapped page counts", 0, { .nr_pages = 16, .at_address = true }, 16 },
	{ "no rule: neighbours count without the address", 0, { .nr_pages = 15 }, 15 },
	{ "no rule: a retry counts", 0,
	  { .nr_pages = 16, .at_address = true, .retried = true }, 16 },
	{ "no rule: a locked folio counts", 0,
	  { .nr_pages = 1, .at_address = true, .locked = true }, 1 },
	{ "no rule: nothing mapped, nothing counted", 0, { }, 0 },
	{ "address: one for the address, none for neighbours", ADDRESS,
	  { .nr_pages = 16, .at_address = true }, 1 },
	{ "address: neighbours alone give nothing", ADDRESS, { .nr_pages = 15 }, 0 },
	{ "address: a retry still counts once", ADDRESS,
	  { .nr_pages = 16, .at_address = true, .retried = true }, 1 },
	{ "address: never more than without rules", ADDRESS,
	  { .nr_pages = 0, .at_address = true }, 0 },
	{ "first try: a retry gives nothing", FIRST_TRY,
	  { .nr_pages = 16, .at_address = true, .retried = true }, 0 },
	{ "first try: the first try counts every page", FIRST_TRY,
	  { .nr_pages = 16, .at_address = true }, 16 },
	{ "unlocked: a locked folio gives nothing", UNLOCKED,
	  { .nr_pages = 1, .at_address = true, .locked = true }, 0 },
	{ "unlocked: any other counts", UNLOCKED, { .nr_pages = 1, .at_address = true }, 1 },
	{ "counted miss: where misses do not count, hits give nothing", COUNTED_MISS,
	  { .nr_pages = 16, .at_address = true, .uncounted = true }, 0 },
	{ "counted miss: elsewhere every page counts", COUNTED_MISS,
	  { .nr_pages = 16, .at_address = true }, 16 },
	{ "no rule: hits count also where misses do not", 0,
	  { .nr_pages = 16, .at_address = true, .uncounted = true }, 16 },
	{ "all: the clean hit counts once", ALL, { .nr_pages = 16, .at_address = true }, 1 },
	{ "all: a retry gives nothing", ALL,
	  { .nr_pages = 16, .at_address = true, .retried = true }, 0 },
	{ "all: a locked folio gives nothing", ALL,
	  { .nr_pages = 1, .at_address = true, .locked = true }, 0 },
	{ "no rule: the whole range of the counter fits", 0,
	  { .nr_pages = UINT_MAX, .at_address = true }, UINT_MAX },
};

KUNIT_ARRAY_PARAM_DESC(credit, credit_cases, name);

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

KUNIT_ARRAY_PARAM_DESC(huge, huge_cases, name);

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

KUNIT_ARRAY_PARAM_DESC(text, text_cases, name);

static void test_text_order(struct kunit *test)
{
	const struct text_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->order,
			mmap_readahead_text_order(param->preferred, param->min,
						  param->max));
}

static void expect_text(struct kunit *test, unsigned long index,
			unsigned int order, unsigned int window,
			unsigned long first, unsigned long last)
{
	unsigned long pages = max(round_down(window, BIT(order)), BIT(order));
	unsigned long start = rounddown(index, pages);
	unsigned long end = start + pages - 1;
	struct mmap_readahead_window text =
		mmap_readahead_text(index, order, window, first, last);

	KUNIT_ASSERT_EQ(test, text.start, max(start, first));
	KUNIT_ASSERT_EQ(test, text.start + text.size - 1, min(end, last));
}

/* Whatever the limits are, what is read holds its page and keeps within them. */
static void test_text(struct kunit *test)
{
	static const unsigned long firsts[] = { 0, 1, 15, 16, 17, 500 };
	static const unsigned long sizes[] = { 1, 2, 15, 16, 17, 600 };
	static const unsigned int windows[] = { 0, 1, 8, 32, 100 };
	unsigned int order, i, j, k;
	unsigned long index, last;

	for (order = 0; order <= 11; order++)
		for (i = 0; i < ARRAY_SIZE(firsts); i++)
			for (j = 0; j < ARRAY_SIZE(sizes); j++)
				for (k = 0; k < ARRAY_SIZE(windows); k++) {
					last = firsts[i] + sizes[j] - 1;
					for (index = firsts[i]; index <= last; index++)
						expect_text(test, index, order, windows[k],
							    firsts[i], last);
				}
}

static void test_text_at_the_end_of_the_range(struct kunit *test)
{
	struct mmap_readahead_window text =
		mmap_readahead_text(ULONG_MAX - 1, 9, 1024, 0, ULONG_MAX);

	KUNIT_EXPECT_EQ(test, text.start, ULONG_MAX - 1023);
	KUNIT_EXPECT_EQ(test, text.size, 1024);
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

static struct kunit_case mmap_readahead_cases[] = {
	KUNIT_CASE_PARAM(test_credit, credit_gen_params),
	KUNIT_CASE(test_credit_only_falls),
	KUNIT_CASE_PARAM(test_huge_order, huge_gen_params),
	KUNIT_CASE_PARAM(test_text_order, text_gen_params),
	KUNIT_CASE(test_text),
	KUNIT_CASE(test_text_at_the_end_of_the_range),
	KUNIT_CASE(test_file_folio_use),
	KUNIT_CASE(test_file_folio_fit),
	{ }
};

static struct kunit_suite mmap_readahead_suite = {
	.name = "mmap_readahead",
	.test_cases = mmap_readahead_cases,
};

kunit_test_suite(mmap_readahead_suite);

MODULE_DESCRIPTION("KUnit tests of readahead for mapped files");
MODULE_LICENSE("GPL");
