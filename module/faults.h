/* SPDX-License-Identifier: GPL-2.0-only */
/* From a fault to what it reads. Nothing here sleeps. To be called by the task itself. */
#ifndef MODULE_FAULTS_H
#define MODULE_FAULTS_H

#include <linux/mm.h>
#include <linux/pagemap.h>

/**
 * enum fault_event - what is counted
 * @FAULT_MISSES: misses that adapted
 * @FAULT_AHEAD: pages that they and readahead marks read beyond those that were missing
 * @FAULT_MARKS: readahead marks at which they were followed by more
 * @FAULT_UNKNOWN: misses that read what the kernel wanted, because there was no memory
 * @FAULT_LOST: misses that read what the kernel wanted, because two tasks shared a slot
 */
enum fault_event {
	FAULT_MISSES,
	FAULT_AHEAD,
	FAULT_MARKS,
	FAULT_UNKNOWN,
	FAULT_LOST,
	NR_FAULT_EVENTS,
};

extern atomic_long_t fault_events[NR_FAULT_EVENTS];

void faults_init(void);

/**
 * fault_begins - a fault in a mapping of a file
 * @vmf: the fault
 * @adaptive: whether its window may adapt
 *
 * Whether it misses is not known yet.
 */
void fault_begins(struct vm_fault *vmf, bool adaptive);

/**
 * fault_at_mark - somebody has come to a readahead mark
 * @ractl: what is to be read on
 * @folio: that has the mark
 */
void fault_at_mark(const struct readahead_control *ractl, const struct folio *folio);

/**
 * fault_reads - somebody is about to read ahead; if it is a fault, have it read what has paid
 * @ractl: where; anything, until it is known to be a fault
 * @ra: how much
 */
void fault_reads(struct readahead_control *ractl, struct file_ra_state *ra);

#endif /* MODULE_FAULTS_H */
