// SPDX-License-Identifier: GPL-2.0-only
/*
 * Let threads touch random pages of one file, or of a file each, that lie on a
 * device in memory, and tell how long that took: a fault waits for no disk there,
 * so that what threads wait for is each other. Or let one thread read in order,
 * and tell how often it finds no page while the others miss, which page out what
 * they have touched.
 *
 * The device is a copy of a disk with a file system on it.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define PROBE	"contention"
#include "files.h"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "zram.h"

#define CHUNK		(1 << 20)
#define PLACE		"/tmp/contention"
#define PAGES_A_TOUCH	16
#define STREAM_SHARE	16	/* of the file is read in order: one part of so many */
#define MOST		64	/* threads, and files of their own */

enum files { ONE, OWN, STREAM };

static const char *const files[] = { "one", "own", "stream", NULL };

static struct env {
	const char *disk;
	const char *type;
	uint64_t one_pages, own_pages;	/* as make-files counts them */
	uint64_t threads;
	enum files files;
	uint64_t read_ahead_kib;
	uint64_t seed;
} env = {
	.type = "ext4",
	.one_pages = 16384,
	.own_pages = 512,
	.threads = 1,
	.read_ahead_kib = 4,
	.seed = 1,
};

static struct {
	struct zram device;
	bool mounted;
} made;

static struct {
	size_t page_size;
	uint64_t pages;		/* of a file */
	uint64_t touches;	/* of a thread */
	const volatile char *maps[MOST];	/* of each thread */
	uint64_t *plan;
	uint64_t stream;	/* pages that are read in order */
	uint64_t stream_faults;	/* major ones of the thread that does it */
	bool stream_ended;
	dev_t device_number;
} work;

static struct probe_option options[] = {
	{ "disk", "DEVICE", "on which make-files made one file, and 64 others",
	  .text = &env.disk, .needed = true },
	{ "type", "TYPE", "of its file system", .text = &env.type },
	{ "one_pages", "N", "of 4 KiB, in the one",
	  .number = &env.one_pages, .least = PAGES_A_TOUCH },
	{ "own_pages", "N", "in each of the others",
	  .number = &env.own_pages, .least = PAGES_A_TOUCH },
	{ "threads", "N", "up to 64",
	  .number = &env.threads, .least = 1, .most = MOST },
	{ "files", "FILES",
	  "one: all threads share the touches of one file (default); own: "
	  "each has a file of its own; stream: the first reads a 16th of one "
	  "file in order, and the others touch the rest meanwhile",
	  .choice = &env.files, .names = files },
	{ "read_ahead_kb", "N", "of the device in memory",
	  .number = &env.read_ahead_kib },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--disk DEVICE [OPTION]...\n"
"Copy a disk with a file system into memory, touch one of 16 pages of its files\n"
"at random, and print as one line of JSON what that took. Needs root.\n",
	.options = options,
	.notes =
"work is in touches.\n",
};

static void undo(void)
{
	if (made.mounted)
		umount2(PLACE, MNT_DETACH);
	made.mounted = false;
	zram_remove(&made.device);
}

/* Zeros are not copied: what was never written reads as zeros. */
static void copy_disk(void)
{
	char *chunk = aligned_alloc(CHUNK, CHUNK);
	int from = open(env.disk, O_RDONLY | O_DIRECT | O_CLOEXEC), to;
	off_t size, at;

	if (from < 0)
		fail_io(env.disk);
	size = lseek(from, 0, SEEK_END);
	zram_make(&made.device, size);
	zram_setting(&made.device, "queue/read_ahead_kb", env.read_ahead_kib);
	to = open(made.device.path, O_WRONLY | O_CLOEXEC);
	if (!chunk || to < 0)
		fail_io(made.device.path);
	for (at = 0; at < size;) {
		ssize_t n = pread(from, chunk, CHUNK, at);

		if (n <= 0)
			fail_io(env.disk);
		if ((*chunk || memcmp(chunk, chunk + 1, n - 1)) &&
		    pwrite(to, chunk, n, at) != n)
			fail_io(made.device.path);
		at += n;
	}
	if (fsync(to))
		fail_io(made.device.path);
	close(from);
	close(to);
	free(chunk);
}

static void mount_copy(void)
{
	if (mkdir(PLACE, 0700) && errno != EEXIST)
		fail_io(PLACE);
	if (mount(made.device.path, PLACE, env.type, MS_RDONLY, NULL))
		fail_io(made.device.path);
	made.mounted = true;
}

static const volatile char *map_number(uint64_t number)
{
	uint64_t count = env.files == OWN ? MOST : 1;
	uint64_t pages = env.files == OWN ? env.own_pages : env.one_pages;
	struct stat stat;
	char path[96];
	void *map;

	files_path(path, sizeof(path), PLACE, count, pages, number);
	map = map_file(path, PROT_READ, &stat);
	work.device_number = stat.st_dev;
	work.pages = stat.st_size / work.page_size;
	return map;
}

/* As long as they are mapped, the device cannot go. */
static void unmap_files(void)
{
	for (uint64_t t = 0; t < (env.files == OWN ? env.threads : 1); t++)
		munmap((void *)work.maps[t], work.pages * work.page_size);
}

static void prepare(void)
{
	uint64_t state = env.seed;

	work.page_size = sysconf(_SC_PAGESIZE);
	copy_disk();
	mount_copy();
	for (uint64_t t = 0; t < env.threads; t++)
		work.maps[t] = env.files == OWN || !t ? map_number(t) :
							 work.maps[0];
	work.stream = work.pages / STREAM_SHARE;
	if (!work.stream)
		fail(1, "There are fewer than %d pages.", STREAM_SHARE);
	if (env.files == STREAM)
		return;
	work.touches = work.pages / PAGES_A_TOUCH;
	if (env.files == ONE)
		work.touches /= env.threads;
	if (!work.touches)
		fail(1, "There are fewer touches than threads.");
	work.plan = calloc(env.threads * work.touches, sizeof(*work.plan));
	if (!work.plan)
		fail(1, "No memory for %" PRIu64 " touches.",
		     env.threads * work.touches);
	for (uint64_t i = 0; i < env.threads * work.touches; i++)
		work.plan[i] = random_below(&state, work.pages);
}

static void touch_page(uint64_t thread, uint64_t page)
{
	(void)work.maps[thread][page * work.page_size];
}

static void read_in_order(void)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	for (uint64_t page = 0; page < work.stream; page++)
		touch_page(0, page);
	getrusage(RUSAGE_THREAD, &after);
	work.stream_faults = after.ru_majflt - before.ru_majflt;
	__atomic_store_n(&work.stream_ended, true, __ATOMIC_RELEASE);
}

/* Whatever is touched goes at once, with its block, so that it is missed again. */
static void touch_beside(uint64_t thread)
{
	uint64_t first = work.stream / PAGES_A_TOUCH + 1;
	uint64_t blocks = work.pages / PAGES_A_TOUCH - first;
	uint64_t state = env.seed + (thread << 32);

	while (!__atomic_load_n(&work.stream_ended, __ATOMIC_ACQUIRE)) {
		uint64_t page = (first + random_below(&state, blocks)) * PAGES_A_TOUCH;

		touch_page(thread, page);
		madvise((void *)(work.maps[thread] + page * work.page_size),
			PAGES_A_TOUCH * work.page_size, MADV_PAGEOUT);
	}
}

static void touch_planned(uint64_t thread)
{
	const uint64_t *plan = work.plan + thread * work.touches;

	for (uint64_t i = 0; i < work.touches; i++)
		touch_page(thread, plan[i]);
}

static void touch(uint64_t thread)
{
	if (env.files != STREAM)
		touch_planned(thread);
	else if (thread)
		touch_beside(thread);
	else
		read_in_order();
}

static void print_result(const struct counters *before,
			 const struct counters *after)
{
	printf("{\"probe\": \"contention\", \"files\": \"%s\"",
	       files[env.files]);
	print_count("threads", true, env.threads);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("work", true, env.files == STREAM ? work.stream :
						env.threads * work.touches);
	if (env.files == STREAM)
		print_count("stream_faults", true, work.stream_faults);
	print_reads(before, after);
	printf(", \"cpu_seconds\": %.6f, \"seconds\": %.9f}\n",
	       cpu_seconds(&after->usage) - cpu_seconds(&before->usage),
	       seconds_between(before, after));
	flush_result();
}

int main(int argc, char **argv)
{
	struct counters before, after;

	parse_options(argc, argv, &usage);
	settings_init(undo);
	prepare();
	measure(env.threads, touch, work.device_number, &before, &after);
	unmap_files();
	print_result(&before, &after);
	return 0;
}
