# SPDX-License-Identifier: GPL-2.0-only
"""What a session makes of a probe's words, without a guest."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foliolab.campaign.qemu_backend import QemuSession
from foliolab.errors import NoResult
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.vm.guest import Guest, JobResult
from tests.small import small_experiment


class Printing:
    """A guest whose every program prints the same."""

    config = SimpleNamespace(accelerator=SimpleNamespace(backend="test"))

    def __init__(self, line: str) -> None:
        self._line = line

    def console(self) -> str:
        return ""

    def run(self, argv: list[str], deadline_seconds: float | None = None) -> JobResult:
        return JobResult(tuple(argv), 0, 0, self._line.encode(), b"", 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "sparse-mmap printed no result."),
        ('{"read_bytes": 1}', "sparse-mmap printed no result."),
        ('{"seconds": 1}', "sparse-mmap printed no read_bytes."),
        ('{"seconds": 1, "read_bytes": null}', "sparse-mmap printed no read_bytes."),
    ],
)
def test_a_result_without_what_was_asked_for_is_none(tmp_path: Path, line: str, complaint: str) -> None:
    experiment = find_experiment(str(small_experiment(tmp_path)))
    plan = make_plan(experiment, experiment.scale("quick"))
    session = QemuSession("boot", cast(Guest, Printing(line)), plan)
    session._switches = SimpleNamespace(set=lambda switches: None)  # type: ignore[assignment]
    with pytest.raises(NoResult, match=complaint):
        session.measure(plan.boots[0].steps[0])
