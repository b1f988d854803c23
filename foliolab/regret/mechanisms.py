# SPDX-License-Identifier: GPL-2.0-only
"""The mechanisms of the adaptive window, its header without one of them, and how many lines that is.

model/mechanisms.toml says how each is switched off. The header has no switches for this: they would be code that no
kernel needs.
"""

import re
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

from foliolab.errors import ModelError
from foliolab.model.compiled import WINDOW
from foliolab.paths import MODEL
from foliolab.table import Place, Text, read_toml

_ENTRIES = ("mmap_readahead_settled", "mmap_readahead_adapt", "mmap_readahead_mark")
"""What the kernel calls."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"^static inline [^;{]*?\b(mmap_readahead_\w+)\([^;{]*?\)\n{\n.*?^}\n", re.DOTALL | re.MULTILINE)
_CONSTANT = re.compile(r"^#define (MMAP_READAHEAD_\w+)\s.*\n", re.MULTILINE)
_TYPE = re.compile(r"^(?:struct|enum) \w+ {\n.*?^};\n", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\b\d+U?L?L?\b")


class Mechanism(Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    does: Text
    """In a sentence."""
    edits: tuple[tuple[str, str], ...] = ()
    """Text of the header, of the form that model/mechanisms.toml tells, and what takes its place where it is off."""
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
        replace(each, edits=(*each.edits, *(edit for name in each.also for edit in found[name].edits)))
        for each in found.values()
    ]


def without(mechanism: Mechanism, header: str) -> str:
    """The header with the mechanism switched off. ModelError where it has no such text, or twice."""
    for old, new in mechanism.edits:
        places = list(_pattern(old).finditer(header))
        if len(places) != 1:
            raise ModelError(
                f"'{mechanism.name}' cannot be switched off: {WINDOW.name} has {len(places)} places with"
                f" '{' '.join(old.split())}', not one."
            )
        header = header[: places[0].start()] + new + header[places[0].end() :]
    return header


def count_lines(header: str) -> int:
    """Of code: neither comments, blank lines, nor types."""
    return len(_code(header))


def lines_of(mechanism: Mechanism, header: str) -> int:
    """Lines of code that the header has for this mechanism alone.

    Those of functions and constants that nothing needs where it is off, and those that are gone or other then.
    """
    before, after = _code(header), _code(_needed(without(mechanism, header), header))
    same = SequenceMatcher(a=before, b=after, autojunk=False).get_matching_blocks()
    return len(before) - sum(block.size for block in same)


def _pattern(old: str) -> re.Pattern[str]:
    words = [
        r"[\s\S]*?" if word == "..." else _NUMBER.sub(lambda _: r"\d+U?L?L?", re.escape(word)) for word in old.split()
    ]
    return re.compile(r"\s+".join(words))


def _code(header: str) -> list[str]:
    return [" ".join(line.split()) for line in _TYPE.sub("", _COMMENT.sub("", header)).splitlines() if line.strip()]


def _needed(header: str, whole: str) -> str:
    """The header without functions and constants that nothing uses, but that something uses in the whole one."""
    while True:
        unused = [
            match
            for kind in (_FUNCTION, _CONSTANT)
            for match in kind.finditer(header)
            if match[1] not in _ENTRIES and _uses(match[1], header) < 2 <= _uses(match[1], whole)
        ]
        if not unused:
            return header
        for match in unused:
            header = header.replace(match[0], "")


def _uses(name: str, header: str) -> int:
    return len(re.findall(rf"\b{name}\b", _COMMENT.sub("", header)))
