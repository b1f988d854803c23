# SPDX-License-Identifier: GPL-2.0-only
"""Figures of documents, on documents made here; those of the repository are judged in tests/test_documents.py."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from foliolab.errors import LabError, NoResult, UsageError
from foliolab.reproduce.documents import Figure, fill, shown

TEXT = """# Title
| a | b | published: c |
| --- | ---: | ---: |
| x 1 | 2,000 | 3 |
| `y 2` | none | 4 |

<!-- foliolab: report one --table -->
| a | b |
| --- | --- |
| x | 7 |
<!-- foliolab: end -->
Text, 5 in it, and 40.0<!--=misses--> more.
<!-- foliolab: simulate --table -->
<!-- foliolab: end -->
<!-- foliolab: report none --table -->
| a | b |
| --- | --- |
| x | 8 |
| y | 9 and 10 |
<!-- foliolab: end -->
| a | b |
| --- | --- |
| x | 9<!--=misses--> |
| y | 9<!--=later--> |

and 11<!--=later-->.
"""
FIGURES = {
    "misses": Figure(command="report one --json", value="misses"),
    "later": Figure(command="report none --json", value="misses"),
}
MADE = {
    "report one --table": "| a | b |\n| --- | --- |\n| x | 7 |\n",
    "report one --json": json.dumps({"rows": [{"misses": 41}]}),
    "simulate --table": "new\n",
}


def run(argv: Sequence[str]) -> str:
    if " ".join(argv) not in MADE:
        raise NoResult("Nothing was measured.")
    return MADE[" ".join(argv)]


def test_commands_of_blocks_and_of_figures_are_shown() -> None:
    assert shown(TEXT, FIGURES) == {*MADE, "report none --table", "report none --json"}


def test_what_differs_is_told_and_filled_and_what_was_not_measured_stays() -> None:
    found = fill(TEXT, run, FIGURES)
    assert found.changed == ("misses", "simulate --table", "misses")
    assert found.waiting == ("report none --table", "later", "later")
    after = TEXT.replace("40.0<", "41.0<").replace("| x | 9<", "| x | 41<")
    assert found.text == after.replace("--table -->\n<!-- foliolab: end", "--table -->\nnew\n<!-- foliolab: end")
    again = fill(found.text, run, FIGURES)
    assert (again.text, again.changed) == (found.text, ())


def test_a_table_that_lacks_a_column_is_made_and_waits() -> None:
    table = "| a | b |\n| --- | --- |\n| 1 | not measured |\n"
    text = "<!-- foliolab: report half --table -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\n<!-- foliolab: end -->\n"
    found = fill(text, lambda _: table, {})
    assert (found.changed, found.waiting) == (("report half --table",), ("report half --table",))
    assert table in found.text
    again = fill(found.text, lambda _: table, {})
    assert (again.changed, again.waiting, again.typed) == ((), found.waiting, 0)


def test_what_no_command_made_is_counted() -> None:
    """2,000; of the block of which nothing was measured 8 and 9; the figure that was not, in a table and beside."""
    assert fill(TEXT, run, FIGURES).typed == 1 + 2 + 2
    assert fill("| a | b |\n| --- | --- |\n| x | [y](z1.md) `k2` |\n| <!-- 4 --> x | y |\n", run, {}).typed == 0


REPORT = "report sparse-mmap --released --json"


@pytest.mark.parametrize(
    ("command", "figure", "words"),
    [
        (REPORT, {"where": {"stride": 1022}}, "can have read_bytes where {'stride': 1022}"),
        (REPORT, {"where": {"stirde": 1021}}, "can have read_bytes where {'stirde': 1021}"),
        (REPORT, {"where": {"variant": ["adaptve"]}}, "'adaptve' is neither a variant nor a kernel"),
        (REPORT, {"where": {"variant": "off"}, "against": {"variant": "unpached"}}, "'unpached' is neither"),
        (REPORT, {"value": "reed_bytes"}, "can have reed_bytes"),
        ("simulate --json", {"where": {"variant": "pattern"}}, "can have read_bytes where {'variant': 'pattern'}"),
    ],
)
def test_a_figure_that_no_row_can_have_is_told(command: str, figure: dict[str, Any], words: str) -> None:
    wrong = Figure(**{"command": command, "value": "read_bytes", **figure})
    rows = [{"variant": "off", "cell": {"pattern": "stride", "stride": 2053}, "metrics": {"read_bytes": {"median": 1}}}]
    with pytest.raises(LabError, match=words):
        fill("1<!--=it-->", lambda _: json.dumps({"rows": rows}), {"it": wrong})


def test_a_figure_that_is_measured_later_waits() -> None:
    row = {"variant": "off", "cell": {"pattern": "random"}, "metrics": {"read_bytes": {"median": 1}}, "kernel": "k"}
    for where in ({"stride": 1021}, {"variant": "adaptive on debian:99.9+ours"}, {"pattern": "stride", "kernel": "k"}):
        later = Figure(command=REPORT, value="seconds", where=where)
        assert fill("1<!--=it-->", lambda _: json.dumps({"rows": [row]}), {"it": later}).waiting == ("it",)


BLOCK, FIGURE = "begins or ends no block", "stands behind no figure"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!-- foliolab: report one -->\n", BLOCK),
        ("<!-- foliolab: end -->\n", BLOCK),
        ("<!-- foliolab: report one -->\n<!-- foliolab: report two -->\n<!-- foliolab: end -->\n", BLOCK),
        ("<!--=misses-->\n", FIGURE),
        ("four <!--=misses-->\n", FIGURE),
        ("4<!--=another-->\n", "no figure 'another'"),
    ],
)
def test_a_comment_that_makes_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        fill(text, run, FIGURES)
