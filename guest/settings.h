/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of the kernel that a program changes for a while: files that hold a
 * word. Each is read before it is first written, and put back when the program
 * ends, by itself, by fail() or by a signal that asks it to. Who reads its
 * output no more does not end it; then a write fails.
 */
#ifndef FOLIOLAB_SETTINGS_H
#define FOLIOLAB_SETTINGS_H

#include <signal.h>

#include "probe.h"

#define MAX_SETTINGS	64

static struct {
	char path[MAX_SETTINGS][160];
	char value[MAX_SETTINGS][64];
	size_t count;
	void (*more)(void);	/* what else is to be undone */
} settings;

static inline bool write_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = strlen(word);
	bool written = fd >= 0 && write(fd, word, length) == length;

	if (fd >= 0)
		close(fd);
	return written;
}

/*
 * The value in a file: the word in brackets if it lists all that it takes,
 * else its first word.
 */
static inline bool read_word(const char *path, char *word, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *start;

	if (fd >= 0)
		close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	start = strchr(text, '[');
	start = start ? start + 1 : text;
	start[strcspn(start, "] \t\n")] = '\0';
	snprintf(word, size, "%.*s", (int)size - 1, start);
	return true;
}

/* All that this calls may be called from a signal's handler. */
static inline void settings_restore(void)
{
	while (settings.count) {
		settings.count--;
		write_word(settings.path[settings.count],
			   settings.value[settings.count]);
	}
	if (settings.more)
		settings.more();
}

static inline void on_ending_signal(int number)
{
	settings_restore();
	signal(number, SIG_DFL);
	raise(number);
}

/* To be called once, before any setting is changed. */
static inline void settings_init(void (*more)(void))
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

	settings.more = more;
	atexit(settings_restore);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction now;

		/* What is ignored, as nohup has it, stays so. */
		if (!sigaction(signals[i], NULL, &now) &&
		    now.sa_handler != SIG_IGN)
			signal(signals[i], on_ending_signal);
	}
}

/* Change a setting until the program ends. False, with errno, if that fails. */
static inline bool setting(const char *path, const char *word)
{
	size_t known = 0;

	while (known < settings.count && strcmp(settings.path[known], path))
		known++;
	if (known == settings.count) {
		if (known == MAX_SETTINGS)
			fail(1, "Too many settings to change.");
		if (!read_word(path, settings.value[known],
			       sizeof(settings.value[known])))
			return false;
		snprintf(settings.path[known], sizeof(settings.path[known]),
			 "%s", path);
		settings.count++;
	}
	return write_word(path, word);
}

/* Of a disk; what counts for a file is how it is when that is opened. */
static inline void set_read_ahead(dev_t device, uint64_t kib)
{
	char path[80], word[24];

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/read_ahead_kb",
		 major(device), minor(device));
	snprintf(word, sizeof(word), "%" PRIu64, kib);
	if (!setting(path, word))
		fail_io(path);
}

#endif /* FOLIOLAB_SETTINGS_H */
