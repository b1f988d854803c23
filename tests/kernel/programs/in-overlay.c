// SPDX-License-Identifier: GPL-2.0-only
/* Run a program in an overlay, for it alone, whose layers are in another directory. */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "a directory and a program are missing");
	if (chdir(argv[1]))
		err(1, "%s", argv[1]);
	if (mkdir("lower", 0755) || mkdir("upper", 0755) || mkdir("work", 0755) || mkdir("overlay", 0755))
		err(1, "a layer in %s", argv[1]);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("overlay", "overlay", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"))
		err(1, "the overlay");
	if (chdir("overlay"))
		err(1, "overlay");
	execvp(argv[2], argv + 2);
	err(1, "%s", argv[2]);
}
