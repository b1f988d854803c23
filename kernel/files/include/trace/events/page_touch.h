/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM page_touch

#if !defined(_TRACE_PAGE_TOUCH_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PAGE_TOUCH_H

#include <linux/fs.h>
#include <linux/tracepoint.h>

/*
 * One event for each fault that maps a page of a watched file. seq counts them,
 * so that events of several CPUs can be put in order, and lost ones be noticed.
 *
 * dev is a dev_t, spelled so that BPF programs need no type information.
 */
TRACE_EVENT(page_touch,

	TP_PROTO(const struct inode *inode, pgoff_t index, u64 seq),

	TP_ARGS(inode, index, seq),

	TP_STRUCT__entry(
		__field(u64, seq)
		__field(unsigned long, ino)
		__field(unsigned long, index)
		__field(unsigned int, dev)
		__field(unsigned int, generation)
	),

	TP_fast_assign(
		__entry->seq = seq;
		__entry->ino = inode->i_ino;
		__entry->index = index;
		__entry->dev = inode->i_sb->s_dev;
		__entry->generation = inode->i_generation;
	),

	TP_printk("dev=%d:%d ino=%lu generation=%u index=%lu seq=%llu",
		MAJOR(__entry->dev), MINOR(__entry->dev), __entry->ino,
		__entry->generation, __entry->index, __entry->seq)
);

#endif /* _TRACE_PAGE_TOUCH_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
