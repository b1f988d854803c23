/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_ARM64_PTE_MODIFY_H
#define _ASM_ARM64_PTE_MODIFY_H

#include <asm/tlbflush.h>

/* Unfolds contiguous blocks where the range ends within them, and only there. */
#define modify_prot_start_ptes modify_prot_start_ptes
static inline pte_t modify_prot_start_ptes(struct vm_area_struct *vma,
					   unsigned long addr, pte_t *ptep,
					   unsigned int nr)
{
	pte_t pte = get_and_clear_full_ptes(vma->vm_mm, addr, ptep, nr, 0);

	/* As ptep_modify_prot_start() does. */
	if (alternative_has_cap_unlikely(ARM64_WORKAROUND_2645198) &&
	    pte_user_exec(pte))
		__flush_tlb_range(vma, addr, addr + nr * PAGE_SIZE, PAGE_SIZE,
				  true, 3);
	return pte;
}

#define modify_prot_commit_ptes modify_prot_commit_ptes
static inline void modify_prot_commit_ptes(struct vm_area_struct *vma,
					   unsigned long addr, pte_t *ptep,
					   pte_t old, pte_t new,
					   unsigned int nr)
{
	set_ptes(vma->vm_mm, addr, ptep, new, nr);
#ifdef CONFIG_ARM64_CONTPTE
	/*
	 * Entries set one by one would fold their block with its last one.
	 * set_ptes() makes whole blocks of whole blocks only: see to the first.
	 */
	const unsigned int rest = -(addr >> PAGE_SHIFT) % CONT_PTES;

	if (nr > 1 && rest && rest <= nr)
		contpte_try_fold(vma->vm_mm, addr + (rest - 1) * PAGE_SIZE,
				 ptep + rest - 1,
				 pte_mknoncont(pte_advance_pfn(new, rest - 1)));
#endif
}

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

void contpte_change_block(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
			  pte_t first, pte_t new);

static inline void ptep_change_block_in_place(struct mm_struct *mm,
					      unsigned long addr, pte_t *ptep,
					      pte_t first, pte_t new)
{
	contpte_change_block(mm, addr, ptep, first, new);
}
#endif

#endif /* _ASM_ARM64_PTE_MODIFY_H */
