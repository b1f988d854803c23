// SPDX-License-Identifier: GPL-2.0-only
/*
 * macOS: vm_object_cluster_size() in osfmk/vm/vm_object.c, with the runs that
 * vm_fault_is_sequential() in osfmk/vm/vm_fault.c sees.
 *
 * https://github.com/apple-oss-distributions/xnu, of 2025 (xnu-11417)
 *
 * A run is of faults on pages that lie side by side, in either direction; no
 * fault maps more than its own page, so that each page of a run is seen.
 * After three such steps a miss reads as many pages on as the run is long,
 * and one more: windows double. Any other miss is taken for random, and gets
 * a window with its page in the middle. That is the smallest one for the
 * first 160 pages that are read ahead of need, and from then on as large a
 * share of the largest as was used of all these pages. No window goes on
 * beyond a page that is cached. Each one is waited for: only read() has
 * windows that are not.
 *
 * What is simpler here: the largest window is read_ahead_pages, there 1 MiB
 * or what the device takes at once, and an eighth of it on solid state; the
 * smallest is 32 KiB, which they halve there. They quarter windows while free
 * memory is short, and deactivate what lies 128 pages behind a run; the model
 * has no free memory, nor advice for reclaim.
 */
#include "../policy.h"

#define LEAST_PAGES	8	/* preheat_min_bytes */
#define PRIMED_BY	(20 * LEAST_PAGES)
#define LEAST_RUN	3
#define MAX_RUN		(1 << 18)	/* MAX_SEQUENTIAL_RUN */

struct xnu_state {
	uint64_t last;		/* page of the last fault */
	int32_t run;		/* steps in one direction, backward below 0 */
	uint64_t created;	/* pages read that were not needed yet */
	uint64_t used;		/* of these */
};

static uint64_t share_of(const struct xnu_state *state, uint32_t max)
{
	if (state->created < PRIMED_BY)
		return LEAST_PAGES;
	return (max * state->used + state->created - 1) / state->created;
}

static struct window xnu_miss(const struct model_machine *machine,
			      const struct file *file, uint64_t index)
{
	uint32_t max = machine->read_ahead_pages;
	struct xnu_state *state = file->shared;
	uint64_t size, before, behind;
	struct window window;

	if (state->run >= LEAST_RUN || state->run <= -LEAST_RUN) {
		size = (state->run > 0 ? state->run : -state->run) + 1;
	} else {
		size = share_of(state, max);
		if (size < LEAST_PAGES)
			size = LEAST_PAGES;
	}
	if (size > max)
		size = max;

	if (state->run >= LEAST_RUN) {
		before = 0;
		behind = size - 1;
	} else if (state->run <= -LEAST_RUN) {
		before = size - 1;
		behind = 0;
	} else {
		before = index < size / 2 ? index : size / 2;
		behind = size - 1 - before;
	}
	window = policy_between(file, index, before, behind);
	state->created += window.size - 1;
	return window;
}

static void step(struct xnu_state *state, uint64_t index)
{
	if (index == state->last)
		return;
	if (index == state->last + 1)
		state->run = state->run < 0 ? 1 : state->run + 1;
	else if (index + 1 == state->last)
		state->run = state->run > 0 ? -1 : state->run - 1;
	else
		state->run = 0;
	if (state->run > MAX_RUN)
		state->run = MAX_RUN;
	if (state->run < -MAX_RUN)
		state->run = -MAX_RUN;
	state->last = index;
}

static struct window xnu_hit(const struct model_machine *machine,
			     const struct file *file, const struct hit *hit)
{
	struct xnu_state *state = file->shared;

	(void)machine;
	if (hit->at_address) {
		/* What was cached had come with another page. */
		state->used += !hit->retried;
		step(state, hit->index);
	}
	return (struct window) {};
}

const struct policy policy_xnu = {
	.shared_size = sizeof(struct xnu_state),
	.miss = xnu_miss,
	.hit = xnu_hit,
};
