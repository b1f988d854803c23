// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the hint for huge pages in mapped files. */

#include <kunit/test.h>
#include <linux/mmap_readahead_huge.h>
#include <linux/module.h>

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

static struct kunit_case mmap_readahead_huge_cases[] = {
	KUNIT_CASE_PARAM(test_huge_order, huge_gen_params),
	{ }
};

static struct kunit_suite mmap_readahead_huge_suite = {
	.name = "mmap_readahead_huge",
	.test_cases = mmap_readahead_huge_cases,
};

kunit_test_suite(mmap_readahead_huge_suite);

MODULE_DESCRIPTION("KUnit tests of the hint for huge pages in mapped files");
MODULE_LICENSE("GPL");
