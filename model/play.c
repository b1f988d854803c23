// SPDX-License-Identifier: GPL-2.0-only
/* What users have reported: several processes or threads access a file. */
#include <stdlib.h>

#include "openers.h"
#include "page_cache.h"

static enum access access_of(const struct case_settings *settings, bool write)
{
	if (!write)
		return READ;
	return case_maps_private(settings->kind) ? COPY : WRITE;
}

/* A runner closes what it has opened itself after its last touch. */
static bool play(struct model *model, const struct case_settings *settings,
		 uint64_t reclaimed, const struct case_touches *plan,
		 struct openers *openers)
{
	uint64_t last[MOST_OPENERS];
	bool done = true;

	for (uint64_t i = 0; openers && i < plan->count; i++)
		last[plan->touches[i].runner] = i;
	for (uint64_t i = 0; done && i < plan->count; i++) {
		const struct case_touch *next = &plan->touches[i];

		if (i && next->phase != next[-1].phase)
			done = memory_reclaim(&model->memory, reclaimed);
		if (openers)
			openers_turn(openers, next->runner);
		done = done &&
		       page_cache_touch(model, model->files, next->page,
					access_of(settings, next->write));
		if (openers && last[next->runner] == i)
			openers_close(openers, next->runner);
	}
	return done;
}

bool model_play(struct model *model, const struct case_settings *settings,
		uint64_t reclaimed)
{
	struct case_touches plan;
	struct openers openers;
	bool done = case_plan(settings, &plan);

	if (done && case_opens_each(settings->kind)) {
		done = openers_init(&openers, model->files, model->policy,
				    settings->runners) &&
		       play(model, settings, reclaimed, &plan, &openers);
		openers_free(&openers);
	} else if (done) {
		done = play(model, settings, reclaimed, &plan, NULL);
	}
	free(plan.touches);
	return done;
}
