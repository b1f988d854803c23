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
 *     goes on from a recent read?  -- yes --> stream     of a stream, or of a single
 *                 | no                        window     miss, where that pays or the
 *     comes behind a used run?     -- yes --> doubles    read was forgotten?
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

/* log2 of the requests that the smallest region is worth. */
#define REGION_ORDER	5
/*
 * A single miss reads at least 2^4 pages ahead in a file that nothing is known of, and half of
 * what a request is worth; behind as well in a file of up to four of the smallest regions,
 * for few misses will ever tell more of it.
 */
#define FIRST_ORDER	4
/*
 * Unless memory is short, a 2^5th of what a request is worth costs next to nothing: what a
 * single miss reads on a side becomes no smaller than that.
 */
#define FREE_ORDER	5
/*
 * So many single reads that nobody continued make a window smaller that cannot be
 * judged otherwise, at first; sixteen times as many at most.
 */
#define PATIENCE	4
/* What shares are parts of. */
#define ALL		255
/*
 * While memory is short, what is read takes the place of what will be needed again:
 * for windows to grow, a request counts as so many times fewer pages.
 */
#define SCARCITY	16

/* Evidence: what shares, the page cache and memory tell. */

/* Move a share an eighth of the way to all or nothing. */
static unsigned char moved_share(unsigned char share, bool more)
{
	return more ? share + (ALL - share + 7) / 8 : share - (share + 7) / 8;
}

/* Does it pay to read @pages each time, if that saves a request so often? */
static bool pays(unsigned char share, unsigned long pages, unsigned long request_pages)
{
	return share * (pages + request_pages) >= ALL * pages;
}

static bool is_used(const struct mmap_readahead_miss *miss, unsigned long index)
{
	return miss->look(miss->cache, index) == MMAP_READAHEAD_USED;
}

/*
 * Folio size of a read. What goes on, or fills a region, is used to the last page, and one
 * folio may hold all of it, but not a miss together with its mark: a fault that maps all of
 * a folio would hide the mark. Of a single miss, and backward, folios have 4 pages, or an
 * eighth of 64 and more. Where @writes may hit pages here and there, each has a folio of its
 * own, since all of a folio is written back.
 */
static unsigned int order_of(const struct mmap_readahead_answer *answer, bool writes)
{
	unsigned int size = answer->size;

	if (answer->kind == MMAP_READAHEAD_FORWARD)
		return ilog2(answer->async_size ?: size);
	if (answer->kind == MMAP_READAHEAD_FILL)
		return writes ? 0 : ilog2(size);
	return writes || size < 4 ? 0 : size < 64 ? 2 : ilog2(size) - 3;
}

/* Did the fault that asked for a read map a page, or another one of its folio? */
static bool own_fault(const struct mmap_readahead_miss *miss,
		      const struct mmap_readahead_read *read, unsigned long page)
{
	unsigned int order = min_t(unsigned int, read->order, miss->max_order);
	unsigned int shift = max(order, miss->block_shift);

	return page >> shift == read->index >> shift;
}

/* Are pages of the file evicted before they are needed again? */
static bool memory_is_short(const struct mmap_readahead_state *state)
{
	return state->evicted > (ALL + 1) / 8;
}

/* How small that becomes which single misses read on a side: log2 of pages. */
static unsigned int least_order(const struct mmap_readahead_state *state,
				const struct mmap_readahead_miss *miss)
{
	return memory_is_short(state) ? 0 : max(ilog2(miss->request_pages) - FREE_ORDER, 0);
}

/* The most that streams and regions read at once: memory holds it twice for each read. */
static unsigned long most_at_once(const struct mmap_readahead_miss *miss)
{
	return clamp_t(unsigned long, miss->memory_pages /
		       (2 * MMAP_READAHEAD_READS), 1, miss->max_pages);
}

/* Streams: misses that go on where an earlier read ended, or began. */

/*
 * Does a miss go on from a read that ends before it, or begins behind it? It does if the miss
 * that asked for the read is near, or if the read was used there.
 */
static bool goes_on(const struct mmap_readahead_miss *miss,
		    const struct mmap_readahead_read *read, unsigned long gap)
{
	unsigned long edge = miss->index > read->end ? read->end : read->start;

	if (!read->size || read->kind == MMAP_READAHEAD_FILL || abs_diff(miss->index, edge) > gap ||
	    (miss->index >= read->start && miss->index <= read->end))
		return false;
	return abs_diff(miss->index, read->index) <= gap ||
	       (!own_fault(miss, read, edge) && is_used(miss, edge));
}

/*
 * Is a miss that goes on a step of a sweep whose pages could stay? While memory is short, what
 * a sweep leaves out takes the place of what it needs the next time. If memory cannot hold the
 * file, but all pages that such steps touch, reading each of them once, alone, is cheaper than
 * four sweeps that read all in between. If they still do not stay after as many, others need the
 * memory. A reader in order would have met the mark of @read, which two pages do not have yet.
 * Steps over more than two blocks are left to what is used.
 */
static bool is_sparse_sweep(const struct mmap_readahead_state *state,
			    const struct mmap_readahead_miss *miss,
			    const struct mmap_readahead_read *read)
{
	unsigned long step = abs_diff(miss->index, read->index);

	return miss->page == MMAP_READAHEAD_EVICTED && memory_is_short(state) &&
	       read->kind == MMAP_READAHEAD_SINGLE && !read->mark_met &&
	       step > 2 && 4 * step > miss->request_pages && step <= 2UL << miss->block_shift &&
	       miss->file_pages > miss->memory_pages &&
	       1ULL * step * miss->memory_pages > miss->file_pages &&
	       state->swept < 4ULL * miss->file_pages;
}

/* Is another thread about to read the page, with the last window of @read? */
static bool under_way(const struct mmap_readahead_miss *miss,
		      const struct mmap_readahead_read *read)
{
	unsigned long within = read->kind == MMAP_READAHEAD_BACKWARD ?
			       miss->index - read->start : read->end - miss->index;

	return read->pending && within < read->size;
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
	struct mmap_readahead_read *read, *stream = NULL;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++) {
		if (under_way(miss, read)) {
			*kind = MMAP_READAHEAD_SINGLE;
			return read;
		}
		if (!stream && goes_on(miss, read, gap))
			stream = read;
	}
	*kind = MMAP_READAHEAD_FORWARD;
	if (stream && miss->index < stream->start)
		*kind = MMAP_READAHEAD_BACKWARD;
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
	unsigned int alone = max(state->ahead.order, state->behind.order);
	unsigned int pages = 1;

	if (!miss->index || !is_used(miss, miss->index - 1))
		return 0;
	while (2 * pages <= min(miss->index, most) && is_used(miss, miss->index - 2 * pages))
		pages *= 2;
	alone = max(min(alone, miss->block_shift), 1U);
	return pages > 1U << alone ? pages : 0;
}

/*
 * Read @size pages on in the direction of answer->kind, or as many as may be read at once. @gap
 * pages before the miss that the stream left out are read as well, unless they are most of it.
 */
static void answer_stream(const struct mmap_readahead_miss *miss, unsigned long size,
			  unsigned long gap, struct mmap_readahead_answer *answer)
{
	size = min(size, most_at_once(miss));
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
	unsigned int scarcity = memory_is_short(state) ? SCARCITY : 1;

	side->quiet = 0;
	side->continued = moved_share(side->continued, true);
	if (2UL << side->order > miss->max_pages ||
	    !pays(side->continued, 1UL << side->order, DIV_ROUND_UP(miss->request_pages, scarcity)))
		return;
	side->order++;
	side->used = (ALL + 1) / 2;
	side->patience = min(2 * side->patience, 16 * PATIENCE);
}

/*
 * A read is forgotten that nobody continued: was the outer half of its window, up to
 * @far, worth it? Two pages of that half tell. If the miss itself had that mapped, the
 * only way to know is to try without.
 */
static void learn_used(const struct mmap_readahead_state *state,
		       const struct mmap_readahead_miss *miss,
		       const struct mmap_readahead_read *read, unsigned long far,
		       struct mmap_readahead_side *side)
{
	unsigned long near = far - (long)(far - read->index) * 3 / 8;

	/* It had less than half of what is read today. */
	if (2 * abs_diff(far, read->index) + 1 < 1UL << side->order)
		return;
	side->continued = moved_share(side->continued, false);
	if (side->order <= least_order(state, miss))
		return;
	side->quiet = min(side->quiet + 1, 16 * PATIENCE);
	if (own_fault(miss, read, far)) {
		if (side->quiet < side->patience)
			return;
	} else {
		bool used = is_used(miss, far) ||
			    (!own_fault(miss, read, near) && is_used(miss, near));

		side->used = moved_share(side->used, used);
		if (pays(side->used, 1UL << (side->order - 1), miss->request_pages))
			return;
	}
	side->order--;
	side->used = (ALL + 1) / 2;
	side->quiet = 0;
}

/* A read is forgotten: what does it tell? */
static void forget(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_read *read)
{
	if (read->size && read->kind == MMAP_READAHEAD_SINGLE) {
		learn_used(state, miss, read, read->end, &state->ahead);
		learn_used(state, miss, read, read->start, &state->behind);
	} else if (read->unsure && read->end + 1 < miss->file_pages) {
		state->ahead.continued = moved_share(state->ahead.continued, false);
	}
}

/* What a single miss reads beside its own page: as much as has paid. */
static void answer_single(struct mmap_readahead_state *state,
			  const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_answer *answer)
{
	unsigned int most = ilog2(miss->max_pages);
	unsigned long ahead, behind;

	/* The limit may have become lower since these were learnt. */
	state->ahead.order = min(state->ahead.order, most);
	state->behind.order = min(state->behind.order, most);
	ahead = (1UL << state->ahead.order) - 1;
	behind = (1UL << state->behind.order) - 1;
	if (ahead + behind >= miss->max_pages)
		behind = min(behind, miss->max_pages / 2UL);
	ahead = min(ahead, miss->max_pages - behind - 1);
	behind = min(behind, miss->index);
	answer->kind = MMAP_READAHEAD_SINGLE;
	answer->start = miss->index - behind;
	answer->size = 1 + ahead + behind;
	answer->async_size = ahead / 2;
}

/* The first miss of a file, or of one of which nothing is cached any more. */
static void begin(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss)
{
	int first = max(FIRST_ORDER, ilog2(miss->request_pages) - 1);
	struct mmap_readahead_side side = {
		.order = min(first, ilog2(miss->max_pages)),
		.used = (ALL + 1) / 2,
		.patience = PATIENCE,
	};

	*state = (struct mmap_readahead_state) { .ahead = side, .behind = side };
	if (miss->file_pages >> (REGION_ORDER + 2) > miss->request_pages)
		state->behind.order = min_t(unsigned int, least_order(state, miss), side.order);
}

/* Region: where single misses have cost what reading all of it costs. */

/* Pages of a region, of which the last one may have fewer. */
static unsigned long region_pages(const struct mmap_readahead_regions *regions,
				  const struct mmap_readahead_miss *miss, unsigned long region)
{
	return min(1UL << regions->shift, miss->file_pages - (region << regions->shift));
}

/* Count what gathers now for more than what did before, by 2^@shift times. */
static void age_regions(struct mmap_readahead_regions *regions, unsigned int shift)
{
	unsigned int i;

	regions->nr = 0;
	for (i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		regions->nr += regions->misses[i] >>= shift;
}

/* Is a miss so near the last one that such steps, of up to 8/3 requests' worth, fill regions? */
static bool is_near(const struct mmap_readahead_regions *regions,
		    const struct mmap_readahead_miss *miss)
{
	return abs_diff(miss->index, regions->last) <= 3UL * miss->request_pages;
}

/* Is a miss a step of a sweep: near the last one, where nearly all go in one direction? */
static bool is_step(struct mmap_readahead_regions *regions, const struct mmap_readahead_miss *miss)
{
	bool near = is_near(regions, miss);
	bool up = miss->index > regions->last;

	regions->turns = moved_share(regions->turns, up != regions->up);
	regions->last = miss->index;
	regions->up = up;
	return near && regions->turns <= (ALL + 1) / 8;
}

/* Count a single miss that is no step of a sweep. Return: how many its region has. */
static unsigned int *count_miss(struct mmap_readahead_regions *regions,
				const struct mmap_readahead_miss *miss, bool step, bool is_short)
{
	unsigned int shift = max_t(int, ilog2(miss->file_pages) - 3,
				   ilog2(miss->request_pages) + REGION_ORDER);
	unsigned int was = regions->shift, *here;

	/* Not all that was counted is still there, or it was of regions of quite another size. */
	if (!regions->nr || regions->nr > miss->cached_pages ||
	    abs_diff(was, shift) > 1 ||
	    (miss->file_pages - 1) >> was >= MMAP_READAHEAD_REGIONS) {
		age_regions(regions, 31);
		regions->shift = shift;
	}
	here = &regions->misses[miss->index >> regions->shift];
	if (is_short && regions->nr >= miss->memory_pages / miss->request_pages)
		age_regions(regions, 1);
	*here += !step;
	regions->nr += !step;
	return here;
}

/*
 * Count a single miss for its region, and tell whether that is to be read. Steps of a sweep
 * do not count, and fill nothing. Where the region is full already they read its blocks,
 * unless memory is short.
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
	bool step = is_step(regions, miss), is_short = memory_is_short(state);
	unsigned long need, enough, like = 0;
	unsigned int *here, nr, open = 0;
	bool turns = regions->turns > (ALL + 1) / 4;

	if (step && is_short)
		return false;
	here = count_miss(regions, miss, step, is_short);
	/* So many misses cost three eighths of what reading all of it costs. */
	enough = 3 * region_pages(regions, miss, here - regions->misses) /
		 (8 * (miss->request_pages + 1UL)) + 1;
	need = is_short ? 8 * enough / 3 : enough;
	/* Misses all over the file may come to need all of it. */
	if (step ? *here < need : !turns && !is_short)
		return *here >= need;
	for (nr = 0; nr <= (miss->file_pages - 1) >> regions->shift; nr++) {
		if (2 * regions->misses[nr] + 4 < *here)
			continue;
		like += region_pages(regions, miss, nr);
		open += regions->misses[nr] < need;
	}
	enough = turns && 3 * open < 2 * nr ? enough * 3 * open / (2 * nr) : need;
	if (*here < enough)
		return false;
	/* It is to be filled, and unlike the others. */
	if (*here < need) {
		regions->nr += need - *here;
		*here = need;
	}
	/* A quarter more than memory holds is not much lost again. */
	return 4ULL * like <= 5ULL * miss->memory_pages;
}

/* The arbiter. */

/* A miss goes on from a read, in the direction that answer->kind has. */
static void go_on(struct mmap_readahead_state *state, const struct mmap_readahead_miss *miss,
		  struct mmap_readahead_read *read, struct mmap_readahead_answer *answer)
{
	bool forward = answer->kind == MMAP_READAHEAD_FORWARD;
	struct mmap_readahead_side *side = forward ? &state->ahead : &state->behind;
	unsigned long gap = (forward ? miss->index - read->end : read->start - miss->index) - 1;
	unsigned long size = 2UL * read->size;

	/* After a gap it may be chance. */
	if (read->kind == MMAP_READAHEAD_SINGLE)
		size = side->order || gap ? 1UL << side->order : 2;
	if ((read->kind == MMAP_READAHEAD_SINGLE || read->unsure) && gap < read->size)
		learn_continued(state, miss, side);
	read->gaps = gap;
	answer_stream(miss, size, gap, answer);
}

/* A miss goes on from nothing that is remembered. */
static void answer_other(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *miss,
			 struct mmap_readahead_answer *answer)
{
	unsigned long run = run_before(state, miss), limit = most_at_once(miss);

	state->evicted = moved_share(state->evicted, miss->page == MMAP_READAHEAD_EVICTED);
	answer->kind = MMAP_READAHEAD_FORWARD;
	if (run) {
		answer_stream(miss, run, 0, answer);
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
	answer->order = order_of(answer, miss->writes);
	if (!read)
		return;
	answer->read = read - state->reads;
	read->index = miss->index;
	read->end = max(read->end, answer->start + answer->size - 1);
	read->size = answer->size;
	read->order = answer->order;
	read->pending = answer->size > 1;
}

bool mmap_readahead_settled(struct mmap_readahead_state *state,
			    const struct mmap_readahead_miss *miss,
			    struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_regions *regions = &state->regions;
	unsigned long region = miss->index >> regions->shift;

	if (!miss->cached_pages || region >= MMAP_READAHEAD_REGIONS ||
	    state->ahead.order | state->ahead.continued |
	    state->behind.order | state->behind.continued || is_near(regions, miss) ||
	    regions->misses[region] % (8 * PATIENCE) < PATIENCE ||
	    4ULL * regions->misses[region] * (miss->request_pages + 1UL) >=
	    region_pages(regions, miss, region) || is_used(miss, max(miss->index, 1UL) - 1))
		return false;
	regions->last = miss->index;
	regions->misses[region]++;
	regions->nr++;
	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	return true;
}

void mmap_readahead_adapt(struct mmap_readahead_state *state,
			  const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read;

	*answer = (struct mmap_readahead_answer) { .start = miss->index, .size = 1 };
	if (!state->ahead.patience || !miss->cached_pages)
		begin(state, miss);
	read = find_stream(state, miss, &answer->kind);
	if (read && answer->kind == MMAP_READAHEAD_SINGLE)
		return;
	if (read && is_sparse_sweep(state, miss, read)) {
		answer->kind = MMAP_READAHEAD_SINGLE;
		state->swept += abs_diff(miss->index, read->index);
		*read = (struct mmap_readahead_read) { .start = miss->index, .end = miss->index };
	} else if (read) {
		go_on(state, miss, read, answer);
	} else {
		read = &state->reads[state->next];
		state->next = (state->next + 1) % MMAP_READAHEAD_READS;
		forget(state, miss, read);
		answer_other(state, miss, answer);
		*read = (struct mmap_readahead_read) { .start = miss->index, .end = miss->index };
	}
	finish(state, miss, read, answer);
	read->start = min(read->start, answer->start);
	read->kind = answer->kind;
	read->mark_met = false;
	read->unsure = false;
}

/* The read that a mark is in, rather one of a stream whose last window holds it; or NULL. */
static struct mmap_readahead_read *find_marked(struct mmap_readahead_state *state,
					       const struct mmap_readahead_miss *mark)
{
	struct mmap_readahead_read *read, *found = NULL;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS; read++)
		if (read->size && mark->index >= read->start && mark->index <= read->end &&
		    (!found || (read->kind == MMAP_READAHEAD_FORWARD &&
				read->end - mark->index < read->size)))
			found = read;
	return found;
}

/*
 * A mark of a read that was forgotten: read as much as is still there of the run. False if
 * nothing says that it is of a miss.
 */
static bool recall(struct mmap_readahead_state *state, const struct mmap_readahead_miss *mark,
		   struct mmap_readahead_answer *answer)
{
	unsigned int run = run_before(state, mark);
	unsigned int size = max(run, 1U << state->ahead.order);

	/* What is read only because it is free is no evidence, and two pages have no mark. */
	if (!run && state->ahead.order <= max(least_order(state, mark), 1U))
		return false;
	size = min3(size, mark->request_pages, most_at_once(mark));
	answer->start = mark->next_miss(mark->cache, mark->index + 1, size);
	/* So much is there still that nothing is to be read yet. */
	if (answer->start - mark->index > size)
		return true;
	answer->size = size;
	/* Only if memory holds a window of each, should there be several hundred. */
	if (512UL << state->ahead.order <= mark->memory_pages)
		learn_continued(state, mark, &state->ahead);
	return true;
}

/*
 * Is there a stream to go on at the mark? A single miss becomes one at the beginning of the file,
 * and where most misses were continued, often enough for as many pages to pay.
 */
static bool heeds_mark(const struct mmap_readahead_state *state,
		       const struct mmap_readahead_miss *mark,
		       const struct mmap_readahead_read *read)
{
	if (read->end + 1 >= mark->file_pages)
		return false;
	if (read->kind != MMAP_READAHEAD_SINGLE)
		return read->kind == MMAP_READAHEAD_FORWARD &&
		       read->end - mark->index < read->size;
	return !read->index ||
	       (state->ahead.continued > ALL / 2 &&
		pays(state->ahead.continued, read->size, mark->request_pages));
}

/*
 * Go on behind a read: as far again if it is that of a single miss, which will have been continued
 * if somebody comes to the next mark, else twice as far.
 *
 * The first fault in a block maps all of it but a page with a mark, which then costs a fault of
 * its own, unless the block begins with it. So where no pages are left out, a window ends where a
 * block does, but at a multiple of half its size if that is smaller.
 */
static void read_on(struct mmap_readahead_state *state, const struct mmap_readahead_miss *mark,
		    struct mmap_readahead_read *read, struct mmap_readahead_answer *answer)
{
	bool single = read->kind == MMAP_READAHEAD_SINGLE;
	unsigned long size = min((single ? 1UL : 2UL) * read->size, most_at_once(mark));

	answer->start = read->end + 1;
	if (!read->gaps)
		size -= (answer->start + size) % min(1UL << mark->block_shift,
						     DIV_ROUND_UP(1UL << ilog2(size), 2));
	answer->size = size;
	if (read->unsure)
		learn_continued(state, mark, &state->ahead);
	read->unsure = single;
	read->kind = MMAP_READAHEAD_FORWARD;
}

bool mmap_readahead_mark(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *mark,
			 struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_read *read = find_marked(state, mark);

	*answer = (struct mmap_readahead_answer) {
		.kind = MMAP_READAHEAD_FORWARD,
		.read = MMAP_READAHEAD_READS,
	};
	if (!read) {
		if (!recall(state, mark, answer))
			return false;
	} else if (heeds_mark(state, mark, read)) {
		read_on(state, mark, read, answer);
	} else if (read->kind == MMAP_READAHEAD_SINGLE) {
		read->mark_met = true;
	}
	if (!answer->size || answer->start >= mark->file_pages) {
		answer->size = 0;
		return true;
	}
	answer->async_size = answer->size;
	finish(state, mark, read, answer);
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
