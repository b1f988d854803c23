// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the module knows of open files: a hash table, because struct file has no room for
 * it. A file is added by its first miss, and goes when it is closed, when memory is short,
 * or when too many others come after it.
 */
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "known_files.h"
#include "memory.h"

/* So many files at most, 8 MiB, and how many are spared before another one begins. */
#define MAX_FILES	16384
#define MAX_SPARED	16

/**
 * struct known_file - an open file
 * @bucket: in the table
 * @lru: in the list, the newest first
 * @rcu: for those who are still looking
 * @file: whose it is
 * @inode: number of its inode, in case a close went by unseen
 * @generation: of the inode
 * @program: it is mapped as program text; then there is nothing behind this
 * @in_use: it was asked for since reclaim, or a new file, last looked
 * @lock: of what follows; nobody waits for it
 * @memory_pages: what memory can hold, for the control group that last asked
 * @memory_told: in jiffies, when that was
 * @state: what is known
 */
struct known_file {
	struct hlist_node bucket;
	struct list_head lru;
	struct rcu_head rcu;
	const struct file *file;
	unsigned long inode;
	u32 generation;
	bool program;
	bool in_use;
	spinlock_t lock;	/* of what follows */
	unsigned long memory_pages;
	unsigned long memory_told;
	struct mmap_readahead_state state;
};

static DEFINE_HASHTABLE(table, 12);
static LIST_HEAD(lru);
static DEFINE_SPINLOCK(table_lock);	/* of both, for changes */
static unsigned long nr_files;

/* What the first misses of files have taught. Nobody locks it: it may be anything. */
static struct mmap_readahead_prior prior;

/* Under RCU or the lock. Files that are closed may only be compared. */
static struct known_file *find_closed(const struct file *file)
{
	struct known_file *known;

	hash_for_each_possible_rcu(table, known, bucket, (unsigned long)file,
				   lockdep_is_held(&table_lock)) {
		if (known->file == file)
			return known;
	}
	return NULL;
}

static struct known_file *find(const struct file *file)
{
	struct known_file *known = find_closed(file);
	const struct inode *inode = file_inode(file);

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
	nr_files--;
	kfree_rcu(known, rcu);
}

/* With the lock, if there are any: forget the oldest file, or spare it once. */
static bool forget_oldest(void)
{
	struct known_file *known = list_last_entry(&lru, struct known_file, lru);

	if (READ_ONCE(known->in_use)) {
		WRITE_ONCE(known->in_use, false);
		list_move(&known->lru, &lru);
		return false;
	}
	forget(known);
	return true;
}

/* With the lock. */
static void make_room(void)
{
	unsigned int looks;

	for (looks = 0; nr_files >= MAX_FILES && looks < MAX_SPARED; looks++)
		forget_oldest();
	if (nr_files >= MAX_FILES)
		forget(list_last_entry(&lru, struct known_file, lru));
}

/* Begin to know a file, in place of what is known of it, unless another task just did. */
static struct known_file *remember(struct file *file, bool program)
{
	size_t size = program ? offsetof(struct known_file, lock) : sizeof(struct known_file);
	struct known_file *known, *old;

	known = kzalloc(size, GFP_NOWAIT | __GFP_NOWARN);
	if (!known)
		return NULL;
	known->file = file;
	known->inode = file_inode(file)->i_ino;
	known->generation = file_inode(file)->i_generation;
	known->program = program;
	known->in_use = true;
	if (!program)
		spin_lock_init(&known->lock);

	spin_lock(&table_lock);
	old = find(file);
	if (old && (old->program || !program)) {
		spin_unlock(&table_lock);
		kfree(known);
		return old;
	}
	old = find_closed(file);
	if (old)
		forget(old);
	make_room();
	hash_add_rcu(table, &known->bucket, (unsigned long)file);
	list_add(&known->lru, &lru);
	nr_files++;
	spin_unlock(&table_lock);
	return known;
}

struct mmap_readahead_state *known_file_trylock(struct file *file,
						struct mmap_readahead_miss *miss,
						struct known_file **known)
{
	struct known_file *found;

	rcu_read_lock();
	found = find(file) ?: remember(file, false);
	if (!found || found->program || !spin_trylock(&found->lock)) {
		rcu_read_unlock();
		return NULL;
	}
	if (!found->memory_pages || time_after(jiffies, found->memory_told + HZ / 8)) {
		found->memory_pages = file_memory_pages();
		found->memory_told = jiffies;
	}
	miss->memory_pages = found->memory_pages;
	miss->file_paid = found->state.paid;
	miss->prior = &prior;
	*known = found;
	/* known_file_unlock() does, but sparse does not look there. */
	__release(&found->lock);
	__release(RCU);
	return &found->state;
}

void known_file_unlock(struct known_file *known)
{
	__acquire(RCU);
	__acquire(&known->lock);
	spin_unlock(&known->lock);
	rcu_read_unlock();
}

/*
 * Without the lock: what other tasks decide meanwhile may be undone, which makes one of
 * them read a page twice at worst.
 */
void known_file_arrived(const struct file *file, const struct mmap_readahead_answer *answer)
{
	struct known_file *known;

	rcu_read_lock();
	known = find_closed(file);
	if (known && !known->program)
		mmap_readahead_submitted(&known->state, answer);
	rcu_read_unlock();
}

void known_file_set_program(struct file *file)
{
	if (!known_file_is_program(file))
		remember(file, true);
}

bool known_file_is_program(struct file *file)
{
	const struct known_file *known;
	bool program;

	rcu_read_lock();
	known = find(file);
	program = known && known->program;
	rcu_read_unlock();
	return program;
}

void known_file_release(struct file *file)
{
	struct known_file *known;
	bool found;

	rcu_read_lock();
	found = find_closed(file);
	rcu_read_unlock();
	if (!found)
		return;
	spin_lock(&table_lock);
	/* It may have been forgotten meanwhile. */
	known = find_closed(file);
	if (known)
		forget(known);
	spin_unlock(&table_lock);
}

unsigned long known_files_count(void)
{
	return READ_ONCE(nr_files);
}

static unsigned long count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return known_files_count() ?: SHRINK_EMPTY;
}

static unsigned long scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long looks, forgotten = 0;

	spin_lock(&table_lock);
	for (looks = 0; looks < sc->nr_to_scan && nr_files; looks++)
		forgotten += forget_oldest();
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
	while (nr_files)
		forget(list_first_entry(&lru, struct known_file, lru));
	spin_unlock(&table_lock);
}
