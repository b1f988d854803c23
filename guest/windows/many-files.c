// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map many files at once, as storage engines do, touch pages of all of them, and
 * tell what that made the kernel read.
 *
 * All accesses are worked out before the clock starts, so that the measured
 * loop does nothing but touch.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"many-files"
#include "files.h"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "settings.h"

enum access_kind { SPARSE, WHOLE, MIXED };

static const char *const accesses[] = { "sparse", "whole", "mixed", NULL };

static const char *const access_helps[] = {
	"pages of all files at random",
	"each file page by page, one after the other",
	"the same with every second one, and between these, evenly, pages of "
	"the others at random",
};

static struct env {
	const char *directory;
	uint64_t files;
	uint64_t file_pages;	/* as make-files counts them */
	enum access_kind access;
	uint64_t touches;	/* at random */
	uint64_t read_ahead_kib;
	uint64_t seed;
	bool drop_caches;
} env = {
	.touches = 8000,
	.seed = 1,
};

static struct {
	const volatile char **maps;
	uint64_t file_pages;	/* of this machine */
	size_t page_size;
	dev_t device;
	uint64_t *pages;	/* of all files, one after the other, in order */
	uint64_t count;
} work;

static struct probe_option options[] = {
	{ "directory", "PATH", "what make-files was given",
	  .text = &env.directory },
	{ "files", "N", "how many there are", .number = &env.files, .least = 1 },
	{ "file_pages", "N", "of 4 KiB, in each",
	  .number = &env.file_pages, .least = 1 },
	{ "access", "ACCESS", "what is touched:", .choice = &env.access,
	  .names = accesses, .whats = access_helps },
	{ "touches", "N", "at random", .number = &env.touches, .least = 1 },
	{ "read_ahead_kb", "N", "of the disk that the files are on",
	  .number = &env.read_ahead_kib },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--directory PATH --files N --file_pages N [OPTION]...\n"
"Map all files of PATH/FILESxPAGES, which make-files makes, touch some of their\n"
"pages, and print as one line of JSON what that made the kernel read.\n",
	.options = options,
	.notes =
"Example:\n"
"  make-files . 400 1024\n"
"  many-files --directory . --files 400 --file_pages 1024 --access mixed\n"
"\n"
"Files are closed once they are mapped. floor_bytes is what the pages that are\n"
"touched hold. read_bytes and read_requests are null where the files' device\n"
"keeps no statistics.\n",
};

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	if (!env.directory || !env.files || !env.file_pages)
		fail(2, "--directory, --files or --file_pages is missing; see --help.");
	if (env.access == MIXED && env.files < 2)
		fail(2, "--access mixed takes two files.");
}

static void path_of(char *path, size_t size, uint64_t file)
{
	files_path(path, size, env.directory, env.files, env.file_pages, file);
}

static void find_device(void)
{
	struct stat stat;

	if (lstat(env.directory, &stat))
		fail_io(env.directory);
	work.device = stat.st_dev;
	if (option_given(&usage, "read_ahead_kb"))
		set_read_ahead(work.device, env.read_ahead_kib);
}

static void map_files(void)
{
	const size_t bytes = env.file_pages * FILES_PAGE;
	struct stat stat;
	char path[4096];

	for (uint64_t i = 0; i < env.files; i++) {
		path_of(path, sizeof(path), i);
		work.maps[i] = map_file(path, PROT_READ, &stat);
		if ((size_t)stat.st_size != bytes)
			fail(1, "%s does not hold %" PRIu64 " pages.", path,
			     env.file_pages);
	}
}

static void prepare(void)
{
	char path[4096];

	work.page_size = sysconf(_SC_PAGESIZE);
	work.file_pages = env.file_pages * FILES_PAGE / work.page_size;
	if (!work.file_pages)
		fail(1, "Files of %" PRIu64 " pages of 4 KiB hold less than one of %zu bytes.",
		     env.file_pages, work.page_size);
	work.maps = calloc(env.files, sizeof(*work.maps));
	work.pages = calloc(env.files * work.file_pages + env.touches,
			    sizeof(*work.pages));
	if (!work.maps || !work.pages)
		fail(1, "No memory for %" PRIu64 " files of %" PRIu64 " pages.",
		     env.files, work.file_pages);
	for (uint64_t i = 0; i < env.files; i++) {
		path_of(path, sizeof(path), i);
		forget_caches(path, env.drop_caches && i + 1 == env.files);
	}
	find_device();
	map_files();
}

static void plan(void)
{
	const uint64_t step = env.access == MIXED ? 2 : 1;
	uint64_t whole = 0, left = 0, state = env.seed;

	if (env.access != WHOLE)
		left = env.touches;
	if (env.access != SPARSE)
		whole = (env.files + step - 1) / step * work.file_pages;
	for (uint64_t i = 0; left || i < whole;) {
		uint64_t file;

		/* Is it the turn of a random one? */
		if (left && (i == whole ||
			     i * env.touches >= (env.touches - left) * whole)) {
			file = random_below(&state, env.files / step) * step +
			       step - 1;
			work.pages[work.count++] =
				file * work.file_pages +
				random_below(&state, work.file_pages);
			left--;
		} else {
			file = i / work.file_pages * step;
			work.pages[work.count++] =
				file * work.file_pages + i % work.file_pages;
			i++;
		}
	}
}

static uint64_t count_distinct(void)
{
	bool *seen = calloc(env.files * work.file_pages, sizeof(*seen));
	uint64_t distinct = 0;

	if (!seen)
		fail(1, "No memory to tell pages apart.");
	for (uint64_t i = 0; i < work.count; i++) {
		distinct += !seen[work.pages[i]];
		seen[work.pages[i]] = true;
	}
	free(seen);
	return distinct;
}

static void touch(uint64_t thread)
{
	(void)thread;
	for (uint64_t i = 0; i < work.count; i++) {
		uint64_t file = work.pages[i] / work.file_pages;
		uint64_t page = work.pages[i] % work.file_pages;

		(void)work.maps[file][page * work.page_size];
	}
}

static void print_result(const struct counters *before,
			 const struct counters *after)
{
	printf("{\"probe\": \"many-files\", \"access\": \"%s\"",
	       accesses[env.access]);
	print_count("files", true, env.files);
	print_count("file_pages", true, env.file_pages);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("touches", true, work.count);
	print_reads(before, after);
	print_count("floor_bytes", true, count_distinct() * work.page_size);
	printf(", \"cpu_seconds\": %.6f, \"seconds\": %.9f}\n",
	       cpu_seconds(&after->usage) - cpu_seconds(&before->usage),
	       seconds_between(before, after));
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;

	parse_arguments(argc, argv);
	settings_init(NULL);
	prepare();
	plan();
	measure(1, touch, work.device, &before, &after);
	print_result(&before, &after);
	return 0;
}
