// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux 7.3: the windows of 6.12, and a counter of misses that only what was
 * asked for lowers. A fault is one hit if it maps the page at its own
 * address, none if it was tried before: then it finds what its own miss has
 * read.
 *
 * mm/filemap.c, https://git.kernel.org/torvalds/c/0b9c0aeba938 and what came
 * with it
 *
 * What is left out needs several threads (locked folios are no hits), hints
 * or text (whose faults neither raise nor lower the counter), or large
 * folios, all of which a fault maps. In the rest 7.3 took the
 * published rules, which are written down here once more: variants that
 * differ would show a mistake in one.
 *
 * A mark that is met is a hit of its own, as in 6.12. The fault is tried
 * again after that as well, but x86 and arm64 tell the kernel so only of
 * major faults.
 */
#include "linux.h"

static struct window hit(const struct model_machine *machine,
			 const struct file *file, const struct hit *hit)
{
	(void)machine;
	linux_count_hit(file, hit, 1);
	return (struct window) {};
}

const struct policy policy_linux_7_3 = {
	.state_size = sizeof(struct linux_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = linux_miss,
	.mark = linux_mark,
	.hit = hit,
};
