// SPDX-License-Identifier: GPL-2.0-only
/*
 * Touches of pages of mapped files, as /sys/kernel/debug/page_touch/ has the
 * kernel record them: what is seen, what is left alone, and that the kernel
 * survives what else can happen to those pages at the same time.
 *
 * Run it as root, in a directory of any file system on a disk:
 *
 *	./page_touch
 *
 * The tests run in a child. Its parent puts all settings back, however the
 * child ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"
#include "page_cache_util.h"

#define KNOB_DIR	"/sys/kernel/debug/page_touch"
#define WINDOW_FILE	KNOB_DIR "/window"
#define DEVICE_FILE	KNOB_DIR "/device"
#define INSTANCE_DIR	"/sys/kernel/tracing/instances/page_touch_selftest"
#define EVENT_FILE	INSTANCE_DIR "/events/page_touch/page_touch/enable"

/* The least that the kernel takes. */
#define WINDOW		8
#define FILE_PAGES	256UL
#define MAX_TOUCHES	2048
#define RACE_SECONDS	3
#define RACE_THREADS	4

static int file_fd;
static unsigned long file_ino;
static unsigned long touched[MAX_TOUCHES];

/* The compiler must neither leave a touch out nor move it. */
static void read_page(const char *map, unsigned long page)
{
	char byte = map[page * page_bytes];

	asm volatile("" : "+r" (byte) :: "memory");
}

static void write_page(char *map, unsigned long page, char byte)
{
	map[page * page_bytes] = byte;
	asm volatile("" ::: "memory");
}

static char *map_pages(int fd, int prot, int flags)
{
	char *map = mmap(NULL, FILE_PAGES * page_bytes, prot, flags, fd, 0);

	if (map == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	return map;
}

static void clean_up(void)
{
	rmdir(INSTANCE_DIR);
}

static void start(void)
{
	char number[16];

	set_setting(WINDOW_FILE, "0");
	/* Truncated, it is empty. */
	close(open(INSTANCE_DIR "/trace", O_WRONLY | O_TRUNC));
	snprintf(number, sizeof(number), "%d", WINDOW);
	set_setting(WINDOW_FILE, number);
}

/*
 * The pages of the file that were touched since start(), into touched.
 * Return: their number, or -1 if the events' numbers have gaps.
 */
static long stop(void)
{
	unsigned long ino, index, nr = 0;
	unsigned long long seq, sum = 0, events = 0;
	char line[512];
	FILE *trace;

	set_setting(WINDOW_FILE, "0");
	trace = fopen(INSTANCE_DIR "/trace", "r");
	if (!trace)
		ksft_exit_fail_msg("the trace cannot be read\n");
	while (fgets(line, sizeof(line), trace)) {
		const char *event = strstr(line, " ino=");

		if (!event ||
		    sscanf(event, " ino=%lu generation=%*u index=%lu seq=%llu",
			   &ino, &index, &seq) != 3)
			continue;
		sum += seq;
		events++;
		if (ino == file_ino && nr < MAX_TOUCHES)
			touched[nr++] = index;
	}
	fclose(trace);
	return sum == events * (events - 1) / 2 ? (long)nr : -1;
}

/* Whether it was these pages, and no others, in order. */
static bool was_seen(const unsigned long *expected, long nr)
{
	long seen = stop(), i;

	for (i = 0; i < seen && i < nr && touched[i] == expected[i]; i++)
		;
	if (seen == nr && i == nr)
		return true;
	ksft_print_msg("%ld touches instead of %ld, alike up to %ld\n", seen, nr,
		       i);
	return false;
}

static void test_values(void)
{
	static const char * const good[] = { "8", "256", "0", "16" };
	static const char * const junk[] = { "1", "7", "257", "-1", "x" };
	bool ok = true;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		ok &= !setting_write(WINDOW_FILE, good[i]);
	for (i = 0; i < ARRAY_SIZE(junk); i++)
		ok &= setting_write(WINDOW_FILE, junk[i]) == -EINVAL;
	set_setting(WINDOW_FILE, "0");
	ksft_test_result(ok, "window takes what it can hold, nothing else\n");
}

/* Pages far apart and side by side, several times each. */
static void test_order(int prot, int flags, const char *name)
{
	unsigned long expected[MAX_TOUCHES], nr = 0, i, pass;
	char *map = map_pages(file_fd, prot, flags);

	for (pass = 0; pass < 3; pass++)
		for (i = 0; i < FILE_PAGES; i++)
			expected[nr++] = pass ? i * 37 % FILE_PAGES : i;
	start();
	for (i = 0; i < nr; i++) {
		if (prot & PROT_WRITE)
			write_page(map, expected[i], 1);
		else
			read_page(map, expected[i]);
	}
	ksft_test_result(was_seen(expected, nr), "%s\n", name);
	munmap(map, FILE_PAGES * page_bytes);
}

/* The last pages stay mapped, and those before them do not. */
static void test_window(void)
{
	unsigned long expected[WINDOW + 2], i, pass;
	char *map = map_pages(file_fd, PROT_READ, MAP_SHARED);

	start();
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < WINDOW; i++)
			read_page(map, 2 * i);
	read_page(map, 99);
	read_page(map, 0);
	for (i = 0; i < WINDOW; i++)
		expected[i] = 2 * i;
	expected[WINDOW] = 99;
	expected[WINDOW + 1] = 0;
	ksft_test_result(was_seen(expected, WINDOW + 2),
			 "the last pages stay mapped, others do not\n");
	munmap(map, FILE_PAGES * page_bytes);
}

/* Another process that maps the same page is seen, and loses it as well. */
static void test_two_processes(void)
{
	unsigned long expected[2 * (WINDOW + 1)], i, nr = 0;
	char *map = map_pages(file_fd, PROT_READ, MAP_SHARED);

	start();
	read_page(map, 0);
	if (!fork_helper()) {
		for (i = 1; i <= WINDOW; i++)
			read_page(map, i);
		_exit(0);
	}
	wait(NULL);
	read_page(map, 0);
	for (i = 0; i <= WINDOW; i++)
		expected[nr++] = i;
	expected[nr++] = 0;
	ksft_test_result(was_seen(expected, nr),
			 "what one process pushes out, another touches anew\n");
	munmap(map, FILE_PAGES * page_bytes);
}

static void test_private_copies(void)
{
	bool ok = true;
	unsigned long i;
	char *map = map_pages(file_fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	start();
	for (i = 0; i < FILE_PAGES; i++) {
		/* Every other one was mapped from the file before. */
		if (i % 2)
			read_page(map, i);
		write_page(map, i, i % 100 + 2);
	}
	for (i = 0; i < FILE_PAGES; i++)
		ok &= map[i * page_bytes] == (char)(i % 100 + 2);
	ok &= stop() == FILE_PAGES / 2;
	ksft_test_result(ok, "private copies are left alone\n");
	munmap(map, FILE_PAGES * page_bytes);
}

static void test_not_watched(int prot, int flags, const char *device,
			     const char *name)
{
	char before[SETTING_BYTES];
	unsigned long i;
	char *map;

	if (setting_read(DEVICE_FILE, before))
		ksft_exit_fail_msg("%s cannot be read\n", DEVICE_FILE);
	if (device)
		set_setting(DEVICE_FILE, device);
	start();
	map = map_pages(file_fd, prot, flags);
	for (i = 0; i < FILE_PAGES; i++)
		read_page(map, i);
	ksft_test_result(!stop(), "%s\n", name);
	munmap(map, FILE_PAGES * page_bytes);
	set_setting(DEVICE_FILE, before);
}

static void test_released(void)
{
	struct stat stat_now;
	char *map;
	int fd, i;
	bool ok;

	start();
	fd = open("page_touch_file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, FILE_PAGES * page_bytes))
		ksft_exit_fail_perror("page_touch_file");
	map = map_pages(fd, PROT_READ, MAP_SHARED);
	for (i = 0; i < 4; i++)
		read_page(map, i);
	munmap(map, FILE_PAGES * page_bytes);
	ok = !fstat(fd, &stat_now);
	close(fd);
	ok &= !unlink("page_touch_file");
	/* The pages of others push those of the file out, and the file goes. */
	map = map_pages(file_fd, PROT_READ, MAP_SHARED);
	for (i = 0; i < 2 * WINDOW; i++)
		read_page(map, i);
	munmap(map, FILE_PAGES * page_bytes);
	ok &= stop() == 2 * WINDOW;
	ksft_test_result(ok, "a file can be removed while it is watched\n");
}

/* Threads that touch, write, read into, unmap, evict and truncate one file. */
static bool racing;
static int race_fd;

/* Access a page of a mapping, mostly by reading it. */
static void access_somehow(char *map, struct rng *rng)
{
	unsigned long page = random_below(rng, FILE_PAGES / 2);
	char *at = map + page * page_bytes;
	ssize_t done = 0;

	switch (random_below(rng, 12)) {
	case 0:
		write_page(map, page, random_number(rng));
		break;
	case 1:
		/* Faults in the kernel, across pages. */
		done = pread(file_fd, at + page_bytes / 2, page_bytes,
			     page * page_bytes);
		break;
	case 2:
		done = pwrite(race_fd, at, 4 * page_bytes, page * page_bytes);
		break;
	case 3:
		madvise(at, page_bytes, MADV_DONTNEED);
		break;
	default:
		read_page(map, page);
	}
	/* Either may fail: what it copies may be cut off. */
	(void)done;
}

/* Cut off the half that nobody touches, give it back, and evict what can be. */
static void change_file(struct rng *rng)
{
	const off_t bytes = FILE_PAGES * page_bytes;

	if (one_in(rng, 4) && ftruncate(race_fd, bytes / 2))
		ksft_exit_fail_perror("ftruncate");
	if (one_in(rng, 4) && ftruncate(race_fd, bytes))
		ksft_exit_fail_perror("ftruncate");
	posix_fadvise(race_fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void *race(void *number)
{
	struct rng rng = { (uintptr_t)number };
	size_t bytes = FILE_PAGES * page_bytes;

	while (__atomic_load_n(&racing, __ATOMIC_RELAXED)) {
		char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 one_in(&rng, 2) ? MAP_SHARED : MAP_PRIVATE,
				 race_fd, 0);
		unsigned int i;

		if (map == MAP_FAILED)
			continue;
		for (i = 0; i < 200; i++)
			access_somehow(map, &rng);
		change_file(&rng);
		if (one_in(&rng, 8) && !fork()) {
			read_page(map, 0);
			_exit(0);
		}
		munmap(map, bytes);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return NULL;
}

static void test_race(void)
{
	unsigned long trouble = kernel_trouble();
	pthread_t threads[RACE_THREADS];
	double end = seconds_now() + RACE_SECONDS;
	uintptr_t i;
	long rounds = 0;

	race_fd = make_file();
	if (race_fd < 0 || ftruncate(race_fd, FILE_PAGES * page_bytes))
		ksft_exit_fail_perror("a file for races");
	start();
	racing = true;
	for (i = 0; i < RACE_THREADS; i++)
		start_thread(&threads[i], race, (void *)i);
	while (seconds_now() < end) {
		usleep(50000);
		set_setting(WINDOW_FILE, rounds++ % 2 ? "16" : "8");
		if (rounds % 8 == 0)
			set_setting(WINDOW_FILE, "0");
	}
	__atomic_store_n(&racing, false, __ATOMIC_RELAXED);
	for (i = 0; i < RACE_THREADS; i++)
		pthread_join(threads[i], NULL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	stop();
	close(race_fd);
	ksft_test_result(!kernel_complained(trouble),
			 "threads that do everything at once\n");
}

static void prepare(void)
{
	char device[SETTING_BYTES];
	struct stat stat_file;
	unsigned long i;
	char *page;

	file_fd = make_file();
	if (file_fd < 0 || fstat(file_fd, &stat_file))
		ksft_exit_fail_perror("a file in the current directory");
	page = calloc(1, page_bytes);
	for (i = 0; i < FILE_PAGES; i++)
		if (write(file_fd, page, page_bytes) != (ssize_t)page_bytes)
			ksft_exit_fail_perror("write");
	free(page);
	fsync(file_fd);
	file_ino = stat_file.st_ino;
	snprintf(device, sizeof(device), "%llu",
		 (unsigned long long)stat_file.st_dev);
	set_setting(DEVICE_FILE, device);
	rmdir(INSTANCE_DIR);
	if (mkdir(INSTANCE_DIR, 0700))
		ksft_exit_fail_perror(INSTANCE_DIR);
	set_setting(EVENT_FILE, "1");
}

static void run_tests(void)
{
	ksft_set_plan(12);
	prepare();
	test_values();
	test_order(PROT_READ, MAP_SHARED, "each touch is seen, in order");
	test_order(PROT_READ, MAP_PRIVATE, "in private mappings, too");
	test_order(PROT_READ | PROT_WRITE, MAP_SHARED, "and each write");
	test_window();
	test_two_processes();
	test_private_copies();
	test_not_watched(PROT_READ | PROT_EXEC, MAP_SHARED, NULL,
			 "text is left alone");
	test_not_watched(PROT_READ, MAP_SHARED | MAP_LOCKED, NULL,
			 "what is locked is left alone");
	test_not_watched(PROT_READ, MAP_SHARED, "1",
			 "another device is left alone");
	test_released();
	test_race();
	ksft_finished();
}

int main(void)
{
	ksft_print_header();
	if (access(WINDOW_FILE, W_OK))
		ksft_exit_skip("no " WINDOW_FILE ", or not root\n");
	page_cache_init();
	guard_setting(WINDOW_FILE);
	guard_setting(DEVICE_FILE);
	return run_guarded(run_tests, clean_up);
}
