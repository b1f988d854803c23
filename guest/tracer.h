/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Run a command and look at each of its processes just before its memory goes
 * away, however short-lived it is.
 */
#ifndef FOLIOLAB_TRACER_H
#define FOLIOLAB_TRACER_H

#include <linux/kcmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "probe.h"

/* Called while the thread, the last one that uses its memory, stands still. */
typedef void on_last_look(pid_t tid, void *context);

/* Called in the child that is about to become the command. */
typedef void prepare_command(void);

/* A thread of the command. */
struct tracee {
	pid_t tid;
	pid_t process;
	bool ending;
};

static struct {
	struct tracee *tracees;
	size_t count, room;
	pid_t command;
	bool has_started;	/* it is no longer a copy of ourselves */
	int status;
} tracer;

static inline pid_t process_of(pid_t tid)
{
	char path[64], line[128];
	pid_t process = tid;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream))
		if (sscanf(line, "Tgid: %d", &process) == 1)
			break;
	if (stream)
		fclose(stream);
	return process;
}

static inline struct tracee *find_tracee(pid_t tid)
{
	for (size_t i = 0; i < tracer.count; i++)
		if (tracer.tracees[i].tid == tid)
			return &tracer.tracees[i];
	return NULL;
}

/* Threads show up by themselves or in the words of who made them. */
static inline struct tracee *know_tracee(pid_t tid)
{
	struct tracee *tracee = find_tracee(tid);

	if (tracee)
		return tracee;
	if (tracer.count == tracer.room) {
		tracer.room = 2 * tracer.room + 64;
		tracer.tracees = realloc(tracer.tracees, tracer.room *
					 sizeof(*tracer.tracees));
		if (!tracer.tracees)
			fail_io("No memory for what the command starts");
	}
	tracee = &tracer.tracees[tracer.count++];
	*tracee = (struct tracee){ tid, process_of(tid), false };
	return tracee;
}

static inline void forget_tracee(pid_t tid)
{
	struct tracee *tracee = find_tracee(tid);

	if (tracee)
		*tracee = tracer.tracees[--tracer.count];
}

static inline bool share_memory(const struct tracee *a, const struct tracee *b)
{
	long order = syscall(SYS_kcmp, a->tid, b->tid, KCMP_VM, 0, 0);

	if (order < 0 && errno != ESRCH)	/* no kcmp here: nearly the same */
		return a->process == b->process;
	return order == 0;
}

/*
 * Whether nobody else has the memory of a thread that ends: no other thread of
 * its process, and not the parent that a child of vfork() borrowed it from.
 */
static inline bool is_last_user(const struct tracee *tracee)
{
	for (size_t i = 0; i < tracer.count; i++) {
		const struct tracee *other = &tracer.tracees[i];

		if (other != tracee && !other->ending &&
		    share_memory(tracee, other))
			return false;
	}
	return true;
}

static inline void trace_event(pid_t tid, int event, on_last_look *look,
			       void *context)
{
	struct tracee *tracee = know_tracee(tid);
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message);
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (message)
			know_tracee(message);
		break;
	case PTRACE_EVENT_EXEC:
		if (tid == tracer.command)
			tracer.has_started = true;
		/* The thread that calls exec() takes over its leader's name. */
		if ((pid_t)message != tid)
			forget_tracee(message);
		know_tracee(tid)->ending = false;
		break;
	case PTRACE_EVENT_EXIT:
		tracee->ending = true;
		if (tracer.has_started && is_last_user(tracee))
			look(tid, context);
		break;
	}
}

/* A thread has stopped: let it go on as if nobody had looked. */
static inline void trace_stop(pid_t tid, int status, on_last_look *look,
			      void *context)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	know_tracee(tid);
	if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
		/* It was stopped by a signal and waits for SIGCONT. */
		ptrace(PTRACE_LISTEN, tid, NULL, NULL);
		return;
	}
	if (event) {
		trace_event(tid, event, look, context);
		signal = 0;
	}
	ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)signal);
}

static inline void trace_end(pid_t tid, int status)
{
	forget_tracee(tid);
	if (tid != tracer.command)
		return;
	tracer.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
					      WEXITSTATUS(status);
	if (tracer.count)
		fprintf(stderr, PROBE ": The command has ended; waiting for what it left running.\n");
}

/* What is to be done when the program ends is for the parent to do. */
static inline void leave_at_once(int status, void *unused)
{
	(void)unused;
	_exit(status);
}

/* In the child: wait to be traced, and become the command. */
static inline void become_command(char **argv, prepare_command *prepare,
				  int gate)
{
	char byte;

	/* Of all that exit() calls, what came last is called first. */
	if (on_exit(leave_at_once, NULL) || read(gate, &byte, 1) != 1)
		_exit(1);
	close(gate);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	dup2(2, 1);
	if (prepare)
		prepare();
	execvp(argv[0], argv);
	fail(errno == ENOENT ? 127 : 126, "%s: %s.", argv[0], strerror(errno));
}

/*
 * Run a command, with what it prints on our standard error, until it and all
 * that it started have ended; "look" at each. Returns its exit status, or 128
 * and the signal that killed it.
 */
static inline int trace_command(char **argv, prepare_command *prepare,
				on_last_look *look, void *context)
{
	const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
			     PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
	int gate[2], status;
	pid_t tid;

	if (pipe(gate))
		fail_io("No pipe");
	/* Ctrl-C is for the command: we tell what it had mapped. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	tracer.command = fork();
	if (!tracer.command) {
		close(gate[1]);
		become_command(argv, prepare, gate[0]);
	}
	close(gate[0]);
	if (tracer.command < 0 ||
	    ptrace(PTRACE_SEIZE, tracer.command, NULL, options) ||
	    write(gate[1], "", 1) != 1)
		fail_io("The command cannot be traced");
	close(gate[1]);
	know_tracee(tracer.command);
	while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		if (tid < 0)
			continue;
		if (WIFSTOPPED(status))
			trace_stop(tid, status, look, context);
		else
			trace_end(tid, status);
	}
	if (!tracer.has_started)
		exit(tracer.status);	/* it has said why */
	return tracer.status;
}

#endif /* FOLIOLAB_TRACER_H */
