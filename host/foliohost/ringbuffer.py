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
_HEAD = struct.Struct("=IH")
"""What an event begins with: type and time since the one before, and which tracepoint it is of."""
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


def first_time(page: bytes) -> int:
    """The time of the first event of a page, in nanoseconds."""
    time: int = _HEADER.unpack_from(page)[0]
    return time


def filled(page: bytes) -> bytes:
    """The part of a page that holds anything."""
    _, commit = _HEADER.unpack_from(page)
    return page[: _HEADER.size + (commit & _COMMIT)]


def events(page: bytes, layouts: Mapping[str, Layout]) -> Iterator[Event]:
    """Time in nanoseconds, name in ``layouts``, and fields of each event of these on a page, in order."""
    known = {each.id: (name, each.code.unpack_from, itemgetter(*each.order)) for name, each in layouts.items()}
    time, commit = _HEADER.unpack_from(page)
    at, end = _HEADER.size, _HEADER.size + (commit & _COMMIT)
    head, find = _HEAD.unpack_from, known.get
    while at + _HEAD.size <= end:
        word, number = head(page, at)
        kind = word & 31
        if 0 < kind < _PADDING:  # almost all
            time += word >> 5
            if found := find(number):
                name, unpack, ordered = found
                yield time, name, ordered(unpack(page, at + 4))
            at += 4 + kind * 4
            continue
        delta, (more,) = word >> 5, _WORD.unpack_from(page, at + 4)
        if kind == _PADDING and not delta:
            return
        if kind == _STAMP:
            time = time >> _STAMP_BITS << _STAMP_BITS | (more << _DELTA_BITS) + delta
            at += 8
            continue
        time += delta
        if kind == _EXTENDED:
            time += more << _DELTA_BITS
            at += 8
            continue
        # The length counts the word that holds it.
        if not kind and (found := find(_ID.unpack_from(page, at + 8)[0])):
            name, unpack, ordered = found
            yield time, name, ordered(unpack(page, at + 8))
        at += 4 + (more + 3 & ~3)
