# SPDX-License-Identifier: GPL-2.0-only
import re
from xml.etree import ElementTree

import pytest

from foliolab.cli.demo import picture
from foliolab.paths import REPOSITORY
from foliolab.progress import Reporter
from foliolab.report.picture import Panel, Reads, Run, draw, parse

SVG = "{http://www.w3.org/2000/svg}"
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


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def marks(svg: str) -> list[int]:
    """How many reads each panel draws."""
    panels = ElementTree.fromstring(svg).findall(f"{SVG}g[@class='panel']")
    return [len(re.findall("M", panel.find(f"{SVG}path").get("d", ""))) for panel in panels]  # type: ignore[union-attr]


def test_runs_of_the_file_that_is_read_most_by_fault() -> None:
    reads = parse(TRACE, "254:0", PAGE)
    assert reads == Reads(3, (Run(1, 97259520, 5 * PAGE), Run(2, 8192, PAGE), Run(2, 0, PAGE)))
    assert reads.size == 7 * PAGE


def test_an_empty_trace() -> None:
    assert parse("# tracer: nop\n", "254:0", PAGE) == Reads(0, ())


def test_two_panels_with_the_numbers_of_the_data() -> None:
    before = Reads(1200, tuple(Run(number, number << 20, 4 << 20) for number in range(100)))
    after = Reads(1000, (Run(1, 0, PAGE << 8),))
    svg = draw([Panel("old & slow", before), Panel("new", after)], 128 << 20, 3 << 19, "one <remark>")
    assert marks(svg) == [100, 1]
    shown = texts(svg)
    assert {"old & slow", "400.0 MiB read", "new", "1.0 MiB read", "128 MiB", "one <remark>"} <= set(shown)
    assert shown.count("1,200") == 2  # the same axis for both
    assert "needed: 1.5 MiB, the pages that were touched" in shown


def test_reads_stay_within_their_panel() -> None:
    runs = (Run(0, 0, PAGE), Run(10, (128 << 20) - PAGE, PAGE), Run(5, 0, 128 << 20))
    svg = draw([Panel("all", Reads(10, runs))], 128 << 20, PAGE, "")
    for x, y, height in re.findall(r"M([-\d.]+) ([-\d.]+)v([-\d.]+)", svg):
        assert 0 <= float(x) <= 336
        assert float(y) >= 0
        assert float(y) + float(height) <= 280.1


def test_the_picture_of_the_readme_is_one() -> None:
    svg = (REPOSITORY / "docs/reads.svg").read_text()
    assert len(svg) <= 60 << 10
    before, after = (float(text.split()[0].replace(",", "")) for text in texts(svg) if text.endswith("MiB read"))
    assert before > 50 * after
    assert min(marks(svg)) > 100
    assert f"{before} MiB" in svg.split("</title>")[0]
    assert not re.search(r"href|<script|<image", svg)


@pytest.mark.boot
def test_a_kernel_is_drawn() -> None:
    svg = picture(Reporter())
    before, after = (float(text.split()[0].replace(",", "")) for text in texts(svg) if text.endswith("MiB read"))
    needed = next(text for text in texts(svg) if text.startswith("needed"))
    assert before > 50 * after
    assert after >= float(re.findall(r"[\d.]+", needed)[0])
    assert min(marks(svg)) > 100
