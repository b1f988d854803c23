// SPDX-License-Identifier: GPL-2.0-only
/*
 * The adaptive window of mapped files for kernels without it: a plain callback of ftrace
 * at the entry of six functions. It replaces no function and never sleeps, so that the
 * module can go at any time.
 */
#include <linux/ftrace.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/security.h>

#include "faults.h"
#include "known_files.h"

#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "The module has to see arguments of functions: CONFIG_DYNAMIC_FTRACE_WITH_ARGS."
#endif
#ifndef CONFIG_SECURITY
#error "The module follows security_mmap_file() and security_inode_free(): CONFIG_SECURITY."
#endif
#ifndef CONFIG_KPROBES
#error "The module asks where functions are: CONFIG_KPROBES."
#endif
#ifdef CONFIG_PREEMPT_RT
#error "The module takes spinlocks where a real-time kernel does not allow that."
#endif

/* Of those functions that headers declare. Arguments of others are checked when they come. */
static_assert(__same_type(&filemap_fault, (vm_fault_t (*)(struct vm_fault *))0),
	      "this kernel has another filemap_fault() than the module knows");
static_assert(__same_type(&page_cache_async_ra,
			  (void (*)(struct readahead_control *, struct folio *,
				    unsigned long))0),
	      "this kernel has another page_cache_async_ra() than the module knows");
static_assert(__same_type(&security_mmap_file,
			  (int (*)(struct file *, unsigned long, unsigned long))0),
	      "this kernel has another security_mmap_file() than the module knows");
static_assert(__same_type(&security_inode_free, (void (*)(struct inode *))0),
	      "this kernel has another security_inode_free() than the module knows");

static bool adaptive = true;
module_param(adaptive, bool, 0644);
MODULE_PARM_DESC(adaptive, "whether misses adapt; if not, the kernel reads as without this module");

static int get_statistics(char *text, const struct kernel_param *param)
{
	static const char * const names[NR_FAULT_EVENTS] = {
		[FAULT_MISSES] = "misses",
		[FAULT_AHEAD] = "ahead",
		[FAULT_MARKS] = "marks",
		[FAULT_UNKNOWN] = "unknown",
		[FAULT_LOST] = "lost",
	};
	unsigned int i;
	int size = 0;

	for (i = 0; i < NR_FAULT_EVENTS; i++)
		size += sysfs_emit_at(text, size, "%s %ld\n", names[i],
				      atomic_long_read(&fault_events[i]));
	return size + sysfs_emit_at(text, size, "files %lu\n", known_files_count());
}

static const struct kernel_param_ops statistics_ops = {
	.get = get_statistics,
};
module_param_cb(statistics, &statistics_ops, NULL, 0444);
MODULE_PARM_DESC(statistics, "what happened since the module was loaded");

/* An argument of the function that was entered. */
static void *argument(struct ftrace_regs *regs, unsigned int number)
{
	return (void *)ftrace_regs_get_argument(regs, number);
}

static void on_fput(struct ftrace_regs *regs)
{
	known_file_release_program(argument(regs, 0));
}

/* Each inode comes here once when it goes. A compiler may inline what calls this. */
static void on_inode_free(struct ftrace_regs *regs)
{
	const struct inode *inode = argument(regs, 0);

	known_file_release(&inode->i_data);
}

static void on_mmap(struct ftrace_regs *regs)
{
	struct file *file = argument(regs, 0);
	unsigned long protection = (unsigned long)argument(regs, 1);

	/* Loaders map all of a program before they touch it. */
	if (file && protection & PROT_EXEC)
		known_file_set_program(file);
}

static void on_read(struct ftrace_regs *regs)
{
	fault_reads(argument(regs, 0), argument(regs, 1));
}

static void on_mark(struct ftrace_regs *regs)
{
	fault_at_mark(argument(regs, 0), argument(regs, 1));
}

static void on_fault(struct ftrace_regs *regs)
{
	fault_begins(argument(regs, 0), READ_ONCE(adaptive));
}

/**
 * struct hook - a function that is followed
 * @function: its name
 * @entered: what to do
 * @address: where it begins
 */
struct hook {
	const char *function;
	void (*entered)(struct ftrace_regs *regs);
	unsigned long address;
};

static struct hook hooks[] = {
	{ "filemap_fault", on_fault },
	{ "page_cache_ra_order", on_read },
	{ "page_cache_async_ra", on_mark },
	{ "__fput", on_fput },
	{ "security_mmap_file", on_mmap },
	{ "security_inode_free", on_inode_free },
};

/* Between the begin of a function and what ftrace patches: at most a landing pad for branches. */
#define MAX_ENTRY_OFFSET	16

static void on_entry(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		     struct ftrace_regs *regs)
{
	struct hook *hook;

	for (hook = hooks; hook < hooks + ARRAY_SIZE(hooks); hook++) {
		if (ip - hook->address <= MAX_ENTRY_OFFSET) {
			hook->entered(regs);
			return;
		}
	}
}

/*
 * One for all functions: unloading waits for each until nobody is in a callback. These may
 * be preempted. Without FTRACE_OPS_FL_RECURSION, ftrace never leaves one out: none enters a
 * function that is followed, and interrupts do not either. With FTRACE_OPS_FL_PERMANENT it
 * refuses to be switched off meanwhile.
 */
static struct ftrace_ops entries = {
	.func = on_entry,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/* A kprobe that is never armed tells; for ftrace, names take half a minute in a slow guest. */
static unsigned long address_of(const char *function)
{
	struct kprobe probe = {
		.symbol_name = function,
		.flags = KPROBE_FLAG_DISABLED,
	};
	unsigned long address;

	if (register_kprobe(&probe))
		return 0;
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	return address;
}

static int follow_functions(void)
{
	struct hook *hook;
	int err;

	for (hook = hooks; hook < hooks + ARRAY_SIZE(hooks); hook++) {
		hook->address = address_of(hook->function);
		err = hook->address ? ftrace_set_filter_ip(&entries, hook->address, 0, 0) :
				      -ENOENT;
		if (err) {
			pr_err("This kernel has no function %s that ftrace can follow.\n",
			       hook->function);
			return err;
		}
	}
	err = register_ftrace_function(&entries);
	if (err == -EBUSY)
		pr_err("ftrace is off; 'sysctl kernel.ftrace_enabled=1' switches it on.\n");
	else if (err)
		pr_err("ftrace does not follow the functions: error %d.\n", err);
	return err;
}

static int __init start(void)
{
	int err;

	faults_init();
	err = known_files_init();
	if (err)
		return err;
	err = follow_functions();
	if (err) {
		ftrace_free_filter(&entries);
		known_files_exit();
	}
	return err;
}

static void __exit stop(void)
{
	/* Waits until nobody is in a callback. */
	unregister_ftrace_function(&entries);
	ftrace_free_filter(&entries);
	known_files_exit();
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("Adaptive window of mapped files, for kernels without it");
MODULE_LICENSE("GPL");
