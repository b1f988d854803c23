// SPDX-License-Identifier: GPL-2.0-only
/*
 * FreeBSD: vm_fault_readahead() and vm_fault_getpages() in sys/vm/vm_fault.c.
 *
 * https://github.com/freebsd/freebsd-src, since version 10; here of 13
 *
 * A mapping remembers the page behind the last read. A miss there is
 * sequential, and reads 8 pages more than the one before; a new mapping
 * begins as if it had read 16. Any other miss reads the aligned 16 pages that
 * it lies in, and growth begins anew with 8. No read goes on beyond a page
 * that is cached, and all are waited for.
 *
 * What is simpler here: the largest read is read_ahead_pages, there MAXPHYS,
 * what a device takes at once, but 256 pages as there, where a byte counts
 * them. What lies behind a sequential miss is put first in line for reclaim
 * there, and what is mapped around a fault is what it read, or four pages on
 * each side; the model has no advice for reclaim, and maps as Linux does.
 */
#include "../policy.h"

#define CLUSTER		16	/* VM_FAULT_READ_DEFAULT */
#define LEAST_AHEAD	7	/* VM_FAULT_READ_AHEAD_MIN */
#define FIRST_AHEAD	15	/* VM_FAULT_READ_AHEAD_INIT */
#define MOST_AHEAD	255	/* VM_FAULT_READ_AHEAD_MAX */

struct freebsd_state {
	uint64_t next;		/* page behind the last read */
	uint32_t ahead;		/* pages read ahead by the last miss */
};

static void freebsd_init(void *state)
{
	*(struct freebsd_state *)state = (struct freebsd_state) {
		.ahead = FIRST_AHEAD,
	};
}

static struct window freebsd_miss(const struct model_machine *machine,
				  const struct file *file, uint64_t index)
{
	struct freebsd_state *state = file->state;
	uint32_t max = machine->read_ahead_pages;
	uint32_t cluster = max < CLUSTER ? max : CLUSTER;
	uint32_t offset = index % cluster;
	struct window window;

	if (index == state->next) {
		state->ahead += state->ahead ? LEAST_AHEAD + 1 : LEAST_AHEAD;
		if (state->ahead > MOST_AHEAD)
			state->ahead = MOST_AHEAD;
		if (state->ahead > max - 1)
			state->ahead = max - 1;
	} else {
		state->ahead = 0;
	}
	if (state->ahead)
		window = policy_between(file, index, 0, state->ahead);
	else
		window = policy_between(file, index, offset,
					cluster - 1 - offset);
	state->next = window.start + window.size;
	return window;
}

const struct policy policy_freebsd = {
	.state_size = sizeof(struct freebsd_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.init = freebsd_init,
	.miss = freebsd_miss,
};
