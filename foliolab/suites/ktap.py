# SPDX-License-Identifier: GPL-2.0-only
"""What a test program says of its subtests, and what two kernels' answers differ in."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum


class End(StrEnum):
    """Of a test or subtest, from worst to best."""

    FAIL = "fail"
    SKIP = "skip"
    PASS = "pass"


Subtests = Mapping[str, End]


_PLAN = re.compile(r"1\.\.(\d+)")
_KTAP = re.compile(
    r"(?P<not>not )?ok (?P<number>\d+) ?(?:- )?(?P<name>[^#]*)(?:# *(?P<directive>\w+) ?(?P<reason>.*))?"
)
_BAIL = re.compile(r"^Bail out!", re.MULTILINE)
# Two programs have forms of their own: the userfaultfd tests, and khugepaged, which tells by the colour.
_UFFD = re.compile(r"Testing (?P<name>.*)\.\.\. (?P<verdict>done|skipped|failed)")
_COLOURED = re.compile(r"(?P<name>[^.]+)\.\.\..* \033\[(?P<verdict>3[123])m")
_WORDS = {"done": End.PASS, "skipped": End.SKIP, "failed": End.FAIL}
_COLOURS = {"32": End.PASS, "33": End.SKIP, "31": End.FAIL}
_RUN = re.compile(r"(?:# \[RUN\]|Run test:) (?P<name>.*)")
_CHANGING = re.compile(r"0x[0-9a-f]{4,}|\d+ \([\d.]+%\).*")  # addresses, and what a program has measured


def parse(output: str) -> dict[str, End]:
    """The subtests in a program's output: KTAP, or what two programs print instead.

    A broken plan counts as one that failed: it stands before the results or behind them, and is for all of them and no
    more. Results that are parts of another stand further to the right, and are not looked at.

    Numbers are no part of the names, since a subtest more or less shifts them, and neither is what every run has
    another of. What a program says that it runs is one: below it stand results with the same few names again and again.
    """
    found: dict[str, End] = {}
    seen: Counter[str] = Counter()
    planned: set[int] = set()
    numbers = []
    running = ""
    for line in output.splitlines():
        if match := _KTAP.match(line):
            numbers.append(int(match["number"]))
            name = match["name"].strip() or match["reason"] or match["number"]
            verdict = End.FAIL if match["not"] else End.PASS
            if match["directive"] in ("SKIP", "XFAIL", "TODO"):
                verdict = End.SKIP
        elif match := _UFFD.match(line) or _COLOURED.match(line):
            name, verdict = match["name"], (_WORDS | _COLOURS)[match["verdict"]]
        else:
            if match := _RUN.match(line):
                running = f"{match['name']}: "
            elif match := _PLAN.match(line):
                planned.add(int(match[1]))
            continue
        name = _CHANGING.sub("...", running + name)
        seen[name] += 1
        found[f"{name} ({seen[name]})" if seen[name] > 1 else name] = verdict
    broken = _BAIL.search(output) or any(numbers != [*range(1, most + 1)] for most in planned)
    return found | ({"what was planned": End.FAIL} if broken else {})


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
