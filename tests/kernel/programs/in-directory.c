// SPDX-License-Identifier: GPL-2.0-only
/* Run a program in another directory. */
#include <err.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "a directory and a program are missing");
	if (chdir(argv[1]))
		err(1, "%s", argv[1]);
	execvp(argv[2], argv + 2);
	err(1, "%s", argv[2]);
}
