// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map a file, touch its pages in an order, and tell in which folios they are
 * then, and what that cost; or what it costs to touch them once more through
 * another mapping, when all that was read is in memory.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"data-folios"
#include "folios.h"
#include "json.h"
#include "options.h"
#include "random.h"

#define BLOCK_BYTES	16384
#define LARGE_BYTES	65536

enum order {
	FORWARD,
	REVERSE,
	DENSE,
	BLOCKS,
};

static const char *const orders[] = { "forward", "reverse", "dense", "blocks", NULL };
static const char *const order_helps[] = {
	[FORWARD] = "page by page",
	[REVERSE] = "page by page backward, from the last one",
	[DENSE] = "all pages at random",
	[BLOCKS] = "every other block of 16 KiB, or of a page, at random",
};

enum pass {
	FIRST,
	SECOND,
};

static const char *const passes[] = { "first", "second", NULL };

static struct env {
	const char *file;
	unsigned int order;
	unsigned int pass;
	uint64_t seed;
	bool drop_caches;
} env = {
	.seed = 1,
};

static struct {
	const volatile char *map;
	uint64_t pages;		/* of the file */
	uint64_t *touches;	/* the pages to touch, in order */
	uint64_t count;
	size_t page_size;
} work;

static struct probe_option options[] = {
	{ "file", "PATH", "the file to map", .text = &env.file, .needed = true },
	{ "order", "ORDER", "of the pages:", .choice = &env.order,
	  .names = orders, .whats = order_helps },
	{ "pass", "PASS", "which is measured: first (default), or second",
	  .choice = &env.pass, .names = passes },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--file PATH [OPTION]...\n"
"Map PATH, touch pages of it, and print as one line of JSON in which folios they\n"
"are. Needs root.\n",
	.options = options,
};

static void map_file(int fd)
{
	work.map = mmap(NULL, work.pages * work.page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (work.map == MAP_FAILED)
		fail_io(env.file);
}

static void swap_touches(uint64_t one, uint64_t other)
{
	uint64_t page = work.touches[one];

	work.touches[one] = work.touches[other];
	work.touches[other] = page;
}

/* Work out the first page of each block, in order, and then all pages of it. */
static void plan(void)
{
	uint64_t block = env.order == BLOCKS && work.page_size < BLOCK_BYTES ?
			 BLOCK_BYTES / work.page_size : 1;
	uint64_t step = env.order == BLOCKS ? 2 * block : block;
	uint64_t blocks = work.pages / step, state = env.seed;

	if (!blocks)
		fail(1, "%s is too small.", env.file);
	work.count = blocks * block;
	work.touches = calloc(work.count, sizeof(*work.touches));
	if (!work.touches)
		fail(1, "No memory for %" PRIu64 " touches.", work.count);
	for (uint64_t i = 0; i < blocks; i++)
		work.touches[i] = step * (env.order == REVERSE ? blocks - 1 - i : i);
	if (env.order == DENSE || env.order == BLOCKS)
		for (uint64_t i = blocks; i > 1; i--)
			swap_touches(i - 1, random_below(&state, i));
	/* From the last one on, as each block gives way to its pages. */
	for (uint64_t i = blocks; i-- > 0;)
		for (uint64_t page = block; page-- > 0;)
			work.touches[i * block + page] = work.touches[i] + page;
}

static void touch(uint64_t thread)
{
	for (uint64_t i = 0; i < work.count; i++)
		(void)work.map[work.touches[i] * work.page_size];
	(void)thread;
}

/* Return: pages of the file that are in memory. */
static uint64_t cached_pages(void)
{
	unsigned char *in_memory = malloc(work.pages);
	uint64_t cached = 0;

	if (!in_memory ||
	    mincore((void *)work.map, work.pages * work.page_size, in_memory))
		fail_io("mincore");
	for (uint64_t i = 0; i < work.pages; i++)
		cached += in_memory[i] & 1;
	free(in_memory);
	return cached;
}

/* In which folios the map is; to be asked before anything is printed. */
static const struct folios *count_folios(void)
{
	static struct folios folios;
	enum folios_status status = folios_init(&folios);

	folios.start = (uintptr_t)work.map;
	folios.end = folios.start + work.pages * work.page_size;
	if (!status)
		status = folios_add(&folios, getpid());
	if (status)
		fail(1, "%s", folios_sentence(status));
	return &folios;
}

static void print_folios(const struct folios *folios)
{
	uint64_t large = 0;

	for (unsigned int order = 0; order < FOLIO_ORDERS; order++)
		if (folios->page_size << order >= LARGE_BYTES)
			large += folios->aligned[order] + folios->unaligned[order];
	print_count("mapped_bytes", true, folios->mapped * folios->page_size);
	printf(", \"large_folio_share\": %.6f, \"contpte_share\": %.6f",
	       (double)large / folios->mapped,
	       (double)folios->blocks[0] / folios->mapped);
}

static void print_result(const struct counters *before,
			 const struct counters *after)
{
	const struct folios *folios = count_folios();
	uint64_t cached = cached_pages();

	printf("{\"probe\": \"" PROBE "\", \"order\": \"%s\", \"pass\": \"%s\"",
	       orders[env.order], passes[env.pass]);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("file_bytes", true, work.pages * work.page_size);
	print_reads(before, after);
	print_count("faults", true,
		    after->usage.ru_majflt - before->usage.ru_majflt +
		    after->usage.ru_minflt - before->usage.ru_minflt);
	printf(", \"cpu_seconds\": %.6f, \"seconds\": %.9f",
	       cpu_seconds(&after->usage) - cpu_seconds(&before->usage),
	       seconds_between(before, after));
	print_count("floor_bytes", true,
		    env.pass == FIRST ? work.count * work.page_size : 0);
	print_count("cached_bytes", true, cached * work.page_size);
	print_folios(folios);
	printf("}\n");
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;
	struct stat stat;
	int fd;

	parse_options(argc, argv, &usage);
	work.page_size = sysconf(_SC_PAGESIZE);
	forget_caches(env.file, env.drop_caches);
	fd = open(env.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	work.pages = stat.st_size / work.page_size;
	plan();
	map_file(fd);
	if (env.pass == SECOND) {
		touch(0);
		munmap((void *)work.map, work.pages * work.page_size);
		map_file(fd);
	}
	measure(1, touch, stat.st_dev, &before, &after);
	print_result(&before, &after);
	return 0;
}
