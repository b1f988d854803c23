/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_X86_PTE_MODIFY_H
#define _ASM_X86_PTE_MODIFY_H

#define pte_alike pte_alike
static inline bool pte_alike(pte_t a, pte_t b)
{
	const pteval_t own = PTE_PFN_MASK | _PAGE_ACCESSED;

	return !((pte_val(a) ^ pte_val(b)) & ~own);
}

/* Xen's page tables are changed by way of hypercalls, which can be batched. */
#define pte_can_change_in_place pte_can_change_in_place
static inline bool pte_can_change_in_place(pte_t old, pte_t new)
{
	return !cpu_feature_enabled(X86_FEATURE_XENPV);
}

static inline bool ptep_change_in_place(struct mm_struct *mm,
					unsigned long addr, pte_t *ptep,
					pte_t pte, pte_t new)
{
	pteval_t old = pte_val(pte);

	if (!try_cmpxchg((pteval_t *)&ptep->pte, &old, pte_val(new)))
		return false;
	page_table_check_pte_change(mm, pte, new);
	return true;
}

#endif /* _ASM_X86_PTE_MODIFY_H */
