# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foliolab.campaign.sample import OK
from foliolab.cli import bisect, run
from foliolab.cli.main import main
from foliolab.cli.run import RunRequest, RunResult
from foliolab.experiment.plan import Step
from foliolab.progress import Reporter
from tests.campaign.fake import FakeBackend, kernel_for
from tests.cli.command import lab
from tests.git import git
from tests.samples import sample


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    place.mkdir()
    git(place, "init", "--quiet")
    for number in range(2):
        git(place, "commit", "--quiet", "--allow-empty", f"--message={number}")
    return place


CELL = ("--cell", "pattern=random")


@pytest.mark.parametrize(
    ("good", "bad", "more", "status", "sentence"),
    [
        ("{tree}", "{tree}@HEAD", CELL, 2, "is no commit of a git tree; write TREE@REF"),
        ("debian:6.12", "{tree}@HEAD", CELL, 2, "'debian:6.12' is no commit of a git tree"),
        ("{tree}@HEAD~1", "{tree}@gone", CELL, 24, "has no ref 'gone'"),
        ("{tree}@HEAD~1", "{tree}@HEAD+ours", CELL, 2, "with the same series on top"),
        ("{tree}@HEAD", "{tree}@HEAD~1", CELL, 2, "is not an ancestor of"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (), 12, "5 cells are meant, such as random; stride 1021; stride 2053"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--metric", "speed"), 2, "There is no metric 'speed'"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--metric", ""), 2, "There is no metric ''"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--variant", ""), 11, "There is no variant ''"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--variant", "speed"), 11, "There is no variant 'speed'"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--repetitions", "2"), 2, "has to be at least 10"),
        ("{tree}@HEAD~1", "{tree}@HEAD", (*CELL, "--metric", "instructions"), 2, "use --accelerator icount"),
        ("{tree}@HEAD~1", "{tree}@HEAD", CELL, 20, "is not a kernel tree"),
    ],
)
def test_what_makes_no_sense_is_said(
    tree: Path, tmp_path: Path, good: str, bad: str, more: tuple[str, ...], status: int, sentence: str
) -> None:
    ends = ["--good", good.format(tree=tree), "--bad", bad.format(tree=tree)]
    settings = {"FOLIOLAB_CACHE": str(tmp_path / "cache"), "FOLIOLAB_RESULTS": str(tmp_path / "results")}
    done = lab("bisect", "sparse-mmap", *ends, *more, **settings)
    assert done.returncode == status, done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert done.stdout == ""


def results(tree: Path, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, str]) -> None:
    """Has every kernel measured without one: the last commit reads more, and some end otherwise, by their subject."""

    def measure(request: RunRequest, report: Reporter) -> RunResult:
        (name,) = request.kernels
        subject = git(tree, "log", "-1", "--format=%s", name.partition("@")[2]).strip()
        outcome = outcomes.get(subject, OK)
        read = (9 if subject == "3" else 1) << 30
        samples = [
            sample(read if outcome == OK else None, outcome=outcome, sentence=f"It is {outcome}.", repetition=number)
            for number in range(1, (request.repetitions or 0) + 1)
        ]
        return cast(RunResult, SimpleNamespace(samples=samples))

    monkeypatch.setattr(bisect, "measure", measure)


def search(tree: Path, *more: str) -> int:
    ends = ["--good", f"{tree}@HEAD~3", "--bad", f"{tree}@HEAD"]
    return main(["bisect", "sparse-mmap", *ends, *CELL, *more])


@pytest.fixture
def longer(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    for number in (2, 3):
        git(tree, "commit", "--quiet", "--allow-empty", f"--message={number}")
    return tree


def test_the_commit_is_printed(
    longer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results(longer, monkeypatch, {})
    assert search(longer) == 0
    said = capsys.readouterr()
    head = git(longer, "rev-parse", "HEAD").strip()
    assert said.out == f"{head} is the first bad commit: 3\n"
    words = " ".join(said.err.split())
    assert f"bad {head[:12]} 3: 9,216.0, 9,216.0, 9,216.0 MiB" in words


def test_as_json_with_one_that_crashes(
    longer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results(longer, monkeypatch, {"2": "guest-crash"})
    assert search(longer, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metric"] == "read_bytes"
    assert [each["subject"] for each in found["first_bad"]] == ["3", "2"]
    assert {step["side"] for step in found["steps"]} == {"good", "bad", "skipped"}
    (skipped,) = (step for step in found["steps"] if step["side"] == "skipped")
    assert "It is guest-crash." in skipped["why"]


def test_a_host_that_fails_is_nobody_s_fault(
    longer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results(longer, monkeypatch, {"1": "lost-host", "2": "lost-host"})
    assert search(longer) == 35
    assert capsys.readouterr().out == ""


def test_an_interrupted_search_goes_on_where_it_was(
    longer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in a boot of the good end, and then in one between the ends: only those two boots are made again."""
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    bad = git(longer, "rev-parse", "HEAD~1").strip()
    interrupted: list[int] = []

    def measure(step: Step, tried: int) -> dict[str, int | float]:
        if backend.boots in interrupted:
            raise KeyboardInterrupt
        name = step.variant.kernel.partition("@")[2]
        newer = name in git(longer, "rev-list", f"{bad}^..HEAD")
        return {"read_bytes": (9 if newer else 1) << 30}

    backend = FakeBackend(measure)
    monkeypatch.setattr(run, "_on_qemu", lambda request, plan, *_: (plan, backend, kernel_for))
    said = []
    for interrupted[:], status in (([2], 130), ([8], 130), ([], 0)):
        assert search(longer) == status
        said.append(capsys.readouterr())
    assert said[2].out == f"{bad} is the first bad commit: 2\n"
    assert "the same command goes on from there" in said[0].err
    assert sorted(backend.tried.values(), reverse=True)[:3] == [2, 2, 1]
    # Three boots of either end and one of each commit between them, and two that were interrupted.
    assert backend.boots == 3 + 3 + 2 + 2
