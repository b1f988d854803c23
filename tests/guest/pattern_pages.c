// SPDX-License-Identifier: GPL-2.0-only
/*
 * Print the pages of a pattern, one on each line. Arguments: pattern, order,
 * stride, streams, object, burst, region, seed, pages of the file, count.
 */
#include "../../guest/patterns.h"

#include <inttypes.h>
#include <stdio.h>

static int find(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return i;
	exit(2);
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	struct pattern pattern;
	uint64_t *pages, count;

	if (argc != 11)
		return 2;
	pattern = (struct pattern) {
		.kind = find(pattern_names, argv[1]),
		.order = find(pattern_orders, argv[2]),
		.stride = number(argv[3]),
		.streams = number(argv[4]),
		.object = number(argv[5]),
		.burst = number(argv[6]),
		.region = strtod(argv[7], NULL),
		.seed = number(argv[8]),
	};
	count = number(argv[10]);
	pages = malloc(count * sizeof(*pages));
	if (!pages || !pattern_plan(&pattern, number(argv[9]), pages, count))
		return 1;
	for (uint64_t i = 0; i < count; i++)
		printf("%" PRIu64 "\n", pages[i]);
	free(pages);
	return 0;
}
