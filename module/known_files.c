// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the module knows of files: a hash table, because struct address_space has no room
 * for it. A file is added by its first miss, and goes with its inode, when memory is short,
 * or when too many others come after it. A program is an open file, and goes when that is
 * closed.
 */
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "known_files.h"
#include "memory.h"

/* So many files at most, 8 MiB, and as many programs, 1 MiB. */
#define MAX_OF_A_KIND	16384
/* How many are spared before another one begins. */
#define MAX_SPARED	16

/**
 * struct kind - files, or programs
 * @lru: those that are known, the newest first
 * @nr: how many that are
 */
struct kind {
	struct list_head lru;
	unsigned long nr;
};

/**
 * struct known_file - a file, or an open file that is a program
 * @bucket: in the table
 * @kind: what it is
 * @lru: in the list of its kind
 * @rcu: for those who are still looking
 * @key: key_of_file() or key_of_program()
 * @inode: number of its inode, in case an end went by unseen
 * @generation: of the inode
 * @in_use: it was asked for since reclaim, or a new file, last looked
 * @lock: of what follows. Nobody sleeps, or reads, with it. A program has nothing from here on
 * @memory_pages: what memory can hold, for the control group that last asked
 * @memory_group: that control group, only to be compared
 * @memory_told: in jiffies, when that was
 * @arrived: in jiffies, when all reads were last taken for arrived
 * @state: what is known
 */
struct known_file {
	struct hlist_node bucket;
	struct kind *kind;
	struct list_head lru;
	struct rcu_head rcu;
	unsigned long key;
	u64 inode;
	u32 generation;
	bool in_use;
	spinlock_t lock;	/* of what follows */
	unsigned long memory_pages;
	const void *memory_group;
	unsigned long memory_told;
	unsigned long arrived;
	struct mmap_readahead_state state;
};

static DEFINE_HASHTABLE(table, 12);
static struct kind files = { .lru = LIST_HEAD_INIT(files.lru) };
static struct kind programs = { .lru = LIST_HEAD_INIT(programs.lru) };
static DEFINE_SPINLOCK(table_lock);	/* of all three, for changes */

/* The page cache that all share who have opened a file. */
static unsigned long key_of_file(const struct address_space *mapping)
{
	return (unsigned long)mapping;
}

/* Odd, so that it is never that of a file. */
static unsigned long key_of_program(const struct file *file)
{
	return (unsigned long)file + 1;
}

/* Under RCU or the lock. What has gone may only be compared. */
static struct known_file *find_gone(unsigned long key)
{
	struct known_file *known;

	hash_for_each_possible_rcu(table, known, bucket, key, lockdep_is_held(&table_lock)) {
		if (known->key == key)
			return known;
	}
	return NULL;
}

static struct known_file *find(unsigned long key, const struct inode *inode)
{
	struct known_file *known = find_gone(key);

	if (!known || known->inode != inode->i_ino || known->generation != inode->i_generation)
		return NULL;
	if (!READ_ONCE(known->in_use))
		WRITE_ONCE(known->in_use, true);
	return known;
}

/* With the lock. Whoever has just found it keeps it until the end of its grace period. */
static void forget(struct known_file *known)
{
	hash_del_rcu(&known->bucket);
	list_del(&known->lru);
	WRITE_ONCE(known->kind->nr, known->kind->nr - 1);
	kfree_rcu(known, rcu);
}

static struct known_file *oldest(const struct kind *kind)
{
	return list_last_entry(&kind->lru, struct known_file, lru);
}

/* With the lock, if there are any: forget the oldest one, or spare it once. */
static bool forget_oldest(struct kind *kind)
{
	struct known_file *known = oldest(kind);

	if (READ_ONCE(known->in_use)) {
		WRITE_ONCE(known->in_use, false);
		list_move(&known->lru, &kind->lru);
		return false;
	}
	forget(known);
	return true;
}

/* With the lock. */
static void make_room(struct kind *kind)
{
	unsigned int looks;

	for (looks = 0; kind->nr >= MAX_OF_A_KIND && looks < MAX_SPARED; looks++)
		forget_oldest(kind);
	if (kind->nr >= MAX_OF_A_KIND)
		forget(oldest(kind));
}

/* Begin to know a file or a program, unless another task just did. Returns NULL without memory. */
static struct known_file *remember(unsigned long key, const struct inode *inode,
				   struct kind *kind)
{
	struct known_file *known, *old;
	size_t size = kind == &files ? sizeof(*known) : offsetof(struct known_file, lock);

	known = kzalloc(size, GFP_NOWAIT | __GFP_NOWARN);
	if (!known)
		return NULL;
	known->key = key;
	known->inode = inode->i_ino;
	known->generation = inode->i_generation;
	known->in_use = true;
	known->kind = kind;
	if (kind == &files) {
		spin_lock_init(&known->lock);
		known->arrived = jiffies;
	}

	spin_lock(&table_lock);
	old = find(key, inode);
	if (old) {
		spin_unlock(&table_lock);
		kfree(known);
		return old;
	}
	old = find_gone(key);
	if (old)
		forget(old);
	make_room(kind);
	hash_add_rcu(table, &known->bucket, key);
	list_add(&known->lru, &kind->lru);
	WRITE_ONCE(kind->nr, kind->nr + 1);
	spin_unlock(&table_lock);
	return known;
}

/*
 * A task tells that its read has arrived when it faults again, which it may never do. What is
 * under way just now is taken for arrived as well, so that a page is read twice at worst.
 */
static void all_arrived(struct known_file *known)
{
	unsigned int i;

	if (!time_after(jiffies, known->arrived + HZ / 8))
		return;
	for (i = 0; i < MMAP_READAHEAD_READS; i++)
		known->state.reads[i].pending = false;
	known->arrived = jiffies;
}

struct mmap_readahead_state *known_file_lock(const struct address_space *mapping)
{
	unsigned long key = key_of_file(mapping);
	struct known_file *known;

	rcu_read_lock();
	known = find(key, mapping->host) ?: remember(key, mapping->host, &files);
	if (!known) {
		rcu_read_unlock();
		return NULL;
	}
	spin_lock(&known->lock);
	all_arrived(known);
	/* known_file_unlock() does, but sparse does not look there. */
	__release(&known->lock);
	__release(RCU);
	return &known->state;
}

void known_file_unlock(struct mmap_readahead_state *state)
{
	struct known_file *known = container_of(state, struct known_file, state);

	__acquire(RCU);
	__acquire(&known->lock);
	spin_unlock(&known->lock);
	rcu_read_unlock();
}

unsigned long known_file_memory(struct mmap_readahead_state *state)
{
	struct known_file *known = container_of(state, struct known_file, state);
	const void *group = current_group();

	if (!known->memory_pages || known->memory_group != group ||
	    time_after(jiffies, known->memory_told + HZ / 8)) {
		known->memory_pages = file_memory_pages();
		known->memory_group = group;
		known->memory_told = jiffies;
	}
	return known->memory_pages;
}

void known_file_arrived(const struct address_space *mapping,
			const struct mmap_readahead_answer *answer)
{
	struct known_file *known;

	rcu_read_lock();
	known = find_gone(key_of_file(mapping));
	if (known) {
		spin_lock(&known->lock);
		mmap_readahead_submitted(&known->state, answer);
		spin_unlock(&known->lock);
	}
	rcu_read_unlock();
}

void known_file_set_program(const struct file *file)
{
	if (!known_file_is_program(file))
		remember(key_of_program(file), file_inode(file), &programs);
}

bool known_file_is_program(const struct file *file)
{
	bool program;

	rcu_read_lock();
	program = find(key_of_program(file), file_inode(file));
	rcu_read_unlock();
	return program;
}

static void forget_gone(unsigned long key)
{
	struct known_file *known;
	bool found;

	rcu_read_lock();
	found = find_gone(key);
	rcu_read_unlock();
	if (!found)
		return;
	spin_lock(&table_lock);
	/* It may have been forgotten meanwhile. */
	known = find_gone(key);
	if (known)
		forget(known);
	spin_unlock(&table_lock);
}

void known_file_release(const struct address_space *mapping)
{
	forget_gone(key_of_file(mapping));
}

void known_file_release_program(const struct file *file)
{
	forget_gone(key_of_program(file));
}

unsigned long known_files_count(void)
{
	return READ_ONCE(files.nr) + READ_ONCE(programs.nr);
}

static unsigned long count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return known_files_count() ?: SHRINK_EMPTY;
}

static unsigned long scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long looks, forgotten = 0;

	spin_lock(&table_lock);
	for (looks = 0; looks < sc->nr_to_scan && files.nr + programs.nr; looks++)
		forgotten += forget_oldest(files.nr ? &files : &programs);
	spin_unlock(&table_lock);
	return forgotten;
}

#ifdef HAVE_SHRINKER_ALLOC
static struct shrinker *shrinker;

int known_files_init(void)
{
	shrinker = shrinker_alloc(0, "mmap_readahead_window");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return 0;
}

static void stop_shrinking(void)
{
	shrinker_free(shrinker);
}
#else
static struct shrinker shrinker = {
	.count_objects = count,
	.scan_objects = scan,
	.seeks = DEFAULT_SEEKS,
};

int known_files_init(void)
{
	return register_shrinker(&shrinker, "mmap_readahead_window");
}

static void stop_shrinking(void)
{
	unregister_shrinker(&shrinker);
}
#endif

void known_files_exit(void)
{
	stop_shrinking();
	spin_lock(&table_lock);
	while (files.nr)
		forget(oldest(&files));
	while (programs.nr)
		forget(oldest(&programs));
	spin_unlock(&table_lock);
}
