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
 *     goes on from a recent read?  -- yes --> stream     of a stream, or of a
 *                 | no                        window     single miss that was
 *     comes behind a used run?     -- yes --> doubles    forgotten?
 *                 | no                          |            |
 *     its region fills up, and                  |        stream reads on
 *     memory can hold all such?    -- yes --> region: the aligned block
 *                 | no                          |
 *     neighbourhood: as many pages              |
 *     ahead and behind as have paid ------------+
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
#include <linux/types.h>

/* Reads that are remembered; as many streams can share a file at no cost. */
#define MMAP_READAHEAD_READS		8
/* If there are more, they are expected to be up to so many, and memory to hold a window of each. */
#define MMAP_READAHEAD_MANY		512UL
/* Most regions of a file, and log2 of the requests that the smallest is worth. */
#define MMAP_READAHEAD_REGIONS		16
#define MMAP_READAHEAD_REGION_ORDER	5
/* So many requests' worth apart, steps do not fill a region: more than 8/3. */
#define MMAP_READAHEAD_SWEEP		3
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
 * struct mmap_readahead_state - what is known of one file; all zero: nothing
 * @reads: recent reads
 * @ahead: what single misses read ahead
 * @behind: what they read behind
 * @regions: where they gather
 * @next: which of the reads to forget next
 * @evicted: how often single misses met pages that had been evicted, in 1/255
 */
struct mmap_readahead_state {
	struct mmap_readahead_read reads[MMAP_READAHEAD_READS];
	struct mmap_readahead_side ahead;
	struct mmap_readahead_side behind;
	struct mmap_readahead_regions regions;
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

/*
 * Folio size of a read. What goes on, or fills a region, is used to the last page, and one
 * folio may hold all of it. Of a single miss, and backward, a folio is a fourth at most.
 */
static inline unsigned int mmap_readahead_order(unsigned int size, enum mmap_readahead_kind kind)
{
	if (kind == MMAP_READAHEAD_FORWARD || kind == MMAP_READAHEAD_FILL)
		return ilog2(size);
	if (size >= 64)
		return ilog2(size) - 3;
	return size >= 4 ? 2 : 0;
}

/* Did the fault that asked for a read map a page, or another one of its folio? */
static inline bool
mmap_readahead_own(const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_read *read, unsigned long page)
{
	unsigned int order = min(mmap_readahead_order(read->size, read->kind), miss->max_order);
	unsigned int shift = max(order, miss->block_shift);

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
	answer->async_size = ahead / 2;
}

/*
 * Is nothing cached any more of what was learnt from? What is under way will be, and is not to be
 * read twice.
 */
static inline bool mmap_readahead_outlived(const struct mmap_readahead_state *state,
					   const struct mmap_readahead_miss *miss)
{
	const struct mmap_readahead_read *read;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->pending)
			return false;
	return !miss->cached_pages;
}

/* The first miss of a file: nothing is known of it. */
static inline void mmap_readahead_begin(struct mmap_readahead_state *state,
					const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_side side = {
		.order = min_t(unsigned int, MMAP_READAHEAD_FIRST_ORDER, ilog2(miss->max_pages)),
		.used = MMAP_READAHEAD_HALF,
		.patience = MMAP_READAHEAD_PATIENCE,
	};

	*state = (struct mmap_readahead_state) {
		.ahead = side,
		.behind = side,
	};
	if (miss->file_pages > MMAP_READAHEAD_SMALL_FILE)
		state->behind.order = 0;
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

/* Did the miss before come so near that the two may be steps of a sweep? */
static inline bool mmap_readahead_near(const struct mmap_readahead_regions *regions,
				       const struct mmap_readahead_miss *miss)
{
	return abs_diff(miss->index, regions->last) <=
	       MMAP_READAHEAD_SWEEP * (unsigned long)miss->request_pages;
}

/*
 * Count a single miss for its region, and tell whether that is to be read. Steps of so few
 * requests' worth that they alone would fill regions sweep the file if all go in one
 * direction: they do not count, and fill nothing. Where the region is full already they read
 * its blocks, unless memory is short.
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
	bool near = mmap_readahead_near(regions, miss);
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
		return here >= need;
	for (i = 0; i < nr; i++) {
		if (2 * regions->misses[i] + 4 < here)
			continue;
		like += min(1UL << shift, miss->file_pages - ((unsigned long)i << shift));
		open += regions->misses[i] < need;
	}
	enough = turns && 3 * open < 2 * nr ? enough * 3 * open / (2 * nr) : need;
	/* A quarter more than memory holds is not much lost again. */
	fits = 4ULL * like <= 5ULL * miss->memory_pages;
	if (here < enough)
		return false;
	/* It is to be filled, and unlike the others. */
	if (here < need) {
		regions->nr += need - here;
		regions->misses[region] = need;
	}
	return fits;
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
	answer->order = mmap_readahead_order(answer->size, answer->kind);
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
 * @miss: the miss, without its page and memory
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

	if (!miss->cached_pages || state->ahead.order | state->ahead.continued |
	    state->behind.order | state->behind.continued || region >= MMAP_READAHEAD_REGIONS ||
	    mmap_readahead_near(regions, miss) ||
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
	if (!state->ahead.patience || mmap_readahead_outlived(state, miss))
		mmap_readahead_begin(state, miss);
	read = mmap_readahead_stream(state, miss, &answer->kind);
	if (read && answer->kind == MMAP_READAHEAD_SINGLE)
		return;
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

/* Does no read that is remembered hold a mark? */
static inline bool
mmap_readahead_forgotten(const struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *mark)
{
	const struct mmap_readahead_read *read;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->size && mark->index >= read->start && mark->index <= read->end)
			return false;
	return true;
}

/**
 * mmap_readahead_mark - what to read when an access comes to a readahead mark
 * @state: what is known of the file; learns
 * @mark: the page that has the mark, and the rest as for a miss
 * @answer: set to a read of no pages if there is nothing to read
 *
 * A stream has a mark in its last read, and goes on there. A single miss leaves one as well, in
 * the middle of what it reads ahead. As long as that read is remembered, the mark tells nothing
 * that the next miss does not. Once it is forgotten, because more streams share the file than
 * are remembered, the mark proves that what was read ahead is used.
 *
 * Return: false if single misses leave no marks, and no used page is before this one. Then it is
 * of somebody who read() the file.
 */
static inline bool
mmap_readahead_mark(struct mmap_readahead_state *state,
		    const struct mmap_readahead_miss *mark,
		    struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read, *stream = NULL;
	unsigned long size, end;

	*answer = (struct mmap_readahead_answer) {
		.kind = MMAP_READAHEAD_FORWARD,
		.read = MMAP_READAHEAD_READS,
	};
	if (!state->ahead.patience)
		return false;
	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->kind == MMAP_READAHEAD_FORWARD && mark->index <= read->end &&
		    read->end - mark->index < read->size)
			stream = read;
	if (!stream && !mmap_readahead_forgotten(state, mark))
		return true;
	if (stream) {
		end = stream->end;
		size = stream->size < mark->request_pages ? 2 * stream->size :
		       stream->size + (stream->size + 3) / 4;
	} else {
		size = max(mmap_readahead_run(state, mark), 1U << state->ahead.order);
		/* Nothing says that it is of a miss. */
		if (size == 1)
			return false;
		size = min3(size, mark->request_pages, mmap_readahead_limit(mark));
		end = mark->next_miss(mark->cache, mark->index + 1, size) - 1;
		/* So much is there still that nothing is to be read yet. */
		if (end - mark->index >= size)
			return true;
		if ((1U << state->ahead.order < 2 * mark->request_pages &&
		     MMAP_READAHEAD_MANY << state->ahead.order <= mark->memory_pages) ||
		    mark->file_pages <= mark->memory_pages)
			mmap_readahead_learn_continued(state, mark, &state->ahead);
	}
	answer->start = end + 1;
	if (answer->start >= mark->file_pages)
		return true;
	answer->size = min(size, mmap_readahead_limit(mark));
	answer->async_size = answer->size;
	mmap_readahead_finish(state, mark, stream, answer);
	return true;
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
	if (answer->read < MMAP_READAHEAD_READS &&
	    answer->start >= read->start && answer->start <= read->end)
		read->pending = false;
}

#endif /* _LINUX_MMAP_READAHEAD_WINDOW_H */
