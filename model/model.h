/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of what the page cache reads for mapped files.
 *
 * A mapping is of a whole file, and there is one kind of page. Each file has one
 * mapping, but that of a case in which processes open it. Reads end at once, in the order in which they are issued; nothing else uses the
 * memory. The files lie on the device one after the other.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "../guest/cases.h"

/* What a miss without hints reads; a file in policies/ says how. */
enum model_rules {
	MODEL_OFF,		/* Linux 6.12 */
	MODEL_PUBLISHED,	/* honest hits */
	MODEL_ADAPTIVE,	/* the adaptive window */
	MODEL_RANDOM,	/* MADV_RANDOM */
	MODEL_FIXED,	/* a full window around each miss, whatever happens */
	MODEL_XNU,	/* macOS */
	MODEL_FREEBSD,
	MODEL_ZFETCH,	/* OpenZFS */
	MODEL_COMPETITIVE,	/* Li, Shen and Papathanasiou, EuroSys 2007 */
	MODEL_LINUX_7_3,
	MODEL_FIRST_STEPS,	/* small changes of 7.3 for mainline */
};

/* What is evicted. */
enum model_reclaim {
	MODEL_SECOND_CHANCE,	/* the oldest that was not used of late */
	MODEL_LISTS,		/* as Linux 6.12 has it for a control group */
};

struct model_machine {
	enum model_rules rules;
	enum model_reclaim reclaim;
	uint32_t memory_pages;		/* for all files */
	uint32_t read_ahead_pages;	/* at least 1 */
	uint32_t request_pages;		/* what a request is taken to cost */
	/* the same of a file until a request of it was waited for; 0: as always */
	uint32_t first_request_pages;
};

struct model_counts {
	uint64_t accesses;
	uint64_t major_faults;
	uint64_t minor_faults;
	uint64_t pages_read;
	uint64_t waits;			/* reads that the program waits for */
	uint64_t requests;		/* contiguous ranges read */
	uint64_t seeks;			/* of these, not soon after another */
	uint64_t pages_skipped;		/* between others that were */
	uint64_t evicted;		/* pages */
	uint64_t evicted_unused;	/* that were never mapped */
	uint64_t refaults;		/* pages read again after that */
	uint64_t looks;			/* at pages, by misses that tell it */
	uint64_t most_looks;		/* by one of them, or at one mark */
	uint64_t kinds[4];		/* misses by enum mmap_readahead_kind */
};

/* How an access found its page. */
enum model_access {
	MODEL_MAPPED,
	MODEL_MINOR,	/* cached, not mapped */
	MODEL_MAJOR,	/* neither */
};

/*
 * Who is told, as it happens, what is read and what is accessed. What an access
 * has the cache read is told before it, and of that first what it waits for.
 */
struct model_observer {
	void *context;
	/* Pages of a file that are read by one request. */
	void (*read)(void *context, uint32_t file, uint32_t start, uint32_t n);
	void (*accessed)(void *context, uint32_t file, uint32_t page,
			 enum model_access how);
};

struct model;

/* NULL for lack of memory or with a machine that cannot be. */
struct model *model_new(const struct model_machine *machine,
			const uint32_t *file_pages, uint32_t nr_files);
void model_free(struct model *model);

/* To be called before the first access; the observer has to outlive the model. */
void model_observe(struct model *model, const struct model_observer *observer);

/* Are these all pages of the files? */
bool model_has(const struct model *model, const uint32_t *files,
	       const uint32_t *pages, uint64_t count);

/* Touch pages of files; all have to exist. False for lack of memory. */
bool model_replay(struct model *model, const uint32_t *files,
		  const uint32_t *pages, uint64_t count);

void model_counts(const struct model *model, struct model_counts *counts);

/* Plan one pass of a pattern over the first file, touch it as often as told. */
bool model_run(struct model *model, const struct pattern *pattern,
	       uint64_t count, uint64_t passes);

/*
 * Do what users have reported, with the first file, of which nothing is mapped.
 * Up to 64 processes open it. After each phase so many pages are reclaimed.
 */
bool model_play(struct model *model, const struct case_settings *settings,
		uint64_t reclaimed);

#endif /* MODEL_H */
