// SPDX-License-Identifier: GPL-2.0-only
/*
 * Use a model file as programs for inference do that map it: load all of it
 * forward once, then take single tensors ("experts") at random, each as a whole.
 * Tell what one of the two phases read.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"model-file"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "settings.h"

enum phase { LOAD, EXPERTS };

static const char *const phases[] = { "load", "experts", NULL };
static const char *const hints[] = { "normal", "random", NULL };
static const int advices[] = { MADV_NORMAL, MADV_RANDOM };

static struct env {
	const char *file;
	enum phase phase;
	unsigned int hint;
	uint64_t tensor;	/* pages */
	uint64_t count;		/* of tensors */
	uint64_t seed;
	uint64_t read_ahead_kib;
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

static struct probe_option options[] = {
	{ "file", "PATH", "the file to map; it is cut into tensors",
	  .text = &env.file, .needed = true },
	{ "phase", "PHASE",
	  "load (default): what the first touch of all costs; experts: what "
	  "the tensors cost after that",
	  .choice = &env.phase, .names = phases },
	{ "hint", "HINT",
	  "normal (default), or random, by madvise before that phase",
	  .choice = &env.hint, .names = hints },
	{ "tensor", "PAGES", "in each tensor",
	  .number = &env.tensor, .least = 1 },
	{ "count", "N", "so many tensors", .number = &env.count, .least = 1 },
	{ "seed", "N", "of what is random", .number = &env.seed },
	{ "read_ahead_kb", "N", "of the disk that the file is on",
	  .number = &env.read_ahead_kib },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--file PATH [OPTION]...\n"
"Map PATH, touch all of its pages forward, then those of single tensors at\n"
"random, and print as one line of JSON what one of the two made the kernel read.\n",
	.options = options,
	.notes =
"Example:\n"
"  model-file --file model.gguf --phase experts --hint random\n"
"\n"
"read_bytes and read_requests are null where the file's device keeps no\n"
"statistics (tmpfs, overlayfs, btrfs).\n",
};

static void map_model(void)
{
	struct stat stat;

	work.map = map_file(env.file, PROT_READ, &stat);
	work.page_size = sysconf(_SC_PAGESIZE);
	work.pages = stat.st_size / work.page_size;
	if (work.pages < env.tensor)
		fail(1, "%s holds no tensor of %" PRIu64 " pages.", env.file,
		     env.tensor);
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
	printf("{\"probe\": \"model-file\", \"phase\": \"%s\", \"hint\": \"%s\"",
	       phases[env.phase], hints[env.hint]);
	print_count("tensor", true, env.tensor);
	print_count("count", true, env.count);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("file_bytes", true, work.pages * work.page_size);
	print_reads(before, after);
	printf(", \"seconds\": %.9f}\n", seconds_between(before, after));
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;
	struct stat status;

	parse_options(argc, argv, &usage);
	settings_init(NULL);
	if (stat(env.file, &status))
		fail_io(env.file);
	work.device = status.st_dev;
	if (option_given(&usage, "read_ahead_kb"))
		set_read_ahead(work.device, env.read_ahead_kib);
	forget_caches(env.file, env.drop_caches);
	map_model();
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
