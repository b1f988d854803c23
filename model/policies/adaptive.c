// SPDX-License-Identifier: GPL-2.0-only
/* The adaptive window: the kernel's own policy, on the model's page cache. */
#include "../../kernel/files/include/linux/mmap_readahead_window.h"
#include "../policy.h"

struct view {
	const struct file *file;
	uint32_t looks;
};

static enum mmap_readahead_page state_of(const struct file *file,
					 unsigned long page)
{
	if (page >= file->nr_pages)
		return MMAP_READAHEAD_ABSENT;
	if (!(file->pages[page] & CACHED))
		return file->pages[page] & EVICTED ? MMAP_READAHEAD_EVICTED :
						      MMAP_READAHEAD_ABSENT;
	return file->pages[page] & MAPPED ? MMAP_READAHEAD_USED :
					     MMAP_READAHEAD_CACHED;
}

/* The policy promises not to change the page cache, but looks are counted. */
static struct view *count_look(const void *cache)
{
	struct view *view = (struct view *)cache;

	view->looks++;
	return view;
}

static enum mmap_readahead_page look(const void *cache, unsigned long page)
{
	return state_of(count_look(cache)->file, page);
}

static unsigned long next_miss(const void *cache, unsigned long page,
			       unsigned long most)
{
	const struct file *file = count_look(cache)->file;
	unsigned long end = page + most;

	while (page < end && state_of(file, page) >= MMAP_READAHEAD_CACHED)
		page++;
	return page;
}

/* What is known of an open file, and what of it was counted. */
struct known {
	struct mmap_readahead_state state;
	unsigned long paid;
};

/* What was counted for all who have opened a file. */
struct shared {
	unsigned long pages;
	unsigned long paid;
};

/* What its files taught the device, and the sums of what was counted for them. */
struct device {
	struct mmap_readahead_prior prior;
	struct shared all;
};

/* As mm/mmap_readahead_file.c does. */
static void count(const struct file *file, unsigned long pages,
		  unsigned long paid)
{
	struct device *device = file->device;
	struct shared *shared = file->shared;
	struct known *known = file->state;

	device->all.pages += pages - shared->pages;
	device->all.paid += paid - known->paid;
	shared->paid += paid - known->paid;
	shared->pages = pages;
	known->paid = paid;
}

static void count_file(const struct file *file)
{
	count(file, file->nr_pages, ((struct known *)file->state)->state.paid);
}

/* The file's pages count as long as anybody has it open. */
static void uncount_file(const struct file *file)
{
	count(file, file->open ? file->nr_pages : 0, 0);
}

static struct mmap_readahead_miss describe(const struct model_machine *machine,
					   const struct view *view,
					   uint64_t index)
{
	const struct shared *shared = view->file->shared;
	struct device *device = view->file->device;

	return (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = view->file->nr_pages,
		.cached_pages = view->file->cached,
		.file_paid = shared->paid,
		.others_pages = device->all.pages - shared->pages,
		.others_paid = device->all.paid - shared->paid,
		.memory_pages = machine->memory_pages,
		.max_pages = machine->read_ahead_pages,
		.least_pages = 1,
		.request_pages = machine->request_pages,
		.block_shift = POLICY_BLOCK_SHIFT,
		.look = look,
		.next_miss = next_miss,
		.cache = view,
		.prior = &device->prior,
	};
}

static struct window window_of(const struct mmap_readahead_answer *answer,
			       const struct view *view)
{
	return (struct window) {
		.start = answer->start,
		.size = answer->size,
		.async_size = answer->async_size,
		.kind = answer->kind,
		.looks = view->looks,
	};
}

static struct window miss(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct view view = { .file = file };
	struct mmap_readahead_miss about = describe(machine, &view, index);
	struct mmap_readahead_answer answer;

	if (!mmap_readahead_settled(file->state, &about, &answer)) {
		about.page = look(&view, index);
		mmap_readahead_adapt(file->state, &about, &answer);
	}
	count_file(file);
	/* Before anybody else asks. */
	mmap_readahead_submitted(file->state, &answer);
	return window_of(&answer, &view);
}

static struct window mark(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct view view = { .file = file };
	struct mmap_readahead_miss about = describe(machine, &view, index);
	struct mmap_readahead_answer answer;

	mmap_readahead_mark(file->state, &about, &answer);
	mmap_readahead_submitted(file->state, &answer);
	return window_of(&answer, &view);
}

const struct policy policy_adaptive = {
	.state_size = sizeof(struct known),
	.shared_size = sizeof(struct shared),
	.device_size = sizeof(struct device),
	.tells_kinds = true,
	.leaves_marks = true,
	.block_shift = POLICY_BLOCK_SHIFT,
	.close = uncount_file,
	.miss = miss,
	.mark = mark,
};
