/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_ARM64_PTE_MODIFY_H
#define _ASM_ARM64_PTE_MODIFY_H

#define pte_alike pte_alike
static inline bool pte_alike(pte_t a, pte_t b)
{
	const pteval_t own = PTE_ADDR_LOW | PTE_AF;

	/* Entries of a contiguous block change with their block only. */
	return !((pte_val(a) ^ pte_val(b)) & ~own) && !pte_cont(b);
}

static inline unsigned long pte_flips(pte_t old, pte_t new)
{
	return pte_val(old) ^ pte_val(new);
}

static inline pte_t pte_flip(pte_t pte, unsigned long flips)
{
	return __pte(pte_val(pte) ^ flips);
}

/*
 * Whether the hardware may write to the page, and what software keeps beside
 * that. All else is changed by way of an invalid entry: executable pages need
 * their caches seen to, and some processors have errata there.
 */
#define pte_can_change_in_place pte_can_change_in_place
static inline bool pte_can_change_in_place(pte_t old, pte_t new)
{
	const pteval_t may = PTE_WRITE | PTE_RDONLY | PTE_DIRTY |
			     PTE_SWBITS_MASK;

	return !((pte_val(old) ^ pte_val(new)) & ~may);
}

static inline bool ptep_change_in_place(struct mm_struct *mm,
					unsigned long addr, pte_t *ptep,
					pte_t pte, pte_t new)
{
	pteval_t old = pte_val(pte);

	if (!try_cmpxchg_relaxed(&pte_val(*ptep), &old, pte_val(new)))
		return false;
	page_table_check_pte_change(mm, pte, new);
#ifdef CONFIG_ARM64_CONTPTE
	/* As set_ptes() does for one entry. */
	contpte_try_fold(mm, addr, ptep, new);
#endif
	return true;
}

#ifdef CONFIG_ARM64_CONTPTE
#define PTES_PER_BLOCK	CONT_PTES

static inline bool pte_block_alike(pte_t *ptep, pte_t old, pte_t *first)
{
	const pteval_t own = PTE_ADDR_LOW | PTE_AF;

	*first = __ptep_get(ptep);
	return IS_ALIGNED((unsigned long)ptep, CONT_PTES * sizeof(*ptep)) &&
	       pte_valid_cont(*first) &&
	       !((pte_val(*first) ^ pte_val(old)) & ~own);
}

#define ptep_change_block contpte_change_block
void contpte_change_block(struct vm_area_struct *vma, unsigned long addr,
			  pte_t *ptep, pte_t first, pte_t new);
#endif

#endif /* _ASM_ARM64_PTE_MODIFY_H */
