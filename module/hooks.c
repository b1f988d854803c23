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
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/security.h>

#include "devices.h"
#include "faults.h"
#include "known_files.h"
#include "types.h"

#ifndef CONFIG_DYNAMIC_FTRACE_WITH_ARGS
#error "The module has to see arguments of functions: CONFIG_DYNAMIC_FTRACE_WITH_ARGS."
#endif
#ifndef CONFIG_SECURITY
#error "The module follows security_inode_free(): CONFIG_SECURITY."
#endif
#ifndef CONFIG_PERF_EVENTS
#error "The module follows perf_event_mmap(): CONFIG_PERF_EVENTS."
#endif
#ifndef CONFIG_KPROBES
#error "The module asks where functions are: CONFIG_KPROBES."
#endif
#ifdef CONFIG_PREEMPT_RT
#error "The module takes spinlocks where a real-time kernel does not allow that."
#endif

/* Of those functions that headers declare. Of the others, the kernel's BTF tells. */
static_assert(__same_type(&filemap_fault, (vm_fault_t (*)(struct vm_fault *))0),
	      "this kernel has another filemap_fault() than the module knows");
static_assert(__same_type(&page_cache_async_ra,
			  (void (*)(struct readahead_control *, struct folio *,
				    unsigned long))0),
	      "this kernel has another page_cache_async_ra() than the module knows");
static_assert(__same_type(&perf_event_mmap, (void (*)(struct vm_area_struct *))0),
	      "this kernel has another perf_event_mmap() than the module knows");
static_assert(__same_type(&security_inode_free, (void (*)(struct inode *))0),
	      "this kernel has another security_inode_free() than the module knows");

static bool adaptive = true;
module_param(adaptive, bool, 0644);
MODULE_PARM_DESC(adaptive, "whether misses adapt; if not, the kernel reads as without this module");

static int get_statistics(char *text, const struct kernel_param *param)
{
	int size = show_events(text);

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

/*
 * Comes when a mapping is complete or has another protection, with the file in which faults
 * read, be it below an overlay. Loaders map all of a program before they touch it.
 */
static void on_mmap(struct ftrace_regs *regs)
{
	const struct vm_area_struct *vma = argument(regs, 0);

	if (vma->vm_file && vma->vm_flags & VM_EXEC)
		known_file_set_program(vma->vm_file);
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
	if (fault_begins(argument(regs, 0), READ_ONCE(adaptive)) || !xchg(&adaptive, false))
		return;
	pr_warn("Switched off: this kernel reads for faults by other functions than the module follows.\n");
}

static const struct known_function functions[] = {
	{ "filemap_fault", { "vm_fault" } },
	{ "page_cache_ra_order", { "readahead_control", "file_ra_state" } },
	{ "page_cache_async_ra", { "readahead_control", "folio" } },
	{ "__fput", { "file" } },
	{ "perf_event_mmap", { "vm_area_struct" } },
	{ "security_inode_free", { "inode" } },
	{}
};

/**
 * struct hook - a function that is followed
 * @entered: what to do
 * @address: where it begins
 */
struct hook {
	void (*entered)(struct ftrace_regs *regs);
	unsigned long address;
};

/* In the order of @functions. */
static struct hook hooks[] = {
	{ on_fault }, { on_read }, { on_mark }, { on_fput }, { on_mmap }, { on_inode_free },
};

static_assert(ARRAY_SIZE(hooks) + 1 == ARRAY_SIZE(functions));

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
	unsigned long address;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		address = address_of(functions[i].name);
		err = address ? ftrace_set_filter_ip(&entries, address, 0, 0) : -ENOENT;
		if (err) {
			pr_err("This kernel has no function %s that ftrace can follow.\n",
			       functions[i].name);
			return err;
		}
		hooks[i].address = address;
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

	err = check_types(functions);
	if (err)
		return err;
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
	int err = unregister_ftrace_function(&entries);

	/*
	 * ftrace has given up after an error of its own, and functions may still come here. Who
	 * unloads cannot be told that it fails; only as long as this waits does the code stay.
	 */
	if (err) {
		WRITE_ONCE(adaptive, false);
		pr_emerg("ftrace does not let go of the functions: error %d. The module stays until the next boot, switched off.\n",
			 err);
		for (;;)
			schedule_timeout_idle(MAX_SCHEDULE_TIMEOUT);
	}
	ftrace_free_filter(&entries);
	known_files_exit();
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("Adaptive window of mapped files, for kernels without it");
/* As in dkms.conf. */
MODULE_VERSION("9");
MODULE_LICENSE("GPL");
