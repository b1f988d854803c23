# SPDX-License-Identifier: GPL-2.0-only
"""What each mechanism of the adaptive window is worth: the time that programs take with it off, and lines of code.

model/mechanisms.toml says how each is switched off. The policy has no switches for this: they would be code that no
kernel needs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from msgspec import Struct, structs

from foliolab.device import Device
from foliolab.errors import ModelError
from foliolab.files import MODEL
from foliolab.model.compiled import WINDOW
from foliolab.progress import say
from foliolab.simulate.rows import RegretRow, count, make_rows
from foliolab.simulate.suite import FAMILIES, PATTERNS, REPORTS, TRACES, AnyCase, Suite, cost
from foliolab.simulate.summary import TIME, Regrets, ours, spreads
from foliolab.toml import Place, Text, read_toml

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"^static [^;{]*?\b(\w+)\([^;{]*?\)\n{\n.*?^}\n", re.DOTALL | re.MULTILINE)
_CONSTANT = re.compile(r"^#define (\w+)\s.*\n", re.MULTILINE)
_TYPE = re.compile(r"^(?:struct|enum) \w+ {\n.*?^};\n", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\b\d+U?L?L?\b")


class Mechanism(Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    does: Text
    """In a sentence."""
    edits: tuple[tuple[str, str], ...] = ()
    """Text of the policy, of the form that model/mechanisms.toml tells, and what takes its place where it is off."""
    also: tuple[str, ...] = ()
    """Mechanisms whose edits come after its own."""


class _Mechanisms(Struct, forbid_unknown_fields=True):
    mechanism: list[Mechanism]


def read_mechanisms() -> list[Mechanism]:
    """All of them in their order, with all their edits; BadExperiment for a mistake in the file."""
    file = MODEL / "mechanisms.toml"
    place = Place(file)
    found = {each.name: each for each in place.convert(read_toml(file), _Mechanisms).mechanism}
    for each in found.values():
        place.at(each.name).at("also").all_of(each.also, found)
    return [
        structs.replace(each, edits=(*each.edits, *(edit for name in each.also for edit in found[name].edits)))
        for each in found.values()
    ]


def without(mechanism: Mechanism, policy: str) -> str:
    """The policy with the mechanism switched off. ModelError where it has no such text, or twice."""
    for old, new in mechanism.edits:
        places = list(_pattern(old).finditer(policy))
        if len(places) != 1:
            raise ModelError(
                f"'{mechanism.name}' cannot be switched off: {WINDOW.name} has {len(places)} places with"
                f" '{' '.join(old.split())}', not one."
            )
        policy = policy[: places[0].start()] + new + policy[places[0].end() :]
    return policy


def count_lines(policy: str) -> int:
    """Of code: neither comments, blank lines, nor types."""
    return len(_code(policy))


def lines_of(mechanism: Mechanism, policy: str) -> int:
    """Lines of code that the policy has for this mechanism alone.

    Those of functions and constants that nothing needs where it is off, and those that are gone or other then.
    """
    before, after = _code(policy), _code(_needed(without(mechanism, policy), policy))
    same = SequenceMatcher(a=before, b=after, autojunk=False).get_matching_blocks()
    return len(before) - sum(block.size for block in same)


def _pattern(old: str) -> re.Pattern[str]:
    words = [
        r"[\s\S]*?" if word == "..." else _NUMBER.sub(lambda _: r"\d+U?L?L?", re.escape(word)) for word in old.split()
    ]
    return re.compile(r"\s+".join(words))


def _code(policy: str) -> list[str]:
    return [" ".join(line.split()) for line in _TYPE.sub("", _COMMENT.sub("", policy)).splitlines() if line.strip()]


def _needed(policy: str, whole: str) -> str:
    """The policy without functions and constants that nothing uses, but that something uses in the whole one."""
    while True:
        unused = [
            match
            for kind in (_FUNCTION, _CONSTANT)
            for match in kind.finditer(policy)
            if _uses(match[1], policy) < 2 <= _uses(match[1], whole)
        ]
        if not unused:
            return policy
        for match in unused:
            policy = policy.replace(match[0], "")


def _uses(name: str, policy: str) -> int:
    return len(re.findall(rf"\b{name}\b", _COMMENT.sub("", policy)))


WHOLE = "whole policy"
"""In the place of a mechanism: none is off."""
JUDGED = "judged"
"""A further group of cells: of patterns, also in new families, that the window was not designed with."""
_VARIANT = "adaptive"
_MOST_HURT = 3
HURT = 1.005
"""A pattern is hurt that takes at least so many times as long."""


@dataclass(frozen=True)
class Ablation:
    """The time that programs take with adaptive without a mechanism."""

    mechanism: str
    does: str
    lines: int
    """Of code that the mechanism alone needs; of the whole policy for WHOLE."""
    spreads: Mapping[str, Regrets]
    """By group of cells, of those that were asked for: time in multiples of that with the fastest fixed window."""
    hurt: Mapping[str, float]
    """The patterns, traces and reports that lose most, at most three, and what they take without the mechanism, in
    multiples of the time with it: geometric means of their cells."""
    needs: Mapping[str, float]
    """The same of the store or report that loses most, on the disk where it does; empty if none is HURT."""


def ablate(
    suite: Suite, cases: Sequence[AnyCase], devices: Sequence[Device], mechanisms: Sequence[Mechanism]
) -> list[Ablation]:
    """The whole policy, and then without each mechanism. ModelError if the policy is not one that they can be cut from.

    Only adaptive is simulated anew: the oracle and the rivals stay what they are.
    """
    policy = WINDOW.read_text()
    cut = [(mechanism, without(mechanism, policy), lines_of(mechanism, policy)) for mechanism in mechanisms]
    whole = ours(make_rows(suite, cases, devices))
    found = [ablation_of(WHOLE, "Everything is on.", count_lines(policy), whole, whole)]
    for number, (mechanism, window, lines) in enumerate(cut, 1):
        say(f"{number} of {len(cut)}: without {mechanism.name}")
        rows = list(_rows(suite, cases, devices, window, whole))
        found.append(ablation_of(mechanism.name, mechanism.does, lines, rows, whole))
    return found


def _rows(
    suite: Suite, cases: Sequence[AnyCase], devices: Sequence[Device], window: str, whole: Sequence[RegretRow]
) -> Iterator[RegretRow]:
    """The rows of ``whole`` with another policy."""
    before = {row.cell: row for row in whole}
    for _, device, cell, counts in count(suite, cases, devices, [_VARIANT], window):
        found = counts[_VARIANT]
        yield replace(
            before[cell],
            cost=cost(found, device),
            seconds=found.seconds[device.name],
            read_bytes=found.read_bytes,
            major_faults=found.major_faults,
        )


def ablation_of(name: str, does: str, lines: int, rows: Sequence[RegretRow], whole: Sequence[RegretRow]) -> Ablation:
    """What ``rows`` of a policy without a mechanism come to, beside those of the whole policy in the same cells."""
    judged = [row for row in rows if row.judged_only and row.group in (PATTERNS, FAMILIES)]
    found = {**spreads(rows, lambda row: row.group, TIME), **spreads(judged, lambda _: JUDGED, TIME)}
    hurt = _hurt(rows, whole, lambda row: row.pattern, _MOST_HURT)
    real, real_whole = ([row for row in each if row.group in (TRACES, REPORTS)] for each in (rows, whole))
    needs = _hurt(real, real_whole, lambda row: f"{row.pattern}, {row.device}", 1)
    return Ablation(name, does, lines, found, hurt, needs)


def _hurt(
    rows: Sequence[RegretRow], whole: Sequence[RegretRow], key: Callable[[RegretRow], str], most: int
) -> dict[str, float]:
    """The ``most`` keys whose rows take longest in multiples of what they take with the whole policy, if HURT."""
    with_it, without_it = (spreads(each, key, TIME) for each in (whole, rows))
    times = {name: of.mean / with_it[name].mean for name, of in without_it.items()}
    return {name: times[name] for name in sorted(times, key=lambda name: -times[name])[:most] if times[name] >= HURT}
