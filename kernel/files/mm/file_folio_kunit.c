// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of the choice of folio sizes for the page cache. */

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/file_folio_policy.h>
#include <linux/module.h>

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

static struct kunit_case file_folio_cases[] = {
	KUNIT_CASE(test_file_folio_use),
	KUNIT_CASE(test_file_folio_fit),
	{ }
};

static struct kunit_suite file_folio_suite = {
	.name = "file_folio",
	.test_cases = file_folio_cases,
};

kunit_test_suite(file_folio_suite);

MODULE_DESCRIPTION("KUnit tests of the choice of folio sizes for the page cache");
MODULE_LICENSE("GPL");
