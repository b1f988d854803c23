// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of what changing page table entries in batches relies on. */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/pte_modify.h>

#define NR_PROTECTIONS	16	/* each set of VM_READ, _WRITE, _EXEC, _SHARED */
#define NR_ENTRIES	200	/* for each pair of protections */

static struct rnd_state random;

static pte_t random_frame(pgprot_t prot)
{
	return pfn_pte(prandom_u32_state(&random) >> 4, prot);
}

/* Flags that protection has nothing to do with, as random bits say. */
static pte_t flagged(pte_t pte, u32 bits)
{
	if (bits & BIT(0))
		pte = pte_mkdirty(pte);
	if (bits & BIT(1))
		pte = pte_mkspecial(pte);
	if (bits & BIT(2))
		pte = pte_mksoft_dirty(pte);
	if (bits & BIT(3))
		pte = pte_mkuffd_wp(pte);
	return pte;
}

/* Everything that a change of protection may do to an entry. */
static pte_t changed(pte_t pte, pgprot_t prot, u32 bits)
{
	pte = pte_modify(pte, prot);
	if (bits & BIT(4))
		pte = pte_mkuffd_wp(pte);
	else if (bits & BIT(5))
		pte = pte_clear_uffd_wp(pte);
	if (bits & BIT(6) && !pte_write(pte) && !pte_protnone(pte))
		pte = pte_mkwrite_novma(pte);
	return pte;
}

static void test_alike_entries(struct kunit *test, unsigned int from,
			       unsigned int to)
{
	const pgprot_t old = vm_get_page_prot(from), new = vm_get_page_prot(to);

	for (int i = 0; i < NR_ENTRIES; i++) {
		const u32 bits = prandom_u32_state(&random);
		pte_t a = flagged(random_frame(old), bits);
		pte_t b = flagged(random_frame(old), bits);

		a = bits & BIT(7) ? pte_mkyoung(a) : pte_mkold(a);
		b = bits & BIT(8) ? pte_mkyoung(b) : pte_mkold(b);
		KUNIT_ASSERT_TRUE_MSG(test, pte_alike(a, b), "from %u", from);
		b = pte_flip(b, pte_flips(a, changed(a, new, bits)));
		a = flagged(pfn_pte(pte_pfn(b), old), bits);
		a = bits & BIT(8) ? pte_mkyoung(a) : pte_mkold(a);
		KUNIT_EXPECT_TRUE_MSG(test, pte_same(b, changed(a, new, bits)),
				      "from %u to %u, bits %#x", from, to, bits);
	}
}

/* What is worked out for one entry goes for those that are alike. */
static void test_flip_alike(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_ARCH_HAS_PTE_MODIFY))
		kunit_skip(test, "no entries are alike here");

	prandom_seed_state(&random, 612);
	for (unsigned int from = 0; from < NR_PROTECTIONS; from++)
		for (unsigned int to = 0; to < NR_PROTECTIONS; to++)
			test_alike_entries(test, from, to);
}

/* Entries that would not change alike are not said to be. */
static void test_unlike(struct kunit *test)
{
	const pgprot_t shared = vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);
	const pte_t pte = pte_mkold(pfn_pte(1, shared));

	KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_mkdirty(pte)));
	KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_wrprotect(pte)));
	KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_mkspecial(pte)));
	KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_modify(pte, vm_get_page_prot(0))));
	KUNIT_EXPECT_FALSE(test, pte_alike(pte, __pte(0)));
	if (IS_ENABLED(CONFIG_HAVE_ARCH_USERFAULTFD_WP))
		KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_mkuffd_wp(pte)));
	if (IS_ENABLED(CONFIG_MEM_SOFT_DIRTY))
		KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_mksoft_dirty(pte)));
#ifdef CONFIG_ARM64_CONTPTE
	KUNIT_EXPECT_FALSE(test, pte_alike(pte, pte_mkcont(pte)));
#endif
}

static struct kunit_case mprotect_cases[] = {
	KUNIT_CASE(test_flip_alike),
	KUNIT_CASE(test_unlike),
	{ }
};

static struct kunit_suite mprotect_suite = {
	.name = "mprotect",
	.test_cases = mprotect_cases,
};

kunit_test_suite(mprotect_suite);

MODULE_DESCRIPTION("KUnit tests of changing protection in batches");
MODULE_LICENSE("GPL");
