// SPDX-License-Identifier: GPL-2.0-only
/* A full window around each miss, whatever happens. */
#include "linux.h"

const struct policy policy_fixed = {
	.state_size = sizeof(struct linux_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = linux_around,
	.mark = linux_go_on,
};
