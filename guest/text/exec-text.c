// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map a file of nothing but return instructions as a program maps its text,
 * call into its pages in random order, and tell what that made the kernel read
 * and how the text is mapped then.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PROBE	"exec-text"
#include "folios.h"
#include "json.h"
#include "mapped.h"
#include "options.h"
#include "stub.h"

#define CACHE_LINE	64

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

enum phase { COLD, PAGED_OUT, RANDOM };

static const char *const phases[] = { "cold", "paged-out", "random", NULL };

static const char *const phase_helps[] = {
	"call into each page once, none in memory yet",
	"the same after all of them were called into, and reclaimed by "
	"MADV_PAGEOUT, which is not measured",
	"first call into each page in order, which is not measured, then into "
	"pages at random, which misses the TLB",
};

static const char *const hints[] = {
	"none", "huge", "random", "sequential", NULL
};

static const int advices[] = {
	MADV_NORMAL, MADV_HUGEPAGE, MADV_RANDOM, MADV_SEQUENTIAL
};

static struct env {
	const char *file;
	uint64_t size;		/* bytes; 0 is the file's */
	enum phase phase;
	unsigned int hint;
	uint64_t threads;
	uint64_t calls;		/* 0 is unset */
	uint64_t seed;
	double fraction;	/* of the pages; 0 is unset */
	bool drop_caches;
} env = {
	.threads = 1,
	.seed = 1,
};

/* What all threads share while they call. */
static struct {
	const char *map;
	size_t page_size;
	uint64_t pages;
	uint64_t calls;
	const uint32_t *order;	/* the page of each call */
} work;

static struct probe_option options[] = {
	{ "file", "PATH", "the file; made if it is missing or too short",
	  .text = &env.file, .needed = true },
	{ "size", "BYTES",
	  "of text to map (suffixes K, M, G); by default the whole file",
	  .bytes = &env.size },
	{ "phase", "PHASE", "what is measured:", .choice = &env.phase,
	  .names = phases, .whats = phase_helps },
	{ "fraction", "F",
	  "with cold and paged-out, call into this share of the pages only",
	  .fraction = &env.fraction },
	{ "calls", "N", "with random, the number of calls (that of the pages)",
	  .number = &env.calls, .least = 1 },
	{ "hint", "HINT",
	  "none (default), huge, random or sequential, by madvise",
	  .choice = &env.hint, .names = hints },
	{ "threads", "N", "deal the calls to N threads in turn",
	  .number = &env.threads, .least = 1, .most = MAX_THREADS },
	{ "seed", "N", "of the random order", .number = &env.seed },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--file PATH [OPTION]...\n"
"Map PATH, a file of return instructions, as program text, call into its pages\n"
"at random, and print as one line of JSON what that made the kernel read, and\n"
"in which folios the text is mapped then.\n",
	.options = options,
	.notes =
"Examples:\n"
"  exec-text --file /var/tmp/text --size 512M\n"
"      what a cold start costs\n"
"  exec-text --file /var/tmp/text --phase random --hint huge\n"
"      what TLB misses cost in huge pages\n"
"\n"
"Left out is what cannot be known: reads where the file's device keeps no\n"
"statistics, folios if this is not run as root.\n",
};

static void on_bad_text(int signal)
{
	static const char unread[] =
		PROBE ": A page could not be read: the file became shorter or its device failed.\n";
	static const char no_stub[] =
		PROBE ": The file does not hold return instructions throughout.\n";
	ssize_t ignored = signal == SIGBUS ?
		write(2, unread, sizeof(unread) - 1) :
		write(2, no_stub, sizeof(no_stub) - 1);

	(void)ignored;
	_exit(1);
}

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	if (env.phase != RANDOM && env.calls)
		fail(2, "--calls is for --phase random only.");
	if (env.phase == RANDOM && env.fraction)
		fail(2, "--fraction is not for --phase random.");
	if (env.size && env.size < work.page_size)
		fail(2, "--size is to be a page at least.");
}

/* Whether a page's worth of the file, or what there is of it, is stubs. */
static bool is_stubs(int fd, off_t offset)
{
	unsigned char bytes[4096];
	ssize_t size = pread(fd, bytes, sizeof(bytes), offset);

	if (size < 0)
		fail_io(env.file);
	for (ssize_t i = 0; i < size; i++)
		if (bytes[i] != stub[(offset + i) % STUB_BYTES])
			return false;
	return true;
}

static void fill_with_stubs(uint64_t wanted)
{
	static unsigned char stubs[1 << 20];

	_Static_assert(sizeof(stubs) % STUB_BYTES == 0, "it holds whole stubs");
	for (size_t i = 0; i < sizeof(stubs); i++)
		stubs[i] = stub[i % STUB_BYTES];
	fill_file(env.file, stubs, sizeof(stubs), wanted);
}

/*
 * See to a file of stubs that is large enough. One that begins and ends with
 * stubs is taken for such a file; nothing else is ever written to.
 */
static void prepare_file(void)
{
	int fd = open(env.file, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	off_t tail;

	if (fd < 0 && errno == ENOENT && env.size)
		fd = open(env.file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	if (!S_ISREG(stat.st_mode))
		fail(1, "%s is no regular file.", env.file);
	tail = stat.st_size > 4096 ? stat.st_size - 4096 : 0;
	if (!is_stubs(fd, 0) || !is_stubs(fd, tail))
		fail(1, "%s holds something else than return instructions; it is left alone.",
		     env.file);
	close(fd);
	if (!env.size)
		env.size = stat.st_size;
	if ((uint64_t)stat.st_size < env.size)
		fill_with_stubs(env.size);
}

/* Map the text at an address that suits every size of folio. */
static void map_text(int fd, uint64_t bytes)
{
	uint64_t alignment = pmd_bytes(work.page_size);
	char *place = mmap(NULL, bytes + alignment, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *map;

	if (place == MAP_FAILED)
		fail_io("No addresses for the text");
	place += -(uintptr_t)place % alignment;
	map = mmap(place, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
		   fd, 0);
	if (map == MAP_FAILED)
		fail_io(env.file);
	if (madvise(map, bytes, advices[env.hint]))
		fail(1, "The hint '%s' is not to be had: %s.", hints[env.hint],
		     strerror(errno));
	work.map = map;
}

/* All pages in random order: the first ones of it are a random choice. */
static void shuffle(uint32_t *order, uint64_t count, uint64_t *state)
{
	for (uint64_t i = 0; i < count; i++)
		order[i] = i;
	for (uint64_t i = 0; i + 1 < count; i++) {
		uint64_t other = i + random_below(state, count - i);
		uint32_t page = order[i];

		order[i] = order[other];
		order[other] = page;
	}
}

static void plan_calls(void)
{
	uint64_t room = env.calls > work.pages ? env.calls : work.pages;
	uint32_t *order = calloc(room, sizeof(*order));
	uint64_t state = env.seed;

	if (!order)
		fail(1, "No memory for %" PRIu64 " calls.", room);
	if (env.phase != RANDOM) {
		shuffle(order, work.pages, &state);
		work.calls = env.fraction ? work.pages * env.fraction :
					    work.pages;
		if (!work.calls)
			work.calls = 1;
	} else {
		work.calls = env.calls ? env.calls : work.pages;
		for (uint64_t i = 0; i < work.calls; i++)
			order[i] = random_below(&state, work.pages);
	}
	work.order = order;
}

/* A bit for each page that is called into; their number goes to *count. */
static unsigned char *touched_pages(uint64_t *count)
{
	unsigned char *touched = calloc(work.pages / 8 + 1, 1);

	if (!touched)
		fail(1, "No memory for a bitmap of the file's pages.");
	*count = 0;
	for (uint64_t i = 0; i < work.calls; i++) {
		unsigned char bit = 1 << work.order[i] % 8;

		*count += !(touched[work.order[i] / 8] & bit);
		touched[work.order[i] / 8] |= bit;
	}
	return touched;
}

/*
 * Call the stub of a page. The stubs of neighbours are in different lines of
 * their pages: at the start of all of them, they would share one set of the
 * instruction cache, and its misses would hide those of the TLB.
 */
static inline void call_page(uint64_t page)
{
	size_t offset = page * CACHE_LINE % work.page_size;

	((void (*)(void))(work.map + page * work.page_size + offset))();
}

/* Calls that are not measured, before those that are. */
static void call_before(void)
{
	uint64_t bytes = work.pages * work.page_size;

	if (env.phase == COLD)
		return;
	for (uint64_t page = 0; page < work.pages; page++)
		call_page(page);
	if (env.phase == PAGED_OUT &&
	    madvise((void *)work.map, bytes, MADV_PAGEOUT))
		fail_io("MADV_PAGEOUT");
}

static void call_all(uint64_t thread)
{
	for (uint64_t i = thread; i < work.calls; i += env.threads)
		call_page(work.order[i]);
}

/*
 * Large folios that readahead asked for and got, or did not get, in all sizes
 * together. False if this kernel does not count them.
 */
static bool folio_events(const char *event, uint64_t *sum)
{
	static const char place[] = "/sys/kernel/mm/transparent_hugepage";
	DIR *directory = opendir(place);
	struct dirent *entry;
	bool found = false;

	*sum = 0;
	while (directory && (entry = readdir(directory))) {
		char path[400];
		uint64_t value;
		FILE *stream;

		snprintf(path, sizeof(path), "%s/%s/stats/%s", place,
			 entry->d_name, event);
		stream = fopen(path, "re");
		if (!stream)
			continue;
		if (fscanf(stream, "%" SCNu64, &value) == 1) {
			*sum += value;
			found = true;
		}
		fclose(stream);
	}
	if (directory)
		closedir(directory);
	return found;
}

struct folio_counters {
	bool has_alloc, has_fallback;
	uint64_t alloc, fallback;
};

static void read_folio_counters(struct folio_counters *counters)
{
	counters->has_alloc = folio_events("file_alloc", &counters->alloc);
	counters->has_fallback =
		folio_events("file_fallback", &counters->fallback);
}

static void print_known(const char *name, bool known, uint64_t value)
{
	if (known)
		printf(", \"%s\": %" PRIu64, name, value);
}

/* A row of the folio table, where a folio of that size has pages at all. */
static void print_row(const struct folios *folios, const char *kind,
		      const uint64_t *orders, unsigned int kib)
{
	uint64_t pages = kib * UINT64_C(1024) / folios->page_size;

	if (pages > 1 && folios->mapped)
		printf(", \"file_%s_%ukb\": %.6f", kind, kib,
		       (double)orders[folio_order(pages)] / folios->mapped);
}

static void print_folios(const unsigned char *touched)
{
	static struct folios folios;
	uint64_t kib_64;

	if (folios_init(&folios))
		return;
	folios.start = (uintptr_t)work.map;
	folios.end = folios.start + work.pages * work.page_size;
	folios.touched = touched;
	kib_64 = (64 << 10) / work.page_size;
	folios.nr_blocks = kib_64 > 1;
	folios.block_orders[0] = folio_order(kib_64);
	if (folios_add(&folios, getpid()))
		return;

	print_known("mapped_bytes", true, folios.mapped * work.page_size);
	print_known("tlb_entries", true, folios.tlb.ours);
	print_known("tlb_entries_uncoalesced", true, folios.tlb.uncoalesced);
	if (folios.text)
		printf(", \"contpte_share\": %.6f",
		       (double)folios.text_in_contpte / folios.text);
	for (unsigned int kib = 16; kib <= 128; kib *= 2)
		print_row(&folios, "thp_aligned", folios.aligned, kib);
	print_row(&folios, "thp_unaligned", folios.unaligned, 16);
	print_row(&folios, "thp_unaligned", folios.unaligned, 128);
	if (folios.nr_blocks && folios.mapped)
		printf(", \"file_cont_aligned_64kb\": %.6f",
		       (double)folios.blocks[0] / folios.mapped);
}

static void print_result(const struct counters *before,
			 const struct counters *after,
			 const struct folio_counters *folios_before,
			 const struct folio_counters *folios_after,
			 dev_t device)
{
	bool has_device = before->has_device && after->has_device;
	uint64_t read_ahead_kib = 0, touched_count, touched_bytes;
	unsigned char *touched = touched_pages(&touched_count);
	bool has_read_ahead = device_read_ahead(device, &read_ahead_kib);

	touched_bytes = touched_count * work.page_size;
	printf("{\"probe\": \"" PROBE "\", \"file\": ");
	json_put_string(stdout, env.file);
	printf(", \"phase\": \"%s\", \"hint\": \"%s\", \"calls\": %" PRIu64
	       ", \"threads\": %" PRIu64 ", \"seed\": %" PRIu64
	       ", \"page_size\": %zu, \"text_bytes\": %" PRIu64,
	       phases[env.phase], hints[env.hint], work.calls, env.threads,
	       env.seed, work.page_size, work.pages * work.page_size);
	print_known("read_ahead_kb", has_read_ahead, read_ahead_kib);
	print_known("read_bytes", has_device,
		    after->device.bytes - before->device.bytes);
	print_known("read_requests", has_device,
		    after->device.requests - before->device.requests);
	print_known("pgpgin_bytes", true,
		    (after->pgpgin_kib - before->pgpgin_kib) * 1024);
	/* In the phase "random", all of it is in memory before. */
	print_known("floor_bytes", true,
		    env.phase == RANDOM ? 0 : touched_bytes);
	print_known("major_faults", true,
		    after->usage.ru_majflt - before->usage.ru_majflt);
	print_known("minor_faults", true,
		    after->usage.ru_minflt - before->usage.ru_minflt);
	printf(", \"seconds\": %.9f", seconds_between(before, after));
	print_known("touched_bytes", true, touched_bytes);
	print_known("file_alloc", folios_after->has_alloc,
		    folios_after->alloc - folios_before->alloc);
	print_known("file_fallback", folios_after->has_fallback,
		    folios_after->fallback - folios_before->fallback);
	print_folios(touched);
	printf("}\n");
	flush_result();
	free(touched);
}

int main(int argc, char **argv)
{
	struct folio_counters folios_before, folios_after;
	struct counters before, after;
	struct stat stat;
	int fd;

	work.page_size = sysconf(_SC_PAGESIZE);
	parse_arguments(argc, argv);
	prepare_file();
	forget_caches(env.file, env.drop_caches);

	/* The kernel keeps its read-ahead state per open file: start afresh. */
	fd = open(env.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		fail_io(env.file);
	work.pages = env.size / work.page_size;
	if (!work.pages)
		fail(1, "%s holds less than a page.", env.file);
	if (work.pages > UINT32_MAX)
		fail(1, "%s is too large.", env.file);
	map_text(fd, work.pages * work.page_size);
	signal(SIGBUS, on_bad_text);
	signal(SIGSEGV, on_bad_text);
	signal(SIGILL, on_bad_text);
	plan_calls();
	call_before();
	read_folio_counters(&folios_before);
	measure(env.threads, call_all, stat.st_dev, &before, &after);
	read_folio_counters(&folios_after);
	print_result(&before, &after, &folios_before, &folios_after,
		     stat.st_dev);
	return 0;
}
