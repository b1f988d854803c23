/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A control group for the work of a probe, which limits and counts its memory.
 * Its counters begin with it, so it is made anew for each piece of work.
 */
#ifndef FOLIOLAB_CGROUP_H
#define FOLIOLAB_CGROUP_H

#include <sys/stat.h>

#include "settings.h"

#define CGROUPS	"/sys/fs/cgroup"
#define CGROUP	CGROUPS "/" PROBE

/* Make the group, empty, with a limit on its memory unless that is 0. */
static inline void cgroup_make(uint64_t memory_max)
{
	static const char control[] = CGROUPS "/cgroup.subtree_control";
	char limit[24];

	if (!write_word(control, "+memory"))
		fail_io(control);
	/* One that is left over would count what was before. */
	if ((rmdir(CGROUP) && errno != ENOENT) || mkdir(CGROUP, 0755))
		fail_io(CGROUP);
	snprintf(limit, sizeof(limit), "%" PRIu64, memory_max);
	if (memory_max && !write_word(CGROUP "/memory.max", limit))
		fail_io(CGROUP "/memory.max");
}

/* Be in it from now on, with all children. */
static inline void cgroup_enter(void)
{
	if (!write_word(CGROUP "/cgroup.procs", "0"))
		fail_io(CGROUP "/cgroup.procs");
}

/* A number of the group's, such as the one in memory.peak (bytes). */
static inline uint64_t cgroup_number(const char *file)
{
	char path[128], word[24];

	snprintf(path, sizeof(path), CGROUP "/%s", file);
	if (!read_word(path, word, sizeof(word)))
		fail_io(path);
	return parse_number(file, word, 0);
}

/* Remove it; all that was in it has to have ended. */
static inline void cgroup_remove(void)
{
	if (rmdir(CGROUP))
		fail_io(CGROUP);
}

#endif /* FOLIOLAB_CGROUP_H */
