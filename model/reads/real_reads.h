/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reads of a model, really done: an observer that fetches from a file
 * what the model's page cache reads, and lets each access wait for its page.
 *
 * The files of the model lie in that file one after the other. What is read is
 * dropped. It goes into pages that do not lie one behind the other in memory,
 * as those of a page cache do not: some disks fill contiguous ones much faster.
 */
#ifndef MODEL_REAL_READS_H
#define MODEL_REAL_READS_H

#include "../model.h"
#include "read_queue.h"

struct real_counts {
	uint64_t requests;	/* of 1 MiB at most */
	uint64_t read_bytes;
	uint64_t waits;		/* accesses whose page was not there yet */
};

struct real_reads;

/* A queue for one of these at a time. */
struct read_queue *real_reads_queue(bool threads);

/*
 * The file is open with O_DIRECT, has so many bytes, and at least one in the
 * last page of the model's files. NULL with errno for lack of memory.
 */
struct real_reads *real_reads_new(struct read_queue *queue, int file,
				  uint64_t file_bytes,
				  const uint32_t *file_pages,
				  uint32_t nr_files);

/*
 * Lets all reads end. If that fails nothing is freed, and the queue can only be
 * freed.
 */
void real_reads_free(struct real_reads *reads);

const struct model_observer *
real_reads_observer(const struct real_reads *reads);

/* The number of the first error; after that nothing is read any more. */
int real_reads_error(const struct real_reads *reads);

void real_reads_count(const struct real_reads *reads,
		      struct real_counts *counts);

/*
 * Touch pages of a mapping in which the model's files lie one after the other,
 * as the kernel that runs here has it.
 */
void mapping_touch(const void *mapping, const uint32_t *pages, uint64_t count);

#endif /* MODEL_REAL_READS_H */
