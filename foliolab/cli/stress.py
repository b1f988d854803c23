# SPDX-License-Identifier: GPL-2.0-only
"""Run stressors of Debian's stress-ng that map and change memory, on the unpatched kernel and on ours, and
compare. The exit status is 1 if another one fails what the first passes.

example: ./lab stress --profile debug --test mprotect --test mmap --seconds 600
"""

import argparse

from foliolab.arch import machine_name
from foliolab.cli.options import machine
from foliolab.cli.suite import add_suite, kernels_of, show
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.stress.run import guest_config, run_test
from foliolab.stress.suite import chosen, operations
from foliolab.suites.result import Result, run_all


def add_options(parser: argparse.ArgumentParser) -> None:
    add_suite(parser)
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="of the guest's, for each test (60)")


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    report = Reporter()
    tests = {test.name: test for test in chosen(arguments.test, arguments.seconds)}
    arguments.extras = [*arguments.extras, "xfs"]  # where folios are large
    kernels = kernels_of(arguments, report)
    guests = {kernel.name: guest_config(kernel, report) for kernel in kernels}

    def one(name: str, kernel: BuiltKernel, boot: int) -> Result:
        return run_test(tests[name], kernel, guests[kernel.name], boot, again=arguments.again)

    results = run_all("stressors", tests, kernels, one, report)
    title = f"stress-ng on Linux {kernels[0].version}, {machine_name(arch.name, page_size)}"
    status = show(arguments, title, results, {})
    for kernel in kernels:
        done = sum(operations(found[kernel.name].log.read_text(errors="replace")) for found in results.values())
        report.say(f"{kernel.name}: {done:,} operations in {len(tests) * arguments.seconds:,} seconds of the guest's.")
    return status
