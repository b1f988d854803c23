# SPDX-License-Identifier: GPL-2.0-only
"""Titles of cells and disks, for readers who know no experiment."""

import pytest

from foliolab.device import load_devices
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.report.titles import device_title, titles, titles_of


def test_each_case_of_the_picture_has_a_title_of_its_own() -> None:
    cells = [cell for cell in find_experiment("reports").scale("quick").cells if cell.as_dict()["read_ahead_kb"] == 128]
    found = titles_of("reports", cells)
    assert sorted(found) == sorted(titles().cells["reports"].values())
    assert len(set(found)) == len(cells)


@pytest.mark.parametrize("experiment", titles().cells)
def test_no_title_is_of_a_cell_that_is_not_there(experiment: str) -> None:
    cells = [cell for scale in find_experiment(experiment).scales.values() for cell in scale.cells]
    found = {title for cell in cells for title in titles_of(experiment, [cell])}
    assert found >= set(titles().cells[experiment].values())


def test_others_keep_their_labels_and_names() -> None:
    assert titles_of("mprotect", [Cell.of({"case": "T1"})]) == ("T1",)
    assert set(titles().devices) <= set(load_devices())
    assert device_title("remote") == "remote"
