// SPDX-License-Identifier: GPL-2.0-only
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/files/include/linux/mmap_readahead_policy.h"
#include "model.h"

/* The kernel's own numbers. */
#define LOTS_OF_MISSES		100	/* MMAP_LOTSAMISS */
#define MAX_MISSES		(LOTS_OF_MISSES * 10)
#define BLOCK_SHIFT		4	/* fault_around_bytes in pages */
#define BLOCK			(1 << BLOCK_SHIFT)

/* A disk lets so many pages pass under its head rather than to seek. */
#define SHORT_SKIP		256

/* State of a page. */
#define CACHED		0x01
#define MAPPED		0x02	/* and stays so until it is evicted */
#define YOUNG		0x04	/* its PTE was used since reclaim looked */
#define MARKED		0x08	/* PG_readahead */
#define EVICTED		0x10	/* was cached, left a shadow */

/* A range of cached pages in the order of reclaim. */
struct extent {
	uint32_t start;
	uint32_t size;
};

struct model {
	struct model_machine machine;
	struct model_counts counts;
	uint8_t *pages;

	/* Ring of extents, the oldest first; capacity is a power of two. */
	struct extent *extents;
	uint64_t head, tail, capacity;
	uint64_t cached;

	/* struct file_ra_state */
	uint64_t start;
	uint32_t size, async_size, misses;

	uint64_t position;	/* where the device's last request ended */
	struct mmap_readahead_state state;
};

static bool push(struct model *model, uint32_t start, uint32_t size)
{
	struct extent *last;

	if (model->tail > model->head) {
		last = &model->extents[(model->tail - 1) & (model->capacity - 1)];
		if (last->start + last->size == start) {
			last->size += size;
			return true;
		}
	}
	if (model->tail - model->head == model->capacity) {
		uint64_t capacity = model->capacity * 2, i;
		struct extent *extents = malloc(capacity * sizeof(*extents));

		if (!extents)
			return false;
		for (i = model->head; i < model->tail; i++)
			extents[i & (capacity - 1)] =
				model->extents[i & (model->capacity - 1)];
		free(model->extents);
		model->extents = extents;
		model->capacity = capacity;
	}
	model->extents[model->tail++ & (model->capacity - 1)] =
		(struct extent){ start, size };
	return true;
}

/* The bits that any of the pages has; written to be vectorised. */
static uint8_t any(const uint8_t *pages, uint32_t n)
{
	uint8_t bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits |= pages[i];
	return bits;
}

/*
 * Evict the oldest pages but those that were used since reclaim looked last:
 * they get another round.
 */
static bool reclaim(struct model *model, uint64_t wanted)
{
	while (wanted) {
		struct extent *oldest =
			&model->extents[model->head & (model->capacity - 1)];
		uint32_t n = oldest->size < wanted ? oldest->size : wanted;
		uint32_t start = oldest->start, end = start + n;
		uint8_t *pages = model->pages;
		uint64_t unused = 0, kept = 0;

		oldest->start += n;
		oldest->size -= n;
		if (!oldest->size)
			model->head++;
		if (any(pages + start, n) & MAPPED) {
			for (uint32_t i = start; i < end; i++) {
				if (pages[i] & YOUNG) {
					pages[i] &= ~YOUNG;
					kept++;
					if (!push(model, i, 1))
						return false;
					continue;
				}
				unused += !(pages[i] & MAPPED);
				pages[i] = EVICTED;
			}
		} else {
			unused = n;
			memset(pages + start, EVICTED, n);
		}
		model->cached -= n - kept;
		model->counts.evicted += n - kept;
		model->counts.evicted_unused += unused;
		wanted -= n - kept;
	}
	return true;
}

/* Add pages that are not cached; they make one request. */
static bool add(struct model *model, uint32_t start, uint32_t n)
{
	uint64_t limit = model->machine.memory_pages;
	uint8_t *pages = model->pages;
	uint64_t again = 0;

	if (model->cached + n > limit &&
	    !reclaim(model, model->cached + n - limit))
		return false;
	for (uint32_t i = start; i < start + n; i++)
		again += !!(pages[i] & EVICTED);
	memset(pages + start, CACHED, n);
	model->cached += n;
	model->counts.refaults += again;
	model->counts.pages_read += n;
	model->counts.requests++;
	if (start - model->position < SHORT_SKIP)
		model->counts.pages_skipped += start - model->position;
	else
		model->counts.seeks++;
	model->position = start + n;
	return push(model, start, n);
}

/* page_cache_ra_unbounded(): read what of a range is not cached. */
static bool read_range(struct model *model, uint64_t start, uint64_t size,
		       uint64_t async_size)
{
	uint64_t file_pages = model->machine.file_pages;
	uint64_t mark, end, i;
	bool read_mark;

	if (start >= file_pages)
		return true;
	if (size > file_pages - start)
		size = file_pages - start;
	end = start + size;
	/* From the end of what is left of the range, which may be before it. */
	mark = end - async_size;
	read_mark = async_size && async_size <= size &&
		    !(model->pages[mark] & CACHED);
	for (i = start; i < end; i++) {
		uint64_t from = i;

		while (i < end && !(model->pages[i] & CACHED))
			i++;
		/* Requests are so large at most that memory holds several. */
		if (i > from && !add(model, from, i - from))
			return false;
	}
	if (read_mark && (model->pages[mark] & CACHED))
		model->pages[mark] |= MARKED;
	return true;
}

static enum mmap_readahead_page look(const void *cache, unsigned long page)
{
	const struct model *model = cache;

	if (page >= model->machine.file_pages)
		return MMAP_READAHEAD_ABSENT;
	if (!(model->pages[page] & CACHED))
		return model->pages[page] & EVICTED ? MMAP_READAHEAD_EVICTED :
						      MMAP_READAHEAD_ABSENT;
	return model->pages[page] & MAPPED ? MMAP_READAHEAD_USED :
					     MMAP_READAHEAD_CACHED;
}

/* get_next_ra_size() */
static uint32_t next_size(uint32_t size, uint32_t max)
{
	if (size < max / 16)
		return 4 * size;
	if (size <= max / 2)
		return 2 * size;
	return max;
}

static struct mmap_readahead_miss policy_miss(const struct model *model,
					      uint64_t index)
{
	return (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = model->machine.file_pages,
		.cached_pages = model->cached,
		.max_pages = model->machine.read_ahead_pages,
		.request_pages = model->machine.request_pages,
		.block_shift = BLOCK_SHIFT,
		.look = look,
		.cache = model,
	};
}

static bool read_adapted(struct model *model, uint64_t index)
{
	struct mmap_readahead_miss miss = policy_miss(model, index);
	struct mmap_readahead_answer answer =
		mmap_readahead_adapt(&model->state, &miss);

	model->counts.kinds[answer.kind]++;
	return read_range(model, answer.start, answer.size, answer.async_size);
}

/* page_cache_async_ra() */
static bool read_on(struct model *model, uint64_t index)
{
	uint32_t max = model->machine.read_ahead_pages;
	uint64_t start;

	model->pages[index] &= ~MARKED;
	if (model->machine.rules == MODEL_FOLIO) {
		struct mmap_readahead_miss mark = policy_miss(model, index);
		struct mmap_readahead_answer answer =
			mmap_readahead_go_on(&model->state, &mark);

		return read_range(model, answer.start, answer.size,
				  answer.async_size);
	}
	if (index == model->start + model->size - model->async_size) {
		uint32_t next = next_size(model->size, max);

		model->start += model->size;
		if (next > model->size)
			model->size = next;
	} else {
		for (start = index + 1; start < model->machine.file_pages; start++)
			if (start - index > max ||
			    !(model->pages[start] & CACHED))
				break;
		if (start - index > max)
			return true;
		model->start = start;
		model->size = next_size(start - index + max, max);
	}
	model->async_size = model->size;
	return read_range(model, model->start, model->size, model->async_size);
}

/* do_sync_mmap_readahead() */
static bool read_miss(struct model *model, uint64_t index)
{
	enum model_rules rules = model->machine.rules;
	uint32_t max = model->machine.read_ahead_pages;

	model->counts.major_faults++;
	model->counts.waits++;
	if (rules == MODEL_FOLIO)
		return read_adapted(model, index);
	if (rules == MODEL_RANDOM)
		return read_range(model, index, 1, 0);
	if (model->misses < MAX_MISSES)
		model->misses++;
	if (rules != MODEL_FIXED && model->misses > LOTS_OF_MISSES)
		return read_range(model, index, 1, 0);
	model->start = index > max / 2 ? index - max / 2 : 0;
	model->size = max;
	model->async_size = max / 4;
	return read_range(model, model->start, model->size, model->async_size);
}

/*
 * filemap_map_pages(): map what is cached around a page, and return whether that
 * was the page itself. *around counts what a stock kernel takes for hits.
 */
static bool map_around(struct model *model, uint64_t index, uint32_t *around)
{
	uint64_t start = index & ~(uint64_t)(BLOCK - 1), end = start + BLOCK;

	*around = 0;
	if (end > model->machine.file_pages)
		end = model->machine.file_pages;
	for (uint64_t i = start; i < end; i++) {
		uint8_t page = model->pages[i];

		if ((page & (CACHED | MARKED)) != CACHED)
			continue;
		++*around;
		if (!(page & MAPPED))
			model->pages[i] = page | MAPPED | YOUNG;
	}
	return model->pages[index] & MAPPED;
}

static void credit(struct model *model, uint32_t hits)
{
	model->misses = hits < model->misses ? model->misses - hits : 0;
}

static bool fault(struct model *model, uint64_t index)
{
	enum model_rules rules = model->machine.rules;
	bool marked = model->pages[index] & CACHED;
	uint32_t around;
	bool mapped;

	if (map_around(model, index, &around)) {
		credit(model, rules == MODEL_SERIES ? 1 : around);
		model->counts.minor_faults++;
		return true;
	}
	if (rules != MODEL_SERIES)
		credit(model, around);
	if (marked) {
		credit(model, 1);
		model->counts.minor_faults++;
		if (!read_on(model, index))
			return false;
	} else if (!read_miss(model, index)) {
		return false;
	}
	/*
	 * The fault dropped its lock to read, and is tried once more. The kernel
	 * knows it for a retry only if it was a miss (see VM_FAULT_MAJOR).
	 */
	mapped = map_around(model, index, &around);
	if (rules != MODEL_SERIES)
		credit(model, around);
	else if (marked)
		credit(model, mapped);
	return true;
}

struct model *model_new(const struct model_machine *machine)
{
	struct model *model;

	if (!machine->file_pages || !machine->read_ahead_pages ||
	    !machine->request_pages ||
	    machine->memory_pages < 2 * machine->read_ahead_pages)
		return NULL;
	model = calloc(1, sizeof(*model));
	if (!model)
		return NULL;
	model->machine = *machine;
	model->capacity = 1024;
	model->extents = malloc(model->capacity * sizeof(*model->extents));
	model->pages = calloc(machine->file_pages, 1);
	model->position = UINT64_MAX / 2;
	if (!model->extents || !model->pages) {
		model_free(model);
		return NULL;
	}
	return model;
}

void model_free(struct model *model)
{
	free(model->extents);
	free(model->pages);
	free(model);
}

bool model_touch(struct model *model, const uint64_t *pages, uint64_t count)
{
	model->counts.accesses += count;
	for (uint64_t i = 0; i < count; i++) {
		uint8_t *page = &model->pages[pages[i]];

		if (*page & MAPPED)
			*page |= YOUNG;
		else if (!fault(model, pages[i]))
			return false;
	}
	return true;
}

void model_counts(const struct model *model, struct model_counts *counts)
{
	*counts = model->counts;
}

bool model_run(struct model *model, const struct pattern *pattern,
	       uint64_t count, uint64_t passes)
{
	uint64_t *pages = malloc(count * sizeof(*pages));
	bool done;

	done = pages && pattern_plan(pattern, model->machine.file_pages, pages,
				     count);
	while (done && passes--)
		done = model_touch(model, pages, count);
	free(pages);
	return done;
}
