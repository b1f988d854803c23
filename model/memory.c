// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* The kernel's own numbers. */
#define BATCH		32	/* SWAP_CLUSTER_MAX */
#define PRIORITY	12	/* DEF_PRIORITY */

/* Pages that are or were mapped. */
#define USED		(MAPPED | REFERENCED)

/*
 * The kernel gathers a group's statistics every two seconds, and reclaim makes
 * do with what they said. There is no time here: so many pages are what a disk of
 * 125 MB/s reads in two seconds.
 */
#define GATHERED_EACH	61035

static bool ring_init(struct ring *ring)
{
	ring->capacity = 1024;
	ring->extents = malloc(ring->capacity * sizeof(*ring->extents));
	return ring->extents;
}

static bool push(struct ring *ring, struct file *file, uint32_t start,
		 uint32_t size)
{
	struct extent *last;

	ring->pages += size;
	if (ring->tail > ring->head) {
		last = &ring->extents[(ring->tail - 1) & (ring->capacity - 1)];
		if (last->file == file && last->start + last->size == start) {
			last->size += size;
			return true;
		}
	}
	if (ring->tail - ring->head == ring->capacity) {
		uint64_t capacity = ring->capacity * 2, i;
		struct extent *extents = malloc(capacity * sizeof(*extents));

		if (!extents)
			return false;
		for (i = ring->head; i < ring->tail; i++)
			extents[i & (capacity - 1)] =
				ring->extents[i & (ring->capacity - 1)];
		free(ring->extents);
		ring->extents = extents;
		ring->capacity = capacity;
	}
	ring->extents[ring->tail++ & (ring->capacity - 1)] =
		(struct extent){ file, start, size };
	return true;
}

/* Take the oldest pages off a ring that has some, but no more than these. */
static struct extent pop(struct ring *ring, uint64_t most)
{
	struct extent *oldest =
		&ring->extents[ring->head & (ring->capacity - 1)];
	struct extent taken = *oldest;

	if (taken.size > most)
		taken.size = most;
	oldest->start += taken.size;
	oldest->size -= taken.size;
	if (!oldest->size)
		ring->head++;
	ring->pages -= taken.size;
	return taken;
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
static bool give_second_chances(struct memory *memory, uint64_t wanted)
{
	while (wanted) {
		struct extent oldest = pop(&memory->inactive, wanted);
		uint32_t n = oldest.size, start = oldest.start, end = start + n;
		struct file *file = oldest.file;
		uint8_t *pages = file->pages;
		uint64_t unused = 0, kept = 0;

		if (!(any(pages + start, n) & USED)) {
			unused = n;
			memset(pages + start, EVICTED, n);
			start = end;
		}
		for (uint32_t i = start; i < end; i++) {
			if (pages[i] & YOUNG) {
				pages[i] &= ~YOUNG;
				kept++;
				if (!push(&memory->inactive, file, i, 1))
					return false;
				continue;
			}
			unused += !(pages[i] & USED);
			pages[i] = EVICTED;
		}
		memory->cached -= n - kept;
		file->cached -= n - kept;
		memory->evicted += n - kept;
		memory->evicted_unused += unused;
		wanted -= n - kept;
	}
	return true;
}

static bool add_with_second_chances(struct memory *memory, struct file *file,
				    uint32_t start, uint32_t n)
{
	if (memory->cached + n > memory->limit &&
	    !give_second_chances(memory, memory->cached + n - memory->limit))
		return false;
	memset(file->pages + start, CACHED, n);
	memory->cached += n;
	file->cached += n;
	return push(&memory->inactive, file, start, n);
}

static void evict(struct memory *memory, struct file *file, uint32_t page)
{
	memory->evicted++;
	memory->evicted_unused += !(file->pages[page] & USED);
	file->pages[page] = EVICTED;
	file->shadows[page] = memory->age++;
	file->cached--;
	memory->cached--;
}

/* shrink_inactive_list(), with folio_check_references() */
static bool shrink_inactive(struct memory *memory, uint64_t n)
{
	while (n && memory->inactive.pages) {
		struct extent taken = pop(&memory->inactive, n);
		struct file *file = taken.file;

		n -= taken.size;
		for (uint32_t i = 0; i < taken.size; i++) {
			uint8_t *page = &file->pages[taken.start + i];
			struct ring *to = &memory->inactive;

			if (!(*page & YOUNG)) {
				evict(memory, file, taken.start + i);
				continue;
			}
			/* Its first use is the fault that mapped it. */
			if (*page & REFERENCED) {
				to = &memory->active;
				memory->age++;
			}
			*page = (*page & ~YOUNG) | REFERENCED;
			if (!push(to, file, taken.start + i, 1))
				return false;
		}
	}
	return true;
}

/* shrink_active_list(): used or not, they all get less active. */
static bool shrink_active(struct memory *memory, uint64_t n)
{
	while (n && memory->active.pages) {
		struct extent taken = pop(&memory->active, n);

		n -= taken.size;
		for (uint32_t i = 0; i < taken.size; i++)
			taken.file->pages[taken.start + i] &= ~YOUNG;
		if (!push(&memory->inactive, taken.file, taken.start,
			  taken.size))
			return false;
	}
	return true;
}

/* shrink_lruvec() */
static bool shrink_lists(struct memory *memory, uint64_t enough,
			 uint64_t inactive, uint64_t active)
{
	while ((inactive || active) && memory->evicted < enough) {
		uint64_t n = inactive < BATCH ? inactive : BATCH;

		inactive -= n;
		if (!shrink_inactive(memory, n))
			return false;
		n = active < BATCH ? active : BATCH;
		active -= n;
		if (!shrink_active(memory, n))
			return false;
	}
	return true;
}

/* inactive_is_low(): a list of many GiB may have more active pages than others. */
static bool inactive_is_low(const struct memory *memory)
{
	uint64_t pages = memory->gathered_inactive + memory->gathered_active;
	uint64_t gib = pages >> 18, ratio = 1;

	while ((ratio + 1) * (ratio + 1) <= 10 * gib)
		ratio++;
	return memory->gathered_inactive * ratio < memory->gathered_active;
}

/* do_try_to_free_pages() for a control group, with prepare_scan_control() */
static bool reclaim_lists(struct memory *memory, bool force)
{
	uint64_t enough = memory->evicted + BATCH;
	bool deactivate = force ||
		memory->gathered_activated != memory->activated_before ||
		inactive_is_low(memory);

	for (int priority = PRIORITY;
	     priority >= 0 && memory->evicted < enough; priority--) {
		uint64_t active = memory->active.pages >> priority;

		if (!shrink_lists(memory, enough,
				  memory->inactive.pages >> priority,
				  deactivate ? active : 0))
			return false;
	}
	memory->activated_before = memory->gathered_activated;
	return true;
}

static void gather_statistics(struct memory *memory)
{
	if (memory->added - memory->gathered_at < GATHERED_EACH)
		return;
	memory->gathered_at = memory->added;
	memory->gathered_activated = memory->activated;
	memory->gathered_inactive = memory->inactive.pages;
	memory->gathered_active = memory->active.pages;
}

/* workingset_refault(): does a page become active as it is read again? */
static bool activates(struct memory *memory, struct file *file, uint32_t page)
{
	if (!(file->pages[page] & EVICTED) ||
	    memory->age - file->shadows[page] > memory->gathered_active)
		return false;
	memory->age++;
	memory->activated++;
	return true;
}

static bool add_to_lists(struct memory *memory, struct file *file,
			 uint32_t start, uint32_t n)
{
	for (uint32_t page = start; page < start + n; page++) {
		struct ring *to = &memory->inactive;
		bool force = false;

		gather_statistics(memory);
		/* What is active has to go if all else was used. */
		for (; memory->cached >= memory->limit; force = true)
			if (!reclaim_lists(memory, force))
				return false;
		if (activates(memory, file, page))
			to = &memory->active;
		file->pages[page] = CACHED;
		memory->added++;
		memory->cached++;
		file->cached++;
		if (!push(to, file, page, 1))
			return false;
	}
	return true;
}

bool memory_add(struct memory *memory, struct file *file, uint32_t start,
		uint32_t n)
{
	if (memory->reclaim == MODEL_LISTS)
		return add_to_lists(memory, file, start, n);
	return add_with_second_chances(memory, file, start, n);
}

static bool reclaim_from_lists(struct memory *memory, uint64_t n)
{
	uint64_t enough = memory->evicted + n;

	for (bool force = false; memory->evicted < enough; force = true)
		if (!reclaim_lists(memory, force))
			return false;
	return true;
}

bool memory_reclaim(struct memory *memory, uint64_t n)
{
	if (n > memory->cached)
		n = memory->cached;
	if (memory->reclaim == MODEL_LISTS)
		return reclaim_from_lists(memory, n);
	return give_second_chances(memory, n);
}

bool memory_init(struct memory *memory, enum model_reclaim reclaim,
		 uint64_t limit)
{
	memory->reclaim = reclaim;
	memory->limit = limit;
	return ring_init(&memory->inactive) && ring_init(&memory->active);
}

void memory_free(struct memory *memory)
{
	free(memory->inactive.extents);
	free(memory->active.extents);
}
