// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "memory.h"

/* The kernel's own numbers. */
#define LOTS_OF_MISSES		100	/* MMAP_LOTSAMISS */
#define MAX_MISSES		(LOTS_OF_MISSES * 10)
#define BLOCK_SHIFT		4	/* fault_around_bytes in pages */
#define BLOCK			(1 << BLOCK_SHIFT)

/* A disk lets so many pages pass under its head rather than to seek. */
#define SHORT_SKIP		256

struct model {
	struct model_machine machine;
	struct model_counts counts;
	struct memory memory;
	uint64_t position;	/* where the device's last request ended */

	/* Of all files. */
	uint8_t *pages;
	uint32_t *shadows;

	uint32_t nr_files;
	struct file files[];
};

/* Add pages that are not cached; they make one request. */
static bool add(struct model *model, struct file *file, uint32_t start,
		uint32_t n)
{
	uint64_t place = file->place + start, again = 0;

	for (uint32_t i = start; i < start + n; i++)
		again += !!(file->pages[i] & EVICTED);
	model->counts.refaults += again;
	model->counts.pages_read += n;
	model->counts.requests++;
	if (place - model->position < SHORT_SKIP)
		model->counts.pages_skipped += place - model->position;
	else
		model->counts.seeks++;
	model->position = place + n;
	return memory_add(&model->memory, file, start, n);
}

/* page_cache_ra_unbounded(): read what of a range is not cached. */
static bool read_range(struct model *model, struct file *file, uint64_t start,
		       uint64_t size, uint64_t async_size)
{
	uint64_t file_pages = file->nr_pages;
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
		    !(file->pages[mark] & CACHED);
	for (i = start; i < end; i++) {
		uint64_t from = i;

		while (i < end && !(file->pages[i] & CACHED))
			i++;
		/* Requests are so large at most that memory holds several. */
		if (i > from && !add(model, file, from, i - from))
			return false;
	}
	if (read_mark && (file->pages[mark] & CACHED))
		file->pages[mark] |= MARKED;
	return true;
}

static enum mmap_readahead_page look(const void *cache, unsigned long page)
{
	const struct file *file = cache;

	if (page >= file->nr_pages)
		return MMAP_READAHEAD_ABSENT;
	if (!(file->pages[page] & CACHED))
		return file->pages[page] & EVICTED ? MMAP_READAHEAD_EVICTED :
						      MMAP_READAHEAD_ABSENT;
	return file->pages[page] & MAPPED ? MMAP_READAHEAD_USED :
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
					      const struct file *file,
					      uint64_t index)
{
	return (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = file->nr_pages,
		.cached_pages = file->cached,
		.max_pages = model->machine.read_ahead_pages,
		.request_pages = model->machine.request_pages,
		.block_shift = BLOCK_SHIFT,
		.look = look,
		.cache = file,
	};
}

static bool read_adapted(struct model *model, struct file *file, uint64_t index)
{
	struct mmap_readahead_miss miss = policy_miss(model, file, index);
	struct mmap_readahead_answer answer =
		mmap_readahead_adapt(&file->state, &miss);

	model->counts.kinds[answer.kind]++;
	return read_range(model, file, answer.start, answer.size,
			  answer.async_size);
}

/* page_cache_async_ra() */
static bool read_on(struct model *model, struct file *file, uint64_t index)
{
	uint32_t max = model->machine.read_ahead_pages;
	uint64_t start;

	file->pages[index] &= ~MARKED;
	if (model->machine.rules == MODEL_FOLIO) {
		struct mmap_readahead_miss mark =
			policy_miss(model, file, index);
		struct mmap_readahead_answer answer =
			mmap_readahead_go_on(&file->state, &mark);

		return read_range(model, file, answer.start, answer.size,
				  answer.async_size);
	}
	if (index == file->start + file->size - file->async_size) {
		uint32_t next = next_size(file->size, max);

		file->start += file->size;
		if (next > file->size)
			file->size = next;
	} else {
		for (start = index + 1; start < file->nr_pages; start++)
			if (start - index > max ||
			    !(file->pages[start] & CACHED))
				break;
		if (start - index > max)
			return true;
		file->start = start;
		file->size = next_size(start - index + max, max);
	}
	file->async_size = file->size;
	return read_range(model, file, file->start, file->size,
			  file->async_size);
}

/* do_sync_mmap_readahead() */
static bool read_miss(struct model *model, struct file *file, uint64_t index)
{
	enum model_rules rules = model->machine.rules;
	uint32_t max = model->machine.read_ahead_pages;

	model->counts.major_faults++;
	model->counts.waits++;
	if (rules == MODEL_FOLIO)
		return read_adapted(model, file, index);
	if (rules == MODEL_RANDOM)
		return read_range(model, file, index, 1, 0);
	if (file->misses < MAX_MISSES)
		file->misses++;
	if (rules != MODEL_FIXED && file->misses > LOTS_OF_MISSES)
		return read_range(model, file, index, 1, 0);
	file->start = index > max / 2 ? index - max / 2 : 0;
	file->size = max;
	file->async_size = max / 4;
	return read_range(model, file, file->start, file->size,
			  file->async_size);
}

/*
 * filemap_map_pages(): map what is cached around a page, and return whether
 * that was the page itself. *around counts what a stock kernel takes for hits.
 */
static bool map_around(struct file *file, uint64_t index, uint32_t *around)
{
	uint64_t start = index & ~(uint64_t)(BLOCK - 1), end = start + BLOCK;

	*around = 0;
	if (end > file->nr_pages)
		end = file->nr_pages;
	for (uint64_t i = start; i < end; i++) {
		uint8_t page = file->pages[i];

		if ((page & (CACHED | MARKED)) != CACHED)
			continue;
		++*around;
		if (!(page & MAPPED))
			file->pages[i] = page | MAPPED | YOUNG;
	}
	return file->pages[index] & MAPPED;
}

static void credit(struct file *file, uint32_t hits)
{
	file->misses = hits < file->misses ? file->misses - hits : 0;
}

static bool fault(struct model *model, struct file *file, uint64_t index)
{
	enum model_rules rules = model->machine.rules;
	bool marked = file->pages[index] & CACHED;
	uint32_t around;
	bool mapped;

	if (map_around(file, index, &around)) {
		credit(file, rules == MODEL_SERIES ? 1 : around);
		model->counts.minor_faults++;
		return true;
	}
	if (rules != MODEL_SERIES)
		credit(file, around);
	if (marked) {
		credit(file, 1);
		model->counts.minor_faults++;
		if (!read_on(model, file, index))
			return false;
	} else if (!read_miss(model, file, index)) {
		return false;
	}
	/*
	 * The fault dropped its lock to read, and is tried once more. The
	 * kernel knows it for a retry only if it was a miss (see
	 * VM_FAULT_MAJOR).
	 */
	mapped = map_around(file, index, &around);
	if (rules != MODEL_SERIES)
		credit(file, around);
	else if (marked)
		credit(file, mapped);
	return true;
}

struct model *model_new(const struct model_machine *machine,
			const uint32_t *file_pages, uint32_t nr_files)
{
	uint64_t all_pages = 0;
	struct model *model;

	if (!machine->read_ahead_pages || !machine->request_pages ||
	    machine->memory_pages < 2 * machine->read_ahead_pages)
		return NULL;
	model = calloc(1, sizeof(*model) + nr_files * sizeof(*model->files));
	if (!model)
		return NULL;
	for (uint32_t i = 0; i < nr_files; i++) {
		model->files[i].nr_pages = file_pages[i];
		model->files[i].place = all_pages;
		all_pages += file_pages[i];
	}
	model->machine = *machine;
	model->nr_files = nr_files;
	model->position = UINT64_MAX / 2;
	model->pages = calloc(all_pages, sizeof(*model->pages));
	model->shadows = calloc(all_pages, sizeof(*model->shadows));
	if (!model->pages || !model->shadows ||
	    !memory_init(&model->memory, machine->reclaim,
			 machine->memory_pages)) {
		model_free(model);
		return NULL;
	}
	for (uint32_t i = 0; i < nr_files; i++) {
		struct file *file = &model->files[i];

		file->pages = model->pages + file->place;
		file->shadows = model->shadows + file->place;
	}
	return model;
}

void model_free(struct model *model)
{
	memory_free(&model->memory);
	free(model->pages);
	free(model->shadows);
	free(model);
}

static bool touch(struct model *model, struct file *file, uint64_t index)
{
	uint8_t *page = &file->pages[index];

	model->counts.accesses++;
	if (*page & MAPPED) {
		*page |= YOUNG;
		return true;
	}
	return fault(model, file, index);
}

bool model_has(const struct model *model, const uint32_t *files,
	       const uint32_t *pages, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (files[i] >= model->nr_files ||
		    pages[i] >= model->files[files[i]].nr_pages)
			return false;
	return true;
}

bool model_replay(struct model *model, const uint32_t *files,
		  const uint32_t *pages, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (!touch(model, &model->files[files[i]], pages[i]))
			return false;
	return true;
}

void model_counts(const struct model *model, struct model_counts *counts)
{
	*counts = model->counts;
	counts->evicted = model->memory.evicted;
	counts->evicted_unused = model->memory.evicted_unused;
}

bool model_run(struct model *model, const struct pattern *pattern,
	       uint64_t count, uint64_t passes)
{
	uint64_t *pages = malloc(count * sizeof(*pages));
	struct file *file = model->files;
	bool done;

	done = pages && pattern_plan(pattern, file->nr_pages, pages, count);
	while (done && passes--)
		for (uint64_t i = 0; done && i < count; i++)
			done = touch(model, file, pages[i]);
	free(pages);
	return done;
}
