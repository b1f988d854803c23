// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map a file, touch one byte of some of its pages in a chosen order, and tell
 * what that made the kernel read.
 *
 * All accesses are worked out before the clock starts, so that the measured
 * loop does nothing but touch.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"sparse-mmap"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "patterns.h"

static const char *const hints[] = { "normal", "random", "sequential", NULL };
static const int advices[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL };

static const char *const pattern_helps[] = {
	[PATTERN_RANDOM] = "pages at random",
	[PATTERN_SEQUENTIAL] = "page by page",
	[PATTERN_REVERSE] = "page by page backward, from the last one",
	[PATTERN_STRIDE] = "forward by --stride pages each time",
	[PATTERN_ZIPF] = "few pages often, most seldom: Zipf's law with 0.99",
	[PATTERN_STREAMS] =
		"forward from --streams places, one page each in turn",
	[PATTERN_PINGPONG] =
		"the next from the front, the next from the back, in turn",
	[PATTERN_OBJECTS] = "runs of --object pages at random places, in --order",
	[PATTERN_BTREE] =
		"from the root to a random leaf of a tree in the file, 128 "
		"pages below each, scattered over all of it",
	[PATTERN_SCAN_RANDOM] = "page by page and at random, in turn",
	[PATTERN_PHASES] = "a third page by page, a third at random, then on",
	[PATTERN_DRIFT] = "forward by random steps of less than --stride",
	[PATTERN_BLOBS] =
		"runs of up to --object pages, each always at its place, in "
		"--order",
	[PATTERN_HOT_SPOTS] =
		"--burst pages at random within --object pages, then "
		"elsewhere, at times where it was before",
	[PATTERN_MERGE] =
		"forward from --streams places, each at its own speed, and "
		"after --burst of these, on average, a page at random",
	[PATTERN_WALK] =
		"on and back, by normally distributed steps that deviate by "
		"--stride",
	[PATTERN_BTREE_SCAN] =
		"from the root of a tree to a random leaf, and on through up "
		"to --object leaves, which lie in order",
	[PATTERN_SCANNERS] =
		"--streams threads that go forward, each at its own speed, by "
		"turns of up to --burst pages",
	[PATTERN_READERS] = "such threads that read objects of --object pages",
	[PATTERN_SCAN_READERS] =
		"one that goes forward, others that read objects",
};

static const char *const memory_states[] = { "cold", "warm", NULL };

static struct env {
	const char *file;
	struct pattern pattern;	/* 0 is unset */
	double fraction;	/* of the file's pages; 0 is unset */
	uint64_t count;		/* pages; 0 is unset */
	uint64_t passes;
	uint64_t threads;
	unsigned int hint;
	bool drop_caches;
	unsigned int warm;
	uint64_t create;	/* bytes; 0 is no */
} env = {
	.passes = 1,
	.threads = 1,
	.pattern.seed = 1,
};

/* What all threads share while they touch. */
static struct {
	const volatile char *map;
	const uint64_t *pages;	/* of one pass, in order */
	uint64_t count;
	size_t page_size;
} work;

static struct probe_option options[] = {
	{ "file", "PATH", "the file to map", .text = &env.file, .needed = true },
	{ "create", "BYTES",
	  "write PATH up to this size first (suffixes K, M, G)",
	  .bytes = &env.create },
	{ "pattern", "PATTERN",
	  "in which order, from page 0 unless told otherwise:",
	  .choice = &env.pattern.kind, .names = pattern_names,
	  .whats = pattern_helps },
	{ "stride", "PAGES", "of the patterns stride, drift and walk",
	  .number = &env.pattern.stride, .least = 1 },
	{ "streams", "N",
	  "how many places or threads, of patterns that have some",
	  .number = &env.pattern.streams, .least = 1 },
	{ "object", "PAGES", "size of an object, a hot spot or a scan",
	  .number = &env.pattern.object, .least = 1 },
	{ "burst", "N", "touches in a row, of patterns that take turns",
	  .number = &env.pattern.burst, .least = 1 },
	{ "order", "ORDER",
	  "of the pages of an object: forward (default), backward or "
	  "shuffled, each time anew",
	  .choice = &env.pattern.order, .names = pattern_orders },
	{ "region", "F",
	  "let the pattern random have but a part of the file in one piece, "
	  "this share of its pages",
	  .fraction = &env.pattern.region },
	{ "fraction", "F",
	  "touches a pass, as a share of the file's pages (0.01)",
	  .fraction = &env.fraction },
	{ "count", "N", "touches a pass, as a number",
	  .number = &env.count, .least = 1 },
	{ "passes", "N", "repeat the same touches",
	  .number = &env.passes, .least = 1 },
	{ "threads", "N", "deal the touches of a pass to N threads in turn",
	  .number = &env.threads, .least = 1, .most = MAX_THREADS },
	{ "hint", "HINT", "normal (default), random or sequential, by madvise",
	  .choice = &env.hint, .names = hints },
	{ "seed", "N", "of all that is random", .number = &env.pattern.seed },
	DROP_CACHES(&env.drop_caches),
	{ "memory", "STATE",
	  "of the file before: cold (default), or warm: all of it is in memory",
	  .choice = &env.warm, .names = memory_states },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--file PATH [OPTION]...\n"
"Map PATH, touch one byte of some of its pages, and print as one line of JSON\n"
"what that made the kernel read.\n",
	.options = options,
	.notes =
"Examples:\n"
"  sparse-mmap --file /var/tmp/probe --create 1G\n"
"      1 % of the pages of a new file, at random\n"
"  sparse-mmap --file /var/tmp/probe --pattern stride --stride 1021\n"
"      the stride that defeats hit accounting\n"
"  sparse-mmap --file /var/tmp/probe --hint random --threads 4 --count 10000\n"
"      10000 touches by four threads, with read-ahead switched off\n"
"\n"
"read_bytes and read_requests are null where the file's device keeps no\n"
"statistics (tmpfs, overlayfs, btrfs); pgpgin_bytes counts all devices.\n",
};

/* The file was truncated under the map, or its device failed. */
static void on_bus_error(int signal)
{
	static const char text[] =
		PROBE ": A page could not be read: the file became shorter or its device failed.\n";
	ssize_t ignored = write(2, text, sizeof(text) - 1);

	(void)signal;
	(void)ignored;
	_exit(1);
}

/* Complain of an option that the pattern has not, or cannot do without. */
static void check_option(const char *name, bool known, bool needed)
{
	bool given = option_given(&usage, name);
	const char *pattern = pattern_names[env.pattern.kind];

	if (given && !known)
		fail(2, "--pattern %s has no --%s.", pattern, name);
	if (needed && !given)
		fail(2, "--pattern %s needs --%s.", pattern, name);
}

static void check_pattern(void)
{
	enum pattern_kind kind = env.pattern.kind;
	bool threads = kind == PATTERN_SCANNERS || kind == PATTERN_READERS ||
		       kind == PATTERN_SCAN_READERS;
	bool bursts = threads || kind == PATTERN_MERGE ||
		      kind == PATTERN_HOT_SPOTS;
	bool streams = threads || kind == PATTERN_MERGE ||
		       kind == PATTERN_STREAMS;
	bool steps = kind == PATTERN_STRIDE || kind == PATTERN_DRIFT ||
		     kind == PATTERN_WALK;
	bool ordered = kind == PATTERN_OBJECTS || kind == PATTERN_BLOBS;
	bool objects = ordered || kind == PATTERN_HOT_SPOTS ||
		       kind == PATTERN_BTREE_SCAN || kind == PATTERN_READERS ||
		       kind == PATTERN_SCAN_READERS;

	check_option("stride", steps, steps);
	check_option("streams", streams, streams);
	check_option("object", objects, objects);
	check_option("burst", bursts, bursts);
	check_option("order", ordered, false);
	check_option("region", kind == PATTERN_RANDOM, false);
}

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	check_pattern();
	if (env.fraction && env.count)
		fail(2, "--fraction and --count exclude each other.");
	if (!env.fraction)
		env.fraction = 0.01;
}

/*
 * Append to the file until it has env.create bytes. Its content is noise, so
 * that no file system stores less than that.
 */
static void create_file(void)
{
	static uint64_t noise[1 << 17];
	uint64_t state = env.pattern.seed;

	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		noise[i] = next_random(&state);
	fill_file(env.file, noise, sizeof(noise), env.create);
}

static uint64_t *plan_pages(uint64_t file_pages, uint64_t count)
{
	uint64_t *pages = calloc(count, sizeof(*pages));

	if (!pages || !pattern_plan(&env.pattern, file_pages, pages, count))
		fail(1, "No memory for %" PRIu64 " touches.", count);
	return pages;
}

/* Put all of the file into memory, without any readahead state of the map. */
static void warm_file(void)
{
	static char buffer[1 << 20];
	int fd = open(env.file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		fail_io(env.file);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		;
	if (n < 0)
		fail_io(env.file);
	close(fd);
}

static uint64_t count_distinct(const uint64_t *pages, uint64_t count,
			       uint64_t file_pages)
{
	unsigned char *seen = calloc(file_pages / 8 + 1, 1);
	uint64_t distinct = 0;

	if (!seen)
		fail(1, "No memory for a bitmap of the file's pages.");
	for (uint64_t i = 0; i < count; i++) {
		unsigned char bit = 1 << pages[i] % 8;

		distinct += !(seen[pages[i] / 8] & bit);
		seen[pages[i] / 8] |= bit;
	}
	free(seen);
	return distinct;
}

static void touch(uint64_t thread)
{
	for (uint64_t pass = 0; pass < env.passes; pass++)
		for (uint64_t i = thread; i < work.count; i += env.threads)
			(void)work.map[work.pages[i] * work.page_size];
}

static void print_pattern(void)
{
	const struct pattern *pattern = &env.pattern;

	printf(", \"pattern\": \"%s\"", pattern_names[pattern->kind]);
	print_count("stride", pattern->stride, pattern->stride);
	print_count("streams", pattern->streams, pattern->streams);
	print_count("object", pattern->object, pattern->object);
	print_count("burst", pattern->burst, pattern->burst);
	if (pattern->kind == PATTERN_OBJECTS || pattern->kind == PATTERN_BLOBS)
		printf(", \"order\": \"%s\"", pattern_orders[pattern->order]);
	else
		printf(", \"order\": null");
	if (pattern->region)
		printf(", \"region\": %.9g", pattern->region);
	else
		printf(", \"region\": null");
}

static void print_result(const struct counters *before,
			 const struct counters *after,
			 const struct stat *stat, uint64_t distinct)
{
	uint64_t read_ahead_kib = 0;
	bool has_read_ahead = device_read_ahead(stat->st_dev, &read_ahead_kib);

	printf("{\"probe\": \"sparse-mmap\", \"file\": ");
	json_put_string(stdout, env.file);
	print_pattern();
	printf(", \"count\": %" PRIu64 ", \"passes\": %" PRIu64
	       ", \"threads\": %" PRIu64 ", \"hint\": \"%s\", \"seed\": %" PRIu64
	       ", \"page_size\": %zu, \"file_bytes\": %" PRIu64,
	       work.count, env.passes, env.threads, hints[env.hint],
	       env.pattern.seed, work.page_size, (uint64_t)stat->st_size);
	print_count("read_ahead_kb", has_read_ahead, read_ahead_kib);
	print_reads(before, after);
	printf(", \"pgpgin_bytes\": %" PRIu64
	       ", \"faults\": %ld, \"cpu_seconds\": %.6f"
	       ", \"seconds\": %.9f, \"pages_touched\": %" PRIu64
	       ", \"floor_bytes\": %" PRIu64 "}\n",
	       (after->pgpgin_kib - before->pgpgin_kib) * 1024,
	       after->usage.ru_majflt - before->usage.ru_majflt +
	       after->usage.ru_minflt - before->usage.ru_minflt,
	       cpu_seconds(&after->usage) - cpu_seconds(&before->usage),
	       seconds_between(before, after), distinct, distinct * work.page_size);
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;
	uint64_t file_pages, distinct;
	struct stat stat;
	void *map;

	parse_arguments(argc, argv);
	if (env.create)
		create_file();
	forget_caches(env.file, env.drop_caches);
	if (env.warm)
		warm_file();

	map = map_file(env.file, PROT_READ, &stat);
	work.page_size = sysconf(_SC_PAGESIZE);
	file_pages = stat.st_size / work.page_size;
	if (madvise(map, stat.st_size, advices[env.hint]))
		fail_io(env.file);
	signal(SIGBUS, on_bus_error);

	work.map = map;
	work.count = env.count ? env.count : file_pages * env.fraction;
	if (!work.count)
		work.count = 1;
	work.pages = plan_pages(file_pages, work.count);
	distinct = count_distinct(work.pages, work.count, file_pages);

	measure(env.threads, touch, stat.st_dev, &before, &after);
	print_result(&before, &after, &stat, distinct);
	return 0;
}
