/* SPDX-License-Identifier: GPL-2.0-only */
/* From a fault to what it reads. Nothing here sleeps. To be called by the task itself. */
#ifndef MODULE_FAULTS_H
#define MODULE_FAULTS_H

#include <linux/mm.h>
#include <linux/pagemap.h>

void faults_init(void);

/**
 * fault_begins - a fault in a mapping of a file
 * @vmf: the fault
 * @adaptive: whether its window may adapt
 *
 * Whether it misses is not known yet.
 *
 * Return: false if misses of the task are not seen being read, many in a row: this kernel reads
 * for them by other ways than the module knows. Then they must not adapt any more.
 */
bool fault_begins(struct vm_fault *vmf, bool adaptive);

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
