# SPDX-License-Identifier: GPL-2.0-only
"""Folios of program text, beside what the lab's program in C tells of them."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from foliohost.errors import NotPermitted, UsageError
from foliohost.folios import _Sum, text_folios
from foliohost.processes import PAGE_BYTES
from tests.cli.command import lab

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees in which folios memory is")


@needs_root
def test_shares_of_text_are_those_that_the_lab_tells() -> None:
    found = text_folios([os.getpid()])
    table = json.loads(lab("folios", "--json", "--text", "--pid", str(os.getpid())).stdout)
    assert found.mapped_bytes == sum(found.by_size_kb.values()) + found.partial_bytes > 0
    # Less than that is mapped meanwhile by the second look.
    assert found.mapped_bytes == pytest.approx(table["mapped_bytes"], rel=0.2)
    large = sum(row["bytes"] for row in table["rows"] if "cont" not in row["name"])
    single = found.by_size_kb.get(table["page_size"] >> 10, 0)
    assert found.mapped_bytes - single == pytest.approx(large, rel=0.2, abs=1 << 20)


@needs_root
def test_a_process_that_has_ended() -> None:
    with pytest.raises(UsageError, match="The program has ended"):
        text_folios([1 << 22])


def test_what_keeps_folios_from_being_known(nobody: None) -> None:
    with pytest.raises(NotPermitted, match=r"^Only root sees in which folios memory is\.$"):
        text_folios([os.getpid()])


def test_pages_that_lie_all_over_the_memory_take_little_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "flags").open("w+b") as flags:
        flags.truncate(1 << 30)
        found = _Sum(flags.fileno())
        tracemalloc.start()
        try:
            found._add((page, page * 512) for page in range(8192))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found.folios().by_size_kb == {PAGE_BYTES >> 10: 8192 * PAGE_BYTES}
    assert most < 16 << 20
