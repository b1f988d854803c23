// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux 6.12: as it is, and with honest hits. They differ by the rules for
 * what a fault lowers the counter of misses, and the arithmetic of these is
 * the kernel's.
 */
#include "../../kernel/files/include/linux/mmap_readahead_hits.h"
#include "linux.h"

/* What matters to one thread that maps data without hints. */
#define PUBLISHED_RULES	(MMAP_READAHEAD_HIT_NEEDS_ADDRESS | \
				 MMAP_READAHEAD_HIT_NEEDS_FIRST_TRY | \
				 MMAP_READAHEAD_HIT_NEEDS_UNLOCKED | \
				 MMAP_READAHEAD_HIT_NEEDS_COUNTED_MISS)

static struct window count(const struct file *file, const struct hit *hit,
			   unsigned int rules)
{
	struct mmap_readahead_hit found = {
		.nr_pages = hit->nr_pages,
		.at_address = hit->at_address,
		.retried = hit->retried,
	};

	linux_count_hits(file, mmap_readahead_credit(rules, &found));
	return (struct window) {};
}

static struct window off_hit(const struct model_machine *machine,
			     const struct file *file, const struct hit *hit)
{
	(void)machine;
	return count(file, hit, 0);
}

static struct window published_hit(const struct model_machine *machine,
				   const struct file *file, const struct hit *hit)
{
	(void)machine;
	return count(file, hit, PUBLISHED_RULES);
}

const struct policy policy_off = {
	.state_size = sizeof(struct linux_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = linux_miss,
	.mark = linux_mark,
	.hit = off_hit,
};

const struct policy policy_published = {
	.state_size = sizeof(struct linux_state),
	.block_shift = POLICY_BLOCK_SHIFT,
	.miss = linux_miss,
	.mark = linux_mark,
	.hit = published_hit,
};
