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

#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "folios.h"

/* Gives back what is locked. The C library's headers may not know it yet. */
#define ADVICE_DONTNEED_LOCKED	24

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

/* What is needed while there is no memory left. */
struct fragment {
	size_t page_size;
	char *map;
	uint64_t pages;
	struct held_page *held;
	unsigned char *kept;	/* a byte a page */
};

static inline uint64_t free_pages(size_t page_size)
{
	struct sysinfo info;

	sysinfo(&info);
	return (uint64_t)info.freeram * info.mem_unit / page_size;
}

/* Room for pages that are to be taken from the free memory one by one. */
static inline char *fragment_map(size_t size)
{
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		fail_io("No room for the free memory");
	/* Fails where there are no huge pages, which is as well. */
	madvise(map, size, MADV_NOHUGEPAGE);
	return map;
}

static inline void fragment_fill(char *map, size_t size)
{
	if (madvise(map, size, MADV_POPULATE_WRITE))
		fail_io("The free memory cannot be taken");
}

/* Take free memory, page by page, until only that many are left. */
static inline void take_memory(struct fragment *fragment, uint64_t left)
{
	const uint64_t step = (1 << 20) / fragment->page_size;
	uint64_t limit = fragment->pages;

	fragment->pages = 0;
	while (fragment->pages + step <= limit &&
	       free_pages(fragment->page_size) > left + step) {
		fragment_fill(fragment->map +
			      fragment->pages * fragment->page_size,
			      step * fragment->page_size);
		fragment->pages += step;
	}
}

static inline int compare_held(const void *a, const void *b)
{
	uint64_t x = ((const struct held_page *)a)->pfn;
	uint64_t y = ((const struct held_page *)b)->pfn;

	return (x > y) - (x < y);
}

/* Find out where in memory our pages are, and sort them by that. */
static inline void find_held(struct fragment *fragment)
{
	uint64_t first = (uintptr_t)fragment->map / fragment->page_size;
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (pagemap < 0)
		fail_io("/proc/self/pagemap");
	for (uint64_t i = 0; i < fragment->pages; i++) {
		uint64_t entry;

		if (pread(pagemap, &entry, 8, (first + i) * 8) != 8)
			fail_io("/proc/self/pagemap");
		fragment->held[i] =
			(struct held_page){ entry & PAGEMAP_PFN, i };
	}
	close(pagemap);
	qsort(fragment->held, fragment->pages, sizeof(*fragment->held),
	      compare_held);
}

/* Choose one page of each block to keep. */
static inline void choose_kept(struct fragment *fragment, uint64_t seed)
{
	const struct held_page *held = fragment->held;
	uint64_t block = fragment_block();

	for (uint64_t first = 0, end; first < fragment->pages; first = end) {
		uint64_t keep;

		end = first + 1;
		while (end < fragment->pages &&
		       held[end].pfn / block == held[first].pfn / block)
			end++;
		keep = first + random_below(&seed, end - first);
		fragment->kept[held[keep].index] = 1;
	}
}

static inline void give_back(const struct fragment *fragment)
{
	const unsigned char *kept = fragment->kept;

	for (uint64_t first = 0, end; first < fragment->pages; first = end) {
		end = first + 1;
		while (end < fragment->pages && kept[end] == kept[first])
			end++;
		if (!kept[first] &&
		    madvise(fragment->map + first * fragment->page_size,
			    (end - first) * fragment->page_size,
			    ADVICE_DONTNEED_LOCKED))
			fail_io("Memory cannot be given back");
	}
}

/*
 * Break up a share of the free memory. Who calls this forbids compaction to
 * move locked pages, and the kernel to keep a reserve of more than the rest.
 */
static inline void fragment_memory(double share, uint64_t seed)
{
	struct fragment fragment = { .page_size = sysconf(_SC_PAGESIZE) };
	uint64_t pages = free_pages(fragment.page_size);
	size_t held_bytes = pages * sizeof(*fragment.held);

	fragment.pages = pages;
	fragment.held = (struct held_page *)fragment_map(held_bytes);
	fragment_fill((char *)fragment.held, held_bytes);
	fragment.kept = (unsigned char *)fragment_map(pages);
	fragment_fill((char *)fragment.kept, pages);
	fragment.map = fragment_map(pages * fragment.page_size);
	/* From the first moment: compaction works in the background, too. */
	if (mlock2(fragment.map, pages * fragment.page_size, MLOCK_ONFAULT))
		fail_io("Memory cannot be locked");
	take_memory(&fragment, pages * (1 - share));
	find_held(&fragment);
	choose_kept(&fragment, seed);
	give_back(&fragment);
	munmap(fragment.held, held_bytes);
	munmap(fragment.kept, pages);
}

/*
 * Have a CPU give out the pages that it holds back, those that were freed last
 * and an eighth of the memory at most: they break up blocks as well.
 */
static inline void gather_from(int cpu)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	size_t size = free_pages(page_size) / 4 * page_size;
	char *map = fragment_map(size);
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	fragment_fill(map, size);
	munmap(map, size);
}

/* Put free memory together again, as far as can be with some patience. */
static inline void gather_memory(void)
{
	static const char knob[] = "/proc/sys/vm/compact_memory";
	int fd = open(knob, O_WRONLY | O_CLOEXEC);
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	for (int round = 0; round < 4 && free_in_large_blocks() < 0.9; round++) {
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &before))
				gather_from(cpu);
		if (fd < 0 || write(fd, "1", 1) != 1)
			fail_io(knob);
	}
	sched_setaffinity(0, sizeof(before), &before);
	close(fd);
}

#endif /* FOLIOLAB_FRAGMENT_H */
