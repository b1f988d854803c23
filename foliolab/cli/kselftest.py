# SPDX-License-Identifier: GPL-2.0-only
"""Run a test suite of others on the unpatched kernel and on ours, or on any others, and compare how its tests end.
Suites are the kernel's own mm selftests (mm), LTP's tests of mapped files and memory from a git tree of yours (ltp),
and Debian's stress-ng and trinity as far as they map and change memory. The exit status is 1 if another kernel fails
what the first passes.

example: ./lab kselftest --suite trinity --profile debug --with kcsan --seconds 600 --seed 7
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from foliolab.arch import Architecture, machine_name
from foliolab.cli.options import add_extras, add_json, add_kernels, add_machine, add_profile, machine
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.name import PATCHED, UNPATCHED, parse_name
from foliolab.kernel.series import check_names
from foliolab.progress import say
from foliolab.report.suites import markdown, print_results
from foliolab.suites.ltp import ltp
from foliolab.suites.mm import mm_selftests
from foliolab.suites.packages import packaged
from foliolab.suites.result import Result, regressions
from foliolab.suites.suite import ForeignSuite, SuiteOptions

_SUITES: Mapping[str, Callable[[SuiteOptions, Architecture], ForeignSuite]] = {
    "mm": mm_selftests,
    "ltp": ltp,
    "stress-ng": partial(packaged, "stress-ng"),
    "trinity": partial(packaged, "trinity"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", choices=_SUITES, default="mm", help="(default: mm)")
    parser.add_argument("--test", metavar="NAME", action="append", default=[], help="only this; can be repeated")
    text = "of ltp, which needs it: a git tree of LTP, of which its commit is compiled"
    parser.add_argument("--source", type=Path, metavar="DIR", help=text)
    text = "of stress-ng and trinity: how long each test takes, by the guest's clock (default: 60)"
    parser.add_argument("--seconds", type=int, metavar="N", help=text)
    text = "of stress-ng and trinity: what their random numbers begin with (default: 1)"
    parser.add_argument("--seed", type=int, metavar="N", help=text)
    add_kernels(parser, f"run them on this one; the others are compared with the first ({UNPATCHED} and {PATCHED})")
    add_extras(parser)
    add_profile(parser)
    add_machine(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    add_json(form)


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    requests = requests_of(arguments)
    check_names([request.kernel for request in requests])
    asked = SuiteOptions(tuple(arguments.test), arguments.source, arguments.seconds, arguments.seed)
    suite = _SUITES[arguments.suite](asked, arch)
    kernels = [build(request) for request in requests]

    results = suite.run_all(f"tests of {arguments.suite}", kernels)
    title = f"{suite.title.format(version=kernels[0].version)}, {machine_name(arch.name, page_size)}"
    if arguments.json:
        print(json.dumps({"title": title, "tests": {name: _facts(found) for name, found in results.items()}}))
    elif arguments.markdown:
        groups = {name: call.group for name, call in suite.calls.items() if call.group}
        print(markdown(title, results, suite.left_out, groups), end="")
    else:
        print_results(title, results, suite.left_out)
    if suite.what:
        for kernel in kernels:
            done = sum(suite.count(found[kernel.name].log.read_text(errors="replace")) for found in results.values())
            say(f"{kernel.name}: {done:,} {suite.what} in all.")
    return 1 if any(map(regressions, results.values())) else 0


def requests_of(arguments: argparse.Namespace) -> list[KernelRequest]:
    """The kernels that are compared; the first is what others are compared with."""
    arch, page_size = machine(arguments)
    names = [parse_name(name).text for name in arguments.kernels or (UNPATCHED, PATCHED)]
    # Elsewhere than in the kernel's own tests, files are on XFS, where folios are large.
    extras = (*arguments.extras, *(() if arguments.suite == "mm" else ("xfs",)))
    return [KernelRequest(arch, name, arguments.profile, extras, page_size=page_size) for name in dict.fromkeys(names)]


def _facts(found: Mapping[str, Result]) -> dict[str, object]:
    subtests = {kernel: result.subtests for kernel, result in found.items()}
    remarks = {kernel: result.remark for kernel, result in found.items() if result.remark}
    accidents = {kernel: result.accident for kernel, result in found.items() if result.accident}
    logs = {kernel: str(found[kernel].log) for kernel in accidents}
    return subtests | {"worse": regressions(found), "remarks": remarks, "accidents": accidents, "logs": logs}
