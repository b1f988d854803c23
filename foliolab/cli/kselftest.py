# SPDX-License-Identifier: GPL-2.0-only
"""Run the kernel's own mm selftests on the unpatched kernel and on ours, or on any others, and compare. The exit status
is 1 if another one fails what the first passes.

example: ./lab kselftest --test soft-dirty --test cow
"""

import argparse

from foliolab.arch import machine_name
from foliolab.cli.options import machine
from foliolab.cli.suite import add_suite, kernels_of, show
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.source import obtain
from foliolab.kselftest.run import build_programs, run_test
from foliolab.kselftest.suite import chosen, selftests
from foliolab.progress import Reporter
from foliolab.suites.result import Result, run_all

add_options = add_suite


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    report = Reporter()
    tests = {test.command: test for test in chosen(arguments.test, arch.name)}
    kernels = kernels_of(arguments, report)
    source = obtain(report)
    programs = build_programs(arch, source, tests.values(), report)

    def one(command: str, kernel: BuiltKernel, boot: int) -> Result:
        return run_test(tests[command], kernel, programs, report, boot, again=arguments.again)

    results = run_all("mm selftests", tests, kernels, one, report)
    title = f"mm selftests of Linux {source.version}, {machine_name(arch.name, page_size)}"
    return show(arguments, title, results, selftests().left_out)
