/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a disk has done a request. The driver of guests and the model of the
 * page cache compile this alike.
 *
 * So many requests are in work at a time. Each begins when it has come, one of
 * the places in the queue is free, and the rate of requests allows it; then it
 * takes the latency; and then its data pass, behind those of all requests
 * before it.
 *
 * A disk of depth 1 has a head, and the latency is that of a seek: a request
 * that begins where the one before ended takes none, and one that begins a bit
 * further on takes none either, but waits until what lies between has passed.
 *
 * Times are in nanoseconds, places and sizes in bytes.
 */
#ifndef FOLIOLAB_DEVICE_TIME_H
#define FOLIOLAB_DEVICE_TIME_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#define DEVICE_MOST_DEPTH	64
#define DEVICE_SECOND		1000000000ULL
#define DEVICE_MOST_SPEED	18000000000ULL

struct device_profile {
	uint64_t latency;
	uint64_t bytes_per_second;	/* 1 to DEVICE_MOST_SPEED */
	uint64_t requests_per_second;	/* 0: as many as come */
	uint32_t depth;			/* 1 to DEVICE_MOST_DEPTH */
};

struct device_state {
	/*
	 * When the last requests are done, as many as are in work at a time.
	 * They are done in their order, so the oldest is the first to make room.
	 */
	uint64_t done[DEVICE_MOST_DEPTH];
	uint32_t oldest;
	uint64_t allowed;	/* when the next request may begin */
	uint64_t passed;	/* when the data of all before have */
	uint64_t head;		/* the place behind the last request */
};

static inline uint64_t device_later(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* How long so many bytes take to pass. */
static inline uint64_t device_passing(const struct device_profile *profile,
				      uint64_t bytes)
{
	uint64_t seconds = bytes / profile->bytes_per_second;
	uint64_t rest = bytes % profile->bytes_per_second;

	return seconds * DEVICE_SECOND +
	       rest * DEVICE_SECOND / profile->bytes_per_second;
}

/* How long it takes until the head is at a place. */
static inline uint64_t device_seek(const struct device_profile *profile,
				   const struct device_state *state,
				   uint64_t place)
{
	uint64_t passing;

	if (place < state->head)
		return profile->latency;
	passing = device_passing(profile, place - state->head);
	return passing < profile->latency ? passing : profile->latency;
}

/* When a request that comes now is done; it is in work from now on. */
static inline uint64_t device_request(const struct device_profile *profile,
				      struct device_state *state, uint64_t now,
				      uint64_t place, uint64_t bytes)
{
	uint64_t latency = profile->latency, begin, done;
	uint64_t *oldest = &state->done[state->oldest];

	begin = device_later(now, *oldest);
	if (profile->requests_per_second) {
		begin = device_later(begin, state->allowed);
		state->allowed = begin +
				 DEVICE_SECOND / profile->requests_per_second;
	}
	if (profile->depth == 1)
		latency = device_seek(profile, state, place);
	done = device_later(begin + latency, state->passed) +
	       device_passing(profile, bytes);
	*oldest = done;
	if (++state->oldest == profile->depth)
		state->oldest = 0;
	state->passed = done;
	state->head = place + bytes;
	return done;
}

#endif /* FOLIOLAB_DEVICE_TIME_H */
