/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all drivers of storage engines have in common: the form of records, and
 * the operations.
 *
 *   DRIVER DATA-DIRECTORY none|own
 *
 * reads operations from its standard input, one a line, and executes each at
 * once. It fails at the first thing that is wrong, with one sentence. With
 * "own", the engine's own switch against readahead is on.
 *
 *   create	make an empty store in the directory, which is empty, and open it
 *   open ro	open the store that is there, mapped
 *   open rw
 *   get K	look up record K
 *   seek K	place the cursor at the first record from K on
 *   first	place the cursor there
 *   last
 *   next N	go on by so many records
 *   prev N
 *   put K V	insert or replace record K by its version V
 *   commit	end the transaction of all puts so far
 *   compact PATH	the engine's own compaction, into a new directory
 *   copy PATH	the engine's own plain copy
 *   check	the engine's own check of a whole store
 *   index	make an index by the word at offset 16 of values
 *   close	close the store
 *
 * Every record that is read is checked. One snapshot is read from until something
 * else than reading is asked for, which also leaves the cursor nowhere.
 */
#ifndef FOLIOLAB_DRIVER_H
#define FOLIOLAB_DRIVER_H

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_LENGTH	200	/* of a value, bytes */
#define MAX_LENGTH	1800
#define HEAD		16	/* bytes: key and version */
#define MAP_BYTES	(UINT64_C(4) << 30)
#define PATH_ROOM	4096

enum mode { CREATE, READ_ONLY, READ_WRITE };
enum place { SEEK, FIRST, LAST, NEXT, PREVIOUS };

struct record {
	uint64_t key;
	const unsigned char *value;
	size_t length;		/* bytes of the value */
};

/*
 * The storage engine, in the file that includes this. All functions fail() if they
 * cannot do what they are asked, but store_get() and store_move() return whether
 * there is such a record.
 */
static void store_open(const char *directory, enum mode mode, bool hint);
static bool store_get(uint64_t key, struct record *found);
static bool store_move(enum place place, uint64_t key, struct record *found);
static void store_put(const struct record *record);
static void store_commit(void);
static void store_compact(const char *directory);
static void store_copy(const char *directory);
static void store_check(void);
static void store_index(void);
static void store_close(void);

static void fail(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
	va_list values;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	fputc('\n', stderr);
	exit(1);
}

static inline const char *file_in(const char *directory, const char *name)
{
	static char path[PATH_ROOM];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >=
	    sizeof(path))
		fail("the name of directory %s is too long", directory);
	return path;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static size_t length_of(uint64_t key)
{
	return MIN_LENGTH + mix(key) % (MAX_LENGTH - MIN_LENGTH + 1);
}

/* The word that comes after so many others behind the head of a value. */
static uint64_t word_of(uint64_t key, uint64_t version, size_t number)
{
	return mix(mix(key) + version + number);
}

static uint64_t be64_at(const unsigned char *bytes)
{
	uint64_t number;

	memcpy(&number, bytes, sizeof(number));
	return be64toh(number);
}

static struct record make_record(uint64_t key, uint64_t version)
{
	static unsigned char value[MAX_LENGTH + sizeof(uint64_t)];
	struct record record = { key, value, length_of(key) };
	uint64_t number = htobe64(key);

	memcpy(value, &number, sizeof(number));
	number = htobe64(version);
	memcpy(value + 8, &number, sizeof(number));
	for (size_t at = HEAD; at < record.length; at += sizeof(number)) {
		number = htole64(word_of(key, version, (at - HEAD) / 8));
		memcpy(value + at, &number, sizeof(number));
	}
	return record;
}

/* Touches the first and the last page of a value, as its readers do. */
static void check_record(const struct record *record)
{
	const unsigned char *value = record->value;
	size_t end = record->length - 1;
	uint64_t word;

	if (record->length != length_of(record->key) ||
	    be64_at(value) != record->key)
		fail("record %" PRIu64 " is damaged", record->key);
	word = word_of(record->key, be64_at(value + 8), (end - HEAD) / 8);
	if (value[end] != (unsigned char)(word >> 8 * (end % 8)))
		fail("record %" PRIu64 " is damaged", record->key);
}

static struct {
	const char *directory;
	bool hint;
	bool open, writable;
	bool writing;		/* a commit is still to come */
	bool placed;
	uint64_t at;		/* the key at which the cursor is placed */
} driver;

static uint64_t number(const char *word)
{
	char *end;

	errno = 0;
	uint64_t value = strtoull(word, &end, 10);

	if (errno || *end || *word < '0' || *word > '9')
		fail("'%s' is no number", word);
	return value;
}

static const char *new_directory(const char *path)
{
	if (mkdir(path, 0755))
		fail("cannot make directory %s: %s", path, strerror(errno));
	return path;
}

static void start(enum mode mode)
{
	store_open(driver.directory, mode, driver.hint);
	driver.open = true;
	driver.writable = mode != READ_ONLY;
}

static void do_create(const char *const *words)
{
	(void)words;
	start(CREATE);
}

static void do_open(const char *const *words)
{
	if (!strcmp(words[1], "ro"))
		start(READ_ONLY);
	else if (!strcmp(words[1], "rw"))
		start(READ_WRITE);
	else
		fail("a store is opened 'ro' or 'rw', not '%s'", words[1]);
}

static void do_get(const char *const *words)
{
	struct record found;
	uint64_t key = number(words[1]);

	if (!store_get(key, &found))
		fail("record %" PRIu64 " is missing", key);
	check_record(&found);
}

static bool move(enum place place, uint64_t key)
{
	struct record found;

	if (!store_move(place, key, &found))
		return false;
	check_record(&found);
	driver.at = found.key;
	driver.placed = true;
	return true;
}

static void do_seek(const char *const *words)
{
	uint64_t key = number(words[1]);

	if (!move(SEEK, key))
		fail("there is no record from %" PRIu64 " on", key);
	if (driver.at < key)
		fail("record %" PRIu64 " is in the wrong place", driver.at);
}

static void do_first(const char *const *words)
{
	(void)words;
	if (!move(FIRST, 0))
		fail("there is no record");
}

static void do_last(const char *const *words)
{
	(void)words;
	if (!move(LAST, 0))
		fail("there is no record");
}

static void go_on(enum place place, uint64_t records)
{
	if (!driver.placed)
		fail("the cursor is nowhere");
	while (records--) {
		uint64_t from = driver.at;

		if (!move(place, from))
			fail("record %" PRIu64 " is the last on this way", from);
		if (place == NEXT ? driver.at <= from : driver.at >= from)
			fail("record %" PRIu64 " is in the wrong place",
			     driver.at);
	}
}

static void do_next(const char *const *words)
{
	go_on(NEXT, number(words[1]));
}

static void do_prev(const char *const *words)
{
	go_on(PREVIOUS, number(words[1]));
}

static void do_put(const char *const *words)
{
	struct record record = make_record(number(words[1]), number(words[2]));

	store_put(&record);
	driver.writing = true;
}

static void do_commit(const char *const *words)
{
	(void)words;
	if (!driver.writing)
		fail("there is nothing to commit");
	store_commit();
	driver.writing = false;
}

static void do_compact(const char *const *words)
{
	store_compact(new_directory(words[1]));
}

static void do_copy(const char *const *words)
{
	store_copy(new_directory(words[1]));
}

static void do_check(const char *const *words)
{
	(void)words;
	store_check();
}

static void do_index(const char *const *words)
{
	(void)words;
	store_index();
}

static void do_close(const char *const *words)
{
	(void)words;
	store_close();
	driver.open = false;
}

/* What has to be so before an operation, and whether it moves the cursor only. */
#define CLOSED		1
#define WRITABLE	2
#define COMMITTED	4
#define READS		8

static const struct operation {
	const char *name;
	void (*execute)(const char *const *words);
	unsigned int arguments;
	unsigned int flags;
} operations[] = {
	{ "create", do_create, 0, CLOSED },
	{ "open", do_open, 1, CLOSED },
	{ "get", do_get, 1, COMMITTED | READS },
	{ "seek", do_seek, 1, COMMITTED | READS },
	{ "first", do_first, 0, COMMITTED | READS },
	{ "last", do_last, 0, COMMITTED | READS },
	{ "next", do_next, 1, COMMITTED | READS },
	{ "prev", do_prev, 1, COMMITTED | READS },
	{ "put", do_put, 2, WRITABLE },
	{ "commit", do_commit, 0, WRITABLE },
	{ "compact", do_compact, 1, COMMITTED },
	{ "copy", do_copy, 1, COMMITTED },
	{ "check", do_check, 0, COMMITTED },
	{ "index", do_index, 0, COMMITTED | WRITABLE },
	{ "close", do_close, 0, COMMITTED },
};

static const struct operation *find(const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(operations[i].name, name))
			return &operations[i];
	fail("no operation '%s'", name);
}

static void execute(char *line)
{
	const char *words[4] = { NULL };
	const struct operation *operation;
	unsigned int count = 0;

	for (char *rest = line, *word; (word = strsep(&rest, " ")) && count < 4;)
		words[count++] = word;
	operation = find(words[0]);
	if (count != operation->arguments + 1)
		fail("'%s' takes %u arguments", words[0], operation->arguments);
	if (driver.open == !!(operation->flags & CLOSED))
		fail("'%s', but the store is %s", words[0],
		     driver.open ? "open" : "not open");
	if (operation->flags & WRITABLE && !driver.writable)
		fail("'%s', but the store is open for reading", words[0]);
	if (operation->flags & COMMITTED && driver.writing)
		fail("'%s' before a commit", words[0]);
	if (!(operation->flags & READS))
		driver.placed = false;
	operation->execute(words);
}

static int drive(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;

	if (argc != 3 || (strcmp(argv[2], "none") && strcmp(argv[2], "own")))
		fail("usage: DATA-DIRECTORY none|own");
	driver.directory = argv[1];
	driver.hint = !strcmp(argv[2], "own");
	while (getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		execute(line);
	}
	if (ferror(stdin))
		fail("cannot read operations: %s", strerror(errno));
	if (driver.writing)
		fail("the operations end before a commit");
	if (driver.open)
		store_close();
	free(line);
	return 0;
}

#endif /* FOLIOLAB_DRIVER_H */
