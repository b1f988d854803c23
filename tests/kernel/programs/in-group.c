// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a program in a control group that is made for it, and removed behind it.
 *
 *	in-group PATH PROGRAM ARGUMENT...
 *
 * PATH is below /sys/fs/cgroup; groups above it are made, and stay. Its exit status is that
 * of the program.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOP	"/sys/fs/cgroup/"

static void enter(const char *group)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		err(1, "%s", path);
	close(fd);
}

int main(int argc, char **argv)
{
	char group[256], *slash;
	int status;
	pid_t pid;

	if (argc < 3)
		errx(2, "usage: in-group PATH PROGRAM ARGUMENT...");
	snprintf(group, sizeof(group), TOP "%s/", argv[1]);
	for (slash = group + strlen(TOP); (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = 0;
		if (mkdir(group, 0755) && errno != EEXIST)
			err(1, "%s", group);
	}
	pid = fork();
	if (!pid) {
		enter(group);
		execvp(argv[2], argv + 2);
		err(1, "%s", argv[2]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(1, "waiting");
	if (rmdir(group))
		err(1, "%s", group);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
