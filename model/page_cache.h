/* SPDX-License-Identifier: GPL-2.0-only */
/* What a model is made of, for those who access its files. */
#ifndef MODEL_PAGE_CACHE_H
#define MODEL_PAGE_CACHE_H

#include "policy.h"

struct model {
	struct model_machine machine;
	const struct policy *policy;
	struct model_counts counts;
	struct memory memory;
	uint64_t position;	/* where the device's last request ended */
	const struct model_observer *observer;	/* may be NULL */

	/* Of all files. */
	uint8_t *pages;
	uint32_t *shadows;
	void *states;
	void *shared;

	uint32_t nr_files;
	struct file files[];
};

/* What an access does. */
enum access {
	READ,
	WRITE,		/* to a shared mapping */
	COPY,		/* for a write to a private one */
};

/*
 * Access a page of a file. False for lack of memory. It is hidden so that what
 * replays many accesses can have it inlined.
 */
__attribute__((visibility("hidden")))
bool page_cache_touch(struct model *model, struct file *file, uint64_t index,
		      enum access access);

#endif /* MODEL_PAGE_CACHE_H */
