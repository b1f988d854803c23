// SPDX-License-Identifier: GPL-2.0-only
/*
 * First steps for mainline: small changes of Linux 7.3, with the state that it
 * has. release/first-steps-7.3.mbox is the same for the kernel.
 *
 * A miss beside used pages goes on with them. Any other miss reads around
 * itself, and the window is half as large for each 20 points of the counter:
 * misses that nothing speaks for raise it, and hits lower it.
 */
#include "linux.h"

#define HALVES		20	/* points that halve the window */
#define MOST		(11 * HALVES)
#define NEAR_PAGES	16	/* a block that a miss looks at */

/* Points of what lowers the counter, and of what raises it beyond 1. */
#define HIT		2
#define STREAM		8
#define NEAR		16
#define REFAULT		12

/* As many times as much as was used is read on. */
#define READ_ON		8

static bool is_used(const struct file *file, uint64_t index)
{
	return index < file->nr_pages && policy_is_cached(file, index) &&
	       file->pages[index] & MAPPED;
}

/*
 * The pages to read on from a used run that ends before a page, or begins
 * behind it; 0 if there is none. Pages 1, 2, 4 and so on away are looked at.
 */
static uint32_t read_on(const struct file *file, uint64_t index, bool behind,
			uint32_t max)
{
	uint32_t at;

	/* An index below 0 is beyond every file. */
	for (at = 1; at / 2 * READ_ON < max; at *= 2)
		if (!is_used(file, behind ? index + at : index - at))
			break;
	at = at / 2 * READ_ON;
	return at < max ? at : max;
}

static struct window stream(const struct file *file, uint64_t index,
			    uint32_t max)
{
	struct linux_state *state = file->state;
	uint32_t ahead = read_on(file, index, false, max);
	uint32_t back = read_on(file, index, true, max);

	if (!ahead && !back)
		return (struct window) {};
	linux_count_hits(file, STREAM);
	if (ahead >= back) {
		state->start = index;
		state->size = ahead;
		state->async_size = ahead / 2;
	} else {
		state->size = back > index ? index + 1 : back;
		state->start = index + 1 - state->size;
		state->async_size = 0;
	}
	return (struct window) {
		.start = state->start,
		.size = state->size,
		.async_size = state->async_size,
	};
}

static bool is_near_others(const struct file *file, uint64_t index)
{
	uint64_t start = index - index % NEAR_PAGES;
	unsigned int cached = 0;

	for (uint64_t i = start; i < start + NEAR_PAGES; i++)
		cached += i < file->nr_pages && policy_is_cached(file, i);
	return cached > 1;
}

static struct window miss(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	uint32_t max = machine->read_ahead_pages, size;
	struct linux_state *state = file->state;
	struct window window = stream(file, index, max);

	if (window.size)
		return window;
	size = max >> state->misses / HALVES;
	if (is_near_others(file, index)) {
		linux_count_hits(file, NEAR);
		if (size < NEAR_PAGES)
			size = max < NEAR_PAGES ? max : NEAR_PAGES;
	} else {
		state->misses += file->pages[index] & EVICTED ? REFAULT + 1 : 1;
		if (state->misses > MOST)
			state->misses = MOST;
	}
	if (size < 2)
		return (struct window) { .start = index, .size = 1 };
	window.start = index > size / 2 ? index - size / 2 : 0;
	window.size = size;
	window.async_size = size / 8;
	state->start = window.start;
	state->size = window.size;
	state->async_size = window.async_size;
	return window;
}

static struct window mark(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	linux_count_hits(file, HIT);
	return linux_go_on(machine, file, index);
}

static struct window hit(const struct model_machine *machine,
			 const struct file *file, const struct hit *hit)
{
	(void)machine;
	linux_count_hit(file, hit, HIT);
	return (struct window) {};
}

const struct policy policy_first_steps = {
	.state_size = sizeof(struct linux_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = miss,
	.mark = mark,
	.hit = hit,
};
