/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What init does on a machine that nobody talks to: its jobs are the lines of a
 * file, and each answer is on the disk before the next job begins. The directory
 * has
 *   requests	the jobs
 *   answers	made here
 *   console	made here: the kernel's log, as far as it came
 * Whatever keeps this process from running resets the machine, if it has a
 * watchdog.
 */
#ifndef FOLIOLAB_ALONE_H
#define FOLIOLAB_ALONE_H

#include <limits.h>
#include <linux/watchdog.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"

#define WATCHDOG_SECONDS	60
/*
 * While the machine shuts down and starts again, until its own kernel has the
 * watchdog: firmware may take minutes, and not every reset stops it.
 */
#define REBOOT_SECONDS		600

static struct {
	const char *directory;	/* NULL in a guest */
	int watchdog;
	int log;		/* the kernel's */
	int console;		/* its copy */
} alone;

static inline int alone_open(const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", alone.directory, name);
	return open(path, flags | O_CLOEXEC, 0644);
}

static inline void alone_watchdog(int seconds)
{
	if (alone.watchdog >= 0)
		ioctl(alone.watchdog, WDIOC_SETTIMEOUT, &seconds);
}

/*
 * Say that this process runs, and copy what the kernel has said since the last
 * time, with the time stamps that a console has.
 */
static inline void alone_tick(void)
{
	char record[8192];
	bool new = false;
	ssize_t length;

	if (alone.watchdog >= 0)
		ioctl(alone.watchdog, WDIOC_KEEPALIVE, 0);
	/* A record is "priority,number,microseconds,flags;text" and a newline. */
	while ((length = read(alone.log, record, sizeof(record) - 1)) > 0) {
		unsigned long long at = 0;
		char *text;

		record[length] = '\0';
		text = strchr(record, ';');
		if (!text || sscanf(record, "%*u,%*u,%llu", &at) != 1)
			continue;
		text[1 + strcspn(text + 1, "\n")] = '\0';
		dprintf(alone.console, "[%5llu.%06llu] %s\n", at / 1000000,
			at % 1000000, text + 1);
		new = true;
	}
	if (new)
		fdatasync(alone.console);
}

/* Programs are found beside this one first. */
static inline void alone_path(void)
{
	char path[PATH_MAX], all[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length <= 0)
		return;
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	snprintf(all, sizeof(all), "%s:%s", path, getenv("PATH"));
	setenv("PATH", all, 1);
}

/* The jobs, with where answers go; NULL, with errno, if that cannot be. */
static inline FILE *alone_begin(int *answers)
{
	FILE *requests = NULL;
	int fd;

	alone_path();
	alone.watchdog = open("/dev/watchdog", O_WRONLY | O_CLOEXEC);
	alone_watchdog(WATCHDOG_SECONDS);
	alone.log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	alone.console = alone_open("console", O_WRONLY | O_CREAT | O_APPEND);
	fd = alone_open("requests", O_RDONLY);
	if (fd >= 0)
		requests = fdopen(fd, "r");
	/* Else the exit() of a child would seek back to before what was read ahead. */
	if (requests)
		setvbuf(requests, NULL, _IONBF, 0);
	*answers = alone_open("answers",
			      O_WRONLY | O_CREAT | O_APPEND | O_DSYNC);
	alone_tick();
	return *answers < 0 || alone.console < 0 ? NULL : requests;
}

/* Have all on the disk, which the machine's own kernel is to find whole. */
static inline void alone_settle(void)
{
	int fd;

	sync();
	/* An ordinary remount would fail: answers and disks are open. */
	fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "u", 1) == 1)
		sleep(3);
}

#endif /* FOLIOLAB_ALONE_H */
