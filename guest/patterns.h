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
};

static const char *const pattern_names[] = {
	"random", "sequential", "reverse", "stride", "zipf", "streams",
	"pingpong", "objects", "btree", "scan-random", "phases", "drift", NULL
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
	enum pattern_order order;	/* of objects */
	uint64_t stride;	/* pages; drift steps by less than that */
	uint64_t streams;
	uint64_t object;	/* pages */
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

static inline void pattern_streams(const struct pattern *pattern,
				   uint64_t file_pages, uint64_t *pages,
				   uint64_t count)
{
	uint64_t streams = pattern_clamp(pattern->streams, file_pages);

	for (uint64_t i = 0; i < count; i++) {
		uint64_t stream = i % streams;
		uint64_t first = file_pages / streams * stream +
				 file_pages % streams * stream / streams;

		pages[i] = (first + i / streams) % file_pages;
	}
}

static inline bool pattern_objects(const struct pattern *pattern,
				   uint64_t file_pages, uint64_t *pages,
				   uint64_t count)
{
	uint64_t size = pattern_clamp(pattern->object, file_pages);
	uint64_t *object = calloc(size, sizeof(*object));
	uint64_t state = pattern->seed;

	if (!object)
		return false;
	for (uint64_t done = 0, part; done < count; done += part) {
		uint64_t first = random_below(&state, file_pages - size + 1);

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
 * the leaves, and scattered, as if each lay where it was last written.
 */
static inline void pattern_btree(const struct pattern *pattern,
				 uint64_t file_pages, uint64_t *pages,
				 uint64_t count)
{
	uint64_t leaves = 1, too_many = file_pages, width[PATTERN_LEVELS];
	uint64_t state = pattern->seed, total, i = 0;
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

	while (i < count) {
		uint64_t leaf = random_below(&state, leaves), first = 0;

		for (int level = levels - 1; level >= 0 && i < count; level--) {
			uint64_t page = leaf;

			for (int up = 0; up < level; up++)
				page /= PATTERN_FANOUT;
			pages[i++] = pattern_scatter(first + page, file_pages);
			first += width[level];
		}
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
		return pattern_objects(pattern, file_pages, pages, count);
	case PATTERN_BTREE:
		pattern_btree(pattern, file_pages, pages, count);
		return true;
	case PATTERN_DRIFT:
		pattern_drift(pattern, file_pages, pages, count);
		return true;
	default:
		pattern_simple(pattern, file_pages, pages, count);
		return true;
	}
}

#endif /* FOLIOLAB_PATTERNS_H */
