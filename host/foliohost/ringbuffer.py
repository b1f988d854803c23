# SPDX-License-Identifier: GPL-2.0-only
"""Pages of the kernel's trace buffer as ``trace_pipe_raw`` has them, and the events in them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from foliohost.errors import FolioError

_HEADER = struct.Struct("@QL")
"""The time of the first event in nanoseconds; how many bytes follow, and above that flags."""
_COMMIT = 0xFFFFF
_WORD = struct.Struct("=I")
_ID = struct.Struct("=H")
_PADDING, _EXTENDED, _STAMP = 29, 30, 31
"""Types of events that are none; smaller ones are lengths in words, but for 0."""
_DELTA_BITS = 27
_STAMP_BITS = 59
"""Of a time that is not a distance; what is above them is as it was."""
_FIELD = re.compile(r"^\s*field:.*?\b(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+);", re.MULTILINE)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


Event = tuple[int, str, tuple[int, ...]]
"""Time in nanoseconds, name, fields."""


@dataclass(frozen=True)
class Layout:
    """Where an event has the fields that somebody wants."""

    id: int
    code: struct.Struct
    order: tuple[int, ...]
    """Of the fields wanted, in what ``code`` unpacks."""


def layout(text: str, fields: Sequence[str]) -> Layout:
    """The layout in the text of an event's file ``format``; FolioError if it lacks one of at least two ``fields``."""
    number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    found = {name: (int(offset), int(size)) for name, offset, size in _FIELD.findall(text)}
    missing = [name for name in fields if found.get(name, (0, 0))[1] not in _CODES]
    if not number or missing:
        raise FolioError(f"A tracepoint of this kernel has no {missing[0] if missing else 'number'}.")
    at, code = 0, "="
    ordered = sorted(fields, key=lambda name: found[name])
    for name in ordered:
        offset, size = found[name]
        code += f"{offset - at}x{_CODES[size]}"
        at = offset + size
    return Layout(int(number[1]), struct.Struct(code), tuple(ordered.index(name) for name in fields))


def events(page: bytes, layouts: Mapping[str, Layout]) -> Iterator[Event]:
    """Time in nanoseconds, name in ``layouts``, and fields of each event of these on a page, in order."""
    known = {each.id: (name, each.code.unpack_from, itemgetter(*each.order)) for name, each in layouts.items()}
    time, commit = _HEADER.unpack_from(page)
    at, end = _HEADER.size, _HEADER.size + (commit & _COMMIT)
    while at + 4 <= end:
        (word,) = _WORD.unpack_from(page, at)
        kind, delta = word & 31, word >> 5
        at += 4
        if kind == _PADDING and not delta:
            return
        if kind == _STAMP:
            low = (_WORD.unpack_from(page, at)[0] << _DELTA_BITS) + delta
            time = time >> _STAMP_BITS << _STAMP_BITS | low
            at += 4
            continue
        time += delta
        start, length = at, kind * 4
        if kind == _EXTENDED:
            time += _WORD.unpack_from(page, at)[0] << _DELTA_BITS
            length = 4
        elif kind in (0, _PADDING):
            # The length counts the word that holds it.
            length = _WORD.unpack_from(page, at)[0] + 3 & ~3
            start += 4
        at += length
        if kind < _PADDING and (found := known.get(_ID.unpack_from(page, start)[0])):
            name, unpack, ordered = found
            yield time, name, ordered(unpack(page, start))
