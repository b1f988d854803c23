// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of what misses in program text read. */

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mmap_readahead_text.h>
#include <linux/module.h>

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

static struct kunit_case mmap_readahead_text_cases[] = {
	KUNIT_CASE_PARAM(test_text_order, text_gen_params),
	KUNIT_CASE(test_text),
	KUNIT_CASE(test_text_at_the_end_of_the_range),
	{ }
};

static struct kunit_suite mmap_readahead_text_suite = {
	.name = "mmap_readahead_text",
	.test_cases = mmap_readahead_text_cases,
};

kunit_test_suite(mmap_readahead_text_suite);

MODULE_DESCRIPTION("KUnit tests of what misses in program text read");
MODULE_LICENSE("GPL");
