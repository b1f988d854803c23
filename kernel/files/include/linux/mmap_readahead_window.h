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
 */
struct mmap_readahead_read {
	unsigned long index;
	unsigned long start;
	unsigned long end;
	unsigned int size;
	unsigned char kind;
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
 * @up: and whether it came behind the one before
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
 * @known: whether all of this is set up
 */
struct mmap_readahead_state {
	struct mmap_readahead_read reads[MMAP_READAHEAD_READS];
	struct mmap_readahead_side ahead;
	struct mmap_readahead_side behind;
	struct mmap_readahead_regions regions;
	struct mmap_readahead_sweeps sweeps;
	unsigned char next;
	unsigned char evicted;
	bool known;
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
 */
struct mmap_readahead_answer {
	unsigned long start;
	unsigned int size;
	unsigned int async_size;
	unsigned int order;
	enum mmap_readahead_kind kind;
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

static inline bool mmap_readahead_used(const struct mmap_readahead_miss *miss,
				       unsigned long index)
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
	unsigned int shift = max(mmap_readahead_order(read->size),
				 miss->block_shift);

	return page >> shift == read->index >> shift;
}

/* Are pages of the file evicted before they are needed again? */
static inline bool
mmap_readahead_short(const struct mmap_readahead_state *state)
{
	return state->evicted > MMAP_READAHEAD_EIGHTH;
}

/* The most that streams and regions read at once: memory holds it twice for each read. */
static inline unsigned long
mmap_readahead_limit(const struct mmap_readahead_miss *miss)
{
	return clamp_t(unsigned long, miss->memory_pages /
		       (2 * MMAP_READAHEAD_READS), 1, miss->max_pages);
}

/* Streams: misses that go on where an earlier read ended, or began. */

/*
 * How far from the last page that was used may a stream go on? Not so far that a
 * request of its own is cheaper, or a window holds less than two such pages.
 */
static inline unsigned long
mmap_readahead_gap(const struct mmap_readahead_miss *miss)
{
	return min((miss->max_pages + 1) / 2, miss->request_pages);
}

/*
 * Does a miss go on from a read that ends, or begins, with @edge? It does if the miss
 * that asked for the read is near, or if the read was used there: its last page, or
 * @inner, which lies half a gap within.
 */
static inline bool
mmap_readahead_goes_on(const struct mmap_readahead_miss *miss,
		       const struct mmap_readahead_read *read,
		       unsigned long gap, unsigned long edge,
		       unsigned long inner)
{
	if (abs_diff(miss->index, edge) > gap)
		return false;
	if (abs_diff(miss->index, read->index) <= gap)
		return true;
	if (mmap_readahead_own(miss, read, edge))
		return false;
	if (mmap_readahead_used(miss, edge))
		return true;
	return inner >= read->start && inner <= read->end &&
	       !mmap_readahead_own(miss, read, inner) &&
	       mmap_readahead_used(miss, inner);
}

/*
 * Is another thread about to read the page, with the last window of @read? Pages are
 * added in order: if the one before is there, and did not come from another window, the
 * read was cut off.
 */
static inline bool
mmap_readahead_under_way(const struct mmap_readahead_miss *miss,
			 const struct mmap_readahead_read *read)
{
	unsigned long within = read->kind == MMAP_READAHEAD_BACKWARD ?
			       miss->index - read->start :
			       read->end - miss->index;

	return within < read->size && miss->page == MMAP_READAHEAD_ABSENT &&
	       (miss->index == read->index ||
		miss->look(miss->cache, miss->index - 1) < MMAP_READAHEAD_CACHED);
}

/*
 * The read that a miss goes on from, or NULL. Sets the direction, and @under_way if the
 * page is about to be read.
 */
static inline struct mmap_readahead_read *
mmap_readahead_stream(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *miss,
		      enum mmap_readahead_kind *kind, bool *under_way)
{
	unsigned long gap = mmap_readahead_gap(miss);
	unsigned long low = miss->index - min(miss->index, gap);
	unsigned long high = miss->index + min(~miss->index, gap);
	struct mmap_readahead_read *read, *stream = NULL;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS;
	     read++) {
		/* Most are far away. */
		if (read->end < low || read->start > high || !read->size)
			continue;
		if (mmap_readahead_under_way(miss, read))
			*under_way = true;
		if (stream || read->kind == MMAP_READAHEAD_FILL)
			continue;
		if (miss->index < read->start &&
		    mmap_readahead_goes_on(miss, read, gap, read->start,
					   read->start + gap / 2)) {
			*kind = MMAP_READAHEAD_BACKWARD;
			stream = read;
		} else if (miss->index > read->end &&
			   mmap_readahead_goes_on(miss, read, gap, read->end,
						  read->end - gap / 2)) {
			*kind = MMAP_READAHEAD_FORWARD;
			stream = read;
		}
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
	if (gap > size || size + gap > miss->max_pages)
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
	unsigned int request = miss->request_pages;

	if (mmap_readahead_short(state))
		request = DIV_ROUND_UP(request, MMAP_READAHEAD_SCARCITY);
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
 * A read is forgotten that nobody continued: was the outer half of its window worth it?
 * @near and @far are pages of that half. If the miss itself had that mapped, the only
 * way to know is to try without.
 */
static inline void
mmap_readahead_learn_used(const struct mmap_readahead_miss *miss,
			  const struct mmap_readahead_read *read,
			  unsigned long near, unsigned long far,
			  struct mmap_readahead_side *side)
{
	side->continued = mmap_readahead_share(side->continued, false);
	side->quiet = min(side->quiet + 1, MMAP_READAHEAD_MAX_PATIENCE);
	if (!side->order)
		return;
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

/* What single misses read beside their own page: as much as has paid. */
static inline void
mmap_readahead_sides(const struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     unsigned long *ahead, unsigned long *behind)
{
	*ahead = (1UL << state->ahead.order) - 1;
	*behind = (1UL << state->behind.order) - 1;
	if (1 + *ahead + *behind > miss->max_pages) {
		*behind = min(*behind, miss->max_pages / 2UL);
		*ahead = min(*ahead, miss->max_pages - *behind - 1);
	}
}

/* Did a read have at least half of what is read now on a side? Or the same of none. */
static inline bool mmap_readahead_judges(unsigned long had, unsigned long now)
{
	return had == now || (had && 2 * had >= now);
}

/* Learn from a read before it is forgotten. */
static inline void
mmap_readahead_forget(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *miss,
		      const struct mmap_readahead_read *read)
{
	unsigned long behind = read->index - read->start;
	unsigned long ahead = read->end - read->index;
	unsigned long now_ahead, now_behind;

	if (!read->size || read->kind != MMAP_READAHEAD_SINGLE)
		return;
	mmap_readahead_sides(state, miss, &now_ahead, &now_behind);
	if (mmap_readahead_judges(ahead, now_ahead))
		mmap_readahead_learn_used(miss, read,
					  read->index + (ahead + 1) * 5 / 8,
					  read->end, &state->ahead);
	if (mmap_readahead_judges(behind, now_behind))
		mmap_readahead_learn_used(miss, read,
					  read->index - (behind + 1) * 5 / 8,
					  read->start, &state->behind);
}

/*
 * Where both sides pay the window is aligned: windows that each lie around a miss leave
 * holes between them, which cost a request each.
 */
static inline void
mmap_readahead_answer_single(struct mmap_readahead_state *state,
			     const struct mmap_readahead_miss *miss,
			     struct mmap_readahead_answer *answer)
{
	unsigned long half = (1UL << miss->block_shift) / 2;
	unsigned long ahead, behind;

	/* The limit may have become lower since these were learnt. */
	state->ahead.order = min(state->ahead.order, ilog2(miss->max_pages));
	state->behind.order = min(state->behind.order, ilog2(miss->max_pages));
	mmap_readahead_sides(state, miss, &ahead, &behind);
	answer->kind = MMAP_READAHEAD_SINGLE;
	answer->size = 1 + ahead + behind;
	if (min(ahead, behind) && min(ahead, behind) + 1 >= half) {
		answer->size = min(1U << ilog2(answer->size + 1),
				   1U << ilog2(miss->max_pages));
		answer->start = round_down(miss->index, answer->size);
		return;
	}
	behind = min(behind, miss->index);
	answer->start = miss->index - behind;
	answer->size = 1 + ahead + behind;
}

/* Region: where single misses have cost what reading all of it costs. */

/* Count what gathers now for more than what did before, by 2^@shift times. */
static inline void mmap_readahead_age(struct mmap_readahead_regions *regions,
				      unsigned int shift)
{
	unsigned int i;

	regions->nr = 0;
	for (i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		regions->nr += regions->misses[i] >>= shift;
}

/*
 * Pages of all regions that have so many misses, or as few as what is the same may have
 * by chance: with less than half, a program that comes back to what was evicted has to
 * hold all; with more than two thirds, look-ups all over a file fill parts of it.
 */
static inline unsigned long
mmap_readahead_gathered(const struct mmap_readahead_regions *regions,
			const struct mmap_readahead_miss *miss,
			unsigned long misses)
{
	unsigned long size = 1UL << regions->shift, left = miss->file_pages, pages = 0;
	unsigned int i;

	for (i = 0; left; i++, left -= min(left, size))
		if (regions->misses[i] >= DIV_ROUND_UP(4 * misses, 7))
			pages += min(left, size);
	return pages;
}

/*
 * Count a single miss for its region, and tell whether that is to be read. Steps of up
 * to three requests' worth in one direction are left out: they sweep the file, and
 * never fill it.
 *
 * Misses that turn about are those of a program that may stay where it is. Then, and
 * while memory is short, that has to hold all regions that misses gather in as they do
 * here. If they are more than twice as many here as in the mean, fewer will do: half a
 * miss more in each region keeps a few from looking so by chance.
 */
static inline bool
mmap_readahead_fills(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned int shift = max_t(int, ilog2(miss->file_pages) - 3,
				   ilog2(miss->request_pages) +
				   MMAP_READAHEAD_REGION_ORDER);
	unsigned long nr = ((miss->file_pages - 1) >> shift) + 1;
	unsigned long region = miss->index >> shift;
	bool near = abs_diff(miss->index, regions->last) <=
		    3UL * miss->request_pages;
	bool up = miss->index > regions->last;
	unsigned long here, pages, part;
	bool turns;

	regions->turns = mmap_readahead_share(regions->turns,
					      up != regions->up);
	regions->last = miss->index;
	regions->up = up;
	if (near && regions->turns <= MMAP_READAHEAD_EIGHTH)
		return false;
	turns = regions->turns > MMAP_READAHEAD_HALF / 2;

	/* Not all that was counted is still there, or it was of other regions. */
	if (regions->shift != shift || regions->nr > miss->cached_pages)
		mmap_readahead_age(regions, 31);
	regions->shift = shift;
	if (mmap_readahead_short(state) &&
	    regions->nr >= miss->memory_pages / miss->request_pages)
		mmap_readahead_age(regions, 1);

	here = ++regions->misses[region];
	regions->nr++;
	pages = min(1UL << shift, miss->file_pages - (region << shift));
	/* So many 64ths of what reading all of it costs are to be spent first. */
	part = mmap_readahead_short(state) ? 64 : 24;
	if (turns && here * nr > 2UL * regions->nr + nr)
		part = 24 * (2UL * regions->nr + nr) / (here * nr);
	if (64ULL * here * (miss->request_pages + 1) <
	    (unsigned long long)part * pages)
		return false;
	/* A quarter more than memory holds is not much lost again. */
	return !(turns || mmap_readahead_short(state)) ||
	       4ULL * mmap_readahead_gathered(regions, miss, here) <=
	       5ULL * miss->memory_pages;
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
	sweeps->trial = max(sweeps->trial, (unsigned long long)
			    MMAP_READAHEAD_TRIAL * miss->request_pages);
	return sweeps->spent >= sweeps->trial;
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
	unsigned long long pages;

	if (size < 2)
		return false;
	if (read && read->kind == MMAP_READAHEAD_FORWARD && read->size == 1) {
		pages = miss->file_pages / (miss->index - read->index);
		/* The very next page is needed: this is no sweep. */
		if (pages == miss->file_pages)
			sweeps->alone = 0;
		if (pages == miss->file_pages || pages > miss->memory_pages)
			return false;
		if (!sweeps->alone && sweeps->spent + MMAP_READAHEAD_SWEEPS *
		    (unsigned long long)miss->file_pages >=
		    pages * miss->request_pages) {
			sweeps->alone = pages + pages / 4;
			sweeps->trial = pages * miss->request_pages;
			sweeps->spent = 0;
		}
	} else if (!sweeps->alone) {
		if (!mmap_readahead_trial(sweeps, miss, miss->page,
					  size + miss->request_pages))
			return false;
		sweeps->trial = 2 * sweeps->spent;
		return true;
	}
	if (!sweeps->alone || miss->page != MMAP_READAHEAD_EVICTED)
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
		struct mmap_readahead_side *side = forward ? &state->ahead :
							     &state->behind;

		size = side->order ? 1UL << side->order : 2;
		mmap_readahead_learn_continued(state, miss, side);
		/* It lay around its miss, and cannot grow. */
		if (read->index != read->start && read->size == limit &&
		    limit >= 1UL << miss->block_shift) {
			mmap_readahead_answer_single(state, miss, answer);
			return;
		}
	} else if (read->size == 1) {
		size = 2UL * miss->request_pages;
	}
	size = min(size, limit);
	if (forward && mmap_readahead_alone(state, miss, read, size)) {
		size = 1;
		gap = 0;
	}
	mmap_readahead_answer_stream(miss, size, gap, answer);
}

/* A miss goes on from nothing that is remembered. */
static inline void
mmap_readahead_start(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     struct mmap_readahead_answer *answer)
{
	unsigned long limit = mmap_readahead_limit(miss);
	unsigned long run = mmap_readahead_run(state, miss);

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
	} else if (mmap_readahead_alone(state, miss, NULL,
					1U << state->ahead.order)) {
		mmap_readahead_answer_stream(miss, 1, 0, answer);
	} else {
		mmap_readahead_answer_single(state, miss, answer);
	}
}

/* Cut an answer to the file, behind which there is nothing to read. */
static inline void
mmap_readahead_finish(const struct mmap_readahead_miss *miss,
		      struct mmap_readahead_answer *answer)
{
	if (answer->size >= miss->file_pages - answer->start) {
		answer->size = miss->file_pages - answer->start;
		answer->async_size = 0;
	}
	answer->order = mmap_readahead_order(answer->size);
}

static inline void mmap_readahead_init(struct mmap_readahead_state *state,
				       const struct mmap_readahead_miss *miss)
{
	const struct mmap_readahead_side side = {
		.order = MMAP_READAHEAD_FIRST_ORDER,
		.used = MMAP_READAHEAD_HALF,
		.patience = MMAP_READAHEAD_PATIENCE,
	};

	*state = (struct mmap_readahead_state) {
		.ahead = side,
		.behind = side,
		.known = true,
	};
	if (miss->file_pages > MMAP_READAHEAD_SMALL_FILE)
		state->behind.order = 0;
}

/**
 * mmap_readahead_adapt - what to read for a miss
 * @state: what is known of the file; learns
 * @miss: the miss
 *
 * Return: a read of pages of the file that holds @miss->index.
 */
static inline struct mmap_readahead_answer
mmap_readahead_adapt(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_answer answer = {
		.start = miss->index,
		.size = 1,
	};
	struct mmap_readahead_read *read;
	enum mmap_readahead_kind kind = MMAP_READAHEAD_SINGLE;
	unsigned long start, end;
	bool under_way = false;

	/* Nothing is left of what was read: this may as well be another file. */
	if (!miss->cached_pages || !state->known)
		mmap_readahead_init(state, miss);
	read = mmap_readahead_stream(state, miss, &kind, &under_way);
	if (under_way)
		return answer;
	if (read) {
		start = read->start;
		end = read->end;
		answer.kind = kind;
		mmap_readahead_go_on(state, miss, read, &answer);
	} else {
		read = &state->reads[state->next];
		state->next = (state->next + 1) % MMAP_READAHEAD_READS;
		mmap_readahead_forget(state, miss, read);
		start = miss->index;
		end = miss->index;
		mmap_readahead_start(state, miss, &answer);
	}
	mmap_readahead_finish(miss, &answer);
	*read = (struct mmap_readahead_read) {
		.index = miss->index,
		.start = min(start, answer.start),
		.end = max(end, answer.start + answer.size - 1),
		.size = answer.size,
		.kind = answer.kind,
	};
	return answer;
}

/**
 * mmap_readahead_mark - what to read when a stream comes to its readahead mark
 * @state: what is known of the file; learns
 * @mark: the page that has the mark, and the rest as for a miss
 *
 * Once requests are large enough each is a quarter larger than the one before: nobody
 * waits for them, so growing faster gains little, and what is read beyond the end of a
 * long stream comes down to about half of it. A stream that was forgotten reads on by
 * what is still there of it, and stays so.
 *
 * Return: a read of no pages if there is nothing to read.
 */
static inline struct mmap_readahead_answer
mmap_readahead_mark(struct mmap_readahead_state *state,
		    const struct mmap_readahead_miss *mark)
{
	struct mmap_readahead_answer answer = { .kind = MMAP_READAHEAD_FORWARD };
	unsigned long size, end;
	struct mmap_readahead_read *read, *stream = NULL;
	bool known = false;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS;
	     read++) {
		if (!read->size || mark->index < read->start ||
		    mark->index > read->end)
			continue;
		known = true;
		if (read->kind == MMAP_READAHEAD_FORWARD &&
		    read->end - mark->index < read->size)
			stream = read;
	}
	if (stream) {
		end = stream->end;
		size = stream->size < mark->request_pages ? 2 * stream->size :
		       stream->size + (stream->size + 3) / 4;
	} else {
		size = known ? 0 : min(mmap_readahead_run(state, mark),
				       mark->request_pages);
		end = mark->next_miss(mark->cache, mark->index, size) - 1;
		/* No run, or evicted by now. */
		if (end - mark->index >= size)
			return answer;
	}
	answer.start = end + 1;
	if (answer.start >= mark->file_pages)
		return answer;
	size = min3(size, mmap_readahead_limit(mark),
		    mark->file_pages - answer.start);
	/* A trial takes a miss, which goes on from a read. */
	if (stream &&
	    mmap_readahead_trial(&state->sweeps, mark,
				 mark->look(mark->cache, answer.start), size))
		return answer;
	answer.size = size;
	answer.async_size = size;
	answer.order = mmap_readahead_order(size);
	if (stream) {
		stream->index = mark->index;
		stream->end += size;
		stream->size = size;
	}
	return answer;
}

#endif /* _LINUX_MMAP_READAHEAD_WINDOW_H */
