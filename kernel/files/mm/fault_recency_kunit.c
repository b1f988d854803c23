// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of what pages earn that faults bring in or map. */
#include <kunit/test.h>
#include <linux/fault_recency_policy.h>
#include <linux/module.h>

#define ACTIVE		FAULT_FOLIOS_ACTIVE
#define ACCESSED	FAULT_FOLIOS_ACCESSED
#define MAPPED		FAULT_FOLIOS_MAPPED

struct earned_case {
	const char *name;
	enum fault_folios setting;
	bool fact;
	enum fault_recency earned;
};

/* The fact is that the folio is mapped. */
static const struct earned_case added_cases[] = {
	{ "active: what readahead brings is activated",
	  ACTIVE, false, FAULT_RECENCY_ACTIVE },
	{ "active: so is what is mapped",
	  ACTIVE, true, FAULT_RECENCY_ACTIVE },
	{ "accessed: what readahead brings is marked",
	  ACCESSED, false, FAULT_RECENCY_MARK },
	{ "accessed: so is what is mapped",
	  ACCESSED, true, FAULT_RECENCY_MARK },
	{ "mapped: what readahead brings gets nothing",
	  MAPPED, false, FAULT_RECENCY_NONE },
	{ "mapped: what is mapped is marked",
	  MAPPED, true, FAULT_RECENCY_MARK },
};

static void earned_case_name(const struct earned_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(added, added_cases, earned_case_name);

static void test_added(struct kunit *test)
{
	const struct earned_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->earned,
			fault_recency_added(param->setting, param->fact));
}

struct refault_case {
	const char *name;
	enum fault_folios setting;
	bool in_fault, often;
	unsigned int noted;
};

#define ALL	(FAULT_REFAULT_EVICTED | FAULT_REFAULT_PROTECTED | \
		 FAULT_REFAULT_ACTIVATED)

static const struct refault_case refault_cases[] = {
	{ "active: a fault restores", ACTIVE, true, false, ALL },
	{ "active: also what was accessed often", ACTIVE, true, true, ALL },
	{ "accessed: a fault restores nothing",
	  ACCESSED, true, false, FAULT_REFAULT_EVICTED },
	{ "accessed: but what was accessed often",
	  ACCESSED, true, true,
	  FAULT_REFAULT_EVICTED | FAULT_REFAULT_PROTECTED },
	{ "mapped: a fault restores nothing",
	  MAPPED, true, false, FAULT_REFAULT_EVICTED },
	{ "mapped: but what was accessed often",
	  MAPPED, true, true,
	  FAULT_REFAULT_EVICTED | FAULT_REFAULT_PROTECTED },
};

static void refault_case_name(const struct refault_case *param, char *name)
{
	strscpy(name, param->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refault, refault_cases, refault_case_name);

static void test_refaulted(struct kunit *test)
{
	const struct refault_case *param = test->param_value;

	KUNIT_EXPECT_EQ(test, param->noted,
			fault_recency_refaulted(param->setting, param->in_fault,
						param->often));
}

/* What system calls bring back has nothing to do with the setting. */
static void test_refaulted_by_system_calls(struct kunit *test)
{
	int setting;

	for (setting = 0; setting < NR_FAULT_FOLIOS; setting++) {
		KUNIT_EXPECT_EQ(test, FAULT_REFAULT_ACTIVATED,
				fault_recency_refaulted(setting, false, false));
		KUNIT_EXPECT_EQ(test, ALL,
				fault_recency_refaulted(setting, false, true));
	}
}

/* Each setting gives a folio at most what the one before it gives. */
static void test_settings_only_take(struct kunit *test)
{
	int setting, facts;

	for (setting = 1; setting < NR_FAULT_FOLIOS; setting++) {
		for (facts = 0; facts < 4; facts++) {
			bool one = facts & 1, other = facts & 2;

			KUNIT_EXPECT_LE(test, fault_recency_added(setting, one),
					fault_recency_added(setting - 1, one));
			KUNIT_EXPECT_EQ(test, 0,
					fault_recency_refaulted(setting, one, other) &
					~fault_recency_refaulted(setting - 1, one, other));
		}
	}
}

static struct kunit_case fault_recency_cases[] = {
	KUNIT_CASE_PARAM(test_added, added_gen_params),
	KUNIT_CASE_PARAM(test_refaulted, refault_gen_params),
	KUNIT_CASE(test_refaulted_by_system_calls),
	KUNIT_CASE(test_settings_only_take),
	{ }
};

static struct kunit_suite fault_recency_suite = {
	.name = "fault_recency",
	.test_cases = fault_recency_cases,
};

kunit_test_suite(fault_recency_suite);

MODULE_DESCRIPTION("KUnit tests of what pages earn by faults");
MODULE_LICENSE("GPL");
