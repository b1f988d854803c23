# SPDX-License-Identifier: GPL-2.0-only
"""Blocks of documents, on documents made here; those of the repository are judged in tests/test_documents.py."""

from collections.abc import Sequence

import pytest

from foliolab.errors import UsageError
from foliolab.reproduce.documents import blocks, differing, filled, typed_figures

TEXT = """# Title
| a | b |
| --- | ---: |
| x 1 | 2,000 |
| `y 2` | none |

<!-- foliolab: report one --table -->
| a | b |
| --- | --- |
| x | 7 |
<!-- foliolab: end -->
Text, and 5 in it.
<!-- foliolab: regret --table -->
<!-- foliolab: end -->
"""


def run(argv: Sequence[str]) -> str:
    return {"report": "| a | b |\n| --- | --- |\n| x | 7 |\n", "regret": "new\n"}[argv[0]]


def test_a_block_has_its_command_and_content() -> None:
    assert [(block.command, block.content.count("\n")) for block in blocks(TEXT)] == [
        ("report one --table", 3),
        ("regret --table", 0),
    ]


def test_what_differs_is_told_and_filled() -> None:
    assert differing(TEXT, run) == ["regret --table"]
    after = filled(TEXT, run)
    assert differing(after, run) == []
    assert after == TEXT.replace("--table -->\n<!-- foliolab: end", "--table -->\nnew\n<!-- foliolab: end")
    assert filled(after, run) == after


def test_only_figures_outside_of_blocks_are_typed() -> None:
    assert typed_figures(TEXT) == 1
    assert typed_figures("| a | b |\n| --- | --- |\n| x | [y](z1.md) `k2` |\n| <!-- 4 --> x | y |\n") == 0


@pytest.mark.parametrize(
    "text",
    [
        "<!-- foliolab: report one -->\n",
        "<!-- foliolab: end -->\n",
        "<!-- foliolab: report one -->\n<!-- foliolab: report two -->\n<!-- foliolab: end -->\n",
        "<!-- foliolab: run one -->\n<!-- foliolab: end -->\n",
        "<!-- foliolab: regress one -->\n<!-- foliolab: end -->\n",
    ],
)
def test_what_is_no_block_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        blocks(text)
