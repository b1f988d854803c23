# SPDX-License-Identifier: GPL-2.0-only
"""However narrow a terminal is: names wrap, columns go, and figures stay whole."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from foliohost.terminal import fitting
from foliolab.analyse.losses import Pair, make_pairs
from foliolab.campaign.measure import Request, measure
from foliolab.report import agreement, losses, simulate, suites
from foliolab.report.columns import Column, make_columns
from foliolab.report.markdown import to_markdown
from foliolab.report.section import of_view
from foliolab.report.terminal import print_section, print_table
from foliolab.report.terminal import terminal as standard_output
from foliolab.report.view import View, view_of
from foliolab.suites.ktap import End
from foliolab.suites.result import Result
from tests.printed import printed
from tests.report.shown import text_view, view
from tests.report.test_agreement import one
from tests.report.test_losses import compared
from tests.report.test_regret import ROWS

WIDTHS = (20, 40, 60, 80, 100, 120, 160, 250)


def terminal(columns: Sequence[Column], width: int) -> list[str]:
    return printed(lambda console: print_table(console, columns), width)


def words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


def check(columns: Sequence[Column], width: int) -> None:
    """Each row of figures stands in one line, whole and in order; what is gone is gone as a column."""
    lines = terminal(columns, width)
    assert not any("…" in line for line in lines)
    kept = [column for column in fitting(columns, width) if not column.left]
    assert [column for column in columns if not column.rank and not column.left] == [
        column for column in kept if not column.rank
    ]
    places = iter(lines)
    for number in range(len(columns[0].cells)):
        row = words([column.cells[number] for column in kept])
        assert any(_contains(line.split(), row) for line in places), (width, row)


def _contains(line: list[str], row: list[str]) -> bool:
    return any(line[start : start + len(row)] == row for start in range(len(line) - len(row) + 1))


def suite_columns() -> list[Column]:
    found = {f"t{number}": End.PASS for number in range(123)} | {"skipped": End.SKIP}
    result = Result(found, Path("log"))
    return suites.columns({"a-test-of-long-name --with options": {"unpatched": result, "patched": result}})


TABLES: dict[str, Callable[[], Sequence[Column]]] = {
    "view": lambda: make_columns(view()),
    "metric of its own": lambda: make_columns(text_view()),
    "agreement": lambda: agreement.agreement_columns(one(110)),
    "losses": lambda: losses.loss_columns(compared(), make_pairs(compared())),
    "all losses": lambda: losses.loss_columns(compared(), [Pair(each, None) for each in compared().differences]),
    "suites": suite_columns,
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_no_figure_is_cut(table: str, width: int) -> None:
    check(TABLES[table](), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_regret_is_cut(width: int) -> None:
    text = "\n".join(printed(lambda console: simulate.print_regret(console, ROWS), width))
    assert "…" not in text
    assert all(figure in text.split() for figure in ("50.00", "1.75", "1.25", "1.10", "1.250", "128"))


@pytest.fixture(scope="module")
def access_patterns(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Real samples, whose cells have long names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOLIOLAB_RESULTS", str(tmp_path_factory.mktemp("results")))
        request = Request("access-patterns", variants=["unpatched", "off", "adaptive"], backend="model")
        return view_of(measure(request))[0]


@pytest.mark.parametrize("width", WIDTHS)
def test_access_patterns(access_patterns: View, width: int) -> None:
    check(make_columns(access_patterns), width)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_names_wrap_within_the_terminal_and_lose_nothing(access_patterns: View, width: int) -> None:
    lines = terminal(make_columns(access_patterns), width)
    assert max(map(len, lines)) <= width
    names = {row.cell.label for row in access_patterns.rows}
    text = " ".join(lines)
    assert all(word in text for name in names for word in name.split())


def test_a_wide_terminal_shows_all_that_markdown_does(access_patterns: View) -> None:
    shown = [line.split() for line in printed(lambda console: print_section(console, of_view(access_patterns)), 250)]
    table = [line for line in to_markdown(of_view(access_patterns)).splitlines() if line.startswith("|")][2:]
    assert len(table) == len(access_patterns.rows)
    for line in table:
        assert line.replace("|", " ").split() in shown


def test_names_give_way_before_columns_do() -> None:
    columns = [
        Column(("", "name"), ("words " * 12,), 0, left=True),
        Column(("", "kept"), ("123,456",), 1),
        Column(("", "n"), ("3",), 0),
    ]
    assert "123,456" in " ".join(terminal(columns, 40))
    assert "123,456" not in " ".join(terminal(columns, 30))


def test_what_is_no_terminal_is_as_wide_as_a_table_has_to_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [Column(("", f"column {number}"), ("0.123456789",), number) for number in range(40)]
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(standard_output(), columns)
    assert capsys.readouterr().out.count("0.123456789") == 40
    monkeypatch.setenv("COLUMNS", "80")
    print_table(standard_output(), columns)
    assert 0 < capsys.readouterr().out.count("0.123456789") < 10
