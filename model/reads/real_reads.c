// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../../guest/random.h"
#include "real_reads.h"

#define PAGE_BYTES	4096ULL
#define MOST_READS	256	/* at a time, as many as a disk's queue takes */
#define POOL_PAGES	16384	/* that these can go to */
#define NO_READ		0

struct real_reads {
	struct model_observer observer;
	struct read_queue *queue;
	struct real_counts counts;
	int error;
	int file;
	uint64_t file_bytes;
	uint64_t *first;	/* page of each file */
	uint16_t *reader;	/* of each page: the read under way, from 1 on */

	struct queued_read reads[MOST_READS];
	uint16_t idle[MOST_READS];
	uint32_t nr_idle;

	char *memory;
	char *pool[POOL_PAGES];	/* what is free, as a ring */
	uint32_t pool_head, nr_pool;
};

static void shuffle(char **pages, uint32_t count)
{
	uint64_t state = 1;

	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = random_below(&state, i);
		char *page = pages[i - 1];

		pages[i - 1] = pages[other];
		pages[other] = page;
	}
}

/*
 * The kernel hands out pages in the order of the first writes to them, and
 * neighbours may well be neighbours in memory, too. So they are used in another
 * order than that.
 */
static bool fill_pool(struct real_reads *reads)
{
	reads->memory = mmap(NULL, POOL_PAGES * PAGE_BYTES,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reads->memory == MAP_FAILED) {
		reads->memory = NULL;
		return false;
	}
	madvise(reads->memory, POOL_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
	for (uint32_t i = 0; i < POOL_PAGES; i++) {
		reads->pool[i] = reads->memory + i * PAGE_BYTES;
		*reads->pool[i] = 1;
	}
	shuffle(reads->pool, POOL_PAGES);
	reads->nr_pool = POOL_PAGES;
	return true;
}

static char *take_page(struct real_reads *reads)
{
	reads->nr_pool--;
	return reads->pool[reads->pool_head++ % POOL_PAGES];
}

static void give_page(struct real_reads *reads, char *page)
{
	reads->pool[(reads->pool_head + reads->nr_pool++) % POOL_PAGES] = page;
}

/* The last page of the file may not be whole. */
static int64_t expected(const struct real_reads *reads,
			const struct queued_read *read)
{
	uint64_t rest = reads->file_bytes - read->offset;
	uint64_t all = read->nr_pages * PAGE_BYTES;

	return all < rest ? all : rest;
}

static void end(struct real_reads *reads, struct queued_read *read)
{
	uint64_t page = read->offset / PAGE_BYTES;
	uint16_t number = read - reads->reads + 1;

	if (read->result != expected(reads, read) && !reads->error)
		reads->error = read->result < 0 ? -read->result : EIO;
	for (uint32_t i = 0; i < read->nr_pages; i++) {
		/* It may have been evicted, and be read again by now. */
		if (reads->reader[page + i] == number)
			reads->reader[page + i] = NO_READ;
		give_page(reads, read->pages[i].iov_base);
	}
	reads->idle[reads->nr_idle++] = number - 1;
}

static void end_those_that_did(struct real_reads *reads)
{
	struct queued_read *read;

	while ((read = read_queue_ended(reads->queue)))
		end(reads, read);
}

static void begin(struct real_reads *reads, bool wait)
{
	if (!read_queue_begin(reads->queue, wait) && !reads->error)
		reads->error = errno;
}

/* One that may read so many pages; NULL after an error. */
static struct queued_read *idle_read(struct real_reads *reads, uint32_t n)
{
	while (!reads->error && (!reads->nr_idle || reads->nr_pool < n)) {
		begin(reads, true);
		end_those_that_did(reads);
	}
	return reads->error ? NULL :
			      &reads->reads[reads->idle[--reads->nr_idle]];
}

static bool read_piece(struct real_reads *reads, uint64_t page, uint32_t n)
{
	struct queued_read *read = idle_read(reads, n);

	if (!read)
		return false;
	read->file = reads->file;
	read->offset = page * PAGE_BYTES;
	read->nr_pages = n;
	for (uint32_t i = 0; i < n; i++) {
		read->pages[i] = (struct iovec){ take_page(reads), PAGE_BYTES };
		reads->reader[page + i] = read - reads->reads + 1;
	}
	read_queue_add(reads->queue, read);
	reads->counts.requests++;
	reads->counts.read_bytes += expected(reads, read);
	return true;
}

static void observe_read(void *context, uint32_t file, uint32_t start,
			 uint32_t n)
{
	struct real_reads *reads = context;
	uint64_t page = reads->first[file] + start;

	while (n) {
		uint32_t piece = n < QUEUE_MOST_PAGES ? n : QUEUE_MOST_PAGES;

		if (!read_piece(reads, page, piece))
			return;
		page += piece;
		n -= piece;
	}
}

/* All that one access reads is begun together. */
static void observe_access(void *context, uint32_t file, uint32_t page,
			   enum model_access how)
{
	struct real_reads *reads = context;
	uint16_t *reader = &reads->reader[reads->first[file] + page];

	(void)how;
	begin(reads, false);
	if (*reader == NO_READ)
		return;
	end_those_that_did(reads);
	reads->counts.waits += *reader != NO_READ;
	while (*reader != NO_READ && !reads->error) {
		begin(reads, true);
		end_those_that_did(reads);
	}
}

static bool lay_out(struct real_reads *reads, const uint32_t *file_pages,
		    uint32_t nr_files)
{
	uint64_t pages = 0;

	reads->first = calloc(nr_files + 1, sizeof(*reads->first));
	if (!reads->first)
		return false;
	for (uint32_t i = 0; i < nr_files; i++) {
		reads->first[i] = pages;
		pages += file_pages[i];
	}
	reads->reader = calloc(pages + 1, sizeof(*reads->reader));
	return reads->reader;
}

struct read_queue *real_reads_queue(bool threads)
{
	return read_queue_new(MOST_READS, threads);
}

struct real_reads *real_reads_new(struct read_queue *queue, int file,
				  uint64_t file_bytes,
				  const uint32_t *file_pages,
				  uint32_t nr_files)
{
	struct real_reads *reads = calloc(1, sizeof(*reads));

	if (!reads)
		return NULL;
	reads->queue = queue;
	reads->file = file;
	reads->file_bytes = file_bytes;
	for (; reads->nr_idle < MOST_READS; reads->nr_idle++)
		reads->idle[reads->nr_idle] = reads->nr_idle;
	reads->observer = (struct model_observer){
		.context = reads,
		.read = observe_read,
		.accessed = observe_access,
	};
	if (!lay_out(reads, file_pages, nr_files) || !fill_pool(reads)) {
		real_reads_free(reads);
		return NULL;
	}
	return reads;
}

void real_reads_free(struct real_reads *reads)
{
	while (reads->nr_idle < MOST_READS) {
		/* The kernel may still write to all this, so it stays. */
		if (!read_queue_begin(reads->queue, true))
			return;
		end_those_that_did(reads);
	}
	if (reads->memory)
		munmap(reads->memory, POOL_PAGES * PAGE_BYTES);
	free(reads->first);
	free(reads->reader);
	free(reads);
}

const struct model_observer *
real_reads_observer(const struct real_reads *reads)
{
	return &reads->observer;
}

int real_reads_error(const struct real_reads *reads)
{
	return reads->error;
}

void real_reads_count(const struct real_reads *reads,
		      struct real_counts *counts)
{
	*counts = reads->counts;
}

void mapping_touch(const void *mapping, const uint32_t *pages, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		*((const volatile char *)mapping + pages[i] * PAGE_BYTES);
}
