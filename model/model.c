// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "page_cache.h"

/* A disk lets so many pages pass under its head rather than to seek. */
#define SHORT_SKIP		256

static const struct policy *const policies[] = {
	[MODEL_OFF] = &policy_off,
	[MODEL_PUBLISHED] = &policy_published,
	[MODEL_ADAPTIVE] = &policy_adaptive,
	[MODEL_RANDOM] = &policy_random,
	[MODEL_FIXED] = &policy_fixed,
	[MODEL_XNU] = &policy_xnu,
	[MODEL_FREEBSD] = &policy_freebsd,
	[MODEL_ZFETCH] = &policy_zfetch,
	[MODEL_COMPETITIVE] = &policy_competitive,
	[MODEL_LINUX_7_3] = &policy_linux_7_3,
	[MODEL_FIRST_STEPS] = &policy_first_steps,
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
	if (file->mappers)
		memset(file->mappers + start, 0, n * sizeof(*file->mappers));
	if (model->observer)
		model->observer->read(model->observer->context,
				      file - model->files, start, n);
	return memory_add(&model->memory, file, start, n);
}

/* page_cache_ra_unbounded(): read what of a range is not cached. */
static bool read_window(struct model *model, struct file *file,
			const struct window *window)
{
	uint64_t start = window->start, size = window->size;
	uint64_t async_size = window->async_size;
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

static void count_most_looks(struct model *model, const struct window *window)
{
	if (window->looks > model->counts.most_looks)
		model->counts.most_looks = window->looks;
}

/* do_sync_mmap_readahead() */
static bool read_miss(struct model *model, struct file *file, uint64_t index)
{
	struct window window =
		model->policy->miss(&model->machine, file, index);

	model->counts.major_faults++;
	model->counts.waits++;
	if (model->policy->tells_kinds)
		model->counts.kinds[window.kind]++;
	model->counts.looks += window.looks;
	count_most_looks(model, &window);
	return read_window(model, file, &window);
}

/* Does who accesses the file have an entry for a page, if that is cached? */
static bool maps(const struct file *file, uint64_t index)
{
	return file->mappers ? file->mappers[index] & file->opener :
			       file->pages[index] & MAPPED;
}

static void map_page(struct file *file, uint64_t index)
{
	file->pages[index] |= MAPPED | YOUNG;
	if (file->mappers)
		file->mappers[index] |= file->opener;
}

/* do_async_mmap_readahead() */
static bool read_on(struct model *model, struct file *file, uint64_t index)
{
	struct window window = model->policy->mark(&model->machine, file, index);

	count_most_looks(model, &window);
	file->pages[index] &= ~MARKED;
	return read_window(model, file, &window);
}

static bool tell(struct model *model, struct file *file, const struct hit *hit)
{
	struct window window;

	if (!model->policy->hit)
		return true;
	window = model->policy->hit(&model->machine, file, hit);
	return !window.size || read_window(model, file, &window);
}

/* filemap_map_pages(): map what is cached around a page that is read. */
static void map_around(const struct model *model, struct file *file,
		       enum access access, struct hit *hit)
{
	uint64_t block = access == READ ? 1ULL << model->policy->block_shift : 1;
	uint64_t start = hit->index & ~(block - 1), end = start + block;

	hit->nr_pages = 0;
	if (end > file->nr_pages)
		end = file->nr_pages;
	for (uint64_t i = start; i < end; i++) {
		uint8_t page = file->pages[i];

		if ((page & (CACHED | MARKED)) != CACHED)
			continue;
		hit->nr_pages++;
		if (!maps(file, i))
			map_page(file, i);
	}
	hit->at_address = file->pages[hit->index] & CACHED &&
			  maps(file, hit->index);
}

static bool fault(struct model *model, struct file *file, uint64_t index,
		  enum access access)
{
	bool marked = file->pages[index] & CACHED;
	struct hit hit = { .index = index };

	map_around(model, file, access, &hit);
	if (hit.at_address)
		model->counts.minor_faults++;
	if (!tell(model, file, &hit))
		return false;
	if (hit.at_address)
		return true;
	if (marked) {
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
	map_around(model, file, access, &hit);
	hit.retried = !marked;
	/* What filemap_fault() finds then is no hit for Linux. */
	if (hit.retried && access != READ)
		hit.nr_pages = 0;
	return tell(model, file, &hit);
}

struct model *model_new(const struct model_machine *machine,
			const uint32_t *file_pages, uint32_t nr_files)
{
	const struct policy *policy = policies[machine->rules];
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
	model->policy = policy;
	model->nr_files = nr_files;
	model->position = UINT64_MAX / 2;
	model->pages = calloc(all_pages, sizeof(*model->pages));
	model->shadows = calloc(all_pages, sizeof(*model->shadows));
	/* One byte, as there may be neither files nor states. */
	model->states = calloc(1, nr_files * policy->state_size + 1);
	model->shared = calloc(1, nr_files * policy->shared_size + 1);
	if (!model->pages || !model->shadows || !model->states ||
	    !model->shared ||
	    !memory_init(&model->memory, machine->reclaim,
			 machine->memory_pages)) {
		model_free(model);
		return NULL;
	}
	for (uint32_t i = 0; i < nr_files; i++) {
		struct file *file = &model->files[i];

		file->pages = model->pages + file->place;
		file->shadows = model->shadows + file->place;
		file->state = (char *)model->states + i * policy->state_size;
		file->shared = (char *)model->shared + i * policy->shared_size;
		if (policy->init)
			policy->init(file->state);
	}
	return model;
}

void model_free(struct model *model)
{
	memory_free(&model->memory);
	free(model->pages);
	free(model->shadows);
	free(model->states);
	free(model->shared);
	free(model);
}

void model_observe(struct model *model, const struct model_observer *observer)
{
	model->observer = observer;
}

/*
 * The page becomes one of the process, not of the file. What others have copied of
 * it is taken for a mapping: few pages are copied by one and read by another.
 */
static void copy(struct file *file, uint64_t index)
{
	if (file->mappers[index] == file->opener)
		file->pages[index] &= ~(MAPPED | YOUNG);
}

bool page_cache_touch(struct model *model, struct file *file, uint64_t index,
		      enum access access)
{
	uint8_t *page = &file->pages[index];
	enum model_access how = !(*page & CACHED) ? MODEL_MAJOR :
				maps(file, index) ? MODEL_MAPPED : MODEL_MINOR;

	model->counts.accesses++;
	if (how == MODEL_MAPPED)
		*page |= YOUNG;
	else if (!fault(model, file, index, access))
		return false;
	if (access == COPY)
		copy(file, index);
	if (model->observer)
		model->observer->accessed(model->observer->context,
					  file - model->files, index, how);
	return true;
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
		if (!page_cache_touch(model, &model->files[files[i]], pages[i],
				      READ))
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
			done = page_cache_touch(model, file, pages[i], READ);
	free(pages);
	return done;
}
