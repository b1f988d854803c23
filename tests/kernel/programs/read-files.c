// SPDX-License-Identifier: GPL-2.0-only
/* Print all files that are named and can be read: the name and the content, each with a zero behind it. */
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "r");
		char content[4096];
		size_t bytes;

		if (!file)
			continue;
		bytes = fread(content, 1, sizeof(content), file);
		printf("%s%c%.*s%c", argv[i], 0, (int)bytes, content, 0);
		fclose(file);
	}
	return 0;
}
