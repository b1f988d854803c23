// SPDX-License-Identifier: GPL-2.0-only
/*
 * What pages of files earn that faults bring in or map: fault_folios below
 * /sys/kernel/mm/lru_gen/, and old_prefaulted_ptes below
 * /sys/kernel/debug/mmap_readahead/.
 *
 * What a folio got is seen in /sys/kernel/debug/lru_gen, as its generation, and
 * in /proc/kpageflags, as its mark. Each fault is made by a process of its own in
 * a control group of its own, where no other pages are counted.
 *
 * Run it as root, in a directory of the file system to test:
 *
 *	./fault_recency
 *
 * The tests run in a child. Its parent puts all settings back, however the
 * child ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kernel-page-flags.h>

#include "../kselftest.h"
#include "page_cache_util.h"

#define FILE_PAGES	256UL
/* Where a fault is made, away from the file's ends. */
#define FAULT_PAGE	100UL
#define CGROUP_BYTES	(64UL << 20)

enum setting { ACTIVE, ACCESSED, MAPPED, NR_SETTINGS };

static const char * const setting_names[NR_SETTINGS] = {
	[ACTIVE] = "active",
	[ACCESSED] = "accessed",
	[MAPPED] = "mapped",
};

static int file_fd;
static unsigned long fault_around;
/* Pages of the smallest folios that the file can have. */
static unsigned long block_pages;

/* The switches */

static bool reads_as(const char *path, const char *expected)
{
	char text[64] = "";

	read_text(path, text, sizeof(text));
	if (!strcmp(text, expected))
		return true;
	ksft_print_msg("%s reads as '%s'\n", path, text);
	return false;
}

static bool refuses(const char *path, const char *junk)
{
	int err = setting_write(path, junk);

	if (err == -EINVAL)
		return true;
	ksft_print_msg("%s: '%s' gives %d\n", path, junk, err);
	return false;
}

static void test_fault_folios_values(void)
{
	static const char * const texts[NR_SETTINGS] = {
		"[active] accessed mapped\n",
		"active [accessed] mapped\n",
		"active accessed [mapped]\n",
	};
	static const char * const junk[] = {
		"\n", " ", "0", "1", "y", "Active", "activ", "activee",
		"[active]", "active accessed", "none", "mapped ",
	};
	unsigned int i, setting;
	bool ok = true;
	char line[16];

	for (setting = 0; setting < NR_SETTINGS; setting++) {
		set_setting(FAULT_FOLIOS_FILE, setting_names[setting]);
		ok &= reads_as(FAULT_FOLIOS_FILE, texts[setting]);
		for (i = 0; i < ARRAY_SIZE(junk); i++)
			ok &= refuses(FAULT_FOLIOS_FILE, junk[i]);
		ok &= reads_as(FAULT_FOLIOS_FILE, texts[setting]);
	}
	for (setting = 0; setting < NR_SETTINGS; setting++) {
		snprintf(line, sizeof(line), "%s\n", setting_names[setting]);
		set_setting(FAULT_FOLIOS_FILE, line);
		ok &= reads_as(FAULT_FOLIOS_FILE, texts[setting]);
	}
	ksft_test_result(ok, "fault_folios: takes its values, nothing else\n");
}

static void test_pte_age_values(void)
{
	static const char * const on[] = { "1", "1\n", "01", "0x1" };
	static const char * const off[] = { "0", "0\n", "00", "0x0" };
	static const char * const junk[] = { "\n", " ", "2", "-1", "y", "old" };
	bool ok = true;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(on); i++) {
		set_setting(PTE_AGE_FILE, off[i]);
		ok &= reads_as(PTE_AGE_FILE, "0\n");
		set_setting(PTE_AGE_FILE, on[i]);
		ok &= reads_as(PTE_AGE_FILE, "1\n");
	}
	for (i = 0; i < ARRAY_SIZE(junk); i++)
		ok &= refuses(PTE_AGE_FILE, junk[i]);
	ok &= reads_as(PTE_AGE_FILE, "1\n");
	ksft_test_result(ok, "old_prefaulted_ptes: takes 0 and 1, nothing else\n");
}

/* What a fault brings in */

/* Pages of files of our control group, from the youngest generation on. */
#define NR_AGES		3	/* the last one holds all that are older */

struct ages {
	long pages[NR_AGES];
};

/* Of a node's generations, the oldest comes first. */
static void add_node(struct ages *ages, const long *files, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		unsigned int age = nr - 1 - i;

		if (age >= NR_AGES)
			age = NR_AGES - 1;
		ages->pages[age] += files[i];
	}
}

static bool read_ages(struct ages *ages)
{
	char line[512];
	long files[8], nr_files;
	FILE *file = fopen(GENERATIONS_FILE, "r");
	unsigned int nr = 0;
	bool ours = false, found = false;

	memset(ages, 0, sizeof(*ages));
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, "memcg ")) {
			add_node(ages, files, nr);
			nr = 0;
			ours = strstr(line, MEMORY_CGROUP "\n");
			found |= ours;
		} else if (strstr(line, "node ")) {
			add_node(ages, files, nr);
			nr = 0;
		} else if (ours && nr < ARRAY_SIZE(files) &&
			   sscanf(line, "%*u %*u %*u %ld", &nr_files) == 1) {
			files[nr++] = nr_files;
		}
	}
	add_node(ages, files, nr);
	fclose(file);
	return found;
}

/* What became of the pages that a fault brought in. */
struct outcome {
	/* Did it join the control group, and can its pages' ages be read? */
	bool joined, aged;
	/* Can their marks? */
	bool told;
	/* pages that are in the cache */
	unsigned long cached;
	/* those in the smallest folio of the page that was needed */
	unsigned long needed;
	/* those that a fault had mapped around it */
	unsigned long around;
	/* marked ones of all, and of those that were needed */
	unsigned long marked, needed_marked;
	struct ages before, after;
};

static struct outcome *outcome;

static bool is_needed(unsigned long page)
{
	return page / block_pages == FAULT_PAGE / block_pages;
}

/* Return: the frame that is mapped, which is 0 for who may not know, or false. */
static bool is_mapped(const struct mapping *map, unsigned long page,
		      unsigned long *frame)
{
	uint64_t entry;

	if (!read_pagemap(page_address(map, page), 1, &entry))
		return false;
	*frame = PM_FRAME(entry);
	return entry & PM_PRESENT;
}

static bool look_at_page(const struct mapping *hinted, unsigned long page)
{
	unsigned long frame;
	uint64_t flags;
	bool marked;

	touch(hinted, page);
	if (!is_mapped(hinted, page, &frame) || !frame ||
	    !read_page_flags(frame, &flags))
		return false;
	marked = flags & 1ULL << KPF_REFERENCED;
	outcome->cached++;
	outcome->marked += marked;
	outcome->needed += is_needed(page);
	outcome->needed_marked += is_needed(page) && marked;
	return true;
}

/* Look at all cached pages, through a mapping that gives them nothing. */
static bool look_at_pages(const struct mapping *map)
{
	unsigned long page, frame;
	struct mapping hinted;
	bool told = true;

	for (page = 0; page < FILE_PAGES; page++)
		outcome->around += is_mapped(map, page, &frame);
	map_file(&hinted, open_again(map->fd), FILE_PAGES);
	madvise(hinted.start, FILE_PAGES * page_bytes, MADV_RANDOM);
	for (page = 0; told && page < FILE_PAGES; page++)
		if (cached_pages(&hinted, page, 1))
			told = look_at_page(&hinted, page);
	unmap_and_close(&hinted);
	return told;
}

static void fault_here(void)
{
	struct mapping map, again;

	outcome->joined = memory_cgroup_join();
	if (!outcome->joined)
		return;
	stay_on_cpu();
	map_cold(&map, file_fd, FILE_PAGES);
	drain_lists();
	outcome->aged = read_ages(&outcome->before);
	touch(&map, FAULT_PAGE);
	cached_pages(&map, 0, FILE_PAGES);
	/* Now that all are read, this maps those around it. */
	map_file(&again, open_again(file_fd), FILE_PAGES);
	touch(&again, FAULT_PAGE);
	drain_lists();
	outcome->aged &= read_ages(&outcome->after);
	outcome->told = look_at_pages(&again);
}

/* Have a child run a function in the control group, and report in outcome. */
static bool run_in_cgroup(void (*run)(void), unsigned long max_bytes)
{
	pid_t pid;
	int status;

	if (!memory_cgroup_make(max_bytes))
		return false;
	memset(outcome, 0, sizeof(*outcome));
	pid = fork_helper();
	if (!pid) {
		run();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	memory_cgroup_remove();
	if (status)
		ksft_exit_fail_msg("a child ended with %#x\n", status);
	return outcome->joined;
}

static void print_outcome(void)
{
	ksft_print_msg("%lu pages cached, %lu needed, %lu mapped around\n",
		       outcome->cached, outcome->needed, outcome->around);
	ksft_print_msg("%lu marked, %lu of them needed\n", outcome->marked,
		       outcome->needed_marked);
}

/* Was there enough for the settings to differ? */
static bool enough_pages(void)
{
	return outcome->needed && outcome->cached > 2 * outcome->needed &&
	       (outcome->around > outcome->needed || fault_around == 1);
}

static void test_generation(enum setting setting)
{
	const char *name = setting_names[setting];
	struct ages *after = &outcome->after;
	long older = 0, youngest;
	bool ok;
	int i;

	set_setting(LRU_GEN_FILE, "y");
	set_setting(FAULT_FOLIOS_FILE, name);
	if (!run_in_cgroup(fault_here, CGROUP_BYTES)) {
		ksft_test_result_skip("no memory control groups\n");
		return;
	}
	if (!outcome->told) {
		ksft_test_result_skip("no page flags in /proc\n");
		return;
	}
	if (access(GENERATIONS_FILE, R_OK)) {
		ksft_test_result_skip("no " GENERATIONS_FILE "\n");
		return;
	}
	for (i = 0; i < NR_AGES; i++)
		after->pages[i] -= outcome->before.pages[i];
	youngest = after->pages[0];
	for (i = 1; i < NR_AGES; i++)
		older += after->pages[i];
	if (setting == ACTIVE)
		ok = youngest == (long)outcome->cached && !older;
	else
		ok = after->pages[NR_AGES - 1] == (long)outcome->cached &&
		     older == (long)outcome->cached && !youngest;
	ok &= outcome->aged && enough_pages();
	if (!ok) {
		print_outcome();
		ksft_print_msg("pages by age: %ld %ld %ld\n", after->pages[0],
			       after->pages[1], after->pages[2]);
	}
	ksft_test_result(ok, "%s: %s\n", name, setting == ACTIVE ?
			 "what is read goes to the youngest generation" :
			 "what is read goes to an old generation");
}

static void test_marks(const char *lru_gen, enum setting setting,
		       const char *name)
{
	unsigned long marked = 0;
	bool ok;

	set_setting(LRU_GEN_FILE, lru_gen);
	set_setting(FAULT_FOLIOS_FILE, setting_names[setting]);
	if (!run_in_cgroup(fault_here, CGROUP_BYTES)) {
		ksft_test_result_skip("no memory control groups\n");
		return;
	}
	if (!outcome->told) {
		ksft_test_result_skip("no page flags in /proc\n");
		return;
	}
	if (*lru_gen == 'y' && setting == ACCESSED)
		marked = outcome->cached;
	if (*lru_gen == 'y' && setting == MAPPED)
		marked = outcome->needed;
	ok = enough_pages() && outcome->marked == marked;
	if (marked)
		ok &= outcome->needed_marked == outcome->needed;
	if (!ok)
		print_outcome();
	ksft_test_result(ok, "%s: %s\n", setting_names[setting], name);
}

/* What comes back */

#define SMALL_CGROUP_BYTES	(16UL << 20)
#define THRASH_BYTES		(32UL << 20)
/* Thousands of pages come back then, where one would prove as much. */
#define THRASH_TOUCHES		2048

static struct counts {
	long refaulted, activated, restored;
} *counts;

static void thrash(void)
{
	unsigned long pages = THRASH_BYTES / page_bytes;
	struct rng rng = { 1 };
	unsigned int i;
	struct mapping map;

	outcome->joined = memory_cgroup_join();
	if (!outcome->joined)
		return;
	map_cold(&map, file_fd, pages);
	/*
	 * At random, since only what comes back in the generation that it was
	 * evicted in counts as activated: in passes, all comes back later.
	 */
	for (i = 0; i < THRASH_TOUCHES; i++)
		touch(&map, random_below(&rng, pages));
	counts->refaulted = memory_cgroup_stat("workingset_refault_file");
	counts->activated = memory_cgroup_stat("workingset_activate_file");
	counts->restored = memory_cgroup_stat("workingset_restore_file");
}

static void test_refaults(enum setting setting)
{
	const char *name = setting_names[setting];
	bool counted, ok;

	set_setting(LRU_GEN_FILE, "y");
	set_setting(FAULT_FOLIOS_FILE, name);
	if (ftruncate(file_fd, THRASH_BYTES))
		ksft_exit_fail_perror("resize of the test file");
	memset(counts, 0, sizeof(*counts));
	if (!run_in_cgroup(thrash, SMALL_CGROUP_BYTES)) {
		ksft_test_result_skip("no memory control groups\n");
		return;
	}
	counted = counts->activated && counts->restored;
	ok = setting == ACTIVE ? counted :
	     !counts->activated && !counts->restored;
	ok &= counts->refaulted > 0;
	if (!ok)
		ksft_print_msg("%ld refaulted, %ld activated, %ld restored\n",
			       counts->refaulted, counts->activated,
			       counts->restored);
	ksft_test_result(ok, "%s: refaults count as %s\n", name,
			 setting == ACTIVE ? "activated and restored" :
			 "neither activated nor restored");
}

/* The age of page table entries */

/* A line of a mapping in smaps, in bytes, or -1. */
static long smaps_bytes(const struct mapping *map, const char *name)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char start[24], line[512];
	long kib = -1, bytes = -1;
	bool ours = false;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)map->start);
	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (!strncmp(line, start, strlen(start)))
			ours = true;
		else if (ours && !strncmp(line, name, strlen(name)) &&
			 sscanf(line + strlen(name), ": %ld kB", &kib) == 1)
			break;
	}
	if (kib >= 0)
		bytes = kib << 10;
	if (smaps)
		fclose(smaps);
	return bytes;
}

/* In the cache without any mark, as read() would leave one. */
static void read_unmarked(const struct mapping *map)
{
	unsigned long page;
	int tries;

	/* One call reads no more than the device's limit. */
	for (page = 0; page < FILE_PAGES; page += 16)
		posix_fadvise(map->fd, page * page_bytes, 16 * page_bytes,
			      POSIX_FADV_WILLNEED);
	for (tries = 0; tries < 10000; tries++) {
		if (cached_pages(map, 0, FILE_PAGES) == FILE_PAGES)
			return;
		usleep(1000);
	}
	ksft_exit_fail_msg("the test file is not read in 10 seconds\n");
}

static void test_pte_age(bool old)
{
	long mapped, young, expected;
	struct mapping map;

	/* Nothing but page table entries is to look used. */
	if (!access(LRU_GEN_FILE, W_OK))
		set_setting(LRU_GEN_FILE, "n");
	set_setting(PTE_AGE_FILE, old ? "1" : "0");
	if (fault_around == 1) {
		ksft_test_result_skip("fault-around is off\n");
		return;
	}
	map_cold(&map, file_fd, FILE_PAGES);
	read_unmarked(&map);
	touch(&map, FAULT_PAGE);
	mapped = smaps_bytes(&map, "Rss");
	young = smaps_bytes(&map, "Referenced");
	unmap_and_close(&map);
	expected = (old ? block_pages : fault_around) * page_bytes;
	if (young != expected)
		ksft_print_msg("%ld bytes mapped, %ld look used, not %ld\n",
			       mapped, young, expected);
	ksft_test_result(young == expected &&
			 mapped == (long)(fault_around * page_bytes),
			 "old_prefaulted_ptes %d: what is mapped around looks %s\n",
			 old, old ? "unused" : "used");
}

#define NR_LRU_GEN_TESTS	(1 + 4 * NR_SETTINGS)
#define NR_FILE_TESTS		(NR_LRU_GEN_TESTS - 1)

static void test_lru_gen(void)
{
	int setting;

	/*
	 * Windows are not to depend on what other files have taught, and touches read
	 * more than memory holds only if they read more than their pages.
	 */
	set_setting(ADAPTIVE_FILE, "0");
	for (setting = 0; setting < NR_SETTINGS; setting++)
		test_generation(setting);
	test_marks("y", ACTIVE, "nothing is marked");
	test_marks("y", ACCESSED, "all that is read is marked");
	test_marks("y", MAPPED, "only what was needed is marked");
	for (setting = 0; setting < NR_SETTINGS; setting++)
		test_marks("n", setting, "does nothing without lru_gen");
	for (setting = 0; setting < NR_SETTINGS; setting++)
		test_refaults(setting);
}

static const char *prepare_file(void)
{
	struct stat st;

	file_fd = make_file();
	if (file_fd < 0)
		return "cannot make a file in the current directory";
	if (ftruncate(file_fd, FILE_PAGES * page_bytes) || fstat(file_fd, &st))
		return "cannot size the test file";
	if (!read_ahead_write(file_fd, 64 * page_bytes >> 10))
		return "the file system's device has no read_ahead_kb";
	block_pages = st.st_blksize / page_bytes;
	if (!block_pages)
		block_pages = 1;
	/* Each folio on its own, as far as the file system lets it. */
	set_all_folio_sizes(USE_NEVER);
	fault_around = measure_fault_around(file_fd, FILE_PAGES);
	return NULL;
}

static void run_tests(void)
{
	bool lru_gen = !access(FAULT_FOLIOS_FILE, W_OK);
	const char *unfit;

	ksft_set_plan(NR_LRU_GEN_TESTS + 3);
	outcome = shared_memory(sizeof(*outcome));
	counts = shared_memory(sizeof(*counts));

	test_pte_age_values();
	if (lru_gen)
		test_fault_folios_values();
	else
		skip_tests(1, "no multi-generational LRU in this kernel");

	unfit = prepare_file();
	if (unfit) {
		skip_tests(NR_FILE_TESTS + 2, unfit);
		ksft_finished();
	}
	test_pte_age(true);
	test_pte_age(false);
	if (lru_gen)
		test_lru_gen();
	else
		skip_tests(NR_FILE_TESTS, "no multi-generational LRU in this kernel");
	ksft_finished();
}

int main(void)
{
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root to write the switches\n");
	if (access(PTE_AGE_FILE, F_OK))
		ksft_exit_skip("no " PTE_AGE_FILE " on this kernel\n");
	page_cache_init();
	guard_setting(LRU_GEN_FILE);
	guard_setting(FAULT_FOLIOS_FILE);
	guard_setting(PTE_AGE_FILE);
	guard_setting(ADAPTIVE_FILE);
	guard_folio_sizes();
	guard_device_setting("read_ahead_kb");
	return run_guarded(run_tests, memory_cgroup_remove);
}
