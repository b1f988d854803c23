// SPDX-License-Identifier: GPL-2.0-only
/*
 * Make memory read-only and writable again, round after round, and tell what
 * that costs for each page-table entry.
 *
 * A case is a kind of memory: which folios it lies in, who else maps it, what
 * its entries are like. Before and after the rounds it is checked that pages
 * are there, or swapped out, in such folios and mapped by PTEs; who else maps
 * them, and which are clean, is not checked. Only the calls that change the
 * protection are timed; what can only be counted by slowing the kernel down is
 * counted in a further round.
 *
 * Some cases are about calls instead of entries. Their rounds make many calls,
 * as users have reported them, also by several threads at once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/userfaultfd.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE	"mprotect"
#include "events.h"
#include "folios.h"
#include "json.h"
#include "options.h"
#include "settings.h"

#define THP		"/sys/kernel/mm/transparent_hugepage"
/* Exit status where a kernel does not have what a case is about. */
#define KERNEL_LACKS	77

#define BALANCING	"/proc/sys/kernel/numa_balancing"
#define SCHED		"/sys/kernel/debug/sched/numa_balancing"
#define SCAN_SECONDS	30
#define MAX_SCANS	3	/* the kernel has long pauses between them */
#define ENOUGH		0.95	/* of the pages are as the case wants */
#define SWAPPED_EVERY	4
#define COWED_EVERY	4
#define MAX_CALLERS	64	/* threads that make calls */
#define ROUND_CALLS	64	/* of a round of small calls */
#define ROUND_SINGLES	512	/* of those that split a mapping */
#define ROUND_BYTES	(32 << 20)	/* that a round of large ones goes over */
#define STEP_BYTES	(64 << 10)	/* that an allocator takes at once */
/* Far from all else: what lies beside a mapping decides what a call takes. */
#define PLACE		((void *)(UINT64_C(1) << 44))

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT		21
#endif

/* Of an entry of /proc/PID/pagemap. */
#define PAGEMAP_SWAP		(UINT64_C(1) << 62)

/* Of one round, or of all. */
struct times {
	uint64_t calls;
	uint64_t entries;	/* that all calls went over */
	uint64_t touched;
	double protect, restore, touch;		/* seconds */
};

struct test_case {
	const char *name;
	const char *what;	/* memory it is, for --help */
	uint64_t folio;		/* bytes; 0 is a page */
	bool any_folio;		/* --folio may choose another size */
	uint64_t bytes;		/* unless --bytes says otherwise; 0: as in env */
	void (*prepare)(void);
	/* Change the protection; without one, by mprotect(). */
	void (*protect)(bool writable);
	/* A round of many calls instead of two. */
	void (*calls)(void);
	/* Use the memory after it became writable again. */
	void (*touch)(void);
	/* Scans of the kernel's own, and what comes before each, untimed. */
	void (*scan)(struct times *times);
	void (*before_scan)(void);
};

static struct env {
	const struct test_case *test;
	uint64_t bytes;
	uint64_t rounds;
	uint64_t threads;
	uint64_t folio;		/* bytes; 0 is a page */
	const char *file;
	const char *swap;
} env = {
	.bytes = 128 << 20,
	.rounds = 4,
	.threads = 1,
};

static size_t page_size;
static uint64_t pmd_size;

static struct {
	char *start;
	uint64_t pages;
	uint64_t changed;	/* bytes from its start that calls change */
	uint64_t calls, entries;	/* of mprotect() until now */
	int fd;			/* userfaultfd */
	pid_t child;
	const char *swap;	/* while it is in use */
	bool traced;		/* what NUMA balancing scans */
	int scans;
} memory = {
	.fd = -1,
	.scans = -1,
};

/* Threads that make calls, each in memory of its own; the first is the program's own. */
static struct caller {
	pthread_t thread;
	char *start;
	double begun, ended;	/* of a round */
} callers[MAX_CALLERS];

/* What this thread's calls change; NULL: all of the memory. */
static _Thread_local char *own_start;

/* Times. */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* Memory. */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/*
 * Reserve addresses that are aligned to every size of folio, between two pages
 * that keep other mappings from becoming one with what is put there.
 */
static char *reserve(uint64_t bytes)
{
	char *place = mmap(PLACE, bytes + pmd_size + 2 * page_size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (place == MAP_FAILED)
		fail_io("No addresses for the memory");
	place += page_size;
	return place + -(uintptr_t)place % pmd_size;
}

static void map_memory(int flags, int fd)
{
	void *place = reserve(env.bytes);

	memory.start = mmap(place, env.bytes, PROT_READ | PROT_WRITE,
			    flags | MAP_FIXED, fd, 0);
	if (memory.start == MAP_FAILED)
		fail_io("No memory");
}

static void advise(void *start, uint64_t bytes, int advice, const char *what)
{
	if (madvise(start, bytes, advice))
		fail_io(what);
}

static char *page_at(uint64_t page)
{
	return memory.start + page * page_size;
}

/* Give a part of the memory, from so many bytes on, another protection. */
static void change(uint64_t at, uint64_t bytes, int access)
{
	char *start = own_start ? own_start : memory.start;

	if (mprotect(start + at, bytes, access))
		fail_io("mprotect");
	__atomic_fetch_add(&memory.calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&memory.entries, bytes / page_size, __ATOMIC_RELAXED);
}

static void write_page(uint64_t page)
{
	*(volatile char *)page_at(page) = 1;
}

/* The sizes of folios that anonymous memory can have: their directories. */
static bool folio_setting(uint64_t bytes, const char *word)
{
	char path[160];

	snprintf(path, sizeof(path), THP "/hugepages-%" PRIu64 "kB/enabled",
		 bytes >> 10);
	return setting(path, word);
}

/* The smallest size of folio that the kernel has, from some size on; or 0. */
static uint64_t folio_size_from(uint64_t least)
{
	for (uint64_t bytes = least; bytes <= pmd_size; bytes *= 2) {
		char path[160];

		snprintf(path, sizeof(path),
			 THP "/hugepages-%" PRIu64 "kB/enabled", bytes >> 10);
		if (!access(path, F_OK))
			return bytes;
	}
	return 0;
}

/* Have memory that is advised so get folios of this size and of no other. */
static void allow_folios_of(uint64_t wanted)
{
	for (uint64_t bytes = page_size; bytes <= pmd_size; bytes *= 2)
		if (bytes != wanted && !folio_setting(bytes, "never") &&
		    errno != ENOENT)
			fail_io("The sizes of folios cannot be set");
	if (!folio_setting(wanted, "madvise"))
		fail(1, "Folios of %" PRIu64 " KiB are not to be had: %s.",
		     wanted >> 10, strerror(errno));
}

/* Anonymous memory in the folios of the case, all of it written. */
static void prepare_anonymous(void)
{
	map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!env.folio) {
		advise(memory.start, env.bytes, MADV_NOHUGEPAGE, "NOHUGEPAGE");
	} else {
		allow_folios_of(env.folio);
		advise(memory.start, env.bytes, MADV_HUGEPAGE, "HUGEPAGE");
	}
	for (uint64_t page = 0; page < memory.pages; page++)
		write_page(page);
	/* Nobody is to put folios together while it is measured. */
	if (env.folio)
		folio_setting(env.folio, "never");
}

/* Splitting a mapping inside a PMD maps that by PTEs; then it is one again. */
static void prepare_split(void)
{
	prepare_anonymous();
	for (uint64_t at = 0; at < env.bytes; at += env.folio) {
		advise(memory.start + at, page_size, MADV_DONTFORK, "DONTFORK");
		advise(memory.start + at, page_size, MADV_DOFORK, "DOFORK");
	}
}

/* What calls change is a mapping by itself, also of a part of a folio. */
static void prepare_calls(void)
{
	uint64_t rest = env.bytes - memory.changed;

	prepare_anonymous();
	if (rest)
		advise(memory.start + memory.changed, rest, MADV_DONTFORK,
		       "DONTFORK");
}

/* Addresses without a page. */
static void prepare_empty(void)
{
	map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	advise(memory.start, env.bytes, MADV_NOHUGEPAGE, "NOHUGEPAGE");
	change(0, env.bytes, PROT_NONE);
}

static void prepare_shared(void)
{
	map_memory(MAP_SHARED | MAP_ANONYMOUS, -1);
	for (uint64_t page = 0; page < memory.pages; page++)
		write_page(page);
}

static void touch_all(void)
{
	for (uint64_t page = 0; page < memory.pages; page++)
		write_page(page);
}

static void prepare_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_WP };

	prepare_anonymous();
	memory.fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (memory.fd < 0)
		fail_io("No userfaultfd");
	if (ioctl(memory.fd, UFFDIO_API, &api))
		fail_io("userfaultfd cannot write-protect");
	range.range.start = (uintptr_t)memory.start;
	range.range.len = env.bytes;
	if (ioctl(memory.fd, UFFDIO_REGISTER, &range))
		fail_io("userfaultfd cannot write-protect this memory");
}

static void protect_uffd(bool writable)
{
	struct uffdio_writeprotect range = {
		.range.start = (uintptr_t)memory.start,
		.range.len = env.bytes,
		.mode = writable ? 0 : UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(memory.fd, UFFDIO_WRITEPROTECT, &range))
		fail_io("userfaultfd could not write-protect");
}

static void prepare_file(void)
{
	const char *name = env.file ? env.file : "A file in memory";
	int fd = env.file ? open(env.file, O_RDONLY | O_CLOEXEC) :
			    memfd_create(PROBE, MFD_CLOEXEC);
	struct stat stat;

	if (fd < 0 || (!env.file && ftruncate(fd, env.bytes)) ||
	    fstat(fd, &stat))
		fail_io(name);
	if ((uint64_t)stat.st_size < env.bytes)
		fail(1, "%s holds less than %" PRIu64 " bytes.", name,
		     env.bytes);
	map_memory(MAP_PRIVATE, fd);
	close(fd);
	advise(memory.start, env.bytes, MADV_POPULATE_READ, name);
	for (uint64_t page = 0; page < memory.pages; page += COWED_EVERY)
		write_page(page);
}

/* A process with all that this one has and that is not to be left out. */
static void make_child(void)
{
	pid_t parent = getpid();

	memory.child = fork();
	if (memory.child < 0)
		fail_io("No child process");
	if (memory.child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

/*
 * Single pages: the child shares all, then every other one is copied. Large
 * folios: the child shares the second half of each, in place.
 */
static void prepare_half_exclusive(void)
{
	prepare_anonymous();
	for (uint64_t at = 0; env.folio && at < env.bytes; at += env.folio)
		advise(memory.start + at, env.folio / 2, MADV_DONTFORK,
		       "DONTFORK");
	make_child();
	if (env.folio)
		advise(memory.start, env.bytes, MADV_DOFORK, "DOFORK");
	else
		for (uint64_t page = 0; page < memory.pages; page += 2)
			write_page(page);
}

/* What is to be freed lazily is clean until it is written again. */
static void prepare_alternating(void)
{
	prepare_anonymous();
	for (uint64_t page = 1; page < memory.pages; page += 2)
		advise(page_at(page), page_size, MADV_FREE, "MADV_FREE");
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

static void use_swap(void)
{
	uint64_t wanted = memory.pages / SWAPPED_EVERY + memory.pages / 64 + 64;
	char *page = calloc(1, page_size);
	struct swap_header *header = (struct swap_header *)page;
	/* A device that is in use is refused. */
	int fd = open(env.swap, O_RDWR | O_EXCL | O_CLOEXEC);
	off_t bytes;

	if (!page || fd < 0)
		fail_io(env.swap);
	bytes = lseek(fd, 0, SEEK_END);
	if (bytes < 0)
		fail_io(env.swap);
	if (bytes / page_size < wanted)
		fail(1, "%s holds less than the %" PRIu64 " pages that are to be swapped out.",
		     env.swap, wanted);
	header->version = 1;
	header->last_page = bytes / page_size - 1;
	memcpy(page + page_size - 10, "SWAPSPACE2", 10);
	if (pwrite(fd, page, page_size, 0) != (ssize_t)page_size || fsync(fd))
		fail_io(env.swap);
	close(fd);
	free(page);
	if (swapon(env.swap, 0))
		fail(1, "%s cannot be swapped to: %s.", env.swap,
		     strerror(errno));
	memory.swap = env.swap;
}

static void prepare_swap(void)
{
	prepare_anonymous();
	use_swap();
	for (uint64_t page = 1; page < memory.pages; page += SWAPPED_EVERY)
		advise(page_at(page), page_size, MADV_PAGEOUT, "PAGEOUT");
}

/*
 * NUMA balancing scans a process that runs, now and then. What it calls to do
 * so is traced, with the time, in a buffer of its own.
 */
static const char scan_buffer[] = "instances/" EVENT_GROUP;

static void *sleep_for_ever(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* A signal's handler may call it. */
static void trace_no_scans(void)
{
	const char *place = tracefs();
	char path[EVENT_PATH];

	if (memory.scans >= 0)
		close(memory.scans);
	memory.scans = -1;
	memory.traced = false;
	snprintf(path, sizeof(path), "%s/%s", place, scan_buffer);
	event_write(path, "events/" EVENT_GROUP "/enable", "0");
	rmdir(path);
	event_remove("scan");
	event_remove("scanned");
}

static void trace_scans(void)
{
	const char *place = tracefs();
	static const char *const probes[] = {
		"p:" EVENT_GROUP "/scan change_prot_numa start=$arg2 end=$arg3\n",
		"r:" EVENT_GROUP "/scanned change_prot_numa\n",
	};
	char path[EVENT_PATH];

	if (!place)
		fail(KERNEL_LACKS, "Scans cannot be traced: there is no tracefs.");
	trace_no_scans();	/* left over by who was killed */
	memory.traced = true;
	for (size_t i = 0; i < 2; i++)
		if (!event_write(place, "kprobe_events", probes[i]))
			fail(KERNEL_LACKS, "Scans cannot be traced: no kprobe event for change_prot_numa.");
	snprintf(path, sizeof(path), "%s/%s", place, scan_buffer);
	if (mkdir(path, 0700) && errno != EEXIST)
		fail_io(path);
	if (!event_write(path, "trace_clock", "mono") ||
	    !event_write(path, "events/" EVENT_GROUP "/enable", "1"))
		fail_io("Scans cannot be traced");
	snprintf(path, sizeof(path), "%s/%s/trace_pipe", place, scan_buffer);
	memory.scans = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (memory.scans < 0)
		fail_io(path);
}

/* One thread: all is on its node already. Two: there is no node of theirs. */
static void prepare_scans(void)
{
	char mib[24];

	prepare_anonymous();
	snprintf(mib, sizeof(mib), "%" PRIu64, (env.bytes >> 20) + 256);
	/* Kernels without these scan once a second at most: have patience. */
	setting(SCHED "/scan_size_mb", mib);
	setting(SCHED "/scan_period_min_ms", "100");
	setting(SCHED "/scan_period_max_ms", "100");
	setting(SCHED "/scan_delay_ms", "100");
	trace_scans();
	if (!setting(BALANCING, "1"))
		fail(KERNEL_LACKS, "No NUMA balancing: %s: %s.", BALANCING,
		     strerror(errno));
}

static void prepare_scans_of_two(void)
{
	pthread_t thread;

	prepare_scans();
	errno = pthread_create(&thread, NULL, sleep_for_ever, NULL);
	if (errno)
		fail_io("A thread could not be started");
}

/* Use some marked pages, so that it is worth to scan; then unmark all. */
static void before_scan(void)
{
	for (uint64_t page = 0; page < memory.pages; page += 1024)
		write_page(page);
	change(0, env.bytes, PROT_READ);
	change(0, env.bytes, PROT_READ | PROT_WRITE);
}

/* Leave out what was scanned until now; true if there was something. */
static bool forget_scans(void)
{
	char lines[4096];
	bool some = false;

	while (read(memory.scans, lines, sizeof(lines)) > 0)
		some = true;
	return some;
}

/* Take in a line of the trace; true when all of the memory was scanned. */
static bool scan_line(const char *line, struct times *times)
{
	static uint64_t start, end;
	static double began;
	const char *name, *time;
	double at;

	name = strstr(line, ": scan");
	if (!name)
		return false;
	for (time = name; time > line && time[-1] != ' '; time--)
		;
	at = strtod(time, NULL);
	if (sscanf(name, ": scan: %*s start=%" SCNx64 " end=%" SCNx64,
		   &start, &end) == 2) {
		began = at;
		return false;
	}
	if (strncmp(name, ": scanned:", 10) ||
	    start < (uintptr_t)memory.start ||
	    end > (uintptr_t)memory.start + env.bytes)
		return false;
	times->protect += at - began;
	times->entries += (end - start) / page_size;
	times->calls++;
	return end == (uintptr_t)memory.start + env.bytes;
}

/* Run, as only who runs is scanned, until all of the memory was. */
static void wait_for_scan(struct times *times)
{
	double deadline = now() + SCAN_SECONDS;
	static char lines[65536];
	size_t used = 0;

	while (now() < deadline) {
		ssize_t n = read(memory.scans, lines + used,
				 sizeof(lines) - 1 - used);
		char *line = lines, *next;

		if (n < 0 && errno != EAGAIN)
			fail_io("The trace of scans");
		used += n > 0 ? n : 0;
		lines[used] = '\0';
		while ((next = strchr(line, '\n'))) {
			*next = '\0';
			if (scan_line(line, times))
				return;
			line = next + 1;
		}
		used -= line - lines;
		memmove(lines, line, used);
		for (volatile int i = 0; i < 100000; i++)
			;
	}
	fail(1, "NUMA balancing did not scan the memory within %d s.",
	     SCAN_SECONDS);
}

/*
 * Each call of these functions is one operation that makes CPUs forget
 * translations: of a range of addresses, or of all.
 */
static const char *const flushes[] = {
#if defined(__x86_64__)
	"flush_tlb_mm_range",
#elif defined(__aarch64__)
	/* What folds or unfolds a contpte block, and what ends each call. */
	"contpte_convert", "tlb_finish_mmu",
#endif
	NULL
};

#define MAX_FLUSHES	4

/* What counts, from before the first event until nothing does any more. */
static struct {
	bool begun;
	char names[MAX_FLUSHES][32];
	struct event flushes[MAX_FLUSHES];
	struct event batches;
} counting;

/* A signal's handler may call it. */
static void count_no_more(void)
{
	for (size_t i = 0; flushes[i]; i++) {
		event_stop(&counting.flushes[i]);
		event_remove(counting.names[i]);
	}
	event_stop(&counting.batches);
	counting.begun = false;
}

/* What is to be undone beside the settings; a signal's handler may call it. */
static void undo(void)
{
	if (counting.begun)
		count_no_more();
	if (memory.child > 0)
		kill(memory.child, SIGKILL);
	memory.child = 0;
	if (memory.swap) {
		/* Nothing is to be read back in. */
		munmap(memory.start, env.bytes);
		swapoff(memory.swap);
		memory.swap = NULL;
	}
	if (memory.traced)
		trace_no_scans();
}

/* Rounds of many calls. */

/* All of it becomes inaccessible and writable again. */
static void call_for_all(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < ROUND_CALLS && bytes < ROUND_BYTES; i += 2) {
		change(0, memory.changed, PROT_NONE);
		change(0, memory.changed, PROT_READ | PROT_WRITE);
		bytes += 2 * memory.changed;
	}
}

/* Two halves become executable and writable again, as V8 does with its code. */
static void call_for_halves(void)
{
	uint64_t half = round_up(memory.changed / 2, page_size);
	uint64_t second = memory.changed - half;

	for (int i = 0; i < ROUND_CALLS; i += 4) {
		change(0, half, PROT_READ | PROT_EXEC);
		change(second, half, PROT_READ | PROT_EXEC);
		change(0, half, PROT_READ | PROT_WRITE);
		change(second, half, PROT_READ | PROT_WRITE);
	}
}

static void call_for_singles(void)
{
	uint64_t state = 1;	/* the same pages in each round */

	for (int i = 0; i < ROUND_SINGLES; i += 2) {
		uint64_t page = random_below(&state, memory.pages);

		change(page * page_size, page_size, PROT_NONE);
		change(page * page_size, page_size, PROT_READ | PROT_WRITE);
	}
}

/* Upward, as an allocator makes reserved addresses usable, and back. */
static void call_for_steps(void)
{
	uint64_t at;

	for (at = 0; at < memory.changed; at += STEP_BYTES)
		change(at, STEP_BYTES, PROT_READ | PROT_WRITE);
	while (at) {
		at -= STEP_BYTES;
		change(at, STEP_BYTES, PROT_NONE);
	}
}

static pthread_barrier_t all_begin;

static void *caller_main(void *of_thread)
{
	struct caller *caller = of_thread;

	own_start = caller->start;
	pthread_barrier_wait(&all_begin);
	caller->begun = now();
	env.test->calls();
	caller->ended = now();
	return NULL;
}

/*
 * A round of calls by each thread. Return: seconds from the first one's
 * beginning to the last one's end.
 */
static double call_in_threads(void)
{
	double begun = INFINITY, ended = 0;

	errno = pthread_barrier_init(&all_begin, NULL, env.threads);
	for (uint64_t i = 1; i < env.threads && !errno; i++)
		errno = pthread_create(&callers[i].thread, NULL, caller_main,
				       &callers[i]);
	if (errno)
		fail_io("A thread could not be started");
	caller_main(&callers[0]);
	for (uint64_t i = 0; i < env.threads; i++) {
		if (i)
			pthread_join(callers[i].thread, NULL);
		if (callers[i].begun < begun)
			begun = callers[i].begun;
		if (callers[i].ended > ended)
			ended = callers[i].ended;
	}
	pthread_barrier_destroy(&all_begin);
	return ended - begun;
}

/* Checks. */

/*
 * Of the pages that are there, the share in large folios of the wanted size at
 * least, or in none; of all pages, the shares there and swapped out.
 */
static double right_pages(double *there, double *swapped)
{
	static struct folios folios;
	static uint64_t entries[4096];
	enum folios_status status = folios_init(&folios);
	uint64_t size = env.folio / page_size, last = UINT64_MAX;
	uint64_t present = 0, right = 0, out = 0;
	bool last_right = false;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (status != FOLIOS_OK)
		fail(1, "%s", folios_sentence(status));
	if (fd < 0)
		fail_io("/proc/self/pagemap");
	for (uint64_t page = 0; page < memory.pages; page++) {
		uint64_t place = page % 4096, entry, pfn, flags;

		if (!place && pread(fd, entries, sizeof(entries),
				    ((uintptr_t)memory.start / page_size +
				     page) * sizeof(entry)) < 0)
			fail_io("/proc/self/pagemap");
		entry = entries[place];
		out += !!(entry & PAGEMAP_SWAP);
		if (!(entry & PAGEMAP_PRESENT))
			continue;
		present++;
		pfn = entry & PAGEMAP_PFN;
		if (!size) {
			flags = page_flags(folios.walk, pfn);
			right += !(flags & (KPAGE_HEAD | KPAGE_TAIL));
			continue;
		}
		if (pfn / size != last) {
			last = pfn / size;
			flags = page_flags(folios.walk, last * size);
			last_right = flags & (KPAGE_HEAD | KPAGE_TAIL);
			for (uint64_t i = 1; i < size && last_right; i++)
				last_right = page_flags(folios.walk,
							last * size + i) &
					     KPAGE_TAIL;
		}
		right += last_right;
	}
	close(fd);
	close(folios.walk->kpageflags);
	free(folios.walk);
	*there = (double)present / memory.pages;
	*swapped = (double)out / memory.pages;
	return present ? (double)right / present : 0;
}

/* Whether some of the memory is mapped by PMDs. */
static bool mapped_by_pmds(void)
{
	FILE *stream = fopen("/proc/self/smaps", "re");
	bool inside = false, found = false;
	uint64_t start, end, kib;
	char line[512];

	if (!stream)
		fail_io("/proc/self/smaps");
	while (fgets(line, sizeof(line), stream)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
			inside = start < (uintptr_t)memory.start + env.bytes &&
				 end > (uintptr_t)memory.start;
		else if (inside &&
			 (sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1 ||
			  sscanf(line, "ShmemPmdMapped: %" SCNu64, &kib) == 1))
			found |= kib > 0;
	}
	fclose(stream);
	return found;
}

static double check_memory(void)
{
	bool swap = env.test->prepare == prepare_swap;
	double there, swapped, right;

	if (env.test->prepare == prepare_empty)
		return 1;
	right = right_pages(&there, &swapped);
	if (there + swapped < ENOUGH)
		fail(1, "Only %.1f %% of the memory is there, or swapped out.",
		     (there + swapped) * 100);
	if (right < ENOUGH && env.folio)
		fail(1, "Only %.1f %% of the memory is in folios of %" PRIu64 " KiB: the kernel had no more of them.",
		     right * 100, env.folio >> 10);
	/* In which folios a file is cached is for its file system to say. */
	if (right < ENOUGH && !env.file)
		fail(1, "%.1f %% of the memory is in large folios, which are not wanted here.",
		     (1 - right) * 100);
	if (swap && swapped < ENOUGH / SWAPPED_EVERY)
		fail(1, "Only %.1f %% of the memory could be swapped out.",
		     swapped * 100);
	/* Whole PMDs are changed as such where calls are what is measured. */
	if (!env.test->calls && mapped_by_pmds())
		fail(1, "Some of the memory is mapped by PMDs instead of PTEs.");
	return right;
}

/* Rounds. */

static void protect_memory(bool writable)
{
	if (env.test->protect)
		env.test->protect(writable);
	else
		change(0, env.bytes, PROT_READ | (writable ? PROT_WRITE : 0));
}

/* One round; its times are added to some. */
static void one_round(struct times *times)
{
	double at[4];

	if (env.test->scan) {
		env.test->scan(times);
		return;
	}
	if (env.test->calls) {
		times->calls -= memory.calls;
		times->entries -= memory.entries;
		times->protect += call_in_threads();
		times->calls += memory.calls;
		times->entries += memory.entries;
		return;
	}
	at[0] = now();
	protect_memory(false);
	at[1] = now();
	protect_memory(true);
	at[2] = now();
	if (env.test->touch)
		env.test->touch();
	at[3] = now();
	times->protect += at[1] - at[0];
	times->restore += at[2] - at[1];
	times->touch += at[3] - at[2];
	times->calls += 2;
	times->entries += 2 * memory.pages;
	times->touched += memory.pages;
}

static void before_round(void)
{
	if (env.test->before_scan)
		env.test->before_scan();
}

static void add_times(struct times *sum, const struct times *times)
{
	sum->calls += times->calls;
	sum->entries += times->entries;
	sum->touched += times->touched;
	sum->protect += times->protect;
	sum->restore += times->restore;
	sum->touch += times->touch;
}

static void keep_least(double *least, double value)
{
	if (value < *least)
		*least = value;
}

/*
 * All rounds; their sum, and what that would be if nothing had come between:
 * whatever interrupts a call makes it longer and never shorter.
 */
static void all_rounds(struct times *times, struct times *undisturbed)
{
	uint64_t entries = 0;	/* that each round goes over */
	struct times warm_up = { 0 }, least = {
		.protect = INFINITY, .restore = INFINITY, .touch = INFINITY,
	};

	before_round();
	one_round(&warm_up);
	for (uint64_t i = 0; i < env.rounds; i++) {
		struct times round = { 0 };

		before_round();
		one_round(&round);
		if (i && round.entries != entries)
			fail(1, "Rounds are not alike: one went over %" PRIu64 " entries, one over %" PRIu64 ".",
			     entries, round.entries);
		entries = round.entries;
		add_times(times, &round);
		keep_least(&least.protect, round.protect);
		keep_least(&least.restore, round.restore);
		keep_least(&least.touch, round.touch);
	}
	for (uint64_t i = 0; i < env.rounds; i++)
		add_times(undisturbed, &least);
}

/* Counts. */

struct counts {
	bool has_flushes, has_batches;
	uint64_t flushes;
	struct event_sums batches;
	struct times times;	/* of the round that was counted */
};

/* Operations that flushed translations since the events were armed. */
static uint64_t flushes_until_now(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; flushes[i]; i++)
		sum += event_sums(&counting.flushes[i]).events;
	return sum;
}

static void count_events(struct counts *counts)
{
	uint64_t flushes_before = 0;
	struct event_sums before;

	for (size_t i = 0; flushes[i]; i++)
		snprintf(counting.names[i], sizeof(counting.names[i]),
			 "flush%zu_%d", i, getpid());
	counting.begun = true;
	counts->has_flushes = flushes[0];
	for (size_t i = 0; flushes[i]; i++) {
		counting.flushes[i] = event_of_calls(counting.names[i],
						     flushes[i]);
		counts->has_flushes &= event_count(&counting.flushes[i],
						   "common_pid");
	}
	counting.batches = event_of("mprotect/mprotect_batch");
	counts->has_batches = event_count(&counting.batches, "nr");

	/*
	 * What is read before includes what arming a kprobe flushes. A scan
	 * that comes after it, and before the trace is emptied, is not the one
	 * that is counted.
	 */
	for (int i = 0; i < MAX_SCANS; i++) {
		before_round();
		before = event_sums(&counting.batches);
		flushes_before = flushes_until_now();
		if (!env.test->scan || !forget_scans())
			break;
	}
	one_round(&counts->times);
	counts->flushes = flushes_until_now() - flushes_before;
	counts->batches = event_sums(&counting.batches);
	counts->batches.events -= before.events;
	counts->batches.sum -= before.sum;

	count_no_more();
}

/* The program. */

static const struct test_case cases[] = {
	{ "T1",
	  "anonymous, folios of 2 MiB that are mapped by PTEs; with pages of "
	  "4 KiB, a PMD would map that",
	  .folio = 2 << 20, .prepare = prepare_split },
	{ "T2",
	  "anonymous, folios of 64 KiB, or of the next larger size that there "
	  "is (256 KiB with pages of 64 KiB)",
	  .folio = 64 << 10, .prepare = prepare_anonymous },
	{ "T3", "anonymous, single pages",
	  .any_folio = true, .prepare = prepare_anonymous },
	{ "shared-dirty",
	  "shared, single pages, each written after every round",
	  .prepare = prepare_shared, .touch = touch_all },
	{ "uffd-wp", "anonymous, protected by userfaultfd",
	  .any_folio = true, .prepare = prepare_uffd, .protect = protect_uffd },
	{ "private-file",
	  "a private mapping of a file, every fourth page written",
	  .prepare = prepare_file },
	{ "half-exclusive",
	  "anonymous, every other page shared with a child process",
	  .any_folio = true, .prepare = prepare_half_exclusive },
	{ "alternating", "anonymous, every other page clean",
	  .prepare = prepare_alternating },
	{ "swap", "anonymous, every fourth page swapped out; needs --swap",
	  .prepare = prepare_swap },
	{ "numa-hint",
	  "a scan of NUMA balancing marks anonymous memory of a process of "
	  "two threads",
	  .any_folio = true, .prepare = prepare_scans_of_two,
	  .scan = wait_for_scan, .before_scan = before_scan },
	{ "numa-skip",
	  "the same of one thread, where the scan has nothing to do",
	  .any_folio = true, .prepare = prepare_scans,
	  .scan = wait_for_scan, .before_scan = before_scan },
	{ "none", "calls that make all inaccessible and writable again",
	  .any_folio = true, .prepare = prepare_calls, .calls = call_for_all },
	{ "regions",
	  "calls that make two regions, of 123 pages, executable and writable "
	  "again, by turns",
	  .any_folio = true, .bytes = 2 * 123 * 4096,
	  .prepare = prepare_calls, .calls = call_for_halves },
	{ "singles",
	  "calls that make single pages, within 64 MiB, inaccessible and "
	  "writable again",
	  .any_folio = true, .bytes = 64 << 20,
	  .prepare = prepare_calls, .calls = call_for_singles },
	{ "empty",
	  "calls that make 64 MiB without a page writable and inaccessible "
	  "again, by steps of 64 KiB",
	  .bytes = 64 << 20, .prepare = prepare_empty, .calls = call_for_steps },
	{ 0 }
};

static struct probe_option options[] = {
	{ "case", "CASE", "what memory:", .row = &env.test, ROWS_OF(cases),
	  .needed = true },
	{ "bytes", "BYTES",
	  "of memory (128M, or what the case says; suffixes K, M, G), rounded "
	  "up to folios; with cases of calls to pages, in folios that may have "
	  "more",
	  .bytes = &env.bytes },
	{ "rounds", "N",
	  "measured, after one that is not; scans: at most 3",
	  .number = &env.rounds, .least = 1 },
	{ "threads", "N",
	  "callers at once, each with memory of its own (cases of calls)",
	  .number = &env.threads, .least = 1, .most = MAX_CALLERS },
	{ "folio", "BYTES",
	  "with T3, uffd-wp, half-exclusive, scans, none, regions and singles, "
	  "the size of the folios: a page, or one that the kernel has; "
	  "half-exclusive shares the second half of each larger one",
	  .bytes = &env.folio },
	{ "file", "PATH", "the file of private-file; by default one in memory",
	  .text = &env.file },
	{ "swap", "PATH", "a file or device that is overwritten and swapped to",
	  .text = &env.swap },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--case CASE [OPTION]...\n"
"Make memory read-only and writable again, round after round, and print as one\n"
"line of JSON what that costs.\n",
	.options = options,
	.notes =
"Examples:\n"
"  mprotect --case T2 --bytes 1G --rounds 40\n"
"      what was published\n"
"  mprotect --case half-exclusive --folio 64K\n"
"      large folios, of each of which half is shared\n"
"\n"
"It has to be run as root. Settings that it changes are put back. Counts are\n"
"null where the kernel has no means to count: TLB flushes need kprobe events,\n"
"batches the tracepoint mprotect_batch; both need histograms of events.\n"
"seconds are of the calls alone, ptes_visited the entries that they went over, in\n"
"cases of calls the pages, and protect_seconds are all there;\n"
"undisturbed_seconds is what it would be if all rounds had been like the fastest\n"
"ones. batched_share is the share of the entries that were changed, or passed\n"
"over, in batches of two and more; where there are none, batch_length is null.\n",
};

static void parse_arguments(int argc, char **argv)
{
	parse_options(argc, argv, &usage);
	if (env.folio && !env.test->any_folio)
		fail(2, "--folio is not for --case %s.", env.test->name);
	if (env.threads > 1 && !env.test->calls)
		fail(2, "--threads is not for --case %s.", env.test->name);
	if (env.test->prepare == prepare_swap && !env.swap)
		fail(2, "--case swap needs --swap; see --help.");
	if (env.test->bytes && !option_given(&usage, "bytes"))
		env.bytes = env.test->bytes;
}

/* Sizes, once page size and PMD size are known. */
static void settle_sizes(void)
{
	uint64_t folio = env.folio ? env.folio : env.test->folio;
	uint64_t unit;

	if (folio && !env.folio)
		folio = folio_size_from(folio);
	if (env.test->folio && !folio)
		fail(KERNEL_LACKS, "This kernel has no large folios of anonymous memory.");
	if (folio & (folio - 1) || folio > pmd_size)
		fail(2, "--folio takes a power of two up to %" PRIu64 "K.",
		     pmd_size >> 10);
	if (env.test->scan && env.rounds > MAX_SCANS)
		env.rounds = MAX_SCANS;
	/* A folio of one page is none. */
	env.folio = folio > page_size ? folio : 0;
	unit = env.folio ? env.folio : page_size;
	if (env.test->prepare == prepare_empty)
		unit = STEP_BYTES;
	memory.changed = round_up(env.bytes, env.test->prepare == prepare_calls ?
				  page_size : unit);
	env.bytes = round_up(env.bytes, unit);
	memory.pages = env.bytes / page_size;
}

static void print_result(double right, const struct times *times,
			 const struct times *undisturbed,
			 const struct counts *counts)
{
	/* Events are counted of one thread, and all do the same. */
	double counted = (double)counts->times.entries / env.threads;

	printf("{\"probe\": \"" PROBE "\", \"case\": ");
	json_put_string(stdout, env.test->name);
	printf(", \"bytes\": %" PRIu64 ", \"rounds\": %" PRIu64
	       ", \"threads\": %" PRIu64
	       ", \"page_size\": %zu, \"folio_bytes\": %" PRIu64
	       ", \"right_folios\": %.6f, \"calls\": %" PRIu64
	       ", \"ptes_visited\": %" PRIu64
	       ", \"seconds\": %.9f, \"protect_seconds\": %.9f"
	       ", \"restore_seconds\": %.9f, \"undisturbed_seconds\": %.9f"
	       ", \"touch_seconds\": ",
	       memory.changed, env.rounds, env.threads, page_size,
	       env.folio ? env.folio : page_size, right, times->calls,
	       times->entries, times->protect + times->restore, times->protect,
	       times->restore, undisturbed->protect + undisturbed->restore);
	if (env.test->touch)
		printf("%.9f, \"undisturbed_touch_seconds\": %.9f, \"ptes_touched\": %" PRIu64,
		       times->touch, undisturbed->touch, times->touched);
	else
		printf("null, \"undisturbed_touch_seconds\": null, \"ptes_touched\": null");
	if (counts->has_flushes)
		printf(", \"tlb_flushes\": %" PRIu64
		       ", \"tlb_flushes_per_mib\": %.9f", counts->flushes,
		       counts->flushes / (counted * page_size / (1 << 20)));
	else
		printf(", \"tlb_flushes\": null, \"tlb_flushes_per_mib\": null");
	if (counts->has_batches && counts->batches.events)
		printf(", \"batches\": %" PRIu64 ", \"batch_length\": %.6f"
		       ", \"batched_share\": %.6f}\n", counts->batches.events,
		       (double)counts->batches.sum / counts->batches.events,
		       counts->batches.sum / counted);
	else if (counts->has_batches)
		printf(", \"batches\": 0, \"batch_length\": null, \"batched_share\": 0}\n");
	else
		printf(", \"batches\": null, \"batch_length\": null, \"batched_share\": null}\n");
	flush_result();
}

int main(int argc, char **argv)
{
	struct times times = { 0 }, undisturbed = { 0 };
	struct counts counts = { 0 };
	double right = 1;

	page_size = sysconf(_SC_PAGESIZE);
	pmd_size = pmd_bytes(page_size);
	parse_arguments(argc, argv);
	settle_sizes();
	if (!folios_permitted(page_size))
		fail(1, "%s", folios_sentence(FOLIOS_DENIED));
	settings_init(undo);
	for (uint64_t i = 0; i < env.threads; i++) {
		env.test->prepare();
		callers[i].start = memory.start;
		keep_least(&right, check_memory());
	}
	all_rounds(&times, &undisturbed);
	count_events(&counts);
	check_memory();		/* the rounds left it as it was */
	print_result(right, &times, &undisturbed, &counts);
	return 0;
}
