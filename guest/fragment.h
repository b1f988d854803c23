/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Free memory in small pieces, as machines have it that have been up for long.
 *
 * A page is pinned in each aligned block of memory, so that no block is ever
 * free as a whole: compaction cannot move what is locked, once told not to. To
 * pin takes a page in 16 with pages of 4 KiB, and the rest is as free as
 * before. It lasts as long as the process does.
 */
#ifndef FOLIOLAB_FRAGMENT_H
#define FOLIOLAB_FRAGMENT_H

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "folios.h"

/* Pages of the blocks that are broken up: of 64 KiB, or if that is a page, 2 MiB. */
static inline uint64_t fragment_block(void)
{
	uint64_t page_size = sysconf(_SC_PAGESIZE);

	return (page_size < 64 << 10 ? 64 << 10 : 2 << 20) / page_size;
}

/* The share of the free memory that is in such blocks, or in larger ones. */
static inline double free_in_large_blocks(void)
{
	static const char place[] = "/proc/buddyinfo";
	FILE *stream = fopen(place, "re");
	uint64_t count, all = 0, large = 0;

	if (!stream)
		fail_io(place);
	while (fscanf(stream, " Node %*d, zone %*s") != EOF) {
		for (unsigned int order = 0;
		     fscanf(stream, "%" SCNu64, &count) == 1; order++) {
			all += count << order;
			if (UINT64_C(1) << order >= fragment_block())
				large += count << order;
		}
	}
	fclose(stream);
	return all ? (double)large / all : 0;
}

/* A page that we have: where it is in memory, and in our mapping. */
struct held_page {
	uint64_t pfn, index;
};

static inline int compare_held(const void *a, const void *b)
{
	uint64_t x = ((const struct held_page *)a)->pfn;
	uint64_t y = ((const struct held_page *)b)->pfn;

	return (x > y) - (x < y);
}

/* Where in memory the pages of a mapping are, from the first to the last. */
static inline struct held_page *find_held(const char *map, uint64_t pages)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	struct held_page *held = calloc(pages, sizeof(*held));
	FILE *pagemap = fopen("/proc/self/pagemap", "re");

	if (!held || !pagemap ||
	    fseeko(pagemap, (uintptr_t)map / page_size * 8, SEEK_SET))
		fail_io("/proc/self/pagemap");
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t entry;

		if (fread(&entry, sizeof(entry), 1, pagemap) != 1)
			fail_io("/proc/self/pagemap");
		held[i] = (struct held_page){ entry & PAGEMAP_PFN, i };
	}
	fclose(pagemap);
	qsort(held, pages, sizeof(*held), compare_held);
	return held;
}

/* Choose one page of each block to keep: a byte for each page of the mapping. */
static inline unsigned char *choose_kept(const struct held_page *held,
					 uint64_t pages, uint64_t seed)
{
	unsigned char *kept = calloc(pages, 1);
	uint64_t block = fragment_block();

	if (!kept)
		fail_io("No memory for a map of the free memory");
	for (uint64_t first = 0, end; first < pages; first = end) {
		end = first + 1;
		while (end < pages &&
		       held[end].pfn / block == held[first].pfn / block)
			end++;
		kept[held[first + random_below(&seed, end - first)].index] = 1;
	}
	return kept;
}

/* Break up a share of the free memory. Compaction is left for who calls this. */
static inline void fragment_memory(double share, uint64_t seed)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	struct held_page *held;
	struct sysinfo info;
	unsigned char *kept;
	uint64_t pages;
	char *map;

	sysinfo(&info);
	pages = (double)info.freeram * info.mem_unit / page_size * share;
	map = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		fail_io("No memory to break up");
	/* Fails where there are no huge pages, which is as well. */
	madvise(map, pages * page_size, MADV_NOHUGEPAGE);
	if (madvise(map, pages * page_size, MADV_POPULATE_WRITE))
		fail_io("The free memory cannot be taken");
	held = find_held(map, pages);
	kept = choose_kept(held, pages, seed);
	for (uint64_t first = 0, end; first < pages; first = end) {
		end = first + 1;
		while (end < pages && kept[end] == kept[first])
			end++;
		if (!kept[first] && madvise(map + first * page_size,
					    (end - first) * page_size,
					    MADV_DONTNEED))
			fail_io("Memory cannot be given back");
	}
	free(held);
	free(kept);
	if (mlock2(map, pages * page_size, MLOCK_ONFAULT))
		fail_io("Memory cannot be locked");
}

#endif /* FOLIOLAB_FRAGMENT_H */
