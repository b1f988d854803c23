// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzzer of the adaptive window: bytes become a file, memory, limits, and a
 * series of accesses of several openers, who share what is known of the file and
 * its pages, but map these separately. Whatever the accesses are, a read has to hold
 * the missing page, to keep within its bounds, and to leave a state behind that is
 * one; and all reads together cost no more than docs/window-bound.md proves. Facts
 * need not fit together: the kernel gathers them without a lock over the file.
 *
 * With libFuzzer, from the top of the repository:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
 *		-Imodel/shim -o fuzz model/fuzz.c kernel/files/mm/mmap_readahead_window.c
 *	./fuzz -max_total_time=600
 *
 * With any other compiler, pseudo-random inputs, or those in files:
 *
 *	gcc -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
 *		-Imodel/shim -DFUZZ_STANDALONE -o fuzz \
 *		model/fuzz.c kernel/files/mm/mmap_readahead_window.c
 *	./fuzz [-runs=N] [-seed=N] [FILE]...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/log2.h>

#include "../kernel/files/mm/mmap_readahead_window.h"

/* What is simulated of the page cache; the file may be larger. */
#define PAGES		(1U << 10)
#define HIGHEST_PAGE	(~0UL >> 12)
#define MOST_PAGES	(~0U / 2)

/* Accesses of one input: what is slow is not what is looked for. */
#define MOST_STEPS	2048

/* Who has opened the file. */
#define OPENERS		4

/* Reads that nobody continued until a window is made smaller. */
#define MOST_PATIENCE	64

/* State of a page. */
#define CACHED		0x01
#define MARKED		0x02
#define EVICTED		0x04
#define ACCESSED	0x08	/* ever */

static uint8_t pages[PAGES];
static unsigned long cached;
/* Who maps a page, in bits; one of these accesses pages now. */
static uint8_t mappers[PAGES];
static unsigned int opener;

/* Page of the file that pages[0] is. */
static unsigned long base;
/* The first limit is the largest one. */
static struct mmap_readahead_miss limits;
static unsigned int most_pages;
static struct mmap_readahead_state state;
static unsigned int looks, steps;
/* Other threads read and drop pages between two looks. */
static bool racing;
/* All of the file is simulated, and nothing was dropped or evicted. */
static bool whole;

/* The same accesses, each of which reads its own page. */
static unsigned long long single_misses;
/* And where each miss reads a window around itself, and nothing is evicted. */
static bool around[PAGES];
static unsigned long long around_cost;
/* Of the policy; a read passes over what is cached, which leaves stretches. */
static unsigned long long requests, asked_pages, new_pages, stretches;

/* What to say of an input that breaks something. */
static const char *input_name = "";
static uint64_t input_seed;

static void broken(const char *what, const struct mmap_readahead_miss *miss,
		   const struct mmap_readahead_answer *answer)
{
	fprintf(stderr, "Broken: %s.\n", what);
	fprintf(stderr,
		"index %lu file %lu cached %lu memory %lu max %u request %u block %u\n",
		miss->index, miss->file_pages, miss->cached_pages,
		miss->memory_pages, miss->max_pages, miss->request_pages,
		1U << miss->block_shift);
	if (answer)
		fprintf(stderr, "start %lu size %u async %u order %u kind %d\n",
			answer->start, answer->size, answer->async_size,
			answer->order, answer->kind);
	fprintf(stderr, "requests %llu of %llu pages, %llu single misses\n",
		requests, asked_pages, single_misses);
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

/* A memory that evicts what was read or accessed longest ago */

struct memory {
	unsigned int stamps[PAGES];	/* 0: not here */
	unsigned int now, used, limit;
	unsigned int oldest;		/* no page here has an older stamp */
	uint16_t *users;		/* which page had a stamp */
};

/* One read of all pages in each step, and the page itself before and after. */
#define MOST_STAMPS	(MOST_STEPS * (PAGES + 2) + 1)

/* Of the policy, and of single pages. */
static uint16_t users[2][MOST_STAMPS];
static struct memory memory = { .users = users[0] };
static struct memory single = { .users = users[1] };

static void forget_all(struct memory *memory)
{
	memset(memory->stamps, 0, sizeof(memory->stamps));
	memory->now = 0;
	memory->used = 0;
	memory->oldest = 1;
}

/* Add a page, or make it the youngest. Returns what was evicted, or PAGES. */
static unsigned int use(struct memory *memory, unsigned int page)
{
	unsigned int oldest = PAGES;

	if (!memory->stamps[page] && memory->used++ == memory->limit) {
		while (memory->stamps[memory->users[memory->oldest]] !=
		       memory->oldest)
			memory->oldest++;
		oldest = memory->users[memory->oldest++];
		memory->stamps[oldest] = 0;
		memory->used--;
	}
	memory->stamps[page] = ++memory->now;
	memory->users[memory->now] = page;
	return oldest;
}

static void lose(struct memory *memory, unsigned int page)
{
	memory->used -= !!memory->stamps[page];
	memory->stamps[page] = 0;
}

/* The page cache */

static bool is_simulated(unsigned long page)
{
	return page - base < PAGES;
}

static enum mmap_readahead_page look(const void *cache, unsigned long index)
{
	uint8_t page;

	(void)cache;
	looks++;
	if (racing)
		return (index ^ index >> 3 ^ looks * 5 ^ steps) % 4;
	if (!is_simulated(index))
		return MMAP_READAHEAD_ABSENT;
	page = pages[index - base];
	if (!(page & CACHED))
		return page & EVICTED ? MMAP_READAHEAD_EVICTED :
					MMAP_READAHEAD_ABSENT;
	return mappers[index - base] ? MMAP_READAHEAD_USED :
				       MMAP_READAHEAD_CACHED;
}

static unsigned long next_miss(const void *cache, unsigned long index,
			       unsigned long most)
{
	unsigned long end = index + most;

	(void)cache;
	if (racing)
		return most ? index + steps % (most + 1) : index;
	while (index < end && is_simulated(index) &&
	       pages[index - base] & CACHED)
		index++;
	return index;
}

static void evict(unsigned int page)
{
	cached--;
	pages[page] = EVICTED | (pages[page] & ACCESSED);
	mappers[page] = 0;
	whole = false;
}

/* Drop pages; what was reclaimed is remembered. Single pages lose them too. */
static void drop(unsigned int first, unsigned int nr, bool reclaimed)
{
	for (unsigned int i = first; i < PAGES && i - first < nr; i++) {
		if (pages[i] & CACHED)
			evict(i);
		if (!reclaimed)
			pages[i] &= ~EVICTED;
		lose(&memory, i);
		lose(&single, i);
		whole = false;
	}
}

static void read_pages(const struct mmap_readahead_answer *answer)
{
	unsigned long end = answer->start + answer->size;
	unsigned long mark = end - answer->async_size;
	unsigned long first = answer->start > base ? answer->start : base;
	bool missing = false;

	requests++;
	asked_pages += answer->size;
	if (end > base + PAGES)
		end = base + PAGES;
	for (unsigned long index = first; index < end; index++) {
		unsigned int page = index - base, evicted;

		if (pages[page] & CACHED) {
			missing = false;
			continue;
		}
		stretches += !missing;
		missing = true;
		evicted = use(&memory, page);
		if (evicted < PAGES)
			evict(evicted);
		pages[page] = CACHED | (pages[page] & ACCESSED);
		if (answer->async_size && index == mark)
			pages[page] |= MARKED;
		cached++;
		new_pages++;
	}
}

static bool is_mapped(unsigned int page)
{
	return mappers[page] & 1U << opener;
}

static void map_around(unsigned int page)
{
	unsigned int block = 1U << limits.block_shift;
	unsigned int first = page / block * block;

	for (unsigned int i = first; i < first + block; i++)
		if ((pages[i] & (CACHED | MARKED)) == CACHED)
			mappers[i] |= 1U << opener;
}

/* The opener closes the file, and opens it again. */
static void unmap_all(void)
{
	for (unsigned int i = 0; i < PAGES; i++)
		mappers[i] &= ~(1U << opener);
}

/* What must always hold */

static void check_side(const struct mmap_readahead_side *side,
		       const struct mmap_readahead_miss *miss)
{
	if (side->order >= 31 || 1U << side->order > most_pages)
		broken("what single misses read is larger than any limit", miss,
		       NULL);
	if (side->patience > MOST_PATIENCE || side->quiet > MOST_PATIENCE)
		broken("patience is out of bounds", miss, NULL);
}

static void check_regions(const struct mmap_readahead_regions *regions,
			  const struct mmap_readahead_miss *miss)
{
	unsigned long sum = 0;

	for (unsigned int i = 0; i < MMAP_READAHEAD_REGIONS; i++)
		sum += regions->misses[i];
	if (sum != regions->nr)
		broken("the regions do not add up", miss, NULL);
}

static void check_state(const struct mmap_readahead_miss *miss)
{
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
	if (state.next >= MMAP_READAHEAD_READS)
		broken("there is no such read to forget", miss, NULL);
	if (!state.ahead.patience)
		return;
	check_regions(&state.regions, miss);
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
	if (1UL << answer->order > answer->size)
		broken("a folio is larger than the read", miss, answer);
	if (miss->writes && answer->order && answer->kind != MMAP_READAHEAD_FORWARD)
		broken("a page that is written dirties others", miss, answer);
	if (answer->kind == MMAP_READAHEAD_FORWARD && answer->async_size &&
	    answer->async_size < answer->size &&
	    1UL << answer->order > answer->start + answer->size - answer->async_size - miss->index)
		broken("a folio has both the miss and the mark", miss, answer);
	if (answer->async_size > answer->size)
		broken("a mark lies before the read", miss, answer);
}

/*
 * One for each read that is remembered, four for the one that is forgotten, and
 * those that look for a run: at most 24 where a request costs up to 2048 pages.
 */
static unsigned int most_looks(const struct mmap_readahead_miss *miss)
{
	unsigned int run = 2U << miss->block_shift;

	if (miss->request_pages > run)
		run = miss->request_pages;
	return MMAP_READAHEAD_READS + 4 + ilog2(run) + 1;
}

/* Field by field: nobody sets the bytes between them. */
static bool same(const struct mmap_readahead_answer *one,
		 const struct mmap_readahead_answer *other)
{
	return one->start == other->start && one->size == other->size &&
	       one->async_size == other->async_size && one->order == other->order &&
	       one->kind == other->kind && one->read == other->read;
}

/* What is settled must not depend on what is told of a miss only afterwards. */
static bool settled(const struct mmap_readahead_miss *miss,
		    struct mmap_readahead_answer *answer)
{
	struct mmap_readahead_answer other_answer;
	struct mmap_readahead_state other;
	struct mmap_readahead_miss unknown = *miss;
	unsigned int before = looks, after;
	bool is;

	memcpy(&other, &state, sizeof(state));
	is = mmap_readahead_settled(&state, miss, answer);
	/* The same looks find the same pages. */
	after = looks;
	looks = before;
	unknown.page = miss->page == MMAP_READAHEAD_ABSENT ? MMAP_READAHEAD_EVICTED :
							     MMAP_READAHEAD_ABSENT;
	unknown.memory_pages = ~miss->memory_pages;
	if (mmap_readahead_settled(&other, &unknown, &other_answer) != is ||
	    memcmp(&other, &state, sizeof(state)) ||
	    (is && !same(&other_answer, answer)))
		broken("it is settled by what is not known yet", miss, answer);
	looks = after;
	return is;
}

/* Is nothing cached of what was read, and will not be? */
static bool is_gone(const struct mmap_readahead_miss *miss)
{
	for (unsigned int i = 0; i < MMAP_READAHEAD_READS; i++)
		if (state.reads[i].pending)
			return false;
	return !miss->cached_pages;
}

/* The read of a miss is the only one. */
static void check_beginning(const struct mmap_readahead_miss *miss)
{
	unsigned int remembered = 0;

	for (unsigned int i = 0; i < MMAP_READAHEAD_READS; i++)
		remembered += !!state.reads[i].size;
	if (remembered > 1)
		broken("reads are remembered of which nothing is left", miss, NULL);
}

/* Decide on a miss, and check that. */
static struct mmap_readahead_answer adapt(const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_answer answer;
	bool gone = is_gone(miss);

	looks = 0;
	if (!settled(miss, &answer))
		mmap_readahead_adapt(&state, miss, &answer);
	if (looks > most_looks(miss))
		broken("a decision looks at too many pages", miss, &answer);
	if (!answer.size)
		broken("a miss reads nothing", miss, &answer);
	check_bounds(miss, &answer);
	if (answer.start > miss->index ||
	    miss->index - answer.start >= answer.size)
		broken("a miss does not read the missing page", miss, &answer);
	if (answer.kind > MMAP_READAHEAD_FILL)
		broken("a read is of no kind", miss, &answer);
	if (gone)
		check_beginning(miss);
	check_state(miss);
	return answer;
}

/* Decide on a mark, and check that. False if the kernel reads as without the window. */
static bool go_on(const struct mmap_readahead_miss *mark,
		  struct mmap_readahead_answer *answer)
{
	bool leaves_marks = state.ahead.order > 1 &&
			    (state.evicted > 32 || state.ahead.order + 5 > ilog2(mark->request_pages));
	unsigned long reach = most_pages;
	bool ours;

	if (mark->request_pages > reach)
		reach = mark->request_pages;
	looks = 0;
	ours = mmap_readahead_mark(&state, mark, answer);
	if (!ours && leaves_marks)
		broken("a mark of our own is left to others", mark, answer);
	if (!ours && answer->size)
		broken("a mark of others is read on at", mark, answer);
	if (looks > most_looks(mark))
		broken("a decision looks at too many pages", mark, answer);
	if (answer->size) {
		check_bounds(mark, answer);
		if (answer->start <= mark->index)
			broken("a run goes on where it has been", mark, answer);
		if (answer->start - mark->index > reach)
			broken("a run goes on too far away", mark, answer);
		if (answer->async_size != (answer->size < mark->file_pages - answer->start ?
					   answer->size : 0))
			broken("a run goes on without a mark, or has one at the end", mark, answer);
	}
	check_state(mark);
	return ours;
}

/* What it costs: docs/window-bound.md */

/* Against single pages. */
static void check_cost(void)
{
	unsigned long long most = most_pages, request = limits.request_pages;

	if (requests > single_misses)
		broken("more is asked for than single pages miss", &limits, NULL);
	if (asked_pages + request * requests > (most + request) * single_misses)
		broken("reads cost too much", &limits, NULL);
}

/* The least cost of reads that hold all pages that were accessed. */
static unsigned long long cheapest(void)
{
	static unsigned int accessed[PAGES];
	/* Of the first few of these. */
	static unsigned long long least[PAGES + 1];
	unsigned int nr = 0;

	for (unsigned int page = 0; page < PAGES; page++) {
		if (!(pages[page] & ACCESSED))
			continue;
		accessed[nr++] = page;
		least[nr] = ~0ULL;
		for (unsigned int first = nr; first--; ) {
			unsigned int size = page + 1 - accessed[first];
			unsigned long long cost = least[first] + size +
						  limits.request_pages;

			if (size > most_pages)
				break;
			if (cost < least[nr])
				least[nr] = cost;
		}
	}
	return least[nr];
}

/* A window around a miss, as stock reads it. */
static void read_around(unsigned int page)
{
	unsigned int half = most_pages / 2;
	unsigned int first = page > half ? page - half : 0;

	if (around[page])
		return;
	around_cost += limits.request_pages;
	for (unsigned int i = first; i < limits.file_pages && i < PAGES &&
	     i - first < most_pages; i++) {
		around_cost += !around[i];
		around[i] = true;
	}
}

/* Where all is kept: against windows, and any way that knows the future. */
static void check_cost_of_whole(void)
{
	double most = most_pages, request = limits.request_pages;
	double sparse = 4 * (most + request) / (4 + request);
	double dense = most * (4 + request) / (most + request);
	double cost = new_pages + request * requests;
	double factor = sparse > dense ? sparse : dense;

	if (request > most || dense > most)
		dense = most;
	if (request > most || factor > most)
		factor = most;
	if (cost > factor * cheapest() * (1 + 1e-9))
		broken("others read for much less", &limits, NULL);
	if (cost > (dense * around_cost + 3 * most) * (1 + 1e-9))
		broken("windows read for much less", &limits, NULL);
	if (stretches > 2 * requests)
		broken("reads fall into many pieces", &limits, NULL);
}

/* Steps */

/* The facts about a page; false if the file has none such. */
static bool describe(unsigned int page, struct mmap_readahead_miss *miss)
{
	*miss = limits;
	miss->index = base + page;
	miss->page = look(NULL, miss->index);
	miss->cached_pages = cached;
	if (racing)
		miss->cached_pages = steps % 7 ? steps * 1021UL << 20 : 0;
	return miss->index < miss->file_pages && page < PAGES;
}

/*
 * page_cache_async_ra(), for a mark of those who read() the file: as much as it ever
 * reads, behind what is cached.
 */
static void read_as_others(const struct mmap_readahead_miss *mark)
{
	unsigned long most = mark->max_pages;
	unsigned long start = mark->index + 1;
	struct mmap_readahead_answer answer;

	while (start < mark->file_pages && start - mark->index <= most &&
	       is_simulated(start) && pages[start - base] & CACHED)
		start++;
	if (start >= mark->file_pages || start - mark->index > most)
		return;
	if (most > mark->file_pages - start)
		most = mark->file_pages - start;
	answer = (struct mmap_readahead_answer) {
		.start = start,
		.size = most,
		.async_size = most,
	};
	read_pages(&answer);
}

/* Other threads may ask before this one has come so far. */
static void submit(const struct mmap_readahead_answer *answer)
{
	if (!racing || steps % 3)
		mmap_readahead_submitted(&state, answer);
}

static void fault(unsigned int page, const struct mmap_readahead_miss *miss)
{
	struct mmap_readahead_answer answer;

	map_around(page);
	if (is_mapped(page))
		return;
	if (pages[page] & MARKED) {
		pages[page] &= ~MARKED;
		if (!go_on(miss, &answer)) {
			read_as_others(miss);
		} else if (answer.size) {
			submit(&answer);
			read_pages(&answer);
		}
	} else {
		answer = adapt(miss);
		submit(&answer);
		read_pages(&answer);
		if (pages[page] & MARKED)
			broken("the missing page has the mark", miss, &answer);
	}
	map_around(page);
	if (!is_mapped(page))
		broken("a fault does not get its page", miss, &answer);
}

static void touch(unsigned int page)
{
	struct mmap_readahead_miss miss;

	page %= PAGES;
	if (steps++ >= MOST_STEPS || !describe(page, &miss))
		return;
	single_misses += !single.stamps[page];
	use(&single, page);
	if (pages[page] & CACHED)
		use(&memory, page);
	if (!is_mapped(page))
		fault(page, &miss);
	/* What it read with the page is older. */
	use(&memory, page);
	pages[page] |= ACCESSED;
	read_around(page);
	check_cost();
}

/* The file ends somewhere, which may be far away. */
static void set_end(struct input *input)
{
	unsigned int what = take_byte(input);

	limits.file_pages = base + 1 + take_page(input);
	if (what & 1)
		limits.file_pages = HIGHEST_PAGE + 1;
	if (limits.file_pages - base > PAGES || base)
		whole = false;
	/* What was cut off is gone. */
	if (limits.file_pages - base < PAGES && cached)
		drop(limits.file_pages - base, PAGES, false);
}

/* What a long life makes of the counts. */
static void age(struct input *input)
{
	struct mmap_readahead_regions *regions = &state.regions;

	regions->nr = 0;
	for (unsigned int i = 0; i < MMAP_READAHEAD_REGIONS; i++) {
		unsigned int choice = take_byte(input);

		regions->misses[i] = choice & 1 ? (1U << 27) - choice :
						  choice << choice % 9;
		regions->nr += regions->misses[i];
	}
}

/* What breaks the assumptions of a bound, and is for all of the file in memory. */
static void disturb(struct input *input, unsigned int what)
{
	unsigned int page = take_page(input);

	if (memory.limit < PAGES)
		return;
	if (what & 1)
		drop(page, 1U << what / 2 % 8, what & 16);
	else
		set_end(input);
}

/*
 * Runs that take turns, often more of them than are remembered. Openers take turns as
 * well: with the runs, so that each has its own, or so that all have part in all.
 */
static void run_in_turn(struct input *input, unsigned int page, unsigned int times)
{
	unsigned int runs = 1 + take_byte(input) % 16, what = take_byte(input);
	unsigned int stride = 1 + (what & 64 ? what % 8 : 0);

	for (unsigned int i = 0; i < times; i++)
		for (unsigned int run = 0; run < runs; run++) {
			opener = (what & 128 ? run : run + i) % OPENERS;
			touch(page + run * (PAGES / runs) + i * stride);
		}
}

/* Somebody else accesses the file, who may have closed it first. */
static void turn(struct input *input)
{
	unsigned int who = take_byte(input);

	opener = who % OPENERS;
	if (who & 128)
		unmap_all();
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
	case 8: case 9:
		disturb(input, take_byte(input));
		break;
	case 10:
		/* The next page that has a mark. */
		for (; times--; *page %= PAGES) {
			while (++*page < PAGES && !(pages[*page] & MARKED))
				;
			touch(*page);
		}
		break;
	case 11:
		limits.max_pages = take_limit(input, most_pages);
		break;
	case 12:
		racing = !racing;
		break;
	case 13:
		age(input);
		break;
	case 14:
		turn(input);
		break;
	case 15:
		run_in_turn(input, *page, times);
		break;
	}
	*page %= PAGES;
}

/* Memory holds the file, or single pages an (M + 1)th as many as it does. */
static void set_memory(struct input *input)
{
	unsigned int choice = take_byte(input), size = 1 + take(input) % PAGES;

	memory.limit = PAGES;
	single.limit = PAGES;
	limits.memory_pages = take_limit(input, MOST_PAGES);
	if (choice & 1 && size > most_pages) {
		memory.limit = size;
		single.limit = size / (most_pages + 1);
		limits.memory_pages = size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const unsigned long bases[] = {
		0, 0, 0, (1UL << 14) - PAGES / 2,
		(1UL << 31) - PAGES / 2, HIGHEST_PAGE - PAGES + 1,
	};
	struct input input = { bytes, size };
	unsigned int page = 0;

	memset(pages, 0, sizeof(pages));
	memset(mappers, 0, sizeof(mappers));
	opener = 0;
	memset(&state, 0, sizeof(state));
	forget_all(&memory);
	forget_all(&single);
	cached = 0;
	racing = false;
	whole = true;
	steps = 0;
	single_misses = 0;
	requests = 0;
	asked_pages = 0;
	new_pages = 0;
	stretches = 0;
	memset(around, 0, sizeof(around));
	around_cost = 0;
	base = bases[take_byte(&input) % (sizeof(bases) / sizeof(*bases))];
	limits = (struct mmap_readahead_miss) {
		.max_pages = take_limit(&input, MOST_PAGES),
		.request_pages = take_limit(&input, 16384),
		.max_order = take_byte(&input) % 12,
		.block_shift = take_byte(&input) % 10,
		.writes = take_byte(&input) & 1,
		.look = look,
		.next_miss = next_miss,
	};
	most_pages = limits.max_pages;
	set_memory(&input);
	set_end(&input);
	while (input.size && steps < MOST_STEPS)
		step(&input, &page);
	if (whole)
		check_cost_of_whole();
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
