/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A root directory with real programs on a disk of its own: made fit for them,
 * and entered by the process that is to become one.
 */
#ifndef FOLIOLAB_ROOT_H
#define FOLIOLAB_ROOT_H

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "cgroup.h"

/* What a program expects to find below its root. */
static inline void root_mount(const char *root, const char *type,
			      const char *source, const char *directory,
			      unsigned long flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", root, directory);
	if (mount(source, path, type, flags, NULL))
		fail_io(path);
}

/* Even if a recorder of touches remembers files there. */
static inline void root_umount(const char *root, const char *directory)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", root, directory);
	if (umount2(path, MNT_DETACH))
		fail_io(path);
}

/* Give programs their /proc and /dev; returns the disk's device. */
static inline dev_t root_prepare(const char *root)
{
	struct stat mounted, above;
	char path[4096];

	snprintf(path, sizeof(path), "%s/..", root);
	if (stat(root, &mounted) || stat(path, &above))
		fail_io(root);
	if (mounted.st_dev == above.st_dev)
		fail(1, "No file system is mounted on %s.", root);
	/* Mounts of our own go with us. */
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		fail_io("Only root can do this: mounts of our own");
	root_mount(root, "proc", "proc", "proc", 0);
	root_mount(root, NULL, "/dev", "dev", MS_BIND);
	return mounted.st_dev;
}

/* In the child that is to become a program: into the control group as well. */
static inline void root_enter(const char *root)
{
	cgroup_enter();
	if (chroot(root) || chdir("/"))
		fail_io(root);
	clearenv();
	setenv("HOME", "/", 1);
	setenv("LC_ALL", "C", 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("PYTHONHASHSEED", "0", 1);
}

#endif /* FOLIOLAB_ROOT_H */
