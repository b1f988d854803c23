// SPDX-License-Identifier: GPL-2.0-only
/* A driver for SQLite; see driver.h. */
#define _GNU_SOURCE
#include <sqlite3.h>
#include <sys/mman.h>

#include "driver.h"

#define FILE_NAME "records.db"

static sqlite3 *db;
static sqlite3_stmt *lookup, *upwards, *downwards, *insert;
static sqlite3_stmt *cursor;	/* upwards or downwards */
static bool reading, writing;

/* Rows, and the end of them, are no errors. */
static int must(int result, const char *what)
{
	if (result && result != SQLITE_ROW && result != SQLITE_DONE)
		fail("%s: %s", what, sqlite3_errmsg(db));
	return result;
}

static void run(const char *sql)
{
	must(sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepared(const char *sql)
{
	sqlite3_stmt *statement;

	must(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), sql);
	return statement;
}

static void start_reading(void)
{
	if (!reading)
		run("BEGIN");
	reading = true;
}

static void stop_reading(void)
{
	if (!reading)
		return;
	sqlite3_reset(lookup);
	sqlite3_reset(upwards);
	sqlite3_reset(downwards);
	cursor = NULL;
	run("COMMIT");
	reading = false;
}

static bool step(sqlite3_stmt *statement, struct record *found)
{
	if (must(sqlite3_step(statement), "cannot read") != SQLITE_ROW)
		return false;
	found->key = sqlite3_column_int64(statement, 0);
	found->value = sqlite3_column_blob(statement, 1);
	found->length = sqlite3_column_bytes(statement, 1);
	return true;
}

static bool query(sqlite3_stmt *statement, int64_t key, struct record *found)
{
	start_reading();
	sqlite3_reset(statement);
	must(sqlite3_bind_int64(statement, 1, key), "cannot bind");
	return step(statement, found);
}

static bool store_get(uint64_t key, struct record *found)
{
	return query(lookup, key, found);
}

/* A query goes one way only: turning round takes another one. */
static bool store_move(enum place place, uint64_t key, struct record *found)
{
	bool up = place == SEEK || place == FIRST || place == NEXT;
	sqlite3_stmt *before = cursor;

	cursor = up ? upwards : downwards;
	switch (place) {
	case SEEK:
		return query(cursor, (int64_t)key - 1, found);
	case FIRST:
		return query(cursor, -1, found);
	case LAST:
		return query(cursor, INT64_MAX, found);
	default:
		return cursor == before ? step(cursor, found) :
					  query(cursor, key, found);
	}
}

/* The mapping of the database file, and its size in bytes. */
static void *mapping(size_t *size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_ROOM + 128];
	uintptr_t start, end;

	if (!maps)
		fail("cannot read /proc/self/maps: %s", strerror(errno));
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/" FILE_NAME "\n"))
			continue;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2)
			break;
		fclose(maps);
		*size = end - start;
		return (void *)start;
	}
	fail("SQLite has not mapped its file");
}

/*
 * SQLite has no switch against readahead. This stands for what its users do about
 * it from outside; the mapping stays the same while the file does not grow, and
 * keeps its hints when it does.
 */
static void give_hint(bool hint)
{
	struct record ignored;
	size_t size;
	void *start;

	store_get(0, &ignored);
	stop_reading();
	start = mapping(&size);
	if (hint && madvise(start, size, MADV_RANDOM))
		fail("cannot give a hint: %s", strerror(errno));
}

static void store_open(const char *directory, enum mode mode, bool hint)
{
	const char *path = file_in(directory, FILE_NAME);
	int flags = mode == READ_ONLY ? SQLITE_OPEN_READONLY :
					SQLITE_OPEN_READWRITE;

	if (mode == CREATE)
		flags |= SQLITE_OPEN_CREATE;
	must(sqlite3_open_v2(path, &db, flags, NULL), path);
	/* Sorting must not want a file, for which a guest has no place. */
	run("PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF");
	/* As much as SQLite allows, which is just below 2 GiB. */
	run("PRAGMA mmap_size = 4294967296");
	if (mode == CREATE) {
		run("PRAGMA page_size = 4096; PRAGMA journal_mode = OFF;"
		    "PRAGMA locking_mode = EXCLUSIVE;"
		    "CREATE TABLE records(key INTEGER PRIMARY KEY,"
		    " word INTEGER, value BLOB)");
	} else {
		/* Pages; what is mapped needs none, but dirty pages do. */
		run("PRAGMA cache_size = 16");
	}
	lookup = prepared("SELECT key, value FROM records WHERE key = ?");
	upwards = prepared("SELECT key, value FROM records WHERE key > ?"
			   " ORDER BY key");
	downwards = prepared("SELECT key, value FROM records WHERE key < ?"
			     " ORDER BY key DESC");
	if (mode != READ_ONLY)
		insert = prepared("INSERT OR REPLACE INTO records"
				  " VALUES (?, ?, ?)");
	if (mode != CREATE)
		give_hint(hint);
}

static void store_put(const struct record *record)
{
	uint64_t word;

	stop_reading();
	if (!writing)
		run("BEGIN");
	writing = true;
	memcpy(&word, record->value + HEAD, sizeof(word));
	must(sqlite3_bind_int64(insert, 1, record->key), "cannot bind");
	must(sqlite3_bind_int64(insert, 2, le64toh(word)), "cannot bind");
	must(sqlite3_bind_blob(insert, 3, record->value, record->length,
			       SQLITE_STATIC), "cannot bind");
	must(sqlite3_step(insert), "cannot put");
	sqlite3_reset(insert);
}

static void store_commit(void)
{
	run("COMMIT");
	writing = false;
}

static void store_compact(const char *directory)
{
	sqlite3_stmt *vacuum = prepared("VACUUM INTO ?");

	stop_reading();
	must(sqlite3_bind_text(vacuum, 1, file_in(directory, FILE_NAME), -1,
			       SQLITE_STATIC), "cannot bind");
	must(sqlite3_step(vacuum), directory);
	sqlite3_finalize(vacuum);
}

static void store_copy(const char *directory)
{
	sqlite3_backup *backup;
	sqlite3 *to;

	stop_reading();
	if (sqlite3_open(file_in(directory, FILE_NAME), &to))
		fail("%s: %s", directory, sqlite3_errmsg(to));
	backup = sqlite3_backup_init(to, "main", db, "main");
	if (!backup || sqlite3_backup_step(backup, -1) != SQLITE_DONE ||
	    sqlite3_backup_finish(backup))
		fail("%s: %s", directory, sqlite3_errmsg(to));
	sqlite3_close(to);
}

static void store_check(void)
{
	sqlite3_stmt *check = prepared("PRAGMA integrity_check(1)");
	const char *answer;

	stop_reading();
	if (must(sqlite3_step(check), "the check fails") != SQLITE_ROW)
		fail("the check says nothing");
	answer = (const char *)sqlite3_column_text(check, 0);
	if (strcmp(answer, "ok"))
		fail("the check finds: %.*s", (int)strcspn(answer, "\n"),
		     answer);
	sqlite3_finalize(check);
}

static void store_index(void)
{
	stop_reading();
	run("CREATE INDEX by_word ON records(word)");
}

static void store_close(void)
{
	stop_reading();
	sqlite3_finalize(lookup);
	sqlite3_finalize(upwards);
	sqlite3_finalize(downwards);
	sqlite3_finalize(insert);
	insert = NULL;
	must(sqlite3_close(db), "cannot close");
}

int main(int argc, char **argv)
{
	return drive(argc, argv);
}
