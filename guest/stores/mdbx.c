// SPDX-License-Identifier: GPL-2.0-only
/* A driver for libmdbx; see driver.h. */
#define _GNU_SOURCE
#include <mdbx.h>

#include "driver.h"

/* The name that libmdbx itself gives the file in a directory. */
#define FILE_NAME "mdbx.dat"

static MDBX_env *env;
static MDBX_dbi records;
static MDBX_txn *reading, *writing;
static MDBX_cursor *cursor;

static void must(int error, const char *what)
{
	if (error)
		fail("%s: %s", what, mdbx_strerror(error));
}

static MDBX_txn *begin(MDBX_txn_flags_t flags)
{
	MDBX_txn *txn;

	must(mdbx_txn_begin(env, NULL, flags, &txn), "cannot begin");
	return txn;
}

static void start_reading(void)
{
	if (reading)
		return;
	reading = begin(MDBX_TXN_RDONLY);
	must(mdbx_cursor_open(reading, records, &cursor), "no cursor");
}

/* A thread can have one transaction only. */
static void stop_reading(void)
{
	if (!reading)
		return;
	mdbx_cursor_close(cursor);
	must(mdbx_txn_abort(reading), "cannot end reading");
	reading = NULL;
}

/*
 * Without our asking, libmdbx takes a store that is larger than the free memory
 * of the machine for one that is better read without readahead.
 */
static void be_sure_of_readahead(void)
{
	MDBX_envinfo info;

	must(mdbx_env_info_ex(env, NULL, &info, sizeof(info)), "no facts");
	if (mdbx_is_readahead_reasonable(info.mi_geo.current, 0) !=
	    MDBX_RESULT_TRUE)
		fail("so little memory is free that libmdbx would give the hint itself");
}

static void store_open(const char *directory, enum mode mode, bool hint)
{
	MDBX_env_flags_t flags = mode == READ_ONLY ? MDBX_RDONLY :
						     MDBX_UTTERLY_NOSYNC;
	MDBX_txn *txn;

	/* Errors are returned as well, and one sentence is enough. */
	mdbx_setup_debug(MDBX_LOG_FATAL, MDBX_DBG_DONTCHANGE, NULL);
	if (hint)
		flags |= MDBX_NORDAHEAD;
	must(mdbx_env_create(&env), "no environment");
	if (mode != READ_ONLY)
		must(mdbx_env_set_geometry(env, -1, -1, MAP_BYTES, -1, -1, -1),
		     "no map of this size");
	must(mdbx_env_set_maxdbs(env, 2), "no names");
	must(mdbx_env_open(env, directory, flags, 0644), directory);
	if (!hint && mode != CREATE)
		be_sure_of_readahead();
	txn = begin(mode == READ_ONLY ? MDBX_TXN_RDONLY : MDBX_TXN_READWRITE);
	must(mdbx_dbi_open(txn, "records",
			   mode == CREATE ? MDBX_CREATE : MDBX_DB_DEFAULTS,
			   &records), "records");
	must(mdbx_txn_commit(txn), "cannot commit");
}

static bool deliver(int error, const MDBX_val *key, const MDBX_val *value,
		    struct record *found)
{
	if (error == MDBX_NOTFOUND)
		return false;
	must(error, "cannot read");
	if (key->iov_len != sizeof(uint64_t))
		fail("a key has a wrong length");
	*found = (struct record){
		be64_at(key->iov_base), value->iov_base, value->iov_len
	};
	return true;
}

static bool store_get(uint64_t wanted, struct record *found)
{
	uint64_t name = htobe64(wanted);
	MDBX_val key = { &name, sizeof(name) }, value;

	start_reading();
	return deliver(mdbx_get(reading, records, &key, &value), &key, &value,
		       found);
}

static bool store_move(enum place place, uint64_t wanted, struct record *found)
{
	static const MDBX_cursor_op ops[] = {
		[SEEK] = MDBX_SET_RANGE, [FIRST] = MDBX_FIRST,
		[LAST] = MDBX_LAST, [NEXT] = MDBX_NEXT, [PREVIOUS] = MDBX_PREV,
	};
	uint64_t name = htobe64(wanted);
	MDBX_val key = { &name, sizeof(name) }, value;

	start_reading();
	return deliver(mdbx_cursor_get(cursor, &key, &value, ops[place]), &key,
		       &value, found);
}

static void store_put(const struct record *record)
{
	uint64_t name = htobe64(record->key);
	MDBX_val key = { &name, sizeof(name) };
	MDBX_val value = { (void *)record->value, record->length };

	stop_reading();
	if (!writing)
		writing = begin(MDBX_TXN_READWRITE);
	must(mdbx_put(writing, records, &key, &value, MDBX_UPSERT),
	     "cannot put");
}

static void store_commit(void)
{
	must(mdbx_txn_commit(writing), "cannot commit");
	writing = NULL;
}

static void store_compact(const char *directory)
{
	stop_reading();
	must(mdbx_env_copy(env, file_in(directory, FILE_NAME), MDBX_CP_COMPACT),
	     directory);
}

static void store_copy(const char *directory)
{
	stop_reading();
	must(mdbx_env_copy(env, file_in(directory, FILE_NAME),
			   MDBX_CP_DEFAULTS), directory);
}

static void store_check(void)
{
	const MDBX_chk_callbacks_t silent = { 0 };
	MDBX_chk_context_t context = { 0 };

	stop_reading();
	must(mdbx_env_chk(env, &silent, &context, MDBX_CHK_DEFAULTS,
			  MDBX_chk_error, 0), "the check fails");
	if (context.result.total_problems)
		fail("the check finds %zu problems",
		     context.result.total_problems);
}

static void store_index(void)
{
	MDBX_val key, value;
	MDBX_dbi index;
	int error;

	stop_reading();
	writing = begin(MDBX_TXN_READWRITE);
	must(mdbx_dbi_open(writing, "index",
			   MDBX_CREATE | MDBX_DUPSORT | MDBX_DUPFIXED, &index),
	     "index");
	must(mdbx_cursor_open(writing, records, &cursor), "no cursor");
	while (!(error = mdbx_cursor_get(cursor, &key, &value, MDBX_NEXT))) {
		MDBX_val word = { (char *)value.iov_base + HEAD, 8 };

		must(mdbx_put(writing, index, &word, &key, MDBX_UPSERT),
		     "cannot put");
	}
	if (error != MDBX_NOTFOUND)
		must(error, "cannot read");
	mdbx_cursor_close(cursor);
	store_commit();
}

static void store_close(void)
{
	stop_reading();
	must(mdbx_env_close(env), "cannot close");
}

int main(int argc, char **argv)
{
	return drive(argc, argv);
}
