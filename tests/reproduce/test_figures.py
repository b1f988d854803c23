# SPDX-License-Identifier: GPL-2.0-only
"""Single figures, from what commands print."""

import json
from pathlib import Path
from typing import Any

import pytest

from foliolab.errors import BadExperiment, NoResult
from foliolab.reproduce.documents import Figure, load_figures, spell


def row(variant: str, pattern: str, reads: float, **others: Any) -> dict[str, Any]:
    metrics = {"reads": {"median": reads, "least": 0, "most": 9}}
    return {"variant": variant, "cell": {"pattern": pattern}, "metrics": metrics, "kernel": {"hash": "k1"}, **others}


OUTPUT = json.dumps(
    {
        "rows": [
            row("off", "zipf", 2000, n=3),
            row("adaptive", "zipf", 1500, n=3),
            row("off", "walk", 100),
            row("adaptive", "walk", 125),
            row("adaptive", "lost", 7),
        ],
        "agreement": [{"difference": 0.01, "kernel": 5}, {"difference": -0.015, "kernel": 6}],
    }
)
ZIPF = {"pattern": "zipf", "variant": "adaptive"}
OFF = {"variant": "off"}


@pytest.mark.parametrize(
    ("figure", "before", "after"),
    [
        (Figure(value="reads", where=ZIPF), "7", "1,500"),
        (Figure(value="n", where=ZIPF), "1", "3"),
        (Figure(value="reads", where=ZIPF, against=OFF), "0.1", "0.8"),
        (Figure(value="reads", where=ZIPF, against=OFF, unit="% less"), "1", "25"),
        (Figure(value="reads", where=ZIPF, against=OFF, unit="% more"), "+1.0", "-25.0"),
        (Figure(value="reads", where=ZIPF, against=OFF, unit="times less"), "1.00", "1.33"),
        (
            Figure(
                value="reads",
                where={"variant": "adaptive", "pattern": ["zipf", "walk"]},
                against=OFF,
                take="farthest",
                unit="% less",
            ),
            "1",
            "25",
        ),
        (Figure(value="difference", where={"kernel": 5}, list="agreement", unit="% gained"), "-1.0", "-1.0"),
        (Figure(value="kernel", where=ZIPF), "`k0`", "`k1`"),
        (Figure(value="reads", where={"variant": "adaptive"}, take="rows"), "0", "3"),
        (Figure(value="pattern", take="values"), "0", "3"),
        (Figure(value="difference", list="agreement", take="farthest", unit="%"), "0.0", "1.5"),
        (Figure(value="reads", where={"pattern": ["zipf", "walk"]}, take="least"), "0", "100"),
        (
            Figure(
                value="reads",
                where={"pattern": ["zipf", "walk"], "variant": "adaptive"},
                against=OFF,
                take="most",
                unit="% more",
            ),
            "-1",
            "+25",
        ),
    ],
)
def test_figures(figure: Figure, before: str, after: str) -> None:
    assert spell(figure, OUTPUT, before) == after


def test_a_change_of_nothing_has_no_minus() -> None:
    assert (
        spell(Figure(value="reads", where=ZIPF, against={"variant": "adaptive"}, unit="% less"), OUTPUT, "-1") == "+0"
    )


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (Figure(value="reads", where={"pattern": "none"}), "has reads where {'pattern': 'none'}"),
        (Figure(value="writes", where=ZIPF), "has writes where {'pattern': 'zipf', 'variant': 'adaptive'}"),
        (Figure(value="reads", where={"pattern": "lost"}, against=OFF), "where {'variant': 'off', 'pattern': 'lost'}"),
    ],
)
def test_what_is_not_there_is_no_result(figure: Figure, words: str) -> None:
    with pytest.raises(NoResult, match=f"^No row of .* {words}"):
        spell(figure, OUTPUT, "1")


def test_several_rows_make_no_figure() -> None:
    with pytest.raises(BadExperiment, match="several rows"):
        spell(Figure(value="reads", where={"variant": "adaptive"}), OUTPUT, "1")
    twice = json.dumps({"rows": [row("off", "zipf", 1), row("off", "zipf", 2), row("adaptive", "zipf", 3)]})
    with pytest.raises(BadExperiment, match="several rows"):
        spell(Figure(value="reads", where=ZIPF, against=OFF), twice, "1")


def test_a_row_is_set_against_one_of_as_many_boots() -> None:
    rows = json.dumps({"rows": [row("off", "zipf", 4, n=6), row("adaptive", "zipf", 2, n=3)]})
    with pytest.raises(BadExperiment, match=r"has 6 instead of 3 boots where .*: measure as many"):
        spell(Figure(value="reads", where=ZIPF, against=OFF), rows, "1")


def test_a_row_is_set_against_that_of_the_same_disk() -> None:
    rows = [
        row(variant, "zipf", reads * times, device=device)
        for device, times in (("nvme", 1), ("hdd", 10))
        for variant, reads in (("off", 4), ("adaptive", 2))
    ]
    figure = Figure(value="reads", where=ZIPF | {"device": "hdd"}, against=OFF)
    assert spell(figure, json.dumps({"rows": rows}), "0.0") == "0.5"


GOOD = '[sparse]\ncommand = "report sparse-mmap --released --json"\nfigures.reads = { value = "read_bytes" }\n'


def test_a_figure_has_the_command_of_its_table(tmp_path: Path) -> None:
    file = tmp_path / "figures.toml"
    file.write_text(GOOD)
    assert load_figures(file) == {"reads": Figure(value="read_bytes", command="report sparse-mmap --released --json")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD + GOOD.replace("[sparse]", "[other]"), r"'other.figures.reads' is the name of another figure, too"),
        (GOOD.replace("value =", "value = 'x', walue ="), r"'sparse.figures.reads.walue' is not a key"),
        (GOOD.replace(" }", ', unit = "mile" }'), r"'sparse.figures.reads.unit' has to be one of , %"),
        ("[sparse]\n", r"'sparse.command' is missing"),
    ],
)
def test_mistakes_are_named(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.toml"
    file.write_text(text)
    with pytest.raises(BadExperiment, match=words):
        load_figures(file)
