// SPDX-License-Identifier: GPL-2.0-only
/* The adaptive window: the kernel's own policy, on the model's page cache. */
#include <linux/log2.h>

#include "../../kernel/files/mm/mmap_readahead_window.h"
#include "../policy.h"

/* What is known of a file: the policy's part, and whether the price was measured. */
struct known {
	struct mmap_readahead_state state;
	bool measured;
};

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

static uint32_t request_pages(const struct model_machine *machine,
			      const struct known *known)
{
	return known->measured || !machine->first_request_pages ?
	       machine->request_pages : machine->first_request_pages;
}

/* As mmap_readahead_waited() has it: the first wait tells the price, and unless that was known the file begins anew. */
static void measure(const struct model_machine *machine, struct known *known,
		    const struct mmap_readahead_answer *answer)
{
	if (answer->kind != MMAP_READAHEAD_SINGLE || answer->size == 1 ||
	    known->measured)
		return;
	known->measured = true;
	if (machine->first_request_pages &&
	    ilog2(machine->first_request_pages) != ilog2(machine->request_pages))
		known->state.ahead.patience = 0;
}

static struct mmap_readahead_miss describe(const struct model_machine *machine,
					   const struct view *view,
					   uint64_t index)
{
	return (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = view->file->nr_pages,
		.cached_pages = view->file->cached,
		.memory_pages = machine->memory_pages,
		.max_pages = machine->read_ahead_pages,
		.request_pages = request_pages(machine, view->file->shared),
		.block_shift = POLICY_BLOCK_SHIFT,
		.look = look,
		.next_miss = next_miss,
		.cache = view,
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
	struct known *known = file->shared;
	struct mmap_readahead_answer answer;

	if (!mmap_readahead_settled(&known->state, &about, &answer)) {
		about.page = look(&view, index);
		mmap_readahead_adapt(&known->state, &about, &answer);
	}
	/* Before anybody else asks. */
	mmap_readahead_submitted(&known->state, &answer);
	measure(machine, known, &answer);
	return window_of(&answer, &view);
}

static struct window mark(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct view view = { .file = file };
	struct mmap_readahead_miss about = describe(machine, &view, index);
	struct known *known = file->shared;
	struct mmap_readahead_answer answer;

	mmap_readahead_mark(&known->state, &about, &answer);
	mmap_readahead_submitted(&known->state, &answer);
	return window_of(&answer, &view);
}

const struct policy policy_adaptive = {
	.shared_size = sizeof(struct known),
	.tells_kinds = true,
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = miss,
	.mark = mark,
};
