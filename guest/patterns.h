/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order in which a program accesses the pages of a file.
 *
 * All is worked out in integers, but for the size of a region: the same
 * settings give the same pages on every architecture.
 */
#ifndef FOLIOLAB_PATTERNS_H
#define FOLIOLAB_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define PATTERN_FANOUT	128	/* of an inner page of a B-tree */
#define PATTERN_LEVELS	11	/* enough for 2^64 leaves */
#define PATTERN_BLOB	3	/* pages of the smallest blob */
#define PATTERN_SPEEDS	8	/* of threads; one may be so much faster */
#define PATTERN_SPOTS	8	/* hot spots that may become hot again */

enum pattern_kind {
	PATTERN_RANDOM,
	PATTERN_SEQUENTIAL,
	PATTERN_REVERSE,
	PATTERN_STRIDE,
	PATTERN_ZIPF,		/* few pages often, with an exponent of 0.99 */
	PATTERN_STREAMS,	/* forward from several places, in turn */
	PATTERN_PINGPONG,	/* from the front and from the back, in turn */
	PATTERN_OBJECTS,	/* whole runs of pages, at random places */
	PATTERN_BTREE,		/* from the root to a random leaf */
	PATTERN_SCAN_RANDOM,	/* sequential and random, in turn */
	PATTERN_PHASES,		/* sequential, then random, then on */
	PATTERN_DRIFT,		/* forward by random steps */
	PATTERN_BLOBS,		/* runs of any size, each at its own place */
	PATTERN_HOT_SPOTS,	/* random in a small area that moves */
	PATTERN_MERGE,		/* forward from several places, and random */
	PATTERN_WALK,		/* on and back by normally distributed steps */
	PATTERN_BTREE_SCAN,	/* from the root to a leaf, and on from there */
	PATTERN_SCANNERS,	/* threads that go forward */
	PATTERN_READERS,	/* threads that read objects */
	PATTERN_SCAN_READERS,	/* one that goes forward, others that read */
};

static const char *const pattern_names[] = {
	"random", "sequential", "reverse", "stride", "zipf", "streams",
	"pingpong", "objects", "btree", "scan-random", "phases", "drift",
	"blobs", "hot-spots", "merge", "walk", "btree-scan", "scanners",
	"readers", "scan-readers", NULL
};

/* In which order the pages of an object are accessed. */
enum pattern_order {
	PATTERN_FORWARD,
	PATTERN_BACKWARD,
	PATTERN_SHUFFLED,
};

static const char *const pattern_orders[] = {
	"forward", "backward", "shuffled", NULL
};

/* What a pattern does not use may be anything; 0 is good for all. */
struct pattern {
	enum pattern_kind kind;
	enum pattern_order order;	/* of objects and blobs */
	uint64_t stride;	/* pages; drift steps by less, walk deviates */
	uint64_t streams;	/* or runs that are merged, or threads */
	uint64_t object;	/* pages, also of a hot spot; most of a scan */
	uint64_t burst;		/* accesses in a row; those of threads: most */
	double region;		/* of the file, for random; 0 is all of it */
	uint64_t seed;
};

static inline uint64_t pattern_clamp(uint64_t value, uint64_t most)
{
	if (!value)
		return 1;
	return value < most ? value : most;
}

/*
 * Another number below file_pages for each number below it, as if at random
 * but always the same. Each line in the loop can be undone, so no two numbers
 * of as many bits become one; what ends up too large goes round once more.
 */
static inline uint64_t pattern_scatter(uint64_t page, uint64_t file_pages)
{
	uint64_t mask = 0;
	int bits = 0;

	while (mask < file_pages - 1) {
		mask = mask << 1 | 1;
		bits++;
	}
	do {
		page = (page + 0x9e3779b97f4a7c15) & mask;
		page ^= page >> (bits / 2 + 1);
		page = page * 0xbf58476d1ce4e5b9 & mask;
		page ^= page >> (bits / 2 + 1);
		page = page * 0x94d049bb133111eb & mask;
		page ^= page >> (bits / 2 + 1);
	} while (page >= file_pages);
	return page;
}

static inline void pattern_random(const struct pattern *pattern,
				  uint64_t file_pages, uint64_t *pages,
				  uint64_t count)
{
	uint64_t state = pattern->seed, first = 0, size = file_pages;

	if (pattern->region > 0 && pattern->region < 1) {
		size = pattern_clamp(file_pages * pattern->region, file_pages);
		first = random_below(&state, file_pages - size + 1);
	}
	for (uint64_t i = 0; i < count; i++)
		pages[i] = first + random_below(&state, size);
}

/*
 * Ranks from 1, each with a weight of rank^-0.99 = rank^0.01 / rank. An octave,
 * the ranks from a power of two up to the next, has nearly the weight of any
 * other: choose one evenly, a rank of it evenly, and take that by the ratio of
 * its weight to the greatest possible. Within an octave, rank^0.01 is taken for
 * a straight line, which changes no weight by a thousandth.
 */
static inline void pattern_zipf(const struct pattern *pattern,
				uint64_t file_pages, uint64_t *pages,
				uint64_t count)
{
	const uint64_t step = 1081210289;	/* 2^0.01, times 2^30 */
	uint64_t state = pattern->seed, i = 0;
	uint64_t power[65];	/* 2^0.01 to the octave, times 2^30 */
	int octaves = 0;

	power[0] = 1 << 30;
	do {
		power[octaves + 1] = power[octaves] * step >> 30;
		octaves++;
	} while (octaves < 64 && file_pages >> octaves);

	while (i < count) {
		int octave = random_below(&state, octaves);
		uint64_t first = UINT64_C(1) << octave;
		uint64_t beyond = next_random(&state) & (first - 1);
		uint64_t rank = first + beyond;
		uint64_t rise = power[octave + 1] - power[octave];

		if (rank > file_pages || random_below(&state, rank) >= first)
			continue;
		/* How far beyond, in 2^-32 of the octave. */
		beyond = octave > 32 ? beyond >> (octave - 32) :
				       beyond << (32 - octave);
		if (random_below(&state, power[octaves]) >=
		    power[octave] + (rise * beyond >> 32))
			continue;
		pages[i++] = pattern_scatter(rank - 1, file_pages);
	}
}

/* Where one of so many equal parts of the file begins. */
static inline uint64_t pattern_part(uint64_t file_pages, uint64_t parts,
				    uint64_t part)
{
	return file_pages / parts * part + file_pages % parts * part / parts;
}

static inline void pattern_streams(const struct pattern *pattern,
				   uint64_t file_pages, uint64_t *pages,
				   uint64_t count)
{
	uint64_t streams = pattern_clamp(pattern->streams, file_pages);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t first = pattern_part(file_pages, streams, i % streams);

		pages[i] = (first + i / streams) % file_pages;
	}
}

/*
 * Which run goes on is left to chance: the last of two that are drawn, so that
 * speeds are as 1, 3, 5 and so on. Between them a random page is looked up,
 * after as many accesses as a burst has on average.
 */
static inline bool pattern_merge(const struct pattern *pattern,
				 uint64_t file_pages, uint64_t *pages,
				 uint64_t count)
{
	uint64_t runs = pattern_clamp(pattern->streams, file_pages);
	uint64_t turns = pattern_clamp(pattern->burst, UINT64_MAX - 1) + 1;
	uint64_t *done = calloc(runs, sizeof(*done));
	uint64_t state = pattern->seed;

	if (!done)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t run, other;

		if (!random_below(&state, turns)) {
			pages[i] = random_below(&state, file_pages);
			continue;
		}
		run = random_below(&state, runs);
		other = random_below(&state, runs);
		run = run < other ? other : run;
		pages[i] = pattern_part(file_pages, runs, run);
		pages[i] = (pages[i] + done[run]++) % file_pages;
	}
	free(done);
	return true;
}

/*
 * Cut the file into pieces, as large as the largest blob. In each lies one, of
 * a size and at a place that are always the same.
 */
static inline uint64_t pattern_blob(uint64_t *state, uint64_t file_pages,
				    uint64_t largest, uint64_t *size)
{
	uint64_t piece = random_below(state, file_pages / largest);
	uint64_t least = pattern_clamp(PATTERN_BLOB, largest), own = piece;

	*size = least + random_below(&own, largest - least + 1);
	return piece * largest + random_below(&own, largest - *size + 1);
}

static inline bool pattern_objects(const struct pattern *pattern,
				   uint64_t file_pages, uint64_t *pages,
				   uint64_t count)
{
	uint64_t most = pattern_clamp(pattern->object, file_pages);
	uint64_t *object = calloc(most, sizeof(*object));
	uint64_t state = pattern->seed;

	if (!object)
		return false;
	for (uint64_t done = 0, part; done < count; done += part) {
		uint64_t size = most, first;

		if (pattern->kind == PATTERN_BLOBS)
			first = pattern_blob(&state, file_pages, most, &size);
		else
			first = random_below(&state, file_pages - size + 1);
		for (uint64_t i = 0; i < size; i++)
			object[i] = first + (pattern->order == PATTERN_BACKWARD ?
					     size - 1 - i : i);
		for (uint64_t i = 0;
		     pattern->order == PATTERN_SHUFFLED && i < size; i++) {
			uint64_t other = i + random_below(&state, size - i);
			uint64_t page = object[i];

			object[i] = object[other];
			object[other] = page;
		}
		part = pattern_clamp(size, count - done);
		memcpy(pages + done, object, part * sizeof(*object));
	}
	free(object);
	return true;
}

/* How many pages a tree has on each level, from the leaves to the root. */
static inline int pattern_levels(uint64_t leaves, uint64_t *width,
				 uint64_t *total)
{
	int levels = 1;

	width[0] = *total = leaves;
	while (width[levels - 1] > 1) {
		width[levels] = (width[levels - 1] - 1) / PATTERN_FANOUT + 1;
		*total += width[levels++];
	}
	return levels;
}

/*
 * A tree as large as the file allows. Its pages are numbered from the root to
 * the leaves, and scattered, as if each lay where it was last written. A tree
 * that is scanned lies as it was built: the inner pages, then all leaves in
 * order.
 */
static inline void pattern_btree(const struct pattern *pattern,
				 uint64_t file_pages, uint64_t *pages,
				 uint64_t count)
{
	uint64_t leaves = 1, too_many = file_pages, width[PATTERN_LEVELS];
	uint64_t state = pattern->seed, total, most, i = 0;
	bool scan = pattern->kind == PATTERN_BTREE_SCAN;
	int levels;

	while (too_many - leaves > 1) {
		uint64_t middle = leaves + (too_many - leaves) / 2;

		pattern_levels(middle, width, &total);
		if (total <= file_pages)
			leaves = middle;
		else
			too_many = middle;
	}
	levels = pattern_levels(leaves, width, &total);
	most = pattern_clamp(pattern->object, leaves);

	while (i < count) {
		uint64_t leaf = random_below(&state, leaves), first = 0;

		for (int level = levels - 1; level >= 0 && i < count; level--) {
			uint64_t page = leaf;

			for (int up = 0; up < level; up++)
				page /= PATTERN_FANOUT;
			page += first;
			pages[i++] = scan ? page :
					    pattern_scatter(page, file_pages);
			first += width[level];
		}
		if (!scan)
			continue;
		for (uint64_t more = random_below(&state, most);
		     more && leaf + 1 < leaves && i < count; more--)
			pages[i++] = total - leaves + ++leaf;
	}
}

static inline void pattern_drift(const struct pattern *pattern,
				 uint64_t file_pages, uint64_t *pages,
				 uint64_t count)
{
	uint64_t state = pattern->seed, page = 0;

	for (uint64_t i = 0; i < count; i++) {
		pages[i] = page;
		page += random_below(&state, pattern_clamp(pattern->stride,
							   UINT64_MAX)) %
			file_pages;
		page %= file_pages;
	}
}

/*
 * A step is normally distributed, or nearly: it is the sum of twelve even
 * numbers of 16 bits, which deviates by 2^16.
 */
static inline void pattern_walk(const struct pattern *pattern,
				uint64_t file_pages, uint64_t *pages,
				uint64_t count)
{
	uint64_t wide = pattern_clamp(pattern->stride, file_pages);
	int64_t deviation = pattern_clamp(wide, UINT32_MAX);
	uint64_t state = pattern->seed;
	uint64_t page = random_below(&state, file_pages);

	for (uint64_t i = 0; i < count; i++) {
		int64_t sum = -6 * 0xffff, step;

		pages[i] = page;
		for (int j = 0; j < 3; j++) {
			uint64_t bits = next_random(&state);

			sum += (bits & 0xffff) + (bits >> 16 & 0xffff) +
			       (bits >> 32 & 0xffff) + (bits >> 48);
		}
		step = sum * deviation;
		if (step < 0)
			page += file_pages - (-step + 0x8000) / 0x10000 %
					     file_pages;
		else
			page += (step + 0x8000) / 0x10000 % file_pages;
		page %= file_pages;
	}
}

/* Of the places, a quarter were hot before. */
static inline void pattern_hot_spots(const struct pattern *pattern,
				     uint64_t file_pages, uint64_t *pages,
				     uint64_t count)
{
	uint64_t size = pattern_clamp(pattern->object, file_pages);
	uint64_t burst = pattern_clamp(pattern->burst, UINT64_MAX);
	uint64_t state = pattern->seed, spots[PATTERN_SPOTS], first = 0;
	uint64_t known = 0, most = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (i % burst == 0) {
			if (known && !random_below(&state, 4)) {
				first = spots[random_below(&state, most)];
			} else {
				first = random_below(&state,
						     file_pages - size + 1);
				spots[known++ % PATTERN_SPOTS] = first;
				most = pattern_clamp(known, PATTERN_SPOTS);
			}
		}
		pages[i] = first + random_below(&state, size);
	}
}

struct pattern_thread {
	uint64_t page;		/* the next */
	uint64_t left;		/* pages to go before it is anywhere else */
	uint64_t speed;
};

/*
 * Which thread goes on is left to chance, but some are faster than others, and
 * each goes on for up to a burst.
 */
static inline bool pattern_threads(const struct pattern *pattern,
				   uint64_t file_pages, uint64_t *pages,
				   uint64_t count)
{
	uint64_t nr_threads = pattern_clamp(pattern->streams, file_pages);
	uint64_t size = pattern_clamp(pattern->object, file_pages);
	uint64_t burst = pattern_clamp(pattern->burst, UINT64_MAX);
	struct pattern_thread *threads = calloc(nr_threads, sizeof(*threads));
	uint64_t state = pattern->seed, i = 0;

	if (!threads)
		return false;
	for (uint64_t thread = 0; thread < nr_threads; thread++) {
		bool scans = pattern->kind == PATTERN_SCANNERS ||
			     (pattern->kind == PATTERN_SCAN_READERS && !thread);

		threads[thread] = (struct pattern_thread) {
			.page = random_below(&state, file_pages),
			.left = scans ? UINT64_MAX : 0,
			.speed = 1 + random_below(&state, PATTERN_SPEEDS),
		};
	}
	while (i < count) {
		struct pattern_thread *thread =
			threads + random_below(&state, nr_threads);
		uint64_t left;

		if (random_below(&state, PATTERN_SPEEDS) >= thread->speed)
			continue;
		left = 1 + random_below(&state, burst);
		for (; left && i < count; left--) {
			if (!thread->left) {
				thread->page = random_below(&state, file_pages -
								    size + 1);
				thread->left = size;
			}
			pages[i++] = thread->page;
			thread->page = (thread->page + 1) % file_pages;
			thread->left--;
		}
	}
	free(threads);
	return true;
}

/* Those whose next page follows from its place in the order, or is random. */
static inline void pattern_simple(const struct pattern *pattern,
				  uint64_t file_pages, uint64_t *pages,
				  uint64_t count)
{
	uint64_t state = pattern->seed, third = count / 3;
	uint64_t step = pattern->stride % file_pages;

	for (uint64_t i = 0; i < count; i++) {
		switch (pattern->kind) {
		case PATTERN_REVERSE:
			pages[i] = file_pages - 1 - i % file_pages;
			break;
		case PATTERN_STRIDE:
			pages[i] = i ? (pages[i - 1] + step) % file_pages : 0;
			break;
		case PATTERN_PINGPONG:
			pages[i] = i / 2 % file_pages;
			if (i % 2)
				pages[i] = file_pages - 1 - pages[i];
			break;
		case PATTERN_SCAN_RANDOM:
			pages[i] = i % 2 ? random_below(&state, file_pages) :
					   i / 2 % file_pages;
			break;
		case PATTERN_PHASES:
			if (i < third)
				pages[i] = i % file_pages;
			else if (i < 2 * third)
				pages[i] = random_below(&state, file_pages);
			else
				pages[i] = (i - third) % file_pages;
			break;
		default:
			pages[i] = i % file_pages;
			break;
		}
	}
}

/*
 * The pages of one pass over a file that has at least one, in the order of
 * access. False if there is no memory to work them out.
 */
static inline bool pattern_plan(const struct pattern *pattern,
				uint64_t file_pages, uint64_t *pages,
				uint64_t count)
{
	switch (pattern->kind) {
	case PATTERN_RANDOM:
		pattern_random(pattern, file_pages, pages, count);
		return true;
	case PATTERN_ZIPF:
		pattern_zipf(pattern, file_pages, pages, count);
		return true;
	case PATTERN_STREAMS:
		pattern_streams(pattern, file_pages, pages, count);
		return true;
	case PATTERN_OBJECTS:
	case PATTERN_BLOBS:
		return pattern_objects(pattern, file_pages, pages, count);
	case PATTERN_BTREE:
	case PATTERN_BTREE_SCAN:
		pattern_btree(pattern, file_pages, pages, count);
		return true;
	case PATTERN_DRIFT:
		pattern_drift(pattern, file_pages, pages, count);
		return true;
	case PATTERN_HOT_SPOTS:
		pattern_hot_spots(pattern, file_pages, pages, count);
		return true;
	case PATTERN_MERGE:
		return pattern_merge(pattern, file_pages, pages, count);
	case PATTERN_WALK:
		pattern_walk(pattern, file_pages, pages, count);
		return true;
	case PATTERN_SCANNERS:
	case PATTERN_READERS:
	case PATTERN_SCAN_READERS:
		return pattern_threads(pattern, file_pages, pages, count);
	default:
		pattern_simple(pattern, file_pages, pages, count);
		return true;
	}
}

#endif /* FOLIOLAB_PATTERNS_H */
