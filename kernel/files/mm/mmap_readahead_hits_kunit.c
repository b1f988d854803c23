// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of what counts as a hit in mapped files. */

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/mmap_readahead_hits.h>
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

static struct kunit_case mmap_readahead_hits_cases[] = {
	KUNIT_CASE_PARAM(test_credit, credit_gen_params),
	KUNIT_CASE(test_credit_only_falls),
	{ }
};

static struct kunit_suite mmap_readahead_hits_suite = {
	.name = "mmap_readahead_hits",
	.test_cases = mmap_readahead_hits_cases,
};

kunit_test_suite(mmap_readahead_hits_suite);

MODULE_DESCRIPTION("KUnit tests of hits in mapped files");
MODULE_LICENSE("GPL");
