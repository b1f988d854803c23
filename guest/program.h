/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that works in the probe's control group: what is counted on either
 * side of its work, and its end.
 */
#ifndef FOLIOLAB_PROGRAM_H
#define FOLIOLAB_PROGRAM_H

#include <sys/wait.h>

#include "reclaim.h"

/* All that is read on either side of what is measured. */
struct state {
	struct counters counters;
	struct reclaim reclaim;
	uint64_t major_faults, minor_faults;
	uint64_t cpu_us;	/* of the group */
};

static inline void read_state(struct state *state, dev_t device)
{
	uint64_t faults;

	read_device(&state->counters, device);
	reclaim_read(&state->reclaim);
	if (!vmstat("pgfault", &faults) ||
	    !vmstat("pgmajfault", &state->major_faults))
		fail(1, "/proc/vmstat has no pgfault or pgmajfault.");
	state->minor_faults = faults - state->major_faults;
	if (!counter(CGROUP "/cpu.stat", "usage_usec", &state->cpu_us))
		fail(1, CGROUP "/cpu.stat has no usage_usec.");
	read_process(&state->counters);
}

/* As members of a JSON object, after another one. */
static inline void print_states(const struct state *before,
				const struct state *after)
{
	const struct counters *from = &before->counters, *to = &after->counters;
	double share;

	printf(", \"read_bytes\": %" PRIu64 ", \"read_requests\": %" PRIu64
	       ", \"pgpgin_bytes\": %" PRIu64,
	       to->device.bytes - from->device.bytes,
	       to->device.requests - from->device.requests,
	       (to->pgpgin_kib - from->pgpgin_kib) * 1024);
	reclaim_print(&before->reclaim, &after->reclaim);
	printf(", \"major_faults\": %" PRIu64 ", \"minor_faults\": %" PRIu64
	       ", \"cpu_seconds\": %.6f, \"peak_memory_bytes\": %" PRIu64,
	       after->major_faults - before->major_faults,
	       after->minor_faults - before->minor_faults,
	       (after->cpu_us - before->cpu_us) / 1e6,
	       cgroup_number("memory.peak"));
	if (young_share(&share))
		printf(", \"young_share\": %.6f", share);
	else
		printf(", \"young_share\": null");
}

/*
 * Wait for as long as the program has not ended, or until it has a file. Looking
 * each millisecond also has the processor change to us and back, which flushes the
 * TLB: an emulator's grows until it holds all that the program has, and while it
 * holds a page x86 does not see that it is used.
 */
static inline void wait_seconds(pid_t pid, double seconds, const char *file)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		siginfo_t info = { .si_pid = 0 };

		if ((file && !access(file, F_OK)) ||
		    waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		    info.si_pid)
			return;
		usleep(1000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec +
		 (now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
}

/* Reap a program; whatever is not its success is our failure. */
static inline void wait_for_end(pid_t pid, const char *name)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail_io(name);
	if (WIFSIGNALED(status))
		fail(1, "%s was ended by signal %d.", name, WTERMSIG(status));
	if (WEXITSTATUS(status))
		fail(1, "%s ended with status %d.", name, WEXITSTATUS(status));
}

#endif /* FOLIOLAB_PROGRAM_H */
