// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzzer of the adaptive window: bytes become a file, limits, and a series of
 * touches, evictions and changes of the limits. Whatever these are, a read has to
 * hold the missing page, to keep within its bounds, and to leave a state behind
 * that is one. Facts need not fit together: the kernel gathers them without a
 * lock over the file.
 *
 * With libFuzzer, from the top of the repository:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-fno-sanitize-recover=all -o fuzz model/fuzz.c
 *	./fuzz -max_total_time=600
 *
 * With any other compiler, pseudo-random inputs, or those in files:
 *
 *	gcc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
 *		-DFUZZ_STANDALONE -o fuzz model/fuzz.c
 *	./fuzz [-runs=N] [-seed=N] [FILE]...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernel/files/include/linux/mmap_readahead_policy.h"

/* What is simulated of the page cache; the file may be larger. */
#define PAGES		(1U << 12)
#define HIGHEST_PAGE	(~0UL >> 12)
#define MOST_PAGES	(~0U / 2)

/* Touches of one input: what is slow is not what is looked for. */
#define MOST_STEPS	4096
/* Questions about pages for one decision: eight for each region that was left. */
#define MOST_LOOKS	(90 + 8 * MMAP_READAHEAD_REGIONS + \
			 3 * MMAP_READAHEAD_NEIGHBOURS)
/* At a mark: three to the logarithm of a window. */
#define MOST_MARK_LOOKS	(110 + MMAP_READAHEAD_NEIGHBOURS)

/* State of a page. */
#define CACHED		0x01
#define MAPPED		0x02
#define MARKED		0x04
#define EVICTED		0x08

static uint8_t pages[PAGES];
static unsigned long cached;
/* Pages of the file that are cached and not simulated. */
static unsigned long cached_elsewhere;

/* Page of the file that pages[0] is. */
static unsigned long base;
static struct mmap_readahead_miss limits;
static struct mmap_readahead_state state;

/* The largest limit so far: windows are not shrunk before they are needed. */
static unsigned int most_pages;
static unsigned int looks, steps;
/* Other threads read and drop pages between two looks. */
static bool racing;

/* What to say of an input that breaks something. */
static const char *input_name = "";
static uint64_t input_seed;

static void broken(const char *what, const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_answer *answer)
{
	fprintf(stderr, "Broken: %s.\n", what);
	fprintf(stderr,
		"index %lu file %lu cached %lu max %u request %u block %u\n",
		miss->index, miss->file_pages,
		miss->cached_pages, miss->max_pages, miss->request_pages,
		1U << miss->block_shift);
	if (answer)
		fprintf(stderr, "start %lu size %u async %u order %u kind %d\n",
			answer->start, answer->size, answer->async_size,
			answer->order, answer->kind);
	fprintf(stderr, "input %s, seed %llu, step %u\n", input_name,
		(unsigned long long)input_seed, steps);
	abort();
}

/* The input */

struct input {
	const uint8_t *bytes;
	size_t size;
};

static unsigned int take_byte(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->bytes++;
}

static unsigned int take(struct input *input)
{
	unsigned int low = take_byte(input);

	return low | take_byte(input) << 8;
}

/* A page that is simulated: as often as not one of the first few. */
static unsigned int take_page(struct input *input)
{
	unsigned int byte = take_byte(input);

	if (byte & 1)
		return byte >> 1;
	return (byte << 7 | take_byte(input)) % PAGES;
}

/* Mostly numbers that are used, else any. */
static unsigned int take_limit(struct input *input, unsigned int most)
{
	static const unsigned int usual[] = {
		1, 2, 3, 8, 16, 31, 32, 33, 256, 1024, 2048, 16384, MOST_PAGES,
	};
	unsigned int choice = take_byte(input);
	unsigned int limit;

	if (choice < 200)
		limit = usual[choice % (sizeof(usual) / sizeof(*usual))];
	else
		limit = take(input) << choice % 16;
	if (limit > most)
		limit = most;
	return limit ? limit : 1;
}

/* The page cache */

static uint8_t *simulated(unsigned long page)
{
	return page - base < PAGES ? &pages[page - base] : NULL;
}

static enum mmap_readahead_page look(const void *cache, unsigned long index)
{
	const uint8_t *page = simulated(index);

	(void)cache;
	looks++;
	if (racing)
		return (index ^ index >> 3 ^ looks * 5 ^ steps) % 4;
	if (!page || !*page)
		return MMAP_READAHEAD_ABSENT;
	if (!(*page & CACHED))
		return MMAP_READAHEAD_EVICTED;
	return *page & MAPPED ? MMAP_READAHEAD_USED : MMAP_READAHEAD_CACHED;
}

/* Drop cached pages; what was reclaimed is remembered. */
static void drop(unsigned int first, unsigned int nr, bool reclaimed)
{
	for (unsigned int i = first; i < PAGES && i - first < nr; i++) {
		if (pages[i] & CACHED) {
			cached--;
			pages[i] = reclaimed ? EVICTED : 0;
		} else if (!reclaimed) {
			pages[i] = 0;
		}
	}
}

static void read_pages(const struct mmap_readahead_answer *answer)
{
	unsigned long end = answer->start + answer->size;
	unsigned long mark = end - answer->async_size;
	unsigned long first = answer->start > base ? answer->start : base;

	if (end > base + PAGES)
		end = base + PAGES;
	for (unsigned long page = first; page < end; page++) {
		if (pages[page - base] & CACHED)
			continue;
		pages[page - base] = CACHED;
		if (answer->async_size && page == mark)
			pages[page - base] |= MARKED;
		cached++;
	}
}

static void map_around(unsigned int page)
{
	unsigned int block = 1U << limits.block_shift;
	unsigned int first = page / block * block;

	for (unsigned int i = first; i < first + block; i++)
		if ((pages[i] & (CACHED | MARKED)) == CACHED)
			pages[i] |= MAPPED;
}

/* What must always hold */

static void check_side(const struct mmap_readahead_side *side,
		       const struct mmap_readahead_miss *miss)
{
	unsigned int most = most_pages;

	if (most < 1U << MMAP_READAHEAD_FIRST_ORDER)
		most = 1U << MMAP_READAHEAD_FIRST_ORDER;
	if (side->order >= 31 || 1U << side->order > most)
		broken("what single misses read is larger than any limit", miss,
		       NULL);
	if (state.known != !!side->patience ||
	    side->patience > MMAP_READAHEAD_MAX_PATIENCE ||
	    side->quiet > MMAP_READAHEAD_MAX_PATIENCE)
		broken("patience is out of bounds", miss, NULL);
}

static void check_singles(const struct mmap_readahead_singles *singles,
			  const struct mmap_readahead_miss *miss)
{
	unsigned long sum = 0;

	for (unsigned int i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		sum += singles->regions[i];
	if (sum != singles->nr)
		broken("the regions do not add up", miss, NULL);
	if (singles->losses > MMAP_READAHEAD_MAX_LOSSES)
		broken("there are too many losses", miss, NULL);
	if (singles->filled && singles->fill >> singles->shift >= MMAP_READAHEAD_REGIONS)
		broken("a block was filled in no region", miss, NULL);
}

static void check_visits(const struct mmap_readahead_visits *visits,
			 const struct mmap_readahead_miss *miss)
{
	if (visits->nr_met != __builtin_popcount(visits->met))
		broken("regions were not counted that were met", miss, NULL);
	if (visits->misses >= MMAP_READAHEAD_VISIT)
		broken("a visit does not end", miss, NULL);
	if ((visits->left | visits->back) & ~visits->dense)
		broken("a region comes back that was not filled", miss, NULL);
	if (visits->left & visits->back)
		broken("a region was left and is not", miss, NULL);
}

static void check_state(const struct mmap_readahead_miss *miss)
{
	check_visits(&state.visits, miss);
	for (unsigned int i = 0; i < MMAP_READAHEAD_READS; i++) {
		const struct mmap_readahead_read *read = &state.reads[i];

		if (!read->size)
			continue;
		if (read->index < read->start || read->index > read->end)
			broken("a read lies beside its page", miss, NULL);
		if (read->size > most_pages ||
		    read->size - 1 > read->end - read->start)
			broken("a read is too large", miss, NULL);
		if (read->kind > MMAP_READAHEAD_FILL)
			broken("a read is of no kind", miss, NULL);
	}
	check_singles(&state.singles[0], miss);
	check_singles(&state.singles[1], miss);
	if (state.next >= MMAP_READAHEAD_READS)
		broken("there is no such read to forget", miss, NULL);
	if (state.narrow > 31)
		broken("runs are halved to nothing", miss, NULL);
	if (state.irregular > MMAP_READAHEAD_IRREGULAR ||
	    state.sparse > MMAP_READAHEAD_READS)
		broken("a count is out of bounds", miss, NULL);
	if (state.allowed > MMAP_READAHEAD_MAX_ALLOWED ||
	    (state.alone && !state.allowed))
		broken("pages are read alone that may not be", miss, NULL);
	check_side(&state.ahead, miss);
	check_side(&state.behind, miss);
}

static void check_bounds(const struct mmap_readahead_miss *miss,
			 const struct mmap_readahead_answer *answer)
{
	if (answer->start >= miss->file_pages ||
	    answer->size > miss->file_pages - answer->start)
		broken("a read goes beyond the file", miss, answer);
	if (answer->size > miss->max_pages)
		broken("a read is larger than the limit", miss, answer);
	/* What is cut off at the end may leave less: the page cache sees to that. */
	if (1UL << answer->order > miss->max_pages)
		broken("a folio is larger than the limit", miss, answer);
	if (looks > MOST_LOOKS)
		broken("a decision looks at too many pages", miss, answer);
}

/* Decide on a miss, and check that. */
static struct mmap_readahead_answer adapt(const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_answer answer;

	looks = 0;
	answer = mmap_readahead_adapt(&state, miss);
	if (!answer.size)
		broken("a miss reads nothing", miss, &answer);
	check_bounds(miss, &answer);
	if (answer.start > miss->index ||
	    miss->index - answer.start >= answer.size)
		broken("a miss does not read the missing page", miss, &answer);
	if (answer.async_size >= answer.size)
		broken("a miss marks all that it reads", miss, &answer);
	if (answer.kind > MMAP_READAHEAD_FILL)
		broken("a read is of no kind", miss, &answer);
	check_state(miss);
	return answer;
}

/* Is the mark on the first of so many last pages, or the next one that is not used? */
static bool marks_from(const struct mmap_readahead_answer *answer,
		       unsigned int async_size)
{
	unsigned long mark = answer->start + answer->size - answer->async_size;
	unsigned int moved = async_size - answer->async_size;

	if (!answer->async_size || moved > MMAP_READAHEAD_NEIGHBOURS)
		return false;
	if (racing)
		return true;
	if (moved < MMAP_READAHEAD_NEIGHBOURS && answer->async_size > 1 &&
	    look(NULL, mark) == MMAP_READAHEAD_USED)
		return false;
	while (moved--)
		if (look(NULL, --mark) != MMAP_READAHEAD_USED)
			return false;
	return true;
}

/*
 * Is the next mark where it belongs? That is the first page, but the middle of what
 * was read early. Two reads may answer alike.
 */
static bool mark_fits(const struct mmap_readahead_miss *mark,
		      const struct mmap_readahead_answer *answer)
{
	const struct mmap_readahead_read *read = state.reads;
	bool early = false, other = false;

	for (; read < state.reads + MMAP_READAHEAD_READS; read++) {
		if (read->index != mark->index ||
		    read->end != answer->start + answer->size - 1)
			continue;
		if (read->early)
			early = true;
		else
			other = true;
	}
	return (early && marks_from(answer, (answer->size + 1) / 2)) ||
	       ((other || !early) && marks_from(answer, answer->size));
}

static struct mmap_readahead_answer go_on(const struct mmap_readahead_miss *mark)
{
	struct mmap_readahead_answer answer;

	looks = 0;
	answer = mmap_readahead_go_on(&state, mark);
	if (looks > MOST_MARK_LOOKS)
		broken("a mark looks at too many pages", mark, &answer);
	if (answer.size) {
		check_bounds(mark, &answer);
		if (answer.start <= mark->index)
			broken("a run goes on where it has been", mark, &answer);
		if (!mark_fits(mark, &answer))
			broken("a run goes on without a mark", mark, &answer);
	}
	check_state(mark);
	return answer;
}

/* Steps */

/* The facts about a page; false if the file has none such. */
static bool describe(unsigned int page, struct mmap_readahead_miss *miss)
{
	*miss = limits;
	miss->index = base + page;
	miss->cached_pages = cached + cached_elsewhere;
	if (racing)
		miss->cached_pages = steps % 7 ? steps * 3 : 0;
	return miss->index < miss->file_pages && page < PAGES;
}

/* A fault. It has to find its page, however often that needs to be read. */
static void touch(unsigned int page)
{
	struct mmap_readahead_answer answer;
	struct mmap_readahead_miss miss;

	page %= PAGES;
	if (steps++ >= MOST_STEPS || !describe(page, &miss) ||
	    pages[page] & MAPPED)
		return;
	map_around(page);
	if (pages[page] & MAPPED)
		return;
	if (pages[page] & MARKED) {
		pages[page] &= ~MARKED;
		answer = go_on(&miss);
	} else {
		answer = adapt(&miss);
	}
	read_pages(&answer);
	/* The mark may be that of the page itself. */
	pages[page] &= ~MARKED;
	map_around(page);
	if (!(pages[page] & MAPPED))
		broken("a fault does not get its page", &miss, &answer);
}

/* A fault that never finds what was read for it, again and again. */
static void touch_in_vain(unsigned int page, unsigned int times)
{
	struct mmap_readahead_miss miss;

	page %= PAGES;
	drop(page, 1, true);
	while (times-- && steps++ < MOST_STEPS && describe(page, &miss)) {
		struct mmap_readahead_answer answer = adapt(&miss);

		read_pages(&answer);
		drop(page, 1, true);
	}
}

/*
 * A mark that is come to again and again: each run goes on from it once, and one that
 * is forgotten until as much is read as it used, which takes one read or, while memory
 * is short, ever larger ones.
 */
static void mark_again(unsigned int page)
{
	struct mmap_readahead_answer answer;
	struct mmap_readahead_miss mark;
	unsigned int times = 0;

	page %= PAGES;
	while (steps++ < MOST_STEPS && describe(page, &mark)) {
		answer = go_on(&mark);
		/* What is not simulated cannot be cached. */
		if (!answer.size || !simulated(answer.start))
			break;
		if (++times > MMAP_READAHEAD_READS + 32)
			broken("runs go on from a mark for ever", &mark,
			       &answer);
		read_pages(&answer);
	}
}

static void set_limits(struct input *input)
{
	unsigned int what = take_byte(input);

	if (what & 1)
		limits.max_pages = take_limit(input, MOST_PAGES);
	if (what & 2)
		limits.request_pages = take_limit(input, 16384);
	if (what & 4)
		racing = !racing;
	if (what & 8)
		limits.block_shift = take_byte(input) % 10;
	if (limits.max_pages > most_pages)
		most_pages = limits.max_pages;
}

/* The file ends somewhere, which may be far away. */
static void set_end(struct input *input)
{
	unsigned int what = take_byte(input);

	limits.file_pages = base + 1 + take_page(input);
	if (what & 1)
		limits.file_pages = HIGHEST_PAGE + 1;
	/* What was cut off is gone. */
	if (limits.file_pages - base < PAGES)
		drop(limits.file_pages - base, PAGES, false);
}

/* What a long life makes of the counts. */
static void age(struct input *input)
{
	struct mmap_readahead_singles *singles;

	singles = &state.singles[take_byte(input) % 2];
	singles->nr = 0;
	for (unsigned int i = 0; i < MMAP_READAHEAD_REGIONS; i++) {
		singles->regions[i] = take(input);
		singles->nr += singles->regions[i];
	}
	state.visits.dense = ~0U;
	state.visits.left = take(input);
	state.visits.left |= take(input) << 16;
	state.visits.back = ~state.visits.left;
	state.visits.misses = take_byte(input) % MMAP_READAHEAD_VISIT;
	cached_elsewhere = (unsigned long)take(input) << 8;
}

static void step(struct input *input, unsigned int *page)
{
	unsigned int what = take_byte(input);
	unsigned int times = what / 16 + 1, stride;

	switch (what % 16) {
	default:
		*page = take_page(input);
		touch(*page);
		break;
	case 1: case 2: case 3:
		stride = take_byte(input);
		for (; times--; *page += stride)
			touch(*page);
		break;
	case 4: case 5:
		stride = take_byte(input);
		for (; times--; *page -= stride)
			touch(*page);
		break;
	case 6:
		stride = take(input);
		for (times *= 4; times--; *page += stride)
			touch(*page);
		break;
	case 7:
		/* Somewhere else each time, from one byte. */
		for (times *= 8, stride = take_byte(input); times--; ) {
			*page = *page * 16421 + 2 * stride + 1;
			touch(*page);
		}
		break;
	case 8:
		*page = take_page(input);
		drop(*page, 1U << times % 16, true);
		break;
	case 9:
		drop(take_page(input), 1U << times % 16, false);
		break;
	case 10:
		drop(0, PAGES, times & 1);
		break;
	case 11:
		touch_in_vain(*page, 8 * times);
		break;
	case 12:
		mark_again(*page + take_byte(input));
		break;
	case 13:
		set_limits(input);
		break;
	case 14:
		set_end(input);
		break;
	case 15:
		age(input);
		break;
	}
	*page %= PAGES;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const unsigned long bases[] = {
		0, 0, (1UL << 14) - PAGES / 2,
		(1UL << 31) - PAGES / 2, HIGHEST_PAGE - PAGES + 1,
	};
	struct input input = { bytes, size };
	unsigned int page = 0;

	memset(pages, 0, sizeof(pages));
	memset(&state, 0, sizeof(state));
	cached = 0;
	cached_elsewhere = 0;
	racing = false;
	steps = 0;
	most_pages = 0;
	base = bases[take_byte(&input) % (sizeof(bases) / sizeof(*bases))];
	limits = (struct mmap_readahead_miss) {
		.max_pages = take_limit(&input, MOST_PAGES),
		.request_pages = take_limit(&input, 16384),
		.block_shift = take_byte(&input) % 10,
		.look = look,
	};
	most_pages = limits.max_pages;
	set_end(&input);
	while (input.size && steps < MOST_STEPS)
		step(&input, &page);
	touch_in_vain(page, 300);
	return 0;
}

#ifdef FUZZ_STANDALONE
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void run_random(uint64_t seed)
{
	static uint8_t bytes[1024];
	size_t size;

	input_seed = seed;
	random_state = 0x9e3779b97f4a7c15ULL * (seed + 1);
	next_random();
	size = next_random() % sizeof(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = next_random() >> 32;
	LLVMFuzzerTestOneInput(bytes, size);
}

static bool run_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		return false;
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	input_name = path;
	LLVMFuzzerTestOneInput(bytes, size);
	return true;
}

int main(int argc, char **argv)
{
	unsigned long long runs = 10000, seed = 1, i;
	bool files = false;

	for (int arg = 1; arg < argc; arg++) {
		if (sscanf(argv[arg], "-runs=%llu", &runs) == 1 ||
		    sscanf(argv[arg], "-seed=%llu", &seed) == 1)
			continue;
		files = true;
		if (!run_file(argv[arg]))
			return 2;
	}
	for (i = 0; !files && i < runs; i++)
		run_random(seed + i);
	return 0;
}
#endif
