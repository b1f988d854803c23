# SPDX-License-Identifier: GPL-2.0-only
"""What a test program says of its subtests, and what two kernels' answers differ in."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class End(StrEnum):
    """Of a test or subtest, from worst to best."""

    FAIL = "fail"
    SKIP = "skip"
    PASS = "pass"


Subtests = Mapping[str, End]


@dataclass(frozen=True)
class ResultLine:
    number: int
    name: str
    verdict: End
    reason: str = ""
    """Why it was skipped, if it says so."""
    parts: tuple["ResultLine", ...] = ()
    """What it is made of: the results that are further to the right, above it."""


@dataclass(frozen=True)
class Report:
    cases: tuple[ResultLine, ...]
    errors: tuple[str, ...]
    """Where there are other results than a plan says, of any depth."""


_PLAN = re.compile(r"(?P<indent> *)1\.\.(?P<planned>\d+)")
_KTAP = re.compile(
    r"(?P<indent> *)(?P<not>not )?ok (?P<number>\d+) ?(?:- )?(?P<name>[^#]*)(?:# *(?P<directive>\w+) ?(?P<reason>.*))?"
)
_BAIL = re.compile(r"Bail out!")
# Two programs have forms of their own: the userfaultfd tests, and khugepaged, which tells by the colour.
_UFFD = re.compile(r"Testing (?P<name>.*)\.\.\. (?P<verdict>done|skipped|failed)")
_COLOURED = re.compile(r"(?P<name>[^.]+)\.\.\..* \033\[(?P<verdict>3[123])m")
_WORDS = {"done": End.PASS, "skipped": End.SKIP, "failed": End.FAIL}
_COLOURS = {"32": End.PASS, "33": End.SKIP, "31": End.FAIL}
_RUN = re.compile(r"(?:# \[RUN\]|Run test:) (?P<name>.*)")
_CHANGING = re.compile(r"0x[0-9a-f]{4,}|\d+ \([\d.]+%\).*")  # addresses, and what a program has measured


def read(output: str) -> Report:
    """A KTAP report. A plan stands before its results or behind them; any more, any fewer and bailing out break it.

    Lines of other forms may stand anywhere. Without a plan, any results will do, or those that follow each other where
    they are parts of another: KUnit has no plan for a case's parameters.
    """
    planned: dict[int, int] = {}  # by indentation, as is the next
    cases: dict[int, list[ResultLine]] = {}
    errors = []

    def close(least: int) -> tuple[ResultLine, ...]:
        """Take what stands at ``least`` or further to the right."""
        parts: list[ResultLine] = []
        for indent in sorted(each for each in {*planned, *cases} if each >= least):
            found, plan = cases.pop(indent, []), planned.pop(indent, None)
            numbers = [case.number for case in found]
            most = len(found) if plan is None else plan
            if (indent or plan is not None) and numbers != list(range(1, most + 1)):
                errors.append(f"1..{most}, but results {', '.join(map(str, numbers)) or 'none'}")
            parts += found
        return tuple(parts)

    for line in output.splitlines():
        if match := _PLAN.match(line):
            if planned.setdefault(len(match["indent"]), int(match["planned"])) != int(match["planned"]):
                errors.append(f"another plan, {line.strip()}")
        elif match := _KTAP.match(line):
            indent = len(match["indent"])
            parts = close(indent + 1)
            cases.setdefault(indent, []).append(_case(match, parts))
        elif _BAIL.match(line):
            errors.append(line)
    return Report(close(0), tuple(errors))


def _case(match: re.Match[str], parts: tuple[ResultLine, ...] = ()) -> ResultLine:
    verdict = End.FAIL if match["not"] else End.PASS
    if match["directive"] in ("SKIP", "XFAIL", "TODO"):
        verdict = End.SKIP
    name = match["name"].strip() or match["reason"] or match["number"]
    return ResultLine(int(match["number"]), name, verdict, match["reason"] or "", parts)


def parse(output: str) -> dict[str, End]:
    """The subtests in a program's output: KTAP, or what two programs print instead. A broken plan is one that failed.

    Numbers are no part of the names, since a subtest more or less shifts them, and neither is what every run has
    another of. What a program says that it runs is one: below it stand results with the same few names again and again.
    """
    found: dict[str, End] = {}
    seen: Counter[str] = Counter()
    running = ""
    for line in output.splitlines():
        if (match := _KTAP.match(line)) and not match["indent"]:
            case = _case(match)
            name, verdict = case.name, case.verdict
        elif match := _UFFD.match(line) or _COLOURED.match(line):
            name, verdict = match["name"], (_WORDS | _COLOURS)[match["verdict"]]
        else:
            if match := _RUN.match(line):
                running = f"{match['name']}: "
            continue
        name = _CHANGING.sub("...", running + name)
        seen[name] += 1
        found[f"{name} ({seen[name]})" if seen[name] > 1 else name] = verdict
    return found | ({"what was planned": End.FAIL} if read(output).errors else {})


def together(first: Subtests, second: Subtests, choose: Callable[..., End]) -> dict[str, End]:
    """Two runs: each subtest as it ended the worse time (``min``), the better one (``max``), or the only one."""
    names = dict.fromkeys([*first, *second])
    return {name: choose((run[name] for run in (first, second) if name in run), key=list(End).index) for name in names}


def worse(before: Subtests, after: Subtests, lost: Collection[str] = ()) -> list[str]:
    """The subtests that ended better before: those that are gone count, and so do new ones that fail.

    Of those in ``lost`` a run before was without, too: they may be gone, but they may not fail.
    """
    ranks = list(End)
    ended = {name: End.FAIL for name in before if name not in lost} | dict(after)
    fell = [name for name in before if name in ended and ranks.index(ended[name]) < ranks.index(before[name])]
    return fell + [name for name, verdict in after.items() if name not in before and verdict is End.FAIL]
