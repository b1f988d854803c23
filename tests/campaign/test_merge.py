# SPDX-License-Identifier: GPL-2.0-only
"""Parts of a plan, measured apart and brought together."""

from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.campaign import cluster
from foliolab.campaign.store import open_store, read_samples
from foliolab.cli.main import main
from foliolab.errors import ClusterError, EmptyPart
from foliolab.reproduce.released import write_released
from tests.campaign.fake import FakeBackend, fake_plan, run_fake
from tests.samples import sample


def test_parts_make_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for repetitions, of in ((3, 3), (1, 2)):
        plan = fake_plan(repetitions)
        places = [tmp_path / f"{repetitions}-{number}" for number in range(1, of + 1)]
        for number, place in enumerate(places, start=1):
            place.mkdir()
            part = plan.part(number, of)
            assert part.boots
            run_fake(place / "samples.jsonl", FakeBackend(), part)
        monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / f"all-{repetitions}"))
        assert main(["merge", *map(str, places)]) == 0
        merged = tmp_path / f"all-{repetitions}" / "samples.jsonl"
        backend = FakeBackend()
        assert run_fake(merged, backend, plan)
        assert backend.boots == 0
        had = read_samples(merged)
        assert len(had) == len(plan.steps)
        # What is there already is not added again.
        assert main(["merge", str(places[0] / "samples.jsonl")]) == 0
        assert read_samples(merged) == had


def test_what_is_shipped_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released, measured = tmp_path / "samples.jsonl.xz", tmp_path / "samples.jsonl"
    plan = fake_plan(repetitions=2)
    run_fake(measured, FakeBackend(), plan)
    had = [replace(sample, host="here") for sample in read_samples(measured)]
    write_released(had, released)
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "new"))
    assert main(["merge", str(released)]) == 0
    merged = tmp_path / "new/samples.jsonl"
    assert {sample.key for sample in read_samples(merged)} == {sample.key for sample in had}
    backend = FakeBackend()
    assert run_fake(merged, backend, plan)
    assert backend.boots == 0
    # A copy that names the host where none matters is the same measurement, and says more.
    with open_store(tmp_path / "ours/samples.jsonl") as store:
        for sample in had:
            store.append(sample)
    assert main(["merge", str(tmp_path / "ours")]) == 0
    assert len(read_samples(merged)) == len(had)
    for number, stores in enumerate(([tmp_path / "ours", released], [released, tmp_path / "ours"])):
        monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / f"both-{number}"))
        assert main(["merge", *map(str, stores)]) == 0
        assert [each.host for each in read_samples(tmp_path / f"both-{number}/samples.jsonl")] == ["here"] * len(had)


def test_consoles_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = tmp_path / "ours/samples.jsonl", tmp_path / "theirs/samples.jsonl"
    for file, boots in ((ours, ["common"]), (theirs, ["common", "their", "lost", ""])):
        with open_store(file) as store:
            for repetition, boot in enumerate(boots, start=1):
                store.append(sample(1, repetition=repetition, boot=boot))
            store.consoles.mkdir()
            for boot in boots[:2]:
                (store.consoles / f"{boot}.log").write_text(f"{boot} of {file.parent.name}")
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(ours.parent))
    assert main(["merge", str(theirs)]) == 0
    assert [each.boot for each in read_samples(ours)] == ["common", "their", "lost", ""]
    consoles = {file.name: file.read_text() for file in (ours.parent / "consoles").iterdir()}
    assert consoles == {"common.log": "common of ours", "their.log": "their of theirs"}


def test_a_repetition_is_not_torn_apart(tmp_path: Path) -> None:
    plan = fake_plan(repetitions=5)
    parts = [{boot.repetition for boot in plan.part(number, 2).boots} for number in (1, 2)]
    assert parts == [{1, 3, 5}, {2, 4}]


def test_more_parts_than_boots_are_refused() -> None:
    plan = fake_plan(repetitions=1)
    with pytest.raises(EmptyPart, match="part 99 of 99 has none"):
        plan.part(99, 99)


def test_a_store_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path / "none")]) == 2
    assert "There is no store at" in capsys.readouterr().err


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_a_part_that_cannot_be(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["measure", "sparse-mmap", "--shard", shard])
    assert f"'{shard}' is no part such as 1/3" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no address"])
def test_a_cluster_that_cannot_be_had(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_ANSWER_SECONDS", 1)
    argv = ["measure", "sparse-mmap", "--backend", "model", "--cluster", address]
    assert main(argv) == ClusterError.status
    assert f"No scheduler answers at {address}" in capsys.readouterr().err
