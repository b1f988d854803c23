/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What readahead for mapped files decides, as plain arithmetic.
 *
 * Integers in, integers out: no locks, no folios, no globals. That is why the
 * kernel, its KUnit suite and a model in user space can all compile this file.
 */
#ifndef _LINUX_MMAP_READAHEAD_POLICY_H
#define _LINUX_MMAP_READAHEAD_POLICY_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <asm/page.h>
#else
#include <stdbool.h>
#include <stddef.h>
#define PAGE_SHIFT	12
#endif

/* Log2 of the bytes in a page. The KUnit suite has pages of its own. */
#ifndef MMAP_READAHEAD_PAGE_SHIFT
#define MMAP_READAHEAD_PAGE_SHIFT	PAGE_SHIFT
#endif

/**
 * enum mmap_readahead_reason - why a miss in a mapped file read what it read
 * @MMAP_READAHEAD_HUGE_HINT: the mapping asks for huge pages
 * @MMAP_READAHEAD_RANDOM_HINT: the mapping is hinted random: one folio
 * @MMAP_READAHEAD_OFF: readahead is switched off for the file: one folio
 * @MMAP_READAHEAD_SEQUENTIAL_HINT: the mapping is hinted sequential
 * @MMAP_READAHEAD_MISSES: too many misses, too few hits: one folio
 * @MMAP_READAHEAD_AROUND: none of these: a full window around the fault
 * @MMAP_READAHEAD_TEXT: the mapping is executable: one folio as text wants it
 * @MMAP_READAHEAD_ADAPTED: the adaptive window; this and the following ones are
 *	in the order of &enum mmap_readahead_kind: a single miss
 * @MMAP_READAHEAD_ADAPTED_FORWARD: a run goes on
 * @MMAP_READAHEAD_ADAPTED_BACKWARD: a run goes on backward
 * @MMAP_READAHEAD_ADAPTED_FILL: single misses fill the region
 */
enum mmap_readahead_reason {
	MMAP_READAHEAD_HUGE_HINT,
	MMAP_READAHEAD_RANDOM_HINT,
	MMAP_READAHEAD_OFF,
	MMAP_READAHEAD_SEQUENTIAL_HINT,
	MMAP_READAHEAD_MISSES,
	MMAP_READAHEAD_AROUND,
	MMAP_READAHEAD_TEXT,
	MMAP_READAHEAD_ADAPTED,
	MMAP_READAHEAD_ADAPTED_FORWARD,
	MMAP_READAHEAD_ADAPTED_BACKWARD,
	MMAP_READAHEAD_ADAPTED_FILL,
};

/**
 * enum mmap_readahead_rule - what differs from a kernel without these rules
 * @MMAP_READAHEAD_HIT_NEEDS_ADDRESS: the page at the faulting address was
 *	mapped; the fault then counts once, however many neighbours were mapped
 *	with it.
 * @MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY: the fault is not the retry of a fault
 *	that dropped its lock to read the page, which finds what itself brought.
 * @MMAP_READAHEAD_HIT_NEEDS_UNLOCKED: the folio is not locked, as it is while
 *	another thread's miss is still reading it.
 * @MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS: a miss in the same mapping would have
 *	raised the counter.
 * @MMAP_READAHEAD_TEXT_IN_FOLIOS: a miss in an executable mapping reads one
 *	folio of the size that text is to have.
 * @MMAP_READAHEAD_TEXT_UNCOUNTED: such a miss does not depend on the counter,
 *	and does not raise it.
 * @MMAP_READAHEAD_HUGE_HINT_CAPPED: where the page cache cannot hold folios of
 *	PMD size, the hint for huge pages asks for folios of up to 2 MiB.
 * @MMAP_READAHEAD_TEXT_KEEPS_HITS: hits in text that is read like any other data
 *	count as they do under no rule, and so do those in data of programs that
 *	would adapt if it were other data.
 * @MMAP_READAHEAD_ADAPTIVE: a miss without hints, but in text and data of
 *	programs, reads what mmap_readahead_adapt() answers; no hit or miss there
 *	counts.
 *
 * Every rule for hits only takes hits away: under no combination does a fault
 * count for more than it does under none.
 */
enum mmap_readahead_rule {
	MMAP_READAHEAD_HIT_NEEDS_ADDRESS	= 1 << 0,
	MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY	= 1 << 1,
	MMAP_READAHEAD_HIT_NEEDS_UNLOCKED	= 1 << 2,
	MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS	= 1 << 3,
	MMAP_READAHEAD_TEXT_IN_FOLIOS		= 1 << 4,
	MMAP_READAHEAD_TEXT_UNCOUNTED		= 1 << 5,
	MMAP_READAHEAD_HUGE_HINT_CAPPED		= 1 << 6,
	MMAP_READAHEAD_TEXT_KEEPS_HITS		= 1 << 7,
	MMAP_READAHEAD_ADAPTIVE			= 1 << 8,
};

/**
 * struct mmap_readahead_hit - what one fault found in the page cache
 * @nr_pages: pages that count when no rule is set
 * @at_address: one of them is the page at the faulting address
 * @retried: the fault was tried before, and dropped its lock to read
 * @locked: the folio at the faulting address is locked
 * @uncounted: a miss in the same mapping would not raise the counter
 */
struct mmap_readahead_hit {
	unsigned int nr_pages;
	bool at_address;
	bool retried;
	bool locked;
	bool uncounted;
};

/**
 * mmap_readahead_credit - how much one fault lowers the file's miss counter
 * @rules: set of &enum mmap_readahead_rule
 * @hit: what the fault found
 *
 * Return: hits to credit, from 0 to @hit->nr_pages.
 */
static inline unsigned int
mmap_readahead_credit(unsigned int rules, const struct mmap_readahead_hit *hit)
{
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY) && hit->retried)
		return 0;
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_UNLOCKED) && hit->locked)
		return 0;
	if ((rules & MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS) && hit->uncounted)
		return 0;
	if (rules & MMAP_READAHEAD_HIT_NEEDS_ADDRESS)
		return hit->nr_pages && hit->at_address;
	return hit->nr_pages;
}

/* What the hint for huge pages asks for at most if PMD size is too large. */
#define MMAP_READAHEAD_HUGE_SHIFT	21

/**
 * mmap_readahead_huge_order - folio size of mappings hinted for huge pages
 * @pmd_order: what a PMD maps
 * @cache_order: the most that the page cache can hold
 * @file_order: the most that the file can hold, 0 if no large folio at all
 * @page_shift: of a base page
 *
 * Return: an order, or -1 if the hint changes nothing.
 */
static inline int mmap_readahead_huge_order(unsigned int pmd_order,
					    unsigned int cache_order,
					    unsigned int file_order,
					    unsigned int page_shift)
{
	unsigned int cap = MMAP_READAHEAD_HUGE_SHIFT - page_shift;

	if (pmd_order <= cache_order)
		return pmd_order;
	if (!file_order)
		return -1;
	return file_order < cap ? file_order : cap;
}

/**
 * mmap_readahead_text_order - folio size of program text
 * @preferred: what text is to have, or -1
 * @min_order: the least that the file can hold
 * @max_order: the most that the file can hold, 0 if no large folio at all
 *
 * Return: an order, or -1 if the text of this file is to be read like any other
 * data.
 */
static inline int mmap_readahead_text_order(int preferred,
					    unsigned int min_order,
					    unsigned int max_order)
{
	unsigned int order = preferred;

	if (preferred < 0 || !max_order)
		return -1;
	if (order > max_order)
		order = max_order;
	return order < min_order ? min_order : order;
}

/**
 * struct mmap_readahead_window - what a miss reads
 * @start: first page, in pages of the file
 * @size: in pages
 */
struct mmap_readahead_window {
	unsigned long start;
	unsigned long size;
};

/**
 * mmap_readahead_block - the naturally aligned block that holds a page
 * @index: the page
 * @order: size of the block
 * @first: first page that may be read
 * @last: last page that may be read; @index lies between these two
 *
 * Return: the part of the block from @first to @last.
 */
static inline struct mmap_readahead_window
mmap_readahead_block(unsigned long index, unsigned int order,
		     unsigned long first, unsigned long last)
{
	unsigned long within = (1UL << order) - 1;
	unsigned long start = index & ~within;
	unsigned long end = index | within;

	if (start < first)
		start = first;
	if (end > last)
		end = last;
	return (struct mmap_readahead_window) {
		.start = start,
		.size = end - start + 1,
	};
}

/*
 * The adaptive window
 * -------------------
 * Without hints, a miss tells of one page that somebody needs. What else is
 * worth reading with it depends on what reading more was good for in this file.
 * A request costs as much as reading some number of further pages: all rules
 * weigh that number against the pages that they read.
 *
 * A miss is of one of three kinds:
 *
 * - It goes on where a recent read ended, and that read was used: a run, forward
 *   or backward. Its windows double. Many runs can share a file, as each goes on
 *   from reads of its own, or from what it used if these are forgotten.
 * - Its region of the file fills up: single misses there have cost a good part
 *   of what reading all of the region costs. It reads the aligned block around
 *   itself. Where pages of the file are evicted before they are needed again, it
 *   does so only if memory can hold all regions that such misses gather in: the
 *   program came back to data that it had left. When it leaves that and comes back
 *   once more, nothing has to fill up again.
 * - Else it is single. On either side its window is as large as has paid: it
 *   doubles when such reads are continued often enough, for which that has to be
 *   nearly always while memory is short, and is halved when their outer half is
 *   used too rarely, or when what one of them brought is gone and missed again. The
 *   largest window takes in a few evicted pages that it would leave beside itself.
 *
 * What is read with the pages that are needed may be what pushes them out. When much
 * that was evicted has been read again, one miss reads its page alone, and the next one
 * shows how far ahead the next page is that is needed. If memory could hold all pages
 * that are so far apart they are read one by one, but no more than there are. The first
 * time that may cost as much as a few more sweeps through the file would; from then on
 * as much, twice as much and so on has to be spent on reading again before. So what it
 * costs in vain comes to ever less of what it costs anyway.
 *
 * Nothing depends on hits, which therefore cost nothing. Whether a read was used
 * is asked when later misses need to know. A fault maps what is cached of the
 * block around it, so a page that is mapped was used, or one in its block was.
 */

/* Reads that are remembered; as many runs can share a file at no cost. */
#define MMAP_READAHEAD_READS		8
/*
 * How many of them pass until a single miss looks at its neighbours, unless a run
 * that was forgotten has just been found.
 */
#define MMAP_READAHEAD_SAMPLE		4
/* So far from where a window would end, or have its mark, the place for it is sought. */
#define MMAP_READAHEAD_NEIGHBOURS	32
/*
 * Regions of a file, and log2 of their least size, in pages: 64 MiB, or 8 MiB while
 * memory is short, as few of them have to be compared with it.
 */
#define MMAP_READAHEAD_REGIONS		32
#define MMAP_READAHEAD_REGION_SHIFT	(26 - MMAP_READAHEAD_PAGE_SHIFT)
#define MMAP_READAHEAD_SHORT_SHIFT	(23 - MMAP_READAHEAD_PAGE_SHIFT)
/*
 * What a single miss reads ahead in a file that nothing is known of, and behind
 * as well in a file of few pages: few misses will ever tell more of that one.
 */
#define MMAP_READAHEAD_FIRST_ORDER	4
#define MMAP_READAHEAD_SMALL_FILE	4096
/* So many single reads that nobody continued make their window smaller. */
#define MMAP_READAHEAD_PATIENCE		4
#define MMAP_READAHEAD_MAX_PATIENCE	64
/*
 * A region fills up when its single misses have cost three eighths of reading all
 * of it. Steps of so many requests' worth of pages do not add up to that.
 */
#define MMAP_READAHEAD_NEAR		3
/* Steps so short, or equal ones, sweep the file: they do not gather in a region. */
#define MMAP_READAHEAD_SWEEP		8
/* After so many other steps single misses are random. */
#define MMAP_READAHEAD_IRREGULAR	8
/* Fewer single misses than this say nothing of their region. */
#define MMAP_READAHEAD_MIN_SINGLES	4
/* While there are fewer than this for each region, counts do not age. */
#define MMAP_READAHEAD_RECENT_SINGLES	16
/* So many of them, while memory is short, show where the program is. */
#define MMAP_READAHEAD_VISIT		128

/* Each time that filling was in vain it has to be earned twice as hard. */
#define MMAP_READAHEAD_MAX_LOSSES	8
/* A share of a window that was changed just now. */
#define MMAP_READAHEAD_UNDECIDED	160
/* Above this share of single misses in evicted pages, memory is short. */
#define MMAP_READAHEAD_SHORT		32
/*
 * Then what is read takes the place of what will be needed again, and for windows
 * to become larger a request counts as so many times fewer pages.
 */
#define MMAP_READAHEAD_SCARCITY		16

/*
 * When evicted pages were read again for so many requests' worth, one is read alone,
 * and once more each time that this number has doubled, or grown by so many.
 */
#define MMAP_READAHEAD_TRIAL		16
#define MMAP_READAHEAD_LAST_TRIAL	4096
/* If the next page was needed, too, it has to grow to so many times more, at first. */
#define MMAP_READAHEAD_DENSE_TRIAL	7
/* A program that sweeps a file again is expected to do so as often. */
#define MMAP_READAHEAD_SWEEPS		8
/* Once that was in vain so often it does not have to be earned any harder. */
#define MMAP_READAHEAD_MAX_ALLOWED	5

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
 * @early: the last one is not known to be of use, only that it was time for it
 */
struct mmap_readahead_read {
	unsigned long index;
	unsigned long start;
	unsigned long end;
	unsigned int size;
	unsigned char kind;
	bool early;
};

/**
 * struct mmap_readahead_side - what single misses read on one side
 * @order: 2^order pages there, the missing page among them
 * @continued: how often that was too little, in 1/255
 * @used: how often the outer half was used, in 1/255
 * @quiet: reads since the last one that was continued
 * @patience: how many of these make the window smaller
 */
struct mmap_readahead_side {
	unsigned char order;
	unsigned char continued;
	unsigned char used;
	unsigned char quiet;
	unsigned char patience;
};

/**
 * struct mmap_readahead_singles - where the single misses of a file gather
 * @regions: in each region
 * @nr: in all regions
 * @shift: log2 of the size of a region
 * @losses: blocks that did not stay in memory, less those that did
 * @filled: a block was read for a region that fills up
 * @fill: a page of the first such block
 * @since: pages of the blocks asked for in its region, from that one on
 */
struct mmap_readahead_singles {
	unsigned short regions[MMAP_READAHEAD_REGIONS];
	unsigned int nr;
	unsigned char shift;
	unsigned char losses;
	bool filled;
	unsigned long fill;
	unsigned long since;
};

/**
 * struct mmap_readahead_visits - where a program was before, and is now
 * @dense: regions that were filled; these four are sets of bits
 * @left: those of them that no miss was in for a whole visit, and none on an
 *	evicted page since
 * @back: those that misses came back to, and have not left again
 * @met: regions that misses of this visit were in
 * @nr_met: how many these are
 * @misses: in this visit, which ends with %MMAP_READAHEAD_VISIT
 * @shift: log2 of the size of a region
 * @crowded: the last visit met more than memory can hold
 */
struct mmap_readahead_visits {
	unsigned int dense;
	unsigned int left;
	unsigned int back;
	unsigned int met;
	unsigned char nr_met;
	unsigned char misses;
	unsigned char shift;
	bool crowded;
};

/**
 * struct mmap_readahead_state - what is known of one file; all zero: nothing
 * @reads: recent reads
 * @next: which of them to forget next
 * @known: whether the rest is set up
 * @evicted: how often single misses met pages that had been evicted, in 1/255
 * @narrow: the most that a run reads is halved so often
 * @calm: misses since that had to be done
 * @ahead: what single misses read ahead
 * @behind: what they read behind
 * @last: page of the last single miss
 * @steps: its distance from the one before, and the distance before that
 * @irregular: single misses since the last one that sweeps
 * @forgotten: how many misses are to look for runs that were forgotten
 * @singles: where single misses gather, [1] of them while memory is short
 * @visits: to regions as they are in singles[1]
 * @reread: what reading evicted pages again has cost, in pages, since some were
 *	last read one by one
 * @trial: when @reread comes to that, a page is read alone
 * @alone: how many more pages may be read alone
 * @allowed: how often that was allowed; outlives what else is known of the file
 * @sparse: how many misses that go on from nothing are to do so
 */
struct mmap_readahead_state {
	struct mmap_readahead_read reads[MMAP_READAHEAD_READS];
	unsigned char next;
	bool known;
	unsigned char evicted;
	unsigned char narrow;
	unsigned char calm;
	struct mmap_readahead_side ahead;
	struct mmap_readahead_side behind;
	unsigned long last;
	unsigned long steps[2];
	unsigned char irregular;
	unsigned char forgotten;
	struct mmap_readahead_singles singles[2];
	struct mmap_readahead_visits visits;
	unsigned long long reread;
	unsigned long long trial;
	unsigned long alone;
	unsigned char allowed;
	unsigned char sparse;
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
 * @file_pages: size of the file; @index lies in it
 * @cached_pages: how many of them are cached
 * @max_pages: the most that one read may have, at least 1
 * @request_pages: what one request costs, in pages read, at least 1
 * @block_shift: a fault maps what is cached of 2^block_shift pages around itself
 * @look: what the page cache has of a page
 * @cache: for @look
 */
struct mmap_readahead_miss {
	unsigned long index;
	unsigned long file_pages;
	unsigned long cached_pages;
	unsigned int max_pages;
	unsigned int request_pages;
	unsigned int block_shift;
	enum mmap_readahead_page (*look)(const void *cache,
					 unsigned long index);
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

static inline unsigned int mmap_readahead_log2(unsigned long n)
{
	return n ? sizeof(n) * 8 - 1 - __builtin_clzl(n) : 0;
}

/* Folio size of a read: one that it holds several of. */
static inline unsigned int mmap_readahead_order(unsigned int size)
{
	if (size >= 64)
		return mmap_readahead_log2(size) - 3;
	return size >= 4 ? 2 : 0;
}

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

static inline bool mmap_readahead_cached(const struct mmap_readahead_miss *miss,
					 unsigned long index)
{
	return miss->look(miss->cache, index) >= MMAP_READAHEAD_CACHED;
}

/* Did the fault that asked for a read map a page, or another one of its folio? */
static inline bool
mmap_readahead_own(const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_read *read, unsigned long page)
{
	unsigned int shift = mmap_readahead_order(read->size);

	if (shift < miss->block_shift)
		shift = miss->block_shift;
	return page >> shift == read->index >> shift;
}

/*
 * How far from the last page that was used may a run go on? Not so far that a
 * request of its own is cheaper, or a window holds less than two such pages.
 */
static inline unsigned long
mmap_readahead_gap(const struct mmap_readahead_miss *miss)
{
	unsigned long half = (miss->max_pages + 1) / 2;

	return half < miss->request_pages ? half : miss->request_pages;
}

/*
 * Was the end of a read used that is nearest to a miss? @page is the last page
 * there, @inner one half a gap from it. What the read's own fault mapped proves
 * nothing.
 */
static inline bool
mmap_readahead_end_used(const struct mmap_readahead_miss *miss,
			const struct mmap_readahead_read *read,
			unsigned long page, unsigned long inner)
{
	if (mmap_readahead_own(miss, read, page))
		return false;
	if (mmap_readahead_used(miss, page))
		return true;
	return inner >= read->start && inner <= read->end &&
	       !mmap_readahead_own(miss, read, inner) &&
	       mmap_readahead_used(miss, inner);
}

/* Does a miss go on where a read ended? */
static inline bool
mmap_readahead_goes_forward(const struct mmap_readahead_miss *miss,
			    const struct mmap_readahead_read *read)
{
	unsigned long gap = mmap_readahead_gap(miss);

	if (miss->index <= read->end || miss->index - read->end > gap)
		return false;
	return miss->index - read->index <= gap ||
	       mmap_readahead_end_used(miss, read, read->end,
				       read->end - gap / 2);
}

/* Does it go on, downwards, where a read began? */
static inline bool
mmap_readahead_goes_backward(const struct mmap_readahead_miss *miss,
			     const struct mmap_readahead_read *read)
{
	unsigned long gap = mmap_readahead_gap(miss);

	if (miss->index >= read->start || read->start - miss->index > gap)
		return false;
	return read->index - miss->index <= gap ||
	       mmap_readahead_end_used(miss, read, read->start,
				       read->start + gap / 2);
}

/* Are pages of the file evicted before they are needed again? */
static inline bool
mmap_readahead_short(const struct mmap_readahead_state *state)
{
	return state->evicted > MMAP_READAHEAD_SHORT;
}

/*
 * What single misses read with their own page, ahead and behind: as much as has
 * paid, but together no more than the limit.
 */
static inline void
mmap_readahead_sides(const struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     unsigned long *ahead, unsigned long *behind)
{
	*ahead = (1UL << state->ahead.order) - 1;
	*behind = (1UL << state->behind.order) - 1;
	if (1 + *ahead + *behind > miss->max_pages) {
		if (*behind > miss->max_pages / 2)
			*behind = miss->max_pages / 2;
		if (*ahead > miss->max_pages - *behind - 1)
			*ahead = miss->max_pages - *behind - 1;
	}
}

/* The window was too large on this side. */
static inline void mmap_readahead_halve(struct mmap_readahead_side *side)
{
	if (side->order)
		side->order--;
	side->used = MMAP_READAHEAD_UNDECIDED;
	side->quiet = 0;
}

/* May what single misses read on this side become more? */
static inline bool
mmap_readahead_may_grow(const struct mmap_readahead_side *side,
			const struct mmap_readahead_miss *miss)
{
	return 2UL << side->order <= miss->max_pages;
}

/* Are windows of single misses continued so often that larger ones would pay? */
static inline bool
mmap_readahead_too_small(const struct mmap_readahead_state *state,
			 const struct mmap_readahead_side *side,
			 const struct mmap_readahead_miss *miss)
{
	unsigned int request = miss->request_pages;

	if (mmap_readahead_short(state))
		request = (request - 1) / MMAP_READAHEAD_SCARCITY + 1;
	return mmap_readahead_pays(side->continued, 1UL << side->order, request);
}

/*
 * Is it worth it to read on early behind the largest window that single misses may have?
 * What single misses read does not grow by that, also while memory is short; and as
 * nobody waits for it, it has to be of use less often than what a miss reads.
 */
static inline bool
mmap_readahead_early(const struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	const struct mmap_readahead_side *ahead = &state->ahead;

	return !mmap_readahead_may_grow(ahead, miss) &&
	       mmap_readahead_pays(ahead->continued, 1UL << ahead->order,
				   2UL * miss->request_pages);
}

/* A run went on from a single read: its window was too small on this side. */
static inline void
mmap_readahead_learn_continued(const struct mmap_readahead_state *state,
			       struct mmap_readahead_side *side,
			       const struct mmap_readahead_miss *miss)
{
	side->quiet = 0;
	side->continued = mmap_readahead_share(side->continued, true);
	if (!mmap_readahead_may_grow(side, miss) ||
	    !mmap_readahead_too_small(state, side, miss))
		return;
	side->order++;
	side->used = MMAP_READAHEAD_UNDECIDED;
	if (side->patience < MMAP_READAHEAD_MAX_PATIENCE)
		side->patience *= 2;
}

/*
 * A single read is forgotten that nobody continued: was the outer half of its
 * window worth it? @near and @far are pages of that half. What the miss itself
 * had mapped proves nothing; then the only way to know is to try without.
 * @could: somebody could have continued it.
 */
static inline void
mmap_readahead_learn_used(struct mmap_readahead_side *side,
			  const struct mmap_readahead_miss *miss,
			  const struct mmap_readahead_read *read,
			  unsigned long near, unsigned long far, bool could)
{
	if (could)
		side->continued = mmap_readahead_share(side->continued, false);
	if (side->quiet < MMAP_READAHEAD_MAX_PATIENCE)
		side->quiet++;
	if (!side->order) {
		if (side->quiet == MMAP_READAHEAD_MAX_PATIENCE)
			side->patience = MMAP_READAHEAD_PATIENCE;
		return;
	}

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
	mmap_readahead_halve(side);
}

/* A run comes to what was read early. */
static inline void
mmap_readahead_confirm(struct mmap_readahead_state *state,
		       struct mmap_readahead_read *read)
{
	if (!read->early)
		return;
	state->ahead.continued = mmap_readahead_share(state->ahead.continued,
						      true);
	state->ahead.quiet = 0;
	read->early = false;
}

/* Has nobody continued single pages for as long as is counted? */
static inline bool
mmap_readahead_settled(const struct mmap_readahead_side *side)
{
	return !side->order && !side->continued &&
	       side->quiet == MMAP_READAHEAD_MAX_PATIENCE;
}

/* Forget a read. */
static inline void
mmap_readahead_forget(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *miss,
		      const struct mmap_readahead_read *read)
{
	unsigned long behind = read->index - read->start;
	unsigned long ahead = read->end - read->index;
	unsigned long now_ahead, now_behind;
	bool may_grow = mmap_readahead_may_grow(&state->ahead, miss);

	if (read->early)
		state->ahead.continued =
			mmap_readahead_share(state->ahead.continued, false);
	if (!read->size || read->kind != MMAP_READAHEAD_SINGLE)
		return;
	/* Where accesses are sparse there is nothing more to learn of that. */
	if (read->size == 1 && mmap_readahead_settled(&state->ahead) &&
	    mmap_readahead_settled(&state->behind))
		return;
	/*
	 * Other reads, of the file's end say, tell nothing of this window. The
	 * largest one may have been moved.
	 */
	mmap_readahead_sides(state, miss, &now_ahead, &now_behind);
	if (ahead == now_ahead || (!may_grow && 2 * ahead >= now_ahead)) {
		/*
		 * Where the window may not grow, what is learnt is whether to
		 * read on early. It tells nothing of that if the next page is
		 * cached, and nobody can miss it.
		 */
		bool could = may_grow ||
			     !mmap_readahead_cached(miss, read->end + 1);

		mmap_readahead_learn_used(&state->ahead, miss, read,
					  read->index + (ahead + 1) * 5 / 8,
					  read->index + ahead, could);
	}
	if (behind == now_behind)
		mmap_readahead_learn_used(&state->behind, miss, read,
					  read->index - (behind + 1) * 5 / 8,
					  read->start, true);
}

/* Is a step, forward or backward, at most so long? */
static inline bool mmap_readahead_within(unsigned long step, unsigned long most)
{
	return step + most <= 2 * most;
}

/* Start to count anew. */
static inline void mmap_readahead_empty(struct mmap_readahead_singles *singles)
{
	*singles = (struct mmap_readahead_singles) {
		.shift = singles->shift,
		.losses = singles->losses,
	};
}

/* log2 of the size of a region that is not smaller than 2^@least pages. */
static inline unsigned int
mmap_readahead_region(const struct mmap_readahead_miss *miss, unsigned int least)
{
	unsigned int shift = mmap_readahead_log2(miss->file_pages);

	return shift < least + 4 ? least : shift - 4;
}

/*
 * Where single misses of this file are counted now. Regions are finer while
 * memory is short, as they are compared with it. What was counted for regions of
 * another size is forgotten.
 */
static inline struct mmap_readahead_singles *
mmap_readahead_singles(struct mmap_readahead_state *state,
		       const struct mmap_readahead_miss *miss)
{
	bool is_short = mmap_readahead_short(state);
	struct mmap_readahead_singles *singles = &state->singles[is_short];
	unsigned int shift;

	shift = mmap_readahead_region(miss, is_short ?
				      MMAP_READAHEAD_SHORT_SHIFT :
				      MMAP_READAHEAD_REGION_SHIFT);
	if (singles->shift != shift)
		mmap_readahead_empty(singles);
	singles->shift = shift;

	shift = mmap_readahead_region(miss, MMAP_READAHEAD_SHORT_SHIFT);
	if (state->visits.shift != shift)
		state->visits = (struct mmap_readahead_visits) {
			.shift = shift,
		};
	return singles;
}

/*
 * Are these counts too old? A count cannot grow for ever. While memory is short,
 * what gathers now has to outweigh what did before soon: once all single misses
 * have cost as much as it takes to fill all regions, each counts half.
 */
static inline bool
mmap_readahead_old(const struct mmap_readahead_state *state,
		   const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_singles *singles,
		   unsigned int region, unsigned int regions)
{
	if (singles->regions[region] == 65535)
		return true;
	return mmap_readahead_short(state) &&
	       singles->nr >= MMAP_READAHEAD_RECENT_SINGLES * regions &&
	       8ULL * singles->nr * miss->request_pages >=
	       3ULL * miss->file_pages;
}

/*
 * Can memory hold all regions that misses gather in? Were all like this one,
 * there would be all / here of them.
 */
static inline bool
mmap_readahead_fits(const struct mmap_readahead_miss *miss, unsigned int shift,
		    unsigned long long here, unsigned long long all)
{
	return all <= here * miss->cached_pages >> shift;
}

/* A page's region as a bit; none if the file was much longer when it had that page. */
static inline unsigned int
mmap_readahead_bit(const struct mmap_readahead_visits *visits,
		   unsigned long index)
{
	unsigned long region = index >> visits->shift;

	return region < MMAP_READAHEAD_REGIONS ? 1U << region : 0;
}

/* How many of eight pages of a region are evicted, or cached? One is @page. */
static inline unsigned int
mmap_readahead_sample(const struct mmap_readahead_miss *miss, unsigned int shift,
		      unsigned long page, bool evicted)
{
	unsigned long start = page >> shift << shift;
	unsigned long pages = miss->file_pages - start;
	unsigned int i, nr = 0;

	/* The file may have become shorter. */
	if (page >= miss->file_pages)
		return 0;
	if (pages >> shift)
		pages = 1UL << shift;
	for (i = 0; i < 8; i++) {
		enum mmap_readahead_page state = miss->look(miss->cache, page);

		nr += evicted ? state == MMAP_READAHEAD_EVICTED :
				state >= MMAP_READAHEAD_CACHED;
		page += pages / 8;
		if (page - start >= pages)
			page -= pages;
	}
	return nr;
}

/*
 * A visit is over: which regions had misses left? Reading blocks of one that they
 * came back to was worth it if they read nearly all of it. Where two visits in a
 * row met a region more than fit into what the file has cached misses are all over
 * it, and leave nothing; one may have seen both where the program came from and
 * where it went to.
 */
static inline void
mmap_readahead_end_visit(const struct mmap_readahead_miss *miss,
			 struct mmap_readahead_visits *visits)
{
	unsigned long memory = miss->cached_pages - miss->cached_pages / 8;
	bool crowded = visits->nr_met > (memory >> visits->shift) + 1;
	unsigned int bit, left = visits->back & ~visits->met;
	unsigned long page = 0;

	for (bit = 1; left & -bit; bit <<= 1, page += 1UL << visits->shift)
		if ((left & bit) &&
		    mmap_readahead_sample(miss, visits->shift, page, false) < 7)
			visits->dense &= ~bit;
	if (crowded && visits->crowded)
		visits->dense = 0;
	visits->crowded = crowded;
	visits->back &= visits->dense & visits->met;
	visits->left = visits->dense & (visits->left | ~visits->met);
	visits->met = 0;
	visits->nr_met = 0;
	visits->misses = 0;
}

/*
 * Count a single miss for this visit.
 *
 * Return: whether it comes back to a region that was filled, left and evicted. Where
 * memory holds nearly all of a file, no miss may be in a region because all of it is
 * there: so some of it has to be gone.
 */
static inline bool
mmap_readahead_comes_back(const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_visits *visits,
			  struct mmap_readahead_singles *singles)
{
	unsigned int bit = mmap_readahead_bit(visits, miss->index);

	if (!(visits->met & bit)) {
		visits->met |= bit;
		visits->nr_met++;
	}
	if (++visits->misses >= MMAP_READAHEAD_VISIT)
		mmap_readahead_end_visit(miss, visits);
	if (!((visits->left | visits->back) & bit) ||
	    miss->look(miss->cache, miss->index) != MMAP_READAHEAD_EVICTED)
		return false;
	if (!(visits->left & bit))
		return true;
	visits->left &= ~bit;
	if (mmap_readahead_sample(miss, visits->shift, miss->index, true) < 3)
		return false;
	/* A block that was read before may have been lost while that was left. */
	singles->filled = false;
	visits->back |= bit;
	return true;
}

/*
 * Count a single miss for its region. Short steps pass through a region without
 * ever filling it, and are left out: alone, longer ones can never be so many that
 * it seems to fill up.
 *
 * Return: whether the region fills up, or did before the program left it.
 */
static inline bool
mmap_readahead_fills(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     struct mmap_readahead_singles *singles)
{
	bool is_short = mmap_readahead_short(state);
	unsigned int shift = singles->shift;
	unsigned long request = miss->request_pages;
	unsigned long step = miss->index - state->last;
	unsigned long long here, all, cost, region_pages;
	unsigned int regions, region, i;

	if (step == state->steps[0] || step == state->steps[1] ||
	    mmap_readahead_within(step, MMAP_READAHEAD_SWEEP * request))
		state->irregular = 0;
	else if (state->irregular < MMAP_READAHEAD_IRREGULAR)
		state->irregular++;
	state->last = miss->index;
	state->steps[1] = state->steps[0];
	state->steps[0] = step;

	if (mmap_readahead_within(step, MMAP_READAHEAD_NEAR * request))
		return false;
	regions = ((miss->file_pages - 1) >> shift) + 1;
	region = miss->index >> shift;
	/* Not all that these misses read is still there. */
	if (singles->nr > miss->cached_pages)
		mmap_readahead_empty(singles);

	if (mmap_readahead_old(state, miss, singles, region, regions)) {
		singles->nr = 0;
		for (i = 0; i < MMAP_READAHEAD_REGIONS; i++) {
			singles->regions[i] /= 2;
			singles->nr += singles->regions[i];
		}
	}
	here = ++singles->regions[region];
	all = ++singles->nr;
	if (is_short && mmap_readahead_comes_back(miss, &state->visits, singles))
		return true;
	if (here < MMAP_READAHEAD_MIN_SINGLES ||
	    (is_short && !mmap_readahead_fits(miss, shift, here, all)))
		return false;

	/*
	 * Three eighths of what the region costs, or all of it if memory is
	 * short, and less where random misses gather in less than half of the
	 * file.
	 */
	region_pages = miss->file_pages - ((unsigned long)region << shift);
	if (region_pages >> shift)
		region_pages = 1UL << shift;
	region_pages <<= singles->losses;
	cost = 8 * here * miss->request_pages;
	if (state->irregular == MMAP_READAHEAD_IRREGULAR &&
	    here * regions > 2 * all)
		return cost * here * regions >= 6 * region_pages * all;
	return cost >= (is_short ? 8 : 3) * region_pages;
}

/* The most that is read at once: while memory is short, two requests' worth. */
static inline unsigned int
mmap_readahead_limit(const struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss)
{
	if (mmap_readahead_short(state) &&
	    miss->max_pages > 2 * miss->request_pages)
		return 2 * miss->request_pages;
	return miss->max_pages;
}

/* The most that a run reads at once. */
static inline unsigned int
mmap_readahead_run_limit(const struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *miss)
{
	unsigned int most = mmap_readahead_limit(state, miss);
	unsigned int limit = miss->max_pages >> state->narrow;

	if (limit < miss->request_pages)
		limit = miss->request_pages;
	return limit < most ? limit : most;
}

/* Called for each miss and mark: after many, runs may read more again. */
static inline void mmap_readahead_held(struct mmap_readahead_state *state)
{
	if (state->narrow && !++state->calm)
		state->narrow--;
}

/*
 * A miss in what a run has just read: the page was evicted before it was used, or
 * there was no memory for it, or another thread is about to read it.
 */
static inline bool
mmap_readahead_lost(const struct mmap_readahead_miss *miss,
		    const struct mmap_readahead_read *read)
{
	return read->kind == MMAP_READAHEAD_FORWARD &&
	       miss->index != read->index && miss->index >= read->start &&
	       miss->index <= read->end &&
	       read->end - miss->index < 2UL * read->size;
}

/*
 * Read on at the miss, in the direction that answer->kind has. @gap pages before
 * it that the run left out are read as well, unless they are most of it.
 */
static inline void
mmap_readahead_answer_run(const struct mmap_readahead_miss *miss,
			  unsigned int size, unsigned long gap,
			  struct mmap_readahead_answer *answer)
{
	if (gap > size || size + gap > miss->max_pages)
		gap = 0;
	if (answer->kind == MMAP_READAHEAD_FORWARD) {
		answer->start = miss->index - gap;
		answer->async_size = size / 2;
	} else {
		if (size - 1 > miss->index)
			size = miss->index + 1;
		answer->start = miss->index - (size - 1);
	}
	answer->size = size + gap;
}

/*
 * About how long is the run that comes to a page, as far as it is still there? Where
 * pages ever farther back were used there is one; beside the page alone, neighbours
 * are mapped that nobody used.
 */
static inline unsigned int
mmap_readahead_run_length(const struct mmap_readahead_miss *miss)
{
	unsigned long pages = 1;

	while (pages <= miss->index && pages <= miss->max_pages &&
	       mmap_readahead_used(miss, miss->index - pages))
		pages *= 2;
	return pages >> miss->block_shift > 1 ? pages / 2 : 0;
}

/*
 * What do a single miss and its neighbours tell? If many of them were evicted
 * before, memory is short. A neighbour that was used before would have paid to
 * read; beside larger windows, though, neighbours are mapped that nobody used. The
 * miss may also go on from a run that was forgotten, because too many share the file.
 *
 * Return: about how long that run is, or 0 if there is none.
 */
static inline unsigned int
mmap_readahead_look_around(struct mmap_readahead_state *state,
			   const struct mmap_readahead_miss *miss)
{
	bool lone = !state->ahead.order && !state->behind.order;
	bool evicted = miss->look(miss->cache, miss->index) ==
		       MMAP_READAHEAD_EVICTED;
	unsigned int run = mmap_readahead_run_length(miss);

	state->evicted = mmap_readahead_share(state->evicted, evicted);
	if (run)
		return run;
	if (lone && miss->index && mmap_readahead_used(miss, miss->index - 1))
		mmap_readahead_learn_continued(state, &state->ahead, miss);
	else if (lone && mmap_readahead_used(miss, miss->index + 1))
		mmap_readahead_learn_continued(state, &state->behind, miss);
	return 0;
}

/* The limit may have become lower since a window was learnt. */
static inline void mmap_readahead_cap(struct mmap_readahead_side *side,
				      const struct mmap_readahead_miss *miss)
{
	if (1UL << side->order > miss->max_pages)
		side->order = mmap_readahead_log2(miss->max_pages);
}

/*
 * How many evicted pages lie from @page on, in steps of @step, before a cached one? 0
 * if they are more than @most.
 */
static inline unsigned int
mmap_readahead_rest(const struct mmap_readahead_miss *miss, unsigned long page,
		    long step, unsigned int most)
{
	enum mmap_readahead_page found;
	unsigned int rest;

	for (rest = 0; rest <= most && page < miss->file_pages; rest++) {
		found = miss->look(miss->cache, page);
		if (found != MMAP_READAHEAD_EVICTED)
			return found >= MMAP_READAHEAD_CACHED ? rest : 0;
		page += step;
	}
	return 0;
}

/*
 * Evicted pages that a window leaves between itself and what is cached beside it cost
 * a request of their own later, however few they are. So it takes in what comes to no
 * more than half of it. Its page and its mark stay in it, in this order.
 */
static inline void
mmap_readahead_take_rest(const struct mmap_readahead_miss *miss,
			 struct mmap_readahead_answer *answer)
{
	unsigned long kept = miss->index - answer->start + 1 + answer->async_size;
	unsigned int room = kept < miss->max_pages ? miss->max_pages - kept : 0;
	unsigned int most = answer->size / 2, rest;

	if (most > MMAP_READAHEAD_NEIGHBOURS)
		most = MMAP_READAHEAD_NEIGHBOURS;
	rest = mmap_readahead_rest(miss, answer->start - 1, -1,
				   room < most ? room : most);
	answer->start -= rest;
	answer->size += rest;
	if (answer->size > miss->max_pages)
		answer->size = miss->max_pages;

	room = miss->max_pages - answer->size;
	rest = mmap_readahead_rest(miss, answer->start + answer->size, 1,
				   room < most ? room : most);
	answer->size += rest;
	answer->async_size += rest;
}

/* Read what single misses of this file need. */
static inline void
mmap_readahead_answer_single(struct mmap_readahead_state *state,
			     const struct mmap_readahead_miss *miss,
			     struct mmap_readahead_answer *answer)
{
	unsigned long ahead, behind;

	mmap_readahead_cap(&state->ahead, miss);
	mmap_readahead_cap(&state->behind, miss);
	mmap_readahead_sides(state, miss, &ahead, &behind);
	if (behind > miss->index)
		behind = miss->index;
	answer->start = miss->index - behind;
	answer->size = behind + 1 + ahead;
	if (!mmap_readahead_early(state, miss))
		return;
	answer->async_size = (ahead + 1) / 4;
	mmap_readahead_take_rest(miss, answer);
}

/*
 * The first block that was read to fill a region did not stay in memory. Was that
 * in vain? Not where memory is short, and misses have left that region for the
 * one that this miss is in, or for a whole visit, or where blocks that add up to
 * three quarters of the region were read before it was gone.
 *
 * Return: whether the region of this miss may be filled.
 */
static inline bool
mmap_readahead_fill_again(struct mmap_readahead_state *state,
			  const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_singles *singles)
{
	unsigned int there = singles->regions[singles->fill >> singles->shift];
	unsigned int here = singles->regions[miss->index >> singles->shift];
	struct mmap_readahead_visits *visits = &state->visits;
	unsigned int bit = mmap_readahead_bit(visits, singles->fill);

	if (mmap_readahead_short(state) &&
	    (2 * there < here || visits->left & bit ||
	     4 * singles->since >= 3UL << singles->shift)) {
		singles->filled = false;
		if (singles->losses)
			singles->losses--;
		return true;
	}
	visits->dense &= ~bit;
	visits->left &= ~bit;
	visits->back &= ~bit;
	mmap_readahead_empty(singles);
	if (singles->losses < MMAP_READAHEAD_MAX_LOSSES)
		singles->losses++;
	return false;
}

/* Read a block of a region that fills up, if such blocks stay in memory. */
static inline bool
mmap_readahead_answer_fill(struct mmap_readahead_state *state,
			   const struct mmap_readahead_miss *miss,
			   struct mmap_readahead_singles *singles,
			   struct mmap_readahead_answer *answer)
{
	unsigned int limit = mmap_readahead_limit(state, miss);

	if (singles->filled &&
	    !mmap_readahead_cached(miss, singles->fill) &&
	    !mmap_readahead_fill_again(state, miss, singles))
		return false;
	answer->kind = MMAP_READAHEAD_FILL;
	answer->size = 1U << mmap_readahead_log2(limit);
	answer->start = miss->index & ~(answer->size - 1UL);
	/* A block of one page reads nothing that could be lost. */
	if (limit == 1)
		return true;
	state->visits.dense |= mmap_readahead_bit(&state->visits, miss->index);
	if (!singles->filled) {
		singles->filled = true;
		singles->fill = miss->index;
		singles->since = 0;
	}
	/* A few large blocks add up to a region though none of them stayed for long. */
	if (singles->fill >> singles->shift == miss->index >> singles->shift &&
	    answer->size <= 1UL << singles->shift >> 4)
		singles->since += answer->size;
	return true;
}

/*
 * Is another thread about to read the page? Then the miss tells nothing new, and
 * reads just that if it comes first.
 */
static inline bool
mmap_readahead_under_way(const struct mmap_readahead_miss *miss,
			 const struct mmap_readahead_read *read)
{
	return miss->index == read->index &&
	       miss->look(miss->cache, miss->index) == MMAP_READAHEAD_ABSENT;
}

/*
 * A miss in what one of the last single reads brought, and what is gone again: memory
 * may not hold even such windows.
 */
static inline bool
mmap_readahead_thrashes(const struct mmap_readahead_state *state,
			const struct mmap_readahead_miss *miss,
			const struct mmap_readahead_read *read)
{
	const struct mmap_readahead_read *latest;

	latest = &state->reads[(state->next + MMAP_READAHEAD_READS - 1) %
			       MMAP_READAHEAD_READS];
	if (read->kind != MMAP_READAHEAD_SINGLE ||
	    miss->index < read->start || miss->index > read->end)
		return false;
	/* Another thread may be about to read it. */
	if (miss->index >= latest->start && miss->index <= latest->end)
		return false;
	return miss->look(miss->cache, miss->index) == MMAP_READAHEAD_EVICTED;
}

/*
 * The read that a miss goes on from, or NULL. Sets the kind of the answer, and
 * all of it if nothing else is to be done.
 */
static inline struct mmap_readahead_read *
mmap_readahead_find(struct mmap_readahead_state *state,
		    const struct mmap_readahead_miss *miss,
		    struct mmap_readahead_answer *answer)
{
	unsigned long gap = mmap_readahead_gap(miss);
	unsigned long reach = miss->index + gap;
	struct mmap_readahead_read *read, *thrashes = NULL;

	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS;
	     read++) {
		/*
		 * Most are too far away: the miss lies behind the end, or before
		 * the start, where the difference wraps around.
		 */
		if (reach - read->start > read->end - read->start + 2 * gap)
			continue;
		if (!read->size)
			continue;
		if (mmap_readahead_under_way(miss, read)) {
			answer->start = miss->index;
			answer->size = 1;
			return NULL;
		}
		if (read->kind == MMAP_READAHEAD_FILL)
			continue;
		if (mmap_readahead_thrashes(state, miss, read)) {
			thrashes = read;
			continue;
		}
		if (mmap_readahead_goes_backward(miss, read)) {
			answer->kind = MMAP_READAHEAD_BACKWARD;
			return read;
		}
		if (mmap_readahead_goes_forward(miss, read) ||
		    mmap_readahead_lost(miss, read)) {
			answer->kind = MMAP_READAHEAD_FORWARD;
			return read;
		}
	}
	if (thrashes) {
		mmap_readahead_halve(&state->ahead);
		mmap_readahead_halve(&state->behind);
	}
	return NULL;
}

/* Has reading again cost so much that a trial is due? Adds @cost if @page was evicted. */
static inline bool
mmap_readahead_trial_due(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *miss,
			 unsigned long page, unsigned long long cost)
{
	unsigned long long least = (unsigned long long)MMAP_READAHEAD_TRIAL *
				   miss->request_pages;

	if (miss->look(miss->cache, page) != MMAP_READAHEAD_EVICTED)
		return false;
	if (state->trial < least)
		state->trial = least;
	if (state->reread < state->trial)
		state->reread += cost;
	return state->reread >= state->trial;
}

/* No trial is due until reading again has cost so many times more than it has so far. */
static inline void
mmap_readahead_put_off(struct mmap_readahead_state *state,
		       const struct mmap_readahead_miss *miss, unsigned int times)
{
	unsigned long long most = (unsigned long long)MMAP_READAHEAD_LAST_TRIAL *
				  miss->request_pages;
	unsigned long long more = times * state->reread;
	unsigned long long trial = state->reread + (more < most ? more : most);

	if (state->trial < trial)
		state->trial = trial;
}

/* Is this miss to read its page alone, as a trial, instead of @size pages? */
static inline bool
mmap_readahead_try(struct mmap_readahead_state *state,
		   const struct mmap_readahead_miss *miss, unsigned long size)
{
	if (!mmap_readahead_trial_due(state, miss, miss->index,
				      (unsigned long long)size +
				      miss->request_pages))
		return false;
	mmap_readahead_put_off(state, miss, 1);
	return true;
}

/*
 * May pages at such a distance be read one by one? Not before reading again has cost
 * as much; the first time it is expected to.
 */
static inline bool
mmap_readahead_allow_alone(struct mmap_readahead_state *state,
			   const struct mmap_readahead_miss *miss,
			   unsigned int distance)
{
	unsigned long pages = miss->file_pages / distance;
	unsigned long long expected = (unsigned long long)MMAP_READAHEAD_SWEEPS *
				      miss->file_pages;
	unsigned long long cost;

	/* Some are read before all that is in their way is gone. */
	pages += pages / 4;
	cost = (unsigned long long)pages * miss->request_pages;
	if (state->allowed)
		cost <<= state->allowed - 1;
	else
		cost -= expected < cost ? expected : cost;
	if (state->reread < cost) {
		if (state->trial > cost)
			state->trial = cost;
		return false;
	}
	state->alone = pages;
	state->reread = 0;
	state->trial = 0;
	if (state->allowed < MMAP_READAHEAD_MAX_ALLOWED)
		state->allowed++;
	return true;
}

/*
 * Is a miss that goes on from a run to read its page alone? What was read alone shows
 * how far it is from there to the next page that is needed.
 */
static inline bool
mmap_readahead_run_alone(struct mmap_readahead_state *state,
			 const struct mmap_readahead_miss *miss,
			 const struct mmap_readahead_read *read)
{
	unsigned long long distance = miss->index - read->index;

	if (read->kind != MMAP_READAHEAD_FORWARD)
		return false;
	if (read->size > 1)
		return mmap_readahead_try(state, miss, read->size);
	state->sparse = 0;
	if (distance <= 1) {
		mmap_readahead_put_off(state, miss, MMAP_READAHEAD_DENSE_TRIAL);
		return false;
	}
	if (distance * miss->cached_pages < miss->file_pages ||
	    miss->look(miss->cache, miss->index) != MMAP_READAHEAD_EVICTED)
		return false;
	if (!state->alone &&
	    !mmap_readahead_allow_alone(state, miss, distance))
		return false;
	state->alone--;
	state->sparse = MMAP_READAHEAD_READS;
	return true;
}

/* Is one that goes on from nothing to do so? */
static inline bool
mmap_readahead_start_alone(struct mmap_readahead_state *state,
			   const struct mmap_readahead_miss *miss)
{
	if (!state->sparse)
		return state->ahead.order &&
		       mmap_readahead_try(state, miss, 1UL << state->ahead.order);
	state->sparse--;
	if (!state->alone ||
	    miss->look(miss->cache, miss->index) != MMAP_READAHEAD_EVICTED)
		return false;
	state->alone--;
	return true;
}

/* A miss goes on from an earlier read. */
static inline void
mmap_readahead_continue(struct mmap_readahead_state *state,
			const struct mmap_readahead_miss *miss,
			const struct mmap_readahead_read *read,
			struct mmap_readahead_answer *answer)
{
	unsigned int size, limit = mmap_readahead_run_limit(state, miss);
	bool lost = miss->index >= read->start && miss->index <= read->end;
	struct mmap_readahead_side *side;
	unsigned long gap = 0, past;

	if (answer->kind == MMAP_READAHEAD_FORWARD && !lost &&
	    mmap_readahead_run_alone(state, miss, read)) {
		mmap_readahead_answer_run(miss, 1, 0, answer);
		return;
	}
	if (lost) {
		size = read->size / 2;
		if (miss->look(miss->cache, miss->index) ==
		    MMAP_READAHEAD_EVICTED) {
			if (limit > miss->request_pages)
				state->narrow++;
			state->calm = 1;
		}
	} else if (read->kind == MMAP_READAHEAD_SINGLE) {
		side = answer->kind == MMAP_READAHEAD_FORWARD ? &state->ahead :
								&state->behind;
		size = side->order ? 1U << side->order : 2;
		mmap_readahead_learn_continued(state, side, miss);
	} else if (answer->kind == MMAP_READAHEAD_FORWARD &&
		   read->kind == MMAP_READAHEAD_FORWARD && read->size == 1) {
		/* After a trial; windows that do not end with a block cost faults. */
		size = 2 * miss->request_pages;
		size = 1U << mmap_readahead_log2(size < limit ? size : limit);
		size -= miss->index & (size - 1);
	} else {
		size = 2 * read->size;
	}
	if (miss->index > read->end)
		gap = miss->index - read->end - 1;
	else if (miss->index < read->start)
		gap = read->start - miss->index - 1;
	if (size >= limit) {
		size = limit;
		/* A block that two windows share takes two faults to map. */
		past = (miss->index + size) & ((1UL << miss->block_shift) - 1);
		if (answer->kind == MMAP_READAHEAD_FORWARD && size > 2 * past)
			size -= past;
	}
	mmap_readahead_answer_run(miss, size ? size : 1, gap, answer);
}

/* A miss goes on from nothing that is remembered. */
static inline void
mmap_readahead_start(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *miss,
		     struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_singles *singles;
	unsigned int limit, size;

	/*
	 * Some of the misses tell as much as all, and cost less; but where one
	 * run was forgotten, others were.
	 */
	if (state->forgotten || state->next % MMAP_READAHEAD_SAMPLE == 0) {
		size = mmap_readahead_look_around(state, miss);
		if (state->forgotten)
			state->forgotten--;
		if (size) {
			if (state->forgotten < MMAP_READAHEAD_READS)
				state->forgotten += 2;
			limit = mmap_readahead_run_limit(state, miss);
			answer->kind = MMAP_READAHEAD_FORWARD;
			mmap_readahead_answer_run(miss,
						  size < limit ? size : limit,
						  0, answer);
			return;
		}
	}
	singles = mmap_readahead_singles(state, miss);
	if (mmap_readahead_fills(state, miss, singles) &&
	    mmap_readahead_answer_fill(state, miss, singles, answer))
		return;
	if (mmap_readahead_start_alone(state, miss)) {
		answer->kind = MMAP_READAHEAD_FORWARD;
		mmap_readahead_answer_run(miss, 1, 0, answer);
	} else {
		mmap_readahead_answer_single(state, miss, answer);
	}
}

/*
 * A page that is cached is not read, and cannot get the mark. If it was used then the
 * mark belongs to the next page. Others were read ahead and not used yet, and to read
 * on behind those takes memory that they need.
 */
static inline void
mmap_readahead_place_mark(const struct mmap_readahead_miss *miss,
			  struct mmap_readahead_answer *answer)
{
	unsigned long end = answer->start + answer->size;
	unsigned int looks = MMAP_READAHEAD_NEIGHBOURS;

	while (answer->async_size > 1 && looks-- &&
	       mmap_readahead_used(miss, end - answer->async_size))
		answer->async_size--;
}

/* Cut what is to be read to the file, and give it its mark and the size of its folios. */
static inline void
mmap_readahead_finish(const struct mmap_readahead_miss *miss,
		      struct mmap_readahead_answer *answer)
{
	if (answer->size > miss->file_pages - answer->start)
		answer->size = miss->file_pages - answer->start;
	if (answer->async_size >= answer->size)
		answer->async_size = answer->size / 2;
	mmap_readahead_place_mark(miss, answer);
	answer->order = mmap_readahead_order(answer->size);
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
	struct mmap_readahead_answer answer = { .kind = MMAP_READAHEAD_SINGLE };
	struct mmap_readahead_read *read;
	bool small = miss->file_pages <= MMAP_READAHEAD_SMALL_FILE;
	unsigned long end;
	bool goes_on;

	/* Nothing is left of what was read: this may as well be another file. */
	if (!miss->cached_pages || !state->known)
		*state = (struct mmap_readahead_state) {
			.known = true,
			.allowed = state->allowed,
			.ahead = {
				.order = MMAP_READAHEAD_FIRST_ORDER,
				.used = MMAP_READAHEAD_UNDECIDED,
				.patience = MMAP_READAHEAD_PATIENCE,
			},
			.behind = {
				.order = small ? MMAP_READAHEAD_FIRST_ORDER : 0,
				.used = MMAP_READAHEAD_UNDECIDED,
				.patience = MMAP_READAHEAD_PATIENCE,
			},
		};
	mmap_readahead_held(state);

	read = mmap_readahead_find(state, miss, &answer);
	if (answer.size)
		return answer;
	goes_on = read;
	if (goes_on) {
		if (answer.kind == MMAP_READAHEAD_FORWARD &&
		    miss->index > read->end)
			mmap_readahead_confirm(state, read);
		mmap_readahead_continue(state, miss, read, &answer);
	} else {
		read = &state->reads[state->next];
		state->next = (state->next + 1) % MMAP_READAHEAD_READS;
		mmap_readahead_forget(state, miss, read);
		read->early = false;
		mmap_readahead_start(state, miss, &answer);
	}

	/* A page alone is in the file, has no mark, and is in no large folio. */
	if (answer.size > 1)
		mmap_readahead_finish(miss, &answer);
	end = answer.start + answer.size - 1;
	if (!goes_on || answer.start < read->start)
		read->start = answer.start;
	if (!goes_on || end > read->end)
		read->end = end;
	read->index = miss->index;
	read->size = answer.size;
	read->kind = answer.kind;
	return answer;
}

/*
 * The read that has a mark. Sets whether that is forgotten: it is not if another
 * thread has come to the mark and read on.
 */
static inline struct mmap_readahead_read *
mmap_readahead_marked(struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *mark, bool *forgotten)
{
	struct mmap_readahead_read *read;

	*forgotten = true;
	for (read = state->reads; read < state->reads + MMAP_READAHEAD_READS;
	     read++) {
		if (read->index == mark->index)
			*forgotten = false;
		if (mark->index > read->end ||
		    read->end - mark->index >= read->size)
			continue;
		*forgotten = false;
		if (read->kind == MMAP_READAHEAD_FORWARD ||
		    (read->kind == MMAP_READAHEAD_SINGLE &&
		     mmap_readahead_early(state, mark)))
			return read;
	}
	return NULL;
}

/*
 * The last page of the window that has a mark, or the one @most pages from there if it
 * is no farther. Asks in steps that double and halve; what lies between is taken to be
 * cached.
 */
static inline unsigned long
mmap_readahead_window_end(const struct mmap_readahead_miss *mark,
			  unsigned long most)
{
	unsigned long end = mark->index, step = 1;
	unsigned long last = mark->file_pages - 1;

	if (last - end > most)
		last = end + most;
	while (step <= last - end && mmap_readahead_cached(mark, end + step)) {
		end += step;
		step *= 2;
	}
	for (step /= 2; step; step /= 2)
		if (step <= last - end && mmap_readahead_cached(mark, end + step))
			end += step;
	return end;
}

/*
 * A run comes to its mark that was forgotten, because too many share the file: how
 * much is it to read behind @end? As much as is still there of what it has used, but
 * where memory is short, or has lost what it used before that, no more than it has
 * left to use, and never more than @limit. Where pages are read alone such marks are of
 * no run.
 *
 * Return: pages, 0 if there is no run, or it has that much left already.
 */
static inline unsigned int
mmap_readahead_recall(const struct mmap_readahead_state *state,
		      const struct mmap_readahead_miss *mark,
		      unsigned int limit, unsigned long *end)
{
	unsigned int length = state->sparse ? 0 : mmap_readahead_run_length(mark);
	unsigned long left, before = 2UL * length;
	bool scarce = mmap_readahead_short(state);

	if (!length)
		return 0;
	if (before <= mark->index &&
	    mark->look(mark->cache, mark->index - before) ==
	    MMAP_READAHEAD_EVICTED)
		scarce = true;
	if (length > limit)
		length = limit;
	*end = mmap_readahead_window_end(mark, length);
	left = *end - mark->index + 1;
	if (left > length)
		return 0;
	return scarce ? left : length;
}

/*
 * Does a run come to the mark in a window, rather than one of many accesses
 * there? Then what lies before the mark was used, and what follows was not.
 */
static inline bool
mmap_readahead_arrives(const struct mmap_readahead_miss *mark, unsigned long end)
{
	unsigned long rest = end - mark->index;
	unsigned long near = (3UL << mark->block_shift) / 2;
	unsigned long before = mark->index < near ? mark->index : near;

	if (mark->index &&
	    !mmap_readahead_used(mark, mark->index - 1) &&
	    !mmap_readahead_used(mark, mark->index - before))
		return false;
	if (rest < 2UL << mark->block_shift)
		return true;
	return !mmap_readahead_used(mark, mark->index + rest) &&
	       !mmap_readahead_used(mark, mark->index + rest / 2) &&
	       !mmap_readahead_used(mark, mark->index + near);
}

/**
 * mmap_readahead_go_on - what to read when a run comes to its readahead mark
 * @state: what is known of the file; learns
 * @mark: the page that has the mark, and the rest as for a miss
 *
 * Once requests are large enough each is a quarter larger than the one before:
 * nobody waits for them, so growing faster gains little, and what is read beyond
 * the end of a long run comes down to about half of the run. A run that was forgotten
 * reads on as well, and stays so.
 *
 * Return: a read of no pages if there is nothing to read.
 */
static inline struct mmap_readahead_answer
mmap_readahead_go_on(struct mmap_readahead_state *state,
		     const struct mmap_readahead_miss *mark)
{
	struct mmap_readahead_answer answer = { .kind = MMAP_READAHEAD_FORWARD };
	unsigned int size, limit = mmap_readahead_run_limit(state, mark);
	struct mmap_readahead_read *read;
	unsigned long end;
	bool forgotten;

	read = mmap_readahead_marked(state, mark, &forgotten);
	if (read) {
		end = read->end;
		size = 2 * read->size;
		if (size > mark->request_pages)
			size = read->size + (read->size + 3) / 4;
	} else {
		size = forgotten ? mmap_readahead_recall(state, mark, limit,
							 &end) : 0;
		if (!size)
			return answer;
	}
	answer.start = end + 1;
	if (answer.start >= mark->file_pages || !mmap_readahead_arrives(mark, end))
		return answer;

	if (size > limit)
		size = limit;
	if (size > mark->file_pages - answer.start)
		size = mark->file_pages - answer.start;
	/* A trial takes a miss that goes on from a read. */
	if (read && mmap_readahead_trial_due(state, mark, answer.start, read->size))
		return answer;
	answer.size = size;
	answer.async_size = size;
	/* What is read early may be of no use: who touches its start needs no more. */
	if (read && read->kind == MMAP_READAHEAD_SINGLE)
		answer.async_size = (size + 1) / 2;
	mmap_readahead_place_mark(mark, &answer);
	answer.order = mmap_readahead_order(size);
	/* Where many runs share the file, one tells nothing of what memory holds. */
	if (!read)
		return answer;

	/* Here memory holds what is read until it is used. */
	mmap_readahead_held(state);
	state->evicted = mmap_readahead_share(state->evicted, false);

	read->index = mark->index;
	read->end = end + size;
	read->size = size;
	mmap_readahead_confirm(state, read);
	read->early = read->kind == MMAP_READAHEAD_SINGLE;
	read->kind = MMAP_READAHEAD_FORWARD;
	return answer;
}

#endif /* _LINUX_MMAP_READAHEAD_POLICY_H */
