// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the walk over what is cached of a file. */

#include <kunit/test.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/xarray.h>

#include "internal.h"

/* Over more than one node of the page cache. */
#define FAKE_PAGES	200
#define LARGEST_ORDER	(IS_ENABLED(CONFIG_XARRAY_MULTI) ? 7 : 0)

struct fake_cache {
	struct address_space mapping;
	bool cached[FAKE_PAGES];
};

/* Nothing looks into a folio, so anything will do for one. */
static void add(struct kunit *test, struct fake_cache *cache, pgoff_t index,
		unsigned int order, bool evicted)
{
	XA_STATE_ORDER(xas, &cache->mapping.i_pages, index, order);
	unsigned int i;

	do {
		xas_lock(&xas);
		xas_store(&xas, evicted ? xa_mk_value(1) : cache);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL));
	KUNIT_ASSERT_EQ(test, 0, xas_error(&xas));
	for (i = 0; i < BIT(order); i++)
		cache->cached[index + i] = !evicted;
}

/* Random folios, shadow entries and holes. */
static void fill(struct kunit *test, struct fake_cache *cache, struct rnd_state *random)
{
	pgoff_t index = 0;

	while (index < FAKE_PAGES) {
		unsigned int order = prandom_u32_state(random) % (LARGEST_ORDER + 1);
		unsigned int what = prandom_u32_state(random) % 4;

		if (index)
			order = min_t(unsigned int, order, __ffs(index));
		while (index + BIT(order) > FAKE_PAGES)
			order--;
		if (what)
			add(test, cache, index, order, what == 1);
		index += BIT(order);
	}
}

static void test_next_miss(struct kunit *test)
{
	struct fake_cache *cache = kunit_kzalloc(test, sizeof(*cache), GFP_KERNEL);
	pgoff_t index, end, miss;
	struct rnd_state random;
	unsigned int round;

	KUNIT_ASSERT_NOT_NULL(test, cache);
	prandom_seed_state(&random, 1);
	for (round = 0; round < 50; round++) {
		xa_init(&cache->mapping.i_pages);
		memset(cache->cached, 0, sizeof(cache->cached));
		fill(test, cache, &random);
		for (index = 0; index < FAKE_PAGES; index++) {
			end = index + 1 + prandom_u32_state(&random) % (FAKE_PAGES - index);
			for (miss = index; miss < end && cache->cached[miss]; miss++)
				;
			KUNIT_EXPECT_EQ(test, miss,
					mmap_readahead_next_miss(&cache->mapping, index, end));
		}
		xa_destroy(&cache->mapping.i_pages);
	}
}

static struct kunit_case mmap_readahead_next_cases[] = {
	KUNIT_CASE(test_next_miss),
	{ }
};

static struct kunit_suite mmap_readahead_next_suite = {
	.name = "mmap_readahead_next",
	.test_cases = mmap_readahead_next_cases,
};

kunit_test_suite(mmap_readahead_next_suite);

MODULE_DESCRIPTION("KUnit tests of the walk over what is cached of a file");
MODULE_LICENSE("GPL");
