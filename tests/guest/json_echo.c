// SPDX-License-Identifier: GPL-2.0-only
/* Decode the JSON string on each line of the input, and write it as JSON again. */
#include "../../guest/json.h"

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		char *at = line, *text = json_string(&at);

		if (text && json_take(&at, '\0'))
			json_put_string(stdout, text);
		else
			printf("error");
		putchar('\n');
	}
	free(line);
	return 0;
}
