/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of the model: which pages of files are cached, and what is evicted
 * for others.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include <stddef.h>

#include "model.h"

/* State of a page. */
#define CACHED		0x01
#define MAPPED		0x02	/* and stays so until it is evicted */
#define YOUNG		0x04	/* its PTE was used since reclaim looked */
#define MARKED		0x08	/* PG_readahead */
#define EVICTED		0x10	/* was cached, left a shadow */
#define REFERENCED	0x20	/* PG_referenced; was mapped, if it is not */

struct file {
	uint8_t *pages;
	uint32_t *shadows;	/* of evicted pages: the age of memory then */
	uint64_t nr_pages;
	uint64_t cached;
	uint64_t place;		/* on the device, in pages */

	/* Of the policy: for who accesses the file, and for all who do. */
	void *state, *shared;

	/* If there are several: who has an entry for each cached page, in bits. */
	uint64_t *mappers;
	uint64_t opener;	/* who accesses the file now */
	uint64_t open;		/* all who have opened it */
};

/* A range of cached pages in the order of reclaim. */
struct extent {
	struct file *file;
	uint32_t start;
	uint32_t size;
};

/* Extents, the oldest first; capacity is a power of two. */
struct ring {
	struct extent *extents;
	uint64_t head, tail, capacity;
	uint64_t pages;
};

struct memory {
	enum model_reclaim reclaim;
	uint64_t limit;
	uint64_t cached;
	uint64_t added, evicted, evicted_unused;
	struct ring inactive;	/* the only one for a second chance */

	/* struct lruvec */
	struct ring active;
	uint32_t age;
	uint64_t activated;	/* as they were read again */
	uint64_t activated_before;

	/* What the statistics said when they were gathered last. */
	uint64_t gathered_at;
	uint64_t gathered_activated, gathered_inactive, gathered_active;
};

bool memory_init(struct memory *memory, enum model_reclaim reclaim,
		 uint64_t limit);
void memory_free(struct memory *memory);

/* Cache pages that are not, and evict others. False for lack of memory. */
bool memory_add(struct memory *memory, struct file *file, uint32_t start,
		uint32_t n);

/*
 * Evict so many pages, or all there are, as memory.reclaim does; lists may evict
 * up to 31 more. False for lack of memory.
 */
bool memory_reclaim(struct memory *memory, uint64_t n);

#endif /* MODEL_MEMORY_H */
