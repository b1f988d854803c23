# SPDX-License-Identifier: GPL-2.0-only
"""What the commands have in common that run tests of others on kernels and compare how they end."""

import argparse
import json
from collections.abc import Mapping

from foliolab.cli.options import add_extras, add_json, add_kernels, add_machine, add_profile, machine
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.name import PATCHED, UNPATCHED, parse_name
from foliolab.kernel.series import check_names
from foliolab.progress import Reporter
from foliolab.report.suites import markdown, print_results
from foliolab.suites.result import Result, Results, regressions


def add_suite(parser: argparse.ArgumentParser) -> None:
    """Which tests, which kernels, and how what comes out is printed."""
    parser.add_argument("--test", metavar="NAME", action="append", default=[], help="only this; can be repeated")
    add_kernels(parser, f"run them on this one; the others are compared with the first ({UNPATCHED} and {PATCHED})")
    add_extras(parser)
    add_profile(parser)
    add_machine(parser)
    parser.add_argument("--again", action="store_true", help="run what was run before, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    add_json(form)


def kernels_of(arguments: argparse.Namespace, report: Reporter) -> list[BuiltKernel]:
    """Those that are compared, built; the first is what others are compared with."""
    arch, page_size = machine(arguments)
    names = [parse_name(name).text for name in arguments.kernels or (UNPATCHED, PATCHED)]
    requests = [
        KernelRequest(arch, name, arguments.profile, tuple(arguments.extras), page_size=page_size)
        for name in dict.fromkeys(names)
    ]
    check_names([request.kernel for request in requests], report)
    return [build(request, report) for request in requests]


def show(
    arguments: argparse.Namespace,
    title: str,
    results: Results,
    left_out: Mapping[str, str],
    groups: Mapping[str, str] | None = None,
) -> int:
    """Print what came out, as the options ask for it; returns the exit status."""
    if arguments.json:
        print(json.dumps({"title": title, "tests": {name: _facts(found) for name, found in results.items()}}))
    elif arguments.markdown:
        print(markdown(title, results, left_out, groups), end="")
    else:
        print_results(title, results, left_out)
    return 1 if any(map(regressions, results.values())) else 0


def _facts(found: Mapping[str, Result]) -> dict[str, object]:
    remarks = {kernel: result.remark for kernel, result in found.items() if result.remark}
    subtests = {kernel: result.subtests for kernel, result in found.items()}
    return subtests | {"worse": regressions(found), "remarks": remarks}
