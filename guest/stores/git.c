// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver for git; see driver.h. Record K is the K-th of the blobs that are named
 * here when this is compiled: a program that uses git has such names from
 * elsewhere, and reading them must not count. Git checks what it unpacks.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#define OID_DIGITS	40
#define WORDS		16

asm(".pushsection .rodata\n"
    ".globl oids, oids_end\n"
    "oids: .incbin \"oids\"\n"
    "oids_end:\n"
    ".popsection");

extern const char oids[][OID_DIGITS + 1], oids_end[][OID_DIGITS + 1];

static char repository[PATH_ROOM];
static uint64_t at;			/* where the cursor stands */

/* Git, which is asked for one blob after the other. */
static struct {
	pid_t pid;
	FILE *questions, *answers;
} reader;

static void become_git(const char *const *words) __attribute__((noreturn));

static void become_git(const char *const *words)
{
	const char *argv[WORDS] = { "git", "--git-dir", repository,
				    "-c", "pack.threads=1" };
	size_t n = 5;

	while (*words)
		argv[n++] = *words++;
	/* Of a machine there is nothing but the repository to obey. */
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	execvp(argv[0], (char **)argv);
	fail("cannot run git: %s", strerror(errno));
}

static pid_t new_process(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("no process: %s", strerror(errno));
	return pid;
}

static void wait_for_git(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("git %s: %s", what, strerror(errno));
	if (WIFSIGNALED(status))
		fail("git %s was ended by signal %d", what, WTERMSIG(status));
	if (WEXITSTATUS(status))
		fail("git %s ended with status %d", what, WEXITSTATUS(status));
}

/* Run git to its end, without input, and with what it prints left out. */
static void run_git(const char *const *words)
{
	pid_t pid = new_process();

	if (!pid) {
		int nothing = open("/dev/null", O_RDWR);

		if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0)
			fail("/dev/null: %s", strerror(errno));
		become_git(words);
	}
	wait_for_git(pid, words[0]);
}

static void start_reader(void)
{
	const char *const words[] = { "cat-file", "--batch", NULL };
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		fail("no pipe: %s", strerror(errno));
	reader.pid = new_process();
	if (!reader.pid) {
		if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0)
			fail("no pipe: %s", strerror(errno));
		become_git(words);
	}
	close(to[0]);
	close(from[1]);
	reader.questions = fdopen(to[1], "w");
	reader.answers = fdopen(from[0], "r");
	if (!reader.questions || !reader.answers)
		fail("no pipe: %s", strerror(errno));
}

static uint64_t blobs(void)
{
	return oids_end - oids;
}

static void stop_reader(void)
{
	if (!reader.pid)
		return;
	fclose(reader.questions);
	fclose(reader.answers);
	wait_for_git(reader.pid, "cat-file");
	reader.pid = 0;
}

static void store_open(const char *directory, enum mode mode, bool hint)
{
	if (mode == CREATE)
		fail("a repository is made by the lab");
	if (hint)
		fail("git has no switch against readahead");
	snprintf(repository, sizeof(repository), "%s",
		 file_in(directory, "repository"));
}

/* Have git unpack a blob, and take all of it. */
static void read_blob(uint64_t key)
{
	char found[OID_DIGITS + 1], data[4096];
	uint64_t left;

	if (!reader.pid)
		start_reader();
	fprintf(reader.questions, "%s\n", oids[key]);
	if (fflush(reader.questions))
		fail("git cat-file has gone");
	if (fscanf(reader.answers, "%40s blob %" SCNu64, found, &left) != 2 ||
	    strcmp(found, oids[key]))
		fail("blob %s cannot be read", oids[key]);
	if (getc(reader.answers) != '\n')
		fail("blob %s cannot be read", oids[key]);
	while (left) {
		size_t part = left < sizeof(data) ? left : sizeof(data);

		if (fread(data, 1, part, reader.answers) != part)
			fail("blob %s ends too early", oids[key]);
		left -= part;
	}
	if (getc(reader.answers) != '\n')
		fail("blob %s ends too late", oids[key]);
}

static bool store_get(uint64_t key, struct record *found)
{
	if (key >= blobs())
		return false;
	read_blob(key);
	/* A blob has its checks behind it. This stands for it in those to come. */
	*found = make_record(key, 0);
	return true;
}

static bool store_move(enum place place, uint64_t key, struct record *found)
{
	switch (place) {
	case FIRST:
		at = 0;
		break;
	case LAST:
		at = blobs() - 1;
		break;
	case SEEK:
		at = key;
		break;
	case NEXT:
		at = key + 1;
		break;
	case PREVIOUS:
		if (!key)
			return false;
		at = key - 1;
		break;
	}
	return store_get(at, found);
}

/* Deltas are looked for anew, among few neighbours. */
static void store_compact(const char *directory)
{
	char base[PATH_ROOM];
	const char *const words[] = {
		"pack-objects", "--revs", "--all", "--quiet",
		"--no-reuse-delta", "--window=2", base, NULL
	};

	stop_reader();
	snprintf(base, sizeof(base), "%s", file_in(directory, "pack"));
	run_git(words);
}

static void store_copy(const char *directory)
{
	char bundle[PATH_ROOM];
	const char *const words[] = {
		"bundle", "create", "--quiet", bundle, "--all", NULL
	};

	stop_reader();
	snprintf(bundle, sizeof(bundle), "%s", file_in(directory, "bundle"));
	run_git(words);
}

/* Unlike verify-pack, this maps the pack. */
static void store_check(void)
{
	const char *const words[] = {
		"fsck", "--full", "--no-progress", "--no-dangling", NULL
	};

	stop_reader();
	run_git(words);
}

static int is_pack(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return end && !strcmp(end, ".pack");
}

static void store_index(void)
{
	char directory[PATH_ROOM], pack[PATH_ROOM], index[PATH_ROOM];
	const char *const words[] = {
		"index-pack", "--threads=1", "--no-rev-index", "-o", index,
		pack, NULL
	};
	struct dirent **found;

	snprintf(directory, sizeof(directory), "%s",
		 file_in(repository, "objects/pack"));
	if (scandir(directory, &found, is_pack, NULL) != 1)
		fail("%s does not hold one pack", directory);
	snprintf(pack, sizeof(pack), "%s",
		 file_in(directory, found[0]->d_name));
	snprintf(index, sizeof(index), "%s", file_in(repository, "new.idx"));
	free(found[0]);
	free(found);
	stop_reader();
	run_git(words);
}

static void store_put(const struct record *record)
{
	(void)record;
	fail("no operation 'put'");
}

static void store_commit(void)
{
	fail("no operation 'commit'");
}

static void store_close(void)
{
	stop_reader();
}

int main(int argc, char **argv)
{
	/* A git that has gone is an error of our own to tell of. */
	signal(SIGPIPE, SIG_IGN);
	return drive(argc, argv);
}
