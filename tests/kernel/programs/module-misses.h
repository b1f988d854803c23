/* SPDX-License-Identifier: GPL-2.0-only */
#include <err.h>
#include <stdio.h>

/* What the module of that name has counted since it was loaded. */
static long misses(const char *name)
{
	char path[256];
	long number;
	FILE *stream;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/statistics", name);
	stream = fopen(path, "re");
	if (!stream || fscanf(stream, "misses %ld", &number) != 1)
		err(1, "%s", path);
	fclose(stream);
	return number;
}
