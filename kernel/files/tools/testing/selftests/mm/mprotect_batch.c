// SPDX-License-Identifier: GPL-2.0-only
/*
 * mprotect() in batches: single cases, each with batching and without, whose
 * outcome is known page by page: signals, faults and contents. What nobody
 * thought of is for mprotect_batch_random.
 *
 * Run it as root, in a directory of any file system:
 *
 *	./mprotect_batch
 *
 * With --control, batching stays off: a test of the test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "../kselftest.h"
#include "mprotect_batch_util.h"
#include "page_cache_util.h"

/* Enough for a block of arm64's contiguous entries, whatever its page size. */
#define MAX_PAGES	128UL

#define NUMA_DIR	"/sys/kernel/debug/sched/numa_balancing"

static const char * const batching_names[] = { "no batching", "batching" };

static bool control;
static bool batching;
static unsigned long trouble;
static int counter;

/* What came of an access to a page; in shared memory, see count_faults(). */
static struct outcome {
	int sig;
	long faults;
} *outcomes;

/* Return: false, which ends the case: one page of those that are wrong will do. */
static bool wrong(const char *what, unsigned long page, long is, long expected)
{
	ksft_print_msg("%s: page %lu: %s is %ld rather than %ld\n",
		       batching_names[batching], page, what, is, expected);
	return false;
}

/* Memory */

/* Some pages from a multiple of some bytes on, and how they are mapped. */
struct memory {
	char *reserved, *start;
	size_t reserved_bytes;
	unsigned long pages;
};

static char *page_at(const struct memory *memory, unsigned long page)
{
	return memory->start + page * page_bytes;
}

static void reserve(struct memory *memory, unsigned long pages,
		    unsigned long align, unsigned long skip)
{
	memory->pages = pages;
	memory->reserved_bytes = (pages + skip) * page_bytes + 2 * align;
	memory->reserved = reserve_addresses(memory->reserved_bytes);
	memory->start = memory->reserved + align;
	memory->start -= (uintptr_t)memory->start % align;
	memory->start += skip * page_bytes;
}

static void map_at(const struct memory *memory, unsigned long first,
		   unsigned long pages, int flags, int fd)
{
	if (mmap(page_at(memory, first), pages * page_bytes,
		 PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd,
		 fd < 0 ? 0 : first * page_bytes) == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
}

static void release(const struct memory *memory)
{
	munmap(memory->reserved, memory->reserved_bytes);
}

static uint64_t stamp(unsigned long page)
{
	return page * 0x100000001ULL + 1;
}

static void write_stamps(const struct memory *memory)
{
	unsigned long page;

	for (page = 0; page < memory->pages; page++)
		*(uint64_t *)page_at(memory, page) = stamp(page);
}

static bool stamps_right(const struct memory *memory)
{
	unsigned long page;

	for (page = 0; page < memory->pages; page++) {
		uint64_t value = 0;

		access_page(page_at(memory, page), NULL, &value);
		if (value != stamp(page))
			return wrong("content", page, value, stamp(page));
	}
	return true;
}

/* One folio, written all over. */
static void map_folio(struct memory *memory, unsigned long bytes)
{
	uint64_t entries[MAX_PAGES];
	unsigned long page;

	reserve(memory, bytes / page_bytes, bytes, 0);
	map_at(memory, 0, memory->pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	set_size(bytes);
	madvise(memory->start, bytes, MADV_HUGEPAGE);
	write_stamps(memory);
	read_entries(memory->start, memory->pages, entries);
	for (page = 0; page < memory->pages; page++)
		if (PM_FRAME(entries[page]) != PM_FRAME(entries[0]) + page ||
		    PM_FRAME(entries[0]) % memory->pages)
			ksft_exit_fail_msg("no folio of %lu KiB to be had\n",
					   bytes >> 10);
}

static bool protect(const struct memory *memory, unsigned long first,
		    unsigned long pages, int prot)
{
	if (!mprotect(page_at(memory, first), pages * page_bytes, prot))
		return true;
	ksft_perror("mprotect");
	return false;
}

/* Take away the right to write, and give it back. */
static bool protect_and_back(const struct memory *memory, unsigned long first,
			     unsigned long pages)
{
	return protect(memory, first, pages, PROT_READ) &&
	       protect(memory, first, pages, PROT_READ | PROT_WRITE);
}

/* Accesses */

/*
 * Access pages one by one, with their faults, of which some other memory must
 * have none then. After a fork or clear_references(), all of it has one.
 */
static void access_pages(const struct memory *memory, bool write)
{
	static char *scratch;
	unsigned long page;
	char stack[32768];
	uint64_t value;

	touch_all(stack, sizeof(stack));
	touch_all(outcomes, MAX_PAGES * sizeof(*outcomes));
	if (!scratch)
		scratch = mmap(NULL, page_bytes, PROT_READ,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	value = 0;
	outcomes[0].faults = faults();
	outcomes[0].sig = access_page(scratch, &value, NULL);
	forget_translations();

	for (page = 0; page < memory->pages; page++) {
		long before = faults();

		value = stamp(page);
		outcomes[page].sig = access_page(page_at(memory, page),
						 write ? &value : NULL, &value);
		outcomes[page].faults = faults() - before;
	}
}

static bool expect(unsigned long page, int sig, long nr_faults)
{
	/* How many faults a signal takes is not of interest. */
	if (outcomes[page].sig != sig)
		return wrong("signal", page, outcomes[page].sig, sig);
	if (!sig && outcomes[page].faults != nr_faults)
		return wrong("number of faults", page, outcomes[page].faults,
			     nr_faults);
	return true;
}

static bool expect_range(unsigned long first, unsigned long pages, int sig,
			 long nr_faults)
{
	unsigned long page;

	for (page = first; page < first + pages; page++)
		if (!expect(page, sig, nr_faults))
			return false;
	return true;
}

/* A child that waits, and then looks whether its memory is what it was */

struct child {
	pid_t pid;
	int go;
};

/* Pages that a child did not get are left out. */
static bool accessible_stamps_right(const struct memory *memory)
{
	unsigned long page;
	uint64_t value;
	bool ok = true;

	for (page = 0; page < memory->pages; page++)
		if (!access_page(page_at(memory, page), NULL, &value))
			ok &= value == stamp(page);
	return ok;
}

static void start_child(struct child *child, const struct memory *memory)
{
	int fds[2];
	char byte;

	if (pipe(fds))
		ksft_exit_fail_perror("pipe");
	child->pid = fork_helper();
	if (!child->pid) {
		close(fds[1]);
		if (read(fds[0], &byte, 1))
			_exit(2);
		_exit(!accessible_stamps_right(memory));
	}
	close(fds[0]);
	child->go = fds[1];
}

static bool end_child(struct child *child)
{
	int status;

	close(child->go);
	if (waitpid(child->pid, &status, 0) != child->pid)
		ksft_exit_fail_perror("waitpid");
	if (status)
		ksft_print_msg("%s: a child sees what was written after the fork\n",
			       batching_names[batching]);
	return !status;
}

/* Have the child share only what is not advised before this. */
static void advise_fork(const struct memory *memory, unsigned long first,
			unsigned long pages, int advice)
{
	if (madvise(page_at(memory, first), pages * page_bytes, advice))
		ksft_exit_fail_perror("madvise");
}

static void overwrite(const struct memory *memory)
{
	unsigned long page;

	for (page = 0; page < memory->pages; page++)
		*(uint64_t *)page_at(memory, page) = ~stamp(page);
}

/* The cases. Those of a folio get one of each size that is not too large. */

/* Which pages of a folio are shared with a child: from first on, each step. */
static bool shared_in_part(unsigned long bytes, unsigned long first,
			   unsigned long last, unsigned long step,
			   unsigned long from, bool child_stays)
{
	struct memory memory;
	struct child child;
	unsigned long page;
	bool ok;

	map_folio(&memory, bytes);
	for (page = 0; page < memory.pages; page++)
		if (page < first || page >= last || (page - first) % step)
			advise_fork(&memory, page, 1, MADV_DONTFORK);
	start_child(&child, &memory);
	advise_fork(&memory, 0, memory.pages, MADV_DOFORK);
	ok = child_stays || end_child(&child);

	ok &= protect_and_back(&memory, from, memory.pages - from);
	access_pages(&memory, true);
	for (page = 0; page < memory.pages; page++) {
		bool shared = page >= first && page < last &&
			      !((page - first) % step);

		/* A page of a large folio is copied even if it is the last. */
		ok = ok && expect(page, 0, shared);
	}
	overwrite(&memory);
	ok &= !child_stays || end_child(&child);
	release(&memory);
	return ok;
}

static bool test_first_exclusive(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return shared_in_part(bytes, 1, nr, 1, 1, true) &&
	       shared_in_part(bytes, 1, nr, 1, nr / 2, true) &&
	       shared_in_part(bytes, nr / 2, nr, 1, nr / 2, true) &&
	       shared_in_part(bytes, 1, nr, 1, nr - 2, true);
}

static bool test_first_shared(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return shared_in_part(bytes, 0, 1, 1, 1, true) &&
	       shared_in_part(bytes, 0, nr / 2, 1, nr / 2, true) &&
	       shared_in_part(bytes, 0, nr / 2, 1, nr / 2 - 1, true);
}

static bool test_some_shared(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return shared_in_part(bytes, 0, nr, 2, 0, true) &&
	       shared_in_part(bytes, 1, nr, 2, 1, true) &&
	       shared_in_part(bytes, 1, nr - 1, 1, 0, true) &&
	       shared_in_part(bytes, 0, nr, 3, 1, true);
}

static bool test_child_gone(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return shared_in_part(bytes, 1, nr, 1, 1, false) &&
	       shared_in_part(bytes, 0, nr, 2, 0, false);
}

static bool test_all_exclusive(unsigned long bytes)
{
	struct memory memory;
	unsigned long from;
	bool ok = true;

	map_folio(&memory, bytes);
	for (from = 0; from < 3; from++) {
		ok &= protect_and_back(&memory, from, memory.pages - from);
		access_pages(&memory, true);
		ok &= expect_range(0, memory.pages, 0, 0);
	}
	ok &= stamps_right(&memory);
	release(&memory);
	return ok;
}

/* Some entries of a folio, which on arm64 may be marked as contiguous. */
static bool part_of_folio(unsigned long bytes, unsigned long first,
			  unsigned long pages, int prot)
{
	struct memory memory;
	unsigned long behind = first + pages;
	bool ok;

	map_folio(&memory, bytes);
	ok = protect(&memory, first, pages, prot);
	access_pages(&memory, true);
	ok &= expect_range(0, first, 0, 0);
	ok &= expect_range(first, pages, SIGSEGV, 0);
	ok &= expect_range(behind, memory.pages - behind, 0, 0);
	access_pages(&memory, false);
	ok &= expect_range(0, first, 0, 0);
	ok &= expect_range(first, pages, prot == PROT_NONE ? SIGSEGV : 0, 0);
	ok &= expect_range(behind, memory.pages - behind, 0, 0);

	ok &= protect(&memory, first, pages, PROT_READ | PROT_WRITE);
	ok &= stamps_right(&memory);
	access_pages(&memory, true);
	ok &= expect_range(0, memory.pages, 0, 0);
	ok &= stamps_right(&memory);
	release(&memory);
	return ok;
}

static bool test_part(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return part_of_folio(bytes, nr / 2 - 1, 3, PROT_READ) &&
	       part_of_folio(bytes, 0, nr / 2 + 1, PROT_READ) &&
	       part_of_folio(bytes, nr / 2 - 1, nr / 2 + 1, PROT_READ) &&
	       part_of_folio(bytes, 1, nr - 2, PROT_READ);
}

static bool test_single_page(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return part_of_folio(bytes, 0, 1, PROT_READ) &&
	       part_of_folio(bytes, 2, 1, PROT_NONE) &&
	       part_of_folio(bytes, nr - 1, 1, PROT_READ);
}

static bool test_none(unsigned long bytes)
{
	unsigned long nr = bytes / page_bytes;

	return part_of_folio(bytes, 0, nr, PROT_NONE) &&
	       part_of_folio(bytes, 1, nr - 1, PROT_NONE) &&
	       part_of_folio(bytes, 0, nr - 1, PROT_NONE);
}

/* From PROT_NONE, to what allows no write; no page becomes writable early. */
static bool test_step_by_step(unsigned long bytes)
{
	struct memory memory;
	bool ok = true;

	map_folio(&memory, bytes);
	ok &= protect(&memory, 1, memory.pages - 1, PROT_NONE);
	ok &= protect(&memory, 1, memory.pages - 1, PROT_READ);
	access_pages(&memory, true);
	ok &= expect_range(1, memory.pages - 1, SIGSEGV, 0);
	ok &= stamps_right(&memory);
	ok &= protect(&memory, 0, memory.pages, PROT_READ | PROT_EXEC);
	access_pages(&memory, true);
	ok &= expect_range(0, memory.pages, SIGSEGV, 0);
	ok &= protect(&memory, 0, memory.pages, PROT_READ | PROT_WRITE);
	access_pages(&memory, true);
	ok &= expect_range(0, memory.pages, 0, 0);
	release(&memory);
	return ok;
}

static bool test_soft_dirty(unsigned long bytes)
{
	uint64_t entries[MAX_PAGES];
	struct memory memory;
	unsigned long page;
	bool ok;

	map_folio(&memory, bytes);
	clear_references("4");
	ok = protect_and_back(&memory, 1, memory.pages - 1);
	access_pages(&memory, true);
	ok &= expect_range(0, memory.pages, 0, 1);
	read_entries(memory.start, memory.pages, entries);
	for (page = 0; ok && page < memory.pages; page++)
		if (!(entries[page] & PM_SOFT_DIRTY))
			ok = wrong("soft-dirty", page, 0, 1);
	/* Those that are soft-dirty need no fault, the others do. */
	clear_references("4");
	*page_at(&memory, 2) = 1;
	*page_at(&memory, 3) = 1;
	ok &= protect_and_back(&memory, 0, memory.pages);
	access_pages(&memory, true);
	for (page = 0; page < memory.pages; page++)
		ok = ok && expect(page, 0, page != 2 && page != 3);
	release(&memory);
	return ok;
}

static int open_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			    UFFD_FEATURE_SIGBUS,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC);

	if (uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api))
		return uffd;
	close(uffd);
	return -1;
}

static bool uffd_protect(int uffd, const struct memory *memory,
			 unsigned long first, unsigned long pages, bool on)
{
	struct uffdio_writeprotect arg = {
		.range = { (uintptr_t)page_at(memory, first),
			   pages * page_bytes },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (!ioctl(uffd, UFFDIO_WRITEPROTECT, &arg))
		return true;
	ksft_perror("UFFDIO_WRITEPROTECT");
	return false;
}

/* Write protection by userfaultfd outlives that by mprotect(). */
static bool test_uffd(unsigned long bytes)
{
	struct uffdio_register arg = { .mode = UFFDIO_REGISTER_MODE_WP };
	int uffd = open_uffd();
	struct memory memory;
	unsigned long nr;
	bool ok;

	map_folio(&memory, bytes);
	nr = memory.pages;
	arg.range.start = (uintptr_t)memory.start;
	arg.range.len = bytes;
	if (ioctl(uffd, UFFDIO_REGISTER, &arg))
		ksft_exit_fail_perror("UFFDIO_REGISTER");
	ok = uffd_protect(uffd, &memory, 1, nr / 2, true);
	ok &= protect_and_back(&memory, 0, nr);
	access_pages(&memory, true);
	ok &= expect(0, 0, 0);
	ok &= expect_range(1, nr / 2, SIGBUS, 0);
	ok &= expect_range(1 + nr / 2, nr - 1 - nr / 2, 0, 0);
	ok &= protect(&memory, 1, nr - 1, PROT_NONE);
	ok &= uffd_protect(uffd, &memory, 0, 2, false);
	ok &= protect(&memory, 1, nr - 1, PROT_READ | PROT_WRITE);
	access_pages(&memory, true);
	ok &= expect_range(0, 2, 0, 0);
	ok &= expect_range(2, nr / 2 - 1, SIGBUS, 0);
	ok &= uffd_protect(uffd, &memory, 0, nr, false);
	ok &= protect_and_back(&memory, 0, nr);
	access_pages(&memory, true);
	ok &= expect_range(0, nr, 0, 0);
	ok &= stamps_right(&memory);
	close(uffd);
	release(&memory);
	return ok;
}

static bool test_tracepoint(unsigned long bytes)
{
	struct memory memory;
	uint64_t before;
	bool ok, any;

	map_folio(&memory, bytes);
	before = batches_counted(counter);
	ok = protect_and_back(&memory, 0, memory.pages);
	any = batches_counted(counter) != before;
	if (any != batching) {
		ksft_print_msg("%s: the tracepoint sees %s batch\n",
			       batching_names[batching], any ? "a" : "no");
		ok = false;
	}
	before = batches_counted(counter);
	ok &= protect_and_back(&memory, 1, 1);
	if (batches_counted(counter) != before) {
		ksft_print_msg("%s: the tracepoint takes a page for a batch\n",
			       batching_names[batching]);
		ok = false;
	}
	release(&memory);
	return ok;
}

/* The cases without a folio of their own */

/* Not only what the folio of the first page is like is of interest then. */
static bool test_boundaries(unsigned long bytes)
{
	int fd = memfd_create("mprotect_batch", MFD_CLOEXEC);
	const unsigned long half = MAX_PAGES / 2, part = MAX_PAGES / 8;
	unsigned long table = huge_bytes ?: 2UL << 20;
	struct memory memory;
	bool ok = true;
	int round;

	/* In the middle, a page table ends. */
	reserve(&memory, MAX_PAGES, table, table / page_bytes - half);
	if (fd < 0 || ftruncate(fd, MAX_PAGES * page_bytes))
		ksft_exit_fail_perror("memfd");
	set_size(bytes);
	map_at(&memory, 0, MAX_PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map_at(&memory, part, part, MAP_SHARED | MAP_ANONYMOUS, -1);
	map_at(&memory, half + part, part, MAP_SHARED, fd);
	map_at(&memory, half + 2 * part, part, MAP_PRIVATE, fd);
	madvise(memory.start, MAX_PAGES * page_bytes, MADV_HUGEPAGE);
	write_stamps(&memory);
	for (round = 0; round < 2; round++) {
		unsigned long first = round ? 1 : 0;
		unsigned long pages = MAX_PAGES - 2 * first;

		ok &= protect(&memory, first, pages, PROT_READ);
		access_pages(&memory, true);
		ok &= expect_range(first, pages, SIGSEGV, 0);
		ok &= stamps_right(&memory);
		ok &= protect(&memory, first, pages, PROT_NONE);
		access_pages(&memory, false);
		ok &= expect_range(first, pages, SIGSEGV, 0);
		ok &= protect(&memory, first, pages, PROT_READ | PROT_WRITE);
		access_pages(&memory, true);
		ok &= expect_range(0, MAX_PAGES, 0, 0);
		ok &= stamps_right(&memory);
	}
	close(fd);
	release(&memory);
	return ok;
}

/* Small folios, whose frames are not in order, and zero pages among them. */
static bool test_small(unsigned long bytes)
{
	struct memory memory;
	struct child child;
	unsigned long page;
	uint64_t value;
	bool ok = true;

	reserve(&memory, MAX_PAGES, page_bytes, 0);
	map_at(&memory, 0, MAX_PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	set_size(0);
	for (page = MAX_PAGES; page--;)
		if (page % 5)
			*page_at(&memory, page) = 1;
		else
			access_page(page_at(&memory, page), NULL, &value);
	ok &= protect_and_back(&memory, 0, MAX_PAGES);
	access_pages(&memory, true);
	for (page = 0; page < MAX_PAGES; page++)
		ok = ok && expect(page, 0, !(page % 5));
	ok &= stamps_right(&memory);

	/* Two of three are shared. */
	for (page = 0; page < MAX_PAGES; page += 3)
		advise_fork(&memory, page, 1, MADV_DONTFORK);
	start_child(&child, &memory);
	advise_fork(&memory, 0, MAX_PAGES, MADV_DOFORK);
	ok &= protect_and_back(&memory, 1, MAX_PAGES - 1);
	access_pages(&memory, true);
	for (page = 0; page < MAX_PAGES; page++)
		ok = ok && expect(page, 0, page % 3 != 0);
	overwrite(&memory);
	ok &= end_child(&child);
	release(&memory);
	return ok;
}

static void clean(const struct memory *memory)
{
	if (msync(memory->start, MAX_PAGES * page_bytes, MS_SYNC))
		ksft_exit_fail_perror("msync");
}

/*
 * A file system may want to know of the first write to a clean page. Where entries share
 * a dirty bit, it knows of the folio once one of its pages is written.
 */
static bool test_clean_file(unsigned long bytes)
{
	struct memory memory;
	int fd = make_file();
	unsigned long page;
	bool ok;

	if (fd < 0 || ftruncate(fd, MAX_PAGES * page_bytes))
		ksft_exit_fail_perror("test file");
	reserve(&memory, MAX_PAGES, page_bytes, 0);
	map_at(&memory, 0, MAX_PAGES, MAP_SHARED, fd);
	write_stamps(&memory);
	ok = protect_and_back(&memory, 0, MAX_PAGES);
	access_pages(&memory, true);
	ok &= expect_range(0, MAX_PAGES, 0, 0);

	clean(&memory);
	ok &= protect_and_back(&memory, 0, MAX_PAGES);
	access_pages(&memory, true);
	ok &= expect_range(0, MAX_PAGES, 0, 1);

	clean(&memory);
	for (page = 1; page < MAX_PAGES; page += 4)
		*(uint64_t *)page_at(&memory, page) = stamp(page);
	ok &= protect_and_back(&memory, 0, MAX_PAGES);
	access_pages(&memory, true);
	for (page = 0; page < MAX_PAGES; page++)
		if (page % 4 == 1 || !ENTRIES_IN_BLOCKS)
			ok = ok && expect(page, 0, page % 4 != 1);
	ok &= stamps_right(&memory);
	release(&memory);
	close(fd);
	return ok;
}

/* Pages of a private mapping of a file are its own only once written. */
static bool test_private_file(unsigned long bytes)
{
	uint64_t word;
	struct memory memory;
	int fd = make_file();
	unsigned long page;
	bool ok;

	if (fd < 0 || ftruncate(fd, MAX_PAGES * page_bytes))
		ksft_exit_fail_perror("test file");
	reserve(&memory, MAX_PAGES, page_bytes, 0);
	map_at(&memory, 0, MAX_PAGES, MAP_SHARED, fd);
	write_stamps(&memory);
	map_at(&memory, 0, MAX_PAGES, MAP_PRIVATE, fd);
	access_pages(&memory, false);
	for (page = 0; page < MAX_PAGES; page += 3)
		*(uint64_t *)page_at(&memory, page) = stamp(page);
	ok = protect_and_back(&memory, 0, MAX_PAGES);
	access_pages(&memory, true);
	for (page = 0; page < MAX_PAGES; page++)
		ok = ok && expect(page, 0, page % 3 != 0);
	overwrite(&memory);
	for (page = 0; page < MAX_PAGES; page++)
		if (pread(fd, &word, sizeof(word), page * page_bytes) !=
		    sizeof(word) || word != stamp(page))
			ok = wrong("content of the file", page, word,
				   stamp(page));
	release(&memory);
	close(fd);
	return ok;
}

/* What NUMA balancing does to find out who uses which page */

/* The first three are there on some kernels only; others take longer. */
static const struct {
	const char *path, *value;
} numa_settings[] = {
	{ NUMA_DIR "/scan_delay_ms", "1" },
	{ NUMA_DIR "/scan_period_min_ms", "10" },
	{ NUMA_DIR "/scan_period_max_ms", "20" },
	{ "/proc/sys/kernel/numa_balancing", "1" },
};

static void *spin(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* The kernel scanned hardly any entry for as long as the test waits. */
#define NOT_SCANNED	2
#define NUMA_TRIES	3

/* A process of more than one thread: of one, pages at home are left alone. */
static int use_under_numa(unsigned long bytes)
{
	const unsigned long pages = 4 * MAX_PAGES;
	unsigned long before = vm_counter("numa_pte_updates"), round, page, next;
	time_t end = time(NULL) + 100;
	struct memory memory;
	static bool over;
	pthread_t thread;
	bool ok = true;

	reserve(&memory, pages, bytes, 0);
	map_at(&memory, 0, pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	/* Half of it is in large folios. */
	set_size(bytes);
	madvise(memory.start, pages / 2 * page_bytes, MADV_HUGEPAGE);
	write_stamps(&memory);
	start_thread(&thread, spin, &over);
	for (round = 0; ok; round++) {
		uint64_t value;

		for (page = round % 2; page < pages; page++) {
			value = stamp(page);
			ok &= !access_page(page_at(&memory, page), &value,
					   NULL);
		}
		ok &= stamps_right(&memory);
		next = pages * (round % 7) / 8;
		ok &= protect_and_back(&memory, next, pages - next);
		if (vm_counter("numa_pte_updates") >= before + pages)
			break;
		if (time(NULL) > end) {
			ksft_print_msg("%s: NUMA balancing hardly scans: %lu entries\n",
				       batching_names[batching],
				       vm_counter("numa_pte_updates") - before);
			return ok ? NOT_SCANNED : 1;
		}
	}
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return !ok;
}

static bool test_numa(unsigned long bytes)
{
	unsigned int i, tries = 0;
	int status;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(numa_settings); i++)
		setting_write(numa_settings[i].path, numa_settings[i].value);
	do {
		pid = fork_helper();
		if (!pid)
			_exit(use_under_numa(bytes));
		if (waitpid(pid, &status, 0) != pid)
			ksft_exit_fail_perror("waitpid");
	} while (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SCANNED &&
		 ++tries < NUMA_TRIES);
	setting_write("/proc/sys/kernel/numa_balancing", "0");
	return !status;
}

/* Running them */

/* Of these sizes there is a folio for each test; or one of the smallest. */
static void each_size(bool (*test)(unsigned long bytes), bool all,
		      const char *what)
{
	const unsigned int settings = control ? 1 : 2;
	bool ok = true, tried = false;
	unsigned int setting, i;

	for (setting = 0; setting < settings; setting++) {
		bool any = false;

		batching = setting;
		set_batching(batching);
		for (i = 0; i < nr_sizes; i++) {
			if (sizes[i] < 4 * page_bytes ||
			    sizes[i] > MAX_PAGES * page_bytes ||
			    (any && !all))
				continue;
			any = true;
			tried = true;
			if (test(sizes[i]))
				continue;
			ksft_print_msg("folios of %lu KiB: not right\n",
				       sizes[i] >> 10);
			ok = false;
		}
	}
	if (kernel_complained(trouble)) {
		trouble |= kernel_trouble();
		ok = false;
	}
	if (tried || !ok)
		ksft_test_result(ok, "%s\n", what);
	else
		ksft_test_result_skip("no folios of a fitting size\n");
}

static bool switch_reads(const char *path, const char *expected)
{
	char value[SETTING_BYTES];

	if (!setting_read(path, value) && !strcmp(value, expected))
		return true;
	ksft_print_msg("%s reads %s\n", path, value);
	return false;
}

static void test_switch(void)
{
	static const char * const refused[] = { "2", "maybe", "-1", "" };
	static const char * const taken[][2] = { { "0", "N" }, { "1", "Y" } };
	unsigned int nr, i;
	bool ok = true;

	for (nr = 0; nr < ARRAY_SIZE(taken); nr++) {
		ok &= !setting_write(BATCH_SWITCH, taken[nr][0]) &&
		      switch_reads(BATCH_SWITCH, taken[nr][1]);
		for (i = 0; i < ARRAY_SIZE(refused); i++) {
			setting_write(BATCH_SWITCH, refused[i]);
			ok &= switch_reads(BATCH_SWITCH, taken[nr][1]);
		}
	}
	ksft_test_result(ok, "the switch takes 0 and 1, and nothing else\n");
}

static void run_tests(void)
{
	bool numa = !access("/proc/sys/kernel/numa_balancing", W_OK);
	int uffd;

	ksft_set_plan(18);
	trouble = kernel_trouble();
	outcomes = shared_memory(MAX_PAGES * sizeof(*outcomes));
	keep_peace();
	stay_on_cpu();
	catch_signals();
	uffd = open_uffd();
	counter = count_batches(false);

	if (control)
		ksft_test_result_skip("the switch is not used\n");
	else
		test_switch();
	each_size(test_all_exclusive, true,
		  "what was writable is so again without a fault");
	each_size(test_first_exclusive, true,
		  "shared pages behind an exclusive one are copied");
	each_size(test_first_shared, true,
		  "exclusive pages behind a shared one are not");
	each_size(test_some_shared, true,
		  "each page is judged by itself");
	each_size(test_child_gone, true,
		  "so it is when the child is gone");
	each_size(test_part, true, "a part of a folio is protected alone");
	each_size(test_single_page, true, "so is a single page");
	each_size(test_none, true, "nothing is lost under PROT_NONE");
	each_size(test_step_by_step, true,
		  "pages become writable when the range does");
	if (has_soft_dirty())
		each_size(test_soft_dirty, true,
			  "pages become soft-dirty as ever");
	else
		ksft_test_result_skip("no soft-dirty on this kernel\n");
	if (uffd >= 0)
		each_size(test_uffd, true,
			  "userfaultfd's write protection stays");
	else
		ksft_test_result_skip("no userfaultfd with write protection\n");
	close(uffd);
	each_size(test_boundaries, false,
		  "mappings and page tables end within the range");
	each_size(test_small, false, "pages without order, shared in part");
	each_size(test_clean_file, false,
		  "a file's clean pages have their write fault");
	each_size(test_private_file, false,
		  "a private mapping does not write to its file");
	if (counter >= 0)
		each_size(test_tracepoint, true,
			  "the tracepoint tells of batches only");
	else
		ksft_test_result_skip("no tracepoint\n");
	if (numa)
		each_size(test_numa, false,
			  "NUMA balancing changes no contents");
	else
		ksft_test_result_skip("no NUMA balancing\n");
	ksft_finished();
}

int main(int argc, char **argv)
{
	unsigned int i;

	control = argc > 1 && !strcmp(argv[1], "--control");
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("needs root for frame numbers and settings\n");
	mprotect_batch_init();
	if (!guard_batching() && !control)
		ksft_exit_skip("no batches on this kernel\n");
	guard_sizes();
	guard_peace();
	for (i = 0; i < ARRAY_SIZE(numa_settings); i++)
		guard_setting(numa_settings[i].path);
	return run_guarded(run_tests, NULL);
}
