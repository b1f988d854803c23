// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes a module out and puts it back, again and again, while other processes map, touch
 * and read a file of zeros that is evicted all the time. Then loads it without ftrace, and on
 * a kernel that tells other types. The module is told what requests cost on two devices.
 *
 *	module-load NAME MODULE FILE ROUNDS
 *	module-load NAME			takes it out for good
 *	module-load NAME in-the-background FILE	says if that has not ended after some use
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READERS	4
#define TOUCHES	100
#define TYPES		"/sys/kernel/btf/vmlinux"
#define OTHER_TYPES	"/other-types"
#define PARAMETERS "request_kb=128 request_kb_of=8:0=1024 request_kb_of=8:16=64"

static void touch(const volatile char *page)
{
	if (*page)
		errx(1, "a page holds what the file does not");
}

/* Once: random pages, then a run from one of them, then the same with read(). */
static void use(const char *name, unsigned int *seed)
{
	int fd = open(name, O_RDONLY);
	long page = sysconf(_SC_PAGESIZE), i, at;
	struct stat stat;
	char buffer[8192];
	char *map;

	if (fd < 0 || fstat(fd, &stat))
		err(1, "%s", name);
	map = mmap(NULL, stat.st_size, PROT_READ | (rand_r(seed) % 8 ? 0 : PROT_EXEC),
		   rand_r(seed) % 2 ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		err(1, "mmap");
	if (rand_r(seed) % 8 == 0)
		madvise(map, stat.st_size, rand_r(seed) % 2 ? MADV_RANDOM : MADV_SEQUENTIAL);
	for (i = 0; i < TOUCHES; i++)
		touch(map + rand_r(seed) % (stat.st_size / page) * page);
	at = rand_r(seed) % (stat.st_size / page - TOUCHES);
	for (i = 0; i < TOUCHES; i++)
		touch(map + (at + i) * page);
	for (i = 0; i < TOUCHES / 4; i++) {
		if (pread(fd, buffer, sizeof(buffer), at * page + i * (long)sizeof(buffer)) < 0)
			err(1, "read");
		touch(buffer);
	}
	munmap(map, stat.st_size);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static pid_t start_reader(const char *name, unsigned int seed)
{
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Loading takes the work of a second: half of all CPUs is for that. */
	if (nice(10) < 0)
		err(1, "nice");
	for (;;)
		use(name, &seed);
}

static int try_to_load(const char *module)
{
	int fd = open(module, O_RDONLY | O_CLOEXEC);
	int failed = fd < 0 || syscall(SYS_finit_module, fd, PARAMETERS, 0) ? errno : 0;

	close(fd);
	return failed;
}

static void load(const char *module)
{
	errno = try_to_load(module);
	if (errno)
		err(1, "%s", module);
}

static void unload(const char *name)
{
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		err(1, "unloading %s", name);
}

/* Whether ftrace calls anybody. A kernel may refuse. */
static void set_ftrace(const char *value)
{
	int fd = open("/proc/sys/kernel/ftrace_enabled", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "ftrace_enabled");
	if (write(fd, value, 1) != 1 && errno != EBUSY && errno != EOPNOTSUPP)
		err(1, "ftrace_enabled");
	close(fd);
}

static bool ftrace_is_on(void)
{
	int fd = open("/proc/sys/kernel/ftrace_enabled", O_RDONLY | O_CLOEXEC);
	char value = 0;

	if (fd < 0 || read(fd, &value, 1) != 1)
		err(1, "ftrace_enabled");
	close(fd);
	return value != '0';
}

/*
 * As long as it is loaded ftrace has to stay, and without ftrace it is not to load. Linux 7.3
 * has nothing that switches ftrace off.
 */
static void check_ftrace(const char *name, const char *module)
{
	set_ftrace("0");
	if (!ftrace_is_on())
		errx(1, "ftrace can be switched off under the module");
	unload(name);
	set_ftrace("0");
	if (!ftrace_is_on()) {
		if (try_to_load(module) != EBUSY)
			errx(1, "the module loads without ftrace");
		puts("it does not load without ftrace");
		set_ftrace("1");
	}
	load(module);
}

/* Put a file in the place of the kernel's types: these with one word changed, or nothing. */
static void change_types(const char *word, const char *other)
{
	int in = open(TYPES, O_RDONLY | O_CLOEXEC);
	int out = open(OTHER_TYPES, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0400);
	char *types, *found = NULL, name[64] = "";
	struct stat stat;
	ssize_t done = 0, n;

	if (in < 0 || out < 0 || fstat(in, &stat))
		err(1, "types");
	types = malloc(stat.st_size);
	if (!types)
		err(1, "malloc");
	while (word && (n = read(in, types + done, stat.st_size - done)) > 0)
		done += n;
	if (word) {
		/* Each begins behind the zero of another one. */
		strncpy(name + 1, word, sizeof(name) - 2);
		found = memmem(types, done, name, strlen(word) + 2);
	}
	if (found)
		memcpy(found + 1, other, strlen(word));
	if (!found != !word || write(out, types, done) != done)
		errx(1, "types without %s", word);
	free(types);
	close(in);
	close(out);
	if (mount(OTHER_TYPES, TYPES, NULL, MS_BIND, NULL))
		err(1, "mount");
}

static void restore_types(void)
{
	if (umount(TYPES) || unlink(OTHER_TYPES))
		err(1, TYPES);
}

/* Without types there is nothing to compare. */
static void check_types(const char *name, const char *module)
{
	unload(name);
	change_types("file_ra_state", "file_ra_stats");
	if (try_to_load(module) != EOPNOTSUPP)
		errx(1, "the module loads where types are others");
	restore_types();
	change_types("address_space", "address_spice");
	if (try_to_load(module) != EOPNOTSUPP)
		errx(1, "the module loads where a structure is missing");
	restore_types();
	change_types(NULL, NULL);
	load(module);
	restore_types();
}

static void unload_in_background(const char *name, const char *file)
{
	unsigned int seed = 1;
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (!child) {
		/* Nobody waits for what it might say. */
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		unload(name);
		_exit(0);
	}
	sleep(1);
	use(file, &seed);
	if (!waitpid(child, NULL, WNOHANG))
		puts("still unloading");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pid_t readers[READERS];
	int i, status;

	if (argc == 2) {
		unload(argv[1]);
		return 0;
	}
	if (argc == 4) {
		unload_in_background(argv[1], argv[3]);
		return 0;
	}
	if (argc != 5)
		errx(2, "usage: module-load NAME [MODULE FILE ROUNDS]");
	for (i = 0; i < READERS; i++)
		readers[i] = start_reader(argv[3], i + 1);
	for (i = 0; i < atoi(argv[4]); i++) {
		usleep(20000 + i % 7 * 1000);
		unload(argv[1]);
		usleep(i % 5 * 1000);
		load(argv[2]);
	}
	for (i = 0; i < READERS; i++) {
		if (waitpid(readers[i], &status, WNOHANG))
			errx(1, "a reader has ended: %#x", status);
		kill(readers[i], SIGKILL);
		waitpid(readers[i], &status, 0);
	}
	check_ftrace(argv[1], argv[2]);
	check_types(argv[1], argv[2]);
	printf("rounds: %d\n", atoi(argv[4]));
	return 0;
}
