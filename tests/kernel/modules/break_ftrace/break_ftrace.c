// SPDX-License-Identifier: GPL-2.0-only
/* Has ftrace do to another module what a kernel might that differs, or that fails. */
#include <linux/ftrace.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static unsigned long ops;
module_param(ops, ulong, 0);
MODULE_PARM_DESC(ops, "the other module's struct ftrace_ops, which is to miss a function");

static unsigned long function;
module_param(function, ulong, 0);
MODULE_PARM_DESC(function, "that function");

static unsigned long kill;
module_param(kill, ulong, 0);
MODULE_PARM_DESC(kill, "ftrace_kill(), which is to be called");

static int __init break_ftrace(void)
{
	if (kill)
		((void (*)(void))kill)();
	return ops ? ftrace_set_filter_ip((struct ftrace_ops *)ops, function, 1, 0) : 0;
}

static void __exit leave(void)
{
}

module_init(break_ftrace);
module_exit(leave);

MODULE_DESCRIPTION("Breaks what another module has of ftrace");
MODULE_LICENSE("GPL");
