/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What reclaim did: the kernel's counters of pages that it took and that came
 * back, and the generations of a control group.
 */
#ifndef FOLIOLAB_RECLAIM_H
#define FOLIOLAB_RECLAIM_H

#include "cgroup.h"

/* Lines of /proc/vmstat, a sum of two at most, as the metrics they are. */
enum { REFAULTS_FILE, REFAULTS_ANON, ACTIVATED_FILE, RESTORED_FILE, SWAP_INS,
       SWAP_OUTS, SCANNED_PAGES, RECLAIMED_PAGES, RECLAIM_EVENTS };

static const struct {
	const char *metric;
	const char *lines[2];
} reclaim_events[RECLAIM_EVENTS] = {
	[REFAULTS_FILE] = { "refaults_file", { "workingset_refault_file" } },
	[REFAULTS_ANON] = { "refaults_anon", { "workingset_refault_anon" } },
	[ACTIVATED_FILE] = { "activated_file", { "workingset_activate_file" } },
	[RESTORED_FILE] = { "restored_file", { "workingset_restore_file" } },
	[SWAP_INS] = { "swap_ins", { "pswpin" } },
	[SWAP_OUTS] = { "swap_outs", { "pswpout" } },
	[SCANNED_PAGES] = { "scanned_pages", { "pgscan_file", "pgscan_anon" } },
	[RECLAIMED_PAGES] = { "reclaimed_pages",
			      { "pgsteal_file", "pgsteal_anon" } },
};

struct reclaim {
	bool has[RECLAIM_EVENTS];
	uint64_t count[RECLAIM_EVENTS];
};

static inline void reclaim_read(struct reclaim *reclaim)
{
	/*
	 * CPUs keep some of what they count for themselves, unless they are
	 * asked, which takes root. Who is not counts nearly all the same.
	 */
	write_word("/proc/sys/vm/stat_refresh", "1");
	for (size_t i = 0; i < RECLAIM_EVENTS; i++) {
		const char *const *lines = reclaim_events[i].lines;
		uint64_t first = 0, second = 0;

		reclaim->has[i] = vmstat(lines[0], &first) &&
				  (!lines[1] || vmstat(lines[1], &second));
		reclaim->count[i] = first + second;
	}
}

/* As JSON, after something else; null where the kernel does not count it. */
static inline void reclaim_print(const struct reclaim *before,
				 const struct reclaim *after)
{
	for (size_t i = 0; i < RECLAIM_EVENTS; i++)
		print_count(reclaim_events[i].metric,
			    before->has[i] && after->has[i],
			    after->count[i] - before->count[i]);
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
