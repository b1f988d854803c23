/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The adaptive window: what a miss in a mapped file reads, without hints.
 *
 * Everything is weighed in one currency: a request costs as much as reading
 * @request_pages further pages. To read n pages more each time pays if that saves
 * a request, and these pages, in n of n + @request_pages cases.
 *
 *                miss                                      mark
 *                 |                                          |
 *     goes on from a recent read?  -- yes --> stream     of a read, or of a run
 *                 | no                        window     that was forgotten?
 *     comes behind a used run?     -- yes --> doubles        |
 *                 | no                          |        stream reads on
 *     its region fills up, and                  |
 *     memory can hold all such?    -- yes --> region: the aligned block
 *                 | no                          |
 *     neighbourhood: as many pages              +-- sweep: its page alone, if
 *     ahead and behind as have paid ------------+   that was evicted, and memory
 *                                                   holds what is needed, but
 *                                                   not what lies between
 *
 * Each detector has its own part of &struct mmap_readahead_state, and learns from
 * how what it read was used. Nothing depends on hits, which cost nothing: whether
 * a page was used is asked when a later miss needs to know. A fault maps what is
 * cached of the block around it, so what the miss itself had mapped proves nothing.
 *
 * Integers in, integers out: no locks, no folios, no globals, so that a model of the
 * page cache and a fuzzer can compile this as well as the kernel and its KUnit suite.
 */
#ifndef _LINUX_MMAP_READAHEAD_WINDOW_H
#define _LINUX_MMAP_READAHEAD_WINDOW_H

#include <linux/log2.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/mmap_readahead_prior.h>
#include <linux/overflow.h>
#include <linux/types.h>

/* Reads that are remembered; as many streams can share a file at no cost. */
#define MMAP_READAHEAD_READS		8
/* Most regions of a file, and log2 of the requests that the smallest is worth. */
#define MMAP_READAHEAD_REGIONS		16
#define MMAP_READAHEAD_REGION_ORDER	5
/*
 * What a single miss reads ahead in a file that nothing is known of, and behind as
 * well in a file of so few pages that few misses will ever tell more of it.
 */
#define MMAP_READAHEAD_FIRST_ORDER	4
#define MMAP_READAHEAD_SMALL_FILE	4096
/*
 * So many single reads that nobody continued make a window smaller that cannot be
 * judged otherwise, at first, and at most.
 */
#define MMAP_READAHEAD_PATIENCE		4
#define MMAP_READAHEAD_MAX_PATIENCE	64
/* Shares are in 1/255. One that is not known yet, and a small one. */
#define MMAP_READAHEAD_HALF		128
#define MMAP_READAHEAD_EIGHTH		32
/*
 * While memory is short, what is read takes the place of what will be needed again:
 * for windows to grow, a request counts as so many times fewer pages.
 */
#define MMAP_READAHEAD_SCARCITY		16
/* Evicted pages are read again for so many requests before one is read alone. */
#define MMAP_READAHEAD_TRIAL		16
/* A program that sweeps a file again is expected to do so as often. */
#define MMAP_READAHEAD_SWEEPS		8

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
 */
struct mmap_readahead_read {
	unsigned long index;
	unsigned long start;
	unsigned long end;
	unsigned int size;
	unsigned char kind;
	bool pending;
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
 * struct mmap_readahead_sweeps - what reading again costs
 * @spent: so many pages' worth since pages were last read alone
 * @trial: when it comes to that, one is read alone
 * @alone: how many more may be read alone
 */
struct mmap_readahead_sweeps {
	unsigned long long spent;
	unsigned long long trial;
	unsigned long alone;
};

/**
 * struct mmap_readahead_state - what is known of one file; all zero: nothing
 * @reads: recent reads
 * @ahead: what single misses read ahead
 * @behind: what they read behind
 * @regions: where they gather
 * @sweeps: what reading again costs
 * @next: which of the reads to forget next
 * @evicted: how often single misses met pages that had been evicted, in 1/255
 * @begins: nobody continued the first read yet
 * @paid: what single misses and blocks have cost, in pages, up to twice the file's
 */
struct mmap_readahead_state {
	struct mmap_readahead_read reads[MMAP_READAHEAD_READS];
	struct mmap_readahead_side ahead;
	struct mmap_readahead_side behind;
	struct mmap_readahead_regions regions;
	struct mmap_readahead_sweeps sweeps;
	unsigned char next;
	unsigned char evicted;
	bool begins;
	unsigned int paid;
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
 * @file_paid: state.paid of all who have opened the file
 * @others_pages: size of all the device's other files that are open and known
 * @others_paid: state.paid of all who have opened these
 * @memory_pages: how many pages of files memory can hold
 * @max_pages: the most that one read may have, at least 1
 * @least_pages: what a read of one page brings, on file systems with larger blocks
 * @request_pages: what one request costs, in pages read, at least 1
 * @block_shift: a fault maps what is cached of 2^block_shift pages around itself
 * @look: what the page cache has of a page
 * @next_miss: the first page from @index on that is not cached, or @most pages on
 * @cache: for these two
 * @prior: what other files have taught; learns
 */
struct mmap_readahead_miss {
	unsigned long index;
	enum mmap_readahead_page page;
	unsigned long file_pages;
	unsigned long cached_pages;
	unsigned long file_paid;
	unsigned long others_pages;
	unsigned long others_paid;
	unsigned long memory_pages;
	unsigned int max_pages;
	unsigned int least_pages;
	unsigned int request_pages;
	unsigned int block_shift;
	enum mmap_readahead_page (*look)(const void *cache,
					 unsigned long index);
	unsigned long (*next_miss)(const void *cache, unsigned long index,
				   unsigned long most);
	const void *cache;
	struct mmap_readahead_prior *prior;
};

/**
 * struct mmap_readahead_answer - what to read for a miss
 * @start: first page
 * @size: pages, at least 1
 * @async_size: how many of the last ones lie behind the readahead mark
 * @order: folio size to ask for
 * @kind: why
 * @read: which of the reads of the state it is
 */
struct mmap_readahead_answer {
	unsigned long start;
	unsigned int size;
	unsigned int async_size;
	unsigned int order;
	enum mmap_readahead_kind kind;
	unsigned int read;
};

/* Evidence: what shares, the page cache and memory tell. */

/* Move a share an eighth of the way to all or nothing. */
static inline unsigned char mmap_readahead_share(unsigned char share, bool more)
{
	return more ? share + (255 - share + 7) / 8 : share - (share + 7) / 8;
}

/* Does it pay to read @pages each time, if that saves a request so often? */
static inline bool mmap_readahead_pays(unsigned char share, unsigned long pages,
				       unsigned long request_pages)
{
	return share * (pages + request_pages) >= 255 * pages;
}

static inline bool mmap_readahead_used(const struct mmap_readahead_miss *miss, unsigned long index)
{
	return miss->look(miss->cache, index) == MMAP_READAHEAD_USED;
}

/* Folio size of a read: one that it holds several of. */
static inline unsigned int mmap_readahead_order(unsigned int size)
{
	if (size >= 64)
		return ilog2(size) - 3;
	return size >= 4 ? 2 : 0;
}

/* Did the fault that asked for a read map a page, or another one of its folio? */
static inline bool
mmap_readahead_own(const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_read *read, unsigned long page)
{
	unsigned int shift = max(mmap_readahead_order(read->size), miss->block_shift);

	return page >> shift == read->index >> shift;
}

/* Are pages of the file evicted before they are needed again? */
static inline bool mmap_readahead_short(const struct mmap_readahead_state *state)
{
	return state->evicted > MMAP_READAHEAD_EIGHTH;
}

/* The most that streams and regions read at once: memory holds it twice for each read. */
static inline unsigned long mmap_readahead_limit(const struct mmap_readahead_miss *miss)
{
	return clamp_t(unsigned long, miss->memory_pages /
		       (2 * MMAP_READAHEAD_READS), 1, miss->max_pages);
}

/* Streams: misses that go on where an earlier read ended, or began. */

/*
 * Does a miss go on from a read that ends, or begins, with @edge? It does if the miss
 * that asked for the read is near, or if the read was used there.
 */
static inline bool
mmap_readahead_goes_on(const struct mmap_readahead_miss *miss,
		       const struct mmap_readahead_read *read,
		       unsigned long gap, unsigned long edge)
{
	if (abs_diff(miss->index, edge) > gap)
		return false;
	return abs_diff(miss->index, read->index) <= gap ||
	       (!mmap_readahead_own(miss, read, edge) && mmap_readahead_used(miss, edge));
}

/* Is another thread about to read the page, with the last window of @read? */
static inline bool
mmap_readahead_under_way(const struct mmap_readahead_miss *miss,
			 const struct mmap_readahead_read *read)
{
	unsigned long within = read->kind == MMAP_READAHEAD_BACKWARD ?
			       miss->index - read->start : read->end - miss->index;

	if (read->pending)
		return within < read->size;
	/* What arrived would have left a trace. */
	return miss->page == MMAP_READAHEAD_ABSENT && miss->index == read->index;
}

/*
 * The read that a miss goes on from, or NULL. Sets the direction: none if the page is
 * about to be read with it.
 *
 * How far from the last page that was used may a stream go on? Not so far that a request
 * of its own is cheaper, or a window holds less than two such pages.
 */
static inline struct mmap_readahead_read *
mmap_readahead_stream(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *miss,
		      enum mmap_readahead_kind *kind)
{
	unsigned long gap = min((miss->max_pages + 1) / 2, miss->request_pages);
	unsigned long low = miss->index - min(miss->index, gap);
	unsigned long high = miss->index + min(~miss->index, gap);
	struct mmap_readahead_read *read, *stream = NULL;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++) {
		bool forward = miss->index > read->end;

		/* Most are far away. */
		if (read->end < low || read->start > high || !read->size)
			continue;
		if (mmap_readahead_under_way(miss, read)) {
			*kind = MMAP_READAHEAD_SINGLE;
			return read;
		}
		if (stream || read->kind == MMAP_READAHEAD_FILL ||
		    !(forward || miss->index < read->start) ||
		    !mmap_readahead_goes_on(miss, read, gap,
					    forward ? read->end : read->start))
			continue;
		*kind = forward ? MMAP_READAHEAD_FORWARD : MMAP_READAHEAD_BACKWARD;
		stream = read;
	}
	return stream;
}

/*
 * About how long is the run that ends before a page? Where pages ever farther back were
 * used there is one, be it of a stream that was forgotten because too many share the
 * file. Of what was read with a page that was used alone, its block is mapped.
 */
static inline unsigned int
mmap_readahead_run(const struct mmap_readahead_state *state,
		   const struct mmap_readahead_miss *miss)
{
	unsigned int most = max(miss->request_pages, 2U << miss->block_shift);
	unsigned int alone, pages = 1;

	if (!miss->index || !mmap_readahead_used(miss, miss->index - 1))
		return 0;
	while (2 * pages <= min(miss->index, most) &&
	       mmap_readahead_used(miss, miss->index - 2 * pages))
		pages *= 2;
	alone = clamp_t(unsigned int, max(state->ahead.order, state->behind.order),
			1, max(miss->block_shift, 1U));
	return pages > 1U << alone ? pages : 0;
}

/*
 * Read @size pages on in the direction of answer->kind. @gap pages before the miss that
 * the stream left out are read as well, unless they are most of it.
 */
static inline void
mmap_readahead_answer_stream(const struct mmap_readahead_miss *miss,
			     unsigned long size, unsigned long gap,
			     struct mmap_readahead_answer *answer)
{
	if (gap >= size || size + gap > miss->max_pages)
		gap = 0;
	if (answer->kind == MMAP_READAHEAD_FORWARD) {
		answer->start = miss->index - gap;
		answer->async_size = size / 2;
	} else {
		size = min(size, miss->index + 1);
		answer->start = miss->index - (size - 1);
	}
	answer->size = size + gap;
}

/* Neighbourhood: what single misses read ahead and behind. */

/* A read was continued: its window was too small on this side. */
static inline void
mmap_readahead_learn_continued(const struct mmap_readahead_state *state,
			       const struct mmap_readahead_miss *miss,
			       struct mmap_readahead_side *side)
{
	unsigned int request = DIV_ROUND_UP(miss->request_pages, mmap_readahead_short(state) ?
					    MMAP_READAHEAD_SCARCITY : 1);

	side->quiet = 0;
	side->continued = mmap_readahead_share(side->continued, true);
	if (2UL << side->order > miss->max_pages ||
	    !mmap_readahead_pays(side->continued, 1UL << side->order, request))
		return;
	side->order++;
	side->used = MMAP_READAHEAD_HALF;
	side->patience = min(2 * side->patience, MMAP_READAHEAD_MAX_PATIENCE);
}

/*
 * A read is forgotten that nobody continued: was the outer half of its window, up to
 * @far, worth it? Two pages of that half tell. If the miss itself had that mapped, the
 * only way to know is to try without.
 */
static inline void
mmap_readahead_learn_used(const struct mmap_readahead_miss *miss,
			  const struct mmap_readahead_read *read,
			  unsigned long far, struct mmap_readahead_side *side)
{
	unsigned long near = far - (long)(far - read->index) * 3 / 8;

	/* Single pages continue to do. */
	if (!(side->order | side->continued))
		return;
	/* It had less than half of what is read today. */
	if (2 * abs_diff(far, read->index) + 1 < 1UL << side->order)
		return;
	side->continued = mmap_readahead_share(side->continued, false);
	if (!side->order)
		return;
	side->quiet = min(side->quiet + 1, MMAP_READAHEAD_MAX_PATIENCE);
	if (mmap_readahead_own(miss, read, far)) {
		if (side->quiet < side->patience)
			return;
	} else {
		bool used = mmap_readahead_used(miss, far) ||
			    (!mmap_readahead_own(miss, read, near) &&
			     mmap_readahead_used(miss, near));

		side->used = mmap_readahead_share(side->used, used);
		if (mmap_readahead_pays(side->used, 1UL << (side->order - 1),
					miss->request_pages))
			return;
	}
	side->order--;
	side->used = MMAP_READAHEAD_HALF;
	side->quiet = 0;
}

/* What a single miss reads beside its own page: as much as has paid. */
static inline void
mmap_readahead_answer_single(struct mmap_readahead_state *state,
			     const struct mmap_readahead_miss *miss,
			     struct mmap_readahead_answer *answer)
{
	unsigned long ahead, behind;

	/* The limit may have become lower since these were learnt. */
	state->ahead.order = min(state->ahead.order, ilog2(miss->max_pages));
	state->behind.order = min(state->behind.order, ilog2(miss->max_pages));
	ahead = (1UL << state->ahead.order) - 1;
	behind = (1UL << state->behind.order) - 1;
	if (ahead + behind >= miss->max_pages) {
		behind = min(behind, miss->max_pages / 2UL);
		ahead = min(ahead, miss->max_pages - behind - 1);
	}
	behind = min(behind, miss->index);
	answer->kind = MMAP_READAHEAD_SINGLE;
	answer->start = miss->index - behind;
	answer->size = 1 + ahead + behind;
}

/* Prior: what the first misses of files should have read. */

/* The second miss of a file tells whether twice as much would have saved it. */
static inline void
mmap_readahead_learn_begun(struct mmap_readahead_beginning *begin,
			   const struct mmap_readahead_miss *miss, bool continued)
{
	unsigned char share;

	begin->waits = false;
	begin->quiet = 0;
	begin->files = min(begin->files + 1, 64);
	begin->continued += ((continued ? 65535 : 0) - begin->continued) / begin->files;
	share = begin->continued >> 8;
	if (mmap_readahead_pays(share, 1UL << begin->order, miss->request_pages)) {
		if (!continued || 2UL << begin->order > miss->max_pages)
			return;
		/* Faster as long as no file did otherwise. */
		begin->order = min_t(unsigned int, ilog2(miss->max_pages),
				     begin->order + 1 + (begin->continued == 65535));
		begin->patience = min(2 * begin->patience, MMAP_READAHEAD_MAX_PATIENCE);
	} else if (begin->order &&
		   !mmap_readahead_pays(share, 1UL << (begin->order - 1),
					miss->request_pages)) {
		begin->order--;
	}
}

/* A file has begun. If the one before never missed again, less may do as well. */
static inline void mmap_readahead_await(struct mmap_readahead_beginning *begin)
{
	if (!begin->patience) {
		begin->order = MMAP_READAHEAD_FIRST_ORDER;
		begin->patience = MMAP_READAHEAD_PATIENCE;
	}
	if (begin->waits && ++begin->quiet >= begin->patience && begin->order) {
		begin->order--;
		begin->quiet = 0;
	}
	begin->waits = true;
}

/* The first miss of a file reads what other files should have begun with. */
static inline void mmap_readahead_begin(struct mmap_readahead_state *state,
					const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_side side = {
		.used = MMAP_READAHEAD_HALF,
		.patience = MMAP_READAHEAD_PATIENCE,
	};

	if (miss->index || !miss->prior->ahead.patience) {
		mmap_readahead_await(&miss->prior->ahead);
		mmap_readahead_await(&miss->prior->behind);
	}
	if (!miss->index)
		mmap_readahead_await(&miss->prior->start);
	*state = (struct mmap_readahead_state) {
		.ahead = side,
		.behind = side,
		.begins = true,
	};
	/* Nobody locks the prior, so that it may be anything. */
	state->ahead.order = min_t(unsigned int, miss->prior->ahead.order,
				   ilog2(miss->max_pages));
	if (miss->file_pages <= MMAP_READAHEAD_SMALL_FILE)
		state->behind.order = min_t(unsigned int, miss->prior->behind.order,
					    ilog2(miss->max_pages));
}

/* The second time, that was a stream that went on from the first, or a single miss. */
static inline void
mmap_readahead_begun(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     enum mmap_readahead_kind kind)
{
	const struct mmap_readahead_read *first = &state->reads[0];
	unsigned int size = max(first->size, miss->least_pages);

	if (!state->begins || !first->size)
		return;
	state->begins = false;
	/* Neither had twice as much held this one. */
	if (miss->index > first->end + size || miss->index + size < first->start)
		kind = MMAP_READAHEAD_SINGLE;
	mmap_readahead_learn_begun(first->index ? &miss->prior->ahead : &miss->prior->start, miss,
				   kind == MMAP_READAHEAD_FORWARD);
	if (first->index)
		mmap_readahead_learn_begun(&miss->prior->behind, miss,
					   kind == MMAP_READAHEAD_BACKWARD);
}

/* The first page of a file. If most files went on from there, a stream begins. */
static inline void
mmap_readahead_answer_first(const struct mmap_readahead_miss *miss,
			    struct mmap_readahead_answer *answer)
{
	const struct mmap_readahead_beginning *start = &miss->prior->start;

	answer->kind = MMAP_READAHEAD_SINGLE;
	answer->size = min(1UL << min_t(unsigned int, start->order, ilog2(miss->max_pages)),
			   mmap_readahead_limit(miss));
	if (start->continued >= 65535 / 2) {
		answer->kind = MMAP_READAHEAD_FORWARD;
		answer->async_size = answer->size / 2;
	}
}

/* Region: where single misses have cost what reading all of it costs. */

/* Count what gathers now for more than what did before, by 2^@shift times. */
static inline void mmap_readahead_age(struct mmap_readahead_regions *regions, unsigned int shift)
{
	unsigned int i;

	regions->nr = 0;
	for (i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		regions->nr += regions->misses[i] >>= shift;
}

/*
 * Do other files of the device forbid to fill @like pages of this one? They may if more
 * than a fourth as much was paid for them, for their size. They do if memory cannot hold
 * them besides, or if they are no less than this file, and less was paid than reading all of
 * them costs: many files are touched here and there. Until it has cost twice its size, for
 * they may be idle.
 */
static inline bool
mmap_readahead_others_forbid(const struct mmap_readahead_miss *miss, unsigned long like)
{
	unsigned long long own, theirs;

	if (check_mul_overflow((unsigned long long)miss->file_paid, miss->others_pages, &own) ||
	    check_mul_overflow(4ULL * miss->others_paid, miss->file_pages, &theirs))
		return false;
	return own < theirs &&
	       (4ULL * (miss->others_pages + like) > 5ULL * miss->memory_pages ||
		(miss->others_pages >= miss->file_pages &&
		 miss->others_paid < miss->others_pages &&
		 miss->file_paid < 2ULL * miss->file_pages));
}

/*
 * Count a single miss for its region, and tell whether that is to be read. Steps of up
 * to three requests' worth in one direction sweep the file: they do not count, and fill
 * nothing. Where the region is full already they read its blocks, unless memory is short.
 *
 * A region is like this one if it has at least half its misses, or two less: what is the
 * same may have as few by chance. Misses that turn about are those of a program that may
 * stay where it is. If few regions that are not filled yet are like this one, misses
 * gather there, and it takes fewer of them. But then, where steps are small, and while
 * memory is short, that has to hold all that are like it.
 */
static inline bool
mmap_readahead_fills(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned int shift = max_t(int, ilog2(miss->file_pages) - 3,
				   ilog2(miss->request_pages) +
				   MMAP_READAHEAD_REGION_ORDER);
	unsigned int region = miss->index >> shift;
	unsigned int nr = ((miss->file_pages - 1) >> shift) + 1;
	bool near = abs_diff(miss->index, regions->last) <= 3UL * miss->request_pages;
	bool up = miss->index > regions->last;
	bool is_short = mmap_readahead_short(state);
	unsigned long pages, need, enough, like = 0;
	unsigned int here, i, open = 0;
	bool counts, turns, fits;

	regions->turns = mmap_readahead_share(regions->turns, up != regions->up);
	regions->last = miss->index;
	regions->up = up;
	counts = !near || regions->turns > MMAP_READAHEAD_EIGHTH;
	turns = regions->turns > MMAP_READAHEAD_HALF / 2;
	if (!counts && is_short)
		return false;

	/* Not all that was counted is still there, or it was of other regions. */
	if (regions->shift != shift || regions->nr > miss->cached_pages)
		mmap_readahead_age(regions, 31);
	regions->shift = shift;
	if (is_short && regions->nr >= miss->memory_pages / miss->request_pages)
		mmap_readahead_age(regions, 1);

	here = regions->misses[region] += counts;
	regions->nr += counts;
	pages = min(1UL << shift, miss->file_pages - ((unsigned long)region << shift));
	/* So many misses cost three eighths of what reading all of it costs. */
	enough = 3 * pages / (8 * (miss->request_pages + 1UL)) + 1;
	need = is_short ? 8 * enough / 3 : enough;
	if (here < need && !counts)
		return false;
	/* Misses all over the file may come to need all of it. */
	if (counts && !turns && !is_short)
		return here >= need &&
		       !mmap_readahead_others_forbid(miss, min(miss->file_pages,
							       miss->others_pages));
	for (i = 0; i < nr; i++) {
		if (2 * regions->misses[i] + 4 < here)
			continue;
		like += min(1UL << shift, miss->file_pages - ((unsigned long)i << shift));
		open += regions->misses[i] < need;
	}
	enough = turns && 3 * open < 2 * nr ? enough * 3 * open / (2 * nr) : need;
	/* A quarter more than memory holds is not much lost again. */
	fits = 4ULL * like <= 5ULL * miss->memory_pages;
	if (here < enough || (fits && mmap_readahead_others_forbid(miss, like)))
		return false;
	/* It is to be filled, and unlike the others. */
	if (here < need) {
		regions->nr += need - here;
		regions->misses[region] = need;
	}
	return fits;
}

/* Sweeps: pages far apart that are needed again and again. */

/* Has reading again, which now costs @cost more, cost so much that a page is tried? */
static inline bool
mmap_readahead_trial(struct mmap_readahead_sweeps *sweeps,
		     const struct mmap_readahead_miss *miss,
		     enum mmap_readahead_page page, unsigned long cost)
{
	if (page != MMAP_READAHEAD_EVICTED)
		return false;
	sweeps->spent += cost;
	return sweeps->spent >= max(sweeps->trial, (unsigned long long)
				    MMAP_READAHEAD_TRIAL * miss->request_pages);
}

/*
 * Is a miss to read its page alone instead of @size pages? It goes on from @read, or from
 * nothing if that is NULL. Behind a page that was read alone, the miss shows how far it
 * is to the next one that is needed. If memory holds all pages that are so far apart,
 * and reading again has cost as much as reading those one by one, or is expected to, as
 * many may be read alone.
 */
static inline bool
mmap_readahead_alone(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     const struct mmap_readahead_read *read, unsigned int size)
{
	struct mmap_readahead_sweeps *sweeps = &state->sweeps;

	if (size < 2 || miss->page != MMAP_READAHEAD_EVICTED)
		return false;
	if (read && read->kind == MMAP_READAHEAD_FORWARD && read->size == 1) {
		unsigned long least = miss->least_pages;
		unsigned long step = miss->index / least - read->index / least;
		unsigned long reads = miss->file_pages / least / max(step, 1UL);
		unsigned long long cost = (unsigned long long)reads * miss->request_pages;

		/* If the very next block is needed, this is no sweep. */
		if (step <= 1 || reads * least > miss->memory_pages) {
			sweeps->alone = 0;
		} else if (!sweeps->alone && sweeps->spent + MMAP_READAHEAD_SWEEPS *
			   (unsigned long long)miss->file_pages >= cost) {
			sweeps->alone = reads + reads / 4;
			sweeps->trial = cost;
			sweeps->spent = 0;
		}
	} else if (!sweeps->alone && mmap_readahead_trial(sweeps, miss, miss->page,
							  size + miss->request_pages)) {
		sweeps->trial = 2 * sweeps->spent;
		sweeps->alone = 1;
	}
	if (!sweeps->alone)
		return false;
	sweeps->alone--;
	return true;
}

/* The arbiter. */

/* A miss goes on from a read, in the direction that answer->kind has. */
static inline void
mmap_readahead_go_on(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     const struct mmap_readahead_read *read,
		     struct mmap_readahead_answer *answer)
{
	bool forward = answer->kind == MMAP_READAHEAD_FORWARD;
	unsigned long size = 2UL * read->size;
	unsigned long limit = mmap_readahead_limit(miss);
	unsigned long gap = forward ? miss->index - read->end - 1 :
				      read->start - miss->index - 1;

	if (read->kind == MMAP_READAHEAD_SINGLE) {
		struct mmap_readahead_side *side = forward ? &state->ahead : &state->behind;

		/* After a gap it may be chance. */
		size = side->order || gap ? 1UL << side->order : 2;
		if (gap < read->size)
			mmap_readahead_learn_continued(state, miss, side);
	}
	size = min(size, limit);
	if (forward && mmap_readahead_alone(state, miss, read, size))
		size = 1;
	mmap_readahead_answer_stream(miss, size, gap, answer);
}

/* A miss goes on from nothing that is remembered. */
static inline void
mmap_readahead_start(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     struct mmap_readahead_answer *answer)
{
	unsigned long run = mmap_readahead_run(state, miss);
	unsigned long limit = mmap_readahead_limit(miss);

	state->evicted = mmap_readahead_share(state->evicted,
					      miss->page == MMAP_READAHEAD_EVICTED);
	answer->kind = MMAP_READAHEAD_FORWARD;
	if (run) {
		mmap_readahead_answer_stream(miss, min(run, limit), 0, answer);
	} else if (mmap_readahead_fills(state, miss)) {
		/* While memory is short, a block is worth two requests. */
		if (mmap_readahead_short(state))
			limit = min(limit, 2UL * miss->request_pages);
		answer->kind = MMAP_READAHEAD_FILL;
		answer->size = 1U << min_t(int, ilog2(limit), state->regions.shift);
		answer->start = round_down(miss->index, answer->size);
	} else if (mmap_readahead_alone(state, miss, NULL, 1U << state->ahead.order)) {
		mmap_readahead_answer_stream(miss, 1, 0, answer);
	} else if (!miss->index && !state->reads[0].size) {
		mmap_readahead_answer_first(miss, answer);
	} else {
		mmap_readahead_answer_single(state, miss, answer);
	}
}

/* Cut an answer to the file, behind which there is nothing, and remember it as @read. */
static inline void
mmap_readahead_finish(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *miss,
		      struct mmap_readahead_read *read,
		      struct mmap_readahead_answer *answer)
{
	if (answer->size >= miss->file_pages - answer->start) {
		answer->size = miss->file_pages - answer->start;
		answer->async_size = 0;
	}
	answer->order = mmap_readahead_order(answer->size);
	if (answer->kind == MMAP_READAHEAD_SINGLE || answer->kind == MMAP_READAHEAD_FILL)
		state->paid = min3((unsigned long long)state->paid + answer->size +
				   miss->request_pages, 2ULL * miss->file_pages,
				   (unsigned long long)~0U);
	if (!read)
		return;
	answer->read = read - state->reads;
	read->index = miss->index;
	read->end = max(read->end, answer->start + answer->size - 1);
	read->size = answer->size;
	read->pending = answer->size > 1;
}

/**
 * mmap_readahead_settled - whether a miss reads its page alone without more ado
 * @state: what is known of the file; learns
 * @miss: the miss, without its page, memory and other files
 * @answer: set if it does
 *
 * Judging costs about as much as a request of a device in memory. Where single pages are
 * read, none was continued for long, and the region has not two thirds of the misses that
 * fill it, four of 32 are judged, and the others are counted.
 */
static inline bool
mmap_readahead_settled(struct mmap_readahead_state *state,
		       const struct mmap_readahead_miss *miss,
		       struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned long region = miss->index >> regions->shift;

	if (state->ahead.order | state->ahead.continued | state->behind.order |
	    state->behind.continued || region >= MMAP_READAHEAD_REGIONS ||
	    abs_diff(miss->index, regions->last) <= 3UL * miss->request_pages ||
	    regions->misses[region] % (8 * MMAP_READAHEAD_PATIENCE) < MMAP_READAHEAD_PATIENCE ||
	    4ULL * regions->misses[region] * (miss->request_pages + 1UL) >=
	    min(1UL << regions->shift, miss->file_pages - (region << regions->shift)) ||
	    mmap_readahead_used(miss, max(miss->index, 1UL) - 1))
		return false;
	regions->last = miss->index;
	regions->misses[region]++;
	regions->nr++;
	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	mmap_readahead_finish(state, miss, NULL, answer);
	return true;
}

/**
 * mmap_readahead_adapt - what to read for a miss that is not settled
 * @state: what is known of the file; learns
 * @miss: the miss
 * @answer: set to a read of pages of the file that holds @miss->index
 */
static inline void
mmap_readahead_adapt(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read;

	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	if (!state->ahead.patience)
		mmap_readahead_begin(state, miss);
	read = mmap_readahead_stream(state, miss, &answer->kind);
	if (read && answer->kind == MMAP_READAHEAD_SINGLE)
		return;
	mmap_readahead_begun(state, miss, answer->kind);
	if (read) {
		mmap_readahead_go_on(state, miss, read, answer);
	} else {
		read = &state->reads[state->next];
		state->next = (state->next + 1) % MMAP_READAHEAD_READS;
		if (read->size && read->kind == MMAP_READAHEAD_SINGLE) {
			mmap_readahead_learn_used(miss, read, read->end, &state->ahead);
			mmap_readahead_learn_used(miss, read, read->start, &state->behind);
		}
		mmap_readahead_start(state, miss, answer);
		read->start = miss->index;
		read->end = miss->index;
	}
	mmap_readahead_finish(state, miss, read, answer);
	read->start = min(read->start, answer->start);
	read->kind = answer->kind;
}

/**
 * mmap_readahead_mark - what to read when a stream comes to its readahead mark
 * @state: what is known of the file; learns
 * @mark: the page that has the mark, and the rest as for a miss
 * @answer: set to a read of no pages if there is nothing to read
 *
 * Once requests are large enough each is a quarter larger than the one before: nobody
 * waits for them, so growing faster gains little, and what is read beyond the end of a
 * long stream comes down to about half of it. At any other mark a stream was forgotten,
 * which reads on by what is still there of it, and stays so.
 */
static inline void
mmap_readahead_mark(struct mmap_readahead_state *state,
		    const struct mmap_readahead_miss *mark,
		    struct mmap_readahead_answer *answer)
{
	unsigned long size, end;
	struct mmap_readahead_read *read, *stream = NULL;

	*answer = (struct mmap_readahead_answer) { .kind = MMAP_READAHEAD_FORWARD };
	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->kind == MMAP_READAHEAD_FORWARD && mark->index <= read->end &&
		    read->end - mark->index < read->size)
			stream = read;
	if (stream) {
		mmap_readahead_begun(state, mark, MMAP_READAHEAD_FORWARD);
		end = stream->end;
		size = stream->size < mark->request_pages ? 2 * stream->size :
		       stream->size + (stream->size + 3) / 4;
	} else {
		size = min(mmap_readahead_run(state, mark), mark->request_pages);
		end = mark->next_miss(mark->cache, mark->index, size) - 1;
		/* No run, or evicted by now. */
		if (end - mark->index >= size)
			return;
	}
	answer->start = end + 1;
	if (answer->start >= mark->file_pages)
		return;
	size = min(size, mmap_readahead_limit(mark));
	/* A trial takes a miss, which goes on from a read. */
	if (stream && mmap_readahead_trial(&state->sweeps, mark,
					   mark->look(mark->cache, answer->start), size))
		return;
	answer->size = size;
	mmap_readahead_finish(state, mark, stream, answer);
	answer->async_size = answer->size;
}

/**
 * mmap_readahead_submitted - what an answer asked for is in the page cache, or will not be
 * @state: what is known of the file
 * @answer: the answer, of more than a page
 *
 * Until then, misses in it are taken for those of other threads that came too early. Of
 * a single page, which a fault may read itself, nothing is to be told.
 */
static inline void
mmap_readahead_submitted(struct mmap_readahead_state *state,
			 const struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read = &state->reads[answer->read];

	/* It may have been forgotten meanwhile. */
	if (answer->start >= read->start && answer->start <= read->end)
		read->pending = false;
}

#endif /* _LINUX_MMAP_READAHEAD_WINDOW_H */
