# SPDX-License-Identifier: GPL-2.0-only
"""How the tests of a suite end on kernels, as Markdown and on the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from rich.text import Text

from foliolab.grouped import grouped
from foliolab.report.columns import Column
from foliolab.report.markdown import markdown_row
from foliolab.report.terminal import print_table, print_title, terminal
from foliolab.suites.ktap import End
from foliolab.suites.result import EXIT_STATUS, Results, regressions


def _counts(verdicts: Iterable[End]) -> str:
    found = Counter(verdicts)
    return " / ".join(str(found[verdict]) for verdict in reversed(End))


def columns(results: Results) -> list[Column]:
    """The table as columns: tests, how many subtests pass on each kernel, and the verdict."""
    tests = results.values()
    kernels = list(next(iter(tests)))
    found = [Column(("", "test"), tuple(results), 0, left=True)]
    for kernel in kernels:
        counts = tuple(_counts(test[kernel].subtests.values()) for test in tests)
        found.append(Column((kernel, "pass / skip / fail"), counts, 0))
    if len(kernels) > 1:
        found.append(Column(("", "verdict"), tuple("WORSE" if regressions(test) else "ok" for test in tests), 0))
    return found


def _not_passed(results: Results) -> list[str]:
    """A line for each subtest that fails on any kernel, if only in one boot, or ends worse than on the first."""
    lines = []
    for command, found in results.items():
        names = dict.fromkeys(name for result in found.values() for name in result.subtests)
        for name in names:
            verdicts = {kernel: result.subtests.get(name, "absent") for kernel, result in found.items()}
            once = {kernel for kernel, result in found.items() if name in result.once}
            if once or End.FAIL in verdicts.values() or name in regressions(found):
                how = ", ".join(
                    f"{kernel} {verdict}" + " in one boot of 2" * (kernel in once)
                    for kernel, verdict in verdicts.items()
                )
                lines.append(f"{command}: {name} ({how})")
    return lines


def _told(results: Results, what: Literal["accident", "remark"]) -> list[str]:
    """A line for each result that has one of these."""
    each = ((command, *pair) for command, found in results.items() for pair in found.items())
    return [f"{command} ({kernel}): {told}" for command, kernel, result in each if (told := getattr(result, what))]


def markdown(title: str, results: Results, left_out: Mapping[str, str], groups: Mapping[str, str] | None = None) -> str:
    """One section: a table, what did not pass, what is left out.

    A row has the subtests of a test or, with ``groups``, which name one for each test, the tests of a group. Kernels
    stand in their order where they differ.
    """
    kernels = " → ".join(next(iter(results.values())))
    lines = [f"## {title}", "", f"| test | {kernels}: pass / skip / fail | verdict |", "| --- | --- | --- |"]
    for name, tests in grouped(results, lambda test: groups[test] if groups else f"`{test}`").items():
        members = [results[test] for test in tests]
        ends = [
            _counts(
                verdict
                for found in members
                for subtest, verdict in found[kernel].subtests.items()
                if not groups or subtest == EXIT_STATUS
            )
            for kernel in members[0]
        ]
        ending = "WORSE" if any(map(regressions, members)) else "ok" if len(ends) > 1 else "not compared"
        lines.append(markdown_row((name, " → ".join(ends) if len(set(ends)) > 1 else ends[0], ending)))
    lines += ["", "What fails:", "", *(f"- {line}" for line in _not_passed(results) or ["nothing"])]
    if accidents := _told(results, "accident"):
        lines += ["", "Crashes, hangs and complaints of kernels:", "", *(f"- {line}" for line in accidents)]
    if remarks := _told(results, "remark"):
        lines += ["", "Too slow by emulation, which is no failure:", "", *(f"- {line}" for line in remarks)]
    if left_out:
        lines += ["", "Left out:", "", *(f"- {names}: {reason}" for names, reason in left_out.items())]
    return "\n".join(lines) + "\n"


def print_results(title: str, results: Results, left_out: Mapping[str, str]) -> None:
    """The same table on the terminal, what did not pass, and where the logs of what is worse or crashed are."""
    console = terminal()
    print_title(console, title)
    print_table(console, columns(results), ["red" if regressions(test) else "" for test in results.values()])
    for line in (*_not_passed(results), *_told(results, "accident"), *_told(results, "remark")):
        console.print(Text(line))
    for found in results.values():
        worse = list(found.values())[1:] if regressions(found) else []
        if logs := [str(result.log) for result in found.values() if result in worse or result.accident]:
            console.print(Text(f"logs: {', '.join(logs)}"))
    if left_out:
        console.print(Text(f"Left out, for reasons that --markdown tells: {', '.join(left_out)}", style="dim"))
