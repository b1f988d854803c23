# SPDX-License-Identifier: GPL-2.0-only
"""Run LTP's tests of mapped files and memory on the unpatched kernel and on ours, and compare. The exit status is 1 if
another one fails what the first passes.

example: ./lab ltp --source ~/ltp --test readahead02
"""

import argparse
from pathlib import Path

from foliolab.arch import machine_name
from foliolab.cli.options import machine
from foliolab.cli.suite import add_suite, kernels_of, show
from foliolab.kernel.built import BuiltKernel
from foliolab.ltp.build import build_ltp, read_tree
from foliolab.ltp.run import guest_config, run_test
from foliolab.ltp.suite import LEFT_OUT, chosen
from foliolab.progress import Reporter
from foliolab.suites.result import Result, run_all


def add_options(parser: argparse.ArgumentParser) -> None:
    add_suite(parser)
    parser.add_argument(
        "--source", type=Path, required=True, metavar="DIR", help="a git tree of LTP, of which its commit is compiled"
    )


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    report = Reporter()
    tree = read_tree(arguments.source)
    tests = {test.name: test for test in chosen(tree.tests, arguments.test)}
    arguments.extras = [*arguments.extras, "xfs"]  # where folios are large
    kernels = kernels_of(arguments, report)
    ltp = build_ltp(tree, arch, report)
    guests = {kernel.name: guest_config(kernel, ltp, report) for kernel in kernels}

    def one(name: str, kernel: BuiltKernel, boot: int) -> Result:
        return run_test(tests[name], kernel, guests[kernel.name], ltp, boot, again=arguments.again)

    results = run_all("LTP's tests", tests, kernels, one, report)
    title = f"LTP {ltp.version} on Linux {kernels[0].version}, {machine_name(arch.name, page_size)}"
    groups = {name: f"runtest/{test.group}" for name, test in tests.items()}
    return show(arguments, title, results, LEFT_OUT, groups)
