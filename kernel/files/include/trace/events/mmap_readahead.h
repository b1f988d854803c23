/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mmap_readahead

#if !defined(_TRACE_MMAP_READAHEAD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MMAP_READAHEAD_H

#include <linux/fs.h>
#include <linux/mmap_readahead_reason.h>
#include <linux/tracepoint.h>

TRACE_DEFINE_ENUM(MMAP_READAHEAD_HUGE_HINT);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_RANDOM_HINT);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_OFF);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_SEQUENTIAL_HINT);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_MISSES);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_AROUND);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_TEXT);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_ADAPTED);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_ADAPTED_FORWARD);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_ADAPTED_BACKWARD);
TRACE_DEFINE_ENUM(MMAP_READAHEAD_ADAPTED_FILL);

/*
 * One event for each synchronous miss of a mapped file, before its read is
 * issued. index, start, size, async_size and ra_pages are in base pages. order
 * is what the page cache is asked for; it may choose a larger one. mmap_miss
 * counts this miss already, if the reason is one that counts.
 *
 * dev is a dev_t, spelled so that BPF programs need no type information.
 */
TRACE_EVENT(mmap_readahead_miss,

	TP_PROTO(struct file *file, pgoff_t index, pgoff_t start,
		 unsigned int size, unsigned int async_size, unsigned int order,
		 enum mmap_readahead_reason reason),

	TP_ARGS(file, index, start, size, async_size, order, reason),

	TP_STRUCT__entry(
		__field(unsigned int, dev)
		__field(unsigned long, ino)
		__field(unsigned long, index)
		__field(unsigned long, start)
		__field(unsigned int, size)
		__field(unsigned int, async_size)
		__field(unsigned int, order)
		__field(unsigned int, ra_pages)
		__field(unsigned int, mmap_miss)
		__field(int, reason)
	),

	TP_fast_assign(
		__entry->dev = S_ISBLK(file->f_mapping->host->i_mode) ?
			       file->f_mapping->host->i_rdev :
			       file->f_mapping->host->i_sb->s_dev;
		__entry->ino = file->f_mapping->host->i_ino;
		__entry->index = index;
		__entry->start = start;
		__entry->size = size;
		__entry->async_size = async_size;
		__entry->order = order;
		__entry->ra_pages = file->f_ra.ra_pages;
		__entry->mmap_miss = READ_ONCE(file->f_ra.mmap_miss);
		__entry->reason = reason;
	),

	TP_printk("dev=%d:%d ino=%lu index=%lu start=%lu size=%u async_size=%u order=%u ra_pages=%u mmap_miss=%u reason=%s",
		MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		__entry->index, __entry->start, __entry->size,
		__entry->async_size, __entry->order, __entry->ra_pages,
		__entry->mmap_miss,
		__print_symbolic(__entry->reason,
			{ MMAP_READAHEAD_HUGE_HINT,		"huge-hint" },
			{ MMAP_READAHEAD_RANDOM_HINT,		"random-hint" },
			{ MMAP_READAHEAD_OFF,			"off" },
			{ MMAP_READAHEAD_SEQUENTIAL_HINT,	"sequential-hint" },
			{ MMAP_READAHEAD_MISSES,		"misses" },
			{ MMAP_READAHEAD_AROUND,		"around" },
			{ MMAP_READAHEAD_TEXT,			"text" },
			{ MMAP_READAHEAD_ADAPTED,		"single" },
			{ MMAP_READAHEAD_ADAPTED_FORWARD,	"forward" },
			{ MMAP_READAHEAD_ADAPTED_BACKWARD,	"backward" },
			{ MMAP_READAHEAD_ADAPTED_FILL,		"fill" }))
);

#endif /* _TRACE_MMAP_READAHEAD_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
