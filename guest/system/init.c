// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first process of a guest, or of a machine. It mounts what programs
 * expect, and runs jobs, one at a time. A guest's come in by the control port to
 * its host. A machine's stand in a file, where the environment has foliolab_job,
 * as the kernel's command line sets it: see alone.h.
 *
 * Both ways a line is one JSON object. The host asks
 *   {"id": 3, "argv": ["sparse-mmap", "--file", "/data/file"], "env": {...}}
 * where "env" is optional and an argv[0] with a leading colon is one of the
 * verbs at the end of this file. The guest answers
 *   {"event": "ready", ...}	once, when it takes jobs
 *   {"event": "output", "id": 3, "fd": 1, "data": "<base64>"}	as it comes
 *   {"event": "exit", "id": 3, "status": 0, "signal": 0, "oom_kills": 0,
 *    "cpu_us": 1200}
 *   {"event": "error", "message": "..."}	for a line that is no job
 * The host's end of the port going away powers the machine off, at any moment:
 * no guest is to outlive the program that started it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdnoreturn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE	"init"

#include "alone.h"
#include "json.h"
#include "stub.h"
#include "switch.h"

#define PORT_NAME	"org.foliolab.control"
#define PORT_WAIT_MS	30000
#define MAX_WORDS	4096
#define OUTPUT_CHUNK	3000
#define LACKING		77	/* exit status: the kernel does not have it */

struct job {
	long id;
	long step;	/* a job that fails ends its step, and in step 0 all */
	long deadline;	/* in seconds; 0 is none */
	char *argv[MAX_WORDS + 1];
	/* Names and values in turn, ended by NULL. */
	char *env[2 * MAX_WORDS + 1];
};

static int control;	/* or the file of answers */
static int child_exits;

/* The console belongs to the kernel, so init speaks through its log. */
static void say(const char *format, ...)
{
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	va_list values;
	char line[512];

	va_start(values, format);
	vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (log >= 0) {
		dprintf(log, "foliolab init: %s\n", line);
		close(log);
	}
}

/* The kernel panics when its init ends, and the host reads the log. */
static noreturn void die(const char *what)
{
	say("%s: %s", what, strerror(errno));
	exit(1);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *directory;
	} mounts[] = {
		{ "devtmpfs", "/dev" },
		{ "devpts", "/dev/pts" },
		{ "tmpfs", "/dev/shm" },
		{ "tmpfs", "/tmp" },
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "tracefs", "/sys/kernel/tracing" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "cgroup2", "/sys/fs/cgroup" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].directory, 0755);
		if (mount(mounts[i].type, mounts[i].directory, mounts[i].type,
			  0, NULL))
			say("no %s: %s", mounts[i].type, strerror(errno));
	}
}

/* Of a kernel that has not all built in: in the order of their names. */
static void load_modules(void)
{
	struct dirent **modules;
	int count = scandir("/modules", &modules, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		char path[300];
		int fd;

		if (modules[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/modules/%s", modules[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			say("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		say("no loopback: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* The name of the control port below /dev, if the host has one by now. */
static bool find_port(char *path, size_t size)
{
	DIR *ports = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	bool found = false;

	if (!ports)
		return false;
	while (!found && (entry = readdir(ports))) {
		char attribute[300], name[64] = "";
		FILE *stream;

		snprintf(attribute, sizeof(attribute),
			 "/sys/class/virtio-ports/%s/name", entry->d_name);
		stream = fopen(attribute, "re");
		if (!stream)
			continue;
		found = fscanf(stream, "%63s", name) == 1 &&
			!strcmp(name, PORT_NAME);
		fclose(stream);
		snprintf(path, size, "/dev/%s", entry->d_name);
	}
	closedir(ports);
	return found;
}

static bool host_gone(void)
{
	struct pollfd port = { .fd = control };

	return poll(&port, 1, 0) == 1 && port.revents & POLLHUP;
}

static void wait_a_moment(int *waited_ms, const char *what)
{
	if ((*waited_ms)++ == PORT_WAIT_MS) {
		errno = ETIMEDOUT;
		die(what);
	}
	usleep(1000);
}

static void open_control(void)
{
	int waited_ms = 0;
	char path[300];

	/*
	 * The driver learns about ports, and then about the host's end of
	 * them, by messages that come in after it is up.
	 */
	while (!find_port(path, sizeof(path)))
		wait_a_moment(&waited_ms, "no virtio port " PORT_NAME);
	control = open(path, O_RDWR | O_CLOEXEC);
	if (control < 0)
		die(path);
	while (host_gone())
		wait_a_moment(&waited_ms, "nobody at " PORT_NAME);
}

static noreturn void power_off(void)
{
	char device[256], directory[256];
	FILE *mounts = fopen("/proc/mounts", "re");

	if (alone.directory)
		alone_watchdog(REBOOT_SECONDS);
	sync();
	while (mounts && fscanf(mounts, "%255s %255s %*[^\n]",
				device, directory) == 2)
		if (!strncmp(directory, "/data", 5))
			umount(directory);
	if (alone.directory)
		alone_settle();
	/* QEMU runs with -no-reboot, and powering off would take ACPI. */
	reboot(RB_AUTOBOOT);
	die("power off");
}

static void send_line(const char *format, ...)
{
	char line[2 * OUTPUT_CHUNK];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	for (int sent = 0; sent < length;) {
		ssize_t n;

		/* Without a host, writing would wait for ever. */
		if (host_gone())
			power_off();
		n = write(control, line + sent, length - sent);
		if (n < 0 && errno != EINTR)
			die("control port");
		if (n > 0)
			sent += n;
	}
}

static void send_ready(void)
{
	struct utsname name;
	struct sysinfo info;

	uname(&name);
	sysinfo(&info);
	send_line("{\"event\": \"ready\", \"release\": \"%s\", \"page_size\": %ld, "
		  "\"cpus\": %ld, \"memory_kib\": %lu}\n",
		  name.release, sysconf(_SC_PAGESIZE),
		  sysconf(_SC_NPROCESSORS_ONLN),
		  info.totalram / 1024 * info.mem_unit);
}

static void send_output(long id, int fd, const unsigned char *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[OUTPUT_CHUNK / 3 * 4 + 5], *out = text;

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned int bits = data[i] << 16 |
				    (left > 1 ? data[i + 1] : 0) << 8 |
				    (left > 2 ? data[i + 2] : 0);

		*out++ = digits[bits >> 18];
		*out++ = digits[bits >> 12 & 63];
		*out++ = left > 1 ? digits[bits >> 6 & 63] : '=';
		*out++ = left > 2 ? digits[bits & 63] : '=';
	}
	*out = '\0';
	send_line("{\"event\": \"output\", \"id\": %ld, \"fd\": %d, \"data\": \"%s\"}\n",
		  id, fd, text);
}

static bool parse_words(char **at, char **words)
{
	size_t count = 0;

	if (!json_take(at, '['))
		return false;
	do {
		if (count == MAX_WORDS)
			return false;
		words[count] = json_string(at);
		if (!words[count++])
			return false;
	} while (json_take(at, ','));
	words[count] = NULL;
	return json_take(at, ']');
}

static bool parse_environment(char **at, char **env)
{
	size_t count = 0;

	if (!json_take(at, '{'))
		return false;
	if (json_take(at, '}'))
		return true;
	do {
		if (count == 2 * MAX_WORDS)
			return false;
		env[count] = json_string(at);
		if (!env[count] || !json_take(at, ':'))
			return false;
		env[count + 1] = json_string(at);
		if (!env[count + 1])
			return false;
		count += 2;
	} while (json_take(at, ','));
	env[count] = NULL;
	return json_take(at, '}');
}

static bool parse_job(char *line, struct job *job)
{
	bool has_id = false;
	char *at = line;

	job->step = 0;
	job->deadline = 0;
	job->argv[0] = NULL;
	job->env[0] = NULL;
	if (!json_take(&at, '{'))
		return false;
	do {
		char *key = json_string(&at);
		bool ok = false;

		if (!key || !json_take(&at, ':'))
			return false;
		if (!strcmp(key, "id"))
			ok = has_id = json_integer(&at, &job->id);
		else if (!strcmp(key, "step"))
			ok = json_integer(&at, &job->step);
		else if (!strcmp(key, "deadline"))
			ok = json_integer(&at, &job->deadline);
		else if (!strcmp(key, "argv"))
			ok = parse_words(&at, job->argv);
		else if (!strcmp(key, "env"))
			ok = parse_environment(&at, job->env);
		if (!ok)
			return false;
	} while (json_take(&at, ','));
	return json_take(&at, '}') && json_take(&at, '\0') && has_id && job->argv[0];
}

static int run_verb(char **argv);

static noreturn void child_main(struct job *job, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	close(null);
	for (char **pair = job->env; *pair; pair += 2)
		setenv(pair[0], pair[1], 1);
	if (job->argv[0][0] == ':')
		exit(run_verb(job->argv));
	execvp(job->argv[0], job->argv);
	fprintf(stderr, "%s: cannot be run: %s\n", job->argv[0],
		strerror(errno));
	exit(errno == ENOENT ? 127 : 126);
}

/* Pass on what is in a pipe. False at its end, or if it is empty now. */
static bool forward(long id, int fd, int pipe)
{
	unsigned char data[OUTPUT_CHUNK];
	ssize_t n = read(pipe, data, sizeof(data));

	if (n > 0)
		send_output(id, fd, data, n);
	return n > 0;
}

/* How a job's own process ended. */
struct ending {
	int status;		/* as wait() has it */
	struct rusage usage;
};

/* Reap everything that has ended; true if the job's own process was among it. */
static bool reap(pid_t job, struct ending *ending)
{
	struct ending any;
	bool ended = false;
	pid_t pid;

	while ((pid = wait4(-1, &any.status, WNOHANG, &any.usage)) > 0) {
		if (pid == job) {
			*ending = any;
			ended = true;
		}
	}
	return ended;
}

/* A machine alone ends by itself what takes too long, with what it knows of it. */
static noreturn void give_up(const struct job *job)
{
	send_line("{\"event\": \"deadline\", \"id\": %ld}\n", job->id);
	write_word("/proc/sysrq-trigger", "l");
	write_word("/proc/sysrq-trigger", "w");
	sleep(1);
	alone_tick();
	power_off();
}

/* Forward a job's output until its process ends. */
static struct ending attend(const struct job *job, pid_t pid, int out, int err)
{
	time_t until = time(NULL) + job->deadline;
	struct pollfd wait[] = {
		{ .fd = child_exits, .events = POLLIN },
		{ .fd = out, .events = POLLIN },
		{ .fd = err, .events = POLLIN },
		{ .fd = control },
	};
	struct signalfd_siginfo info;
	struct ending ending;

	for (;;) {
		if (poll(wait, 4, alone.directory ? 1000 : -1) < 0)
			die("poll");
		if (alone.directory) {
			alone_tick();
			if (job->deadline && time(NULL) > until)
				give_up(job);
		}
		if (wait[3].revents & POLLHUP)
			power_off();
		for (int fd = 1; fd <= 2; fd++)
			if (wait[fd].revents && !forward(job->id, fd, wait[fd].fd))
				wait[fd].fd = -1;
		if (wait[0].revents &&
		    read(child_exits, &info, sizeof(info)) > 0 &&
		    reap(pid, &ending))
			return ending;
	}
}

static uint64_t microseconds(const struct timeval *time)
{
	return time->tv_sec * UINT64_C(1000000) + time->tv_usec;
}

/* True if it succeeds. */
static bool run_job(struct job *job)
{
	uint64_t kills_before = 0, kills_after = 0;
	struct ending ending;
	int out[2], err[2];
	pid_t pid;

	vmstat("oom_kill", &kills_before);
	/* Only the reading ends may be non-blocking: programs get the others. */
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipe");
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		child_main(job, out[1], err[1]);
	close(out[1]);
	close(err[1]);

	ending = attend(job, pid, out[0], err[0]);

	/* Whoever is left, in whatever session, would disturb the next job. */
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	while (forward(job->id, 1, out[0]))
		;
	while (forward(job->id, 2, err[0]))
		;
	close(out[0]);
	close(err[0]);

	vmstat("oom_kill", &kills_after);
	send_line("{\"event\": \"exit\", \"id\": %ld, \"status\": %d, "
		  "\"signal\": %d, \"oom_kills\": %" PRIu64
		  ", \"cpu_us\": %" PRIu64 "}\n",
		  job->id,
		  WIFEXITED(ending.status) ? WEXITSTATUS(ending.status) : 0,
		  WIFSIGNALED(ending.status) ? WTERMSIG(ending.status) : 0,
		  kills_after - kills_before,
		  microseconds(&ending.usage.ru_utime) +
		  microseconds(&ending.usage.ru_stime));
	return !ending.status;
}

/* The verbs: each gets its arguments, and returns 0 or sets errno. */

static int verb_write(char **argv)
{
	int fd = open(argv[0], O_WRONLY | O_TRUNC);
	size_t length = strlen(argv[1]);

	return fd < 0 || write(fd, argv[1], length) != (ssize_t)length;
}

static int verb_read(char **argv)
{
	int fd = open(argv[0], O_RDONLY);
	char data[4096];
	ssize_t n;

	if (fd < 0)
		return 1;
	while ((n = read(fd, data, sizeof(data))) > 0)
		if (write(1, data, n) != n)
			return 1;
	return n < 0;
}

static int verb_list(char **argv)
{
	DIR *directory = opendir(argv[0]);
	struct dirent *entry;

	if (!directory)
		return 1;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			puts(entry->d_name);
	closedir(directory);
	return fflush(stdout);
}

static int verb_switch(char **argv)
{
	bool failed;
	const char *lacking = switch_to(argv, &failed);

	if (!lacking)
		return failed;
	fprintf(stderr, "The kernel has no switch %s.\n", lacking);
	exit(LACKING);
}

static int verb_mount(char **argv)
{
	const char *device = argv[0], *directory = argv[1], *type = argv[2];
	char data[256] = "", none[] = "";
	unsigned long flags = 0;

	for (char *option = strtok(argv[3] ? argv[3] : none, ","); option;
	     option = strtok(NULL, ",")) {
		size_t used = strlen(data);

		if (!strcmp(option, "ro"))
			flags |= MS_RDONLY;
		else if (!strcmp(option, "noatime"))
			flags |= MS_NOATIME;
		else
			snprintf(data + used, sizeof(data) - used, "%s%s",
				 used ? "," : "", option);
	}
	if (mkdir(directory, 0755) && errno != EEXIST)
		return 1;
	return mount(device, directory, type, flags, data);
}

static int verb_umount(char **argv)
{
	return umount(argv[0]);
}

/*
 * Preallocated extents read as holes until they have been written, and a
 * buffered write would leave the page cache to decide when that happens.
 */
static int verb_fill(char **argv)
{
	const size_t chunk = 4 << 20;
	off_t size = strtoll(argv[1], NULL, 10);
	int fd = open(argv[0], O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT, 0644);
	char *content = mmap(NULL, chunk, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (fd < 0 || content == MAP_FAILED || fallocate(fd, 0, 0, size))
		return 1;
	if (argv[2] && !strcmp(argv[2], "stubs"))
		for (size_t at = 0; at < chunk; at += STUB_BYTES)
			memcpy(content + at, stub, STUB_BYTES);
	for (off_t at = 0; at < size;) {
		size_t left = size - at;
		ssize_t n = pwrite(fd, content, left < chunk ? left : chunk, at);

		if (n <= 0)
			return 1;
		at += n;
	}
	return fsync(fd);
}

static int verb_poweroff(char **argv)
{
	(void)argv;
	power_off();
}

static int run_verb(char **argv)
{
	static const struct {
		const char *name;
		int least, most;
		int (*run)(char **argv);
	} verbs[] = {
		{ ":write", 2, 2, verb_write },
		{ ":read", 1, 1, verb_read },
		{ ":list", 1, 1, verb_list },
		{ ":switch", 0, MAX_WORDS, verb_switch },
		{ ":mount", 3, 4, verb_mount },
		{ ":umount", 1, 1, verb_umount },
		{ ":fill", 2, 3, verb_fill },
		{ ":poweroff", 0, 0, verb_poweroff },
	};
	int count = 0;

	while (argv[count + 1])
		count++;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(verbs[i].name, argv[0]))
			continue;
		if (count < verbs[i].least || count > verbs[i].most) {
			fprintf(stderr, "%s: wrong number of arguments\n",
				argv[0]);
			return 1;
		}
		if (!verbs[i].run(argv + 1))
			return 0;
		fprintf(stderr, "%s %s: %s\n", argv[0], count ? argv[1] : "",
			strerror(errno));
		return 1;
	}
	fprintf(stderr, "%s: no such verb\n", argv[0]);
	return 1;
}

/* Run what the file of requests has. */
static noreturn void run_alone(FILE *requests)
{
	static struct job job;
	char *line = NULL;
	size_t room = 0;
	long ended = -1;	/* the step that a failure has ended */

	while (ended && getline(&line, &room, requests) > 0) {
		alone_tick();
		if (!parse_job(line, &job))
			send_line("{\"event\": \"error\", \"message\": \"not a job\"}\n");
		else if (job.step != ended) {
			send_line("{\"event\": \"start\", \"id\": %ld, "
				  "\"step\": %ld}\n", job.id, job.step);
			say("job %ld", job.id);
			if (!run_job(&job))
				ended = job.step;
		}
	}
	alone_tick();
	send_line("{\"event\": \"end\"}\n");
	power_off();
}

int main(void)
{
	static struct job job;
	char *line = NULL;
	size_t room = 0;
	FILE *requests;
	sigset_t set;

	if (getpid() != 1) {
		fprintf(stderr, "init: runs as the first process of a foliolab guest only\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child_exits = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child_exits < 0)
		die("signalfd");
	umask(022);
	if (chdir("/"))
		die("chdir");
	setenv("PATH", "/bin:/usr/bin:/sbin:/usr/sbin", 1);
	setenv("HOME", "/", 1);
	mount_all();
	alone.directory = getenv("foliolab_job");
	/* /modules of a machine is none of ours. */
	if (!alone.directory)
		load_modules();
	loopback_up();
	if (alone.directory) {
		requests = alone_begin(&control);
		if (!requests)
			die(alone.directory);
		send_ready();
		run_alone(requests);
	}
	open_control();
	requests = fdopen(control, "r");
	if (!requests)
		die("fdopen");
	send_ready();
	while (getline(&line, &room, requests) > 0) {
		if (parse_job(line, &job))
			run_job(&job);
		else
			send_line("{\"event\": \"error\", \"message\": \"not a job\"}\n");
	}
	power_off();
}
