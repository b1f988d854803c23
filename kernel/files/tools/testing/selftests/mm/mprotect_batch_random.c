// SPDX-License-Identifier: GPL-2.0-only
/*
 * mprotect() in batches does what mprotect() does entry by entry: a randomised
 * comparison.
 *
 * Each sequence of operations is performed on twins: two ranges of addresses of
 * this process that are built by the same calls, from pieces of anonymous and
 * shared memory and of files, with folios of all sizes, and that are shared with
 * the same children. Batching is off whenever something is done to the first
 * one, and on in a random manner for the second. After each operation the
 * entries must be the same, but for frame numbers, and so must be what came of
 * each access: a signal or none, the number of faults, whether the page changed
 * its frame, and what was read. In the end everything is accessed, made writable
 * and written, and both the twins and what the children see of them must hold
 * the same.
 *
 * Run it as root, in a directory of a file system that swap files can be on:
 *
 *	./mprotect_batch_random --sequences 10000
 *
 * A sequence follows from its seed alone, which is that of the first one plus
 * its number: "--seed S --sequences 1" repeats one.
 *
 * One that differs is run again with batching off for both twins. Should they
 * differ then as well, something else has disturbed it, and the sequence is
 * thrown away, just as one whose twins are not alike from the start, because
 * large folios could not be had. Too many of those are a failure. What batching
 * does comes back with the seed; a difference that never does is no failure by
 * itself, for the kernel writes, reclaims and migrates pages when it likes, but
 * a second one among few sequences is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/userfaultfd.h>

#include "../kselftest.h"
#include "mprotect_batch_util.h"
#include "page_cache_util.h"

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED	0x2000
#endif

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC		0x8000
#endif

#ifndef PAGEMAP_SCAN
struct page_region {
	__u64 start, end, categories;
};

struct pm_scan_arg {
	__u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	__u64 category_inverted, category_mask, category_anyof_mask;
	__u64 return_mask;
};

#define PAGEMAP_SCAN	_IOWR('f', 16, struct pm_scan_arg)
#endif

#define ALL_CATEGORIES	0xff

#define TWINS		2
#define MAX_PAGES	1024UL
/* There has to be room for them on disk. */
#define MAX_BYTES	(16UL << 20)
#define MAX_PIECES	3
#define MAX_CHILDREN	2
#define MAX_STEPS	12
#define MAX_ACCESSES	256
/* Accesses whose faults are counted together. */
#define CHUNK		4
#define MAX_REGIONS	256
#define SMAPS_BYTES	(256UL << 10)

/* Per cent of all sequences. */
#define MAX_THROWN_AWAY	5
/* For each of which one difference that does not come back is forgiven. */
#define SEQUENCES_A_CHANCE	1000

enum kind {
	ANON, SHMEM, MEMFD_SHARED, MEMFD_PRIVATE, FILE_SHARED, FILE_PRIVATE,
	HOLE, NR_KINDS,
};

static const char * const kind_names[NR_KINDS] = {
	[ANON] = "anonymous",
	[SHMEM] = "anonymous, shared",
	[MEMFD_SHARED] = "memfd, shared",
	[MEMFD_PRIVATE] = "memfd, private",
	[FILE_SHARED] = "file, shared",
	[FILE_PRIVATE] = "file, private",
	[HOLE] = "hole",
};

struct piece {
	enum kind kind;
	unsigned long first, nr;
	/* Of its folios; 0 is a page. */
	unsigned long size;
	struct rng rng;
};

struct access {
	unsigned long page;
	bool write;
	uint64_t value;
};

struct outcome {
	int sig;
	uint64_t value;
};

struct op;

struct op_type {
	const char *name;
	unsigned int weight;
	bool (*possible)(void);
	/* Decide on what random_range() leaves open. */
	void (*prepare)(struct op *op);
	/* One of them: for each twin (its result is compared), or for both. */
	long (*on_twin)(const struct op *op, unsigned int twin);
	void (*on_both)(const struct op *op);
	/* Afterwards; false if the twins differ. */
	bool (*check)(const struct op *op);
};

struct op {
	const struct op_type *type;
	unsigned long first, nr;
	unsigned int arg;
	struct rng rng;
};

/*
 * All that is written while faults are counted is in shared memory, which is no
 * other after a fork.
 */
static struct state {
	struct rng rng;
	char *base[TWINS];
	unsigned long pages;
	struct piece pieces[MAX_PIECES];
	unsigned int nr_pieces;
	/* Of the second twin's entries, never of the first one's. */
	bool batching;

	pid_t children[MAX_CHILDREN];
	unsigned int nr_children;
	unsigned int nr_ops;
	int uffd;
	bool young_cleared;
	/* Memory that everything needs may fault, as after a fork. */
	bool cold;
	struct op protected, registered;

	uint64_t before[TWINS][MAX_PAGES], entries[TWINS][MAX_PAGES];
	struct access accesses[MAX_ACCESSES];
	unsigned int nr_accesses;
	struct outcome outcomes[TWINS][MAX_ACCESSES];
	long faults[TWINS][MAX_ACCESSES / CHUNK];
	struct page_region regions[TWINS][MAX_REGIONS];
	unsigned long shuffled[MAX_PAGES];

	char difference[256], operation[128];
} *s;

enum result { ALIKE, NO_TWINS, DIFFERENT };

static unsigned long nr_sequences = 200, first_seed = 1;
static bool control, verbose;

/* The addresses that both twins are in, each from a huge page's start on. */
static char *area;
static unsigned long stride;
/* Of a twin. */
static unsigned long max_pages = MAX_PAGES;
static int files[TWINS], memfds[TWINS], questions[2], answers[2];
static int pagemap_fd, smaps_fd;
static char *smaps[TWINS], *contents;
static bool can_soft_dirty, can_clear_young, can_swap, can_scan;
static uint64_t uffd_features;

static unsigned long total_ops, total_accesses, total_faults, total_signals;
static unsigned long differences, thrown_away, disturbed, never_again;

static char *address(unsigned int twin, unsigned long page)
{
	return s->base[twin] + page * page_bytes;
}

static __printf(1, 2) bool differ(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->difference, sizeof(s->difference), format, args);
	va_end(args);
	return false;
}

/* For what is no operation. */
static void describe_as(const char *what)
{
	snprintf(s->operation, sizeof(s->operation), "%s", what);
}

/* They take turns in being first, which also halves the writes to switches. */
static unsigned int nth_twin(unsigned int nr)
{
	return (nr + s->nr_ops) % TWINS;
}

static void batching_for(unsigned int twin)
{
	set_batching(twin && s->batching);
}

/* Accesses */

static void access_all(char *base, const struct access *accesses,
		       unsigned int nr, struct outcome *outcomes, long *counts)
{
	unsigned int i, chunk;
	long before;

	for (chunk = 0; chunk < nr; chunk += CHUNK) {
		before = faults();
		for (i = chunk; i < nr && i < chunk + CHUNK; i++) {
			const struct access *a = &accesses[i];
			const uint64_t *write = a->write ? &a->value : NULL;
			struct outcome *o = &outcomes[i];

			o->value = 0;
			o->sig = access_page(base + a->page * page_bytes,
					     write, &o->value);
		}
		counts[chunk / CHUNK] = faults() - before;
	}
}

/* Have all faults that are no access's own before they are counted. */
static void warm_up(void)
{
	static struct access rehearsal[] = {
		{ .page = 0, .write = true }, { .page = 1, .write = true },
	};
	char stack[65536];
	static char *pages;

	touch_all(stack, sizeof(stack));
	touch_all(s, sizeof(*s));
	if (!pages)
		pages = mmap(NULL, 2 * page_bytes, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages, page_bytes, PROT_READ | PROT_WRITE);
	access_all(pages, rehearsal, 2, s->outcomes[0], s->faults[0]);
	access_all(pages, rehearsal, 2, s->outcomes[1], s->faults[1]);
	s->cold = false;
}

static void add_access(unsigned long page, bool write, struct rng *rng)
{
	if (s->nr_accesses < MAX_ACCESSES)
		s->accesses[s->nr_accesses++] = (struct access) {
			.page = page,
			.write = write,
			.value = random_number(rng),
		};
}

static long access_twin(const struct op *op, unsigned int twin)
{
	access_all(s->base[twin], s->accesses, s->nr_accesses,
		   s->outcomes[twin], s->faults[twin]);
	return 0;
}

static bool same_outcomes(const struct op *op)
{
	unsigned int i;

	for (i = 0; i < s->nr_accesses; i++) {
		const struct access *a = &s->accesses[i];
		const struct outcome *o[TWINS] = {
			&s->outcomes[0][i], &s->outcomes[1][i],
		};

		if (o[0]->sig != o[1]->sig)
			return differ("page %lu: %s gave signal %d and %d",
				      a->page, a->write ? "write" : "read",
				      o[0]->sig, o[1]->sig);
		if (o[0]->value != o[1]->value)
			return differ("page %lu holds %#llx and %#llx", a->page,
				      (unsigned long long)o[0]->value,
				      (unsigned long long)o[1]->value);
		total_signals += !!o[0]->sig;
	}
	total_accesses += s->nr_accesses;
	for (i = 0; i < s->nr_accesses; i += CHUNK) {
		long *nr[TWINS] = {
			&s->faults[0][i / CHUNK], &s->faults[1][i / CHUNK],
		};

		if (*nr[0] != *nr[1])
			return differ("%ld and %ld faults at page %lu or the next %d of the list",
				      *nr[0], *nr[1], s->accesses[i].page,
				      CHUNK - 1);
		total_faults += *nr[0];
	}
	return true;
}

static void prepare_accesses(void)
{
	if (s->cold)
		warm_up();
	forget_translations();
}

/* The whole state */

static void look(void)
{
	unsigned int twin;

	memcpy(s->before, s->entries, sizeof(s->before));
	for (twin = 0; twin < TWINS; twin++)
		read_entries(s->base[twin], s->pages, s->entries[twin]);
}

static bool frame_changed(unsigned int twin, unsigned long page)
{
	uint64_t before = s->before[twin][page], now = s->entries[twin][page];

	return before & now & PM_PRESENT && PM_FRAME(before) != PM_FRAME(now);
}

static bool same_entries(void)
{
	unsigned long page;

	for (page = 0; page < s->pages; page++) {
		uint64_t one = s->entries[0][page], two = s->entries[1][page];

		if (one >> 55 != two >> 55)
			return differ("page %lu: pagemap has bits %#x and %#x",
				      page, (unsigned int)(one >> 55),
				      (unsigned int)(two >> 55));
		if (frame_changed(0, page) != frame_changed(1, page))
			return differ("page %lu: only %s twin changed its frame",
				      page, frame_changed(0, page) ?
				      "the first" : "the second");
	}
	return true;
}

static int scan(unsigned int twin)
{
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = (uintptr_t)s->base[twin],
		.end = (uintptr_t)address(twin, s->pages),
		.vec = (uintptr_t)s->regions[twin],
		.vec_len = MAX_REGIONS,
		.return_mask = ALL_CATEGORIES,
	};

	return ioctl(pagemap_fd, PAGEMAP_SCAN, &arg);
}

static bool same_scan(void)
{
	int i, nr = scan(0), nr_two = scan(1);

	if (nr != nr_two)
		return differ("PAGEMAP_SCAN finds %d and %d regions", nr,
			      nr_two);
	for (i = 0; i < nr; i++) {
		struct page_region *one = &s->regions[0][i];
		struct page_region *two = &s->regions[1][i];
		unsigned long start = one->start - (uintptr_t)s->base[0];

		if (start != two->start - (uintptr_t)s->base[1] ||
		    one->end - one->start != two->end - two->start ||
		    one->categories != two->categories)
			return differ("page %lu: PAGEMAP_SCAN has categories %#llx and %#llx",
				      start / page_bytes,
				      (unsigned long long)one->categories,
				      (unsigned long long)two->categories);
	}
	return true;
}

static void read_whole(int fd, char *text, size_t size)
{
	size_t bytes = 0;
	ssize_t done;

	do {
		done = pread(fd, text + bytes, size - 1 - bytes, bytes);
		bytes += done > 0 ? done : 0;
	} while (done > 0);
	text[bytes] = '\0';
}

/* Return: the twin that some addresses belong to, or -1. */
static int twin_at(unsigned long start, unsigned long end)
{
	int twin;

	for (twin = 0; twin < TWINS; twin++)
		if (start >= (uintptr_t)s->base[twin] &&
		    end <= (uintptr_t)address(twin, s->pages))
			return twin;
	return -1;
}

/* Both twins' part of smaps; of each mapping's first line only the flags. */
static bool read_smaps(void)
{
	static char buffer[SMAPS_BYTES];
	size_t filled[TWINS] = { };
	char *line, *end;
	int twin = -1;

	read_whole(smaps_fd, buffer, sizeof(buffer));
	for (line = buffer; *line; line = end + 1) {
		unsigned long first, last;
		const char *kept = line;
		size_t bytes;

		end = strchr(line, '\n');
		if (!end)
			return false;
		bytes = end + 1 - line;
		if (sscanf(line, "%lx-%lx", &first, &last) == 2) {
			twin = twin_at(first, last);
			/* Addresses, device and inode differ. */
			kept = strchr(line, ' ');
			bytes = strlen(" rwxp\n");
			line[kept - line + bytes - 1] = '\n';
		}
		if (twin < 0)
			continue;
		memcpy(smaps[twin] + filled[twin], kept, bytes);
		filled[twin] += bytes;
	}
	for (twin = 0; twin < TWINS; twin++)
		smaps[twin][filled[twin]] = '\0';
	return true;
}

/*
 * Of the pages of a block of arm64, one that was accessed makes all of them so.
 * What was accessed never ceases to be, though.
 */
static bool same_line(const char *one, const char *two, int n1, int n2)
{
	unsigned long kib_one, kib_two;

	if (n1 == n2 && !memcmp(one, two, n1))
		return true;
	return ENTRIES_IN_BLOCKS && s->batching &&
	       sscanf(one, "Referenced: %lu kB", &kib_one) == 1 &&
	       sscanf(two, "Referenced: %lu kB", &kib_two) == 1 &&
	       kib_one < kib_two;
}

static bool same_smaps(void)
{
	char *one = smaps[0], *two = smaps[1];

	if (!read_smaps())
		return true;
	while (*one || *two) {
		int n1 = strcspn(one, "\n"), n2 = strcspn(two, "\n");

		if (!same_line(one, two, n1, n2))
			return differ("smaps: %.*s and %.*s", n1, one, n2, two);
		one += n1 + !!one[n1];
		two += n2 + !!two[n2];
	}
	return true;
}

/* Pages are written and copied as a whole: their ends will do. */
static bool same_contents(void)
{
	unsigned long page;
	uint64_t value;

	for (page = 0; page < s->pages; page++) {
		uint64_t *one = (uint64_t *)address(0, page);
		uint64_t *two = (uint64_t *)address(1, page);
		unsigned long last = page_bytes / sizeof(*one) - 1;
		int sig = access_page(one, NULL, &value);

		if (sig != access_page(two, NULL, &value))
			return differ("page %lu: read gives signal %d only in the %s twin",
				      page, sig ?: SIGSEGV,
				      sig ? "first" : "second");
		if (!sig && (one[0] != two[0] || one[last] != two[last]))
			return differ("page %lu holds %#llx and %#llx", page,
				      (unsigned long long)one[0],
				      (unsigned long long)two[0]);
	}
	return true;
}

/* What each child sees, which has to make it readable. */
static bool children_see_same(void)
{
	unsigned int nr;
	char answer;

	set_batching(false);
	for (nr = 0; nr < s->nr_children; nr++) {
		if (write(questions[1], "", 1) != 1 ||
		    read(answers[0], &answer, 1) != 1)
			ksft_exit_fail_perror("question to a child");
		if (answer)
			return false;
	}
	return true;
}

/* Operations: each is done to a range of pages */

static void random_range(struct op *op)
{
	const struct piece *piece;

	switch (random_below(&s->rng, 8)) {
	case 0:
		op->first = 0;
		op->nr = s->pages;
		return;
	case 1:
	case 2:
		op->first = random_below(&s->rng, s->pages);
		op->nr = 1 + random_below(&s->rng, s->pages - op->first);
		return;
	}
	/* Of one piece: a few pages, or any number. */
	piece = &s->pieces[random_below(&s->rng, s->nr_pieces)];
	op->first = random_below(&s->rng, piece->nr);
	op->nr = piece->nr - op->first;
	if (op->nr > 20 && one_in(&s->rng, 2))
		op->nr = 20;
	op->nr = 1 + random_below(&s->rng, op->nr);
	op->first += piece->first;
}

static char *op_address(const struct op *op, unsigned int twin)
{
	return address(twin, op->first);
}

static size_t op_bytes(const struct op *op)
{
	return op->nr * page_bytes;
}

static long or_errno(int err)
{
	return err ? -errno : 0;
}

static const int prots[] = {
	PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC,
	PROT_READ | PROT_WRITE | PROT_EXEC,
};

static void prepare_protect(struct op *op)
{
	/* Often back to what it was, or something else, for the same. */
	if (s->protected.nr && one_in(&s->rng, 2)) {
		op->first = s->protected.first;
		op->nr = s->protected.nr;
		if (one_in(&s->rng, 4))
			op->nr = 1 + random_below(&s->rng, op->nr);
		op->arg = s->protected.arg ? 0 : 1;
	} else {
		op->arg = random_below(&s->rng, 3);
		if (one_in(&s->rng, 4))
			op->arg = random_below(&s->rng, ARRAY_SIZE(prots));
	}
	s->protected = *op;
}

static long protect(const struct op *op, unsigned int twin)
{
	return or_errno(mprotect(op_address(op, twin), op_bytes(op),
				 prots[op->arg]));
}

static void prepare_some_accesses(struct op *op)
{
	unsigned int nr = 1 + random_below(&s->rng, 24);
	/* Reads, writes, or both. */
	unsigned int what = random_below(&s->rng, 4);
	unsigned int i;

	s->nr_accesses = 0;
	for (i = 0; i < nr; i++)
		add_access(op->first + random_below(&s->rng, op->nr),
			   what < 2 ? what : random_below(&s->rng, 2),
			   &s->rng);
	prepare_accesses();
}

static void stop_child_nr(unsigned int nr)
{
	kill(s->children[nr], SIGKILL);
	waitpid(s->children[nr], NULL, 0);
	s->children[nr] = s->children[--s->nr_children];
}

static bool can_fork(void)
{
	return s->nr_children < MAX_CHILDREN;
}

static bool have_children(void)
{
	return s->nr_children;
}

/* A part that no child gets stays exclusive, within its folio. */
static void prepare_fork(struct op *op)
{
	op->arg = random_below(&s->rng, 3);
}

static void __noreturn run_child(struct rng rng)
{
	unsigned int nr = random_below(&rng, 16), twin, i;
	char byte = 0;

	while (nr--) {
		unsigned long page = random_below(&rng, s->pages);
		uint64_t value = random_number(&rng);

		for (twin = 0; twin < TWINS; twin++)
			access_page(address(twin, page), &value, NULL);
	}
	if (write(answers[1], &byte, 1) != 1 ||
	    read(questions[0], &byte, 1) != 1)
		_exit(1);
	for (i = 0; i < s->nr_pieces; i++)
		for (twin = 0; twin < TWINS; twin++)
			mprotect(address(twin, s->pieces[i].first),
				 s->pieces[i].nr * page_bytes, PROT_READ);
	byte = !same_contents();
	if (byte)
		describe_as("what a child sees in the end");
	if (write(answers[1], &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void fork_child(const struct op *op)
{
	unsigned int twin;
	pid_t pid;
	char byte;

	for (twin = 0; op->arg && twin < TWINS; twin++)
		madvise(op_address(op, twin), op_bytes(op), MADV_DONTFORK);
	pid = fork_helper();
	if (!pid)
		run_child(op->rng);
	if (read(answers[0], &byte, 1) != 1)
		ksft_exit_fail_perror("answer of a child");
	for (twin = 0; op->arg && twin < TWINS; twin++)
		madvise(op_address(op, twin), op_bytes(op), MADV_DOFORK);
	s->children[s->nr_children++] = pid;
	s->cold = true;
}

static void end_child(const struct op *op)
{
	stop_child_nr(op->first % s->nr_children);
}

/* Advice */

static const int advices[] = {
	MADV_DONTNEED, MADV_FREE, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	MADV_DONTNEED,
};

static void prepare_advice(struct op *op)
{
	op->arg = random_below(&s->rng, ARRAY_SIZE(advices));
}

static long advise(const struct op *op, unsigned int twin)
{
	long result = or_errno(madvise(op_address(op, twin), op_bytes(op),
				       advices[op->arg]));

	drain_lists();
	return result;
}

/* Two mappings in the middle of a huge page: it needs entries then. */
static long split(const struct op *op, unsigned int twin)
{
	int err = madvise(op_address(op, twin), page_bytes, MADV_DONTFORK);

	if (err)
		return -errno;
	return or_errno(madvise(op_address(op, twin), page_bytes,
				MADV_DOFORK));
}

static bool swap_possible(void)
{
	unsigned int i;

	for (i = 0; i < s->nr_pieces; i++)
		if (s->pieces[i].kind < FILE_SHARED)
			return can_swap;
	return false;
}

/* Never of a file: whether its pages are read again in time is not sure. */
static void prepare_pageout(struct op *op)
{
	const struct piece *piece;

	do {
		piece = &s->pieces[random_below(&s->rng, s->nr_pieces)];
	} while (piece->kind >= FILE_SHARED);
	op->first = piece->first + random_below(&s->rng, piece->nr);
	op->nr = piece->first + piece->nr - op->first;
	if (one_in(&s->rng, 2))
		op->nr = 1 + random_below(&s->rng, op->nr);
}

static long page_out(const struct op *op, unsigned int twin)
{
	return or_errno(madvise(op_address(op, twin), op_bytes(op),
				MADV_PAGEOUT));
}

static bool check_pageout(const struct op *op)
{
	unsigned int twin;

	for (twin = 0; twin < TWINS; twin++)
		wait_for_writeback(s->entries[twin] + op->first, op->nr);
	return true;
}

static bool have_shared_file(void)
{
	unsigned int i;

	for (i = 0; i < s->nr_pieces; i++)
		if (s->pieces[i].kind == FILE_SHARED)
			return true;
	return false;
}

/* Its pages become clean, and their entries read-only. */
static long write_file(const struct op *op, unsigned int twin)
{
	return or_errno(msync(op_address(op, twin), op_bytes(op), MS_SYNC));
}

/* What the kernel keeps of accesses */

static bool soft_dirty_possible(void)
{
	return can_soft_dirty;
}

static void clear_soft_dirty(const struct op *op)
{
	clear_references("4");
	s->cold = true;
}

static bool clear_young_possible(void)
{
	return can_clear_young;
}

static void clear_young(const struct op *op)
{
	clear_references("1");
	forget_translations();
	s->young_cleared = true;
	s->cold = true;
}

/* Write protection by userfaultfd */

static bool have_uffd(void)
{
	return s->uffd >= 0;
}

static bool have_registered(void)
{
	return s->uffd >= 0 && s->registered.nr;
}

static void prepare_register(struct op *op)
{
	s->registered = *op;
}

static long uffd_register(const struct op *op, unsigned int twin)
{
	struct uffdio_register arg = {
		.range = { (uintptr_t)op_address(op, twin), op_bytes(op) },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return or_errno(ioctl(s->uffd, UFFDIO_REGISTER, &arg));
}

static long uffd_unregister(const struct op *op, unsigned int twin)
{
	struct uffdio_range arg = {
		(uintptr_t)op_address(op, twin), op_bytes(op),
	};

	return or_errno(ioctl(s->uffd, UFFDIO_UNREGISTER, &arg));
}

static void prepare_write_protect(struct op *op)
{
	op->first = s->registered.first +
		    random_below(&s->rng, s->registered.nr);
	op->nr = s->registered.first + s->registered.nr - op->first;
	op->nr = 1 + random_below(&s->rng, op->nr);
	op->arg = random_below(&s->rng, 3);
}

static long write_protect(const struct op *op, unsigned int twin)
{
	struct uffdio_writeprotect arg = {
		.range = { (uintptr_t)op_address(op, twin), op_bytes(op) },
		.mode = op->arg ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return or_errno(ioctl(s->uffd, UFFDIO_WRITEPROTECT, &arg));
}

static const struct op_type op_types[] = {
	{ .name = "mprotect", .weight = 40,
	  .prepare = prepare_protect, .on_twin = protect },
	{ .name = "accesses", .weight = 20,
	  .prepare = prepare_some_accesses, .on_twin = access_twin,
	  .check = same_outcomes },
	{ .name = "fork", .weight = 8, .possible = can_fork,
	  .prepare = prepare_fork, .on_both = fork_child },
	{ .name = "end of a child", .weight = 4, .possible = have_children,
	  .on_both = end_child },
	{ .name = "madvise", .weight = 6,
	  .prepare = prepare_advice, .on_twin = advise },
	{ .name = "split", .weight = 2, .on_twin = split },
	{ .name = "pageout", .weight = 4, .possible = swap_possible,
	  .prepare = prepare_pageout, .on_twin = page_out,
	  .check = check_pageout },
	{ .name = "msync", .weight = 3, .possible = have_shared_file,
	  .on_twin = write_file },
	{ .name = "soft-dirty cleared", .weight = 4,
	  .possible = soft_dirty_possible, .on_both = clear_soft_dirty },
	{ .name = "accessed cleared", .weight = 2,
	  .possible = clear_young_possible, .on_both = clear_young },
	{ .name = "userfaultfd register", .weight = 8, .possible = have_uffd,
	  .prepare = prepare_register, .on_twin = uffd_register },
	{ .name = "userfaultfd write-protect", .weight = 14,
	  .possible = have_registered,
	  .prepare = prepare_write_protect, .on_twin = write_protect },
	{ .name = "userfaultfd unregister", .weight = 2,
	  .possible = have_registered, .on_twin = uffd_unregister },
};

/* Not chosen by chance, but for the end. */
static const struct op_type last_protect = { "mprotect", .on_twin = protect };
static const struct op_type last_accesses = {
	"accesses", .on_twin = access_twin, .check = same_outcomes,
};

static void describe(const struct op *op)
{
	snprintf(s->operation, sizeof(s->operation),
		 "%s, pages %lu to %lu, argument %u", op->type->name, op->first,
		 op->first + op->nr - 1, op->arg);
}

static bool do_op(const struct op *op)
{
	long results[TWINS] = { };
	unsigned int i;

	describe(op);
	if (verbose)
		ksft_print_msg("%s\n", s->operation);
	s->nr_ops++;
	total_ops++;
	if (op->type->on_both)
		op->type->on_both(op);
	for (i = 0; op->type->on_twin && i < TWINS; i++) {
		unsigned int twin = nth_twin(i);

		batching_for(twin);
		results[twin] = op->type->on_twin(op, twin);
	}
	if (verbose && results[0])
		ksft_print_msg("  %s\n", strerror(-results[0]));
	if (results[0] != results[1])
		return differ("returns %ld and %ld", results[0], results[1]);
	if (op->type->check && !op->type->check(op))
		return false;
	look();
	return same_entries();
}

/* Return: 0 for one that cannot be done now. */
static unsigned int weight_now(const struct op_type *type)
{
	return !type->possible || type->possible() ? type->weight : 0;
}

static const struct op_type *random_op_type(void)
{
	unsigned int weights = 0, choice;
	const struct op_type *type;

	for (type = op_types; type < op_types + ARRAY_SIZE(op_types); type++)
		weights += weight_now(type);
	choice = random_below(&s->rng, weights);
	for (type = op_types; choice >= weight_now(type); type++)
		choice -= weight_now(type);
	return type;
}

static bool random_op(void)
{
	struct op op = { .type = random_op_type() };

	op.rng.state = random_number(&s->rng);
	random_range(&op);
	if (op.type->prepare)
		op.type->prepare(&op);
	return do_op(&op);
}

/* Building */

static void fill_file(int fd, const struct piece *piece, struct rng *rng)
{
	unsigned long page, nr;

	/* Holes are what reads find by themselves. */
	if (one_in(rng, 4))
		return;
	for (page = piece->first; page < piece->first + piece->nr;
	     page += nr) {
		uint64_t *words = (uint64_t *)contents;

		nr = 1 + random_below(rng, 32);
		if (nr > piece->first + piece->nr - page)
			nr = piece->first + piece->nr - page;
		memset(words, 0, nr * page_bytes);
		words[0] = random_number(rng);
		words[nr * page_bytes / sizeof(*words) - 1] = page;
		if (pwrite(fd, words, nr * page_bytes, page * page_bytes) !=
		    (ssize_t)(nr * page_bytes))
			ksft_exit_fail_perror("write to a test file");
	}
}

static int piece_fd(const struct piece *piece, unsigned int twin)
{
	switch (piece->kind) {
	case MEMFD_SHARED:
	case MEMFD_PRIVATE:
		return memfds[twin];
	case FILE_SHARED:
	case FILE_PRIVATE:
		return files[twin];
	default:
		return -1;
	}
}

static void map_piece(const struct piece *piece, unsigned int twin,
		      struct rng *rng)
{
	int flags = MAP_FIXED, fd = piece_fd(piece, twin);
	char *addr = address(twin, piece->first);
	size_t bytes = piece->nr * page_bytes;

	switch (piece->kind) {
	case ANON:
		flags |= MAP_PRIVATE | MAP_ANONYMOUS;
		break;
	case SHMEM:
		flags |= MAP_SHARED | MAP_ANONYMOUS;
		break;
	case MEMFD_SHARED:
	case FILE_SHARED:
		flags |= MAP_SHARED;
		break;
	case MEMFD_PRIVATE:
	case FILE_PRIVATE:
		flags |= MAP_PRIVATE;
		break;
	default:
		munmap(addr, bytes);
		return;
	}
	if (fd >= 0) {
		off_t end = lseek(fd, 0, SEEK_END);
		off_t needed = (piece->first + piece->nr) * page_bytes;

		if (end < needed && ftruncate(fd, needed))
			ksft_exit_fail_perror("ftruncate");
	}
	if (mmap(addr, bytes, PROT_READ | PROT_WRITE, flags, fd,
		 fd < 0 ? 0 : piece->first * page_bytes) == MAP_FAILED)
		ksft_exit_fail_perror("mmap of a piece");
	madvise(addr, bytes, piece->size ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (fd >= 0)
		fill_file(fd, piece, rng);
}

enum order { FORWARD, BACKWARD, SHUFFLED };

/* How pages are touched: one in so many is written or else read; 0 is none. */
struct way {
	enum order order;
	unsigned int write_one_in, read_one_in;
};

static void put_in_order(unsigned long nr, enum order order, struct rng *rng)
{
	unsigned long i, j;

	for (i = 0; i < nr; i++)
		s->shuffled[i] = order == BACKWARD ? nr - 1 - i : i;
	for (i = nr; order == SHUFFLED && i > 1; i--) {
		unsigned long swapped = s->shuffled[i - 1];

		j = random_below(rng, i);
		s->shuffled[i - 1] = s->shuffled[j];
		s->shuffled[j] = swapped;
	}
}

static void touch_pages(const struct piece *piece, unsigned int twin,
			const struct way *way, struct rng *rng)
{
	unsigned long i;

	put_in_order(piece->nr, way->order, rng);
	for (i = 0; i < piece->nr; i++) {
		unsigned long page = piece->first + s->shuffled[i];
		uint64_t value = random_number(rng);

		if (way->write_one_in && one_in(rng, way->write_one_in))
			access_page(address(twin, page), &value, NULL);
		else if (way->read_one_in && one_in(rng, way->read_one_in))
			access_page(address(twin, page), NULL, &value);
	}
}

static void populate(const struct piece *piece, unsigned int twin,
		     struct rng *rng)
{
	static const struct way ways[] = {
		{ BACKWARD, 1, 0 }, { SHUFFLED, 1, 0 }, { SHUFFLED, 2, 0 },
		{ SHUFFLED, 4, 2 }, { FORWARD, 0, 1 }, { FORWARD, 3, 1 },
		{ FORWARD, 1, 0 }, { FORWARD, 1, 0 },
	};
	unsigned long choice = random_below(rng, ARRAY_SIZE(ways) + 2);

	if (choice < ARRAY_SIZE(ways))
		touch_pages(piece, twin, &ways[choice], rng);
	else if (choice == ARRAY_SIZE(ways))
		madvise(address(twin, piece->first), piece->nr * page_bytes,
			MADV_POPULATE_WRITE);
	/* And one in so many is not populated at all. */
}

static void choose_piece(struct piece *piece, unsigned long first,
			 unsigned long nr)
{
	static const enum kind kinds[] = {
		ANON, ANON, ANON, ANON, ANON, ANON, ANON, ANON, ANON, ANON,
		SHMEM, SHMEM, SHMEM, MEMFD_SHARED, MEMFD_PRIVATE, FILE_SHARED,
		FILE_SHARED, FILE_PRIVATE, FILE_PRIVATE, HOLE,
	};
	unsigned int i;

	piece->first = first;
	piece->nr = nr;
	piece->kind = kinds[random_below(&s->rng, ARRAY_SIZE(kinds))];
	piece->size = 0;
	piece->rng.state = random_number(&s->rng);
	i = random_below(&s->rng, nr_sizes + 1);
	if (piece->kind < FILE_SHARED && i < nr_sizes &&
	    sizes[i] / page_bytes <= max_pages / 4)
		piece->size = sizes[i];
}

/* Few pages tell as much, and take less time. */
static unsigned long choose_nr_pages(void)
{
	unsigned long choice = random_below(&s->rng, 64), least = 16, limit = 48;

	if (choice == 0) {
		least = max_pages / 2;
		limit = max_pages;
	} else if (choice < 4) {
		least = max_pages / 4;
		limit = max_pages / 2;
	} else if (choice < 20) {
		least = 48;
		limit = 128;
	}
	return least + random_below(&s->rng, limit - least + 1);
}

/* Return: in pages from the start of a huge page. */
static unsigned long choose_offset(void)
{
	switch (random_below(&s->rng, 4)) {
	case 0:
		/* Any place, mostly with a page table's end in between. */
		return stride / page_bytes / 2 - s->pages +
		       random_below(&s->rng, s->pages);
	case 1:
		return random_below(&s->rng, 64);
	default:
		return 16 * random_below(&s->rng, 8);
	}
}

/* Take pages from the end, so that there are no more than the most. */
static void cut_pages(void)
{
	while (s->pages > max_pages) {
		struct piece *last = &s->pieces[s->nr_pieces - 1];
		unsigned long over = s->pages - max_pages;

		if (s->nr_pieces > 1 && last->nr <= over) {
			s->pages -= last->nr;
			s->nr_pieces--;
		} else {
			s->pages -= over;
			last->nr -= over;
		}
	}
}

/* Have the first piece begin with a huge page. */
static void insert_huge_page(unsigned long huge_pages)
{
	unsigned int i;

	s->pieces[0].kind = ANON;
	s->pieces[0].size = huge_bytes;
	s->pieces[0].nr += huge_pages;
	for (i = 1; i < s->nr_pieces; i++)
		s->pieces[i].first += huge_pages;
	s->pages += huge_pages;
	cut_pages();
}

static void choose_pieces(void)
{
	unsigned long huge_pages = huge_bytes / page_bytes;
	/* Now and then, if pages are small. */
	bool huge = one_in(&s->rng, 48) && huge_pages && huge_pages < max_pages;
	unsigned long offset, first = 0;
	unsigned int i;

	s->pages = choose_nr_pages();
	s->nr_pieces = 1 + random_below(&s->rng, MAX_PIECES);
	for (i = 0; i < s->nr_pieces; i++) {
		unsigned long nr = s->pages - first;

		if (i + 1 < s->nr_pieces)
			nr = 1 + random_below(&s->rng, nr - s->nr_pieces + i);
		choose_piece(&s->pieces[i], first, nr);
		first += nr;
	}
	offset = choose_offset();
	if (huge) {
		insert_huge_page(huge_pages);
		offset = 0;
	}
	for (i = 0; i < TWINS; i++)
		s->base[i] = area + i * stride + offset * page_bytes;
}

/* How often folios of the wanted sizes could not be had, and were smaller. */
static unsigned long fallbacks(void)
{
	unsigned long sum = 0;
	unsigned int i;

	for (i = 0; i < s->nr_pieces; i++) {
		const struct piece *piece = &s->pieces[i];

		if (piece->size)
			sum += size_stat(piece->size, piece->kind == ANON ?
					 "anon_fault_fallback" :
					 "shmem_fallback");
	}
	return sum;
}

static bool build(void)
{
	unsigned long before;
	unsigned int i, twin;

	choose_pieces();
	if (verbose)
		ksft_print_msg("twins at %p and %p\n", s->base[0], s->base[1]);
	before = fallbacks();
	for (i = 0; i < s->nr_pieces; i++) {
		const struct piece *piece = &s->pieces[i];

		if (verbose)
			ksft_print_msg("pages %lu to %lu: %s, folios of %lu KiB\n",
				       piece->first,
				       piece->first + piece->nr - 1,
				       kind_names[piece->kind],
				       (piece->size ?: page_bytes) >> 10);
		if (piece->size)
			set_size(piece->size);
		for (twin = 0; twin < TWINS; twin++) {
			struct rng rng = piece->rng;

			map_piece(piece, twin, &rng);
			if (piece->kind != HOLE)
				populate(piece, twin, &rng);
		}
	}
	look();
	memcpy(s->before, s->entries, sizeof(s->before));
	if (fallbacks() != before)
		return differ("folios of the wanted size could not be had");
	return same_entries();
}

static void open_uffd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	unsigned int mode = random_below(&s->rng, 4);

	s->uffd = -1;
	if (mode < 2 || !uffd_features)
		return;
	api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
		       UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
	if (mode == 2)
		api.features |= UFFD_FEATURE_SIGBUS;
	else
		api.features |= UFFD_FEATURE_WP_UNPOPULATED |
				UFFD_FEATURE_WP_ASYNC;
	if (one_in(&s->rng, 2))
		api.features |= UFFD_FEATURE_WP_UNPOPULATED;
	api.features &= uffd_features;
	s->uffd = syscall(__NR_userfaultfd, O_CLOEXEC);
	if (s->uffd < 0 || ioctl(s->uffd, UFFDIO_API, &api))
		ksft_exit_fail_perror("userfaultfd");
}

static void map_nothing(void)
{
	if (mmap(area, TWINS * stride, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		ksft_exit_fail_perror("mmap of nothing");
}

static void tear_down(void)
{
	unsigned int i, twin;

	while (s->nr_children)
		stop_child_nr(0);
	if (s->uffd >= 0)
		close(s->uffd);
	map_nothing();
	for (i = 0; i < s->nr_pieces; i++)
		for (twin = 0; twin < TWINS; twin++)
			if (piece_fd(&s->pieces[i], twin) >= 0 &&
			    ftruncate(piece_fd(&s->pieces[i], twin), 0))
				ksft_exit_fail_perror("ftruncate");
}

/* Sequences */

/* Or as much of it as @max, picked at random. */
static bool access_everything(bool write_all, unsigned int max)
{
	struct op op = { .type = &last_accesses, .nr = s->pages };
	unsigned long page, nr = s->pages;

	s->nr_accesses = 0;
	for (page = 0; page < nr; page++)
		s->shuffled[page] = page;
	while (nr && s->nr_accesses < max) {
		unsigned long i = random_below(&s->rng, nr);

		add_access(s->shuffled[i], write_all || one_in(&s->rng, 2),
			   &s->rng);
		s->shuffled[i] = s->shuffled[--nr];
	}
	prepare_accesses();
	return do_op(&op);
}

static bool make_all_writable(void)
{
	unsigned int i;

	for (i = 0; i < s->nr_pieces; i++) {
		struct op op = {
			.type = &last_protect,
			.first = s->pieces[i].first,
			.nr = s->pieces[i].nr,
		};

		if (!do_op(&op))
			return false;
	}
	return true;
}

static bool run_steps(void)
{
	unsigned int nr = 4 + random_below(&s->rng, MAX_STEPS - 3);

	while (nr--)
		if (!random_op())
			return false;
	describe_as("the end");
	if (can_scan && !same_scan())
		return false;
	if ((s->young_cleared || one_in(&s->rng, 16)) && !same_smaps())
		return false;
	if (!access_everything(false, MAX_ACCESSES / 4) ||
	    !make_all_writable() || !access_everything(true, MAX_ACCESSES))
		return false;
	describe_as("the end");
	if (!same_contents())
		return false;
	return children_see_same();
}

static enum result run_sequence(uint64_t seed, bool alike)
{
	enum result result;

	s->rng.state = seed * 0xd1342543de82ef95ULL;
	s->batching = !alike;
	if (verbose)
		ksft_print_msg("seed %llu\n", (unsigned long long)seed);
	s->nr_ops = 0;
	s->cold = true;
	s->young_cleared = false;
	s->protected.nr = 0;
	s->registered.nr = 0;
	open_uffd();
	describe_as("building");
	if (!build())
		result = NO_TWINS;
	else
		result = run_steps() ? ALIKE : DIFFERENT;
	tear_down();
	return result;
}

/* Return: whether the twins differ without batching, too, or are never alike. */
static bool differs_anyway(uint64_t seed, unsigned int *plain)
{
	unsigned int run;

	*plain = 0;
	for (run = 0; run < 3; run++) {
		enum result result = run_sequence(seed, true);

		if (result == DIFFERENT)
			return true;
		*plain += result == ALIKE;
	}
	return !*plain;
}

/* Is it batching, and nothing else, that makes the twins differ? */
static void judge_difference(uint64_t seed)
{
	unsigned int run, plain, runs = 0, again = 0;

	ksft_print_msg("seed %llu, %s batching: %s: %s\n",
		       (unsigned long long)seed, s->batching ? "with" : "without",
		       s->operation, s->difference);
	if (control) {
		differences++;
		return;
	}
	verbose = false;
	if (differs_anyway(seed, &plain)) {
		disturbed++;
		return;
	}
	for (run = 0; run < 10; run++) {
		enum result result = run_sequence(seed, false);

		runs += result != NO_TWINS;
		again += result == DIFFERENT;
	}
	ksft_print_msg("of %u more runs, %u differ; of %u without batching, none\n",
		       runs, again, plain);
	ksft_print_msg("repeat with --seed %llu --sequences 1\n",
		       (unsigned long long)seed);
	/* Of a few runs, chance may have made all alike. */
	if (again || runs < 5)
		differences++;
	else
		never_again++;
}

/* Return: how many there were; of those that differ too often, not all. */
static unsigned long run_sequences(void)
{
	unsigned long enough = 10 + nr_sequences / SEQUENCES_A_CHANCE;
	unsigned long nr;

	for (nr = 0; nr < nr_sequences && differences + never_again < enough;
	     nr++) {
		switch (run_sequence(first_seed + nr, control)) {
		case ALIKE:
			break;
		case NO_TWINS:
			thrown_away++;
			if (verbose)
				ksft_print_msg("no twins: %s\n",
					       s->difference);
			break;
		case DIFFERENT:
			judge_difference(first_seed + nr);
		}
	}
	return nr;
}

static void print_totals(unsigned long nr, double seconds)
{
	ksft_print_msg("seeds %lu to %lu in %.1f s: %.1f sequences a second\n",
		       first_seed, first_seed + nr - !!nr, seconds, nr / seconds);
	ksft_print_msg("%lu operations, %lu accesses with %lu faults and %lu signals\n",
		       total_ops, total_accesses, total_faults, total_signals);
	ksft_print_msg("%lu thrown away as built unlike, %lu as disturbed\n",
		       thrown_away, disturbed);
	ksft_print_msg("%lu differences that came back, %lu that did not\n",
		       differences, never_again);
}

/* Of a few sequences, none of the right kind may be there. */
static bool enough_batches(int counter, unsigned long nr)
{
	uint64_t batches = batches_counted(counter);

	if (counter < 0)
		return true;
	ksft_print_msg("%llu batches\n", (unsigned long long)batches);
	return batches || nr < 100;
}

static void test_sequences(void)
{
	unsigned long nr, forgiven, trouble = kernel_trouble();
	int counter = control ? -1 : count_batches(false);
	double start = seconds_now();
	bool ok;

	nr = run_sequences();
	print_totals(nr, seconds_now() - start);
	forgiven = (nr + SEQUENCES_A_CHANCE - 1) / SEQUENCES_A_CHANCE;
	ok = enough_batches(counter, nr);
	ok &= !kernel_complained(trouble);
	ksft_test_result(ok && !differences && never_again <= forgiven,
			 "nothing tells batches from single entries\n");
	ksft_test_result((thrown_away + disturbed) * 100 <=
			 nr * MAX_THROWN_AWAY || nr < 20,
			 "hardly a sequence is thrown away\n");
}

static void make_files(void)
{
	unsigned int twin;

	for (twin = 0; twin < TWINS; twin++) {
		files[twin] = make_file();
		if (files[twin] < 0)
			ksft_exit_skip("cannot make a file in the current directory\n");
		memfds[twin] = memfd_create("mprotect_batch", MFD_CLOEXEC);
		if (memfds[twin] < 0)
			ksft_exit_fail_perror("memfd_create");
		smaps[twin] = shared_memory(SMAPS_BYTES);
	}
	contents = shared_memory(MAX_PAGES * page_bytes);
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	smaps_fd = open("/proc/self/smaps", O_RDONLY);
	if (pagemap_fd < 0 || smaps_fd < 0 || pipe(questions) ||
	    pipe(answers))
		ksft_exit_fail_perror("preparations");
}

static void choose_addresses(void)
{
	char *start;

	if (max_pages > MAX_BYTES / page_bytes)
		max_pages = MAX_BYTES / page_bytes;
	/* Either twin has room on both sides of a page table's end. */
	stride = 4 * (huge_bytes ?: 2UL << 20);
	/* With room on both sides, or mappings there would become one with it. */
	start = reserve_addresses((TWINS + 2) * stride);
	area = (char *)(((uintptr_t)start / stride + 1) * stride);
}

static uint64_t find_uffd_features(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC);
	bool found = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);

	close(fd);
	return found && api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP ?
	       api.features : 0;
}

/* What of this kernel is put to the test. */
static void find_features(void)
{
	uffd_features = find_uffd_features();
	can_soft_dirty = has_soft_dirty();
	can_clear_young = has_hardware_accessed();
	can_swap = start_swap(128UL << 20);
	s->base[0] = area;
	can_scan = scan(0) >= 0;
	ksft_print_msg("%u folio sizes%s%s%s%s%s\n", nr_sizes,
		       can_swap ? ", swap" : "",
		       can_soft_dirty ? ", soft-dirty" : "",
		       can_clear_young ? ", accessed" : "",
		       uffd_features ? ", userfaultfd" : "",
		       can_scan ? ", PAGEMAP_SCAN" : "");
}

static void prepare(void)
{
	s = shared_memory(sizeof(*s));
	make_files();
	choose_addresses();
	catch_signals();
	find_features();
	/* All that is mapped once is so before there are any holes to map it in. */
	s->cold = true;
	prepare_accesses();
	drain_lists();
}

static void run_tests(void)
{
	ksft_set_plan(2);
	keep_peace();
	stay_on_cpu();
	prepare();
	test_sequences();
	ksft_finished();
}

static void __noreturn print_usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--sequences N] [--seed S] [--control] [--verbose]\n"
		"  --sequences N  how many random sequences to compare (200)\n"
		"  --seed S       seed of the first one (1)\n"
		"  --control      no batching in either twin: a test of the test\n"
		"  --verbose      print each operation\n",
		name);
	exit(KSFT_FAIL);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "sequences", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "control", no_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 'n':
			nr_sequences = strtoul(optarg, NULL, 0);
			break;
		case 's':
			first_seed = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			control = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			print_usage(argv[0]);
		}
	}
	if (optind < argc)
		print_usage(argv[0]);

	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root for frame numbers and settings\n");
	mprotect_batch_init();
	if (!guard_batching() && !control)
		ksft_exit_skip("no batches on this kernel\n");
	guard_sizes();
	guard_peace();
	guard_swap();
	return run_guarded(run_tests, stop_swap);
}
