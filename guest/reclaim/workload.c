// SPDX-License-Identifier: GPL-2.0-only
/*
 * Do what programs do with more memory than they are given, and tell what that
 * cost: which pages had to come back, what was swapped, how many instructions
 * it took.
 *
 * A workload is a set of pages that is used again and again, and often a stream
 * beside it of which nothing is used twice. It goes on in rounds of the same
 * size, of which the first only bring memory into the state that it stays in.
 * All sizes follow from the memory that there is, so the same arguments always
 * mean the same work.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>

#define PROBE	"workload"
#include "cgroup.h"
#include "json.h"
#include "options.h"
#include "patterns.h"
#include "reclaim.h"
#include "zram.h"

#define FILE_MEMORIES	3	/* how many times the memory the file holds */
#define CHUNK		16	/* pages of a stream at a time */
#define SYNC_CHUNKS	64	/* that are written between two fdatasync() */
#define SETTLES		128	/* in a round, at most */
#define FLUSH_PAGES	64	/* across more than 33, x86 flushes the whole TLB */
#define MAX_WARM_UP	1000

/* What fork-heavy does. */
#define CHILDREN	64	/* in a round */
#define TEXT_PAGES	512	/* of the libraries that a small program maps */
#define TEXT_TOUCHES	128	/* of them that it runs */
#define DATA_PAGES	16	/* that it writes */
#define PARENT_PAGES	256	/* that the shell has written */

enum memory_kind { MEMORY_FILE, MEMORY_ANON, MEMORY_SHARED };
enum stream_kind { STREAM_NONE, STREAM_READ, STREAM_MAPPED, STREAM_WRITE };

struct workload {
	const char *name;
	const char *what;	/* of M, the memory that there is; for --help */
	enum memory_kind kind;	/* of the set */
	/* Sizes are in thousandths of the memory. */
	unsigned int size;	/* of the set */
	unsigned int spread;	/* where its pages lie scattered; 0 is nowhere */
	unsigned int touches;	/* of the set, in a round */
	struct pattern pattern;	/* of the touches */
	bool halves;		/* one half of the set in turn, round by round */
	bool anew;		/* the set is mapped anew for each round */
	enum stream_kind stream;
	unsigned int streamed;	/* in a round */
	bool forks;		/* rounds of child processes instead */
	unsigned int warm_up, rounds;
};

static const struct workload workloads[] = {
	/* A backup, or a table scan: all is used once a pass, more than fits. */
	{ .name = "mmap-sequential",
	  .what = "1.5 M, mapped, page by page, pass by pass",
	  .size = 1500, .touches = 1500,
	  .pattern.kind = PATTERN_SEQUENTIAL, .warm_up = 9, .rounds = 2 },
	/* Processes that start, one after the other, on a cached database. */
	{ .name = "mmap-random-fits",
	  .what = "0.5 M at random, mapped anew now and then",
	  .size = 500, .touches = 1000,
	  .pattern.kind = PATTERN_RANDOM, .anew = true,
	  .warm_up = 1, .rounds = 4 },
	/* The same with no room to spare: nothing useless may be kept. */
	{ .name = "mmap-random-just-fits",
	  .what = "0.95 M at random, mapped anew now and then",
	  .size = 950, .touches = 1000,
	  .pattern.kind = PATTERN_RANDOM, .anew = true,
	  .warm_up = 3, .rounds = 4 },
	/* A hash table on disk: no page is better than another. */
	{ .name = "mmap-random-exceeds",
	  .what = "1.5 M at random",
	  .size = 1500, .touches = 500,
	  .pattern.kind = PATTERN_RANDOM, .warm_up = 3, .rounds = 2 },
	/* A key-value store: few pages are used often, most seldom. */
	{ .name = "mmap-zipf",
	  .what = "3 M by Zipf's law: few pages often",
	  .size = 3000, .touches = 500,
	  .pattern.kind = PATTERN_ZIPF, .warm_up = 3, .rounds = 2 },
	/* An index: its hot pages would fit, what is read with them would not. */
	{ .name = "mmap-scattered",
	  .what = "pages for 0.3 M, scattered over 3 M, at random",
	  .size = 300, .spread = 3000, .touches = 300,
	  .pattern.kind = PATTERN_RANDOM, .warm_up = 6, .rounds = 3 },
	/* One page in each 16 of a file that does not fit, pass by pass. */
	{ .name = "strided",
	  .what = "one page in each 16 of 1.5 M, pass by pass",
	  .size = 1500, .touches = 188,
	  .pattern = { .kind = PATTERN_STRIDE, .stride = 16 },
	  .warm_up = 3, .rounds = 3 },
	/* Records of 64 pages: whatever readahead brings will be used. */
	{ .name = "hot-readahead",
	  .what = "1.1 M in whole runs of 64 pages, at random",
	  .size = 1100, .touches = 1000,
	  .pattern = { .kind = PATTERN_OBJECTS, .object = 64 },
	  .warm_up = 3, .rounds = 8 },
	/* A merge of sorted runs: what is read ahead waits long for its use. */
	{ .name = "mmap-streams",
	  .what = "many streams of 3 M, whose windows take half of M",
	  .size = 3000, .touches = 600,
	  .pattern.kind = PATTERN_STREAMS, .warm_up = 2, .rounds = 3 },
	/* A program that goes over to other data, and comes back. */
	{ .name = "mmap-phases",
	  .what = "0.75 M at random, then another 0.75 M, and back",
	  .size = 1500, .touches = 1500,
	  .pattern.kind = PATTERN_RANDOM, .halves = true,
	  .warm_up = 2, .rounds = 4 },
	/* A database while a big file is copied. */
	{ .name = "read-mix",
	  .what = "0.5 M at random, beside a file that is read",
	  .size = 500, .touches = 500,
	  .pattern.kind = PATTERN_RANDOM, .stream = STREAM_READ,
	  .streamed = 500, .warm_up = 2, .rounds = 3 },
	/* A database while a big file is scanned by mmap. */
	{ .name = "mmap-mix",
	  .what = "0.5 M at random, beside a mapped file",
	  .size = 500, .touches = 500,
	  .pattern.kind = PATTERN_RANDOM, .stream = STREAM_MAPPED,
	  .streamed = 500, .warm_up = 2, .rounds = 3 },
	/* A database that writes a log. */
	{ .name = "file-write-mix",
	  .what = "0.5 M at random, beside a file that is written",
	  .size = 500, .touches = 500,
	  .pattern.kind = PATTERN_RANDOM, .stream = STREAM_WRITE,
	  .streamed = 750, .warm_up = 6, .rounds = 3 },
	/* A heap that does not fit, some of it hot. */
	{ .name = "anon-swap",
	  .what = "1.25 M of heap by Zipf's law",
	  .kind = MEMORY_ANON, .size = 1250,
	  .touches = 5000, .pattern.kind = PATTERN_ZIPF,
	  .warm_up = 3, .rounds = 3 },
	/* A build: heaps, some of them hot, and files beside that are mapped. */
	{ .name = "anon-file-swap",
	  .what = "1 M of heap by Zipf's law, beside a mapped file",
	  .kind = MEMORY_ANON, .size = 1000,
	  .touches = 4000, .pattern.kind = PATTERN_ZIPF,
	  .stream = STREAM_MAPPED, .streamed = 500, .warm_up = 2, .rounds = 3 },
	/* A database with shared buffers of its own, which reads its files. */
	{ .name = "shm-file-swap",
	  .what = "1 M of shared memory, beside a file that is read",
	  .kind = MEMORY_SHARED, .size = 1000,
	  .touches = 4000, .pattern.kind = PATTERN_ZIPF,
	  .stream = STREAM_READ, .streamed = 500, .warm_up = 2, .rounds = 3 },
	/* A shell script: short programs on the same text, memory to spare. */
	{ .name = "fork-heavy",
	  .what = "short programs, with memory to spare",
	  .forks = true, .warm_up = 1, .rounds = 4 },
	{ 0 }
};

static struct env {
	const struct workload *workload;
	const char *file;
	const char *scratch;
	uint64_t memory;	/* bytes */
	uint64_t read_ahead_kib;
	uint64_t seed;
	uint64_t warm_up;	/* rounds; the workload's unless it is given */
	bool no_group;
	bool drop_caches;
} env = {
	.read_ahead_kib = 128,
	.seed = 1,
};

/* Counters of the whole machine, and of the process with its children. */
struct state {
	struct counters counters;
	struct reclaim reclaim;
	struct rusage children;
	uint64_t work;
};

/* What the process that works hands to the one that prints. */
struct result {
	struct state before, after;
};

/* All that is known before the work begins. */
static struct {
	size_t page_size;
	int fd;			/* of the file */
	int stream_fd;		/* of what is streamed; has readahead of its own */
	dev_t device;
	uint64_t file_pages;
	uint64_t set_pages;
	uint64_t map_pages;	/* where the set's pages lie */
	uint64_t *plan;		/* pages of the set, in the order of touches */
	uint64_t touches;	/* in a round */
	uint64_t chunks;	/* of the stream, in a round */
	uint64_t stream_first;	/* page of the file */
	uint64_t stream_pages;	/* after which it begins again */
} work = {
	.fd = -1,
	.stream_fd = -1,
};

/* Where the work is. */
static struct {
	char *set;
	char *stream;
	uint64_t touched;
	uint64_t chunk;
	uint64_t children;
} at;

static char *noise;		/* a page */

/* What is to be undone, by the process that did it. */
static struct {
	pid_t owner;
	struct zram file, swap;
	bool swapping;
	bool has_scratch;
	pid_t worker;
} made;

static struct probe_option options[] = {
	{ "workload", "NAME", "of M, the memory that there is:",
	  .row = &env.workload, ROWS_OF(workloads), .needed = true },
	{ "memory", "BYTES",
	  "M, the limit of the control group for the work (suffixes K, M, G)",
	  .bytes = &env.memory, .needed = true },
	{ "file", "PATH",
	  "the file to read, which holds at least 3 M; by default a device in "
	  "memory, whose reads end at once",
	  .text = &env.file },
	{ "read-ahead-kb", "N", "of that device",
	  .number = &env.read_ahead_kib },
	{ "scratch", "PATH",
	  "with --file, a file that is made, written and removed again by "
	  "file-write-mix, which needs it",
	  .text = &env.scratch },
	{ "no-group", NULL,
	  "work without a control group: there is as much memory as the "
	  "machine has, and only sizes follow from --memory",
	  .flag = &env.no_group },
	{ "seed", "N", "of all that is random", .number = &env.seed },
	{ "warm-up", "N",
	  "rounds that bring memory into the state that it stays in, and are "
	  "not counted (as many as that takes)",
	  .number = &env.warm_up, .most = MAX_WARM_UP },
	DROP_CACHES(&env.drop_caches),
	{ 0 }
};

static const struct usage usage = {
	.about =
"--workload NAME --memory BYTES [OPTION]...\n"
"Do a fixed amount of work with little memory, and print as one line of JSON what\n"
"that cost. Needs root, unless --no-group and --file are given.\n",
	.options = options,
	.notes =
"Examples:\n"
"  workload --workload mmap-mix --memory 64M\n"
"      does a scan push out what is used again and again?\n"
"  workload --workload fork-heavy --file big --memory 64M --no-group\n"
"      what short programs take, without root\n"
"\n"
"Devices in memory are zram, made for the purpose. In a control group, anonymous\n"
"and shared memory is swapped to another one.\n"
"\n"
"work is in pages that were touched or streamed, or in programs run. Faults and\n"
"cpu_seconds are of the work and all its children. Events such as refaults_file\n"
"are those of the whole machine; one that the kernel does not count is null, and\n"
"so is peak_memory_bytes without a control group.\n",
};

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	/* Less than that is taken by the kernel for the processes alone. */
	if (env.memory < 16 << 20)
		fail(2, "--memory has to be at least 16M.");
	if (!option_given(&usage, "warm-up"))
		env.warm_up = env.workload->warm_up;
	if (env.workload->stream == STREAM_WRITE && env.file && !env.scratch)
		fail(2, "--workload %s with --file needs --scratch.",
		     env.workload->name);
}

/* What is made for the work. */

static void undo(void)
{
	if (getpid() != made.owner)
		return;
	if (made.has_scratch)
		unlink(env.scratch);
	made.has_scratch = false;
	/* Nobody can remove what is open. */
	if (made.worker) {
		kill(made.worker, SIGKILL);
		waitpid(made.worker, NULL, 0);
	}
	close(work.fd);
	close(work.stream_fd);
	zram_remove(&made.file);
	if (made.swapping)
		swapoff(made.swap.path);
	made.swapping = false;
	zram_remove(&made.swap);
}

/* Noise, so that it does not compress to nothing. */
static void make_scratch(uint64_t bytes)
{
	int fd = open(env.scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_io(env.scratch);
	made.has_scratch = true;
	for (uint64_t i = 0; i < bytes; i += work.page_size)
		if (write(fd, noise, work.page_size) != (ssize_t)work.page_size)
			fail_io(env.scratch);
	if (fsync(fd))
		fail_io(env.scratch);
	close(fd);
}

/* The first page of what is swapped to. */
struct swap_header {
	char boot[1024];
	uint32_t version;
	uint32_t last_page;
	uint32_t bad_pages;
	unsigned char uuid[16];
	char label[16];
};

/* Swap to a compressed device with room for some bytes. */
static void make_swap(uint64_t bytes)
{
	char *page = calloc(1, work.page_size);
	struct swap_header *header = (struct swap_header *)page;
	int fd;

	zram_make(&made.swap, bytes);
	fd = open(made.swap.path, O_RDWR | O_CLOEXEC);
	if (!page || fd < 0)
		fail_io(made.swap.path);
	header->version = 1;
	header->last_page = bytes / work.page_size - 1;
	memcpy(page + work.page_size - 10, "SWAPSPACE2", 10);
	if (pwrite(fd, page, work.page_size, 0) != (ssize_t)work.page_size ||
	    fsync(fd))
		fail_io(made.swap.path);
	close(fd);
	free(page);
	if (swapon(made.swap.path, 0))
		fail_io(made.swap.path);
	made.swapping = true;
}

/* Preparing. */

/* A share of the memory in pages: a whole number of chunks. */
static uint64_t share(unsigned int thousandths)
{
	uint64_t chunk = CHUNK * work.page_size;

	return env.memory * thousandths / 1000 / chunk * CHUNK;
}

static void make_noise(void)
{
	uint64_t state = env.seed;

	noise = malloc(work.page_size);
	if (!noise)
		fail(1, "No memory for a page.");
	for (size_t i = 0; i < work.page_size; i += sizeof(state)) {
		uint64_t number = next_random(&state);

		memcpy(noise + i, &number, sizeof(number));
	}
}

/* The pages to touch in all rounds, in order. */
static void plan_touches(void)
{
	const struct workload *workload = env.workload;
	uint64_t rounds = env.warm_up + workload->rounds;
	uint64_t pages = workload->halves ? work.set_pages / 2 : work.set_pages;
	struct pattern pattern = workload->pattern;

	pattern.seed = env.seed;
	/* Each stream has a window or two of 128 KiB. */
	pattern.streams = env.memory / (256 << 10);
	work.plan = calloc(rounds * work.touches, sizeof(*work.plan));
	if (!work.plan || !pattern_plan(&pattern, pages, work.plan,
					rounds * work.touches))
		fail(1, "No memory for the order of %" PRIu64 " touches.",
		     rounds * work.touches);
	for (uint64_t i = 0; i < rounds * work.touches; i++) {
		if (workload->halves && i / work.touches % 2)
			work.plan[i] += pages;
		if (workload->spread)
			work.plan[i] = pattern_scatter(work.plan[i],
						       work.map_pages);
	}
}

/* The file, of which nothing is in memory, or the device that stands for it. */
static void open_file(void)
{
	struct stat stat;

	work.file_pages = share(FILE_MEMORIES * 1000);
	if (!env.file) {
		zram_make(&made.file, work.file_pages * work.page_size);
		zram_setting(&made.file, "queue/read_ahead_kb",
			     env.read_ahead_kib);
		env.file = made.file.path;
	}
	forget_caches(env.file, env.drop_caches);
	work.fd = open(env.file, O_RDONLY | O_CLOEXEC);
	if (work.fd < 0 || fstat(work.fd, &stat))
		fail_io(env.file);
	work.device = S_ISBLK(stat.st_mode) ? stat.st_rdev : stat.st_dev;
	if (lseek(work.fd, 0, SEEK_END) <
	    (off_t)(work.file_pages * work.page_size))
		fail(1, "%s holds less than %d times --memory.", env.file,
		     FILE_MEMORIES);
}

/* The stream is in what the set leaves of the file, or in a file of its own. */
static void open_stream(void)
{
	const struct workload *workload = env.workload;
	bool writes = workload->stream == STREAM_WRITE;
	const char *path = env.file;

	work.chunks = share(workload->streamed) / CHUNK;
	if (workload->kind == MEMORY_FILE)
		work.stream_first = work.map_pages;
	work.stream_pages = work.file_pages - work.stream_first;
	if (writes && !made.file.number[0]) {
		path = env.scratch;
		work.stream_first = 0;
		work.stream_pages = share(workload->streamed);
		make_scratch(work.stream_pages * work.page_size);
		forget_caches(path, false);
	}
	work.stream_fd = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (work.stream_fd < 0)
		fail_io(path);
}

static void prepare(void)
{
	const struct workload *workload = env.workload;

	work.page_size = sysconf(_SC_PAGESIZE);
	make_noise();
	open_file();
	work.set_pages = share(workload->size);
	work.map_pages = share(workload->spread ? workload->spread :
						  workload->size);
	work.touches = share(workload->touches);
	if (!workload->forks)
		plan_touches();
	open_stream();
	if (workload->kind != MEMORY_FILE && !env.no_group)
		make_swap((work.set_pages + share(250)) * work.page_size);
}

/* Working. */

static void *map(uint64_t pages, int protection, int flags, int fd,
		 uint64_t first)
{
	void *place = mmap(NULL, pages * work.page_size, protection, flags, fd,
			   first * work.page_size);

	if (place == MAP_FAILED)
		fail_io("Memory could not be mapped");
	return place;
}

static void map_set(void)
{
	const enum memory_kind kind = env.workload->kind;

	if (kind == MEMORY_FILE)
		at.set = map(work.map_pages, PROT_READ, MAP_SHARED, work.fd, 0);
	else
		at.set = map(work.map_pages, PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | (kind == MEMORY_ANON ?
					      MAP_PRIVATE : MAP_SHARED), -1, 0);
}

/* Read a page of the set, and write it if it is not a file's. */
static void touch(uint64_t page)
{
	volatile char *place = at.set + page * work.page_size;

	if (env.workload->kind == MEMORY_FILE) {
		(void)*place;
		return;
	}
	/* A quarter of it is noise: about what data of programs compress to. */
	if (!*place)
		memcpy((char *)place, noise, work.page_size / 4);
	*place = 1;
}

/* The next pages of the stream. */
static void stream_chunk(void)
{
	static char *buffer;
	const ssize_t bytes = CHUNK * work.page_size;
	uint64_t page = at.chunk++ * CHUNK % work.stream_pages;
	off_t offset = (work.stream_first + page) * work.page_size;

	if (!buffer)
		buffer = map(CHUNK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	switch (env.workload->stream) {
	case STREAM_NONE:
		break;
	case STREAM_READ:
		if (pread(work.stream_fd, buffer, bytes, offset) != bytes)
			fail_io(env.file);
		break;
	case STREAM_MAPPED:
		if (!at.stream)
			at.stream = map(work.stream_pages, PROT_READ,
					MAP_SHARED, work.stream_fd,
					work.stream_first);
		for (int i = 0; i < CHUNK; i++)
			(void)((volatile char *)at.stream)[(page + i) *
							   work.page_size];
		break;
	case STREAM_WRITE:
		if (pwrite(work.stream_fd, buffer, bytes, offset) != bytes ||
		    (at.chunk % SYNC_CHUNKS == 0 && fdatasync(work.stream_fd)))
			fail_io(env.scratch ? env.scratch : env.file);
		break;
	}
}

/* Have the kernel make such a file of numbers; what is in it does not matter. */
static void have_added_up(const char *path)
{
	char word[24];

	if (!env.no_group && !read_word(path, word, sizeof(word)))
		fail_io(path);
}

/*
 * The kernel adds up the counters of a group every two seconds. By them it
 * decides what it remembers of what it reclaimed, and what becomes of that. A
 * round takes less than that, so that chance would have a part in it: have them
 * added up now, which reading cpu.stat does (memory.stat only after many changes).
 */
static void settle_group(void)
{
	have_added_up(CGROUP "/cpu.stat");
}

/*
 * Whoever reclaims adds them up each time if nobody has done so for all groups in
 * four seconds, or since the machine was booted. So do.
 */
static void settle_machine(void)
{
	have_added_up(CGROUPS "/memory.stat");
}

/*
 * x86 takes the mark from a page that says that it was used, and lets the TLB be:
 * until that forgets the page, no use of it is seen. A processor's soon does. An
 * emulator's grows with what runs, until it holds all that a group has, and what
 * ran before would decide how much is reclaimed that is in use. So have it forget:
 * two entries change, so far apart that what lies between is not flushed page by
 * page. (arm64 flushes the page, but for the multi-generational LRU.)
 */
static void flush_tlb(void)
{
#ifdef __x86_64__
	static char *pages;
	static bool writable = true;
	const size_t bytes = FLUSH_PAGES * work.page_size;

	if (env.no_group)
		return;
	if (!pages) {
		pages = map(FLUSH_PAGES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (mlock2(pages, bytes, MLOCK_ONFAULT))
			fail_io("Memory could not be locked");
		pages[0] = pages[bytes - 1] = 1;
	}
	writable = !writable;
	if (mprotect(pages, bytes, PROT_READ | (writable ? PROT_WRITE : 0)))
		fail_io("Memory could not be protected");
#endif
}

/* A round of touches, with the stream spread evenly between them. */
static void touch_round(void)
{
	const uint64_t last = at.touched + work.touches;
	uint64_t parts = work.chunks ? work.chunks : SETTLES;
	const uint64_t settle_every = (parts + SETTLES - 1) / SETTLES;

	if (!at.set || env.workload->anew) {
		if (at.set)
			munmap(at.set, work.map_pages * work.page_size);
		map_set();
	}
	for (; parts; parts--) {
		uint64_t end = at.touched + (last - at.touched) / parts;

		if (parts % settle_every == 0) {
			settle_group();
			flush_tlb();
		}
		if (work.chunks)
			stream_chunk();
		while (at.touched < end)
			touch(work.plan[at.touched++]);
	}
}

/* What a short program does: it runs text of libraries, and writes data. */
static int be_child(const char *file)
{
	uint64_t state = env.seed;
	volatile char *text, *data;

	work.page_size = sysconf(_SC_PAGESIZE);
	work.fd = open(file, O_RDONLY | O_CLOEXEC);
	if (work.fd < 0)
		fail_io(file);
	text = map(TEXT_PAGES, PROT_READ | PROT_EXEC, MAP_PRIVATE, work.fd, 0);
	data = map(DATA_PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE, work.fd,
		   TEXT_PAGES);
	for (int i = 0; i < TEXT_TOUCHES; i++)
		(void)text[random_below(&state, TEXT_PAGES) * work.page_size];
	for (int i = 0; i < DATA_PAGES; i++)
		data[i * work.page_size] = 1;
	return 0;
}

static int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail_io("A child process was lost");
	return status;
}

static void fork_round(void)
{
	char *const argv[] = {
		(char *)PROBE, (char *)"--child", (char *)env.file, NULL
	};

	if (!at.set) {
		at.set = map(PARENT_PAGES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(at.set, 1, PARENT_PAGES * work.page_size);
	}
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (child < 0)
			fail_io("No child process");
		if (!child) {
			execv("/proc/self/exe", argv);
			fail_io("The child could not run this program");
		}
		if (wait_for(child))
			fail(1, "A child process failed.");
		at.children++;
	}
}

static void run_rounds(unsigned int rounds)
{
	while (rounds--) {
		settle_machine();
		if (env.workload->forks)
			fork_round();
		else
			touch_round();
	}
}

/* Counting. */

static void read_machine(struct state *state)
{
	read_device(&state->counters, work.device);
	reclaim_read(&state->reclaim);
}

static void read_self(struct state *state)
{
	/* Pages touched and streamed, or programs run. */
	state->work = at.touched + at.chunk * CHUNK + at.children;
	getrusage(RUSAGE_CHILDREN, &state->children);
	read_process(&state->counters);
}

static noreturn void do_work(struct result *result)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!env.no_group)
		cgroup_enter();
	run_rounds(env.warm_up);
	read_machine(&result->before);
	read_self(&result->before);
	run_rounds(env.workload->rounds);
	read_self(&result->after);
	read_machine(&result->after);
	exit(0);
}

/* In a process of its own, whose end leaves the control group empty. */
static void measure_work(struct result *result)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail_io("No child process");
	if (!child)
		do_work(result);
	made.worker = child;
	status = wait_for(child);
	made.worker = 0;
	if (WIFSIGNALED(status))
		fail(1, "The work was ended by signal %d.", WTERMSIG(status));
	if (status)
		exit(WEXITSTATUS(status));	/* it has said why */
}

/* Printing. */

static void print_result(const struct result *result, uint64_t peak)
{
	const struct state *before = &result->before, *after = &result->after;
	const struct counters *from = &before->counters, *to = &after->counters;
	const struct rusage *self[] = { &from->usage, &to->usage };
	const struct rusage *children[] = {
		&before->children, &after->children
	};
	bool has_device = from->has_device && to->has_device;

	printf("{\"probe\": \"workload\", \"workload\": \"%s\", \"file\": ",
	       env.workload->name);
	json_put_string(stdout, env.file);
	print_count("memory", true, env.memory);
	print_count("seed", true, env.seed);
	print_count("page_size", true, work.page_size);
	print_count("work", true, after->work - before->work);
	print_count("read_bytes", has_device,
		    to->device.bytes - from->device.bytes);
	print_count("read_requests", has_device,
		    to->device.requests - from->device.requests);
	print_count("pgpgin_bytes", true,
		    (to->pgpgin_kib - from->pgpgin_kib) * 1024);
	print_count("major_faults", true,
		    self[1]->ru_majflt - self[0]->ru_majflt +
		    children[1]->ru_majflt - children[0]->ru_majflt);
	print_count("minor_faults", true,
		    self[1]->ru_minflt - self[0]->ru_minflt +
		    children[1]->ru_minflt - children[0]->ru_minflt);
	reclaim_print(&before->reclaim, &after->reclaim);
	print_count("peak_memory_bytes", !env.no_group, peak);
	printf(", \"cpu_seconds\": %.6f, \"seconds\": %.9f}\n",
	       cpu_seconds(self[1]) - cpu_seconds(self[0]) +
	       cpu_seconds(children[1]) - cpu_seconds(children[0]),
	       seconds_between(from, to));
	flush_result();
}

/*
 * Begin again with the same addresses each time: they decide which neighbours a
 * fault maps along.
 */
static void fix_addresses(char **argv)
{
	int persona = personality(0xffffffff);

	if (persona & ADDR_NO_RANDOMIZE)
		return;
	if (personality(persona | ADDR_NO_RANDOMIZE) < 0)
		fail_io("Addresses could not be fixed");
	execv("/proc/self/exe", argv);
	fail_io("This program could not be run again");
}

int main(int argc, char **argv)
{
	struct result *result;
	uint64_t peak = 0;

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return be_child(argv[2]);
	parse_arguments(argc, argv);
	fix_addresses(argv);
	made.owner = getpid();
	settings_init(undo);
	prepare();
	result = map(sizeof(*result) / work.page_size + 1,
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!env.no_group)
		cgroup_make(env.memory);
	measure_work(result);
	if (!env.no_group) {
		peak = cgroup_number("memory.peak");
		cgroup_remove();
	}
	print_result(result, peak);
	return 0;
}
