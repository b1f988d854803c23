// SPDX-License-Identifier: GPL-2.0-only
/* What tests of readahead for mapped files share. See mmap_readahead_util.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../kselftest.h"
#include "mmap_readahead_util.h"
#include "page_cache_util.h"

#define SWITCH_DIR	"/sys/kernel/debug/mmap_readahead"
#define TRACEFS_DIR	"/sys/kernel/tracing"
#define INSTANCE_DIR	TRACEFS_DIR "/instances/mmap_readahead_selftest"
#define EVENT_DIR	INSTANCE_DIR "/events/mmap_readahead/mmap_readahead_miss"

const char * const switches[NR_SWITCHES] = {
	"hit_needs_address",
	"hit_needs_first_try",
	"hit_needs_unlocked",
	"hit_needs_counted_miss",
	"text_keeps_hits",
	"text_in_folios",
	"text_uncounted",
	"text_in_windows",
	"huge_hint_capped",
};

/* Switches */

static void switch_path(char path[PATH_BYTES], unsigned int nr)
{
	snprintf(path, PATH_BYTES, SWITCH_DIR "/%s", switches[nr]);
}

void guard_switches(void)
{
	char path[PATH_BYTES];
	unsigned int nr;

	if (access(SWITCH_DIR, F_OK))
		ksft_exit_skip("no " SWITCH_DIR " on this kernel\n");
	for (nr = 0; nr < NR_SWITCHES; nr++) {
		if (switch_read(nr) < 0)
			ksft_exit_fail_msg("%s reads neither 0 nor 1\n",
					   switches[nr]);
		switch_path(path, nr);
		guard_setting(path);
	}
	guard_setting(ADAPTIVE_FILE);
}

int switch_write(unsigned int nr, const char *text)
{
	char path[PATH_BYTES];

	switch_path(path, nr);
	return setting_write(path, text);
}

int flag_read(const char *path)
{
	char value[SETTING_BYTES];
	int err = setting_read(path, value);

	if (err)
		return err;
	return !strcmp(value, "0") ? 0 : !strcmp(value, "1") ? 1 : -EPROTO;
}

int switch_read(unsigned int nr)
{
	char path[PATH_BYTES];

	switch_path(path, nr);
	return flag_read(path);
}

int rules_write(unsigned int rules)
{
	unsigned int nr;
	int err = 0;

	for (nr = 0; nr < NR_SWITCHES && !err; nr++)
		err = switch_write(nr, rules & (1 << nr) ? "1" : "0");
	return err;
}

void set_rules(unsigned int rules)
{
	int err = rules_write(rules);

	if (err)
		ksft_exit_fail_msg("no rules %#x: %s\n", rules, strerror(-err));
}

/* Misses */

bool trace_start(int fd)
{
	unsigned long ino;
	struct stat st;
	char text[48];

	if (fstat(fd, &st))
		return false;
	rmdir(INSTANCE_DIR);
	if (mkdir(INSTANCE_DIR, 0700))
		return false;
	ino = st.st_ino;
	/* That of the node; the pages are those of another one, named by the device. */
	if (S_ISBLK(st.st_mode))
		ino = (unsigned long)major(st.st_rdev) << 20 | minor(st.st_rdev);
	snprintf(text, sizeof(text), "ino == %lu", ino);
	return !setting_write(EVENT_DIR "/filter", text) &&
	       !setting_write(EVENT_DIR "/enable", "1");
}

unsigned int trace_stop(struct miss *misses, unsigned int max)
{
	unsigned int nr = 0;
	char line[512];
	FILE *trace;
	char *at;

	setting_write(EVENT_DIR "/enable", "0");
	trace = fopen(INSTANCE_DIR "/trace", "r");
	while (trace && nr < max && fgets(line, sizeof(line), trace)) {
		struct miss *miss = &misses[nr];

		at = strstr(line, "mmap_readahead_miss: ");
		if (at && sscanf(at,
				 "mmap_readahead_miss: dev=%u:%u ino=%*u index=%lu start=%lu size=%u async_size=%u order=%u ra_pages=%u mmap_miss=%u reason=%23s",
				 &miss->major, &miss->minor,
				 &miss->index, &miss->start, &miss->size,
				 &miss->async_size, &miss->order,
				 &miss->ra_pages, &miss->mmap_miss,
				 miss->reason) == 10)
			nr++;
	}
	if (trace)
		fclose(trace);
	rmdir(INSTANCE_DIR);
	return nr;
}

void trace_clean_up(void)
{
	rmdir(INSTANCE_DIR);
}

void print_miss(const struct miss *miss)
{
	ksft_print_msg("dev=%u:%u index=%lu start=%lu size=%u async_size=%u\n",
		       miss->major, miss->minor, miss->index, miss->start,
		       miss->size, miss->async_size);
	ksft_print_msg("order=%u ra_pages=%u mmap_miss=%u reason=%s\n",
		       miss->order, miss->ra_pages, miss->mmap_miss,
		       miss->reason);
}
