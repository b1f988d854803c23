/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counting the kernel's events through tracefs: tracepoints, and calls of
 * functions by kprobes.
 *
 * A histogram in the kernel counts those of this process alone; nothing is
 * written to the trace buffer. Whoever wants to use this has to be root.
 */
#ifndef FOLIOLAB_EVENTS_H
#define FOLIOLAB_EVENTS_H

#include "probe.h"

#define EVENT_GROUP	"foliolab"
#define EVENT_NAME	160
#define EVENT_PATH	200

struct event {
	char directory[EVENT_NAME];	/* empty: there is no such event */
	char trigger[EVENT_NAME];	/* empty: it is not counted */
};

/* Where tracefs is mounted, or NULL. */
static inline const char *tracefs(void)
{
	static const char *const places[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[80];

		snprintf(path, sizeof(path), "%s/events", places[i]);
		if (!access(path, R_OK | X_OK))
			return places[i];
	}
	return NULL;
}

static inline bool event_write(const char *directory, const char *name,
			       const char *text)
{
	char path[EVENT_PATH];
	ssize_t length = strlen(text);
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%.*s/%s", EVENT_NAME, directory, name);
	/* Files of tracefs that hold a list lose all of it when truncated. */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, text, length) == length;
	close(fd);
	return written;
}

/* A tracepoint such as "mprotect/mprotect_batch". */
static inline struct event event_of(const char *name)
{
	struct event event = { .directory = "" };
	const char *place = tracefs();

	if (place)
		snprintf(event.directory, sizeof(event.directory),
			 "%s/events/%s", place, name);
	if (access(event.directory, X_OK))
		event.directory[0] = '\0';
	return event;
}

/* The symbol of a function, which the compiler may have given a suffix. */
static inline bool find_function(const char *function, char *symbol,
				 size_t size)
{
	FILE *stream = fopen("/proc/kallsyms", "re");
	size_t length = strlen(function);
	bool found = false;
	char name[200] = "";

	while (stream && !found &&
	       fscanf(stream, "%*s %*s %199s%*[^\n]", name) == 1)
		found = !strncmp(name, function, length) &&
			(!name[length] || name[length] == '.');
	if (stream)
		fclose(stream);
	snprintf(symbol, size, "%s", name);
	return found;
}

/*
 * The calls of a kernel function, as an event that exists until
 * event_remove(). Without that function, or without kprobes, there is none.
 */
static inline struct event event_of_calls(const char *name,
					  const char *function)
{
	struct event none = { .directory = "" };
	const char *place = tracefs();
	char symbol[200], text[320];

	if (!place || !find_function(function, symbol, sizeof(symbol)))
		return none;
	snprintf(text, sizeof(text), "p:" EVENT_GROUP "/%s %s\n", name, symbol);
	if (!event_write(place, "kprobe_events", text))
		return none;
	snprintf(text, sizeof(text), EVENT_GROUP "/%s", name);
	return event_of(text);
}

static inline void event_remove(const char *name)
{
	const char *place = tracefs();
	char text[80];

	snprintf(text, sizeof(text), "-:" EVENT_GROUP "/%s\n", name);
	if (place)
		event_write(place, "kprobe_events", text);
}

/* Begin to count by the values of a field. False if that cannot be had. */
static inline bool event_count(struct event *event, const char *field)
{
	snprintf(event->trigger, sizeof(event->trigger),
		 "hist:keys=%s:size=8192 if common_pid == %d", field, getpid());
	if (event->directory[0] &&
	    event_write(event->directory, "trigger", event->trigger))
		return true;
	event->trigger[0] = '\0';
	return false;
}

/* What was counted since: events, and the sum of the field over them. */
struct event_sums {
	uint64_t events;
	uint64_t sum;
};

static inline struct event_sums event_sums(const struct event *event)
{
	struct event_sums sums = { 0 };
	char path[EVENT_PATH], line[256];
	FILE *stream;

	snprintf(path, sizeof(path), "%.*s/hist", EVENT_NAME, event->directory);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream)) {
		uint64_t key, hits;

		/* A row is "{ nr:  16 } hitcount:  8192". */
		if (sscanf(line, "{ %*[^:]: %" SCNu64 " } hitcount: %" SCNu64,
			   &key, &hits) != 2)
			continue;
		sums.events += hits;
		sums.sum += key * hits;
	}
	if (stream)
		fclose(stream);
	return sums;
}

static inline void event_stop(struct event *event)
{
	char text[EVENT_PATH];

	if (!event->trigger[0])
		return;
	snprintf(text, sizeof(text), "!%s", event->trigger);
	event_write(event->directory, "trigger", text);
	event->trigger[0] = '\0';
}

#endif /* FOLIOLAB_EVENTS_H */
