// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a command and write down which pages of files it touches through mappings,
 * in order. The kernel makes every touch a fault, but for the last few pages;
 * see page_touch.rst in its admin guide.
 *
 * The output is a line of JSON, and after it for each touch two numbers of 32
 * bits in the machine's order: the index of the file in that line, and the page.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PROBE	"touches"
#include "events.h"
#include "json.h"
#include "options.h"
#include "settings.h"

#define KNOBS		"/sys/kernel/debug/page_touch/"
#define INSTANCE	"foliolab-touches"
#define BUFFER_KIB	"8192"	/* for each CPU */
#define LEAST_WINDOW	16
#define MOST_WINDOW	512
#define MAX_CPUS	64
#define WAIT_MS		100	/* before looking whether the command has ended */
#define NO_FILE		UINT32_MAX

static struct env {
	const char *files, *out;
	uint64_t window, most;
	char **command;
} env = {
	.files = "/data",
	.window = LEAST_WINDOW,
	.most = 4000000,
};

struct file {
	uint64_t ino;
	uint32_t generation;
	uint64_t pages;
	char *name;		/* NULL: it is not there any more */
};

struct touch {
	uint32_t file, page;
};

static struct {
	dev_t device;
	char instance[EVENT_NAME];
	struct pollfd buffers[MAX_CPUS];	/* the trace of each CPU */
	int nr_buffers;
	struct file *files;
	size_t nr_files;
	struct touch *touches;	/* by number; those of NO_FILE are lost */
	uint64_t seen, end;	/* numbers so far, and the one after the last */
	long page_size;
} record;

/* Where the fields of an event are, from its start. */
static struct {
	unsigned int id, seq, ino, generation, index;
} layout;

static struct probe_option options[] = {
	{ "files", "DIRECTORY",
	  "where the file system with these files is mounted",
	  .text = &env.files },
	{ "window", "PAGES",
	  "a touch may be missing if fewer other pages than that were touched "
	  "since the last one of its page; at least 16",
	  .number = &env.window, .least = LEAST_WINDOW, .most = MOST_WINDOW },
	{ "most", "N", "write so many touches, and only count the rest",
	  .number = &env.most, .least = 1 },
	{ "out", "PATH", "where to write; not on that file system",
	  .text = &env.out, .needed = true },
	{ 0 }
};

static const struct usage usage = {
	.about =
"--out PATH [OPTION]... -- COMMAND...\n"
"Run COMMAND and write to PATH which pages of files are touched meanwhile through\n"
"mappings, by whatever process, in order.\n",
	.options = options,
	.notes =
"The exit status is that of COMMAND. Needs root, and our kernel.\n"
"\n"
"Example:\n"
"  touches --out /tmp/touches -- sparse-mmap --file /data/file\n",
	.command = true,
};

static void parse_arguments(int argc, char **argv)
{
	env.command = argv + parse_options(argc, argv, &usage);
	if (!*env.command)
		fail(2, "COMMAND is missing; see --help.");
}

/* In our own instance of the kernel's trace. */
static void write_instance(const char *name, const char *text)
{
	char path[EVENT_PATH];

	snprintf(path, sizeof(path), "%s/%s", record.instance, name);
	if (!write_word(path, text))
		fail_io(path);
}

static void stop_recording(void)
{
	for (int i = 0; i < record.nr_buffers; i++)
		close(record.buffers[i].fd);
	rmdir(record.instance);
}

static unsigned int field_offset(const char *format, const char *name)
{
	char declared[40];
	const char *field;
	unsigned int offset;

	snprintf(declared, sizeof(declared), " %s;\toffset:", name);
	field = strstr(format, declared);
	if (!field || sscanf(field + strlen(declared), "%u", &offset) != 1)
		fail(1, "The kernel's event has no %s.", name);
	return offset;
}

static void read_layout(void)
{
	char path[EVENT_PATH], format[4096];
	const char *id;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/events/page_touch/page_touch/format",
		 record.instance);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, format, sizeof(format) - 1);
	if (length < 0)
		fail_io(path);
	close(fd);
	format[length] = '\0';
	id = strstr(format, "ID: ");
	if (!id || sscanf(id, "ID: %u", &layout.id) != 1)
		fail(1, "%s has no ID.", path);
	layout.seq = field_offset(format, "seq");
	layout.ino = field_offset(format, "ino");
	layout.generation = field_offset(format, "generation");
	layout.index = field_offset(format, "index");
}

static void open_buffers(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (cpus > MAX_CPUS)
		fail(1, "There are more than %d CPUs.", MAX_CPUS);
	while (record.nr_buffers < cpus) {
		struct pollfd *buffer = &record.buffers[record.nr_buffers];
		char path[EVENT_PATH];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw",
			 record.instance, record.nr_buffers);
		buffer->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		buffer->events = POLLIN;
		if (buffer->fd < 0)
			fail_io(path);
		record.nr_buffers++;
	}
}

static void prepare(void)
{
	const char *place = tracefs();
	char number[24];
	struct stat stat_files, stat_out;
	int out;

	if (access(KNOBS "window", W_OK) || !place)
		fail(1, "This needs root, and a kernel with CONFIG_PAGE_TOUCH.");
	out = open(env.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out < 0 || fstat(out, &stat_out))
		fail_io(env.out);
	/* It appears when it is whole. */
	close(out);
	unlink(env.out);
	if (stat(env.files, &stat_files))
		fail_io(env.files);
	record.device = stat_files.st_dev;
	if (stat_out.st_dev == record.device)
		fail(2, "--out must not be on the file system of --files.");
	record.page_size = sysconf(_SC_PAGESIZE);
	record.touches = calloc(env.most, sizeof(*record.touches));
	if (!record.touches)
		fail(1, "No memory for %" PRIu64 " touches.", env.most);

	snprintf(record.instance, sizeof(record.instance), "%s/instances/"
		 INSTANCE, place);
	settings_init(stop_recording);
	/* It is there if we were killed. */
	rmdir(record.instance);
	if (mkdir(record.instance, 0700))
		fail_io(record.instance);
	read_layout();
	write_instance("buffer_size_kb", BUFFER_KIB);
	write_instance("events/page_touch/page_touch/enable", "1");
	open_buffers();
	snprintf(number, sizeof(number), "%llu",
		 (unsigned long long)record.device);
	if (!setting(KNOBS "device", number))
		fail_io(KNOBS "device");
	/*
	 * The kernel drops the page that was mapped first, whether or not it is
	 * still in use. Between two touches of a page it keeps, fewer than twice
	 * as many others can have been touched.
	 */
	snprintf(number, sizeof(number), "%" PRIu64, env.window / 2);
	if (!setting(KNOBS "window", number))
		fail_io(KNOBS "window");
}

static uint32_t find_file(uint64_t ino, uint32_t generation)
{
	static size_t last;
	struct file *grown;

	if (last < record.nr_files && record.files[last].ino == ino &&
	    record.files[last].generation == generation)
		return last;
	for (last = 0; last < record.nr_files; last++)
		if (record.files[last].ino == ino &&
		    record.files[last].generation == generation)
			return last;
	grown = realloc(record.files, (last + 1) * sizeof(*grown));
	if (!grown)
		fail(1, "No memory for the files.");
	record.files = grown;
	record.files[last] = (struct file){ .ino = ino,
					    .generation = generation };
	record.nr_files++;
	return last;
}

static void take_event(const unsigned char *event)
{
	uint64_t seq, ino, index;
	uint32_t generation;
	unsigned short id;

	memcpy(&id, event, sizeof(id));
	if (id != layout.id)
		return;
	memcpy(&seq, event + layout.seq, sizeof(seq));
	memcpy(&ino, event + layout.ino, sizeof(ino));
	memcpy(&index, event + layout.index, sizeof(index));
	memcpy(&generation, event + layout.generation, sizeof(generation));
	if (seq >= record.end)
		record.end = seq + 1;
	if (seq >= env.most)
		return;
	while (record.seen <= seq)
		record.touches[record.seen++].file = NO_FILE;
	record.touches[seq].file = find_file(ino, generation);
	record.touches[seq].page = index;
	if (record.files[record.touches[seq].file].pages <= index)
		record.files[record.touches[seq].file].pages = index + 1;
}

/*
 * A page of the kernel's ring buffer: a time of 8 bytes, how many bytes follow
 * (above that flags), and events. Their type, in 5 bits, is their length in 4
 * bytes, but for 0: then the length in bytes is the next number, itself included.
 * 29 is padding, 30 and 31 are times.
 */
static void take_page(const unsigned char *page)
{
	const size_t header = 8 + sizeof(long);
	unsigned long commit;
	size_t at = header, end;

	memcpy(&commit, page + 8, sizeof(commit));
	end = header + (commit & 0xfffff);
	while (at + 4 <= end) {
		uint32_t word, length;

		memcpy(&word, page + at, sizeof(word));
		at += 4;
		memcpy(&length, page + at, sizeof(length));
		switch (word & 31) {
		case 0:
			take_event(page + at + 4);
			at += (length + 3) & ~3;
			break;
		case 29:
			if (!(word >> 5))
				return;
			at += length;
			break;
		case 30:
		case 31:
			at += 4;
			break;
		default:
			take_event(page + at);
			at += (word & 31) * 4;
		}
	}
}

/* All that is in the buffers. */
static void drain(void)
{
	static unsigned char *page;

	if (!page)
		page = malloc(record.page_size + 8);
	if (!page)
		fail(1, "No memory for a page.");
	for (int i = 0; i < record.nr_buffers; i++)
		while (read(record.buffers[i].fd, page, record.page_size) > 0)
			take_page(page);
}

/* Return: the exit status of the command, as a shell has it. */
static int run_command(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fail_io("fork");
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		execvp(env.command[0], env.command);
		fprintf(stderr, PROBE ": %s cannot be run: %s.\n",
			env.command[0], strerror(errno));
		_exit(127);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		poll(record.buffers, record.nr_buffers, WAIT_MS);
		drain();
	}
	if (!write_word(KNOBS "window", "0"))
		fail_io(KNOBS "window");
	drain();
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static int name_file(const char *path, const struct stat *stat, int type,
		     struct FTW *walk)
{
	long generation = 0;

	(void)walk;
	for (size_t i = 0; type == FTW_F && i < record.nr_files; i++) {
		struct file *file = &record.files[i];
		uint64_t pages = (stat->st_size + record.page_size - 1) /
				 record.page_size;
		int fd;

		if (file->ino != stat->st_ino || file->name)
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && !ioctl(fd, FS_IOC_GETVERSION, &generation) &&
		    (uint32_t)generation == file->generation) {
			path += strlen(env.files);
			file->name = strdup(path + strspn(path, "/"));
			if (file->pages < pages)
				file->pages = pages;
		}
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static void write_out(int status)
{
	uint64_t written = 0, lost = record.end < env.most ? record.end :
							     env.most;
	char partial[EVENT_PATH];
	FILE *out;

	for (uint64_t i = 0; i < record.seen; i++)
		if (record.touches[i].file != NO_FILE)
			record.touches[written++] = record.touches[i];
	lost -= written;

	snprintf(partial, sizeof(partial), "%s.partial", env.out);
	out = fopen(partial, "we");
	if (!out)
		fail_io(partial);
	fprintf(out, "{\"window\": %" PRIu64 ", \"page_size\": %ld, \"status\": %d"
		", \"touches\": %" PRIu64 ", \"lost\": %" PRIu64
		", \"cut\": %" PRIu64 ", \"files\": [", env.window,
		record.page_size, status, written, lost,
		record.end > env.most ? record.end - env.most : 0);
	for (size_t i = 0; i < record.nr_files; i++) {
		const struct file *file = &record.files[i];

		fprintf(out, "%s{\"pages\": %" PRIu64 ", \"name\": ",
			i ? ", " : "", file->pages);
		if (file->name)
			json_put_string(out, file->name);
		else
			fprintf(out, "\"removed-%" PRIu64 "-%" PRIu32 "\"",
				file->ino, file->generation);
		fprintf(out, "}");
	}
	fprintf(out, "]}\n");
	fwrite(record.touches, sizeof(*record.touches), written, out);
	if (fflush(out) || ferror(out) || fclose(out) ||
	    rename(partial, env.out))
		fail_io(env.out);
}

int main(int argc, char **argv)
{
	int status;

	parse_arguments(argc, argv);
	prepare();
	status = run_command();
	if (nftw(env.files, name_file, 32, FTW_PHYS | FTW_MOUNT))
		fail_io(env.files);
	write_out(status);
	return status;
}
