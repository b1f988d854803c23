# SPDX-License-Identifier: GPL-2.0-only
"""What a session makes of a probe's words, without a guest."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab.arch import X86_64
from foliolab.campaign.qemu_backend import QemuSession
from foliolab.errors import GuestCrashed, NoResult
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Step, make_plan
from foliolab.experiment.variants import load_variants
from foliolab.kernel.name import PATCHED
from foliolab.vm.accel import Accelerator
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.outcome import GuestFailure, JobResult, OutcomeKind
from foliolab.vm.switches import LACKING, switch_path
from tests.small import small_experiment


class Printing(Guest):
    """A guest whose every program prints the same."""

    def __init__(
        self, line: str, backend: str = "test", *, status: int = 0, words: str = "", says: str = "", lacks: str = ""
    ) -> None:
        super().__init__(GuestConfig(X86_64, None, None, Accelerator(backend, (), patience=1)), Path())
        self._prints = line
        self._status = status
        self._words = words
        self._says = says
        self._said = ""
        self._lacks = lacks
        self.ran: list[list[str]] = []

    def console(self) -> str:
        return self._said

    def run(self, argv: Sequence[str], deadline_seconds: float | None = 60, **_: object) -> JobResult:
        if argv[0] == ":switch" and self._lacks:
            words = f"The kernel has no switch {switch_path(self._lacks)}.\n"
            return JobResult(tuple(argv), LACKING, 0, b"", words.encode(), 0, 0.0)
        if argv[0].startswith(":"):
            return JobResult(tuple(argv), 0, 0, self._prints.encode(), b"", 0, 0.0)
        self.ran.append(list(argv))
        self._said = self._says
        return JobResult(tuple(argv), self._status, 0, self._prints.encode(), self._words.encode(), 0, 0.0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "sparse-mmap printed no result."),
        ('{"read_bytes": 1}', "sparse-mmap printed no result."),
        ('{"seconds": 1}', "sparse-mmap printed no read_bytes."),
        ('{"seconds": 1, "read_bytes": true}', "sparse-mmap printed no read_bytes."),
        ('{"seconds": 1, "read_bytes": ""}', "sparse-mmap printed no read_bytes."),
    ],
)
def test_a_result_without_what_was_asked_for_is_none(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(NoResult, match=complaint):
        measured(tmp_path, Printing(line))


def test_what_a_kernel_cannot_count_does_not_apply_to_it(tmp_path: Path) -> None:
    with pytest.raises(GuestFailure, match=r"sparse-mmap cannot count read_bytes on this kernel\.") as caught:
        measured(tmp_path, Printing('{"seconds": 1, "read_bytes": null}'))
    assert caught.value.outcome.kind is OutcomeKind.NOT_APPLICABLE


def test_what_a_kernel_lacks_does_not_apply_to_it(tmp_path: Path) -> None:
    with pytest.raises(GuestFailure, match="No NUMA balancing") as caught:
        measured(tmp_path, Printing("", status=77, words="mprotect: No NUMA balancing.\n"))
    assert caught.value.outcome.kind is OutcomeKind.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("kernel", "kind", "sentence"),
    [
        ("debian:7.3+ours", OutcomeKind.NOT_APPLICABLE, r"debian:7\.3\+ours has no switch {}, which off sets\."),
        (PATCHED, OutcomeKind.NO_RESULT, r":switch ended with status 77: The kernel has no switch {}\."),
    ],
)
def test_a_switch_that_only_ours_has_to_have(kernel: str, kind: OutcomeKind, sentence: str, tmp_path: Path) -> None:
    name = load_variants()["off"].switches[0][0]
    with pytest.raises(GuestFailure, match=sentence.format(name)) as caught:
        measured(tmp_path, Printing('{"seconds": 1, "read_bytes": 1}', lacks=name), kernel)
    assert caught.value.outcome.kind is kind


LOCKUP = "[  100.1] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sparse-mmap:77]\n"


@pytest.mark.parametrize(("backend", "counts"), [("qemu-kvm", True), ("qemu-tcg", False), ("qemu-icount", False)])
def test_a_lockup_is_a_fault_where_time_is_real(backend: str, counts: bool, tmp_path: Path) -> None:
    guest = Printing('{"seconds": 1, "read_bytes": 1}', backend, says=LOCKUP)
    session, step = session_of(tmp_path, guest)
    if counts:
        with pytest.raises(GuestCrashed, match="complained: watchdog: BUG: soft lockup"):
            session.measure(step)
        return
    assert session.measure(step)["read_bytes"] == 1
    assert (
        session.remark
        == "The guest had too little time: watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sparse-mmap:77]"
    )
    session.measure(step)
    assert session.remark == ""


def measured(place: Path, guest: Printing, kernel: str = PATCHED) -> dict[str, int | float]:
    session, step = session_of(place, guest, kernel)
    return session.measure(step)


def session_of(
    place: Path, guest: Printing, kernel: str = PATCHED, *, counters: bool = False, metric: str = "read_bytes"
) -> tuple[QemuSession, Step]:
    experiment = replace(find_experiment(str(small_experiment(place))), metric=metric)
    scale = experiment.scale("quick")
    scale = replace(scale, parameters=structs.replace(scale.parameters, hardware_counters=counters))
    plan = make_plan(experiment, scale)
    return QemuSession("boot", guest, plan, kernel), plan.boots[0].steps[0]


COUNTED = '{"seconds": 1, "read_bytes": 1, "cpu_instructions": 7, "cpu_cycles": 9, "dtlb_misses": null, '
COUNTED += '"itlb_misses": null, "llc_misses": 3, "reason": "%s"}'


def test_what_hardware_cannot_count_is_left_out_and_said(tmp_path: Path) -> None:
    guest = Printing(COUNTED % "No such file or directory")
    session, step = session_of(tmp_path, guest, counters=True)
    metrics = session.measure(step)
    assert (metrics["cpu_instructions"], metrics["cpu_cycles"], metrics["llc_misses"]) == (7, 9, 3)
    assert "dtlb_misses" not in metrics
    assert session.remark == "not-counted: dtlb_misses, itlb_misses: No such file or directory."
    assert guest.ran[-1][:4] == ["count", "--to", "/tmp/hardware-counts", "--"]


def test_a_probe_runs_by_itself_unless_hardware_is_to_count(tmp_path: Path) -> None:
    guest = Printing('{"seconds": 1, "read_bytes": 1}')
    session, step = session_of(tmp_path, guest)
    session.measure(step)
    assert (guest.ran[-1][0], session.remark) == ("sparse-mmap", "")


def test_an_experiment_about_what_hardware_cannot_count_does_not_apply(tmp_path: Path) -> None:
    session, step = session_of(tmp_path, Printing(COUNTED % "none"), counters=True, metric="dtlb_misses")
    with pytest.raises(GuestFailure, match=r"sparse-mmap cannot count dtlb_misses on this kernel\.") as caught:
        session.measure(step)
    assert caught.value.outcome.kind is OutcomeKind.NOT_APPLICABLE


LINE = (
    '{"read_bytes": 1, "seconds": 0.003, "undisturbed_seconds": 0.002, "ptes_visited": 16000, '
    '"undisturbed_touch_seconds": %s, "ptes_touched": 8000}'
)


def test_where_time_counts_instructions_there_are_so_many_for_each_entry(tmp_path: Path) -> None:
    metrics = measured(tmp_path, Printing(LINE % "4e-5", "qemu-icount"))
    assert metrics["instructions_per_pte"] == pytest.approx(125)
    assert metrics["instructions_per_touch"] == pytest.approx(5)
    metrics = measured(tmp_path, Printing(LINE % "null", "qemu-icount"))
    assert "instructions_per_pte" in metrics
    assert "instructions_per_touch" not in metrics
    assert not {"instructions", "instructions_per_pte"} & set(measured(tmp_path, Printing(LINE % "4e-5")))
