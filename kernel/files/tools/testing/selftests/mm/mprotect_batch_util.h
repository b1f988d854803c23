/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of mprotect() in batches share. */
#ifndef __MPROTECT_BATCH_UTIL_H
#define __MPROTECT_BATCH_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BATCH_SWITCH	"/sys/kernel/debug/mprotect/alike_runs"

/*
 * Have run_guarded() put the switch back.
 * Return: whether there is one.
 */
bool guard_batching(void);
/* Where there is no switch, this does nothing. */
void set_batching(bool on);

/*
 * Count the calling thread's batches from here on, by the tracepoint, and those
 * of @threads and processes that it starts.
 * Return: a descriptor for batches_counted(), or -1.
 */
int count_batches(bool threads);
uint64_t batches_counted(int fd);

/* Folio sizes of anonymous and shared memory */

#define MAX_SIZES	24

/* From the smallest on; mprotect_batch_init() finds them. */
extern unsigned long sizes[MAX_SIZES];
extern unsigned int nr_sizes;
/* Of a huge page; 0 if there are none. */
extern unsigned long huge_bytes;

void mprotect_batch_init(void);
void guard_sizes(void);
/* Let memory with MADV_HUGEPAGE have one size, or none, and no other. */
void set_size(unsigned long bytes);
/* A counter of one size's statistics. */
unsigned long size_stat(unsigned long bytes, const char *name);

/* Keep everything that moves, merges or writes pages by itself from doing so. */
void guard_peace(void);
void keep_peace(void);

/* Accesses */

/* Write to each page of some memory what it holds, for faults to be over. */
void touch_all(void *memory, size_t bytes);
/* Of the calling process, those that read a file or swap included. */
long faults(void);
/*
 * Have no processor remember entries that gave less access than they do now:
 * it may fault once more on these, or not.
 */
void forget_translations(void);

/*
 * May entries of one folio share their accessed and dirty bits? Those of a block of arm64
 * do: what was done to one page was done to all of them.
 */
#ifdef __aarch64__
#define ENTRIES_IN_BLOCKS	true
#else
#define ENTRIES_IN_BLOCKS	false
#endif

/* As read_pagemap(); if it fails, so do all tests. */
void read_entries(const void *start, unsigned long pages, uint64_t *entries);
void clear_references(const char *which);
bool has_soft_dirty(void);
/* Whether an access marks an entry without a fault. */
bool has_hardware_accessed(void);
/* Wait until no frame of some pagemap entries is being written. */
void wait_for_writeback(const uint64_t *entries, unsigned long pages);

#endif /* __MPROTECT_BATCH_UTIL_H */
