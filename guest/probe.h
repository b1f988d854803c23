/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What probes have in common: complaints, numbers, random ones, empty
 * caches, and counters read around the work.
 *
 * A program defines PROBE, its name, before it includes this.
 */
#ifndef FOLIOLAB_PROBE_H
#define FOLIOLAB_PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <sys/resource.h>
#include <time.h>

#include "counters.h"
#include "random.h"

#define MAX_THREADS	1024

static inline noreturn void __attribute__((format(printf, 2, 3)))
fail(int status, const char *format, ...)
{
	va_list values;

	fprintf(stderr, PROBE ": ");
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fprintf(stderr, "\n");
	exit(status);
}

static inline noreturn void fail_io(const char *what)
{
	fail(1, "%s: %s.", what, strerror(errno));
}

static inline uint64_t parse_number(const char *option, const char *text,
				    uint64_t least)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < least)
		fail(2, "--%s takes a number of at least %" PRIu64 ", not '%s'.",
		     option, least, text);
	return value;
}

/* Put a file out of memory, or with --drop-caches everything. */
static inline void forget_caches(const char *file, bool everything)
{
	static const char knob[] = "/proc/sys/vm/drop_caches";
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd))
		fail_io(file);
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (errno)
		fail_io(file);
	close(fd);
	if (!everything)
		return;
	sync();
	fd = open(knob, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "3", 1) != 1)
		fail(1, "--drop-caches needs root: %s: %s.", knob,
		     strerror(errno));
	close(fd);
}

struct counters {
	bool has_device;
	struct device_reads device;
	uint64_t pgpgin_kib;
	struct rusage usage;
	struct timespec time;
};

/* What the process sees of itself: read next to the work. */
static inline void read_process(struct counters *counters)
{
	getrusage(RUSAGE_SELF, &counters->usage);
	clock_gettime(CLOCK_MONOTONIC, &counters->time);
}

/* What the kernel has read: complete once read-ahead has come in. */
static inline void read_device(struct counters *counters, dev_t device)
{
	device_settle(device);
	counters->has_device = device_reads(device, &counters->device);
	if (!vmstat("pgpgin", &counters->pgpgin_kib))
		fail(1, "/proc/vmstat has no pgpgin.");
}

/* Of all threads: the one numbered "thread" does its share of the work. */
typedef void work_share(uint64_t thread);

static struct {
	pthread_barrier_t start;
	work_share *share;
} measured;

static inline void *measured_thread(void *number)
{
	pthread_barrier_wait(&measured.start);
	measured.share((uintptr_t)number);
	return NULL;
}

/* Have all threads do their shares, with counters read on either side. */
static inline void measure(uint64_t nr_threads, work_share *share, dev_t device,
			   struct counters *before, struct counters *after)
{
	static pthread_t threads[MAX_THREADS];

	measured.share = share;
	pthread_barrier_init(&measured.start, NULL, nr_threads + 1);
	for (uint64_t t = 0; t < nr_threads; t++) {
		errno = pthread_create(&threads[t], NULL, measured_thread,
				       (void *)(uintptr_t)t);
		if (errno)
			fail_io("A thread could not be started");
	}
	read_device(before, device);
	read_process(before);
	pthread_barrier_wait(&measured.start);
	for (uint64_t t = 0; t < nr_threads; t++)
		pthread_join(threads[t], NULL);
	read_process(after);
	read_device(after, device);
}

static inline double seconds_between(const struct counters *before,
				     const struct counters *after)
{
	return after->time.tv_sec - before->time.tv_sec +
	       (after->time.tv_nsec - before->time.tv_nsec) * 1e-9;
}

static inline double cpu_seconds(const struct rusage *usage)
{
	return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec +
	       (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* As a member of a JSON object, after another one; null if it is not known. */
static inline void print_count(const char *name, bool known, uint64_t value)
{
	if (known)
		printf(", \"%s\": %" PRIu64, name, value);
	else
		printf(", \"%s\": null", name);
}

/* The same of what was read meanwhile, and of the process's faults. */
static inline void print_reads(const struct counters *before,
			       const struct counters *after)
{
	bool known = before->has_device && after->has_device;

	print_count("read_bytes", known,
		    after->device.bytes - before->device.bytes);
	print_count("read_requests", known,
		    after->device.requests - before->device.requests);
	print_count("major_faults", true,
		    after->usage.ru_majflt - before->usage.ru_majflt);
	print_count("minor_faults", true,
		    after->usage.ru_minflt - before->usage.ru_minflt);
}

static inline void flush_result(void)
{
	if (fflush(stdout))
		fail_io("The result could not be written");
}

#endif /* FOLIOLAB_PROBE_H */
