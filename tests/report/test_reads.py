# SPDX-License-Identifier: GPL-2.0-only
import json
import re
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

from foliolab.cli.demo import record
from foliolab.errors import StoreError
from foliolab.files import RELEASE, REPOSITORY
from foliolab.report.reads import RECORDED, Reads, RecordedReads, Stretch, parse, recorded_reads

PAGE = 4096
# As the kernel prints it: three faults. The second has its page behind a neighbour that is cached, and is tried again.
TRACE = """
     sparse-mmap-80      [000] .....     5.115201: mm_filemap_map_pages: dev=0:2 ino=c ofs=0-65535
     sparse-mmap-79      [000] .....     5.115300: mm_filemap_add_to_page_cache: dev 0:3 ino e pfn=0x5b05 ofs=0 order=0
     sparse-mmap-80      [000] .....     5.115301: mm_filemap_fault: dev=254:0 ino=c ofs=97259520
     sparse-mmap-80      [000] .....     5.115412: mm_filemap_add_to_page_cache: dev 254:0 ino c pfn=0x5a ofs=97259520 order=0
     sparse-mmap-80      [000] .....     5.115413: mm_filemap_add_to_page_cache: dev 254:0 ino c pfn=0x5b ofs=97263616 order=2
     sparse-mmap-80      [000] .N...     5.116646: mm_filemap_map_pages: dev=254:0 ino=c ofs=97255424-97320959
     sparse-mmap-80      [000] .....     5.116700: mm_filemap_map_pages: dev=254:0 ino=c ofs=0-65535
     sparse-mmap-80      [000] .....     5.116726: mm_filemap_fault: dev=254:0 ino=c ofs=8192
     sparse-mmap-80      [000] .....     5.116727: mm_filemap_add_to_page_cache: dev 254:0 ino c pfn=0x5c ofs=8192 order=0
     sparse-mmap-80      [000] .....     5.116728: mm_filemap_add_to_page_cache: dev 254:0 ino c pfn=0x5d ofs=0 order=0
     sparse-mmap-80      [000] .....     5.116729: mm_filemap_fault: dev=254:0 ino=c ofs=8192
     sparse-mmap-80      [000] .....     5.117172: mm_filemap_map_pages: dev=254:0 ino=c ofs=0-65535
     sparse-mmap-80      [000] .....     5.117180: mm_filemap_add_to_page_cache: dev 254:0 ino d pfn=0x5e ofs=0 order=0
     sparse-mmap-80      [000] .....     5.117200: mm_filemap_map_pages: dev=254:0 ino=c ofs=97255424-97320959
"""  # noqa: E501


def test_runs_of_the_file_that_is_read_most_by_fault() -> None:
    reads = parse(TRACE, "254:0", PAGE)
    assert reads == Reads(3, (Stretch(1, 97259520, 5 * PAGE), Stretch(2, 8192, PAGE), Stretch(2, 0, PAGE)))
    assert reads.size == 7 * PAGE
    assert reads.reading == 2


def test_an_empty_trace() -> None:
    assert parse("# tracer: nop\n", "254:0", PAGE) == Reads(0, ())


def test_the_picture_of_the_readme_is_small_and_what_it_is_drawn_from_is_kept() -> None:
    """That it is drawn from that is for './lab reproduce --check' to say."""
    assert recorded_reads(RELEASE / RECORDED)
    svg = (REPOSITORY / "docs/reads.svg").read_text()
    assert len(svg) <= 60 << 10
    assert not re.search(r'href="(?!#)|<script|<image', svg)


def test_what_is_recorded_is_kept_whole(tmp_path: Path) -> None:
    file = tmp_path / "reads.json"
    assert recorded_reads(file) is None
    found = recorded_reads(RELEASE / RECORDED)
    assert found
    file.write_text(json.dumps(asdict(found)))
    assert recorded_reads(file) == found
    file.write_text('{"panels": []}')
    with pytest.raises(StoreError, match="damaged"):
        recorded_reads(file)


@pytest.mark.boot
def test_a_kernel_is_drawn() -> None:
    found = record()
    before, after = (panel.reads for panel in found.panels)
    assert before.size > 50 * after.size
    assert after.size >= found.touched_bytes
    assert min(len(before.runs), len(after.runs)) > 100
    assert msgspec.convert(asdict(found), RecordedReads) == found
