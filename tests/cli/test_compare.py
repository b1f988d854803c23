# SPDX-License-Identifier: GPL-2.0-only
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.cli.main import main
from foliolab.experiment.load import experiment_names, find_experiment
from tests.cli.workloads import PUBLISHED, places, rows
from tests.samples import sample


def fill(store: Path, *more: Sample) -> None:
    """Under published, gcc and lmdb get worse by faults, and gcc alone by what counts; adaptive has gcc alone.

    All of it was measured twice, to the same figures.
    """
    with open_store(store) as opened:
        for number in (1, 2):
            for workload, (read, faults) in PUBLISHED.items():
                for variant, metrics in (
                    ("unpatched", (1000, 100)),
                    ("unpatched again", (1000, 100)),
                    ("published", (read, faults)),
                ):
                    opened.append(one(workload, variant, metrics, repetition=number))
            opened.append(one("gcc", "adaptive", (1000, 100), repetition=number))
        for each in more:
            opened.append(each)


def one(workload: str, variant: str, metrics: tuple[int, int], *, repetition: int = 1, **changes: str) -> Sample:
    read_bytes, faults = (metrics[0] << 20, metrics[1])
    figures: dict[str, float] = {"read_bytes": read_bytes, "major_faults": faults}
    cell: dict[str, str | int] = {"workload": workload}
    return replace(
        sample(experiment="programs", cell=cell, variant=variant, metrics=figures, repetition=repetition),
        **changes,  # type: ignore[arg-type]
    )


def test_json_has_the_worst_first_and_what_is_not_there(
    store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)
    assert main(["compare", programs, "--no-run", "--json"]) == 0
    found = rows(capsys)
    named = ("workload", "variant", "metric", "baseline", "value", "loss", "change", "n")
    assert [found[0][name] for name in named] == ["gcc", "published", "major_faults", 100, 300, 2, "worse", 2]
    assert [row["loss"] for row in found[:-2]] == pytest.approx([2, 0.01, 0.01, 0, 0, 0, 0, -0.1])
    assert places(found[-3:]) == [
        ("sqlite", "published", "read_bytes", "better"),
        ("sqlite", "adaptive", None, None),
        ("lmdb", "adaptive", None, None),
    ]
    assert [row["outcome"] for row in found[-2:]] == ["not-measured"] * 2


def test_workloads_variants_and_baseline(store: Path, programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    argv = ["compare", programs, "--no-run", "--json", "--workload", "sqlite,lmdb", "--variant", "published"]
    assert main(argv) == 0
    by_name = rows(capsys)
    assert {row[0] for row in places(by_name)} == {"sqlite", "lmdb"}
    by_axis = ["--cell", "workload=sqlite", "--cell", "workload=lmdb", "--variant", "published"]
    for experiments in ([programs], ["fault-cost", programs]):  # one of which has no such cells
        assert main(["compare", *experiments, "--no-run", "--json", *by_axis]) == 0
        assert rows(capsys) == by_name
    of_either = ["--cell", "stride=16", "--cell", "workload=sqlite", "--variant", "published"]
    assert main(["compare", "fault-cost", programs, "--no-run", "--json", *of_either]) == 0
    assert {row[0] for row in places(rows(capsys))} > {"sqlite"}
    assert main(["compare", programs, "--no-run", "--json", "--baseline", "published", "--variant", "unpatched"]) == 0
    assert places(rows(capsys))[0] == ("sqlite", "unpatched", "read_bytes", "worse")


def test_tables(store: Path, programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    assert main(["compare", programs, "--no-run"]) == 0
    out = capsys.readouterr().out
    verdict = "published: 1 of 3 workloads is shown to lose more than 2 %, worst gcc (major faults +200.0 %)"
    assert verdict in " ".join(out.split())
    assert len([line for line in out.splitlines() if line.startswith(("gcc ", "sqlite ", "lmdb "))]) == 4
    assert main(["compare", programs, "--no-run", "--all"]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if line.startswith(("gcc ", "sqlite ", "lmdb "))]) == 8
    assert main(["compare", programs, "--no-run", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("### Workloads against unpatched, scale quick")


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--variant", "published"], 1, "published: 1 of 3 workloads is shown to lose more than 2 %, worst gcc"),
        (["--variant", "published", "--workload", "sqlite"], 0, ""),
        (["--workload", "gcc"], 0, ""),
        (
            [],
            1,
            "adaptive: none of 1 workload is shown to lose more than 2 %; none gains without a loss; 2 lack measure",
        ),
        (["--variant", "address"], 1, "address: nothing could be compared with unpatched."),
        (["--baseline", "adaptive"], 2, "--check judges adaptive, which is the baseline; say with --variant"),
    ],
)
def test_check_judges_what_was_asked_for_or_the_kernel_as_it_boots(
    argv: list[str], status: int, words: str, store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)
    assert main(["compare", programs, "--no-run", "--check", *argv]) == status
    error = capsys.readouterr().err
    assert error.startswith(f"lab: {words}" if status else "")
    assert bool(error) == bool(status)


def test_check_misses_an_experiment_that_does_not_name_the_kernel_as_it_boots(
    store: Path, programs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = shutil.copy(programs, tmp_path / "others.toml")
    with open_store(store) as opened:
        for workload in PUBLISHED:
            for variant in ("unpatched", "unpatched again", "adaptive"):
                opened.append(one(workload, variant, (1000, 100)))
            for variant in ("unpatched", "unpatched again", "published"):
                opened.append(one(workload, variant, (1000, 100), experiment="others"))
    assert main(["compare", programs, "--no-run", "--check"]) == 0
    assert main(["compare", programs, str(others), "--no-run", "--check"]) == 1
    assert "3 lack measurements" in capsys.readouterr().err


def test_the_backend_that_measured_last_is_compared(
    store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kvm = [
        one("gcc", variant, (1000, 100), backend="qemu-kvm", key=f"kvm {variant}")
        for variant in ("unpatched", "published")
    ]
    model = one("gcc", "published", (5000, 100), backend="model", key="model")
    arm64 = one("gcc", "published", (5000, 100), arch="arm64", key="arm64")
    debug = one("gcc", "published", (5000, 100), profile="debug", key="debug")
    full = one("gcc", "published", (5000, 100), scale="full", key="full")
    fill(store, *kvm, model, arm64, debug, full)
    assert main(["compare", programs, "--no-run", "--json", "--arch", "x86_64"]) == 0
    found = rows(capsys)
    measured = [row for row in found if row["outcome"] == "ok"]
    assert {row["backend"] for row in found} == {"qemu-kvm"}
    assert [(row["workload"], row["loss"]) for row in measured] == [("gcc", 0)] * 2


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--workload", "gcc,ld"], 12, "There is no workload 'ld'; known: gcc, sqlite, lmdb."),
        (["--cell", "workload=ld"], 12, "No cell of this experiment matches 'workload=ld'; there are: workload=gcc; "),
        (["--variant", "folio"], 11, "There is no variant 'folio'; known: unpatched, off"),
        (["--baseline", "none"], 11, "There is no variant 'none'"),
        (["--variant", "unpatched"], 2, "'unpatched' is the baseline; there is no other variant to compare with it."),
        (["--scale", "tiny"], 2, "programs has no scale 'tiny'"),
        (["--repetitions", "0"], 2, "At least one repetition is needed."),
        (["--page-size", "64k", "--arch", "x86_64"], 2, "x86_64 has no pages of 64k"),
        (["sparse-mmap"], 2, "sparse-mmap has no list 'compared' of the metrics by which a variant can be worse."),
        (["dense"], 10, "There is no experiment 'dense'"),
    ],
)
def test_wrong_requests_end_before_anything_is_built(
    argv: list[str], status: int, words: str, store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", programs, *argv]) == status
    said = capsys.readouterr()
    assert said.err.startswith(f"lab: {words}")
    assert (said.out, store.exists()) == ("", False)


def test_a_part_in_which_no_experiment_has_a_boot_is_none(
    store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", programs, "--shard", "99/99"]) == 44
    said = capsys.readouterr()
    assert said.err.endswith("lab: No experiment has a boot in this part.\n")
    assert (said.out, store.exists()) == ("", False)


def test_experiments_for_other_machines_are_left_out(
    store: Path, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(programs)
    other = file.with_name("other.toml")
    other.write_text('machines = ["arm64-64k"]\n' + file.read_text())
    argv = ["compare", "--no-run", "--json", "--arch", "x86_64", str(other)]
    assert main([*argv, programs]) == 0
    said = capsys.readouterr()
    assert said.err == "other is for arm64-64k only.\n"
    assert {row["experiment"] for row in json.loads(said.out)["rows"]} == {"programs"}
    assert main(argv) == 2
    assert "There is no experiment with a list 'compared' for x86_64-4k." in capsys.readouterr().err


def test_the_lab_has_a_matrix_of_its_own(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--no-run", "--json"]) == 0
    wanted = {name for name in experiment_names() if find_experiment(name).compared}
    assert wanted
    assert {row["experiment"] for row in rows(capsys)} == wanted
