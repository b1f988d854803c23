// SPDX-License-Identifier: GPL-2.0-only
/* A driver for LMDB; see driver.h. */
#define _GNU_SOURCE
#include <lmdb.h>

#include "driver.h"

static MDB_env *env;
static MDB_dbi records;
static MDB_txn *reading, *writing;
static MDB_cursor *cursor;

static void must(int error, const char *what)
{
	if (error)
		fail("%s: %s", what, mdb_strerror(error));
}

static MDB_txn *begin(unsigned int flags)
{
	MDB_txn *txn;

	must(mdb_txn_begin(env, NULL, flags, &txn), "cannot begin");
	return txn;
}

static void start_reading(void)
{
	if (reading)
		return;
	reading = begin(MDB_RDONLY);
	must(mdb_cursor_open(reading, records, &cursor), "no cursor");
}

/* A thread can have one transaction only. */
static void stop_reading(void)
{
	if (!reading)
		return;
	mdb_cursor_close(cursor);
	mdb_txn_abort(reading);
	reading = NULL;
}

static void store_open(const char *directory, enum mode mode, bool hint)
{
	unsigned int flags = mode == READ_ONLY ? MDB_RDONLY : MDB_NOSYNC;
	MDB_txn *txn;

	if (hint)
		flags |= MDB_NORDAHEAD;
	must(mdb_env_create(&env), "no environment");
	must(mdb_env_set_mapsize(env, MAP_BYTES), "no map of this size");
	must(mdb_env_set_maxdbs(env, 2), "no names");
	must(mdb_env_open(env, directory, flags, 0644), directory);
	txn = begin(flags & MDB_RDONLY);
	must(mdb_dbi_open(txn, "records", mode == CREATE ? MDB_CREATE : 0,
			  &records), "records");
	must(mdb_txn_commit(txn), "cannot commit");
}

/* What LMDB has found; without a key of its own if that was asked for. */
static bool deliver(int error, const MDB_val *key, const MDB_val *value,
		    struct record *found)
{
	if (error == MDB_NOTFOUND)
		return false;
	must(error, "cannot read");
	if (key->mv_size != sizeof(uint64_t))
		fail("a key has a wrong length");
	*found = (struct record){
		be64_at(key->mv_data), value->mv_data, value->mv_size
	};
	return true;
}

static bool store_get(uint64_t wanted, struct record *found)
{
	uint64_t name = htobe64(wanted);
	MDB_val key = { sizeof(name), &name }, value;

	start_reading();
	return deliver(mdb_get(reading, records, &key, &value), &key, &value,
		       found);
}

static bool store_move(enum place place, uint64_t wanted, struct record *found)
{
	static const MDB_cursor_op ops[] = {
		[SEEK] = MDB_SET_RANGE, [FIRST] = MDB_FIRST, [LAST] = MDB_LAST,
		[NEXT] = MDB_NEXT, [PREVIOUS] = MDB_PREV,
	};
	uint64_t name = htobe64(wanted);
	MDB_val key = { sizeof(name), &name }, value;

	start_reading();
	return deliver(mdb_cursor_get(cursor, &key, &value, ops[place]), &key,
		       &value, found);
}

static void store_put(const struct record *record)
{
	uint64_t name = htobe64(record->key);
	MDB_val key = { sizeof(name), &name };
	MDB_val value = { record->length, (void *)record->value };

	stop_reading();
	if (!writing)
		writing = begin(0);
	must(mdb_put(writing, records, &key, &value, 0), "cannot put");
}

static void store_commit(void)
{
	must(mdb_txn_commit(writing), "cannot commit");
	writing = NULL;
}

static void store_compact(const char *directory)
{
	stop_reading();
	must(mdb_env_copy2(env, directory, MDB_CP_COMPACT), directory);
}

static void store_copy(const char *directory)
{
	stop_reading();
	must(mdb_env_copy(env, directory), directory);
}

static void store_check(void)
{
	fail("no operation 'check'");
}

static void store_index(void)
{
	MDB_val key, value;
	MDB_dbi index;
	int error;

	stop_reading();
	writing = begin(0);
	must(mdb_dbi_open(writing, "index",
			  MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &index),
	     "index");
	must(mdb_cursor_open(writing, records, &cursor), "no cursor");
	while (!(error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
		MDB_val word = { 8, (char *)value.mv_data + HEAD };

		must(mdb_put(writing, index, &word, &key, 0), "cannot put");
	}
	if (error != MDB_NOTFOUND)
		must(error, "cannot read");
	mdb_cursor_close(cursor);
	store_commit();
}

static void store_close(void)
{
	stop_reading();
	mdb_env_close(env);
}

int main(int argc, char **argv)
{
	return drive(argc, argv);
}
