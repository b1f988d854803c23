/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What users have reported, as plans of accesses: several processes or threads
 * touch pages of one file.
 *
 * The same settings give the same plan on every architecture. Its order is that
 * of runners in lockstep: each touches one page, then the next runner does. A
 * program that really runs them keeps the order of each runner, and of phases.
 */
#ifndef FOLIOLAB_CASES_H
#define FOLIOLAB_CASES_H

#include "patterns.h"

#define CASE_SHARE	11	/* per cent of the pages that a restore touches */
#define CASE_MOVED	5	/* per cent of its runs that others do not have */
#define CASE_OCTAVES	7	/* sizes of tensors: 64 times as large at most */

enum case_kind {
	CASE_OPENERS,	/* processes touch random pages, each its own */
	CASE_PIECES,	/* threads scan a tensor together, and then the next */
	CASE_SNAPSHOT,	/* processes touch short runs in a random order */
	CASE_PARTS,	/* a few random pages in each of many mappings */
	CASE_RECLAIM,	/* few pages often, with reclaim after each phase */
	CASE_REMOTE,	/* threads scan a tensor each, in a random order */
	CASE_WRITES,	/* random pages are written to */
};

static const char *const case_names[] = {
	"openers", "pieces", "snapshot", "parts", "reclaim", "remote", "writes",
	NULL
};

/*
 * What a case does not use may be anything. All that it uses is at least 1, but
 * for in_turn.
 */
struct case_settings {
	enum case_kind kind;
	uint32_t pages;		/* from the start of the file, that may be touched */
	uint32_t runners;	/* processes or threads */
	uint32_t in_turn;	/* so many of them before the others, one by one */
	uint32_t unit;		/* pages of a mapping or tensor, or of the largest */
	uint32_t units;		/* mappings, or phases with reclaim after each */
	uint32_t count;		/* touches of a process, in a mapping, in a phase */
	uint32_t passes;	/* over all tensors */
	uint64_t seed;
};

/* As they were reported, in a file of 512 MiB. */
static const struct case_settings case_reported[] = {
	[CASE_OPENERS] = { CASE_OPENERS, .pages = 32768, .runners = 32,
			   .count = 400 },
	[CASE_PIECES] = { CASE_PIECES, .pages = 98304, .runners = 32,
			  .unit = 2048, .passes = 1 },
	[CASE_SNAPSHOT] = { CASE_SNAPSHOT, .pages = 131072, .runners = 9,
			    .in_turn = 5 },
	[CASE_PARTS] = { CASE_PARTS, .pages = 131072, .runners = 1, .unit = 64,
			 .units = 400, .count = 4 },
	[CASE_RECLAIM] = { CASE_RECLAIM, .pages = 26214, .runners = 1,
			   .units = 10, .count = 4000 },
	[CASE_REMOTE] = { CASE_REMOTE, .pages = 65536, .runners = 24,
			  .unit = 4096 },
	[CASE_WRITES] = { CASE_WRITES, .pages = 131072, .runners = 1,
			  .count = 8000 },
};

struct case_touch {
	uint32_t page;
	uint32_t phase;		/* no touch comes before those of an earlier one */
	uint32_t runner;
	bool write;
};

struct case_touches {
	struct case_touch *touches;	/* to be freed */
	uint64_t count;
};

/* Does each runner open the file itself? Else all share one open file. */
static inline bool case_opens_each(enum case_kind kind)
{
	return kind == CASE_OPENERS || kind == CASE_SNAPSHOT;
}

/* Does a write stay with the process? Else it goes to the file. */
static inline bool case_maps_private(enum case_kind kind)
{
	return kind == CASE_SNAPSHOT;
}

/* Touches of a restore. */
static inline uint64_t case_restored(uint64_t pages)
{
	return pages * CASE_SHARE / 100;
}

static inline uint64_t case_count(const struct case_settings *settings)
{
	uint64_t pages = settings->pages, runners = settings->runners;

	switch (settings->kind) {
	case CASE_OPENERS:
		return runners * settings->count;
	case CASE_PIECES:
		return pages * settings->passes;
	case CASE_SNAPSHOT:
		return runners * case_restored(pages);
	case CASE_PARTS:
	case CASE_RECLAIM:
		return (uint64_t)settings->units * settings->count;
	case CASE_REMOTE:
		return pages;
	default:
		return settings->count;
	}
}

static inline void case_add(struct case_touches *plan, uint64_t page,
			    uint64_t phase, uint64_t runner, bool write)
{
	plan->touches[plan->count++] = (struct case_touch) {
		.page = page, .phase = phase, .runner = runner, .write = write,
	};
}

/* The random numbers of a runner, or a part, are its own. */
static inline uint64_t case_state(const struct case_settings *settings,
				  uint64_t number)
{
	return settings->seed + (number << 32);
}

static inline void case_shuffle(uint64_t *state, uint32_t *items, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t other = i + random_below(state, count - i);
		uint32_t item = items[i];

		items[i] = items[other];
		items[other] = item;
	}
}

/* So many pages of each runner, as they follow on each other in "pages". */
static inline void case_processes(const struct case_settings *settings,
				  const uint32_t *pages, uint64_t each,
				  struct case_touches *plan)
{
	bool writes = settings->kind == CASE_SNAPSHOT;
	uint64_t runner, i;

	for (runner = 0; runner < settings->in_turn; runner++)
		for (i = 0; i < each; i++)
			case_add(plan, pages[runner * each + i], runner, runner,
				 writes && i % 3 == 2);
	for (i = 0; i < each; i++)
		for (runner = settings->in_turn; runner < settings->runners;
		     runner++)
			case_add(plan, pages[runner * each + i],
				 settings->in_turn, runner, writes && i % 3 == 2);
}

/*
 * Lengths of runs, so that they have so many pages together, as it becomes less
 * likely by 13 to 23 with each page that a run goes on: 2.3 pages on average.
 */
static inline uint64_t case_run_lengths(uint64_t *state, uint64_t pages,
					uint32_t *lengths)
{
	uint64_t runs = 0;

	for (uint64_t done = 0; done < pages; done += lengths[runs++]) {
		uint64_t length = 1;

		while (done + length < pages && random_below(state, 23) < 13)
			length++;
		lengths[runs] = length;
	}
	return runs;
}

/*
 * Where so many runs of these lengths begin. One may be in front of each page
 * that none has, or behind the last one, so two runs never become one.
 */
static inline void case_run_starts(uint64_t *state, uint64_t file_pages,
				   const uint32_t *lengths, uint64_t runs,
				   uint32_t *starts)
{
	uint64_t gaps = file_pages - case_restored(file_pages) + 1, at = 0;

	for (uint64_t run = 0; run < runs; gaps--) {
		if (random_below(state, gaps) < runs - run) {
			starts[run] = at;
			at += lengths[run++];
		}
		at++;
	}
}

/*
 * What one restore touches: in an order of its own, the runs that all restores
 * of the snapshot have, but for a few that are elsewhere.
 */
static inline bool case_restore(const struct case_settings *settings,
				uint64_t runner, uint32_t *pages)
{
	uint64_t common = case_state(settings, settings->runners);
	uint64_t own = case_state(settings, runner), n = 0, runs;
	uint64_t most = case_restored(settings->pages) + 1;
	uint32_t *lengths = calloc(3 * most, sizeof(*lengths));
	uint32_t *starts = lengths + most, *order = starts + most;

	if (!lengths)
		return false;
	runs = case_run_lengths(&common, most - 1, lengths);
	case_run_starts(&common, settings->pages, lengths, runs, starts);
	for (uint64_t run = 0; run < runs; run++) {
		order[run] = run;
		if (random_below(&own, 100) < CASE_MOVED)
			starts[run] = random_below(&own, settings->pages -
						   lengths[run] + 1);
	}
	case_shuffle(&own, order, runs);
	for (uint64_t i = 0; i < runs; i++)
		for (uint32_t page = 0; page < lengths[order[i]]; page++)
			pages[n++] = starts[order[i]] + page;
	free(lengths);
	return true;
}

static inline bool case_openers(const struct case_settings *settings,
				struct case_touches *plan)
{
	bool restores = settings->kind == CASE_SNAPSHOT, done = true;
	uint64_t each = case_count(settings) / settings->runners;
	uint32_t *pages = calloc(settings->runners * each + 1, sizeof(*pages));

	if (!pages)
		return false;
	for (uint64_t runner = 0; done && runner < settings->runners; runner++) {
		uint64_t state = case_state(settings, runner);

		if (restores)
			done = case_restore(settings, runner,
					    pages + runner * each);
		for (uint64_t i = 0; !restores && i < each; i++)
			pages[runner * each + i] = random_below(&state,
								settings->pages);
	}
	if (done)
		case_processes(settings, pages, each, plan);
	free(pages);
	return done;
}

/* One after the other, the tensors of a pass are phases. */
static inline void case_pieces(const struct case_settings *settings,
			       struct case_touches *plan)
{
	uint64_t tensors = (settings->pages - 1) / settings->unit + 1;

	for (uint64_t phase = 0; phase < settings->passes * tensors; phase++) {
		uint64_t first = phase % tensors * settings->unit;
		uint64_t size = pattern_clamp(settings->pages - first,
					      settings->unit);
		uint64_t longest = (size - 1) / settings->runners + 1;

		for (uint64_t i = 0; i < longest; i++) {
			for (uint64_t t = 0; t < settings->runners; t++) {
				uint64_t start = pattern_part(
					size, settings->runners, t);

				if (start + i < pattern_part(
						size, settings->runners, t + 1))
					case_add(plan, first + start + i, phase,
						 t, false);
			}
		}
	}
}

/* Where a part begins, and what its touches are drawn from. */
static inline uint64_t case_part(const struct case_settings *settings,
				 uint64_t part, uint64_t *state)
{
	*state = case_state(settings, part);
	return random_below(state, settings->pages - settings->unit + 1);
}

/* A mapping is a phase. */
static inline void case_parts(const struct case_settings *settings,
			      struct case_touches *plan)
{
	for (uint64_t part = 0; part < settings->units; part++) {
		uint64_t state, first = case_part(settings, part, &state);

		for (uint64_t i = 0; i < settings->count; i++)
			case_add(plan, first + random_below(&state,
							    settings->unit),
				 part, 0, false);
	}
}

static inline bool case_reclaim(const struct case_settings *settings,
				struct case_touches *plan)
{
	const struct pattern zipf = { PATTERN_ZIPF, .seed = settings->seed };
	uint64_t count = case_count(settings);
	uint64_t *pages = calloc(count + 1, sizeof(*pages));

	if (!pages)
		return false;
	pattern_zipf(&zipf, settings->pages, pages, count);
	for (uint64_t i = 0; i < count; i++)
		case_add(plan, pages[i], i / settings->count, 0, false);
	free(pages);
	return true;
}

/* Tensors lie one behind the other; each is half as large again and again. */
static inline uint64_t case_tensors(const struct case_settings *settings,
				    uint64_t *state, uint32_t *starts)
{
	uint64_t tensors = 0, start = 0;

	while (start < settings->pages) {
		starts[tensors++] = start;
		start += pattern_clamp(settings->unit >>
				       random_below(state, CASE_OCTAVES),
				       settings->pages - start);
	}
	starts[tensors] = settings->pages;
	return tensors;
}

/* Whoever has done with a tensor takes the next that nobody has. */
static inline bool case_remote(const struct case_settings *settings,
			       struct case_touches *plan)
{
	uint64_t state = settings->seed, tensors, taken = 0;
	uint32_t *starts = calloc(2 * (settings->pages + 1) +
				  2 * settings->runners, sizeof(*starts));
	uint32_t *order = starts + settings->pages + 1;
	uint32_t *at = order + settings->pages + 1;
	uint32_t *end = at + settings->runners;

	if (!starts)
		return false;
	tensors = case_tensors(settings, &state, starts);
	for (uint64_t i = 0; i < tensors; i++)
		order[i] = i;
	case_shuffle(&state, order, tensors);
	for (uint64_t t = 0; plan->count < settings->pages;
	     t = (t + 1) % settings->runners) {
		if (at[t] == end[t] && taken < tensors) {
			at[t] = starts[order[taken]];
			end[t] = starts[order[taken++] + 1];
		}
		if (at[t] < end[t])
			case_add(plan, at[t]++, 0, t, false);
	}
	free(starts);
	return true;
}

static inline void case_writes(const struct case_settings *settings,
			       struct case_touches *plan)
{
	uint64_t state = settings->seed;

	for (uint64_t i = 0; i < settings->count; i++)
		case_add(plan, random_below(&state, settings->pages), 0, 0,
			 true);
}

/* Plan the touches of a case. False if there is no memory for them. */
static inline bool case_plan(const struct case_settings *settings,
			     struct case_touches *plan)
{
	bool done = true;

	plan->count = 0;
	plan->touches = calloc(case_count(settings) + 1, sizeof(*plan->touches));
	if (!plan->touches)
		return false;
	switch (settings->kind) {
	case CASE_OPENERS:
	case CASE_SNAPSHOT:
		done = case_openers(settings, plan);
		break;
	case CASE_PIECES:
		case_pieces(settings, plan);
		break;
	case CASE_PARTS:
		case_parts(settings, plan);
		break;
	case CASE_RECLAIM:
		done = case_reclaim(settings, plan);
		break;
	case CASE_REMOTE:
		done = case_remote(settings, plan);
		break;
	case CASE_WRITES:
		case_writes(settings, plan);
		break;
	}
	return done;
}

#endif /* FOLIOLAB_CASES_H */
