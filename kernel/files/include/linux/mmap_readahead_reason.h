/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tracepoint says of a miss in a mapped file. */
#ifndef _LINUX_MMAP_READAHEAD_REASON_H
#define _LINUX_MMAP_READAHEAD_REASON_H

/**
 * enum mmap_readahead_reason - why a miss in a mapped file read what it read
 * @MMAP_READAHEAD_HUGE_HINT: the mapping asks for huge pages
 * @MMAP_READAHEAD_RANDOM_HINT: the mapping is hinted random: one folio
 * @MMAP_READAHEAD_OFF: readahead is switched off for the file: one folio
 * @MMAP_READAHEAD_SEQUENTIAL_HINT: the mapping is hinted sequential
 * @MMAP_READAHEAD_MISSES: too many misses, too few hits: one folio
 * @MMAP_READAHEAD_AROUND: none of these: a full window around the fault
 * @MMAP_READAHEAD_TEXT: the mapping is executable: folios as text wants them
 * @MMAP_READAHEAD_ADAPTED: the adaptive window; this and the following ones are
 *	in the order of &enum mmap_readahead_kind: a single miss
 * @MMAP_READAHEAD_ADAPTED_FORWARD: a run goes on
 * @MMAP_READAHEAD_ADAPTED_BACKWARD: a run goes on backward
 * @MMAP_READAHEAD_ADAPTED_FILL: single misses fill the region
 */
enum mmap_readahead_reason {
	MMAP_READAHEAD_HUGE_HINT,
	MMAP_READAHEAD_RANDOM_HINT,
	MMAP_READAHEAD_OFF,
	MMAP_READAHEAD_SEQUENTIAL_HINT,
	MMAP_READAHEAD_MISSES,
	MMAP_READAHEAD_AROUND,
	MMAP_READAHEAD_TEXT,
	MMAP_READAHEAD_ADAPTED,
	MMAP_READAHEAD_ADAPTED_FORWARD,
	MMAP_READAHEAD_ADAPTED_BACKWARD,
	MMAP_READAHEAD_ADAPTED_FILL,
};

#endif /* _LINUX_MMAP_READAHEAD_REASON_H */
