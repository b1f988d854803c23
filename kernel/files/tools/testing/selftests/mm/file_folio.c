// SPDX-License-Identifier: GPL-2.0-only
/*
 * Folio sizes of the page cache: hugepages-<size>kB/file_enabled below
 * /sys/kernel/mm/transparent_hugepage/, and what readahead makes of it.
 *
 * Which folios readahead made is seen twice: as what the counters in stats/
 * gained, and in /proc/kpageflags. The counters are those of the whole system;
 * a size that nobody may use gains nothing all the same.
 *
 * Run it as root, in a directory of a file system with large folios:
 *
 *	./file_folio
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
#include <unistd.h>

#include "../kselftest.h"
#include "page_cache_util.h"

/* Every so many bytes of the test file start with their own offset. */
#define STAMP_BYTES	(64UL << 10)

static struct rng rng;

static bool has_exec(enum file_use use)
{
	return use == USE_EXEC || use == USE_ALWAYS_EXEC;
}

/* The control */

static void test_values(void)
{
	static const char * const junk[] = {
		"\n", " ", "0", "1", "ALWAYS", "alway", "alwayss", "[always]",
		"always exec", "always,exec", "exec+always", "always+",
		"+exec", "inherit", "never always exec always+exec",
	};
	const struct folio_size *size;
	char text[32];
	unsigned int i;
	bool ok = true;
	int use, after;

	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		for (use = 0; use < 2 * NR_USES; use++) {
			snprintf(text, sizeof(text), "%s%s",
				 use_names[use / 2], use % 2 ? "\n" : "");
			if (!folio_size_write(size, text) &&
			    folio_size_use(size) == use / 2)
				continue;
			ksft_print_msg("%lu kB: '%s' does not stay\n",
				       size->bytes >> 10, use_names[use / 2]);
			ok = false;
		}
		for (i = 0; i < ARRAY_SIZE(junk) * NR_USES; i++) {
			use = i % NR_USES;
			set_folio_size(size, use);
			after = folio_size_write(size, junk[i / NR_USES]);
			if (after == -EINVAL && folio_size_use(size) == use)
				continue;
			ksft_print_msg("%lu kB: '%s' gives %d\n",
				       size->bytes >> 10, junk[i / NR_USES],
				       after);
			ok = false;
		}
	}
	ksft_test_result(ok, "takes the four uses and nothing else\n");
}

static void test_brackets(void)
{
	const struct folio_size *size = &folio_sizes[nr_folio_sizes / 2];
	char path[PATH_BYTES], expected[128], text[128] = "";
	bool ok = true;
	size_t len;
	int use, i;

	folio_size_path(path, size->bytes, "file_enabled");
	for (use = 0; use < NR_USES; use++) {
		len = 0;
		for (i = 0; i < NR_USES; i++)
			len += snprintf(expected + len, sizeof(expected) - len,
					i == use ? "[%s]%c" : "%s%c",
					use_names[i],
					i == NR_USES - 1 ? '\n' : ' ');
		set_folio_size(size, use);
		read_text(path, text, sizeof(text));
		ok &= !strcmp(text, expected);
	}
	ksft_test_result(ok, "reads as all uses, the chosen one in brackets\n");
}

/* Write at random, and compare all sizes with what they should have then. */
static void test_order_of_writes(void)
{
	enum file_use expected[MAX_ORDER_NR] = { };
	unsigned int i, n, chosen = 0;
	bool ok = true;

	set_all_folio_sizes(USE_NEVER);
	for (n = 0; ok && n < 300; n++) {
		chosen = random_below(&rng, nr_folio_sizes);
		expected[chosen] = random_below(&rng, NR_USES);
		for (i = 0; has_exec(expected[chosen]) && i < nr_folio_sizes; i++)
			if (i != chosen && has_exec(expected[i]))
				expected[i] = expected[i] == USE_EXEC ?
					      USE_NEVER : USE_ALWAYS;
		set_folio_size(&folio_sizes[chosen], expected[chosen]);
		for (i = 0; i < nr_folio_sizes; i++)
			if (folio_size_use(&folio_sizes[i]) != (int)expected[i])
				ok = false;
	}
	if (!ok)
		ksft_print_msg("%lu kB was given '%s' in write %u\n",
			       folio_sizes[chosen].bytes >> 10,
			       use_names[expected[chosen]], n);
	ksft_test_result(ok, "exec moves, and nothing else changes\n");
}

#define NR_WRITERS	4
#define WRITES		200

struct writer {
	pthread_t thread;
	struct rng rng;
	bool failed;
	/* What it wrote last to each size. */
	int last[MAX_ORDER_NR];
};

/* Two writers share each size. */
static unsigned int size_of_writer(const struct writer *writers,
				   struct writer *writer)
{
	unsigned int pair = (writer - writers) / 2;
	unsigned int step = NR_WRITERS / 2;
	unsigned int mine = (nr_folio_sizes - pair + step - 1) / step;

	return pair + step * random_below(&writer->rng, mine);
}

static struct writer writers[NR_WRITERS];

static void *write_at_random(void *arg)
{
	struct writer *writer = arg;
	unsigned int n, size, use;

	for (n = 0; n < WRITES; n++) {
		size = size_of_writer(writers, writer);
		use = random_below(&writer->rng, NR_USES);
		if (folio_size_write(&folio_sizes[size], use_names[use]))
			writer->failed = true;
		writer->last[size] = use;
	}
	return NULL;
}

/* What a size has must be what one of its writers wrote last, but for exec. */
static bool written_last(unsigned int size)
{
	int use = folio_size_use(&folio_sizes[size]);
	bool written = false, found = false;
	unsigned int i;

	for (i = 0; i < NR_WRITERS; i++) {
		int last = writers[i].last[size];

		if (last < 0)
			continue;
		written = true;
		if (use == last)
			found = true;
		if (has_exec(last) &&
		    use == (last == USE_EXEC ? USE_NEVER : USE_ALWAYS))
			found = true;
	}
	/* Never written, it is as it was. */
	return written ? found : use == USE_ALWAYS;
}

static void test_writers(void)
{
	unsigned int i, size, round, execs;
	bool ok = nr_folio_sizes >= NR_WRITERS / 2;

	for (round = 0; ok && round < 10; round++) {
		set_all_folio_sizes(USE_ALWAYS);
		for (i = 0; i < NR_WRITERS; i++) {
			writers[i].rng.state = round * NR_WRITERS + i;
			memset(writers[i].last, 0xff, sizeof(writers[i].last));
			start_thread(&writers[i].thread, write_at_random,
				     &writers[i]);
		}
		for (i = 0; i < NR_WRITERS; i++) {
			pthread_join(writers[i].thread, NULL);
			ok &= !writers[i].failed;
		}
		execs = 0;
		for (size = 0; size < nr_folio_sizes; size++) {
			execs += has_exec(folio_size_use(&folio_sizes[size]));
			ok &= written_last(size);
		}
		if (execs > 1)
			ksft_print_msg("%u sizes have exec\n", execs);
		ok &= execs <= 1;
	}
	ksft_test_result(ok, "writers side by side: one exec, nothing lost\n");
}

#define NR_CONTROL_TESTS	4

/* What readahead makes */

/* The test file, unlinked from the start. */
static int file_fd;
static unsigned long file_bytes, file_pages;

/* Order of the folios that the file system cannot do without. */
static unsigned int min_order;

/* What was made of each order, and what was to be, but could not. */
struct made {
	unsigned long counted[MAX_ORDER_NR], seen[MAX_ORDER_NR];
	unsigned long fallbacks;
};

enum how { BY_READING, BY_FAULTING, BY_HUGE_HINT };

static bool stamps_right(const char *data)
{
	unsigned long at;

	for (at = 0; at < file_bytes; at += STAMP_BYTES)
		if (*(const uint64_t *)(data + at) != at + 1)
			return false;
	return true;
}

/* Read the file, cold, such that readahead chooses the folios. */
static bool read_file(int fd, enum how how)
{
	struct mapping map;
	unsigned long page;
	bool right;

	map_file(&map, fd, file_pages);
	if (!drop_pages(&map))
		ksft_exit_fail_msg("pages of the test file stay in the cache\n");
	if (how == BY_HUGE_HINT)
		madvise(map.start, file_bytes, MADV_HUGEPAGE);
	if (how == BY_READING) {
		char *data = malloc(STAMP_BYTES);

		while (data && read(fd, data, STAMP_BYTES) > 0)
			;
		free(data);
	} else {
		for (page = 0; page < file_pages; page++)
			touch(&map, page);
	}
	right = stamps_right(map.start);
	/* With this, the last folio is no longer on its way. */
	cached_pages(&map, 0, file_pages);
	unmap(&map);
	return right;
}

static bool make_folios(enum how how, struct made *made)
{
	unsigned long before[MAX_ORDER_NR], fallbacks[MAX_ORDER_NR];
	const struct folio_size *size;
	int fd = open_again(file_fd);
	bool right;

	memset(made, 0, sizeof(*made));
	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		before[size->order] = folio_size_stat(size, "file_alloc");
		fallbacks[size->order] = folio_size_stat(size, "file_fallback");
	}
	right = read_file(fd, how);
	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		made->counted[size->order] =
			folio_size_stat(size, "file_alloc") -
			before[size->order];
		made->fallbacks += folio_size_stat(size, "file_fallback") -
				   fallbacks[size->order];
	}
	if (!count_folios(fd, 0, file_pages, made->seen))
		ksft_exit_fail_msg("/proc does not tell the folios' sizes\n");
	close(fd);
	if (!right)
		ksft_print_msg("what was read is wrong\n");
	return right;
}

static void print_made(const struct made *made)
{
	unsigned int order;

	for (order = 0; order < MAX_ORDER_NR; order++)
		if (made->counted[order] || made->seen[order])
			ksft_print_msg("order %u: %lu counted, %lu seen\n",
				       order, made->counted[order],
				       made->seen[order]);
	ksft_print_msg("%lu fallbacks\n", made->fallbacks);
}

static bool may_be_made(unsigned int order)
{
	const struct folio_size *size = folio_size_of(page_bytes << order);
	int use;

	if (order == min_order)
		return true;
	if (!size)
		return false;
	use = folio_size_use(size);
	return use == USE_ALWAYS || use == USE_ALWAYS_EXEC;
}

/*
 * Only sizes that are allowed, and each folio counted. Where nothing but that
 * size may be made, and the window holds it, it must be.
 */
static bool made_right(enum how how, const struct folio_size *wanted)
{
	bool ok, large = false;
	struct made made;
	unsigned int order;

	ok = make_folios(how, &made);
	for (order = 0; order < MAX_ORDER_NR; order++) {
		if (!may_be_made(order))
			ok &= !made.counted[order] && !made.seen[order];
		/* Those that a file system needs do not count as large ones. */
		if (order > min_order)
			ok &= made.counted[order] >= made.seen[order];
		large |= order > min_order && made.seen[order];
	}
	if (wanted && !made.fallbacks)
		ok &= made.seen[wanted->order] == file_bytes / wanted->bytes;
	if (!ok)
		print_made(&made);
	return ok && (wanted || large || made.fallbacks ||
		      !may_be_made(min_order + 1));
}

static void test_all_never(enum how how, const char *name)
{
	set_all_folio_sizes(USE_NEVER);
	ksft_test_result(made_right(how, NULL), "all never: %s\n", name);
}

static void test_all_always(enum how how, const char *name)
{
	set_all_folio_sizes(USE_ALWAYS);
	ksft_test_result(made_right(how, NULL), "all always: %s\n", name);
}

/* One after the other. */
static void test_one_never(enum how how, const char *name)
{
	const struct folio_size *size;
	bool ok = true;

	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		set_all_folio_sizes(USE_ALWAYS);
		set_folio_size(size, USE_NEVER);
		if (made_right(how, NULL))
			continue;
		ksft_print_msg("with %lu kB never\n", size->bytes >> 10);
		ok = false;
	}
	ksft_test_result(ok, "one never: %s\n", name);
}

/* How large the folios are that the hint for huge pages asks for. */
static unsigned long huge_hint_bytes(void)
{
	unsigned long bytes = pmd_bytes();

	return bytes && folio_size_of(bytes) ? bytes : 2UL << 20;
}

/* One after the other, with the hint, whose windows hold any of them. */
static void test_one_always(void)
{
	const char *name = "one always: huge-page hint makes nothing else";
	const struct folio_size *size;
	bool ok = true;

	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		if (size->bytes > huge_hint_bytes() || size->order <= min_order)
			continue;
		set_all_folio_sizes(USE_NEVER);
		set_folio_size(size, USE_ALWAYS);
		if (made_right(BY_HUGE_HINT, size))
			continue;
		ksft_print_msg("with %lu kB alone\n", size->bytes >> 10);
		ok = false;
	}
	ksft_test_result(ok, "%s\n", name);
}

/* Exec alone is for text: data has nothing of it. */
static void test_one_exec(void)
{
	const struct folio_size *size;
	bool ok = true;

	for (size = folio_sizes; size < folio_sizes + nr_folio_sizes; size++) {
		if (size->bytes > huge_hint_bytes() || size->order <= min_order)
			continue;
		set_all_folio_sizes(USE_NEVER);
		set_folio_size(size, USE_EXEC);
		if (made_right(BY_HUGE_HINT, NULL))
			continue;
		ksft_print_msg("with %lu kB for text\n", size->bytes >> 10);
		ok = false;
	}
	ksft_test_result(ok, "one exec: none for data\n");
}

static void test_charge(void)
{
	const char *name = "fallback: a folio that cannot be charged counts";
	const struct folio_size *size = folio_size_of(huge_hint_bytes());
	unsigned long failed, not_charged;
	struct mapping map;
	bool ok;

	if (!memory_cgroup_make(size->bytes / 2 + (512UL << 10))) {
		ksft_test_result_skip("%s: no memory cgroup\n", name);
		return;
	}
	set_all_folio_sizes(USE_ALWAYS);
	failed = folio_size_stat(size, "file_fallback");
	not_charged = folio_size_stat(size, "file_fallback_charge");
	map_cold(&map, file_fd, file_pages);
	madvise(map.start, file_bytes, MADV_HUGEPAGE);
	ok = memory_cgroup_touch(&map, 0, 1);
	unmap_and_close(&map);
	failed = folio_size_stat(size, "file_fallback") - failed;
	not_charged = folio_size_stat(size, "file_fallback_charge") - not_charged;
	ksft_print_msg("%lu fallbacks, %lu for want of charge\n", failed,
		       not_charged);
	ok &= not_charged && failed >= not_charged;
	memory_cgroup_remove();
	ksft_test_result(ok, "%s\n", name);
}

/* Return: NULL, or why the file is of no use. */
static const char *prepare_file(void)
{
	unsigned long at, counts[MAX_ORDER_NR];
	struct mapping map;
	uint64_t stamp;

	file_fd = make_file();
	if (file_fd < 0)
		return "cannot make a file in the current directory";
	if (cachestat_pages(file_fd, 0, 1) < 0)
		return "needs the cachestat() system call";
	if (!has_large_folios(file_fd))
		return "no large folios in files of the current directory";

	file_bytes = 2 * huge_hint_bytes();
	file_pages = file_bytes / page_bytes;
	if (ftruncate(file_fd, file_bytes))
		return "the file system has no sparse files";
	for (at = 0; at < file_bytes; at += STAMP_BYTES) {
		stamp = at + 1;
		if (pwrite(file_fd, &stamp, sizeof(stamp), at) != sizeof(stamp))
			return "not enough room for the test file";
	}
	fsync(file_fd);

	map_file(&map, open_again(file_fd), file_pages);
	if (!drop_pages(&map))
		return "files in the current directory cannot be evicted";
	madvise(map.start, file_bytes, MADV_RANDOM);
	touch(&map, file_pages / 2);
	min_order = ffsl(cached_pages(&map, 0, file_pages)) - 1;
	unmap_and_close(&map);
	/* A folio is a small part of a window, and is to be larger than a block. */
	read_ahead_write(file_fd, (64UL << min_order) * page_bytes >> 10);
	if (!count_folios(file_fd, 0, 1UL << min_order, counts))
		return "/proc does not tell the sizes of folios";
	return NULL;
}

static const struct file_test {
	void (*run)(enum how how, const char *name);
	enum how how;
	const char *name;
} file_tests[] = {
	{ test_all_never, BY_READING, "reading has the smallest folios" },
	{ test_all_never, BY_FAULTING, "faults have the smallest folios" },
	{ test_all_never, BY_HUGE_HINT, "so has the huge-page hint" },
	{ test_all_always, BY_READING, "reading has large folios" },
	{ test_all_always, BY_FAULTING, "faults have large folios" },
	{ test_all_always, BY_HUGE_HINT, "so has the huge-page hint" },
	{ test_one_never, BY_READING, "reading does without it" },
	{ test_one_never, BY_FAULTING, "faults do without it" },
};

#define NR_FILE_TESTS	(ARRAY_SIZE(file_tests) + 3)

static void run_tests(void)
{
	const char *unfit;
	unsigned int i;

	ksft_set_plan(NR_CONTROL_TESTS + NR_FILE_TESTS);
	/* khugepaged collapses what has the hint, whatever file_enabled says. */
	setting_write(THP_DIR "/enabled", "never");

	test_values();
	test_brackets();
	test_order_of_writes();
	test_writers();

	unfit = prepare_file();
	if (unfit) {
		skip_tests(NR_FILE_TESTS, unfit);
		ksft_finished();
	}

	for (i = 0; i < ARRAY_SIZE(file_tests); i++)
		file_tests[i].run(file_tests[i].how, file_tests[i].name);
	test_one_always();
	test_one_exec();
	test_charge();
	ksft_finished();
}

int main(void)
{
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root to choose folio sizes\n");
	page_cache_init();
	if (!nr_folio_sizes)
		ksft_exit_skip("no file_enabled in " THP_DIR "\n");
	guard_setting(THP_DIR "/enabled");
	guard_folio_sizes();
	guard_device_setting("read_ahead_kb");
	return run_guarded(run_tests, memory_cgroup_remove);
}
