// SPDX-License-Identifier: GPL-2.0-only
/*
 * The adaptive window of mapped files for kernels without it: plain callbacks of ftrace
 * at the entry of five functions. None of them replaces a function, or sleeps, so that
 * the module can go at any time.
 */
#include <linux/ftrace.h>
#include <linux/init.h>
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
#error "The module follows security_mmap_file(): CONFIG_SECURITY."
#endif
#ifdef CONFIG_PREEMPT_RT
#error "The module takes spinlocks where a real-time kernel does not allow that."
#endif

/* Of those functions that headers declare. Arguments of others are checked when they come. */
static_assert(__same_type(&filemap_fault, (vm_fault_t (*)(struct vm_fault *))0));
static_assert(__same_type(&page_cache_async_ra,
			  (void (*)(struct readahead_control *, struct folio *,
				    unsigned long))0));
static_assert(__same_type(&security_mmap_file,
			  (int (*)(struct file *, unsigned long, unsigned long))0));

/* What a request costs at most, in KiB read. */
#define MAX_REQUEST_KB	(64 << 10)

static bool adaptive = true;
module_param(adaptive, bool, 0644);
MODULE_PARM_DESC(adaptive, "whether misses adapt; if not, the kernel reads as without this module");

static unsigned int request_kb = 128;

static int set_request_kb(const char *text, const struct kernel_param *param)
{
	return param_set_uint_minmax(text, param, 1, MAX_REQUEST_KB);
}

static const struct kernel_param_ops request_kb_ops = {
	.set = set_request_kb,
	.get = param_get_uint,
};
module_param_cb(request_kb, &request_kb_ops, &request_kb, 0644);
MODULE_PARM_DESC(request_kb, "what a read request costs, in KiB read: 1 to 65536, default 128");

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

static void on_fput(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		    struct ftrace_regs *regs)
{
	known_file_release(argument(regs, 0));
}

static void on_mmap(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		    struct ftrace_regs *regs)
{
	struct file *file = argument(regs, 0);
	unsigned long protection = (unsigned long)argument(regs, 1);

	/* Loaders map all of a program before they touch it. */
	if (file && protection & PROT_EXEC)
		known_file_set_program(file);
}

static void on_read(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		    struct ftrace_regs *regs)
{
	fault_reads(argument(regs, 0), argument(regs, 1),
		    max(READ_ONCE(request_kb) >> (PAGE_SHIFT - 10), 1U));
}

static void on_mark(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		    struct ftrace_regs *regs)
{
	fault_at_mark(argument(regs, 0), argument(regs, 1));
}

static void on_fault(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		     struct ftrace_regs *regs)
{
	fault_begins(argument(regs, 0), READ_ONCE(adaptive));
}

/*
 * Callbacks may be preempted. Without FTRACE_OPS_FL_RECURSION, ftrace never leaves one out:
 * none enters a function that is followed, and interrupts do not either. With
 * FTRACE_OPS_FL_PERMANENT it refuses to be switched off meanwhile.
 */
#define HOOK(where, callback) \
	{ .function = (where), .ops = { .func = (callback), .flags = FTRACE_OPS_FL_PERMANENT } }

/* In the order in which they begin. Before the last one nothing is read otherwise. */
static struct hook {
	char *function;
	struct ftrace_ops ops;
} hooks[] = {
	HOOK("__fput", on_fput),
	HOOK("security_mmap_file", on_mmap),
	HOOK("filemap_fault", on_fault),
	HOOK("page_cache_async_ra", on_mark),
	HOOK("page_cache_ra_order", on_read),
};

static void remove_hooks(unsigned int number)
{
	while (number--) {
		/* Waits until nobody is in the callback. */
		unregister_ftrace_function(&hooks[number].ops);
		ftrace_free_filter(&hooks[number].ops);
	}
}

static int add_hook(struct hook *hook)
{
	int err;

	err = ftrace_set_filter(&hook->ops, hook->function, strlen(hook->function), 1);
	if (err) {
		pr_err("This kernel has no function %s that ftrace can follow.\n", hook->function);
		return err;
	}
	err = register_ftrace_function(&hook->ops);
	if (err) {
		ftrace_free_filter(&hook->ops);
		if (err == -EBUSY)
			pr_err("ftrace is off; 'sysctl kernel.ftrace_enabled=1' switches it on.\n");
		else
			pr_err("ftrace does not follow %s: error %d.\n", hook->function, err);
	}
	return err;
}

static int __init start(void)
{
	unsigned int i;
	int err;

	faults_init();
	err = known_files_init();
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		err = add_hook(&hooks[i]);
		if (err) {
			remove_hooks(i);
			known_files_exit();
			return err;
		}
	}
	return 0;
}

static void __exit stop(void)
{
	remove_hooks(ARRAY_SIZE(hooks));
	known_files_exit();
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("Adaptive window of mapped files, for kernels without it");
MODULE_LICENSE("GPL");
