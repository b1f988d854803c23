// SPDX-License-Identifier: GPL-2.0-only
/*
 * Competitive prefetching: C. Li, K. Shen and A. E. Papathanasiou,
 * "Competitive Prefetching for Concurrent Sequential I/O", EuroSys 2007.
 *
 * https://www.cs.rochester.edu/~kshen/papers/eurosys2007_abstract.txt
 *
 * Sequential reads go as far ahead as can be transferred in the time of one
 * switch between streams. Whatever the program does next, half of the time at
 * most is spent on what it does not need, or on switches that more would have
 * saved: at least half of the best throughput, with no knowledge of the
 * pattern.
 *
 * Here the time of a switch is that of a request, in pages: request_pages, as
 * far as read_ahead_pages allows. The rule says how far to read in a stream,
 * not what one is, nor how it is read without waiting; the paper's Linux
 * 2.6.10 knew one stream of each open file. Ours: a miss is in a stream if
 * the page before it is mapped, or if it is the first of the file; any other
 * reads its page alone. In a stream, the next read is issued when the one
 * before is come to.
 */
#include "../policy.h"

static uint32_t depth(const struct model_machine *machine)
{
	return machine->request_pages < machine->read_ahead_pages ?
		machine->request_pages : machine->read_ahead_pages;
}

static struct window competitive_miss(const struct model_machine *machine,
				      const struct file *file, uint64_t index)
{
	struct window window = { .start = index, .size = 1 };

	if (!index || file->pages[index - 1] & MAPPED) {
		window.size = depth(machine);
		window.async_size = window.size - 1;
	}
	return window;
}

static struct window competitive_mark(const struct model_machine *machine,
				      const struct file *file, uint64_t index)
{
	uint32_t size = depth(machine);
	uint64_t start = index + 1;

	while (start <= index + size && start < file->nr_pages &&
	       policy_is_cached(file, start))
		start++;
	/* There is as much ahead already as is to be. */
	if (start > index + size)
		return (struct window) {};
	return (struct window) { start, size, .async_size = size };
}

const struct policy policy_competitive = {
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = competitive_miss,
	.mark = competitive_mark,
};
