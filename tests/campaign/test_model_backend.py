# SPDX-License-Identifier: GPL-2.0-only
"""Cells in the model: no kernel, no guest."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab.campaign import model_backend
from foliolab.campaign.model_backend import ModelBackend, ModelSession, file_memory_bytes
from foliolab.campaign.runner import Kernels, failure_of, run_plan
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store
from foliolab.errors import UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, Step, make_plan
from foliolab.experiment.variants import choose, load_variants
from tests.small import small_experiment

BACKEND = ModelBackend()
SEQUENTIAL = Cell.of({"pattern": "sequential"})
RANDOM = Cell.of({"pattern": "random"})


def plan_of(place: Path, *names: str, repetitions: int = 1) -> Plan:
    """A file of 16384 pages in 256 MiB, windows of 32 pages, 819 touches a cell."""
    experiment = find_experiment(str(small_experiment(place)))
    variants = choose(names or ["off"], load_variants())
    return make_plan(experiment, experiment.scale("quick"), variants=variants, repetitions=repetitions)


def step_of(cell: Cell, variant: str = "off", repetition: int = 1) -> Step:
    return Step(cell, load_variants()[variant], repetition)


def measured(plan: Plan, step: Step) -> dict[str, int | float]:
    assert BACKEND.obstacle(plan, step) == ""
    with BACKEND.prepare(BACKEND.kernel(step.variant.kernel), plan).boot(Path()) as session:
        return session.measure(step)


def run(place: Path, plan: Plan) -> list[Sample]:
    with open_store(place / "samples.jsonl") as store:
        return run_plan(plan, store, BACKEND, Kernels(BACKEND.kernel, BACKEND.kernel))


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("unpatched", "off"),
        ("off", "off"),
        ("text", "off"),
        ("published", "published"),
        ("text-2m", "published"),
        ("adaptive", "adaptive"),
        ("address", None),
        ("retry", None),
    ],
)
def test_switches_decide_the_rules(name: str, rules: str | None) -> None:
    assert model_backend._rules(load_variants()[name]) == rules


def test_sequential_touches_read_each_window_once(tmp_path: Path) -> None:
    # The first page misses. Each mark reads one more window: that of page 24, then those at 32, 64, ... 800.
    metrics = measured(plan_of(tmp_path), step_of(SEQUENTIAL))
    assert metrics["major_faults"] == 1
    assert metrics["floor_bytes"] == 819 * 4096
    assert metrics["read_bytes"] == 864 * 4096
    assert metrics["read_requests"] == 27
    assert "seconds" not in metrics


def test_a_random_hint_reads_what_is_touched_whatever_the_variant(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    hinted = Cell.of({"pattern": "random", "hint": "random"})
    for variant in ("off", "published", "adaptive"):
        metrics = measured(plan, step_of(hinted, variant))
        assert metrics["read_bytes"] == metrics["floor_bytes"] == metrics["major_faults"] * 4096
    assert metrics["floor_bytes"] < measured(plan, step_of(RANDOM))["read_bytes"]


def test_without_readahead_one_page_is_read_at_a_time(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan = replace(plan, scale=replace(plan.scale, parameters=structs.replace(plan.scale.parameters, read_ahead_kb=0)))
    metrics = measured(plan, step_of(RANDOM, "adaptive"))
    assert metrics["read_bytes"] == metrics["floor_bytes"]


def test_the_repetition_is_the_seed(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    first, again, other = (measured(plan, step_of(RANDOM, repetition=number)) for number in (1, 1, 2))
    assert first == again
    assert first["floor_bytes"] != other["floor_bytes"]


def test_count_and_passes_are_options_like_the_probe_s(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    cell = Cell.of({"pattern": "sequential", "count": 10, "passes": 3})
    assert measured(plan, step_of(cell))["floor_bytes"] == 10 * 4096


@pytest.mark.parametrize(
    ("axes", "complaint"),
    [
        ({"pattern": "no-such"}, "no-such"),
        ({"pattern": "random", "hint": "sequential"}, "sequential"),
        ({"pattern": "random", "threads": 2}, "one thread only"),
        ({"pattern": "random", "create": "1G"}, "--create"),
        ({"pattern": "random", "count": "many"}, "many"),
    ],
)
def test_what_the_model_does_not_know_is_said(tmp_path: Path, axes: dict[str, str | int], complaint: str) -> None:
    sentence = BACKEND.obstacle(plan_of(tmp_path), step_of(Cell.of(axes)))
    assert sentence.startswith("The model does not know ")
    assert complaint in sentence


def test_a_campaign_boots_nothing_and_passes_over_what_is_unknown(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "unpatched", "off", "address", repetitions=2)
    samples = run(tmp_path, plan)
    assert failure_of(samples) is None
    found = {(sample.variant, sample.cell["pattern"], sample.repetition): sample for sample in samples}
    assert len(found) == 3 * 3 * 2
    for (variant, pattern, repetition), sample in found.items():
        if variant == "address":
            assert sample.outcome == "not-applicable"
            assert sample.sentence == "The model does not know the variant 'address'."
        else:
            assert sample.metrics == found["off", pattern, repetition].metrics
    assert {(sample.backend, sample.boot, sample.kernel.release) for sample in samples} == {("model", "", "model")}
    assert not (tmp_path / "consoles").exists()
    assert [sample.key for sample in run(tmp_path, plan)] == [sample.key for sample in samples]


def test_other_programs_are_refused() -> None:
    with pytest.raises(UsageError, match="real-text runs 'real-text'"):
        BACKEND.workload_hash(find_experiment("real-text"))


def test_what_is_kept_free_cannot_hold_the_file(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    parameters = structs.replace(plan.scale.parameters, memory_bytes=1 << 30, watermark_scale_factor=500)
    assert file_memory_bytes(parameters) == pytest.approx(0.84 * (1 << 30), rel=0.001)
    assert file_memory_bytes(structs.replace(parameters, watermark_scale_factor=10)) > file_memory_bytes(parameters)
    assert file_memory_bytes(structs.replace(parameters, memory_bytes=1 << 20)) == 0


def test_the_session_has_the_model_s_pages(tmp_path: Path) -> None:
    assert ModelSession(plan_of(tmp_path)).page_size == BACKEND.kernel("patched").page_size == 4096
