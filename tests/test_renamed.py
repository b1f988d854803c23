# SPDX-License-Identifier: GPL-2.0-only
"""Stores, parts of stores and traces that were made when variants had other names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab import renamed
from foliolab.campaign.sample import Sample, with_key
from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.errors import UnknownVariant
from foliolab.experiment.variants import choose, load_variants
from foliolab.renamed import present_name
from foliolab.reproduce.released import read_released, write_released
from foliolab.trace.format import read_trace
from tests.campaign.fake import FakeBackend, run_fake
from tests.samples import sample
from tests.trace.test_format import HEADER, written

BEFORE = {"off": "stock", "published": "series", "adaptive": "folio"}


def test_what_they_are_called_now_is_there_and_nothing_else() -> None:
    variants = load_variants()
    for before, now in renamed._PRESENT.items():
        assert now in variants
        with pytest.raises(
            UnknownVariant, match=f"no variant '{before}'; known: unpatched, off, published, adaptive, "
        ):
            choose([before], variants)


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("folio", "adaptive"),
        ("folio-mglru-old", "adaptive-mglru-old"),
        ("mglru", "off-mglru"),
        ("series on debian:7.3+ours", "published on debian:7.3+ours"),
        ("stock again", "off again"),
        ("unpatched", "unpatched"),
        ("off", "off"),
        ("~/linux+series", "~/linux+series"),
    ],
)
def test_the_present_name(name: str, now: str) -> None:
    assert present_name(name) == now


def test_a_kernel_as_it_boots_has_the_name_that_it_was_asked_for() -> None:
    """Which may be that of a directory."""
    booted = sample(5, variant="stock", named="stock")
    assert Sample.from_json(booted.to_json()) == booted
    assert Sample.from_json(sample(5, variant="stock").to_json()).variant == "off"


def test_nothing_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "old" / "samples.jsonl"
    file.parent.mkdir()
    samples = run_fake(file, FakeBackend())
    lines = map(json.loads, file.read_text().splitlines())
    before = [aged(Sample.from_json(line)) for line in lines]
    assert {"stock", "series"} < {each.variant for each in before}
    file.write_text("".join(json.dumps(each.to_json()) + "\n" for each in before))
    assert read_samples(file) == samples
    again = FakeBackend()
    assert run_fake(file, again) == samples
    assert again.boots == 0
    # Nor is anything of a part of a store.
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "merged"))
    assert main(["merge", str(file)]) == 0
    assert run_fake(tmp_path / "merged" / "samples.jsonl", again) == samples
    assert again.boots == 0


def aged(sample: Sample) -> Sample:
    """As it was recorded before."""
    return with_key(replace(sample, variant=BEFORE.get(sample.variant, sample.variant)))


def test_samples_that_are_shipped(tmp_path: Path) -> None:
    new = with_key(sample(1, variant="adaptive"))
    write_released([aged(new)], tmp_path / "samples.jsonl.xz")
    assert read_released(tmp_path / "samples.jsonl.xz") == [new]
    assert all(with_key(each) == each for each in read_released())


def test_what_was_measured_beside_a_trace(tmp_path: Path) -> None:
    counted = {"read_ahead_kb": 128, "read_bytes": 1, "read_requests": 2, "major_faults": 3}
    trace = read_trace(written(tmp_path / "t", HEADER | {"measured": [{"variant": "folio", **counted}]}))
    assert [each.variant for each in trace.measured] == ["adaptive"]
