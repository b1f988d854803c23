// SPDX-License-Identifier: GPL-2.0-only
/*
 * Print the touches of a case, one on each line: page, phase, runner, and 1 for a
 * write. Arguments: case, pages, runners, in_turn, unit, units, count, passes,
 * seed; what is 0 is as reported.
 */
#include "../../guest/cases.h"

#include <inttypes.h>
#include <stdio.h>

static enum case_kind find(const char *name)
{
	for (int i = 0; case_names[i]; i++)
		if (!strcmp(case_names[i], name))
			return i;
	exit(2);
}

static void set(uint32_t *setting, const char *text)
{
	uint32_t value = strtoul(text, NULL, 10);

	if (value)
		*setting = value;
}

int main(int argc, char **argv)
{
	struct case_settings settings;
	struct case_touches plan;

	if (argc != 10)
		return 2;
	settings = case_reported[find(argv[1])];
	set(&settings.pages, argv[2]);
	set(&settings.runners, argv[3]);
	set(&settings.in_turn, argv[4]);
	set(&settings.unit, argv[5]);
	set(&settings.units, argv[6]);
	set(&settings.count, argv[7]);
	set(&settings.passes, argv[8]);
	settings.seed = strtoull(argv[9], NULL, 10);
	if (!case_plan(&settings, &plan) || plan.count != case_count(&settings))
		return 1;
	for (uint64_t i = 0; i < plan.count; i++)
		printf("%" PRIu32 " %" PRIu32 " %" PRIu32 " %d\n",
		       plan.touches[i].page, plan.touches[i].phase,
		       plan.touches[i].runner, plan.touches[i].write);
	free(plan.touches);
	return 0;
}
