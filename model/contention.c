// SPDX-License-Identifier: GPL-2.0-only
/*
 * What threads that share a file pay for its adaptive window: they touch pages of it
 * at random, and decide on each miss under one lock. A benchmark of the policy and
 * of its lock, not of faults.
 *
 * From the top of the repository:
 *
 *	gcc -O2 -pthread -Imodel/shim -o contention \
 *		model/contention.c kernel/files/mm/mmap_readahead_window.c
 *	./contention [-pages=N] [-touches=N] [-between=N]
 *
 * "spin" waits for the lock. "try" reads the missing page alone, and learns nothing,
 * if somebody has it. A fault does more than to decide: -between is how many ns it
 * takes besides. The kernel does not preempt who holds its lock. Here the holder can
 * lose its processor, so that with more threads than these, what is measured is the
 * scheduler.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../guest/random.h"
#include "../kernel/files/mm/mmap_readahead_window.h"

#define MOST_THREADS	64
#define BLOCK_SHIFT	4
/* The file is so many times as large as memory, so that single pages are read. */
#define MEMORIES	32

enum page { ABSENT, CACHED, USED };

enum lock { SPIN, TRY, LOCKS };

static const char *const locks[] = { [SPIN] = "spin", [TRY] = "try" };

static struct {
	uint64_t pages, touches, between;
} env = {
	.pages = 1 << 25,
	.touches = 1 << 20,
};

/* Threads race for pages as those of the kernel do. */
static struct {
	_Atomic uint8_t *pages;
	_Atomic uint64_t cached;
	struct mmap_readahead_state state;
	pthread_spinlock_t lock;
	enum lock kind;
	uint64_t rounds_a_ns;	/* of an empty loop, times 1024 */
	pthread_barrier_t start;
} file;

struct worker {
	pthread_t thread;
	uint64_t seed, touches, misses, unlearnt;
};

static enum mmap_readahead_page look(const void *cache, unsigned long index)
{
	(void)cache;
	if (index >= env.pages || file.pages[index] == ABSENT)
		return MMAP_READAHEAD_ABSENT;
	return file.pages[index] == USED ? MMAP_READAHEAD_USED :
					   MMAP_READAHEAD_CACHED;
}

static unsigned long next_miss(const void *cache, unsigned long index,
			       unsigned long most)
{
	unsigned long end = index + most;

	while (index < end && look(cache, index) != MMAP_READAHEAD_ABSENT)
		index++;
	return index;
}

static void wait_rounds(uint64_t rounds)
{
	while (rounds--)
		__asm__ volatile("");
}

/* False if nobody could be asked. */
static bool decide(struct mmap_readahead_answer *answer, uint64_t index)
{
	struct mmap_readahead_miss miss = {
		.index = index,
		.file_pages = env.pages,
		.cached_pages = file.cached,
		.memory_pages = env.pages / MEMORIES,
		.max_pages = 32,
		.request_pages = 32,
		.block_shift = BLOCK_SHIFT,
		.look = look,
		.next_miss = next_miss,
	};

	if (file.kind == SPIN) {
		pthread_spin_lock(&file.lock);
	} else if (pthread_spin_trylock(&file.lock)) {
		*answer = (struct mmap_readahead_answer) {
			.start = index,
			.size = 1,
		};
		return false;
	}
	if (!mmap_readahead_settled(&file.state, &miss, answer)) {
		miss.page = look(NULL, index);
		mmap_readahead_adapt(&file.state, &miss, answer);
	}
	pthread_spin_unlock(&file.lock);
	return true;
}

/* A fault maps what is cached of the block around it. */
static void map_around(uint64_t index)
{
	uint64_t first = index >> BLOCK_SHIFT << BLOCK_SHIFT;

	for (uint64_t i = first; i < first + (1 << BLOCK_SHIFT); i++)
		if (i < env.pages && file.pages[i] == CACHED)
			file.pages[i] = USED;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t state = worker->seed;

	pthread_barrier_wait(&file.start);
	while (worker->touches--) {
		uint64_t index = random_below(&state, env.pages), added = 0;
		struct mmap_readahead_answer answer;

		if (file.pages[index] == ABSENT) {
			worker->unlearnt += !decide(&answer, index);
			for (uint64_t i = answer.start;
			     i < answer.start + answer.size; i++)
				if (file.pages[i] == ABSENT) {
					file.pages[i] = CACHED;
					added++;
				}
			file.cached += added;
			wait_rounds(env.between * file.rounds_a_ns / 1024);
			worker->misses++;
		}
		map_around(index);
	}
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void measure(enum lock kind, unsigned int threads)
{
	static struct worker workers[MOST_THREADS];
	uint64_t unlearnt = 0, misses = 0;
	double start, seconds;

	memset((void *)file.pages, ABSENT, env.pages);
	memset(&file.state, 0, sizeof(file.state));
	file.cached = 0;
	file.kind = kind;
	pthread_barrier_init(&file.start, NULL, threads + 1);
	for (unsigned int t = 0; t < threads; t++) {
		workers[t] = (struct worker) {
			.seed = t,
			.touches = env.touches / threads,
		};
		if (pthread_create(&workers[t].thread, NULL, work, &workers[t])) {
			fprintf(stderr, "contention: A thread could not be started.\n");
			exit(1);
		}
	}
	start = now();
	pthread_barrier_wait(&file.start);
	for (unsigned int t = 0; t < threads; t++) {
		pthread_join(workers[t].thread, NULL);
		misses += workers[t].misses;
		unlearnt += workers[t].unlearnt;
	}
	seconds = now() - start;
	pthread_barrier_destroy(&file.start);
	printf("%-4s %7u %11.3f %9.2f %12.2f\n", locks[kind], threads,
	       misses / seconds / 1e6, (double)file.cached / misses,
	       100.0 * unlearnt / misses);
}

static void calibrate(void)
{
	const uint64_t rounds = 100000000;
	double start = now();

	wait_rounds(rounds);
	file.rounds_a_ns = rounds / ((now() - start) * 1e9) * 1024;
}

static bool number(const char *argument, const char *option, uint64_t *value)
{
	size_t length = strlen(option);
	char *end;

	if (strncmp(argument, option, length) || !argument[length])
		return false;
	*value = strtoull(argument + length, &end, 10);
	return !*end;
}

int main(int argc, char **argv)
{
	static const unsigned int threads[] = { 1, 2, 4, 16, 64 };

	for (int i = 1; i < argc; i++)
		if (!number(argv[i], "-pages=", &env.pages) &&
		    !number(argv[i], "-touches=", &env.touches) &&
		    !number(argv[i], "-between=", &env.between)) {
			fprintf(stderr, "contention: '%s' is not -pages=N, -touches=N or -between=N.\n",
				argv[i]);
			return 2;
		}
	/* Nothing is evicted here: memory has to hold what is touched. */
	if (env.touches < MOST_THREADS || env.touches > env.pages / MEMORIES) {
		fprintf(stderr, "contention: -touches takes 64 to a 32nd of -pages.\n");
		return 2;
	}
	file.pages = malloc(env.pages);
	if (!file.pages) {
		fprintf(stderr, "contention: No memory for %llu pages.\n",
			(unsigned long long)env.pages);
		return 1;
	}
	pthread_spin_init(&file.lock, PTHREAD_PROCESS_PRIVATE);
	calibrate();
	printf("lock threads million/s  pages/miss  %% unlearnt\n");
	for (enum lock kind = 0; kind < LOCKS; kind++)
		for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
			measure(kind, threads[i]);
	return 0;
}
