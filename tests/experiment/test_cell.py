# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliohost.sizes import parse_size
from foliolab.errors import UnknownCell
from foliolab.experiment.cell import Cell, choose, expand, filters_of

CELLS = [*expand({"pattern": "random"}), *expand({"pattern": "stride", "stride": [1021, 2053]})]


def test_a_list_is_an_axis() -> None:
    cells = expand({"pattern": ["a", "b"], "threads": [1, 2]})
    assert [tuple(cell.as_dict().values()) for cell in cells] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


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


STORES = [
    *expand({"store": ["lmdb", "git"], "workload": ["uniform", "forward"], "kb": [128, 4096]}),
    *expand({"store": "lmdb", "workload": "check", "kb": [128, 4096]}),
]


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        (["kb=128"], ["kb=128"]),
        (["store=git,workload=uniform,kb=128"], ["store=git,workload=uniform,kb=128"]),
        (["store=git", "workload=check"], ["store=git", "workload=check"]),
        # What is left of the cells of another filter takes the shortest one.
        (["workload=uniform", "store=lmdb"], ["store=lmdb", "workload=uniform"]),
        (["store=lmdb", "store=git"], []),
    ],
)
def test_few_filters_choose_the_same_cells(text: list[str], filters: list[str]) -> None:
    wanted = choose(STORES, text)
    assert filters_of(wanted, STORES) == filters
    assert choose(STORES, filters) == wanted


def test_a_cell_that_no_filter_has_alone_is_named_by_all_its_axes() -> None:
    cells = [Cell.of({"case": "uffd-wp"}), Cell.of({"case": "uffd-wp", "folio": "64K"}), Cell.of({"case": "T1"})]
    assert filters_of([cells[0], cells[2]], cells) == ["case=T1", "case=uffd-wp"]
    assert filters_of(cells[:1], cells) == ["case=uffd-wp"]
