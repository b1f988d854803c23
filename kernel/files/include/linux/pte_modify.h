/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changing the protection of many page table entries at once. Architectures
 * that select ARCH_HAS_PTE_MODIFY do; for others, what stands here compiles, and
 * is not used.
 *
 * ptep_modify_prot_start() and ptep_modify_prot_commit() change one entry. What
 * becomes of it depends on little of it. pte_alike() entries change alike, so what
 * was worked out for one goes for the next one too, be it an entry or a block of
 * them that the hardware can use as one.
 */
#ifndef _LINUX_PTE_MODIFY_H
#define _LINUX_PTE_MODIFY_H

#include <linux/page_table_check.h>
#include <linux/pgtable.h>

/* What setting and clearing an entry would check, for one that is exchanged. */
static inline void page_table_check_pte_change(struct mm_struct *mm, pte_t old,
					       pte_t new)
{
	pte_t none = __pte(0);

	page_table_check_pte_clear(mm, old);
	page_table_check_ptes_set(mm, &none, new, 1);
}

#ifdef CONFIG_ARCH_HAS_PTE_MODIFY
#include <asm/pte_modify.h>
#endif

#ifndef pte_alike
/**
 * pte_alike - whether two present entries change alike
 * @a: One.
 * @b: The other one.
 *
 * Return: Whether they differ in nothing but their frames and accessed bits, so
 * that pte_modify(), pte_mkwrite(), pte_mkuffd_wp() and their opposites flip the
 * same bits of both. Architectures that cannot tell say no.
 */
static inline bool pte_alike(pte_t a, pte_t b)
{
	return false;
}

#endif

/**
 * pte_flips - the bits in which an entry is changed
 * @old: What it was.
 * @new: What it is.
 *
 * Return: The bits, for pte_flip(). They include those of the frame that x86 inverts.
 */
static inline unsigned long pte_flips(pte_t old, pte_t new)
{
	return pte_val(old) ^ pte_val(new);
}

/**
 * pte_flip - change an entry as one that is alike was changed
 * @pte: To be changed.
 * @flips: The other one's pte_flips().
 *
 * Return: What becomes of it.
 */
static inline pte_t pte_flip(pte_t pte, unsigned long flips)
{
	return __pte(pte_val(pte) ^ flips);
}

#ifndef pte_can_change_in_place
/**
 * pte_can_change_in_place - whether an entry need not be started to be changed
 * @old: What it is.
 * @new: What it is to be; for the same frame.
 */
static inline bool pte_can_change_in_place(pte_t old, pte_t new)
{
	return false;
}

/**
 * ptep_change_in_place - change an entry that need not be started
 * @mm: Whose page table it is in.
 * @addr: Where it maps its page.
 * @ptep: The entry.
 * @pte: What it was when it was read.
 * @new: What it is to be.
 *
 * Context: The caller holds the page table lock.
 * Return: Whether it still was @pte; the hardware may mark it accessed or dirty.
 */
static inline bool ptep_change_in_place(struct mm_struct *mm,
					unsigned long addr, pte_t *ptep,
					pte_t pte, pte_t new)
{
	return false;
}
#endif

#ifndef pte_can_be_set
/**
 * pte_can_be_set - whether set_pte_at() may change a present entry
 * @pte: The entry.
 *
 * Return: Whether the hardware neither uses nor marks it, so that it need not be
 * cleared first.
 */
static inline bool pte_can_be_set(pte_t pte)
{
	return false;
}
#endif

#ifndef PTES_PER_BLOCK
/* Entries that the hardware can use as one: pte_batch_hint() where they begin. */
#define PTES_PER_BLOCK	1

/*
 * Read an entry without gathering its block's accessed and dirty bits. A shared page
 * that only looks clean stays read-only, and the first write faults.
 */
#define ptep_get_raw	ptep_get

static inline bool pte_in_block(pte_t pte)
{
	return false;
}

/* Take the block of an entry apart. */
static inline void ptep_leave_block(struct mm_struct *mm, unsigned long addr,
				    pte_t *ptep, pte_t pte)
{
}

/**
 * ptep_change_stretch - change entries that are in no block
 * @vma: Where they are mapped.
 * @addr: Where the first one maps its page.
 * @ptep: The first entry.
 * @pte: What it was when it was read; the next ones map the next pages of its
 *	folio, and were the same otherwise.
 * @new: What it is to be; the next ones alike.
 * @nr: How many there are.
 *
 * If the hardware has marked any of them accessed or dirty, all become so.
 *
 * Context: The caller holds the page table lock.
 */
static inline void ptep_change_stretch(struct vm_area_struct *vma,
				       unsigned long addr, pte_t *ptep,
				       pte_t pte, pte_t new, unsigned int nr)
{
}

/**
 * ptep_change_block - change all entries of a block
 * @vma: Where they are mapped.
 * @addr: Where the first one maps its page.
 * @ptep: The first entry.
 * @first: What it was when it was read.
 * @new: What it is to be; the next ones map the next pages.
 *
 * If the hardware has marked any of them accessed or dirty, all become so.
 *
 * Context: The caller holds the page table lock.
 */
static inline void ptep_change_block(struct vm_area_struct *vma,
				     unsigned long addr, pte_t *ptep,
				     pte_t first, pte_t new)
{
}
#endif

#endif /* _LINUX_PTE_MODIFY_H */
