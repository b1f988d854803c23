# SPDX-License-Identifier: GPL-2.0-only
"""The command below a table of what is shipped measures that table."""

import shlex
from collections import Counter

from foliolab.analyse.rows import group_samples
from foliolab.campaign.measure import planned
from foliolab.cli.main import command_line
from foliolab.experiment.cell import Cell
from foliolab.reproduce.plan import choose_parts, load_plan, made_by
from foliolab.reproduce.released import read_released
from tests.samples import sample


def test_what_is_planned_has_all_that_is_shown_and_no_part_for_nothing() -> None:
    groups = group_samples(read_released())
    parser, parts = command_line(), load_plan()
    for group in groups:
        shown = {(Cell.of(each.cell), each.variant) for each in group.samples}
        lab, *words = shlex.split(made_by(group, shown))
        asked = parser.parse_args(words)
        names = [name for some in asked.only for name in some.split(",")]
        plans = [planned(part.request())[0] for part in choose_parts(parts, names, quick=False)]
        measured = [{(step.cell, step.variant.name) for step in plan.steps} & shown for plan in plans]
        times = Counter(each for found in measured for each in found)
        assert lab == "./lab"
        assert shown == set(times), group.title
        # Without any of the parts, something would be missing.
        assert all(any(times[each] == 1 for each in found) for found in measured), group.title
    assert groups


def test_what_no_part_has_was_made_by_no_command() -> None:
    (group,) = group_samples([sample(7, experiment="mine")])
    assert made_by(group, [(Cell.of(each.cell), each.variant) for each in group.samples]) == ""
