/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In which folios a process has files mapped, as the kernel's own
 * tools/mm/thpmaps counts it.
 *
 * All that counts is pages of files that are in a page table. A folio all of
 * whose pages are mapped in one piece is "aligned" if its address is a multiple
 * of its size, else "unaligned"; any other mapped page of a folio of two pages
 * and more is "partial". A "cont" block is an aligned block of some size that
 * one folio fills with pages in order: what contpte needs.
 *
 * Who wants to know has to be root: others do not see physical addresses.
 */
#ifndef FOLIOLAB_FOLIOS_H
#define FOLIOLAB_FOLIOS_H

#include <sys/ioctl.h>

#include "probe.h"

#define FOLIO_ORDERS		32
#define FOLIO_BLOCKS		8	/* sizes that can be asked for */
#define FOLIO_CHUNK		65536	/* pages looked at in one go */
#define FOLIO_REGIONS		512
#define FOLIO_WINDOW		128	/* pages of the largest contpte block */
/* Flags of pages are kept in lines of some pages, in a direct-mapped cache. */
#define FOLIO_LINE		64
#define FOLIO_LINES		4096

/* Of an entry of /proc/PID/pagemap. */
#define PAGEMAP_PFN		((UINT64_C(1) << 55) - 1)
#define PAGEMAP_FILE		(UINT64_C(1) << 61)
#define PAGEMAP_PRESENT		(UINT64_C(1) << 63)

/* Of an entry of /proc/kpageflags. */
#define KPAGE_HEAD		(UINT64_C(1) << 15)
#define KPAGE_TAIL		(UINT64_C(1) << 16)
#define KPAGE_HUGETLB		(UINT64_C(1) << 17)
#define KPAGE_LARGE		(UINT64_C(1) << 22)

/* The ioctl PAGEMAP_SCAN, which the C library's headers may not know yet. */
#define SCAN_FILE		(UINT64_C(1) << 2)
#define SCAN_PRESENT		(UINT64_C(1) << 3)
#define SCAN_PMD		(UINT64_C(1) << 6)

struct scan_region {
	uint64_t start, end;	/* addresses */
	uint64_t categories;
};

struct scan_request {
	uint64_t size;
	uint64_t flags;
	uint64_t start, end;
	uint64_t walk_end;
	uint64_t regions;
	uint64_t nr_regions;
	uint64_t max_pages;
	uint64_t inverted;
	uint64_t required;
	uint64_t any_of;
	uint64_t returned;
};

#define SCAN_REQUEST		_IOWR('f', 16, struct scan_request)

enum folios_status {
	FOLIOS_OK,
	FOLIOS_GONE,		/* there is no such process any more */
	FOLIOS_DENIED,		/* this user must not know */
	FOLIOS_MISSING,		/* the kernel has no /proc/kpageflags */
};

/* TLB entries that some pages take. */
struct tlb_entries {
	uint64_t uncoalesced;	/* one a page */
	uint64_t contpte;	/* one a block that contpte can map */
	uint64_t groups;	/* one a group of four pages in a row */
	uint64_t ours;		/* what machines of this page size can do */
};

/* The sum over all that has been added. Sizes are in pages. */
struct folios {
	size_t page_size;	/* bytes */
	unsigned int pmd_order;
	unsigned int contpte_order;

	/* What to count; to be set before anything is added. */
	unsigned int nr_blocks;
	unsigned int block_orders[FOLIO_BLOCKS];
	bool text_only;
	/* Addresses to look at: all, if the end is 0. */
	uint64_t start, end;
	/* A bit for each page from "start": which ones want a TLB entry. */
	const unsigned char *touched;

	uint64_t mapped;
	uint64_t aligned[FOLIO_ORDERS];
	uint64_t unaligned[FOLIO_ORDERS];
	uint64_t partial;
	uint64_t blocks[FOLIO_BLOCKS];
	/* Of text, or of those of its pages that are touched. */
	uint64_t text;
	uint64_t text_in_contpte;
	struct tlb_entries tlb;

	struct folio_walk *walk;
};

/* Pages of one folio that are mapped in order. */
struct folio_run {
	uint64_t vfn, pfn;	/* of the first: address / page size */
	uint64_t pages;
	bool large, has_head;
};

/* What one contpte block of addresses holds. */
struct tlb_window {
	uint64_t vfn;
	unsigned int pages;
	bool pmd;
	uint64_t pfn[FOLIO_WINDOW];	/* 0 is not mapped */
	uint64_t flags[FOLIO_WINDOW];
};

struct folio_walk {
	int pagemap, kpageflags;
	bool text;		/* the mapping is executable */
	bool can_scan;
	struct folio_run run;
	struct tlb_window window;
	uint64_t last_pmd;	/* the last one that has its TLB entry */
	uint64_t line_of[FOLIO_LINES];	/* which line is there, plus one */
	uint64_t lines[FOLIO_LINES][FOLIO_LINE];
	uint64_t entries[FOLIO_CHUNK];
	struct scan_region regions[FOLIO_REGIONS];
};

static inline const char *folios_sentence(enum folios_status status)
{
	static const char *const sentences[] = {
		[FOLIOS_OK] = "All is well.",
		[FOLIOS_GONE] = "There is no such process.",
		[FOLIOS_DENIED] = "Only root may see in which folios memory is; run this as root.",
		[FOLIOS_MISSING] = "This kernel has no /proc/kpageflags (CONFIG_PROC_PAGE_MONITOR).",
	};

	return sentences[status];
}

static inline unsigned int folio_order(uint64_t pages)
{
	return 63 - __builtin_clzll(pages);
}

/* Whether page addresses are shown to us: our own stack has one for sure. */
static inline bool folios_permitted(size_t page_size)
{
	volatile char stack = 1;
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool read = fd >= 0 &&
		pread(fd, &entry, sizeof(entry), (uintptr_t)&stack / page_size *
		      sizeof(entry)) == sizeof(entry);

	if (fd >= 0)
		close(fd);
	return read && entry & PAGEMAP_PRESENT && entry & PAGEMAP_PFN;
}

/* How much a PMD maps. */
static inline uint64_t pmd_bytes(size_t page_size)
{
	FILE *stream = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
			     "re");
	uint64_t bytes = 0;

	if (stream && fscanf(stream, "%" SCNu64, &bytes) != 1)
		bytes = 0;
	if (stream)
		fclose(stream);
	/* A page table is a page, and its entries take 8 bytes. */
	return bytes ? bytes : page_size / 8 * page_size;
}

/* Make an empty sum, with the default block size: the one of contpte. */
static inline enum folios_status folios_init(struct folios *folios)
{
	memset(folios, 0, sizeof(*folios));
	folios->page_size = sysconf(_SC_PAGESIZE);
	/* arm64's blocks; other machines are compared with those of 4 KiB. */
	folios->contpte_order = folio_order((folios->page_size == 4096 ?
			64 << 10 : 2 << 20) / folios->page_size);
	folios->block_orders[folios->nr_blocks++] = folios->contpte_order;
	folios->pmd_order = folio_order(pmd_bytes(folios->page_size) /
					folios->page_size);

	folios->walk = calloc(1, sizeof(*folios->walk));
	if (!folios->walk)
		fail_io("No memory for the flags of pages");
	folios->walk->can_scan = true;
	folios->walk->kpageflags = open("/proc/kpageflags",
					O_RDONLY | O_CLOEXEC);
	if (folios->walk->kpageflags < 0)
		return errno == ENOENT ? FOLIOS_MISSING : FOLIOS_DENIED;
	return folios_permitted(folios->page_size) ? FOLIOS_OK : FOLIOS_DENIED;
}

static inline uint64_t page_flags(struct folio_walk *walk, uint64_t pfn)
{
	uint64_t line = pfn / FOLIO_LINE, place = line % FOLIO_LINES;
	uint64_t *flags = walk->lines[place];

	if (walk->line_of[place] != line + 1) {
		/* What is beyond the end of memory has no flags. */
		memset(flags, 0, sizeof(walk->lines[place]));
		if (pread(walk->kpageflags, flags, sizeof(walk->lines[place]),
			  line * sizeof(walk->lines[place])) < 0)
			return 0;
		walk->line_of[place] = line + 1;
	}
	return flags[pfn % FOLIO_LINE];
}

static inline void end_run(struct folios *folios)
{
	struct folio_run *run = &folios->walk->run;
	uint64_t first = run->vfn, end = run->vfn + run->pages;

	if (!run->pages || !run->large)
		return;
	/* Whole, unless the next page in memory belongs to it as well. */
	if (!run->has_head || page_flags(folios->walk, run->pfn + run->pages) &
			      KPAGE_TAIL)
		folios->partial += run->pages;
	else if (first % run->pages)
		folios->unaligned[folio_order(run->pages)] += run->pages;
	else
		folios->aligned[folio_order(run->pages)] += run->pages;

	for (unsigned int i = 0; i < folios->nr_blocks; i++) {
		uint64_t size = UINT64_C(1) << folios->block_orders[i];
		uint64_t block = (first + size - 1) / size * size;

		if (first % size == run->pfn % size && block + size <= end)
			folios->blocks[i] += (end - block) / size * size;
	}
}

static inline bool is_touched(const struct folios *folios, uint64_t vfn)
{
	uint64_t page = vfn - folios->start / folios->page_size;

	return !folios->touched || folios->touched[page / 8] & 1 << page % 8;
}

/* Whether pages of a window are mapped in order, from an aligned one on. */
static inline bool in_order(const struct tlb_window *window, unsigned int from,
			    unsigned int size)
{
	uint64_t pfn = window->pfn[from];

	if (!pfn || pfn % size)
		return false;
	for (unsigned int i = 1; i < size; i++)
		if (window->pfn[from + i] != pfn + i)
			return false;
	return true;
}

static inline bool is_contpte(const struct tlb_window *window, unsigned int size)
{
	if (!in_order(window, 0, size) || !(window->flags[0] & KPAGE_LARGE))
		return false;
	for (unsigned int i = 1; i < size; i++)
		if (window->flags[i] & KPAGE_HEAD)
			return false;
	return true;
}

static inline void end_window(struct folios *folios)
{
	struct tlb_window *window = &folios->walk->window;
	unsigned int size = 1 << folios->contpte_order;
	uint64_t pmd = (window->vfn >> folios->pmd_order) + 1;
	struct tlb_entries tlb = { 0 };
	unsigned int touched = 0;
	bool contpte;

	if (!window->pages)
		return;
	contpte = is_contpte(window, size);
	for (unsigned int group = 0; group < size; group += 4) {
		unsigned int here = 0;

		for (unsigned int i = group; i < group + 4; i++)
			here += window->pfn[i] &&
				is_touched(folios, window->vfn + i);
		touched += here;
		tlb.groups += in_order(window, group, 4) ? here > 0 : here;
	}
	tlb.uncoalesced = touched;
	tlb.contpte = contpte ? touched > 0 : touched;
	/* Hardware that takes four pages together has pages of 16 KiB. */
	tlb.ours = contpte || folios->page_size != 16384 ? tlb.contpte :
							   tlb.groups;
	if (window->pmd) {
		uint64_t one = touched && folios->walk->last_pmd != pmd;

		tlb = (struct tlb_entries){ one, one, one, one };
		if (one)
			folios->walk->last_pmd = pmd;
	}
	folios->text += touched;
	if (contpte || window->pmd)
		folios->text_in_contpte += touched;
	folios->tlb.uncoalesced += tlb.uncoalesced;
	folios->tlb.contpte += tlb.contpte;
	folios->tlb.groups += tlb.groups;
	folios->tlb.ours += tlb.ours;
}

static inline void end_mapping(struct folios *folios)
{
	end_run(folios);
	folios->walk->run.pages = 0;
	end_window(folios);
	folios->walk->window.pages = 0;
	folios->walk->last_pmd = 0;
}

/* Count one page. Those of a mapping come in the order of their addresses. */
static inline void add_page(struct folios *folios, uint64_t vfn, uint64_t pfn,
			    bool pmd)
{
	struct folio_walk *walk = folios->walk;
	struct folio_run *run = &walk->run;
	struct tlb_window *window = &walk->window;
	uint64_t flags = page_flags(walk, pfn);
	unsigned int offset = vfn % (1 << folios->contpte_order);

	if (flags & KPAGE_HUGETLB)
		return;
	folios->mapped++;
	if (!run->pages || !run->large || flags & KPAGE_HEAD ||
	    !(flags & KPAGE_LARGE) || vfn != run->vfn + run->pages ||
	    pfn != run->pfn + run->pages) {
		end_run(folios);
		run->vfn = vfn;
		run->pfn = pfn;
		run->pages = 0;
		run->large = flags & KPAGE_LARGE;
		run->has_head = flags & KPAGE_HEAD;
	}
	run->pages++;

	if (!walk->text)
		return;
	if (!window->pages || window->vfn != vfn - offset) {
		end_window(folios);
		memset(window, 0, sizeof(*window));
		window->vfn = vfn - offset;
	}
	window->pmd = pmd;
	window->pfn[offset] = pfn;
	window->flags[offset] = flags;
	window->pages++;
}

/*
 * Find out what is mapped between two addresses, in few regions: mappings can
 * be much larger than what is mapped of them. Kernels before 6.7 do not tell:
 * all is one region then, and PMDs are taken for the blocks that they replace.
 * False if the process has gone.
 */
static inline bool find_regions(struct folio_walk *walk, uint64_t *start,
				uint64_t end, size_t *count)
{
	struct scan_request request = {
		.size = sizeof(request),
		.start = *start,
		.end = end,
		.regions = (uintptr_t)walk->regions,
		.nr_regions = FOLIO_REGIONS,
		.required = SCAN_FILE | SCAN_PRESENT,
		.returned = SCAN_PMD,
	};
	int found = -1;

	if (walk->can_scan)
		found = ioctl(walk->pagemap, SCAN_REQUEST, &request);
	if (found >= 0) {
		*start = request.walk_end;
		*count = found;
		return true;
	}
	if (walk->can_scan && errno == ESRCH)
		return false;
	walk->can_scan = false;
	walk->regions[0] = (struct scan_region){ *start, end, 0 };
	*start = end;
	*count = 1;
	return true;
}

static inline bool add_region(struct folios *folios,
			      const struct scan_region *region)
{
	struct folio_walk *walk = folios->walk;
	uint64_t vfn = region->start / folios->page_size;
	uint64_t end = region->end / folios->page_size;

	while (vfn < end) {
		uint64_t pages = end - vfn;
		ssize_t bytes;

		if (pages > FOLIO_CHUNK)
			pages = FOLIO_CHUNK;
		bytes = pread(walk->pagemap, walk->entries, pages * 8, vfn * 8);
		if (bytes <= 0)
			return false;
		for (uint64_t i = 0; i < (uint64_t)bytes / 8; i++, vfn++) {
			uint64_t entry = walk->entries[i];
			uint64_t pfn = entry & PAGEMAP_PFN;

			if (entry & PAGEMAP_PRESENT && entry & PAGEMAP_FILE &&
			    pfn)
				add_page(folios, vfn, pfn,
					 region->categories & SCAN_PMD);
		}
	}
	return true;
}

static inline bool add_mapping(struct folios *folios, uint64_t start,
			       uint64_t end)
{
	while (start < end) {
		size_t count;

		if (!find_regions(folios->walk, &start, end, &count))
			return false;
		for (size_t i = 0; i < count; i++)
			if (!add_region(folios, &folios->walk->regions[i]))
				return false;
	}
	end_mapping(folios);
	return true;
}

static inline bool add_mappings(struct folios *folios, FILE *maps)
{
	uint64_t start, end, inode;
	char access;

	/* What follows the inode, a name, may be of any length. */
	while (fscanf(maps, "%" SCNx64 "-%" SCNx64 " %*2c%c%*c %*x %*x:%*x %" SCNu64
		      "%*[^\n]", &start, &end, &access, &inode) == 4) {
		folios->walk->text = access == 'x';
		if (!inode || (folios->text_only && !folios->walk->text))
			continue;
		if (folios->end && start < folios->start)
			start = folios->start;
		if (folios->end && end > folios->end)
			end = folios->end;
		if (!add_mapping(folios, start, end))
			return false;
	}
	return true;
}

static inline FILE *open_maps(pid_t pid, int *pagemap)
{
	char path[64];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	*pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (*pagemap >= 0)
		return maps;
	fclose(maps);
	return NULL;
}

/* Add what a process, or a thread of one, has mapped; all of it or nothing. */
static inline enum folios_status folios_add(struct folios *folios, pid_t pid)
{
	struct folios before = *folios;
	struct folio_walk *walk = folios->walk;
	FILE *maps = open_maps(pid, &walk->pagemap);
	bool whole;

	if (!maps)
		return errno == EACCES || errno == EPERM ? FOLIOS_DENIED :
							   FOLIOS_GONE;
	/* Memory of the process before may have become something else. */
	memset(walk->line_of, 0, sizeof(walk->line_of));
	walk->run.pages = 0;
	walk->window.pages = 0;
	whole = add_mappings(folios, maps);
	fclose(maps);
	close(walk->pagemap);
	if (!whole)
		*folios = before;
	return whole ? FOLIOS_OK : FOLIOS_GONE;
}

#endif /* FOLIOLAB_FOLIOS_H */
