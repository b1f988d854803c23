// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "openers.h"

bool openers_init(struct openers *openers, struct file *file,
		  const struct policy *policy, uint32_t nr)
{
	*openers = (struct openers) {
		.file = file,
		.policy = policy,
		.own = file->state,
		/* One byte, as there may be no states. */
		.states = malloc(nr * policy->state_size + 1),
	};
	file->mappers = calloc(file->nr_pages, sizeof(*file->mappers));
	return openers->states && file->mappers;
}

void openers_free(struct openers *openers)
{
	struct file *file = openers->file;

	free(file->mappers);
	file->mappers = NULL;
	file->state = openers->own;
	free(openers->states);
}

void openers_turn(struct openers *openers, uint32_t opener)
{
	size_t size = openers->policy->state_size;
	struct file *file = openers->file;

	file->opener = UINT64_C(1) << opener;
	file->state = openers->states + opener * size;
	if (file->open & file->opener)
		return;
	file->open |= file->opener;
	memset(file->state, 0, size);
	if (openers->policy->init)
		openers->policy->init(file->state);
}

/* zap_present_folio_ptes(), with folio_mark_accessed() for what was used. */
static uint8_t unmapped(uint8_t page)
{
	if (!(page & REFERENCED))
		page &= ~YOUNG;
	return (page & ~MAPPED) | REFERENCED;
}

void openers_close(struct openers *openers, uint32_t opener)
{
	struct file *file = openers->file;

	openers_turn(openers, opener);
	for (uint64_t i = 0; i < file->nr_pages; i++) {
		if (!(file->pages[i] & CACHED) ||
		    !(file->mappers[i] & file->opener))
			continue;
		file->mappers[i] &= ~file->opener;
		if (!file->mappers[i])
			file->pages[i] = unmapped(file->pages[i]);
	}
	file->open &= ~file->opener;
}
