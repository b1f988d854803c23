# SPDX-License-Identifier: GPL-2.0-only
"""Traces come back as they were written, and nothing else passes for one."""

import json
import lzma
import random
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foliohost.trace import Measured, Trace, TraceFile, read_trace, write_trace
from foliolab.errors import BadTrace

TRACE = Trace(
    files=(TraceFile("data.mdb", 1 << 32), TraceFile("späť\n/index", 5), TraceFile("empty", 0)),
    file_of=array("I", [0, 0, 1, 0, 1, 0]),
    page_of=array("I", [(1 << 32) - 1, 0, 4, 7, 0, 6]),
    window=16,
    page_size=4096,
    lost=3,
    memory_bytes=1 << 40,
    program=("./program", "--flag", "a b"),
    measured=(Measured("off", 128, 1, 2, 3, 4, {"boot": 1}), Measured("adaptive", 4096, 5, 6, 7)),
    other={"judged_only": True, "more": {"x": [1.5, None]}},
)
HEADER: dict[str, Any] = {"page_size": 4096, "window": 16, "files": [{"name": "a", "pages": 10}], "touches": 2}


def written(path: Path, header: object = HEADER, body: bytes = b"\x04\x02", magic: bytes = b"foliolab-trace 1") -> Path:
    path.write_bytes(magic + b"\n" + json.dumps(header).encode() + b"\n" + lzma.compress(body))
    return path


def test_a_trace_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "made" / "t.trace"
    write_trace(path, TRACE)
    assert read_trace(path) == TRACE
    assert read_trace(path).judged_only


def test_an_empty_trace_comes_back(tmp_path: Path) -> None:
    trace = Trace(files=(), file_of=array("I"), page_of=array("I"), window=0)
    write_trace(tmp_path / "t", trace)
    assert read_trace(tmp_path / "t") == trace
    assert not trace.judged_only


def test_the_bytes_are_those_of_the_format(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", TRACE)
    first, header, body = (tmp_path / "t").read_bytes().split(b"\n", 2)
    assert first == b"foliolab-trace 1"
    assert list(json.loads(header))[:7] == [
        "page_size", "window", "files", "touches", "lost", "memory_bytes", "program",
    ]  # fmt: skip
    far = (1 << 32) - 1
    codes = [far * 2 * 3, (far * 2 - 1) * 3, 8 * 3 + 1, 14 * 3, 7 * 3 + 1, 1 * 3]
    assert lzma.decompress(body) == b"".join(map(varint, codes))


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def test_the_least_that_a_trace_has(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path / "t"))
    assert list(trace.page_of) == [2, 3]
    assert (trace.lost, trace.memory_bytes, trace.program, trace.measured) == (0, None, (), ())


def test_equal_traces_make_equal_files(tmp_path: Path) -> None:
    write_trace(tmp_path / "one", TRACE)
    turned = dict(sorted(TRACE.other.items(), reverse=True))
    write_trace(tmp_path / "two", Trace(**{**vars(TRACE), "other": turned}))
    write_trace(tmp_path / "three", read_trace(tmp_path / "one"))
    assert len({(tmp_path / name).read_bytes() for name in ("one", "two", "three")}) == 1


def test_a_million_touches_take_seconds(tmp_path: Path) -> None:
    chance = random.Random(1)
    pages, number = 81920, 1_000_000
    page_of = array("I", (int(chance.paretovariate(0.5)) % pages for _ in range(number)))
    trace = Trace((TraceFile("a", pages), TraceFile("b", pages)), array("I", [0, 1] * (number // 2)), page_of, 16)
    start = time.process_time()
    write_trace(tmp_path / "t", trace)
    assert read_trace(tmp_path / "t") == trace
    assert time.process_time() - start < 30


@pytest.mark.parametrize(("file", "page"), [(0, 10), (1, 0)])
def test_a_page_beyond_its_file_is_not_written(tmp_path: Path, file: int, page: int) -> None:
    with pytest.raises(BadTrace, match=f"page {page} of file {file}"):
        write_trace(tmp_path / "t", Trace((TraceFile("a", 10),), array("I", [file]), array("I", [page]), 16))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=r"none cannot be read: No such file or directory\.$"):
        read_trace(tmp_path / "none")
    with pytest.raises(BadTrace, match="Is a directory"):
        read_trace(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"ELF", b"foliolab", b'{"page_size": 4096}\n'])
def test_what_is_no_trace(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t").write_bytes(content)
    with pytest.raises(BadTrace, match=r"t is not a trace\.$"):
        read_trace(tmp_path / "t")


def test_a_newer_version(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="of version 2; only version 1 is read here"):
        read_trace(written(tmp_path / "t", magic=b"foliolab-trace 2"))
    with pytest.raises(BadTrace, match="its first line has no version"):
        read_trace(written(tmp_path / "t", magic=b"foliolab-trace one"))


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", TRACE)
    whole = (tmp_path / "t").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(BadTrace, match=f"^{tmp_path}/cut is "):
            read_trace(tmp_path / "cut")


def test_no_flipped_bit_of_the_touches_passes(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", TRACE)
    whole = (tmp_path / "t").read_bytes()
    start = whole.index(b"\xfd7zXZ")
    for place in range(start, len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        (tmp_path / "flipped").write_bytes(flipped)
        with pytest.raises(BadTrace, match=f"^{tmp_path}/flipped is "):
            read_trace(tmp_path / "flipped")


def changed(**keys: object) -> Callable[[], object]:
    return lambda: {key: value for key, value in {**HEADER, **keys}.items() if value is not None}


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (list, "its header is wrong: it is no table"),
        (changed(window=None), "its header is wrong: 'window' is missing"),
        (changed(files=None), "its header is wrong: 'files' is missing"),
        (changed(files={}), "its header is wrong: 'files' is no list"),
        (changed(files=[1]), "its header is wrong: files[0] is no table"),
        (changed(files=[{"pages": 1}]), "its header is wrong: 'files[0].name' is missing"),
        (changed(files=[{"name": 1, "pages": 1}]), "its header is wrong: 'files[0].name' is no text"),
        (changed(files=[{"name": "a", "pages": -1}]), "its header is wrong: 'files[0].pages' is no whole number"),
        (changed(files=[]), "it has touches and no files"),
        (changed(files=[{"name": "a", "pages": 3}]), "touch 1 is of page 3 of 'a', which has 3 pages"),
        (changed(page_size=0), "its header is wrong: 'page_size' is no whole number of at least 1"),
        (changed(window=1.5), "its header is wrong: 'window' is no whole number of at least 0"),
        (changed(lost=True), "its header is wrong: 'lost' is no whole number of at least 0"),
        (changed(memory_bytes="1M"), "its header is wrong: 'memory_bytes' is no whole number of at least 0"),
        (changed(touches=3), "it has 2 touches, and its header says 3"),
        (changed(touches=0), "it has more than the 0 touches that its header says"),
        (changed(touches=1 << 63), "its header is wrong: 'touches' is no whole number of 0 to 4294967296"),
        (changed(program="a b"), "its header is wrong: 'program' is no list"),
        (changed(program=[1]), "its header is wrong: 'program' has a word that is no text"),
        (changed(measured=[{"variant": "off"}]), "its header is wrong: 'measured[0].read_ahead_kb' is missing"),
    ],
)
def test_a_header_that_says_something_else(tmp_path: Path, header: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadTrace) as caught:
        read_trace(written(tmp_path / "t", header()))
    assert str(caught.value).startswith(f"{tmp_path}/t is damaged: {sentence}")


def test_a_header_that_is_no_json(tmp_path: Path) -> None:
    for header in (b"{", b"\xff", b'{"a": 1', b"", b"[" * 100_000):
        (tmp_path / "t").write_bytes(b"foliolab-trace 1\n" + header + b"\n" + lzma.compress(b""))
        with pytest.raises(BadTrace, match="its header is not JSON"):
            read_trace(tmp_path / "t")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"\x04\x00\x00\x00", "it has 4 touches, and its header says 2"),
        (b"\x04\x09", "touch 1 is of page -3"),
        (b"\x04\x80", "its last touch is incomplete"),
        (b"\x80" * 12, "touch 0 is no number"),
    ],
)
def test_touches_that_cannot_be(tmp_path: Path, body: bytes, sentence: str) -> None:
    with pytest.raises(BadTrace) as caught:
        read_trace(written(tmp_path / "t", body=body))
    assert f"t is damaged: {sentence}" in str(caught.value)


def test_what_unpacks_to_far_more_is_not_unpacked(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="more than the 2 touches"):
        read_trace(written(tmp_path / "t", body=bytes(10_000_000)))


def test_what_follows_the_touches(tmp_path: Path) -> None:
    path = written(tmp_path / "t")
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(BadTrace, match="something follows its touches"):
        read_trace(path)
