// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a real program from a disk that nothing is cached of, and tell what that
 * made the kernel read, how its files came to be mapped, and what memory it
 * took.
 *
 * The disk holds a whole root directory. The program sees that alone, with a
 * /tmp in memory, and sits in a control group of its own.
 */
#define _GNU_SOURCE
#include <dirent.h>

#define PROBE "real-text"
#include "folios.h"
#include "fragment.h"
#include "json.h"
#include "options.h"
#include "root.h"
#include "tracer.h"

static struct program {
	const char *name;
	const char *what;	/* for --help */
	char *argv[4];
} programs[] = {
	{ "gcc", "compile the project in /src there",
	  { "make", "--silent", "--directory=/src" } },
	{ "python", "run /src/program.py", { "python3", "/src/program.py" } },
	{ 0 }
};

enum memory { AS_IT_IS, FRESH, FRAGMENTED };

static const char *const memories[] = {
	"as-it-is", "fresh", "fragmented", NULL
};

static const char *const memory_helps[] = {
	"free memory is not touched",
	"free memory is put together again",
	"it is broken up as with --fragment 0.98",
};

static struct env {
	const char *root;
	struct program *program;
	const char *floor;	/* a file */
	bool drop_caches;
	enum memory memory;
	double fragment;	/* of the free memory; 0 is not at all */
	uint64_t seed;
} env = {
	.seed = 1,
};

/* Counters of the whole machine. */
struct state {
	struct device_reads device;
	uint64_t cached_pages;
	struct timespec time;
	bool has_folios;
	uint64_t folios, fallbacks;
	struct rusage usage;	/* of all that has run */
};

/* All that is known about one run. */
struct run {
	struct state before, after;
	uint64_t peak_memory;
	double free_in_large_blocks;
	struct folios folios;
	struct timespec looking;	/* how long that took */
};

/* A number of the kernel's that is changed for a while, and at most until we end. */
struct setting {
	char path[96];
	uint64_t wanted;
	bool changed;
	uint64_t before;
};

static struct setting read_ahead;

/*
 * While memory is being broken up, the kernel's reserve is less than what is
 * left alone of it, which is free for the program.
 */
static struct setting reserve = {
	.path = "/proc/sys/vm/min_free_kbytes", .wanted = 1024,
};

/*
 * For as long as it is in pieces: compaction does not move what is locked, and
 * does not work for the sake of order, at times of its own. What the program
 * itself makes it do, it does.
 */
static struct setting compaction[] = {
	{ .path = "/proc/sys/vm/compact_unevictable_allowed" },
	{ .path = "/proc/sys/vm/compaction_proactiveness" },
};
#define COMPACTION_SETTINGS	(sizeof(compaction) / sizeof(compaction[0]))

static struct probe_option options[] = {
	{ "root", "DIRECTORY", "the program's root directory",
	  .text = &env.root, .needed = true },
	{ "program", "PROGRAM", "what is run:", .row = &env.program,
	  ROWS_OF(programs), .needed = true },
	{ "drop-caches", NULL, "empty all of the kernel's caches before",
	  .flag = &env.drop_caches },
	{ "floor", "FILE",
	  "print as well the least that can be read: what a run reads whose "
	  "every page is used. It is made before if FILE does not know of "
	  "one, and noted there",
	  .text = &env.floor },
	{ "memory", "STATE", "of free memory, before:",
	  .choice = &env.memory, .names = memories, .whats = memory_helps },
	{ "fragment", "SHARE",
	  "before, pin a page in each aligned 64 KiB (with 64 KiB pages: 2 "
	  "MiB) of this share of the free memory",
	  .fraction = &env.fragment },
	{ "seed", "N", "decides which pages are pinned", .number = &env.seed },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--root DIRECTORY --program PROGRAM [OPTION]...\n"
"Run a program from the file system that is mounted on DIRECTORY, and print as\n"
"one line of JSON what that made the kernel read. Needs root.\n",
	.options = options,
	.notes =
"Example:\n"
"  real-text --root /data --program python --drop-caches --floor /tmp/floor\n"
"\n"
"cached_bytes is by how much the page cache grew. file_alloc and file_fallback\n"
"are null where the kernel does not count large folios of files.\n"
"free_in_large_blocks is the share of free memory that was in aligned blocks of\n"
"64 KiB (with 64 KiB pages: 2 MiB) or more when the program was started.\n",
};

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	if (env.memory == FRAGMENTED && !env.fragment)
		env.fragment = 0.98;
}

/* A file of /proc or /sys with one number. */
static bool read_number(const char *path, uint64_t *value)
{
	FILE *stream = fopen(path, "re");
	bool found;

	if (!stream)
		return false;
	found = fscanf(stream, "%" SCNu64, value) == 1;
	fclose(stream);
	return found;
}

static bool write_number(const char *path, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return write_word(path, text);
}

static void change(struct setting *setting)
{
	if (!read_number(setting->path, &setting->before) ||
	    !write_number(setting->path, setting->wanted))
		fail_io(setting->path);
	setting->changed = true;
}

/* Only complains: when we end, it is too late to fail. */
static void restore(struct setting *setting)
{
	if (!setting->changed)
		return;
	setting->changed = false;
	if (!write_number(setting->path, setting->before))
		fprintf(stderr, PROBE ": %s is no longer %" PRIu64 ": %s.\n",
			setting->path, setting->before, strerror(errno));
}

static void restore_all(void)
{
	restore(&read_ahead);
	restore(&reserve);
	for (size_t i = 0; i < COMPACTION_SETTINGS; i++)
		restore(&compaction[i]);
}

/* Large folios of files that were and were not to be had, of any size. */
static bool read_folios(uint64_t *folios, uint64_t *fallbacks)
{
	static const char place[] = "/sys/kernel/mm/transparent_hugepage";
	DIR *sizes = opendir(place);
	struct dirent *entry;
	bool found = false;

	*folios = *fallbacks = 0;
	if (!sizes)
		return false;
	while ((entry = readdir(sizes))) {
		char path[400];
		uint64_t value;

		snprintf(path, sizeof(path), "%s/%s/stats/file_alloc", place,
			 entry->d_name);
		if (!read_number(path, &value))
			continue;
		found = true;
		*folios += value;
		snprintf(path, sizeof(path), "%s/%s/stats/file_fallback", place,
			 entry->d_name);
		if (read_number(path, &value))
			*fallbacks += value;
	}
	closedir(sizes);
	return found;
}

static void read_state(struct state *state, dev_t device)
{
	uint64_t file_pages, shmem_pages;

	device_settle(device);
	if (!device_reads(device, &state->device))
		fail(1, "%s is not on a block device.", env.root);
	if (!vmstat("nr_file_pages", &file_pages) ||
	    !vmstat("nr_shmem", &shmem_pages))
		fail(1, "/proc/vmstat has no nr_file_pages or nr_shmem.");
	state->cached_pages = file_pages - shmem_pages;
	state->has_folios = read_folios(&state->folios, &state->fallbacks);
	getrusage(RUSAGE_CHILDREN, &state->usage);
	clock_gettime(CLOCK_MONOTONIC, &state->time);
}

/* Where the read-ahead limit of the disk is set. */
static void find_read_ahead(dev_t device)
{
	static const char *const queues[] = { "queue", "../queue" };

	/* That of the disk, for a partition. */
	for (size_t i = 0; i < 2; i++) {
		snprintf(read_ahead.path, sizeof(read_ahead.path),
			 "/sys/dev/block/%u:%u/%s/read_ahead_kb",
			 major(device), minor(device), queues[i]);
		if (!access(read_ahead.path, F_OK))
			break;
	}
}

/* In the child that is to become the program. */
static void enter_root(void)
{
	root_enter(env.root);
}

static void look(pid_t tid, void *context)
{
	struct timespec start, end;
	struct run *run = context;

	clock_gettime(CLOCK_MONOTONIC, &start);
	folios_add(&run->folios, tid);
	clock_gettime(CLOCK_MONOTONIC, &end);
	run->looking.tv_sec += end.tv_sec - start.tv_sec;
	run->looking.tv_nsec += end.tv_nsec - start.tv_nsec;
}

/* Run the program to its end, with all that is counted around it. */
static void run_program(struct run *run, dev_t device)
{
	int status;

	cgroup_make(0);
	root_mount(env.root, "tmpfs", "tmpfs", "tmp", 0);
	run->free_in_large_blocks = free_in_large_blocks();
	read_state(&run->before, device);
	status = trace_command(env.program->argv, enter_root, look, run);
	read_state(&run->after, device);
	if (status)
		fail(1, "%s ended with status %d.", env.program->name, status);
	run->peak_memory = cgroup_number("memory.peak");
	root_umount(env.root, "tmp");
	cgroup_remove();
}

static void init_run(struct run *run)
{
	enum folios_status status;

	memset(run, 0, sizeof(*run));
	status = folios_init(&run->folios);
	if (status)
		fail(1, "%s", folios_sentence(status));
	/* One column of the published table, whatever contpte takes here. */
	run->folios.nr_blocks = run->folios.page_size < 64 << 10;
	run->folios.block_orders[0] =
		folio_order((64 << 10) / run->folios.page_size);
}

/* The bytes that the program needs: read without a page of read-ahead. */
static uint64_t measure_floor(dev_t device)
{
	struct run run;

	init_run(&run);
	forget_caches(env.root, true);
	change(&read_ahead);
	run_program(&run, device);
	restore(&read_ahead);
	return run.after.device.bytes - run.before.device.bytes;
}

/* The same, from the file that remembers it: it takes as long as a run does. */
static uint64_t find_floor(dev_t device)
{
	FILE *stream = fopen(env.floor, "a+e");
	uint64_t bytes;
	char name[16];

	if (!stream)
		fail_io(env.floor);
	rewind(stream);
	while (fscanf(stream, "%15s %" SCNu64, name, &bytes) == 2) {
		if (!strcmp(name, env.program->name)) {
			fclose(stream);
			return bytes;
		}
	}
	bytes = measure_floor(device);
	fprintf(stream, "%s %" PRIu64 "\n", env.program->name, bytes);
	if (fclose(stream))
		fail_io(env.floor);
	return bytes;
}

/* A row of the table; a size of one page or less cannot be a folio's. */
static void print_row(const struct folios *folios, const char *name,
		      const uint64_t *pages, unsigned int kib)
{
	uint64_t size = (uint64_t)kib * 1024 / folios->page_size;

	if (size < 2)
		printf(", \"%s_%ukb\": null", name, kib);
	else
		printf(", \"%s_%ukb\": %.6f", name, kib, folios->mapped ?
		       (double)pages[folio_order(size)] / folios->mapped : 0);
}

static void print_folios(const struct folios *folios)
{
	static const unsigned int sizes[] = { 16, 32, 64, 128 };
	bool has_blocks = folios->nr_blocks;

	for (size_t i = 0; i < 4; i++)
		print_row(folios, "file_thp_aligned", folios->aligned,
			  sizes[i]);
	for (size_t i = 0; i < 4; i++)
		print_row(folios, "file_thp_unaligned", folios->unaligned,
			  sizes[i]);
	printf(", \"file_cont_aligned_64kb\": ");
	if (has_blocks)
		printf("%.6f", folios->mapped ?
		       (double)folios->blocks[0] / folios->mapped : 0);
	else
		printf("null");
	printf(", \"contpte_share\": %.6f", folios->text ?
	       (double)folios->text_in_contpte / folios->text : 0);
	print_count("tlb_entries", true, folios->tlb.ours);
	print_count("tlb_entries_uncoalesced", true, folios->tlb.uncoalesced);
	print_count("mapped_bytes", true, folios->mapped * folios->page_size);
	print_count("mapped_text_bytes", true,
		    folios->text * folios->page_size);
}

static double seconds(const struct run *run)
{
	const struct timespec *from = &run->before.time;
	const struct timespec *to = &run->after.time;

	return to->tv_sec - from->tv_sec - run->looking.tv_sec +
	       (to->tv_nsec - from->tv_nsec - run->looking.tv_nsec) * 1e-9;
}

static void print_result(const struct run *run, uint64_t floor)
{
	const struct state *before = &run->before, *after = &run->after;
	int64_t cached = after->cached_pages - before->cached_pages;

	printf("{\"probe\": \"real-text\", \"program\": \"%s\", \"root\": ",
	       env.program->name);
	json_put_string(stdout, env.root);
	printf(", \"fragment\": %g, \"free_in_large_blocks\": %.6f"
	       ", \"page_size\": %zu",
	       env.fragment, run->free_in_large_blocks,
	       run->folios.page_size);
	print_count("read_bytes", true,
		    after->device.bytes - before->device.bytes);
	print_count("floor_bytes", env.floor, floor);
	print_count("read_requests", true,
		    after->device.requests - before->device.requests);
	print_count("major_faults", true,
		    after->usage.ru_majflt - before->usage.ru_majflt);
	print_count("minor_faults", true,
		    after->usage.ru_minflt - before->usage.ru_minflt);
	printf(", \"seconds\": %.6f", seconds(run));
	print_count("cached_bytes", true,
		    cached > 0 ? cached * run->folios.page_size : 0);
	print_count("peak_memory_bytes", true, run->peak_memory);
	print_count("file_alloc", after->has_folios,
		    after->folios - before->folios);
	print_count("file_fallback", after->has_folios,
		    after->fallbacks - before->fallbacks);
	print_folios(&run->folios);
	printf("}\n");
	flush_result();
}

int main(int argc, char **argv)
{
	uint64_t floor = 0;
	struct run run;
	dev_t device;

	parse_arguments(argc, argv);
	atexit(restore_all);
	device = root_prepare(env.root);
	find_read_ahead(device);
	if (env.floor)
		floor = find_floor(device);
	init_run(&run);
	forget_caches(env.root, env.drop_caches);
	if (env.memory == FRESH)
		gather_memory();
	if (env.fragment) {
		for (size_t i = 0; i < COMPACTION_SETTINGS; i++)
			change(&compaction[i]);
		change(&reserve);
		fragment_memory(env.fragment, env.seed);
		restore(&reserve);
	}
	run_program(&run, device);
	print_result(&run, floor);
	return 0;
}
