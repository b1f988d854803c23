// SPDX-License-Identifier: GPL-2.0-only
/*
 * Use a model file as programs for inference do that map it: load all of it
 * forward once, then take single tensors ("experts") at random, each as a whole.
 * Tell what one of the two phases read.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"model-file"
#include "json.h"
#include "probe.h"
#include "settings.h"

enum phase { LOAD, EXPERTS };

static const char *const phases[] = { "load", "experts", NULL };
static const char *const hints[] = { "normal", "random", NULL };
static const int advices[] = { MADV_NORMAL, MADV_RANDOM };

static struct env {
	const char *file;
	int phase;
	int hint;
	uint64_t tensor;	/* pages */
	uint64_t count;		/* of tensors */
	uint64_t seed;
	const char *read_ahead_kb;
	bool drop_caches;
} env = {
	.tensor = 1024,
	.count = 32,
	.seed = 1,
};

static struct {
	const volatile char *map;
	size_t page_size;
	uint64_t pages;		/* of the file */
	dev_t device;
} work;

static const char usage[] =
"Usage: model-file --file PATH [OPTION]...\n"
"Map PATH, touch all of its pages forward, then those of single tensors at random,\n"
"and print as one line of JSON what one of the two made the kernel read.\n"
"\n"
"  --file PATH         the file to map; it is cut into tensors\n"
"  --phase PHASE       load (default): what the first touch of all costs; experts:\n"
"                      what the tensors cost after that\n"
"  --hint HINT         normal (default), or random, by madvise before that phase\n"
"  --tensor PAGES      in each tensor (1024)\n"
"  --count N           so many tensors (32)\n"
"  --seed N            of what is random (1)\n"
"  --read_ahead_kb N   of the disk that the file is on\n"
"  --drop-caches       empty all of the kernel's caches before, not only those\n"
"                      of the file; needs root\n"
"  --help              print this text\n"
"\n"
"Example:\n"
"  model-file --file model.gguf --phase experts --hint random\n"
"\n"
"read_bytes and read_requests are null where the file's device keeps no\n"
"statistics (tmpfs, overlayfs, btrfs).\n";

static void parse_arguments(int argc, char **argv)
{
	enum { FILE_NAME, PHASE, HINT, TENSOR, COUNT, SEED,
	       READ_AHEAD_KB, DROP_CACHES, HELP };
	static const struct option options[] = {
		{ "file", required_argument, NULL, FILE_NAME },
		{ "phase", required_argument, NULL, PHASE },
		{ "hint", required_argument, NULL, HINT },
		{ "tensor", required_argument, NULL, TENSOR },
		{ "count", required_argument, NULL, COUNT },
		{ "seed", required_argument, NULL, SEED },
		{ "read_ahead_kb", required_argument, NULL, READ_AHEAD_KB },
		{ "drop-caches", no_argument, NULL, DROP_CACHES },
		{ "help", no_argument, NULL, HELP },
		{ 0 }
	};
	int option, index;

	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		const char *name = option == '?' ? NULL : options[index].name;

		switch (option) {
		case FILE_NAME:
			env.file = optarg;
			break;
		case PHASE:
			env.phase = parse_name(name, optarg, phases);
			break;
		case HINT:
			env.hint = parse_name(name, optarg, hints);
			break;
		case TENSOR:
			env.tensor = parse_number(name, optarg, 1);
			break;
		case COUNT:
			env.count = parse_number(name, optarg, 1);
			break;
		case SEED:
			env.seed = parse_number(name, optarg, 0);
			break;
		case READ_AHEAD_KB:
			parse_number(name, optarg, 0);
			env.read_ahead_kb = optarg;
			break;
		case DROP_CACHES:
			env.drop_caches = true;
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
}

/* Files get their window from the device when they are opened. */
static void set_read_ahead(void)
{
	struct stat status;
	char knob[80];

	if (!env.read_ahead_kb)
		return;
	if (stat(env.file, &status))
		fail_io(env.file);
	snprintf(knob, sizeof(knob), "/sys/dev/block/%u:%u/queue/read_ahead_kb",
		 major(status.st_dev), minor(status.st_dev));
	settings_init(NULL);
	if (!setting(knob, env.read_ahead_kb))
		fail_io(knob);
}

static void map_file(void)
{
	int fd = open(env.file, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *map;

	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	work.page_size = sysconf(_SC_PAGESIZE);
	work.device = stat.st_dev;
	work.pages = stat.st_size / work.page_size;
	if (work.pages < env.tensor)
		fail(1, "%s holds no tensor of %" PRIu64 " pages.", env.file,
		     env.tensor);
	map = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail_io(env.file);
	close(fd);
	work.map = map;
}

static void give_hint(void)
{
	if (madvise((void *)work.map, work.pages * work.page_size,
		    advices[env.hint]))
		fail_io("madvise");
}

static void touch(uint64_t first, uint64_t count)
{
	for (uint64_t page = first; page < first + count; page++)
		(void)work.map[page * work.page_size];
}

static void take_experts(void)
{
	uint64_t tensors = work.pages / env.tensor, state = env.seed;

	for (uint64_t i = 0; i < env.count; i++)
		touch(random_below(&state, tensors) * env.tensor, env.tensor);
}

static void print_result(const struct counters *before,
			 const struct counters *after)
{
	bool known = before->has_device && after->has_device;

	printf("{\"probe\": \"model-file\", \"phase\": \"%s\", \"hint\": \"%s\"",
	       phases[env.phase], hints[env.hint]);
	print_count("tensor", true, env.tensor);
	print_count("count", true, env.count);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("file_bytes", true, work.pages * work.page_size);
	print_count("read_bytes", known,
		    after->device.bytes - before->device.bytes);
	print_count("read_requests", known,
		    after->device.requests - before->device.requests);
	print_count("major_faults", true,
		    after->usage.ru_majflt - before->usage.ru_majflt);
	print_count("minor_faults", true,
		    after->usage.ru_minflt - before->usage.ru_minflt);
	printf(", \"seconds\": %.9f}\n", seconds_between(before, after));
	if (fflush(stdout))
		fail_io("The result could not be written");
}

int main(int argc, char **argv)
{
	struct counters before, after;

	parse_arguments(argc, argv);
	set_read_ahead();
	forget_caches(env.file, env.drop_caches);
	map_file();
	if (env.phase == EXPERTS)
		touch(0, work.pages);
	give_hint();
	read_device(&before, work.device);
	read_process(&before);
	if (env.phase == LOAD)
		touch(0, work.pages);
	else
		take_experts();
	read_process(&after);
	read_device(&after, work.device);
	print_result(&before, &after);
	return 0;
}
