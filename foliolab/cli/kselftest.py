# SPDX-License-Identifier: GPL-2.0-only
"""``lab kselftest``: the kernel's own mm selftests, on our kernel and on the control."""

import argparse
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from foliolab.cli.machine import add_kernels, add_machine, machine
from foliolab.experiment.machine import machine_name
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.kernel.name import PATCHED, UNPATCHED, parse_name
from foliolab.kernel.series import check_names
from foliolab.kernel.source import obtain
from foliolab.kselftest.ktap import Verdict, worse, worst
from foliolab.kselftest.run import EXIT_STATUS, Result, build_programs, run_test
from foliolab.kselftest.suite import LEFT_OUT, chosen
from foliolab.progress import Reporter
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table

Results = Mapping[str, Mapping[str, Result]]
"""Of each test on each kernel: command -> the kernel's name -> result."""

_MORE_BOOTS = 5


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "run the kernel's own mm selftests on the unpatched kernel and on ours, or on any others, and compare"
    parser = commands.add_parser(
        "kselftest",
        help=text,
        description=f"{text.capitalize()}. The exit status is 1 if another one fails what the first passes.",
        epilog="example: ./lab kselftest --test soft-dirty --test cow",
    )
    add_comparison(parser)
    parser.set_defaults(handler=handle)


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """The options of commands that run tests of others on two kernels."""
    parser.add_argument("--test", metavar="NAME", action="append", default=[], help="only this; can be repeated")
    add_kernels(parser, f"run them on this one; the others are compared with the first ({UNPATCHED} and {PATCHED})")
    parser.add_argument(
        "--with", dest="extras", choices=OPTIONAL, action="append", default=[], help="build this into the kernels"
    )
    parser.add_argument("--profile", choices=PROFILES, default="lab", help="of these kernels")
    add_machine(parser)
    parser.add_argument("--again", action="store_true", help="run what was run before, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument("--json", action="store_true", help="print one JSON object")


def handle(arguments: argparse.Namespace) -> int:
    arch, page_size = machine(arguments)
    report = Reporter()
    tests = {test.command: test for test in chosen(arguments.test, arch.name)}
    source = obtain(report)
    kernels = kernels_of(arguments, report)
    programs = build_programs(arch, source, tests.values(), report)

    def one(command: str, kernel: BuiltKernel, boot: int) -> Result:
        return run_test(tests[command], kernel, programs, report, boot, again=arguments.again)

    results = run_all("mm selftests", tests, kernels, one, report)
    title = f"mm selftests of Linux {source.version}, {machine_name(arch.name, page_size)}"
    return show(arguments, title, results, LEFT_OUT)


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


def run_all(
    what: str,
    tests: Collection[str],
    kernels: Sequence[BuiltKernel],
    run: Callable[[str, BuiltKernel, int], Result],
    report: Reporter,
) -> Results:
    """Every test on every kernel; ``run`` is given a test, a kernel and the number of the boot."""
    results: dict[str, dict[str, Result]] = {}
    with report.task(f"running {what}", len(tests) * len(kernels)) as task:
        for test in tests:

            def one(kernel: BuiltKernel, boot: int, test: str = test) -> Result:
                task.note(f"{test}, {kernel.name}")
                return run(test, kernel, boot)

            results[test] = compared(kernels, one)
            task.advance(len(kernels))
    return results


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
        _print(title, results, left_out)
    return 1 if any(map(regressions, results.values())) else 0


def compared(kernels: Sequence[BuiltKernel], run: Callable[[BuiltKernel, int], Result]) -> dict[str, Result]:
    """The result of a test on each kernel.

    Some tests are a matter of luck. What others fail counts, and then the first one gets more boots to fail it, too.
    One in which a subtest did not run excuses nothing but that it does not run on the others.
    """
    found = {kernel.name: run(kernel, 1) for kernel in kernels}
    for boot in range(2, 2 + _MORE_BOOTS):
        if not regressions(found):
            break
        more = run(kernels[0], boot)
        so_far = found[kernels[0].name]
        lost = so_far.lost | (so_far.subtests.keys() ^ more.subtests.keys())
        found[kernels[0].name] = replace(more, subtests=worst(so_far.subtests, more.subtests), lost=lost)
    return found


def regressions(found: Mapping[str, Result]) -> list[str]:
    """The subtests that end worse on any kernel than on the first, which the others are compared with."""
    first, *others = found.values()
    names = dict.fromkeys(name for other in others for name in worse(first.subtests, other.subtests, first.lost))
    return list(names)


def _facts(found: Mapping[str, Result]) -> dict[str, object]:
    return {kernel: result.subtests for kernel, result in found.items()} | {"worse": regressions(found)}


def _counts(result: Result) -> str:
    return " / ".join(str(result.count(verdict)) for verdict in reversed(Verdict))


def _rows(results: Results) -> list[tuple[str, ...]]:
    rows = []
    for command, found in results.items():
        verdict = ("WORSE" if regressions(found) else "ok",) if len(found) > 1 else ()
        rows.append((command, *map(_counts, found.values()), *verdict))
    return rows


def _header(results: Results) -> list[str]:
    kernels = list(next(iter(results.values())))
    return ["test", *(f"{name}: pass / skip / fail" for name in kernels), *(["verdict"] if len(kernels) > 1 else [])]


def columns(results: Results) -> list[Column]:
    """The table as columns: tests, how many subtests pass on each kernel, and the verdict."""
    titles = [name.rpartition(": ") for name in _header(results)]
    cells = list(zip(*_rows(results), strict=True))
    return [Column((titles[i][0], titles[i][2]), cells[i], 0, left=not i) for i in range(len(titles))]


def _not_passed(results: Results) -> list[str]:
    """A line for each subtest that fails on any kernel, or ends worse than on the first."""
    lines = []
    for command, found in results.items():
        names = dict.fromkeys(name for result in found.values() for name in result.subtests)
        for name in names:
            verdicts = {kernel: result.subtests.get(name, "absent") for kernel, result in found.items()}
            if Verdict.FAIL in verdicts.values() or name in regressions(found):
                how = ", ".join(f"{kernel} {verdict}" for kernel, verdict in verdicts.items())
                lines.append(f"{command}: {name} ({how})")
    return lines


def markdown(title: str, results: Results, left_out: Mapping[str, str], groups: Mapping[str, str] | None = None) -> str:
    """One section: a table, what did not pass, what is left out.

    A row has the subtests of a test or, with ``groups``, which name one for each test, the tests of a group. Kernels
    stand in their order where they differ.
    """
    kernels = " → ".join(next(iter(results.values())))
    lines = [f"## {title}", "", f"| test | {kernels}: pass / skip / fail | verdict |", "| --- | --- | --- |"]
    rows: dict[str, list[Mapping[str, Result]]] = {}
    for test, found in results.items():
        rows.setdefault(groups[test] if groups else f"`{test}`", []).append(found)
    for name, members in rows.items():
        ends: list[str] = []
        for kernel in members[0]:
            verdicts = [
                verdict
                for found in members
                for subtest, verdict in found[kernel].subtests.items()
                if not groups or subtest == EXIT_STATUS
            ]
            ends.append(" / ".join(str(verdicts.count(verdict)) for verdict in reversed(Verdict)))
        ending = "WORSE" if any(map(regressions, members)) else "ok" if len(ends) > 1 else "not compared"
        lines.append(_row((name, " → ".join(ends) if len(set(ends)) > 1 else ends[0], ending)))
    lines += ["", "What fails:", "", *(f"- {line}" for line in _not_passed(results) or ["nothing"])]
    lines += ["", "Left out:", "", *(f"- {names}: {reason}" for names, reason in left_out.items())]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _print(title: str, results: Results, left_out: Mapping[str, str]) -> None:
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    print_table(console, columns(results), ["red" if row[-1] == "WORSE" else "" for row in _rows(results)])
    for line in _not_passed(results):
        console.print(Text(line))
    for found in results.values():
        if regressions(found):
            console.print(Text(f"logs: {', '.join(str(result.log) for result in list(found.values())[1:])}"))
    console.print(Text(f"Left out, for reasons that --markdown tells: {', '.join(left_out)}", style="dim"))
