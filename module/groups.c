// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose misses adapt: of all tasks, or of those in some control groups of version 2 and in
 * groups below these. Groups are named by paths, and come and go. So nothing is held on to: a
 * group is asked for its path at its first miss, and what came of it is kept by its id. Ids
 * are never used again, and groups of version 2 are neither moved nor renamed.
 */
#include <linux/cgroup.h>
#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "groups.h"

/* Where they are mounted, which may stand before a path. */
#define MOUNTED		"/sys/fs/cgroup"

/* Bits of the cache's size, in groups. On a collision, the newer replaces the older. */
#define KNOWN_BITS	8

/**
 * struct scope - the control groups whose tasks adapt
 * @rcu: for those who are still looking
 * @known: ids of groups, each with whether it adapts in the lowest bit
 * @lock: of @path
 * @path: of the group that is asked
 * @names: paths with commas between them
 */
struct scope {
	struct rcu_head rcu;
	atomic64_t known[1 << KNOWN_BITS];
	spinlock_t lock;	/* of the path */
	char path[PATH_MAX];
	char names[];
};

/* NULL if all adapt. Parameters of a module are changed, and shown, one after the other. */
static struct scope __rcu *scope;

DEFINE_STATIC_KEY_FALSE(groups_named);

#ifdef CONFIG_CGROUPS
/* Is the group of a path this one, or below it? */
static bool is_below(const char *path, const char *name, size_t length)
{
	size_t mounted = strlen(MOUNTED);

	if (length >= mounted && !strncmp(name, MOUNTED, mounted) &&
	    (length == mounted || name[mounted] == '/')) {
		name += mounted;
		length -= mounted;
	}
	for (; length && *name == '/'; length--)
		name++;
	while (length && name[length - 1] == '/')
		length--;
	path++;
	return !length || (!strncmp(path, name, length) &&
			   (!path[length] || path[length] == '/'));
}

static bool is_named(const char *path, const char *names)
{
	size_t length;

	do {
		length = strcspn(names, ",");
		if (is_below(path, names, length))
			return true;
		names += length;
	} while (*names++);
	return false;
}

static bool ask(struct scope *named, struct cgroup *group)
{
	bool adapts;
	int length;

	spin_lock(&named->lock);
	length = kernfs_path(group->kn, named->path, sizeof(named->path));
	adapts = length > 0 && length < sizeof(named->path) &&
		 is_named(named->path, named->names);
	spin_unlock(&named->lock);
	return adapts;
}

bool named_group_adapts(void)
{
	struct cgroup *group;
	struct scope *named;
	bool adapts = true;
	atomic64_t *known;
	u64 found;

	/* Also keeps the group alive if the task moves. */
	rcu_read_lock();
	named = rcu_dereference(scope);
	if (named) {
		group = task_dfl_cgroup(current);
		known = &named->known[hash_64(cgroup_id(group), KNOWN_BITS)];
		found = atomic64_read(known);
		if (found >> 1 != cgroup_id(group)) {
			found = cgroup_id(group) << 1 | ask(named, group);
			atomic64_set(known, found);
		}
		adapts = found & 1;
	}
	rcu_read_unlock();
	return adapts;
}

static int require_groups(void)
{
	return 0;
}
#else
bool named_group_adapts(void)
{
	return true;
}

static int require_groups(void)
{
	pr_err("groups: this kernel has no control groups.\n");
	return -EOPNOTSUPP;
}
#endif

/* Take names without what is around them. Returns an ERR_PTR() if it fails. */
static struct scope *parse(const char *text)
{
	size_t length = strlen(text);
	struct scope *new;

	if (length && text[length - 1] == '\n')
		length--;
	if (!length || *text == ',' || text[length - 1] == ',' || strnstr(text, ",,", length) ||
	    strnchr(text, length, ' ') || strnchr(text, length, '\n')) {
		pr_err("groups: 'all', or paths below " MOUNTED " with commas between them.\n");
		return ERR_PTR(-EINVAL);
	}
	new = kzalloc(struct_size(new, names, length + 1), GFP_KERNEL);
	if (!new)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&new->lock);
	memcpy(new->names, text, length);
	return new;
}

/* Have tasks in the groups of @new adapt, or all. */
static void replace_scope(struct scope *new)
{
	struct scope *old = rcu_replace_pointer(scope, new, true);

	if (new)
		static_branch_enable(&groups_named);
	else
		static_branch_disable(&groups_named);
	kfree_rcu(old, rcu);
}

static int set_scope(const char *text, const struct kernel_param *param)
{
	struct scope *new = NULL;
	int err;

	if (!sysfs_streq(text, "all")) {
		err = require_groups();
		if (err)
			return err;
		new = parse(text);
		if (IS_ERR(new))
			return PTR_ERR(new);
	}
	replace_scope(new);
	return 0;
}

static int get_scope(char *text, const struct kernel_param *param)
{
	const struct scope *named = rcu_dereference_protected(scope, true);

	return sysfs_emit(text, "%s\n", named ? named->names : "all");
}

/* When the module goes, or does not load. Nobody looks then. */
static void free_scope(void *arg)
{
	kfree(rcu_dereference_protected(scope, true));
}

static const struct kernel_param_ops groups_ops = {
	.set = set_scope,
	.get = get_scope,
	.free = free_scope,
};
module_param_cb(groups, &groups_ops, NULL, 0644);
MODULE_PARM_DESC(groups, "whose misses adapt: all, which is the default, or of control groups of version 2 and those below them, paths with commas between them");
