/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What reclaim did: the kernel's counters of pages that came back too soon, and
 * the generations of a control group.
 */
#ifndef FOLIOLAB_RECLAIM_H
#define FOLIOLAB_RECLAIM_H

#include "cgroup.h"

/* Lines of /proc/vmstat, and the metrics that they are printed as. */
static const struct {
	const char *line, *metric;
} reclaim_events[] = {
	{ "workingset_refault_file", "refaults_file" },
	{ "workingset_refault_anon", "refaults_anon" },
	{ "workingset_activate_file", "activated_file" },
	{ "workingset_restore_file", "restored_file" },
	{ "pswpin", "swap_ins" },
	{ "pswpout", "swap_outs" },
	{ "pgmajfault", "major_faults" },
};
#define RECLAIM_EVENTS	(sizeof(reclaim_events) / sizeof(reclaim_events[0]))

struct reclaim {
	bool has[RECLAIM_EVENTS];
	uint64_t count[RECLAIM_EVENTS];
};

/* CPUs keep some of what they count for themselves, unless they are asked. */
static inline void reclaim_read(struct reclaim *reclaim)
{
	static const char refresh[] = "/proc/sys/vm/stat_refresh";

	if (!write_word(refresh, "1"))
		fail_io(refresh);
	for (size_t i = 0; i < RECLAIM_EVENTS; i++)
		reclaim->has[i] = vmstat(reclaim_events[i].line,
					 &reclaim->count[i]);
}

/* As JSON, after something else; null where the kernel does not count it. */
static inline void reclaim_print(const struct reclaim *before,
				 const struct reclaim *after)
{
	for (size_t i = 0; i < RECLAIM_EVENTS; i++) {
		printf(", \"%s\": ", reclaim_events[i].metric);
		if (before->has[i] && after->has[i])
			printf("%" PRIu64, after->count[i] - before->count[i]);
		else
			printf("null");
	}
}

/*
 * The share of the file pages of the probe's control group that is in its two
 * youngest generations, which reclaim does not look at. False if the kernel
 * has no generations, or does not use them.
 */
static inline bool young_share(double *share)
{
	FILE *stream = fopen("/sys/kernel/debug/lru_gen", "re");
	uint64_t total = 0, last[2] = { 0 };
	char line[512], enabled[16];
	bool ours = false;

	if (!stream)
		return false;
	/* From the oldest on: number, age (ms), anonymous and file pages. */
	while (fgets(line, sizeof(line), stream)) {
		char path[400] = "";
		uint64_t pages;

		if (!strncmp(line, "memcg", 5)) {
			sscanf(line, "memcg %*u %399s", path);
			ours = !strcmp(path, "/" PROBE);
		} else if (ours && sscanf(line, "%*u %*u %*u %" SCNu64,
					  &pages) == 1) {
			total += pages;
			last[0] = last[1];
			last[1] = pages;
		}
	}
	fclose(stream);
	*share = total ? (double)(last[0] + last[1]) / total : 0;
	return total && read_word("/sys/kernel/mm/lru_gen/enabled", enabled,
				  sizeof(enabled)) &&
	       strtoul(enabled, NULL, 0) & 1;
}

#endif /* FOLIOLAB_RECLAIM_H */
