/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of the kernel that stay until others are asked for: init's verb
 * :switch. Each file is read before it is first written in a boot, and put back
 * when it is not asked for any more.
 *
 * Every verb is a process of its own, so that what a file held is kept in files.
 */
#ifndef FOLIOLAB_SWITCH_H
#define FOLIOLAB_SWITCH_H

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "settings.h"

#define SWITCHES_KEPT	"/dev/shm/switches"
#define SWITCH_PATH	NAME_MAX	/* bytes, with the end */

/* Where the value is kept that a switch's file held when the kernel booted. */
static inline void switch_kept(char *kept, size_t size, const char *path)
{
	snprintf(kept, size, "%s/%s", SWITCHES_KEPT, path);
	for (char *at = kept + strlen(SWITCHES_KEPT "/"); *at; at++)
		if (*at == '/')
			*at = '!';
}

/* False, with errno, if the kernel has no such file, or it cannot be read. */
static inline bool switch_keep(const char *path)
{
	char kept[2 * SWITCH_PATH], value[64];
	int fd;

	if (strlen(path) >= SWITCH_PATH) {
		errno = ENAMETOOLONG;
		return false;
	}
	switch_kept(kept, sizeof(kept), path);
	if (!access(kept, F_OK))
		return true;
	if (!read_word(path, value, sizeof(value)))
		return false;
	fd = open(kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return write_word(kept, value);
}

/*
 * At most one folio size has exec: giving it to one takes it from another. So
 * DIRECTORY/SIZE/file_enabled is kept with those of all other sizes.
 */
static inline void switch_keep_sizes(const char *path)
{
	const char *name = strrchr(path, '/');
	char directory[SWITCH_PATH];
	struct dirent *entry;
	DIR *sizes;

	if (!name || strcmp(name, "/file_enabled"))
		return;
	snprintf(directory, sizeof(directory), "%.*s", (int)(name - path), path);
	*strrchr(directory, '/') = '\0';	/* a whole path has one */
	sizes = opendir(directory);
	while (sizes && (entry = readdir(sizes))) {
		char other[3 * SWITCH_PATH];

		snprintf(other, sizeof(other), "%s/%s%s", directory,
			 entry->d_name, name);
		switch_keep(other);
	}
	if (sizes)
		closedir(sizes);
}

/* Put back all that is kept, but for what is asked for: "PATH=VALUE" each. */
static inline bool switch_back(char **asked)
{
	DIR *all = opendir(SWITCHES_KEPT);
	struct dirent *entry;
	bool done = all;

	while (all && (entry = readdir(all))) {
		char path[NAME_MAX + 1], kept[2 * SWITCH_PATH], value[64];
		bool stays = entry->d_name[0] == '.';

		snprintf(path, sizeof(path), "%s", entry->d_name);
		for (char *at = path; *at; at++)
			if (*at == '!')
				*at = '/';
		for (char **each = asked; *each; each++)
			stays |= !strncmp(*each, path, strlen(path)) &&
				 (*each)[strlen(path)] == '=';
		if (stays)
			continue;
		switch_kept(kept, sizeof(kept), path);
		done &= read_word(kept, value, sizeof(value)) &&
			write_word(path, value);
	}
	if (all)
		closedir(all);
	return done;
}

/*
 * Write each of "PATH=VALUE", and put back what was written before and is not
 * among these. Nothing is written if the kernel lacks one of them: then its
 * path is returned, and else NULL, also with *failed.
 */
static inline const char *switch_to(char **asked, bool *failed)
{
	*failed = false;
	mkdir(SWITCHES_KEPT, 0700);
	for (char **each = asked; *each; each++) {
		char *equals = strchr(*each, '=');

		if (!equals)
			return *each;
		*equals = '\0';
		if (!switch_keep(*each))
			return *each;
		switch_keep_sizes(*each);
		*equals = '=';
	}
	*failed = !switch_back(asked);
	/* Last: what is put back for one folio size may take exec from another. */
	for (char **each = asked; *each && !*failed; each++) {
		char *equals = strchr(*each, '=');

		*equals = '\0';
		*failed = !write_word(*each, equals + 1);
		*equals = '=';
	}
	return NULL;
}

#endif /* FOLIOLAB_SWITCH_H */
