// SPDX-License-Identifier: GPL-2.0-only
/* The adaptive window: the kernel's own policy, on the model's page cache. */
#include "../../kernel/files/include/linux/mmap_readahead_window.h"
#include "../policy.h"

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

static unsigned long next_miss(const void *cache, unsigned long page,
			       unsigned long most)
{
	unsigned long end = page + most;

	while (page < end && look(cache, page) >= MMAP_READAHEAD_CACHED)
		page++;
	return page;
}

static struct mmap_readahead_miss describe(const struct model_machine *machine,
					   const struct file *file,
					   uint64_t index)
{
	return (struct mmap_readahead_miss) {
		.index = index,
		.file_pages = file->nr_pages,
		.cached_pages = file->cached,
		.memory_pages = machine->memory_pages,
		.max_pages = machine->read_ahead_pages,
		.request_pages = machine->request_pages,
		.block_shift = POLICY_BLOCK_SHIFT,
		.look = look,
		.next_miss = next_miss,
		.cache = file,
	};
}

static struct window window_of(const struct mmap_readahead_answer *answer)
{
	return (struct window) {
		.start = answer->start,
		.size = answer->size,
		.async_size = answer->async_size,
		.kind = answer->kind,
	};
}

static struct window miss(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct mmap_readahead_miss about = describe(machine, file, index);
	struct mmap_readahead_answer answer =
		mmap_readahead_adapt(file->state, &about);

	return window_of(&answer);
}

static struct window mark(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct mmap_readahead_miss about = describe(machine, file, index);
	struct mmap_readahead_answer answer =
		mmap_readahead_mark(file->state, &about);

	return window_of(&answer);
}

const struct policy policy_folio = {
	.state_size = sizeof(struct mmap_readahead_state),
	.tells_kinds = true,
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = miss,
	.mark = mark,
};
