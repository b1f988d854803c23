// SPDX-License-Identifier: GPL-2.0-only
#include "linux.h"

/* The kernel's own numbers. */
#define LOTS_OF_MISSES		100	/* MMAP_LOTSAMISS */
#define MAX_MISSES		(LOTS_OF_MISSES * 10)

static struct window window_of(const struct linux_state *state)
{
	return (struct window) {
		.start = state->start,
		.size = state->size,
		.async_size = state->async_size,
	};
}

struct window linux_around(const struct model_machine *machine,
			   const struct file *file, uint64_t index)
{
	struct linux_state *state = file->state;
	uint32_t max = machine->read_ahead_pages;

	state->start = index > max / 2 ? index - max / 2 : 0;
	state->size = max;
	state->async_size = max / 4;
	return window_of(state);
}

struct window linux_miss(const struct model_machine *machine,
			 const struct file *file, uint64_t index)
{
	struct linux_state *state = file->state;

	if (state->misses < MAX_MISSES)
		state->misses++;
	if (state->misses > LOTS_OF_MISSES)
		return (struct window) { .start = index, .size = 1 };
	return linux_around(machine, file, index);
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

struct window linux_go_on(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	struct linux_state *state = file->state;
	uint32_t max = machine->read_ahead_pages;
	uint64_t start;

	if (index == state->start + state->size - state->async_size) {
		uint32_t next = next_size(state->size, max);

		state->start += state->size;
		if (next > state->size)
			state->size = next;
	} else {
		for (start = index + 1; start < file->nr_pages; start++)
			if (start - index > max ||
			    !policy_is_cached(file, start))
				break;
		if (start - index > max)
			return (struct window) {};
		state->start = start;
		state->size = next_size(start - index + max, max);
	}
	state->async_size = state->size;
	return window_of(state);
}

struct window linux_mark(const struct model_machine *machine,
			 const struct file *file, uint64_t index)
{
	linux_count_hits(file, 1);
	return linux_go_on(machine, file, index);
}

void linux_count_hits(const struct file *file, uint32_t hits)
{
	struct linux_state *state = file->state;

	state->misses = hits < state->misses ? state->misses - hits : 0;
}

void linux_count_hit(const struct file *file, const struct hit *hit,
		     uint32_t hits)
{
	if (hit->at_address && !hit->retried)
		linux_count_hits(file, hits);
}
