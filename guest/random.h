/* SPDX-License-Identifier: GPL-2.0-only */
/* Random numbers that are the same on every machine. */
#ifndef FOLIOLAB_RANDOM_H
#define FOLIOLAB_RANDOM_H

#include <stdint.h>

/* Splitmix64: the whole state is one number, and every seed is good. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A random number below a limit, without the bias of a plain remainder. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	uint64_t excess = -limit % limit, value;

	do {
		value = next_random(state);
	} while (value < excess);
	return value % limit;
}

#endif /* FOLIOLAB_RANDOM_H */
