# SPDX-License-Identifier: GPL-2.0-only
"""Hints and PMDs of mappings, as smaps has them."""

import mmap
import os

import pytest

from foliohost import details as module
from foliohost.details import Details, _parsed, details
from foliohost.processes import PAGE_BYTES, mappings

_SMAPS = b"""\
7f0000000000-7f0000010000 r--s 00002000 fe:10 1234                       /srv/my db/data.mdb
Size:                 64 kB
Rss:                  12 kB
FilePmdMapped:         8 kB
VmFlags: rd sh mr mw me rr
7f0000010000-7f0000011000 r-xp 00000000 fe:10 99                         /usr/bin/engine
FilePmdMapped:         0 kB
VmFlags: rd ex
7f0000013000-7f0000014000 r--p 00000000 fe:10 5                          /a\\012VmFlags: rr
FilePmdMapped:         0 kB
VmFlags: rd sr sd
7f0000014000-7f0000015000 r--p 00000000 fe:10 5                          /b
FilePmdMapped:      2048 kB
VmFlags: rd
"""


def test_those_that_say_something_are_told() -> None:
    assert _parsed(_SMAPS) == {
        0x7F0000000000: Details("random", 8 << 10),
        0x7F0000013000: Details("sequential"),
        0x7F0000014000: Details("", 2 << 20),
    }


def test_our_own_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(__file__, "rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as place:  # noqa: PTH123
        (ours,) = [each for each in mappings(os.getpid()) if each.path == __file__]
        assert ours.start not in (details(os.getpid()) or {})
        place.madvise(mmap.MADV_RANDOM)
        assert (details(os.getpid()) or {})[ours.start].hint == "random"
        monkeypatch.setattr(module, "MOST_LOCKED_SECONDS", 0)
        assert details(os.getpid()) is None


def test_walks_that_take_long_are_foreseen() -> None:
    before = module._walk_seconds(os.getpid())
    memory = mmap.mmap(-1, 4096 * PAGE_BYTES)
    for page in range(4096):
        memory[page * PAGE_BYTES] = 1
    assert module._walk_seconds(os.getpid()) >= before + 4000 * module._PAGE_SECONDS


def test_of_a_process_that_is_not_there_nothing_is_told() -> None:
    assert details(1 << 22) is None
