/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads of files that go on side by side, past the page cache.
 *
 * io_uring does them by its system calls; where these are refused, threads do.
 */
#ifndef MODEL_READ_QUEUE_H
#define MODEL_READ_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define QUEUE_MOST_PAGES	256	/* of a read: 1 MiB, as of the kernel's */

struct queued_read {
	int file;		/* opened with O_DIRECT */
	uint64_t offset;	/* bytes */
	uint32_t nr_pages;
	struct iovec pages[QUEUE_MOST_PAGES];	/* one page each */
	int64_t result;		/* bytes, or minus an error's number */
	struct queued_read *next;	/* of the queue's own lists */
};

struct read_queue;

/*
 * For up to so many reads at a time. NULL with errno if there can be none. With
 * threads, io_uring is not tried.
 *
 * While a ring of io_uring is closed the kernel sends its thread something like
 * a signal; a page fault that this interrupts is not counted. So a queue should
 * outlive the faults that are counted.
 */
struct read_queue *read_queue_new(uint32_t most, bool threads);

/* Nothing may be going on, unless read_queue_begin() has failed. */
void read_queue_free(struct read_queue *queue);

bool read_queue_has_threads(const struct read_queue *queue);

/* A read that begins at the next read_queue_begin(). */
void read_queue_add(struct read_queue *queue, struct queued_read *read);

/*
 * Begin all that were added, and with wait let one end, unless a signal comes
 * first. False with errno if that cannot be.
 */
bool read_queue_begin(struct read_queue *queue, bool wait);

/* One that has ended, and was not told yet; NULL if there is none. */
struct queued_read *read_queue_ended(struct read_queue *queue);

#endif /* MODEL_READ_QUEUE_H */
