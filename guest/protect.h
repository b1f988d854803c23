/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What calls of mprotect() cost, as users have reported it: memory of which all
 * of it, a part after the other or a single page changes its protection.
 */
#ifndef FOLIOLAB_PROTECT_H
#define FOLIOLAB_PROTECT_H

#include <math.h>
#include <sys/mman.h>

#include "probe.h"

#define PROTECT_PAGE	4096	/* bytes, whatever the machine's are */
#define PROTECT_CALLS	64	/* in a round of small ones */
#define PROTECT_BYTES	(32 << 20)	/* that a round of large ones goes over */
#define PROTECT_ROUNDS	40
#define PROTECT_REGION	(123 * PROTECT_PAGE)	/* that V8 toggles */
#define PROTECT_STEP	(64 << 10)
/* Far from all else: what lies beside a mapping decides what a call takes. */
#define PROTECT_PLACE	((void *)(UINT64_C(1) << 44))

/* Each round is one function's; it returns how many calls it made. */
typedef uint64_t protect_round(char *start, uint64_t bytes);

struct protect_case {
	protect_round *round;
	uint64_t bytes;
	bool empty;		/* nothing is ever written to it */
};

struct protect_times {
	uint64_t calls;
	double seconds;
	double undisturbed;	/* if all rounds had been like the fastest */
};

static inline double protect_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Anonymous memory in single pages, all of which are written unless it is empty. */
static inline char *protect_memory(const struct protect_case *wanted)
{
	int access = wanted->empty ? PROT_NONE : PROT_READ | PROT_WRITE;
	uint64_t bytes = wanted->bytes;
	char *start = mmap(PROTECT_PLACE, bytes, access,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		fail_io("No memory");
	/* A kernel without huge pages does not know the advice. */
	madvise(start, bytes, MADV_NOHUGEPAGE);
	for (uint64_t at = 0; !wanted->empty && at < bytes; at += PROTECT_PAGE)
		*(volatile char *)(start + at) = 1;
	return start;
}

static inline void protect(char *start, uint64_t bytes, int access)
{
	if (mprotect(start, bytes, access))
		fail_io("mprotect");
}

static inline uint64_t protect_all(char *start, uint64_t bytes)
{
	uint64_t calls = 0;

	do {
		protect(start, bytes, PROT_NONE);
		protect(start, bytes, PROT_READ | PROT_WRITE);
		calls += 2;
	} while (calls < PROTECT_CALLS && calls * bytes < PROTECT_BYTES);
	return calls;
}

static inline uint64_t protect_regions(char *start, uint64_t bytes)
{
	char *second = start + bytes / 2;

	for (int i = 0; i < PROTECT_CALLS; i += 4) {
		protect(start, PROTECT_REGION, PROT_READ | PROT_EXEC);
		protect(second, PROTECT_REGION, PROT_READ | PROT_EXEC);
		protect(start, PROTECT_REGION, PROT_READ | PROT_WRITE);
		protect(second, PROTECT_REGION, PROT_READ | PROT_WRITE);
	}
	return PROTECT_CALLS;
}

static inline uint64_t protect_singles(char *start, uint64_t bytes)
{
	uint64_t state = 1;	/* the same pages in each round */

	for (int i = 0; i < PROTECT_CALLS; i += 2) {
		char *page = start + PROTECT_PAGE *
			     random_below(&state, bytes / PROTECT_PAGE);

		protect(page, PROTECT_PAGE, PROT_NONE);
		protect(page, PROTECT_PAGE, PROT_READ | PROT_WRITE);
	}
	return PROTECT_CALLS;
}

/* Upward, as an allocator makes reserved space usable, and back. */
static inline uint64_t protect_empty(char *start, uint64_t bytes)
{
	uint64_t at;

	for (at = 0; at < bytes; at += PROTECT_STEP)
		protect(start + at, PROTECT_STEP, PROT_READ | PROT_WRITE);
	while (at) {
		at -= PROTECT_STEP;
		protect(start + at, PROTECT_STEP, PROT_NONE);
	}
	return 2 * bytes / PROTECT_STEP;
}

static inline struct protect_times
protect_measure(const struct protect_case *wanted)
{
	char *start = protect_memory(wanted);
	struct protect_times times = { 0 };
	double least = INFINITY;

	wanted->round(start, wanted->bytes);	/* makes page tables */
	for (int i = 0; i < PROTECT_ROUNDS; i++) {
		double begun = protect_now(), seconds;

		times.calls += wanted->round(start, wanted->bytes);
		seconds = protect_now() - begun;
		times.seconds += seconds;
		least = seconds < least ? seconds : least;
	}
	times.undisturbed = least * PROTECT_ROUNDS;
	munmap(start, wanted->bytes);
	return times;
}

#endif /* FOLIOLAB_PROTECT_H */
