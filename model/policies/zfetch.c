// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenZFS: dmu_zfetch_prepare() in module/zfs/dmu_zfetch.c.
 *
 * https://github.com/openzfs/zfs, since version 2.3
 *
 * A file has up to eight streams. Each expects a block; an access of that
 * block moves it on, and doubles the distance to which it prefetches, up to
 * zfetch_min_distance. An access further on, closer than that distance, is
 * remembered as one of nine ranges of the future; the stream goes on over the
 * holes between them once these are at most a quarter of the way. An access as
 * close before the stream is ignored; any other begins a stream of its own,
 * which prefetches from its second access on. There is no other direction than
 * forward, and no window around a miss.
 *
 * It sees each block when it is read, from memory or not. So no fault maps
 * more than its own page here.
 *
 * What is simpler here: a block is a page, as of a file with records of 4 KiB.
 * Distances are read_ahead_pages at most, and zfetch_min_distance of 4 MiB:
 * they grow on, up to zfetch_max_distance, only where prefetches come too late,
 * and here reads end at once. The device's queue joins requests for pages side
 * by side; so request_pages are prefetched together, or half of the distance,
 * and not one page with each access. There is no time: a new stream replaces
 * one that nothing has followed yet, else the one that has not been followed
 * for longest. OpenZFS waits until that is one or two seconds ago, and begins
 * no stream meanwhile; taking a number of misses for a second made it worse in
 * the mean, whatever the number. Indirect blocks are not read.
 */
#include "../policy.h"

#define STREAMS		8	/* zfetch_max_streams */
#define RANGES		9	/* ZFETCH_RANGES */
#define MIN_DISTANCE	1024	/* zfetch_min_distance in pages */
#define HOLE_SHIFT	2	/* zfetch_hole_shift */

/* Pages accessed in the future of a stream, counted from where it is. */
struct range {
	uint16_t start, end;
};

struct stream {
	uint64_t next;		/* the page that it expects; 0 for no stream */
	uint64_t from, to;	/* to be prefetched */
	uint64_t followed;	/* when it, or a page close to it, was met */
	uint32_t distance;
	bool proven;		/* was followed */
	bool missed;		/* as it went on, a page was not cached */
	uint32_t nr_ranges;
	struct range ranges[RANGES];	/* in order, apart from each other */
};

struct zfetch_state {
	uint64_t clock;
	struct stream streams[STREAMS];
};

static uint32_t max_distance(const struct model_machine *machine)
{
	return machine->read_ahead_pages < MIN_DISTANCE ?
		machine->read_ahead_pages : MIN_DISTANCE;
}

/* Go on by so many pages, and over what they join; how many these are. */
static uint64_t advance(struct stream *stream, uint64_t pages)
{
	uint32_t i, kept = 0;

	for (i = 0; i < stream->nr_ranges; i++) {
		if (stream->ranges[i].start > pages)
			break;
		if (stream->ranges[i].end > pages)
			pages = stream->ranges[i].end;
	}
	for (; i < stream->nr_ranges; i++, kept++) {
		stream->ranges[kept].start = stream->ranges[i].start - pages;
		stream->ranges[kept].end = stream->ranges[i].end - pages;
	}
	stream->nr_ranges = kept;
	stream->next += pages;
	return pages;
}

/* Remember an access so many pages ahead. False if there is no room. */
static bool remember(struct stream *stream, uint32_t ahead)
{
	struct range *ranges = stream->ranges;
	uint32_t i, nr = stream->nr_ranges;

	for (i = 0; i < nr && ranges[i].end < ahead; i++)
		;
	/* The first that ends at the page, or lies behind it. */
	if (i == nr || ranges[i].start > ahead + 1) {
		if (nr == RANGES)
			return false;
		for (uint32_t j = nr; j > i; j--)
			ranges[j] = ranges[j - 1];
		ranges[i] = (struct range){ ahead, ahead + 1 };
		stream->nr_ranges++;
		return true;
	}
	if (ranges[i].start > ahead)
		ranges[i].start = ahead;
	if (ranges[i].end > ahead)
		return true;
	ranges[i].end = ahead + 1;
	if (i + 1 == nr || ranges[i + 1].start > ahead + 1)
		return true;
	ranges[i].end = ranges[i + 1].end;
	for (i++; i + 1 < nr; i++)
		ranges[i] = ranges[i + 1];
	stream->nr_ranges--;
	return true;
}

/* How far the stream goes on for an access ahead of it, which may be 0. */
static uint64_t reach(struct stream *stream, uint32_t ahead)
{
	uint32_t holes = 0, end = 0, filled = 0;

	if (!remember(stream, ahead))
		return 0;
	for (uint32_t i = 0; i < stream->nr_ranges; i++) {
		holes += stream->ranges[i].start - end;
		end = stream->ranges[i].end;
		if (holes <= end >> HOLE_SHIFT)
			filled = end;
	}
	return filled ? advance(stream, filled) : 0;
}

static struct stream *find(struct zfetch_state *state, uint64_t index,
			   uint32_t hole, uint64_t *pages)
{
	struct stream *end = state->streams + STREAMS, *stream;

	*pages = 0;
	for (stream = state->streams; stream < end; stream++) {
		if (!stream->next)
			continue;
		if (index + 1 == stream->next)
			return stream;
		if (index == stream->next) {
			*pages = advance(stream, 1);
			return stream;
		}
	}
	for (stream = state->streams; stream < end; stream++) {
		if (!stream->next)
			continue;
		if (index > stream->next && index + 1 < stream->next + hole) {
			*pages = reach(stream, index - stream->next);
			return stream;
		}
		if (index < stream->next && index + 1 + hole > stream->next)
			return stream;
	}
	return NULL;
}

static void begin(struct zfetch_state *state, uint32_t most, uint64_t next)
{
	struct stream *oldest = state->streams, *stream = oldest;

	for (; stream < state->streams + most; stream++) {
		if (!stream->next) {
			oldest = stream;
			break;
		}
		if (stream->proven != oldest->proven ?
		    oldest->proven : stream->followed < oldest->followed)
			oldest = stream;
	}
	*oldest = (struct stream) {
		.next = next,
		.from = next,
		.to = next,
		.followed = state->clock,
	};
}

/* Prefetch for a stream that went on by so many pages. */
static struct window prefetch(const struct model_machine *machine,
			      struct stream *stream, uint64_t pages)
{
	uint32_t max = max_distance(machine), together;
	struct window window;

	if (stream->distance < pages)
		stream->distance = pages;
	else if (stream->distance < max)
		stream->distance *= 2;
	if (stream->distance > max)
		stream->distance = max;
	if (stream->from < stream->next)
		stream->from = stream->next;
	if (stream->to < stream->next + stream->distance)
		stream->to = stream->next + stream->distance;

	together = stream->distance / 2;
	if (together > machine->request_pages)
		together = machine->request_pages;
	if (!stream->missed || stream->from == stream->to ||
	    stream->to - stream->from < together)
		return (struct window) {};
	window = (struct window) {
		.start = stream->from,
		.size = stream->to - stream->from,
	};
	stream->from = stream->to;
	return window;
}

static struct window access_page(const struct model_machine *machine,
				 const struct file *file, uint64_t index,
				 bool missed)
{
	uint32_t max = max_distance(machine), most;
	struct zfetch_state *state = file->shared;
	uint64_t last = file->nr_pages - 1, pages;
	struct stream *stream;

	/* Files of one block see no more than that. */
	if (!index || last < 2)
		return (struct window) {};
	state->clock++;
	stream = find(state, index, max, &pages);
	if (!stream) {
		most = file->nr_pages / max < STREAMS ?
			file->nr_pages / max : STREAMS;
		if (index + 1 < last)
			begin(state, most ? most : 1, index + 1);
		return (struct window) {};
	}
	stream->followed = state->clock;
	if (!pages)
		return (struct window) {};
	stream->proven = true;
	stream->missed |= missed;
	if (stream->next >= last) {
		stream->next = 0;
		return (struct window) {};
	}
	return prefetch(machine, stream, pages);
}

static struct window zfetch_miss(const struct model_machine *machine,
				 const struct file *file, uint64_t index)
{
	(void)machine;
	(void)file;
	return (struct window) { .start = index, .size = 1 };
}

static struct window zfetch_hit(const struct model_machine *machine,
				const struct file *file, const struct hit *hit)
{
	if (!hit->at_address)
		return (struct window) {};
	return access_page(machine, file, hit->index, hit->retried);
}

const struct policy policy_zfetch = {
	.shared_size = sizeof(struct zfetch_state),
	.miss = zfetch_miss,
	.hit = zfetch_hit,
};
