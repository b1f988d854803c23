/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mprotect

#if !defined(_TRACE_MPROTECT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_MPROTECT_H

#include <linux/tracepoint.h>

#ifndef _MPROTECT_BATCH_KINDS
#define _MPROTECT_BATCH_KINDS
enum mprotect_batch_kind {
	MPROTECT_BATCH_ALIKE,	/* changed alike */
	MPROTECT_BATCH_SKIPPED,	/* of one folio that NUMA hints are not for */
};
#endif

TRACE_DEFINE_ENUM(MPROTECT_BATCH_ALIKE);
TRACE_DEFINE_ENUM(MPROTECT_BATCH_SKIPPED);

/*
 * One event for neighbouring page table entries that a change of protection dealt
 * with together. Those that were changed have one range of the TLB flush. There
 * is none for an entry that was dealt with by itself.
 */
TRACE_EVENT(mprotect_batch,

	TP_PROTO(unsigned long addr, unsigned int nr,
		 enum mprotect_batch_kind kind),

	TP_ARGS(addr, nr, kind),

	TP_STRUCT__entry(
		__field(unsigned long, addr)
		__field(unsigned int, nr)
		__field(int, kind)
	),

	TP_fast_assign(
		__entry->addr = addr;
		__entry->nr = nr;
		__entry->kind = kind;
	),

	TP_printk("addr=%#lx nr=%u kind=%s", __entry->addr, __entry->nr,
		  __print_symbolic(__entry->kind,
				   { MPROTECT_BATCH_ALIKE, "alike" },
				   { MPROTECT_BATCH_SKIPPED, "skipped" }))
);

#endif /* _TRACE_MPROTECT_H */

/* This part must be outside protection */
#include <trace/define_trace.h>
