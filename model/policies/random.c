// SPDX-License-Identifier: GPL-2.0-only
/* Linux with the hint for random access (MADV_RANDOM): pages one by one. */
#include "../policy.h"

static struct window miss(const struct model_machine *machine,
			  const struct file *file, uint64_t index)
{
	(void)machine;
	(void)file;
	return (struct window) { .start = index, .size = 1 };
}

const struct policy policy_random = {
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = miss,
};
