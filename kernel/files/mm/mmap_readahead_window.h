/* SPDX-License-Identifier: GPL-2.0-only */
/* The adaptive window: what a miss in a mapped file reads, without hints. */
#ifndef __MM_MMAP_READAHEAD_WINDOW_H
#define __MM_MMAP_READAHEAD_WINDOW_H

#include <linux/types.h>

/* Reads that are remembered; as many streams can share a file at no cost. */
#define MMAP_READAHEAD_READS		8
/* Most regions of a file. */
#define MMAP_READAHEAD_REGIONS		16

/**
 * enum mmap_readahead_kind - what an adaptive read is
 * @MMAP_READAHEAD_SINGLE: stands alone
 * @MMAP_READAHEAD_FORWARD: goes on where another one ended
 * @MMAP_READAHEAD_BACKWARD: goes on where another one began
 * @MMAP_READAHEAD_FILL: a block of a region that fills up
 */
enum mmap_readahead_kind {
	MMAP_READAHEAD_SINGLE,
	MMAP_READAHEAD_FORWARD,
	MMAP_READAHEAD_BACKWARD,
	MMAP_READAHEAD_FILL,
};

/**
 * struct mmap_readahead_read - a recent read, and the reads that it went on from
 * @index: the page that asked for the last one
 * @start: first page of all
 * @end: last page of all
 * @size: pages of the last one, 0 if there was none
 * @kind: &enum mmap_readahead_kind of the last one
 * @pending: whether pages of it may not be in the page cache yet
 * @mark_met: whether somebody came to the mark of a single miss
 * @unsure: whether it is a stream that began at such a mark, and nobody has come to its next one
 * @gaps: whether a stream left pages out before its last miss
 * @order: folio size that it asked for
 */
struct mmap_readahead_read {
	unsigned long index;
	unsigned long start;
	unsigned long end;
	unsigned int size;
	unsigned char kind;
	bool pending : 1;
	bool mark_met : 1;
	bool unsure : 1;
	bool gaps : 1;
	unsigned char order;
};

/**
 * struct mmap_readahead_side - what single misses read on one side
 * @order: 2^order pages there, the missing page among them
 * @continued: how often that was too little, in 1/255
 * @used: how often the outer half was used, in 1/255
 * @quiet: reads since the last one that was continued
 * @patience: how many of these make a window smaller that cannot be judged
 */
struct mmap_readahead_side {
	unsigned char order;
	unsigned char continued;
	unsigned char used;
	unsigned char quiet;
	unsigned char patience;
};

/**
 * struct mmap_readahead_regions - where single misses gather
 * @misses: in each region
 * @nr: in all of them
 * @shift: log2 of the pages of a region
 * @turns: how often misses change their direction, in 1/255
 * @last: page of the last single miss
 * @up: whether the last one that was judged came behind the one before
 */
struct mmap_readahead_regions {
	unsigned int misses[MMAP_READAHEAD_REGIONS];
	unsigned int nr;
	unsigned char shift;
	unsigned char turns;
	bool up;
	unsigned long last;
};

/**
 * struct mmap_readahead_state - what is known of one file; all zero: nothing
 * @reads: recent reads
 * @ahead: what single misses read ahead
 * @behind: what they read behind
 * @regions: where they gather
 * @swept: pages that sweeps stepped over while their pages were read alone
 * @next: which of the reads to forget next
 * @evicted: how often single misses met pages that had been evicted, in 1/255
 */
struct mmap_readahead_state {
	struct mmap_readahead_read reads[MMAP_READAHEAD_READS];
	struct mmap_readahead_side ahead;
	struct mmap_readahead_side behind;
	struct mmap_readahead_regions regions;
	unsigned long swept;
	unsigned char next;
	unsigned char evicted;
};

/**
 * enum mmap_readahead_page - what the page cache has of a page
 * @MMAP_READAHEAD_ABSENT: nothing
 * @MMAP_READAHEAD_EVICTED: nothing any more, the page was evicted
 * @MMAP_READAHEAD_CACHED: the page, but nobody maps it
 * @MMAP_READAHEAD_USED: the page, and somebody maps it
 */
enum mmap_readahead_page {
	MMAP_READAHEAD_ABSENT,
	MMAP_READAHEAD_EVICTED,
	MMAP_READAHEAD_CACHED,
	MMAP_READAHEAD_USED,
};

/**
 * struct mmap_readahead_miss - a miss without hints
 * @index: the page that is missing
 * @page: what the page cache has of it; no matter at a mark
 * @file_pages: size of the file; @index lies in it
 * @cached_pages: how many of them are cached
 * @memory_pages: how many pages of files memory can hold
 * @max_pages: the most that one read may have, at least 1
 * @request_pages: what one request costs, in pages read, at least 1
 * @max_order: the largest folio that the file can have is of 2^max_order pages
 * @block_shift: a fault maps what is cached of 2^block_shift pages around itself
 * @writes: whether the mapping can write to the file
 * @look: what the page cache has of a page
 * @next_miss: the first page from @index on that is not cached, or @most pages on
 * @cache: for these two
 */
struct mmap_readahead_miss {
	unsigned long index;
	enum mmap_readahead_page page;
	unsigned long file_pages;
	unsigned long cached_pages;
	unsigned long memory_pages;
	unsigned int max_pages;
	unsigned int request_pages;
	unsigned int max_order;
	unsigned int block_shift;
	bool writes;
	enum mmap_readahead_page (*look)(const void *cache,
					 unsigned long index);
	unsigned long (*next_miss)(const void *cache, unsigned long index,
				   unsigned long most);
	const void *cache;
};

/**
 * struct mmap_readahead_answer - what to read for a miss
 * @start: first page
 * @size: pages, at least 1
 * @async_size: how many of the last ones lie behind the readahead mark
 * @order: folio size to ask for
 * @kind: why
 * @read: which of the reads of the state it is, MMAP_READAHEAD_READS for none
 */
struct mmap_readahead_answer {
	unsigned long start;
	unsigned int size;
	unsigned int async_size;
	unsigned int order;
	enum mmap_readahead_kind kind;
	unsigned int read;
};

/**
 * mmap_readahead_settled - whether a miss reads its page alone without more ado
 * @state: what is known of the file; learns
 * @miss: the miss, without its page and memory
 * @answer: set if it does
 *
 * Judging costs about as much as a request of a device in memory. Where single pages are
 * read, none was continued for long, and the region has not two thirds of the misses that
 * fill it, four of 32 are judged, and the others are counted.
 */
bool mmap_readahead_settled(struct mmap_readahead_state *state,
			    const struct mmap_readahead_miss *miss,
			    struct mmap_readahead_answer *answer);

/**
 * mmap_readahead_adapt - what to read for a miss that is not settled
 * @state: what is known of the file; learns
 * @miss: the miss
 * @answer: set to a read of pages of the file that holds @miss->index
 */
void mmap_readahead_adapt(struct mmap_readahead_state *state,
			  const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_answer *answer);

/**
 * mmap_readahead_mark - what to read when an access comes to a readahead mark
 * @state: what is known of the file; learns
 * @mark: the page that has the mark, and the rest as for a miss
 * @answer: set to a read of no pages if there is nothing to read
 *
 * A stream has a mark in its last read, and goes on there. A single miss leaves one as well, in
 * the middle of what it reads ahead. A stream begins there if the file's single misses were
 * continued often enough for that to pay, and at the beginning of a file. Else the mark tells
 * nothing that the next miss does not, as long as that read is remembered. Once it is forgotten,
 * because more streams share the file than are remembered, the mark proves that what was read
 * ahead is used.
 *
 * Return: false if single misses leave no marks, or read ahead only what is free, and no used run
 * is before this one. Then it is of somebody who read() the file, or tells nothing.
 */
bool mmap_readahead_mark(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *mark,
			 struct mmap_readahead_answer *answer);

/**
 * mmap_readahead_submitted - what an answer asked for is in the page cache, or will not be
 * @state: what is known of the file
 * @answer: the answer, of more than a page
 *
 * Until then, misses in it are taken for those of other threads that came too early. Of
 * a single page, which a fault may read itself, nothing is to be told.
 */
void mmap_readahead_submitted(struct mmap_readahead_state *state,
			      const struct mmap_readahead_answer *answer);

#endif /* __MM_MMAP_READAHEAD_WINDOW_H */
