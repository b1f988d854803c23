# SPDX-License-Identifier: GPL-2.0-only
"""Heat maps: cells are counts, and a terminal is filled with them."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.report.heatmap import Axis, heatmap, print_heatmap
from foliohost.trace import Trace, TraceFile, write_trace
from foliolab.cli.main import main
from foliolab.files import REPOSITORY
from tests.host.printed import printed

TRACE = Trace(
    files=(TraceFile("data <1> & more", 512), TraceFile("other", 4)),
    file_of=array("I", [0, 0, 1, 0, 0, 0, 0, 0]),
    page_of=array("I", [0, 0, 3, 511, 255, 256, 256, 256]),
    window=16,
)
TIMED = replace(TRACE, other={"times_ms": [0, 1000, 1000, 5000], "live": {"reads": True}})


def test_cells_are_counts_by_place_and_order() -> None:
    found = heatmap(TRACE, 0, 4, 2)
    assert found.cells == [[2, 0, 1, 0], [0, 1, 1, 2]]
    assert (found.most, found.what, found.time.title, found.time.end) == (2, "touches", "touches, in order", 8)
    assert (found.place.end, found.place.unit) == (2, "MiB")
    assert heatmap(TRACE, 1, 4, 4).cells == [[0] * 4, [0] * 4, [0] * 4, [0, 1, 0, 0]]


def test_no_touch_is_left_out_whatever_the_size() -> None:
    for columns in (1, 3, 7, 1000):
        for rows in (1, 3, 600):
            assert sum(map(sum, heatmap(TRACE, 0, columns, rows).cells)) == 7


def test_times_lie_between_marks() -> None:
    found = heatmap(TIMED, 0, 5, 1)
    # At 0, 0.43, 1, 1, 1.57, 3.29 and 5 seconds; the third, at 0.86, is of another file.
    assert found.cells == [[2, 3, 0, 1, 1]]
    assert (found.time, found.what) == (Axis("time", 5, "s"), "pages read")


@pytest.mark.parametrize("times", [None, [], [3, 1], [-1, 4], [0, 0], ["a"], 7])
def test_times_that_are_none_count_for_nothing(times: object) -> None:
    assert heatmap(replace(TRACE, other={"times_ms": times}), 0, 4, 2) == heatmap(TRACE, 0, 4, 2)


def test_shades_go_by_the_logarithm() -> None:
    trace = replace(
        TRACE, file_of=array("I", [0] * 1111), page_of=array("I", [0] + [128] * 10 + [256] * 100 + [384] * 1000)
    )
    found = heatmap(trace, 0, 1, 4)
    assert [found.shade(value, 4) for value in (0, 1, 10, 100, 1000)] == [-1, 0, 1, 2, 3]
    assert heatmap(TRACE, 1, 4, 4).shade(1, 4) == 3


@pytest.mark.parametrize("width", [30, 80, 200])
def test_a_terminal_is_filled_and_has_no_colours_elsewhere(width: int) -> None:
    lines = printed(lambda console: print_heatmap(console, TRACE, 0, rows=5), width)
    assert lines[0] == "data <1> & more"
    assert lines[1].startswith("    0 │█")
    assert lines[5].startswith("2 MiB │")
    assert lines[6] == "      └" + "─" * (width - 7)
    assert lines[7].endswith("8")
    assert max(map(len, lines[:8])) <= width
    assert "\x1b" not in "".join(lines)


def test_traces_that_are_shipped_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(REPOSITORY / "traces/lmdb-uniform.trace")
    assert main(["trace", "heatmap", trace, "--file", "*data.mdb"]) == 0
    assert "data/data.mdb" in capsys.readouterr().out


def test_a_name_of_any_bytes_is_drawn(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    trace = tmp_path / "t"
    write_trace(trace, replace(TRACE, files=(TraceFile("caf\udce9", 512), TRACE.files[1])))
    assert main(["trace", "heatmap", str(trace)]) == 0
    assert capsysbinary.readouterr().out.startswith(b"caf\xe9\n")


def test_what_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "t", TRACE)
    write_trace(tmp_path / "none", replace(TRACE, file_of=array("I"), page_of=array("I")))
    for words, status, sentence in (
        ([f"{tmp_path}/t", "--file", "x*"], 2, "has no touches of a file 'x*'."),
        ([f"{tmp_path}/none"], 2, "none has no touches."),
        ([f"{tmp_path}/nowhere"], 15, "cannot be read: No such file or directory."),
    ):
        assert main(["trace", "heatmap", *words]) == status
        assert sentence in capsys.readouterr().err
