# SPDX-License-Identifier: GPL-2.0-only
"""What the command measures before it compares."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from foliolab.campaign import measure as measuring
from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.outcome import OutcomeKind
from tests.campaign.fake import FakeBackend, Measure, ending, kernel_for
from tests.cli.command import lab
from tests.cli.workloads import COMPARED, PUBLISHED, places, rows
from tests.small import small_experiment

Fake = Callable[[Measure], FakeBackend]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A backend in place of guests, for what no guest does when it is told to."""

    def install(measure: Measure) -> FakeBackend:
        backend = FakeBackend(measure)
        monkeypatch.setattr(measuring, "_on_qemu", lambda request, plan, *_: (plan, backend, ()))
        for name in ("identify", "build"):
            monkeypatch.setattr(measuring, name, lambda request: kernel_for(request.kernel))
        return backend

    return install


def test_what_was_measured_is_not_measured_again(
    store: Path, programs: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = fake(
        lambda step, _: {"read_bytes": 1 << 30, "major_faults": 100 * (1 + (step.variant.name == "published"))}
    )
    assert main(["compare", programs, "--json", "--repetitions", "2", "--workload", "gcc"]) == 0
    found = rows(capsys)
    assert places(found) == [("gcc", "published", "major_faults", "worse"), ("gcc", "published", "read_bytes", "same")]
    assert [row["n"] for row in found] == [2, 2]
    assert (sum(backend.tried.values()), len(read_samples(store))) == (6, 6)
    assert main(["compare", programs, "--variant", "published,adaptive", "--json", "--repetitions", "2"]) == 0
    assert {(row["workload"], row["variant"]) for row in rows(capsys)} == {
        (workload, variant) for workload in PUBLISHED for variant in ("published", "adaptive")
    }
    assert set(backend.tried.values()) == {1}
    assert sum(backend.tried.values()) == 2 * 3 * 4


def test_experiments_without_a_wanted_workload_are_not_measured(
    store: Path, programs: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(programs).with_name("other.toml")
    other.write_text(Path(programs).read_text().replace('"gcc", "sqlite", "lmdb"', '"fork", "lmdb"'))
    fake(lambda *_: {"read_bytes": 1 << 30, "major_faults": 100})
    argv = ["compare", programs, str(other), "--json"]
    assert main([*argv, "--workload", "gcc"]) == 0
    assert {(row["experiment"], row["workload"]) for row in rows(capsys)} == {("programs", "gcc")}
    assert {each.experiment for each in read_samples(store)} == {"programs"}
    assert main([*argv, "--workload", "lmdb", "--workload", "fork"]) == 0
    assert {(row["experiment"], row["workload"]) for row in rows(capsys)} == {
        ("programs", "lmdb"),
        ("other", "lmdb"),
        ("other", "fork"),
    }


def test_a_guest_that_crashes_is_a_row_and_the_exit_status(
    store: Path, programs: str, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(step: object, tried: int) -> dict[str, int | float]:
        if "sqlite" in str(step) and "published" in str(step):
            raise ending(OutcomeKind.GUEST_CRASH)
        return {"read_bytes": 1 << 30, "major_faults": 100}

    fake(measure)
    for form in (["--json"], []):
        assert main(["compare", programs, *form]) == 31
        said = capsys.readouterr()
        assert "sqlite, published, repetition 1: It ended with guest-crash." in said.err
        if form:
            last = json.loads(said.out)["rows"][-1]
            assert (last["workload"], last["variant"], last["outcome"]) == ("sqlite", "published", "guest-crash")
            assert (last["metric"], last["loss"]) == (None, None)
        else:
            assert "published: guest-crash: sqlite. It ended with guest-crash." in said.out
            assert "published: none of 2 workloads is shown to lose more than 2 %; none gains" in said.out


@pytest.mark.parametrize(("kind", "status"), [(OutcomeKind.GUEST_CRASH, 1), (OutcomeKind.LOST_HOST, 35)])
def test_check_judges_what_crashes_and_not_what_a_host_lost(
    store: Path, programs: str, fake: Fake, kind: OutcomeKind, status: int
) -> None:
    def measure(step: object, tried: int) -> dict[str, int | float]:
        if "sqlite" in str(step) and "published" in str(step):
            raise ending(kind)
        return {"read_bytes": 1 << 30, "major_faults": 100}

    fake(measure)
    assert main(["compare", programs, "--variant", "published", "--check"]) == status


@pytest.mark.boot
def test_on_real_kernels(tmp_path: Path, stock_kernel: BuiltKernel, patched_kernel: BuiltKernel) -> None:
    file = small_experiment(tmp_path)
    file.write_text(COMPARED + file.read_text())
    argv = [
        "compare",
        str(file),
        "--kernel",
        stock_kernel.name,
        "--kernel",
        "patched",
        "--workload",
        "small stride 37",
        "--repetitions",
        "2",
        "--json",
    ]
    results = str(tmp_path / "results")
    done = lab(*argv, FOLIOLAB_RESULTS=results)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["variant"] for row in rows} == {"patched"}
    measured = {each.variant: each.kernel.hash for each in read_samples(tmp_path / "results/samples.jsonl")}
    stock = stock_kernel.name
    stocks = dict.fromkeys((stock, f"{stock} again"), stock_kernel.hash)
    assert measured == {**stocks, "patched": patched_kernel.hash}
    found = {row["metric"]: row for row in rows}
    # It soon reads single pages: fewer bytes, more often.
    assert found["read_bytes"]["change"] == "better"
    assert found["major_faults"]["change"] == "worse"
    again = lab(*argv, "--no-run", FOLIOLAB_RESULTS=results)
    assert again.stdout == done.stdout
    checked = lab(*argv, "--no-run", "--check", FOLIOLAB_RESULTS=results)
    assert (checked.returncode, checked.stdout) == (1, done.stdout)
