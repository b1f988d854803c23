// SPDX-License-Identifier: GPL-2.0-only
/* Make a directory of files of one size, which are numbered and hold zeros. */
#include <sys/stat.h>

#define PROBE	"make-files"
#include "files.h"
#include "probe.h"

#define CHUNK	(1 << 20)

static void make_file(const char *path, uint64_t bytes)
{
	static const char zeros[CHUNK];
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		fail_io(path);
	while (bytes) {
		ssize_t n = write(fd, zeros, bytes < CHUNK ? bytes : CHUNK);

		if (n < 0)
			fail_io(path);
		bytes -= n;
	}
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t files, pages;
	char path[4096];

	if (argc != 4)
		fail(2, "Usage: make-files DIRECTORY FILES PAGES");
	files = parse_number("files", argv[2], 1);
	pages = parse_number("pages", argv[3], 1);
	files_directory(path, sizeof(path), argv[1], files, pages);
	if (mkdir(path, 0755))
		fail_io(path);
	for (uint64_t i = 0; i < files; i++) {
		files_path(path, sizeof(path), argv[1], files, pages, i);
		make_file(path, pages * FILES_PAGE);
	}
	sync();
}
