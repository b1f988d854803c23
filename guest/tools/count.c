// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a program and count what the processor did for it and for all that it
 * started, in the kernel as well. The program has this one's input and output;
 * the counts go to a file of their own, as one JSON object.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE	"count"
#include "json.h"
#include "options.h"

#define CACHE_MISSES(cache)						\
	(PERF_COUNT_HW_CACHE_##cache |					\
	 PERF_COUNT_HW_CACHE_OP_READ << 8 |				\
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static struct event {
	const char *name;
	uint32_t type;
	uint64_t config;
	int fd;
	int error;		/* why it cannot be counted, or 0 */
} events[] = {
	{ .name = "cpu_instructions", .type = PERF_TYPE_HARDWARE,
	  .config = PERF_COUNT_HW_INSTRUCTIONS },
	{ .name = "cpu_cycles", .type = PERF_TYPE_HARDWARE,
	  .config = PERF_COUNT_HW_CPU_CYCLES },
	{ .name = "dtlb_misses", .type = PERF_TYPE_HW_CACHE,
	  .config = CACHE_MISSES(DTLB) },
	{ .name = "itlb_misses", .type = PERF_TYPE_HW_CACHE,
	  .config = CACHE_MISSES(ITLB) },
	{ .name = "llc_misses", .type = PERF_TYPE_HW_CACHE,
	  .config = CACHE_MISSES(LL) },
	/* The kernel's own: it needs no hardware. */
	{ .name = "page_faults", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_PAGE_FAULTS },
};

#define EVENTS	(sizeof(events) / sizeof(*events))

static const char *file;

static struct probe_option options[] = {
	{ "to", "FILE", "where to write the counts", .text = &file,
	  .needed = true },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--to FILE -- PROGRAM [ARGUMENT]...\n"
"Run PROGRAM, and write to FILE what the processor did for it and for all that\n"
"it started. The status is that of PROGRAM.\n",
	.options = options,
	.notes =
"What cannot be counted is null, and 'reason' says why; on a virtual machine\n"
"without a PMU that is all but page_faults. Misses are those of loads. Where\n"
"events took turns on the processor's counters, counts are extrapolated.\n",
	.command = true,
};

/* Counting starts when the process runs its program. */
static void open_events(pid_t pid)
{
	for (size_t i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = events[i].type,
			.config = events[i].config,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
			.disabled = 1,
			.enable_on_exec = 1,
			.inherit = 1,
		};

		events[i].fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1,
				       PERF_FLAG_FD_CLOEXEC);
		events[i].error = events[i].fd < 0 ? errno : 0;
	}
}

/* False if the event was never on a counter. */
static bool read_event(const struct event *event, uint64_t *count)
{
	struct {
		uint64_t value, enabled, running;
	} got;

	if (event->fd < 0 ||
	    read(event->fd, &got, sizeof(got)) != sizeof(got) || !got.running)
		return false;
	*count = got.enabled == got.running ? got.value :
		 (double)got.value * got.enabled / got.running;
	return true;
}

static void write_counts(void)
{
	const char *reason = NULL;
	FILE *out = fopen(file, "we");

	if (!out)
		fail_io(file);
	fprintf(out, "{");
	for (size_t i = 0; i < EVENTS; i++) {
		uint64_t count;

		fprintf(out, "\"%s\": ", events[i].name);
		if (read_event(&events[i], &count)) {
			fprintf(out, "%" PRIu64 ", ", count);
			continue;
		}
		fprintf(out, "null, ");
		if (!reason)
			reason = events[i].error ? strerror(events[i].error) :
				 "the processor's counters were never free";
	}
	fprintf(out, "\"reason\": ");
	json_put_string(out, reason ? reason : "");
	fprintf(out, "}\n");
	if (fclose(out))
		fail_io(file);
}

/* Run the program once the other end of a pipe is closed. */
static noreturn void run_program(char **argv, int pipe)
{
	char nothing;

	if (read(pipe, &nothing, 1) < 0)
		fail_io("A pipe");
	execvp(argv[0], argv);
	fprintf(stderr, PROBE ": %s: %s.\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126); /* as a shell has it */
}

int main(int argc, char **argv)
{
	char **command = argv + parse_options(argc, argv, &usage);
	int ends[2], status;
	pid_t program;

	if (!*command)
		fail(2, "PROGRAM is missing; see --help.");
	if (pipe2(ends, O_CLOEXEC))
		fail_io("A pipe");
	program = fork();
	if (program < 0)
		fail_io("A process could not be started");
	if (!program) {
		close(ends[1]);
		run_program(command, ends[0]);
	}
	open_events(program);
	close(ends[1]);
	while (waitpid(program, &status, 0) < 0)
		if (errno != EINTR)
			fail_io("wait");
	write_counts();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 1;
}
