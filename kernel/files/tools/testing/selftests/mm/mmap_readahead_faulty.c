// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults in mapped files while reads and allocations fail, and while the file system is
 * frozen. A page that can be read has to be right, one that cannot is SIGBUS, and no
 * failure lasts.
 *
 * Run it as root, in a directory of the file system to test, with any seed of what is
 * random, 1 by default:
 *
 *	./mmap_readahead_faulty 2
 *
 * The kernel's fault injection makes them fail, for this process alone. The tests run in
 * a child. Its parent puts all settings back and thaws the file system, however the child
 * ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fs.h>

#include "../kselftest.h"
#include "mmap_readahead_util.h"
#include "page_cache_util.h"

#define FILE_PAGES	2048UL
/* What a miss reads around itself where no window adapts. The first one that does: half. */
#define MOST_PAGES	64
/* So many times from the beginning, with nothing cached, so many accesses each. */
#define ROUNDS		20
#define ACCESSES	50

/*
 * How many of 100 fail. A fault tries a page again: twice after a window, once after a
 * single page.
 */
#define MANY		40
#define SOME		10

/* As good as without end, but the kernel counts down. */
#define ENDLESS		1000000

#define DEBUG_DIR	"/sys/kernel/debug/"

static const char * const reads[] = { DEBUG_DIR "fail_make_request", NULL };
static const char * const allocations[] = {
	DEBUG_DIR "failslab", DEBUG_DIR "fail_page_alloc", NULL
};

static uint64_t seed = 1;

static int file_fd, directory_fd;

/* Whose window is put to the test. */
static const char *window;

/* Injection */

static void attribute_path(char path[PATH_BYTES], const char *injector, const char *name)
{
	snprintf(path, PATH_BYTES, "%s/%s", injector, name);
}

/* What fails by injection may be just this. */
static void attribute_write(const char *injector, const char *name, int number)
{
	char path[PATH_BYTES], value[16];
	int tries, err = -ENOMEM;

	attribute_path(path, injector, name);
	snprintf(value, sizeof(value), "%d", number);
	for (tries = 0; tries < 1000 && err == -ENOMEM; tries++)
		err = setting_write(path, value);
	if (err)
		ksft_exit_fail_msg("%s does not take %s\n", path, value);
}

/* The file that makes a device's requests fail; a partition has its own. */
static bool device_fails_path(char path[PATH_BYTES])
{
	struct stat st;

	if (stat(".", &st))
		return false;
	snprintf(path, PATH_BYTES, "/sys/dev/block/%u:%u/make-it-fail",
		 major(st.st_dev), minor(st.st_dev));
	return !access(path, W_OK);
}

/* What is the same for all tests, where the injector has it: everything may fail. */
static const struct {
	const char *name;
	int number;
} attributes[] = {
	{ "verbose", 0 },
	{ "task-filter", 1 },
	{ "interval", 1 },
	{ "space", 0 },
	{ "ignore-gfp-wait", 0 },
	{ "ignore-gfp-highmem", 0 },
	{ "min-order", 0 },
};

static void guard_attribute(const char *injector, const char *name)
{
	char path[PATH_BYTES];

	attribute_path(path, injector, name);
	guard_setting(path);
}

static void guard_injectors(const char * const *injectors)
{
	char path[PATH_BYTES];
	unsigned int i;

	if (*injectors == reads[0] && device_fails_path(path))
		guard_setting(path);
	for (; *injectors; injectors++) {
		guard_attribute(*injectors, "probability");
		guard_attribute(*injectors, "times");
		for (i = 0; i < ARRAY_SIZE(attributes); i++)
			guard_attribute(*injectors, attributes[i].name);
	}
}

/* Return: false if the kernel has no injection for these. */
static bool prepare_injection(const char * const *injectors)
{
	char path[PATH_BYTES];
	unsigned int i;

	if (setting_write("/proc/self/make-it-fail", "1") ||
	    (*injectors == reads[0] && !device_fails_path(path)))
		return false;
	for (; *injectors; injectors++) {
		if (access(*injectors, X_OK))
			return false;
		for (i = 0; i < ARRAY_SIZE(attributes); i++) {
			attribute_path(path, *injectors, attributes[i].name);
			if (!access(path, F_OK))
				attribute_write(*injectors, attributes[i].name,
						attributes[i].number);
		}
	}
	return true;
}

static void let_device_fail(const char *value)
{
	char path[PATH_BYTES];

	if (!device_fails_path(path) || setting_write(path, value))
		ksft_exit_fail_msg("%s cannot be written\n", path);
}

/* Have so many of 100 fail, @times at most. */
static void inject(const char * const *injectors, int percent, int times)
{
	if (*injectors == reads[0])
		let_device_fail("1");
	for (; *injectors; injectors++) {
		attribute_write(*injectors, "times", times);
		attribute_write(*injectors, "probability", percent);
	}
}

/* Have nothing fail any more. Return: how many of @times did. */
static int stop_injecting(const char * const *injectors, int times)
{
	char path[PATH_BYTES], value[SETTING_BYTES];
	const char * const *each;
	int failed = 0;

	for (each = injectors; *each; each++)
		attribute_write(*each, "probability", 0);
	for (each = injectors; *each; each++) {
		attribute_path(path, *each, "times");
		if (setting_read(path, value))
			ksft_exit_fail_msg("%s cannot be read\n", path);
		failed += times - atoi(value);
	}
	if (*injectors == reads[0])
		let_device_fail("0");
	return failed;
}

/* Accesses */

enum outcome { RIGHT, WRONG, NO_ACCESS, NR_OUTCOMES };

static enum outcome read_page(const struct mapping *map, unsigned long page)
{
	uint64_t stamp = 0;

	if (access_page(page_address(map, page), NULL, &stamp) == SIGBUS)
		return NO_ACCESS;
	return stamp == page + 1 ? RIGHT : WRONG;
}

static bool write_pages(void)
{
	uint64_t stamp;

	for (stamp = 1; stamp <= FILE_PAGES; stamp++)
		if (pwrite(file_fd, &stamp, sizeof(stamp), (stamp - 1) * page_bytes) !=
		    sizeof(stamp))
			return false;
	return !ftruncate(file_fd, FILE_PAGES * page_bytes) && !fsync(file_fd);
}

static bool all_right(const struct mapping *map)
{
	unsigned long page;

	for (page = 0; page < FILE_PAGES; page++)
		if (read_page(map, page) != RIGHT)
			return false;
	return true;
}

enum pattern { RANDOM, FORWARD, BACKWARD, NR_PATTERNS };

static const char * const pattern_names[] = { "random", "forward", "backward" };

static unsigned long page_of(enum pattern pattern, unsigned int n, struct rng *rng)
{
	switch (pattern) {
	case FORWARD:
		return n % FILE_PAGES;
	case BACKWARD:
		return FILE_PAGES - 1 - n % FILE_PAGES;
	default:
		return random_below(rng, FILE_PAGES);
	}
}

/* Tests */

static void test_accesses(const char * const *injectors, int percent, enum pattern pattern,
			  const char *what)
{
	unsigned int n = 0, outcomes[NR_OUTCOMES] = { 0 };
	int round, failed = 0;
	struct rng rng = { seed };
	struct mapping map;
	bool ok = true;

	if (!prepare_injection(injectors)) {
		ksft_test_result_skip("%s: no fault injection for %s\n", window, what);
		return;
	}
	for (round = 0; round < ROUNDS; round++) {
		map_cold(&map, file_fd, FILE_PAGES);
		inject(injectors, percent, ENDLESS);
		do
			outcomes[read_page(&map, page_of(pattern, n, &rng))]++;
		while (++n % ACCESSES);
		failed += stop_injecting(injectors, ENDLESS);
		if (round == ROUNDS - 1)
			ok = all_right(&map);
		unmap_and_close(&map);
	}
	ok &= failed && outcomes[RIGHT] > n / 2 && !outcomes[WRONG];
	ksft_print_msg("%d failed: %u could be read, %u could not, %u were wrong\n",
		       failed, outcomes[RIGHT], outcomes[NO_ACCESS], outcomes[WRONG]);
	ksft_test_result(ok, "%s, %s: failing %s lose nothing\n", window,
			 pattern_names[pattern], what);
}

/* A read that was to bring more than its page is tried again for that alone. */
static void test_once(void)
{
	enum outcome once, twice, afterwards;
	struct mapping map;
	int failed;

	if (!prepare_injection(reads)) {
		ksft_test_result_skip("%s: no fault injection for reads\n", window);
		return;
	}
	map_cold(&map, file_fd, FILE_PAGES);
	inject(reads, 100, 1);
	once = read_page(&map, FILE_PAGES / 2);
	failed = stop_injecting(reads, 1);
	inject(reads, 100, ENDLESS);
	twice = read_page(&map, FILE_PAGES / 4);
	stop_injecting(reads, ENDLESS);
	afterwards = read_page(&map, FILE_PAGES / 4);
	unmap_and_close(&map);
	ksft_test_result(failed && once == RIGHT && twice == NO_ACCESS && afterwards == RIGHT,
			 "%s: a page is read again if a read fails, SIGBUS if that fails too\n",
			 window);
}

#define FAIL_NTH	"/proc/self/fail-nth"

/* Miss in a new file, a hole, with an allocation that fails. Return: pages that brings. */
static unsigned long miss_without(unsigned int nth)
{
	unsigned long pages;
	struct mapping map;
	char text[16];
	int fd = make_file();

	if (fd < 0 || ftruncate(fd, FILE_PAGES * page_bytes))
		ksft_exit_fail_perror("one more file");
	map_file(&map, fd, FILE_PAGES);
	snprintf(text, sizeof(text), "%u", nth);
	if (setting_write(FAIL_NTH, text))
		ksft_exit_fail_msg(FAIL_NTH " does not take %s\n", text);
	touch(&map, FILE_PAGES / 2);
	setting_write(FAIL_NTH, "0");
	pages = cached_pages(&map, 0, FILE_PAGES);
	unmap_and_close(&map);
	return pages;
}

/* Let one allocation fail after the other: one of them is that of what is known. */
static void test_not_known(void)
{
	const char *name = "adaptive: where nothing can be known, a miss reads as without";
	unsigned int nth, around = 0;
	unsigned long pages, most = 0;

	if (access(FAIL_NTH, W_OK) || !prepare_injection(allocations)) {
		ksft_test_result_skip("%s: no fault injection\n", name);
		return;
	}
	for (nth = 1; nth <= 64; nth++) {
		pages = miss_without(nth);
		around += pages > MOST_PAGES / 2;
		if (pages > most)
			most = pages;
	}
	ksft_print_msg("%u of %u misses read around, %lu pages at most\n", around, nth - 1, most);
	ksft_test_result(around && around < nth / 2 && most <= MOST_PAGES, "%s\n", name);
}

static void thaw(void)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY);

	if (fd >= 0) {
		ioctl(fd, FITHAW, 0);
		close(fd);
	}
}

/* Prints nothing while frozen: its output may go to a file there. */
static void test_frozen(void)
{
	struct rng rng = { 1 };
	struct mapping map;
	int status, tries;
	unsigned int n;
	pid_t pid;
	bool ok = false;

	map_cold(&map, file_fd, FILE_PAGES);
	fflush(stdout);
	if (ioctl(directory_fd, FIFREEZE, 0)) {
		unmap_and_close(&map);
		ksft_test_result_skip("%s: the file system cannot be frozen: %s\n",
				      window, strerror(errno));
		return;
	}
	pid = fork_helper();
	if (!pid) {
		for (n = 0; n < ROUNDS * ACCESSES; n++)
			if (read_page(&map, page_of(n % NR_PATTERNS, n, &rng)) != RIGHT)
				_exit(1);
		_exit(0);
	}
	for (tries = 0; tries < 3000 && !ok; tries++) {
		usleep(10000);
		ok = waitpid(pid, &status, WNOHANG) == pid;
	}
	thaw();
	if (!ok)
		waitpid(pid, &status, 0);
	unmap_and_close(&map);
	ksft_test_result(ok && !status, "%s: a frozen file system can be read\n",
			 window);
}

#define NR_TESTS_EACH	(2 * NR_PATTERNS + 2)

static void run_tests(void)
{
	unsigned long trouble = kernel_trouble();
	int adaptive, pattern;

	ksft_set_plan(2 * NR_TESTS_EACH + 2);
	file_fd = make_file();
	directory_fd = open(".", O_RDONLY | O_DIRECTORY);
	if (file_fd < 0 || directory_fd < 0 || !write_pages())
		ksft_exit_skip("no room for the test file in the current directory\n");
	read_ahead_write(file_fd, MOST_PAGES * page_bytes >> 10);
	catch_signals();
	set_rules(ALL_RULES);
	for (adaptive = 0; adaptive < 2; adaptive++) {
		window = adaptive ? "adaptive" : "not adaptive";
		set_setting(ADAPTIVE_FILE, adaptive ? "1" : "0");
		test_once();
		for (pattern = 0; pattern < NR_PATTERNS; pattern++)
			test_accesses(reads, MANY, pattern, "reads");
		for (pattern = 0; pattern < NR_PATTERNS; pattern++)
			test_accesses(allocations, SOME, pattern, "allocations");
		test_frozen();
	}
	test_not_known();
	ksft_test_result(!kernel_complained(trouble), "the kernel did not complain\n");
	ksft_finished();
}

int main(int argc, char **argv)
{
	ksft_print_header();
	if (argc > 1)
		seed = strtoul(argv[1], NULL, 10);
	if (geteuid())
		ksft_exit_skip("needs root to make reads fail\n");
	page_cache_init();
	guard_switches();
	guard_device_setting("read_ahead_kb");
	guard_injectors(reads);
	guard_injectors(allocations);
	return run_guarded(run_tests, thaw);
}
