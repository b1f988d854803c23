// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copy what is in a directory into another one: files, directories and
 * symbolic links with their owners, modes and times; a file of two names
 * becomes two. The file systems may be of two kinds.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <sys/stat.h>

#define PROBE	"copy-tree"
#include "probe.h"

#define CHUNK	(4 << 20)

static const char *from, *to;

/* Where it goes to, or NULL. */
static const char *copy_of(const char *source)
{
	static char path[4096];
	const char *name = source + strlen(from);

	/* What makes the ext4 file system adds this to it. */
	if (!strcmp(name, "/lost+found"))
		return NULL;
	if ((size_t)snprintf(path, sizeof(path), "%s%s", to, name) >=
	    sizeof(path))
		fail(1, "The name %s is too long.", source);
	return path;
}

static void copy_times(const struct stat *status, const char *path)
{
	struct timespec times[] = { status->st_atim, status->st_mtim };

	if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW))
		fail_io(path);
}

static void copy_content(const char *source, const char *path,
			 const struct stat *status)
{
	static char chunk[CHUNK];
	int in = open(source, O_RDONLY | O_CLOEXEC);
	int out = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	off_t at = 0;

	if (in < 0)
		fail_io(source);
	if (out < 0 || ftruncate(out, status->st_size))
		fail_io(path);
	/* Holes stay holes. */
	while ((at = lseek(in, at, SEEK_DATA)) >= 0) {
		off_t end = lseek(in, at, SEEK_HOLE);

		while (at < end) {
			size_t left = end - at < CHUNK ? end - at : CHUNK;
			ssize_t n = pread(in, chunk, left, at);

			if (n <= 0)
				fail_io(source);
			if (pwrite(out, chunk, n, at) != n)
				fail_io(path);
			at += n;
		}
	}
	if (errno != ENXIO)
		fail_io(source);
	close(in);
	close(out);
}

static int copy_entry(const char *source, const struct stat *status, int type,
		      struct FTW *place)
{
	const char *path = copy_of(source);
	char target[4096];
	ssize_t length;

	(void)place;
	if (!path)
		return 0;
	if (type == FTW_NS || type == FTW_DNR)
		fail_io(source);
	if (S_ISREG(status->st_mode)) {
		copy_content(source, path, status);
	} else if (S_ISLNK(status->st_mode)) {
		length = readlink(source, target, sizeof(target) - 1);
		if (length < 0)
			fail_io(source);
		target[length] = '\0';
		if (symlink(target, path))
			fail_io(path);
	} else if (!S_ISDIR(status->st_mode)) {
		if (mknod(path, status->st_mode, status->st_rdev))
			fail_io(path);
	} else if (mkdir(path, 0700) && errno != EEXIST) {
		fail_io(path);
	}
	if (lchown(path, status->st_uid, status->st_gid) ||
	    (!S_ISLNK(status->st_mode) &&
	     chmod(path, status->st_mode & 07777)))
		fail_io(path);
	copy_times(status, path);
	return 0;
}

/* What is made in a directory changes its times. */
static int finish_directory(const char *source, const struct stat *status,
			    int type, struct FTW *place)
{
	const char *path = copy_of(source);

	(void)place;
	if (path && type == FTW_DP)
		copy_times(status, path);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		fail(2, "Usage: copy-tree FROM TO");
	from = argv[1];
	to = argv[2];
	if (nftw(from, copy_entry, 64, FTW_PHYS) ||
	    nftw(from, finish_directory, 64, FTW_PHYS | FTW_DEPTH))
		fail_io(from);
	sync();
}
