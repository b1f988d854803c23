// SPDX-License-Identifier: GPL-2.0-only
/* What tests of the page cache share. See page_cache_util.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/kernel-page-flags.h>

#include "../kselftest.h"
#include "page_cache_util.h"

#ifndef __NR_cachestat
#define __NR_cachestat	451
#endif

#define CGROUP_DIR	"/sys/fs/cgroup"
#define OUR_CGROUP	"/sys/fs/cgroup" MEMORY_CGROUP
#define MAX_SETTINGS	(2 * MAX_ORDER_NR)

unsigned long page_bytes;

const char * const use_names[NR_USES] = {
	[USE_NEVER] = "never",
	[USE_ALWAYS] = "always",
	[USE_EXEC] = "exec",
	[USE_ALWAYS_EXEC] = "always+exec",
};

struct folio_size folio_sizes[MAX_ORDER_NR];
unsigned int nr_folio_sizes;

/* Settings */

static struct {
	char path[PATH_BYTES];
	char value[SETTING_BYTES];
} guarded[MAX_SETTINGS];

static unsigned int nr_guarded;

ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t bytes;

	if (fd < 0)
		return -errno;
	bytes = read(fd, text, size - 1);
	if (bytes < 0)
		bytes = -errno;
	close(fd);
	if (bytes >= 0)
		text[bytes] = '\0';
	return bytes;
}

int setting_read(const char *path, char value[SETTING_BYTES])
{
	char text[256], *start, *end;
	ssize_t bytes = read_text(path, text, sizeof(text));

	if (bytes < 0)
		return bytes;
	start = strchr(text, '[');
	start = start ? start + 1 : text;
	end = start + strcspn(start, "]\n");
	if (end - start >= SETTING_BYTES)
		return -EPROTO;
	memcpy(value, start, end - start);
	value[end - start] = '\0';
	return 0;
}

int setting_write(const char *path, const char *value)
{
	int err = 0, fd = open(path, O_WRONLY);

	if (fd < 0)
		return -errno;
	if (write(fd, value, strlen(value)) < 0)
		err = -errno;
	close(fd);
	return err;
}

void set_setting(const char *path, const char *value)
{
	int err = setting_write(path, value);

	if (err)
		ksft_exit_fail_msg("%s does not take '%s': %s\n", path, value,
				   strerror(-err));
}

void guard_setting(const char *path)
{
	if (nr_guarded == MAX_SETTINGS)
		ksft_exit_fail_msg("too many settings\n");
	if (setting_read(path, guarded[nr_guarded].value))
		return;
	snprintf(guarded[nr_guarded].path, sizeof(guarded[0].path), "%s", path);
	nr_guarded++;
}

/* Giving exec to a size takes it from another, so that comes last. */
static bool put_settings_back(void)
{
	char value[SETTING_BYTES];
	bool restored = true;
	unsigned int i, last;

	for (last = 0; last < 2; last++)
		for (i = 0; i < nr_guarded; i++)
			if (!!strstr(guarded[i].value, "exec") == last)
				setting_write(guarded[i].path,
					      guarded[i].value);
	for (i = 0; i < nr_guarded; i++) {
		if (!setting_read(guarded[i].path, value) &&
		    !strcmp(value, guarded[i].value))
			continue;
		ksft_print_msg("%s could not be put back\n", guarded[i].path);
		restored = false;
	}
	return restored;
}

static pid_t child;

static void stop_child(int sig)
{
	kill(child, sig);
}

int run_guarded(void (*run)(void), void (*clean_up)(void))
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	struct sigaction action = { .sa_handler = stop_child };
	sigset_t blocked, before;
	siginfo_t info;
	unsigned int i;
	bool restored;
	int status;

	sigemptyset(&blocked);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	child = fork();
	if (child < 0)
		ksft_exit_fail_perror("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		run();
		_exit(KSFT_FAIL);
	}
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* Keep the child's number taken until no signal can ask for it. */
	while (waitid(P_PID, child, &info, WEXITED | WNOWAIT) < 0 &&
	       errno == EINTR)
		;
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	waitpid(child, &status, 0);

	if (clean_up)
		clean_up();
	restored = put_settings_back();
	if (WIFSIGNALED(status))
		printf("Bail out! killed by signal %d\n", WTERMSIG(status));
	if (!WIFEXITED(status) || !restored)
		return KSFT_FAIL;
	return WEXITSTATUS(status);
}

/* A line of a file that has names and numbers, or -1. */
static long counter_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	long value, found = -1;
	char word[64];

	while (file && found < 0 &&
	       fscanf(file, "%63s %ld", word, &value) == 2)
		if (!strcmp(word, name))
			found = value;
	if (file)
		fclose(file);
	return found;
}

unsigned long vm_counter(const char *name)
{
	long value = counter_in("/proc/vmstat", name);

	return value < 0 ? 0 : value;
}

unsigned long kernel_trouble(void)
{
	const unsigned long bad_page = 1 << 5, died = 1 << 7, warned = 1 << 9;
	const unsigned long lockup = 1 << 14;
	char text[32];

	if (read_text("/proc/sys/kernel/tainted", text, sizeof(text)) < 0)
		return 0;
	return strtoul(text, NULL, 10) & (bad_page | died | warned | lockup);
}

bool kernel_complained(unsigned long before)
{
	if (!(kernel_trouble() & ~before))
		return false;
	ksft_print_msg("the kernel complained: see its log\n");
	return true;
}

/* Processes */

pid_t fork_helper(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		ksft_exit_fail_perror("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void start_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	int err = pthread_create(thread, NULL, run, arg);

	if (err)
		ksft_exit_fail_msg("no thread: %s\n", strerror(err));
}

void stay_on_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		ksft_exit_fail_perror("sched_setaffinity");
}

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Memory */

void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		ksft_exit_fail_perror("mmap of shared memory");
	return memory;
}

char *reserve_addresses(size_t bytes)
{
	char *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			   MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		ksft_exit_fail_perror("mmap of an address range");
	return start;
}

/* Whatever advice this is, it puts an end to all that waits for its list. */
void drain_lists(void)
{
	static char *page;

	if (!page)
		page = reserve_addresses(page_bytes);
	if (madvise(page, page_bytes, MADV_COLD))
		ksft_exit_fail_perror("MADV_COLD");
}

/* Where a signal goes back to, while there is such a place. */
static __thread sigjmp_buf no_access;
static __thread bool catching;

static void set_catching(bool on)
{
	__atomic_store_n(&catching, on, __ATOMIC_SEQ_CST);
}

static void on_no_access(int sig)
{
	if (__atomic_load_n(&catching, __ATOMIC_SEQ_CST))
		siglongjmp(no_access, sig);
	/* No access of a test's: let it happen again, and end the process. */
	signal(sig, SIG_DFL);
}

void catch_signals(void)
{
	struct sigaction action = {
		.sa_handler = on_no_access,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

int access_page(void *addr, const uint64_t *write, uint64_t *read)
{
	int sig = sigsetjmp(no_access, 0);

	set_catching(!sig);
	if (sig)
		return sig;
	if (write)
		__atomic_store_n((uint64_t *)addr, *write, __ATOMIC_SEQ_CST);
	else
		*read = __atomic_load_n((uint64_t *)addr, __ATOMIC_SEQ_CST);
	set_catching(false);
	return 0;
}

int call_function(void (*function)(void))
{
	int sig = sigsetjmp(no_access, 0);

	set_catching(!sig);
	if (sig)
		return sig;
	function();
	set_catching(false);
	return 0;
}

/* Page table entries */

static bool read_number(int fd, unsigned long nr, uint64_t *number)
{
	return pread(fd, number, sizeof(*number), nr * sizeof(*number)) ==
	       sizeof(*number);
}

/* Opened each time: it is about the process that opens it. */
bool read_pagemap(const void *start, unsigned long pages, uint64_t *entries)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = pages * sizeof(*entries);
	bool told;

	told = pread(fd, entries, bytes, (uintptr_t)start / page_bytes *
		     sizeof(*entries)) == bytes;
	close(fd);
	return told;
}

bool read_page_flags(unsigned long frame, uint64_t *flags)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	return read_number(fd, frame, flags);
}

/* Files in the page cache */

int make_file(void)
{
	char path[] = "page_cache_test_XXXXXX";
	int fd = mkstemp(path);

	if (fd >= 0)
		unlink(path);
	return fd;
}

int open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		ksft_exit_fail_perror("open of the test file");
	return fd;
}

/* First of @places, formats of a device's numbers and @name, that is there for @fd's. */
static bool find_setting(int fd, const char * const places[], unsigned int nr,
			 const char *name, char path[PATH_BYTES])
{
	struct stat st;
	unsigned int i;

	if (fstatat(fd, "", &st, AT_EMPTY_PATH))
		return false;
	for (i = 0; i < nr; i++) {
		snprintf(path, PATH_BYTES, places[i], major(st.st_dev),
			 minor(st.st_dev), name);
		if (!access(path, R_OK))
			return true;
	}
	return false;
}

bool device_setting_path(int fd, const char *name, char path[PATH_BYTES])
{
	static const char * const places[] = {
		"/sys/dev/block/%u:%u/bdi/%s",
		/* a partition's is its disk's */
		"/sys/dev/block/%u:%u/../bdi/%s",
		"/sys/class/bdi/%u:%u/%s",
	};

	return find_setting(fd, places, ARRAY_SIZE(places), name, path);
}

bool queue_setting_path(int fd, const char *name, char path[PATH_BYTES])
{
	static const char * const places[] = {
		"/sys/dev/block/%u:%u/queue/%s",
		"/sys/dev/block/%u:%u/../queue/%s",
	};

	return find_setting(fd, places, ARRAY_SIZE(places), name, path);
}

void guard_device_setting(const char *name)
{
	char path[PATH_BYTES];

	if (device_setting_path(AT_FDCWD, name, path))
		guard_setting(path);
}

bool device_setting_write(int fd, const char *name, unsigned long number)
{
	char path[PATH_BYTES], value[32];

	snprintf(value, sizeof(value), "%lu", number);
	return device_setting_path(fd, name, path) &&
	       !setting_write(path, value);
}

bool read_ahead_write(int fd, unsigned long kib)
{
	return device_setting_write(fd, "read_ahead_kb", kib);
}

long read_ahead_read(int fd)
{
	char path[PATH_BYTES], value[SETTING_BYTES];

	if (!device_setting_path(fd, "read_ahead_kb", path) ||
	    setting_read(path, value))
		return -1;
	return strtol(value, NULL, 10);
}

void map_part(struct mapping *map, int fd, unsigned long first,
	      unsigned long pages, int prot)
{
	const size_t align = 2UL << 20;
	size_t within = first * page_bytes % align;

	map->fd = fd;
	map->first = first;
	map->pages = pages;
	map->reserved_bytes = pages * page_bytes + 2 * align;
	map->reserved = reserve_addresses(map->reserved_bytes);
	map->start = (char *)(((unsigned long)map->reserved + align - 1) &
			      ~(align - 1)) + within;
	if (mmap(map->start, pages * page_bytes, prot, MAP_SHARED | MAP_FIXED,
		 fd, first * page_bytes) == MAP_FAILED)
		ksft_exit_fail_perror("mmap of the test file");
}

void map_file(struct mapping *map, int fd, unsigned long pages)
{
	map_part(map, fd, 0, pages, PROT_READ);
}

void unmap(struct mapping *map)
{
	munmap(map->reserved, map->reserved_bytes);
}

void unmap_and_close(struct mapping *map)
{
	unmap(map);
	close(map->fd);
}

static unsigned long mincore_pages(const struct mapping *map,
				   unsigned long first, unsigned long nr)
{
	unsigned char *resident = malloc(nr);
	unsigned long i, count = 0;

	if (!resident ||
	    mincore(page_address(map, first), nr * page_bytes, resident))
		ksft_exit_fail_perror("mincore");
	for (i = 0; i < nr; i++)
		count += resident[i] & 1;
	free(resident);
	return count;
}

long cachestat_pages(int fd, unsigned long first, unsigned long nr)
{
	struct {
		unsigned long long offset, length;
	} range = { first * page_bytes, nr * page_bytes };
	struct {
		unsigned long long cached, dirty, writeback, evicted, recent;
	} counts;

	if (syscall(__NR_cachestat, fd, &range, &counts, 0))
		return -errno;
	return counts.cached;
}

/*
 * A fault waits for its own page only; mincore() counts the others of its
 * window as their reads finish. Wait until no page is on its way.
 */
unsigned long cached_pages(const struct mapping *map, unsigned long first,
			   unsigned long nr)
{
	long count;
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		count = mincore_pages(map, first, nr);
		if (count == cachestat_pages(map->fd, first, nr))
			return count;
		usleep(1000);
	}
	ksft_exit_fail_msg("pages still under way after 10 seconds\n");
}

/* What is still being read cannot be dropped, and mincore() does not count it. */
bool drop_pages(const struct mapping *map)
{
	long left = 1;
	int tries;

	for (tries = 0; tries < 1000 && left > 0; tries++) {
		if (tries)
			usleep(10000);
		posix_fadvise(map->fd, 0, 0, POSIX_FADV_DONTNEED);
		left = cachestat_pages(map->fd, map->first, map->pages);
	}
	return !left;
}

void map_cold(struct mapping *map, int fd, unsigned long pages)
{
	map_file(map, open_again(fd), pages);
	if (!drop_pages(map))
		ksft_exit_fail_msg("pages of the test file stay in the cache\n");
}

unsigned long measure_fault_around(int fd, unsigned long pages)
{
	unsigned long page, nr = 64;
	struct rusage before, after;
	struct mapping map;
	char byte;

	map_cold(&map, fd, pages);
	/* Random reads leave no readahead mark, which stops fault-around. */
	posix_fadvise(map.fd, 0, 0, POSIX_FADV_RANDOM);
	for (page = 0; page < nr; page++)
		if (pread(map.fd, &byte, 1, page * page_bytes) != 1)
			ksft_exit_fail_perror("read of the test file");
	touch(&map, 0);
	for (page = 1; page < nr; page++) {
		getrusage(RUSAGE_SELF, &before);
		touch(&map, page);
		getrusage(RUSAGE_SELF, &after);
		if (after.ru_minflt != before.ru_minflt)
			break;
	}
	unmap_and_close(&map);
	return page;
}

/* Folio sizes */

unsigned long pmd_bytes(void)
{
	char value[SETTING_BYTES];

	if (setting_read(THP_DIR "/hpage_pmd_size", value))
		return 0;
	return strtoul(value, NULL, 10);
}

void folio_size_path(char path[PATH_BYTES], unsigned long bytes,
		     const char *name)
{
	snprintf(path, PATH_BYTES, THP_DIR "/hugepages-%lukB/%s", bytes >> 10,
		 name);
}

void page_cache_init(void)
{
	unsigned int order;
	char path[PATH_BYTES];

	page_bytes = sysconf(_SC_PAGESIZE);
	for (order = 1; order < MAX_ORDER_NR; order++) {
		unsigned long bytes = page_bytes << order;

		folio_size_path(path, bytes, "file_enabled");
		if (access(path, R_OK))
			continue;
		folio_sizes[nr_folio_sizes++] = (struct folio_size) {
			.bytes = bytes,
			.order = order,
		};
	}
}

const struct folio_size *folio_size_of(unsigned long bytes)
{
	unsigned int i;

	for (i = 0; i < nr_folio_sizes; i++)
		if (folio_sizes[i].bytes == bytes)
			return &folio_sizes[i];
	return NULL;
}

void guard_folio_sizes(void)
{
	char path[PATH_BYTES];
	unsigned int i;

	for (i = 0; i < nr_folio_sizes; i++) {
		folio_size_path(path, folio_sizes[i].bytes, "file_enabled");
		guard_setting(path);
	}
}

int folio_size_write(const struct folio_size *size, const char *text)
{
	char path[PATH_BYTES];

	folio_size_path(path, size->bytes, "file_enabled");
	return setting_write(path, text);
}

int folio_size_use(const struct folio_size *size)
{
	char path[PATH_BYTES], value[SETTING_BYTES];
	int use, err;

	folio_size_path(path, size->bytes, "file_enabled");
	err = setting_read(path, value);
	if (err)
		return err;
	for (use = 0; use < NR_USES; use++)
		if (!strcmp(value, use_names[use]))
			return use;
	return -EPROTO;
}

void set_folio_size(const struct folio_size *size, enum file_use use)
{
	if (folio_size_write(size, use_names[use]))
		ksft_exit_fail_msg("cannot set the use of %lu kB folios\n",
				   size->bytes >> 10);
}

void set_all_folio_sizes(enum file_use use)
{
	unsigned int i;

	for (i = 0; i < nr_folio_sizes; i++)
		set_folio_size(&folio_sizes[i], use);
}

unsigned long folio_size_stat(const struct folio_size *size, const char *name)
{
	char file[64], path[PATH_BYTES], text[32];

	snprintf(file, sizeof(file), "stats/%s", name);
	folio_size_path(path, size->bytes, file);
	if (read_text(path, text, sizeof(text)) < 0)
		ksft_exit_fail_perror(path);
	return strtoul(text, NULL, 10);
}

static unsigned long large_folios_made(void)
{
	unsigned long made = 0;
	unsigned int i;

	for (i = 0; i < nr_folio_sizes; i++)
		made += folio_size_stat(&folio_sizes[i], "file_alloc");
	return made;
}

bool has_large_folios(int fd)
{
	unsigned long before, chunk, bytes = 4UL << 20;
	unsigned long window_kib = 32 * page_bytes >> 10;
	char *data = malloc(bytes / 64);
	struct mapping map;

	if (!data || ftruncate(fd, bytes))
		ksft_exit_fail_perror("resize of the test file");
	/* Windows of less than four pages have no large folios. */
	if (read_ahead_read(fd) < (long)window_kib)
		read_ahead_write(fd, window_kib);
	set_all_folio_sizes(USE_ALWAYS);
	fd = open_again(fd);
	map_file(&map, fd, bytes / page_bytes);
	drop_pages(&map);
	before = large_folios_made();
	for (chunk = 0; chunk < 64; chunk++)
		if (read(fd, data, bytes / 64) < 0)
			ksft_exit_fail_perror("read of the test file");
	unmap_and_close(&map);
	free(data);
	return large_folios_made() != before;
}

/* Little memory */

bool memory_cgroup_make(unsigned long max_bytes)
{
	char max[32];

	setting_write(CGROUP_DIR "/cgroup.subtree_control", "+memory");
	snprintf(max, sizeof(max), "%lu", max_bytes);
	if (mkdir(OUR_CGROUP, 0700))
		return false;
	if (!setting_write(OUR_CGROUP "/memory.max", max))
		return true;
	rmdir(OUR_CGROUP);
	return false;
}

void memory_cgroup_remove(void)
{
	rmdir(OUR_CGROUP);
}

bool memory_cgroup_join(void)
{
	/* 0 is who writes. */
	return !setting_write(OUR_CGROUP "/cgroup.procs", "0");
}

bool memory_cgroup_leave(void)
{
	return !setting_write(CGROUP_DIR "/cgroup.procs", "0");
}

int memory_cgroup_write(const char *file, const char *value)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), OUR_CGROUP "/%s", file);
	return setting_write(path, value);
}

long memory_cgroup_stat(const char *name)
{
	return counter_in(OUR_CGROUP "/memory.stat", name);
}

long memory_cgroup_events(const char *name)
{
	return counter_in(OUR_CGROUP "/memory.events", name);
}

bool memory_cgroup_touch(const struct mapping *map, unsigned long page,
			 uint64_t value)
{
	pid_t pid = fork_helper();
	int status;

	if (!pid) {
		if (!memory_cgroup_join())
			_exit(1);
		_exit(*(uint64_t *)page_address(map, page) == value ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	if (!status)
		return true;
	ksft_print_msg("with little memory, the child ended with %#x\n",
		       status);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Order of the folio that starts with a page frame, or -1. */
static int order_of_folio(unsigned long frame)
{
	unsigned long pages = 1;
	uint64_t flags;

	if (!read_page_flags(frame, &flags) || flags & 1ULL << KPF_COMPOUND_TAIL)
		return -1;
	if (flags & 1ULL << KPF_COMPOUND_HEAD)
		while (read_page_flags(frame + pages, &flags) &&
		       flags & 1ULL << KPF_COMPOUND_TAIL)
			pages++;
	return ffsl(pages) - 1;
}

static bool count_mapped_folios(const struct mapping *map,
				unsigned long counts[MAX_ORDER_NR])
{
	unsigned long page = map->first;

	while (page < map->first + map->pages) {
		uint64_t entry;
		int order;

		if (!read_pagemap(page_address(map, page), 1, &entry) ||
		    !(entry & PM_PRESENT))
			return false;
		order = order_of_folio(PM_FRAME(entry));
		if (order < 0 || order >= MAX_ORDER_NR || page % (1UL << order))
			return false;
		counts[order]++;
		page += 1UL << order;
	}
	return true;
}

bool count_folios(int fd, unsigned long first, unsigned long nr,
		  unsigned long counts[MAX_ORDER_NR])
{
	struct mapping map;
	bool told;

	memset(counts, 0, MAX_ORDER_NR * sizeof(*counts));
	map_part(&map, open_again(fd), first, nr, PROT_READ);
	/* So that faults on pages with the readahead mark read no more. */
	madvise(map.start, nr * page_bytes, MADV_RANDOM);
	told = !madvise(map.start, nr * page_bytes, MADV_POPULATE_READ) &&
	       count_mapped_folios(&map, counts);
	unmap_and_close(&map);
	return told;
}

/* Swap */

static char swap_file[48], rotational[PATH_BYTES];

void guard_swap(void)
{
	snprintf(swap_file, sizeof(swap_file), "page_cache_test_%d.swap",
		 getpid());
	if (queue_setting_path(AT_FDCWD, "rotational", rotational))
		guard_setting(rotational);
	else
		rotational[0] = '\0';
}

bool start_swap(unsigned long bytes)
{
	struct {
		char boot[1024];
		uint32_t version, last_page, nr_bad;
	} header = { .version = 1, .last_page = bytes / page_bytes - 1 };
	bool ok;
	int fd;

	fd = open(swap_file, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return false;
	/* To a disk that does not rotate, folios are written in one piece. */
	if (rotational[0])
		setting_write(rotational, "0");
	ok = !posix_fallocate(fd, 0, bytes) &&
	     pwrite(fd, &header, sizeof(header), 0) == sizeof(header) &&
	     pwrite(fd, "SWAPSPACE2", 10, page_bytes - 10) == 10 &&
	     !fsync(fd) && !swapon(swap_file, 0);
	close(fd);
	return ok;
}

void stop_swap(void)
{
	if (access(swap_file, F_OK))
		return;
	/* It fails where swapon() has failed. */
	swapoff(swap_file);
	unlink(swap_file);
}
