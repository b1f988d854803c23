/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_ARM64_PTE_MODIFY_H
#define _ASM_ARM64_PTE_MODIFY_H

#define pte_alike pte_alike
static inline bool pte_alike(pte_t a, pte_t b)
{
	const pteval_t own = PTE_ADDR_LOW | PTE_AF;

	return !((pte_val(a) ^ pte_val(b)) & ~own);
}

/*
 * An entry that becomes invalid changes in place, whatever else changes. In others,
 * only the write permission and software's bits do. The rest goes by way of an
 * invalid entry: executable pages need their caches seen to, and some processors
 * have errata.
 */
#define pte_can_change_in_place pte_can_change_in_place
static inline bool pte_can_change_in_place(pte_t old, pte_t new)
{
	const pteval_t may = PTE_WRITE | PTE_RDONLY | PTE_DIRTY |
			     PTE_SWBITS_MASK;

	return !pte_valid(new) || !((pte_val(old) ^ pte_val(new)) & ~may);
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

#define pte_can_be_set pte_can_be_set
static inline bool pte_can_be_set(pte_t pte)
{
	return !pte_valid(pte);
}

#ifdef CONFIG_ARM64_CONTPTE
#define PTES_PER_BLOCK	CONT_PTES
#define ptep_get_raw	__ptep_get
#define pte_in_block	pte_valid_cont
#define ptep_leave_block	contpte_try_unfold

#define ptep_change_stretch contpte_change_stretch
void contpte_change_stretch(struct vm_area_struct *vma, unsigned long addr,
			    pte_t *ptep, pte_t pte, pte_t new, unsigned int nr);

#define ptep_change_block contpte_change_block
void contpte_change_block(struct vm_area_struct *vma, unsigned long addr,
			  pte_t *ptep, pte_t first, pte_t new);
#endif

#endif /* _ASM_ARM64_PTE_MODIFY_H */
