# SPDX-License-Identifier: GPL-2.0-only
"""Traces on disk.

A line with the version, a line of JSON, and an xz stream with a varint (LEB128) for each touch: the distance from the
page of that file that was touched before it, zigzag-coded, times the number of files, plus the file's index. So a
trace of one file says nothing about files.
"""

import json
import lzma
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, structs

from foliolab.errors import BadTrace
from foliolab.files import write_atomic
from foliolab.renamed import present_name

_BLOCK_PAGES = 1 << 13


class PageSet:
    """Distinct pages: a bit for each page of a block of 32 MiB that has one, however many touches there were.

    So a set takes at most a 25,000th of the files in memory.
    """

    def __init__(self, files: Iterable[int] = (), pages: Iterable[int] = ()) -> None:
        self._blocks: defaultdict[tuple[int, int], int] = defaultdict(int)
        for file, page in zip(files, pages, strict=True):
            self.add(file, page)

    def add(self, file: int, page: int) -> None:
        self._blocks[file, page // _BLOCK_PAGES] |= 1 << page % _BLOCK_PAGES

    def __len__(self) -> int:
        return sum(map(int.bit_count, self._blocks.values()))

    def missing(self, other: "PageSet") -> int:
        """How many of these pages ``other`` has not."""
        return sum((block & ~other._blocks.get(key, 0)).bit_count() for key, block in self._blocks.items())


VERSION = 1
_MAGIC = b"foliolab-trace "
_PAGES = 1 << 32
"""No file may have more; an index has to fit into 32 bits."""
_TOUCHES = 1 << 32
"""No trace has more; they would not fit into memory."""
_VARINT_BITS = 70
"""More than a distance between two such pages, times the number of files, can have."""

_Count = Annotated[int, Meta(ge=0)]
_Kind = TypeVar("_Kind", bound=msgspec.Struct)


@dataclass(frozen=True)
class TraceFile:
    """A file that was mapped."""

    name: str
    pages: Annotated[int, Meta(ge=0, le=_PAGES)]


class _Measured(msgspec.Struct, frozen=True):
    variant: str
    read_ahead_kb: _Count
    read_bytes: _Count
    read_requests: _Count
    major_faults: _Count
    memory_bytes: _Count | None = None
    """What the page cache could hold then; None if that is unknown."""


class Measured(_Measured, frozen=True):
    """What the program came to in a guest, without being recorded. Sizes are in bytes but for ``read_ahead_kb``."""

    other: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Further keys, as they are in the file."""


@dataclass(frozen=True)
class Trace:
    """Pages of mapped files in the order in which a program touched them.

    A repeated touch of one of the last ``window`` distinct pages may be missing.
    """

    files: tuple[TraceFile, ...]
    file_of: "array[int]"
    """For each touch, the index of its file; of type code ``I``."""
    page_of: "array[int]"
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
    measured = [_written(each, _Measured) for each in trace.measured]
    header = json.dumps(_written(trace, _Header) | {"measured": measured}).encode()
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
        raise BadTrace(f"{path} is a trace of version {version}; this lab reads version {VERSION} only.")
    line, newline, body = rest.partition(b"\n")
    if not newline:
        raise BadTrace(f"{path} is cut off in its header.")
    header, other = _keys(path, "header", _parse(path, line), _Header)
    touches = header.pop("touches")
    file_of, page_of = _decode(path, _unpack(path, body, touches), header["files"])
    if len(page_of) != touches:
        raise BadTrace(f"{path} is damaged: it has {len(page_of)} touches, and its header says {touches}.")
    measured = tuple(_measured(path, each) for each in header.pop("measured"))
    return Trace(**header, file_of=file_of, page_of=page_of, measured=measured, other=other)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadTrace(f"The trace {path} cannot be read: {error.strerror}.") from error


def _written(thing: Trace | Measured, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The keys of a ``kind`` in their order, and all others: the inverse of ``_keys``."""
    known = {name: msgspec.to_builtins(getattr(thing, name)) for name in kind.__struct_fields__}
    return known | dict(sorted(thing.other.items()))


def _encode(path: Path, trace: Trace) -> bytes:
    number, sizes = len(trace.files), [file.pages for file in trace.files]
    before = [0] * number
    body = bytearray()
    append = body.append
    for file, page in zip(trace.file_of, trace.page_of, strict=True):
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


def _decode(path: Path, body: bytes, files: tuple[TraceFile, ...]) -> "tuple[array[int], array[int]]":
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


class _Header(msgspec.Struct):
    page_size: Annotated[int, Meta(ge=1)]
    window: _Count
    files: tuple[TraceFile, ...]
    touches: Annotated[int, Meta(ge=0, le=_TOUCHES)]
    lost: _Count = 0
    memory_bytes: _Count | None = None
    program: tuple[str, ...] = ()
    measured: tuple[dict[str, Any], ...] = ()


def _keys(path: Path, what: str, content: Any, kind: type[_Kind]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys that a ``kind`` has, checked, and all others."""
    try:
        found = structs.asdict(msgspec.convert(content, kind))
    except msgspec.ValidationError as error:
        raise BadTrace(f"{path} is damaged: its {what} is wrong: {error}.") from error
    return found, {key: value for key, value in content.items() if key not in found}


def _measured(path: Path, content: Any) -> Measured:
    found, other = _keys(path, "measurement", content, _Measured)
    return Measured(**found | {"variant": present_name(found["variant"])}, other=other)
