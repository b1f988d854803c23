# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliohost.sizes import parse_size
from foliolab.errors import UnknownCell
from foliolab.experiment.cell import Cell, choose, expand

CELLS = [*expand({"pattern": "random"}), *expand({"pattern": "stride", "stride": [1021, 2053]})]


def test_a_list_is_an_axis() -> None:
    cells = expand({"pattern": ["a", "b"], "threads": [1, 2]})
    assert [tuple(cell.as_dict().values()) for cell in cells] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_axes_in_another_order_make_the_same_cell() -> None:
    one, other = Cell.of({"pattern": "random", "threads": 2}), Cell.of({"threads": 2, "pattern": "random"})
    assert one == other
    assert {one: 1}[other] == 1
    assert choose([one], [other]) == (one,)
    assert one not in (Cell.of({"pattern": "random"}), Cell.of({"pattern": "random", "threads": "2"}), "random")


@pytest.mark.parametrize(
    ("axes", "label"),
    [
        ({"pattern": "random"}, "random"),
        ({"pattern": "stride", "stride": 1021}, "stride 1021"),
        ({"pattern": "random", "threads": 4}, "random, threads 4"),
    ],
)
def test_labels(axes: dict[str, str | int], label: str) -> None:
    assert Cell.of(axes).label == label


@pytest.mark.parametrize(
    ("filters", "labels"),
    [
        ([], ["random", "stride 1021", "stride 2053"]),
        (["pattern=stride"], ["stride 1021", "stride 2053"]),
        (["pattern=stride,stride=2053"], ["stride 2053"]),
        (["stride=2053", "pattern=random"], ["random", "stride 2053"]),
    ],
)
def test_choose(filters: list[str], labels: list[str]) -> None:
    assert [cell.label for cell in choose(CELLS, filters)] == labels


def test_choose_a_cell_itself() -> None:
    stride, more = CELLS[1], Cell.of({**CELLS[1].as_dict(), "threads": 2})
    assert choose([*CELLS, more], [stride]) == (stride,)
    with pytest.raises(UnknownCell):
        choose(CELLS, [more])


@pytest.mark.parametrize("wrong", ["pattern=no-such", "colour=red", "pattern=random,stride=1021", "random", ""])
def test_a_filter_without_a_cell_is_an_error(wrong: str) -> None:
    with pytest.raises(UnknownCell, match=r"matches '.*'; there are: pattern=random; pattern=stride,stride=1021"):
        choose(CELLS, [wrong])


@pytest.mark.parametrize(("text", "size"), [("512", 512), ("4K", 4096), ("2560M", 2560 << 20), ("20G", 20 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1M", "1.5G", "1T", "G", "1 G"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)
