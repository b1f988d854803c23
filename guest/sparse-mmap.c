// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map a file, touch one byte of some of its pages in a chosen order, and tell
 * what that made the kernel read.
 *
 * All accesses are worked out before the clock starts, so that the measured
 * loop does nothing but touch.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"sparse-mmap"
#include "json.h"
#include "probe.h"

enum pattern { RANDOM, SEQUENTIAL, REVERSE, STRIDE };

static const char *const patterns[] = {
	"random", "sequential", "reverse", "stride", NULL
};

static const char *const hints[] = { "normal", "random", "sequential", NULL };
static const int advices[] = { MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL };

static struct env {
	const char *file;
	enum pattern pattern;
	uint64_t stride;	/* pages; 0 is unset */
	double fraction;	/* of the file's pages; 0 is unset */
	uint64_t count;		/* pages; 0 is unset */
	uint64_t passes;
	uint64_t threads;
	int hint;
	uint64_t seed;
	bool drop_caches;
	uint64_t create;	/* bytes; 0 is no */
} env = {
	.passes = 1,
	.threads = 1,
	.seed = 1,
};

/* What all threads share while they touch. */
static struct {
	const volatile char *map;
	const uint64_t *pages;	/* of one pass, in order */
	uint64_t count;
	size_t page_size;
} work;

static const char usage[] =
"Usage: sparse-mmap --file PATH [OPTION]...\n"
"Map PATH, touch one byte of some of its pages, and print as one line of JSON\n"
"what that made the kernel read.\n"
"\n"
"  --file PATH         the file to map\n"
"  --create BYTES      write PATH up to this size first (suffixes K, M, G)\n"
"  --pattern PATTERN   random (default), sequential, reverse or stride\n"
"  --stride PAGES      distance of accesses, for --pattern stride\n"
"  --fraction F        touches a pass, as a share of the file's pages (0.01)\n"
"  --count N           touches a pass, as a number\n"
"  --passes N          repeat the same touches (1)\n"
"  --threads N         deal the touches of a pass to N threads in turn (1)\n"
"  --hint HINT         normal (default), random or sequential, by madvise\n"
"  --seed N            of the random pattern (1)\n"
"  --drop-caches       empty all of the kernel's caches before, not only those\n"
"                      of the file; needs root\n"
"  --help              print this text\n"
"\n"
"Examples:\n"
"  sparse-mmap --file /var/tmp/probe --create 1G\n"
"      1 % of the pages of a new file, at random\n"
"  sparse-mmap --file /var/tmp/probe --pattern stride --stride 1021\n"
"      the stride that defeats hit accounting\n"
"  sparse-mmap --file /var/tmp/probe --hint random --threads 4 --count 10000\n"
"      10000 touches by four threads, with read-ahead switched off\n"
"\n"
"read_bytes and read_requests are null where the file's device keeps no\n"
"statistics (tmpfs, overlayfs, btrfs); pgpgin_bytes counts all devices.\n";

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

static void parse_arguments(int argc, char **argv)
{
	enum { FILE_, PATTERN, STRIDE_, FRACTION, COUNT, PASSES, THREADS, HINT,
	       SEED, DROP_CACHES, CREATE, HELP };
	static const struct option options[] = {
		{ "file", required_argument, NULL, FILE_ },
		{ "pattern", required_argument, NULL, PATTERN },
		{ "stride", required_argument, NULL, STRIDE_ },
		{ "fraction", required_argument, NULL, FRACTION },
		{ "count", required_argument, NULL, COUNT },
		{ "passes", required_argument, NULL, PASSES },
		{ "threads", required_argument, NULL, THREADS },
		{ "hint", required_argument, NULL, HINT },
		{ "seed", required_argument, NULL, SEED },
		{ "drop-caches", no_argument, NULL, DROP_CACHES },
		{ "create", required_argument, NULL, CREATE },
		{ "help", no_argument, NULL, HELP },
		{ 0 }
	};
	int option, index;

	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		const char *name = option == '?' ? NULL : options[index].name;

		switch (option) {
		case FILE_:
			env.file = optarg;
			break;
		case PATTERN:
			env.pattern = parse_name(name, optarg, patterns);
			break;
		case STRIDE_:
			env.stride = parse_number(name, optarg, 1);
			break;
		case FRACTION:
			env.fraction = parse_fraction(name, optarg);
			break;
		case COUNT:
			env.count = parse_number(name, optarg, 1);
			break;
		case PASSES:
			env.passes = parse_number(name, optarg, 1);
			break;
		case THREADS:
			env.threads = parse_number(name, optarg, 1);
			break;
		case HINT:
			env.hint = parse_name(name, optarg, hints);
			break;
		case SEED:
			env.seed = parse_number(name, optarg, 0);
			break;
		case DROP_CACHES:
			env.drop_caches = true;
			break;
		case CREATE:
			env.create = parse_bytes(name, optarg);
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			exit(2);	/* getopt has said why */
		}
	}
	if (optind < argc)
		fail(2, "'%s' is not an option; see --help.", argv[optind]);
	if (!env.file)
		fail(2, "--file is missing; see --help.");
	if ((env.pattern == STRIDE) != (env.stride != 0))
		fail(2, "--pattern stride and --stride go together.");
	if (env.fraction && env.count)
		fail(2, "--fraction and --count exclude each other.");
	if (env.threads > MAX_THREADS)
		fail(2, "--threads goes up to %d.", MAX_THREADS);
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
	uint64_t state = env.seed, size;
	struct stat stat;
	int fd = open(env.file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		noise[i] = next_random(&state);
	for (size = stat.st_size; size < env.create;) {
		uint64_t left = env.create - size;
		ssize_t n = write(fd, noise,
				  left < sizeof(noise) ? left : sizeof(noise));

		if (n < 0)
			fail_io(env.file);
		size += n;
	}
	if (fsync(fd))
		fail_io(env.file);
	close(fd);
}

/* The pages of one pass, in the order of access. */
static uint64_t *plan_pages(uint64_t file_pages, uint64_t count)
{
	uint64_t *pages = calloc(count, sizeof(*pages));
	uint64_t state = env.seed;
	uint64_t step = env.stride % file_pages;

	if (!pages)
		fail(1, "No memory for %" PRIu64 " touches.", count);
	for (uint64_t i = 0; i < count; i++) {
		switch (env.pattern) {
		case RANDOM:
			pages[i] = random_below(&state, file_pages);
			break;
		case SEQUENTIAL:
			pages[i] = i % file_pages;
			break;
		case REVERSE:
			pages[i] = file_pages - 1 - i % file_pages;
			break;
		case STRIDE:
			pages[i] = i ? (pages[i - 1] + step) % file_pages : 0;
			break;
		}
	}
	return pages;
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

static void print_optional(const char *name, bool known, uint64_t value)
{
	if (known)
		printf(", \"%s\": %" PRIu64, name, value);
	else
		printf(", \"%s\": null", name);
}

static void print_result(const struct counters *before,
			 const struct counters *after,
			 const struct stat *stat, uint64_t distinct)
{
	bool has_device = before->has_device && after->has_device;
	uint64_t read_ahead_kib = 0;
	bool has_read_ahead = device_read_ahead(stat->st_dev, &read_ahead_kib);

	printf("{\"probe\": \"sparse-mmap\", \"file\": ");
	json_put_string(stdout, env.file);
	printf(", \"pattern\": \"%s\"", patterns[env.pattern]);
	print_optional("stride", env.pattern == STRIDE, env.stride);
	printf(", \"count\": %" PRIu64 ", \"passes\": %" PRIu64
	       ", \"threads\": %" PRIu64 ", \"hint\": \"%s\", \"seed\": %" PRIu64
	       ", \"page_size\": %zu, \"file_bytes\": %" PRIu64,
	       work.count, env.passes, env.threads, hints[env.hint], env.seed,
	       work.page_size, (uint64_t)stat->st_size);
	print_optional("read_ahead_kb", has_read_ahead, read_ahead_kib);
	print_optional("read_bytes", has_device,
		       after->device.bytes - before->device.bytes);
	print_optional("read_requests", has_device,
		       after->device.requests - before->device.requests);
	printf(", \"pgpgin_bytes\": %" PRIu64
	       ", \"major_faults\": %ld, \"minor_faults\": %ld"
	       ", \"seconds\": %.9f, \"pages_touched\": %" PRIu64
	       ", \"floor_bytes\": %" PRIu64 "}\n",
	       (after->pgpgin_kib - before->pgpgin_kib) * 1024,
	       after->usage.ru_majflt - before->usage.ru_majflt,
	       after->usage.ru_minflt - before->usage.ru_minflt,
	       seconds_between(before, after), distinct, distinct * work.page_size);
	if (fflush(stdout))
		fail_io("The result could not be written");
}

int main(int argc, char **argv)
{
	struct counters before, after;
	uint64_t file_pages, distinct;
	struct stat stat;
	void *map;
	int fd;

	parse_arguments(argc, argv);
	if (env.create)
		create_file();
	forget_caches(env.file, env.drop_caches);

	/* The kernel keeps its read-ahead state per open file: start afresh. */
	fd = open(env.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	work.page_size = sysconf(_SC_PAGESIZE);
	file_pages = stat.st_size / work.page_size;
	if (!file_pages)
		fail(1, "%s holds less than a page.", env.file);
	map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || madvise(map, stat.st_size, advices[env.hint]))
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
