# SPDX-License-Identifier: GPL-2.0-only
"""A command below a table measures that table."""

import shlex

from foliolab.campaign.measure import planned
from foliolab.campaign.sample import MODEL
from foliolab.cli.main import command_line
from foliolab.cli.measure import requested
from foliolab.experiment.load import experiment_names, find_experiment
from foliolab.experiment.variants import first_name
from foliolab.report.view import make_views
from foliolab.reproduce.released import read_released


def test_what_is_planned_is_what_is_shown() -> None:
    views = make_views(read_released(), {name: find_experiment(name) for name in experiment_names()})
    shown = [view for view in views if view.group.backend != MODEL]
    parser = command_line()
    for view in shown:
        found = set()
        for command in view.commands:
            lab, *words = shlex.split(command)
            plan, *_ = planned(requested(parser.parse_args(words)))
            found |= {(step.variant.name, step.cell) for step in plan.steps}
            assert lab == "./lab"
        assert found == {(first_name(row.variant), row.cell) for row in view.rows}, view.group.title
    assert shown
