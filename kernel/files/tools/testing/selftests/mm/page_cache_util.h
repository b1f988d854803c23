/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tests of the page cache and of page tables share: settings that are put
 * back however the test ends, processes, accesses that may give a signal, random
 * numbers, page table entries, files whose cached pages can be counted and
 * dropped, the sizes of their folios, little memory, and swap.
 */
#ifndef __PAGE_CACHE_UTIL_H
#define __PAGE_CACHE_UTIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

/* What headers of older systems lack. */
#ifndef MADV_COLD
#define MADV_COLD		20
#define MADV_PAGEOUT		21
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

/* Set by page_cache_init(), which comes first. */
extern unsigned long page_bytes;

void page_cache_init(void);

/* Settings */

#define SETTING_BYTES	64
#define PATH_BYTES	192

/* Those of more than one test. */
#define LRU_GEN_FILE		"/sys/kernel/mm/lru_gen/enabled"
#define FAULT_FOLIOS_FILE	"/sys/kernel/mm/lru_gen/fault_folios"
#define ADAPTIVE_FILE		"/sys/kernel/mm/mmap_readahead/adaptive"
#define PTE_AGE_FILE		"/sys/kernel/debug/mmap_readahead/old_prefaulted_ptes"
/* No setting, but what it tells of, and takes commands for. */
#define GENERATIONS_FILE	"/sys/kernel/debug/lru_gen"

/* Both return 0 or -errno. Of "a [b] c", what is read is "b". */
int setting_read(const char *path, char value[SETTING_BYTES]);
int setting_write(const char *path, const char *value);
/* Write one; if that fails, so do all tests. */
void set_setting(const char *path, const char *value);

/* Have run_guarded() put a setting back, if it can be read. */
void guard_setting(const char *path);
/*
 * Run tests in a child; put the settings back when it has ended.
 * Return: the exit status for main().
 */
int run_guarded(void (*run)(void), void (*clean_up)(void));

/* Skip some tests, all for one reason. kselftest.h counts in each file alone. */
#define skip_tests(nr, why) do {					\
	for (unsigned int left_ = (nr); left_; left_--)			\
		ksft_test_result_skip("%s\n", (why));			\
} while (0)

/* The start of a file as a string. Return: its bytes, or -errno. */
ssize_t read_text(const char *path, char *text, size_t size);
/* A line of /proc/vmstat; 0 if there is none of that name. */
unsigned long vm_counter(const char *name);
/* Bits of the kernel's taint that a warning, an oops or a sanitizer sets. */
unsigned long kernel_trouble(void);
/* Whether it has more of them than before, which is printed. */
bool kernel_complained(unsigned long before);

/* Processes */

/*
 * As fork(): the child dies with its parent, and prints nothing that the parent
 * has printed. If it fails, so do all tests.
 */
pid_t fork_helper(void);
/* As pthread_create(); if it fails, so do all tests. */
void start_thread(pthread_t *thread, void *(*run)(void *arg), void *arg);
/* Stay on the current processor, and so will all children. */
void stay_on_cpu(void);
/* On a clock that runs on. */
double seconds_now(void);

/* Memory */

/* Shared with children, and zero. */
void *shared_memory(size_t bytes);
/* Addresses that give no access, for MAP_FIXED. */
char *reserve_addresses(size_t bytes);
/* Have what this processor has collected for the LRU lists go there. */
void drain_lists(void);

/* Have the next two return signals. */
void catch_signals(void);
/*
 * Write or, without @write, read the first word of a page; or call a function.
 * Return: 0, or the signal that it gave, SIGBUS or SIGSEGV.
 */
int access_page(void *addr, const uint64_t *write, uint64_t *read);
int call_function(void (*function)(void));

/* Page table entries, as /proc/self/pagemap has them */

#define PM_PRESENT	0x8000000000000000ULL
#define PM_SOFT_DIRTY	0x0080000000000000ULL
#define PM_FRAME(entry)	((entry) & (PM_SOFT_DIRTY - 1))

/* Both return false if /proc does not tell. Flags are KPF_*. */
bool read_pagemap(const void *start, unsigned long pages, uint64_t *entries);
bool read_page_flags(unsigned long frame, uint64_t *flags);

/* Random numbers, the same ones from the same state */

struct rng {
	uint64_t state;
};

static inline uint64_t random_number(struct rng *rng)
{
	uint64_t number = rng->state += 0x9e3779b97f4a7c15ULL;

	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
	return number ^ (number >> 31);
}

static inline unsigned long random_below(struct rng *rng, unsigned long limit)
{
	return (random_number(rng) >> 16) % limit;
}

static inline bool one_in(struct rng *rng, unsigned long nr)
{
	return !random_below(rng, nr);
}

/* Files in the page cache */

/*
 * A part of an open file, mapped such that blocks of up to 2 MiB are aligned in
 * memory as they are in the file. Pages are those of the file, not of the part.
 */
struct mapping {
	int fd;
	char *reserved;
	size_t reserved_bytes;
	char *start;
	unsigned long first, pages;
};

/* An empty file in the current directory, already unlinked, or -1. */
int make_file(void);
/* An open file of its own, with its own miss counter and readahead state. */
int open_again(int fd);

/*
 * Settings in the bdi directory of a device: have run_guarded() put back one of
 * the device that holds the current directory, and find or set one of that which
 * holds a file, or with AT_FDCWD that directory. Return: false if there is none, or
 * it does not take the number.
 */
void guard_device_setting(const char *name);
bool device_setting_path(int fd, const char *name, char path[PATH_BYTES]);
/* The same in the queue directory of that device. */
bool queue_setting_path(int fd, const char *name, char path[PATH_BYTES]);
bool device_setting_write(int fd, const char *name, unsigned long number);
/* Of the device that holds a file, for files opened from then on. */
bool read_ahead_write(int fd, unsigned long kib);
/* Return: KiB, or negative if there is no such setting. */
long read_ahead_read(int fd);

void map_part(struct mapping *map, int fd, unsigned long first,
	      unsigned long pages, int prot);
void map_file(struct mapping *map, int fd, unsigned long pages);
void unmap(struct mapping *map);
void unmap_and_close(struct mapping *map);

static inline char *page_address(const struct mapping *map, unsigned long page)
{
	return map->start + (page - map->first) * page_bytes;
}

static inline void touch(const struct mapping *map, unsigned long page)
{
	char byte = *page_address(map, page);

	/* The compiler must not leave the read out. */
	asm volatile("" : "+r" (byte));
}

/* Pages in the cache, whether their read has finished or not, or -errno. */
long cachestat_pages(int fd, unsigned long first, unsigned long nr);
/* Pages in the cache, once no page is on its way any more. */
unsigned long cached_pages(const struct mapping *map, unsigned long first,
			   unsigned long nr);
/* Drop a file from the page cache, where nobody may have it mapped. */
bool drop_pages(const struct mapping *map);
/* Open and map a file anew, with no page of it in the cache. */
void map_cold(struct mapping *map, int fd, unsigned long pages);
/* Pages that one fault maps, if all of them are in the cache. */
unsigned long measure_fault_around(int fd, unsigned long pages);

/* Folio sizes */

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage"
#define MAX_ORDER_NR	24

/* What a PMD maps; 0 if there are no huge pages. */
unsigned long pmd_bytes(void);
/* A file of a folio size below THP_DIR. */
void folio_size_path(char path[PATH_BYTES], unsigned long bytes,
		     const char *name);

/* In the order of the kernel's file. */
enum file_use { USE_NEVER, USE_ALWAYS, USE_EXEC, USE_ALWAYS_EXEC, NR_USES };

extern const char * const use_names[NR_USES];

/* Those with a file_enabled, from the smallest on; page_cache_init() does it. */
struct folio_size {
	unsigned long bytes;
	unsigned int order;
};

extern struct folio_size folio_sizes[MAX_ORDER_NR];
extern unsigned int nr_folio_sizes;

const struct folio_size *folio_size_of(unsigned long bytes);
void guard_folio_sizes(void);
int folio_size_write(const struct folio_size *size, const char *text);
/* Return: enum file_use, or -errno. */
int folio_size_use(const struct folio_size *size);
void set_folio_size(const struct folio_size *size, enum file_use use);
void set_all_folio_sizes(enum file_use use);
unsigned long folio_size_stat(const struct folio_size *size, const char *name);

/*
 * Whether readahead makes large folios for a file, which is resized for that.
 * The device's readahead is widened if it would be too narrow.
 */
bool has_large_folios(int fd);

/*
 * A control group for processes that are to have little memory; to be removed
 * when they have ended. Return: false if there can be none.
 */
bool memory_cgroup_make(unsigned long max_bytes);
void memory_cgroup_remove(void);
/* What the kernel calls it. */
#define MEMORY_CGROUP	"/page_cache_selftest"
/* Move the calling process there, and to the root. */
bool memory_cgroup_join(void);
bool memory_cgroup_leave(void);
/* To one of its files. Return: 0 or -errno. */
int memory_cgroup_write(const char *file, const char *value);
/* Return: a line of its memory.stat, or -1 if there is none of that name. */
long memory_cgroup_stat(const char *name);
/* The same of its memory.events. */
long memory_cgroup_events(const char *name);
/*
 * Touch a page of a mapping in such a process.
 * Return: whether the page starts with a value, unless there was too little
 * memory even for the process.
 */
bool memory_cgroup_touch(const struct mapping *map, unsigned long page,
			 uint64_t value);

/*
 * Count the folios that hold a range of cached pages, by order.
 * Return: false if the kernel does not tell.
 */
bool count_folios(int fd, unsigned long first, unsigned long nr,
		  unsigned long counts[MAX_ORDER_NR]);

/* Swap */

/* A swap file in the current directory. stop_swap() is for run_guarded(). */
void guard_swap(void);
bool start_swap(unsigned long bytes);
void stop_swap(void);

#endif /* __PAGE_CACHE_UTIL_H */
