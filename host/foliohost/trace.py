# SPDX-License-Identifier: GPL-2.0-only
"""Traces on disk.

A line with the version, a line of JSON, and an xz stream with a varint (LEB128) for each touch: the distance from the
page of that file that was touched before it, zigzag-coded, times the number of files, plus the file's index. So a
trace of one file says nothing about files.
"""

from __future__ import annotations

import json
import lzma
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foliohost.checked import JsonTable, Wrong
from foliohost.errors import BadTrace
from foliohost.files import write_atomic
from foliohost.pageset import PageSet

VERSION = 1
_MAGIC = b"foliolab-trace "
_PAGES = 1 << 32
"""No file may have more; an index has to fit into 32 bits."""
_TOUCHES = 1 << 32
"""No trace has more; they would not fit into memory."""
_VARINT_BITS = 70
"""More than a distance between two such pages, times the number of files, can have."""


@dataclass(frozen=True)
class TraceFile:
    """A file that was mapped."""

    name: str
    pages: int


@dataclass(frozen=True)
class Measured:
    """What the program came to in a guest, without being recorded. Sizes are in bytes but for ``read_ahead_kb``."""

    variant: str
    read_ahead_kb: int
    read_bytes: int
    read_requests: int
    major_faults: int
    memory_bytes: int | None = None
    """What the page cache could hold then; None if that is unknown."""
    other: Mapping[str, Any] = field(default_factory=dict)
    """Further keys, as they are in the file."""


@dataclass(frozen=True)
class Trace:
    """Pages of mapped files in the order in which a program touched them.

    A repeated touch of one of the last ``window`` distinct pages may be missing.
    """

    files: tuple[TraceFile, ...]
    file_of: array[int]
    """For each touch, the index of its file; of type code ``I``."""
    page_of: array[int]
    """For each touch, the page of that file; of type code ``I``."""
    window: int
    """Pages; 0 if every touch is there."""
    page_size: int = 4096
    """Bytes."""
    lost: int = 0
    """Touches that the recorder knows it has missed."""
    memory_bytes: int | None = None
    """What the page cache could hold; None if that is unknown."""
    program: tuple[str, ...] = ()
    """Its command line."""
    measured: tuple[Measured, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the header, as they are in the file."""

    @property
    def touches(self) -> int:
        return len(self.page_of)

    @property
    def pages(self) -> int:
        """Of all its files, touched or not."""
        return sum(file.pages for file in self.files)

    @property
    def distinct(self) -> int:
        """How many pages were touched at all."""
        return len(PageSet(self.file_of, self.page_of))

    def touches_by_file(self) -> list[int]:
        """How many touches there are of each file."""
        found = Counter(self.file_of)
        return [found[file] for file in range(len(self.files))]

    @property
    def cut(self) -> int:
        """How many touches came after the last one that is there; ``"cut"`` in the header."""
        cut = self.other.get("cut", 0)
        return cut if isinstance(cut, int) else 0

    @property
    def judged_only(self) -> bool:
        """Whether nothing may be tuned by this trace; ``"judged_only": true`` in the header."""
        return self.other.get("judged_only") is True


def write_trace(path: Path, trace: Trace) -> None:
    """Write ``trace``; equal traces make equal files. BadTrace if a touch is of no page of its files."""
    body = lzma.compress(_encode(path, trace), preset=lzma.PRESET_DEFAULT | lzma.PRESET_EXTREME)
    header = json.dumps(_header(trace)).encode()
    write_atomic(path, b"%b%d\n%b\n%b" % (_MAGIC, VERSION, header, body))


def read_trace(path: Path) -> Trace:
    """The trace in a file. BadTrace if there is none that is whole and of this version."""
    content = _content(path)
    first, _, rest = content.partition(b"\n")
    if not first.startswith(_MAGIC):
        raise BadTrace(f"{path} is not a trace.")
    if first != b"%b%d" % (_MAGIC, VERSION):
        version = first[len(_MAGIC) :].decode("ascii", "replace")
        if not (version.isascii() and version.isdigit()):
            raise BadTrace(f"{path} is damaged: its first line has no version.")
        raise BadTrace(f"{path} is a trace of version {version}; only version {VERSION} is read here.")
    line, newline, body = rest.partition(b"\n")
    if not newline:
        raise BadTrace(f"{path} is cut off in its header.")
    content = _parse(path, line)
    try:
        header, touches = _checked_header(content)
    except Wrong as error:
        raise BadTrace(f"{path} is damaged: its header is wrong: {error}.") from None
    file_of, page_of = _decode(path, _unpack(path, body, touches), header["files"])
    if len(page_of) != touches:
        raise BadTrace(f"{path} is damaged: it has {len(page_of)} touches, and its header says {touches}.")
    return Trace(**header, file_of=file_of, page_of=page_of)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadTrace(f"The trace {path} cannot be read: {error.strerror}.") from error


def _header(trace: Trace) -> dict[str, Any]:
    """The keys of a header: those that are known, in their order, and others by their names."""
    return {
        "page_size": trace.page_size,
        "window": trace.window,
        "files": [asdict(file) for file in trace.files],
        "touches": trace.touches,
        "lost": trace.lost,
        "memory_bytes": trace.memory_bytes,
        "program": list(trace.program),
        "measured": [_measured_keys(each) for each in trace.measured],
        **dict(sorted(trace.other.items())),
    }


def _measured_keys(measured: Measured) -> dict[str, Any]:
    known = {key: value for key, value in vars(measured).items() if key != "other"}
    return {**known, **dict(sorted(measured.other.items()))}


def _encode(path: Path, trace: Trace) -> bytes:
    number, sizes = len(trace.files), [file.pages for file in trace.files]
    before = [0] * number
    body = bytearray()
    append = body.append
    for file, page in zip(trace.file_of, trace.page_of):
        if file >= number or page >= sizes[file]:
            raise BadTrace(f"{path} is not written: page {page} of file {file} is in none of its files.")
        delta = page - before[file]
        before[file] = page
        value = (delta * 2 if delta >= 0 else -2 * delta - 1) * number + file
        while value > 127:
            append(value & 127 | 128)
            value >>= 7
        append(value)
    return bytes(body)


def _unpack(path: Path, body: bytes, touches: int) -> bytes:
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
    # So that a damaged file cannot fill the memory.
    most = touches * (_VARINT_BITS // 7) + 1
    try:
        unpacked = unpacker.decompress(body, max_length=most)
    except lzma.LZMAError as error:
        raise BadTrace(f"{path} is damaged: its touches cannot be unpacked.") from error
    if len(unpacked) == most:
        raise BadTrace(f"{path} is damaged: it has more than the {touches} touches that its header says.")
    if not unpacker.eof:
        raise BadTrace(f"{path} is cut off in its touches.")
    if unpacker.unused_data:
        raise BadTrace(f"{path} is damaged: something follows its touches.")
    return unpacked


def _decode(path: Path, body: bytes, files: tuple[TraceFile, ...]) -> tuple[array[int], array[int]]:
    number, sizes = len(files), [file.pages for file in files]
    before = [0] * number
    file_of, page_of = array("I"), array("I")
    value = shift = 0
    for byte in body:
        if byte > 127:
            value |= (byte & 127) << shift
            shift += 7
            if shift >= _VARINT_BITS:
                raise BadTrace(f"{path} is damaged: touch {len(page_of)} is no number.")
            continue
        if not number:
            raise BadTrace(f"{path} is damaged: it has touches and no files.")
        coded, file = divmod(value | byte << shift, number)
        page = before[file] + (coded >> 1 ^ -(coded & 1))
        if not 0 <= page < sizes[file]:
            raise BadTrace(
                f"{path} is damaged: touch {len(page_of)} is of page {page} of '{files[file].name}', "
                f"which has {sizes[file]} pages."
            )
        before[file] = page
        file_of.append(file)
        page_of.append(page)
        value = shift = 0
    if shift:
        raise BadTrace(f"{path} is damaged: its last touch is incomplete.")
    return file_of, page_of


def _parse(path: Path, line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadTrace(f"{path} is damaged: its header is not JSON.") from error


def _checked_header(content: Any) -> tuple[dict[str, Any], int]:
    """Fields of a trace, those of its touches left out, and how many touches it says that there are."""
    table = JsonTable(content)
    program = table.items("program", [])
    if not all(isinstance(word, str) for word in program):
        raise Wrong("'program' has a word that is no text")
    touches: int = table.number("touches", most=_TOUCHES)
    fields = {
        "page_size": table.number("page_size", least=1),
        "window": table.number("window"),
        "files": tuple(map(_checked_file, table.tables("files"))),
        "lost": table.number("lost", 0),
        "memory_bytes": table.number("memory_bytes", None),
        "program": tuple(program),
        "measured": tuple(map(_checked_measured, table.tables("measured", []))),
    }
    return {**fields, "other": table.rest}, touches


def _checked_file(table: JsonTable) -> TraceFile:
    return TraceFile(table.text("name"), table.number("pages", most=_PAGES))


def _checked_measured(table: JsonTable) -> Measured:
    counts = {key: table.number(key) for key in ("read_ahead_kb", "read_bytes", "read_requests", "major_faults")}
    return Measured(table.text("variant"), **counts, memory_bytes=table.number("memory_bytes", None), other=table.rest)
