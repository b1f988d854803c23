// SPDX-License-Identifier: GPL-2.0-only
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
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/minmax.h>

#include "mmap_readahead_window.h"

/*
 * More streams than are remembered are expected to be up to so many, and memory to hold
 * a window of each.
 */
#define MMAP_READAHEAD_MANY		512UL
/* log2 of the requests that the smallest region is worth. */
#define MMAP_READAHEAD_REGION_ORDER	5
/* So many requests' worth apart, steps do not fill a region: more than 8/3. */
#define MMAP_READAHEAD_SWEEP		3
/*
 * A single miss reads at least 2^4 pages ahead in a file that nothing is known of, and half of
 * what a request is worth; behind as well in a file of so few pages that few misses will
 * ever tell more of it.
 */
#define MMAP_READAHEAD_FIRST_ORDER	4
#define MMAP_READAHEAD_SMALL_FILE	4096
/* Shares are in 1/255. One that is not known yet, and a small one. */
#define MMAP_READAHEAD_HALF		128
#define MMAP_READAHEAD_EIGHTH		32
/*
 * While memory is short, what is read takes the place of what will be needed again:
 * for windows to grow, a request counts as so many times fewer pages.
 */
#define MMAP_READAHEAD_SCARCITY		16

/* Evidence: what shares, the page cache and memory tell. */

/* Move a share an eighth of the way to all or nothing. */
static unsigned char moved_share(unsigned char share, bool more)
{
	return more ? share + (255 - share + 7) / 8 : share - (share + 7) / 8;
}

/* Does it pay to read @pages each time, if that saves a request so often? */
static bool pays(unsigned char share, unsigned long pages, unsigned long request_pages)
{
	return share * (pages + request_pages) >= 255 * pages;
}

static bool is_used(const struct mmap_readahead_miss *miss, unsigned long index)
{
	return miss->look(miss->cache, index) == MMAP_READAHEAD_USED;
}

/*
 * Folio size of a read. What goes on, or fills a region, is used to the last page, and one
 * folio may hold all of it. Of a single miss, and backward, a folio is a fourth at most.
 */
static unsigned int order_of(unsigned int size, enum mmap_readahead_kind kind)
{
	if (kind == MMAP_READAHEAD_FORWARD || kind == MMAP_READAHEAD_FILL)
		return ilog2(size);
	if (size >= 64)
		return ilog2(size) - 3;
	return size >= 4 ? 2 : 0;
}

/* Did the fault that asked for a read map a page, or another one of its folio? */
static bool own_fault(const struct mmap_readahead_miss *miss,
		      const struct mmap_readahead_read *read, unsigned long page)
{
	unsigned int order = min(order_of(read->size, read->kind), miss->max_order);
	unsigned int shift = max(order, miss->block_shift);

	return page >> shift == read->index >> shift;
}

/* Are pages of the file evicted before they are needed again? */
static bool memory_is_short(const struct mmap_readahead_state *state)
{
	return state->evicted > MMAP_READAHEAD_EIGHTH;
}

/* The most that streams and regions read at once: memory holds it twice for each read. */
static unsigned long most_at_once(const struct mmap_readahead_miss *miss)
{
	return clamp_t(unsigned long, miss->memory_pages /
		       (2 * MMAP_READAHEAD_READS), 1, miss->max_pages);
}

/* Streams: misses that go on where an earlier read ended, or began. */

/*
 * Does a miss go on from a read that ends, or begins, with @edge? It does if the miss
 * that asked for the read is near, or if the read was used there.
 */
static bool goes_on(const struct mmap_readahead_miss *miss,
		    const struct mmap_readahead_read *read, unsigned long gap,
		    unsigned long edge)
{
	if (abs_diff(miss->index, edge) > gap)
		return false;
	return abs_diff(miss->index, read->index) <= gap ||
	       (!own_fault(miss, read, edge) && is_used(miss, edge));
}

/* Is another thread about to read the page, with the last window of @read? */
static bool under_way(const struct mmap_readahead_miss *miss,
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
static struct mmap_readahead_read *find_stream(struct mmap_readahead_state *state,
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
		if (under_way(miss, read)) {
			*kind = MMAP_READAHEAD_SINGLE;
			return read;
		}
		if (stream || read->kind == MMAP_READAHEAD_FILL ||
		    !(forward || miss->index < read->start) ||
		    !goes_on(miss, read, gap, forward ? read->end : read->start))
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
static unsigned int run_before(const struct mmap_readahead_state *state,
			       const struct mmap_readahead_miss *miss)
{
	unsigned int most = max(miss->request_pages, 2U << miss->block_shift);
	unsigned int alone, pages = 1;

	if (!miss->index || !is_used(miss, miss->index - 1))
		return 0;
	while (2 * pages <= min(miss->index, most) &&
	       is_used(miss, miss->index - 2 * pages))
		pages *= 2;
	alone = clamp_t(unsigned int, max(state->ahead.order, state->behind.order),
			1, max(miss->block_shift, 1U));
	return pages > 1U << alone ? pages : 0;
}

/*
 * Read @size pages on in the direction of answer->kind. @gap pages before the miss that
 * the stream left out are read as well, unless they are most of it.
 */
static void answer_stream(const struct mmap_readahead_miss *miss, unsigned long size,
			  unsigned long gap, struct mmap_readahead_answer *answer)
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
static void learn_continued(const struct mmap_readahead_state *state,
			    const struct mmap_readahead_miss *miss,
			    struct mmap_readahead_side *side)
{
	unsigned int request = DIV_ROUND_UP(miss->request_pages, memory_is_short(state) ?
					    MMAP_READAHEAD_SCARCITY : 1);

	side->quiet = 0;
	side->continued = moved_share(side->continued, true);
	if (2UL << side->order > miss->max_pages ||
	    !pays(side->continued, 1UL << side->order, request))
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
static void learn_used(const struct mmap_readahead_miss *miss,
		       const struct mmap_readahead_read *read, unsigned long far,
		       struct mmap_readahead_side *side)
{
	unsigned long near = far - (long)(far - read->index) * 3 / 8;

	/* Single pages continue to do. */
	if (!(side->order | side->continued))
		return;
	/* It had less than half of what is read today. */
	if (2 * abs_diff(far, read->index) + 1 < 1UL << side->order)
		return;
	side->continued = moved_share(side->continued, false);
	if (!side->order)
		return;
	side->quiet = min(side->quiet + 1, MMAP_READAHEAD_MAX_PATIENCE);
	if (own_fault(miss, read, far)) {
		if (side->quiet < side->patience)
			return;
	} else {
		bool used = is_used(miss, far) ||
			    (!own_fault(miss, read, near) &&
			     is_used(miss, near));

		side->used = moved_share(side->used, used);
		if (pays(side->used, 1UL << (side->order - 1), miss->request_pages))
			return;
	}
	side->order--;
	side->used = MMAP_READAHEAD_HALF;
	side->quiet = 0;
}

/* What a single miss reads beside its own page: as much as has paid. */
static void answer_single(struct mmap_readahead_state *state,
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
static bool outlived(const struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	const struct mmap_readahead_read *read;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->pending)
			return false;
	return !miss->cached_pages;
}

/* The first miss of a file: nothing is known of it. */
static void begin(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss)
{
	int first = max(MMAP_READAHEAD_FIRST_ORDER, ilog2(miss->request_pages) - 1);
	struct mmap_readahead_side side = {
		.order = min(first, ilog2(miss->max_pages)),
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
static void age_regions(struct mmap_readahead_regions *regions, unsigned int shift)
{
	unsigned int i;

	regions->nr = 0;
	for (i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		regions->nr += regions->misses[i] >>= shift;
}

/* Did the miss before come so near that the two may be steps of a sweep? */
static bool is_near(const struct mmap_readahead_regions *regions,
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
static bool fills(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned int shift = max_t(int, ilog2(miss->file_pages) - 3,
				   ilog2(miss->request_pages) +
				   MMAP_READAHEAD_REGION_ORDER);
	unsigned int region = miss->index >> shift;
	unsigned int nr = ((miss->file_pages - 1) >> shift) + 1;
	bool near = is_near(regions, miss);
	bool up = miss->index > regions->last;
	bool is_short = memory_is_short(state);
	unsigned long pages, need, enough, like = 0;
	unsigned int here, i, open = 0;
	bool counts, turns, fits;

	regions->turns = moved_share(regions->turns, up != regions->up);
	regions->last = miss->index;
	regions->up = up;
	counts = !near || regions->turns > MMAP_READAHEAD_EIGHTH;
	turns = regions->turns > MMAP_READAHEAD_HALF / 2;
	if (!counts && is_short)
		return false;

	/* Not all that was counted is still there, or it was of other regions. */
	if (regions->shift != shift || regions->nr > miss->cached_pages)
		age_regions(regions, 31);
	regions->shift = shift;
	if (is_short && regions->nr >= miss->memory_pages / miss->request_pages)
		age_regions(regions, 1);

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
static void go_on(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss,
		  const struct mmap_readahead_read *read, struct mmap_readahead_answer *answer)
{
	bool forward = answer->kind == MMAP_READAHEAD_FORWARD;
	unsigned long size = 2UL * read->size;
	unsigned long limit = most_at_once(miss);
	unsigned long gap = forward ? miss->index - read->end - 1 :
				      read->start - miss->index - 1;

	if (read->kind == MMAP_READAHEAD_SINGLE) {
		struct mmap_readahead_side *side = forward ? &state->ahead : &state->behind;

		/* After a gap it may be chance. */
		size = side->order || gap ? 1UL << side->order : 2;
		if (gap < read->size)
			learn_continued(state, miss, side);
	}
	size = min(size, limit);
	answer_stream(miss, size, gap, answer);
}

/* A miss goes on from nothing that is remembered. */
static void answer_other(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *miss,
			 struct mmap_readahead_answer *answer)
{
	unsigned long run = run_before(state, miss);
	unsigned long limit = most_at_once(miss);

	state->evicted = moved_share(state->evicted, miss->page == MMAP_READAHEAD_EVICTED);
	answer->kind = MMAP_READAHEAD_FORWARD;
	if (run) {
		answer_stream(miss, min(run, limit), 0, answer);
	} else if (fills(state, miss)) {
		/* While memory is short, a block is worth two requests. */
		if (memory_is_short(state))
			limit = min(limit, 2UL * miss->request_pages);
		answer->kind = MMAP_READAHEAD_FILL;
		answer->size = 1U << min_t(int, ilog2(limit), state->regions.shift);
		answer->start = round_down(miss->index, answer->size);
	} else {
		answer_single(state, miss, answer);
	}
}

/* Cut an answer to the file, behind which there is nothing, and remember it as @read. */
static void finish(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss,
		   struct mmap_readahead_read *read, struct mmap_readahead_answer *answer)
{
	if (answer->size >= miss->file_pages - answer->start) {
		answer->size = miss->file_pages - answer->start;
		answer->async_size = 0;
	}
	answer->order = order_of(answer->size, answer->kind);
	if (!read)
		return;
	answer->read = read - state->reads;
	read->index = miss->index;
	read->end = max(read->end, answer->start + answer->size - 1);
	read->size = answer->size;
	read->pending = answer->size > 1;
}

bool mmap_readahead_settled(struct mmap_readahead_state *state,
			    const struct mmap_readahead_miss *miss,
			    struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned long region = miss->index >> regions->shift;

	if (!miss->cached_pages || state->ahead.order | state->ahead.continued |
	    state->behind.order | state->behind.continued || region >= MMAP_READAHEAD_REGIONS ||
	    is_near(regions, miss) ||
	    regions->misses[region] % (8 * MMAP_READAHEAD_PATIENCE) < MMAP_READAHEAD_PATIENCE ||
	    4ULL * regions->misses[region] * (miss->request_pages + 1UL) >=
	    min(1UL << regions->shift, miss->file_pages - (region << regions->shift)) ||
	    is_used(miss, max(miss->index, 1UL) - 1))
		return false;
	regions->last = miss->index;
	regions->misses[region]++;
	regions->nr++;
	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	finish(state, miss, NULL, answer);
	return true;
}

void mmap_readahead_adapt(struct mmap_readahead_state *state,
			  const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read;

	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	if (!state->ahead.patience || outlived(state, miss))
		begin(state, miss);
	read = find_stream(state, miss, &answer->kind);
	if (read && answer->kind == MMAP_READAHEAD_SINGLE)
		return;
	if (read) {
		go_on(state, miss, read, answer);
	} else {
		read = &state->reads[state->next];
		state->next = (state->next + 1) % MMAP_READAHEAD_READS;
		if (read->size && read->kind == MMAP_READAHEAD_SINGLE) {
			learn_used(miss, read, read->end, &state->ahead);
			learn_used(miss, read, read->start, &state->behind);
		}
		answer_other(state, miss, answer);
		read->start = miss->index;
		read->end = miss->index;
	}
	finish(state, miss, read, answer);
	read->start = min(read->start, answer->start);
	read->kind = answer->kind;
}

/* Does no read that is remembered hold a mark? */
static bool forgotten(const struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *mark)
{
	const struct mmap_readahead_read *read;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->size && mark->index >= read->start && mark->index <= read->end)
			return false;
	return true;
}

bool mmap_readahead_mark(struct mmap_readahead_state *state,
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
	if (!stream && !forgotten(state, mark))
		return true;
	if (stream) {
		end = stream->end;
		size = stream->size < mark->request_pages ? 2 * stream->size :
		       stream->size + (stream->size + 3) / 4;
	} else {
		size = max(run_before(state, mark), 1U << state->ahead.order);
		/* Nothing says that it is of a miss. */
		if (size == 1)
			return false;
		size = min3(size, mark->request_pages, most_at_once(mark));
		end = mark->next_miss(mark->cache, mark->index + 1, size) - 1;
		/* So much is there still that nothing is to be read yet. */
		if (end - mark->index >= size)
			return true;
		if ((1U << state->ahead.order < 2 * mark->request_pages &&
		     MMAP_READAHEAD_MANY << state->ahead.order <= mark->memory_pages) ||
		    mark->file_pages <= mark->memory_pages)
			learn_continued(state, mark, &state->ahead);
	}
	answer->start = end + 1;
	if (answer->start >= mark->file_pages)
		return true;
	answer->size = min(size, most_at_once(mark));
	answer->async_size = answer->size;
	finish(state, mark, stream, answer);
	return true;
}

void mmap_readahead_submitted(struct mmap_readahead_state *state,
			      const struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read = &state->reads[answer->read];

	/* It may have been forgotten meanwhile. */
	if (answer->read < MMAP_READAHEAD_READS &&
	    answer->start >= read->start && answer->start <= read->end)
		read->pending = false;
}

#ifdef CONFIG_MMAP_READAHEAD_KUNIT_TEST
#include "mmap_readahead_window_kunit.c"
#endif
