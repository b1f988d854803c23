# SPDX-License-Identifier: GPL-2.0-only
import platform
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab.analyse.rows import group_samples
from foliolab.campaign.job import ATTEMPTS
from foliolab.campaign.runner import Kernels, failure_of
from foliolab.campaign.sample import Sample, with_key
from foliolab.campaign.store import open_store, read_samples
from foliolab.errors import (
    BootFailed,
    BuildError,
    GuestCrashed,
    GuestHung,
    GuestOutOfMemory,
    HostLost,
    LabError,
    NoResult,
)
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, Step, make_plan
from foliolab.experiment.variants import choose, load_variants, on_kernels
from foliolab.files import REPOSITORY
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.code import code_hash
from foliolab.vm.accel import KVM
from foliolab.vm.outcome import OutcomeKind
from tests.campaign.fake import FakeBackend, ending, fake_plan, kernel_for, plain, run_fake


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "samples.jsonl"


def is_target(step: Step) -> bool:
    return step.cell.label == "random" and step.variant.name == "published" and step.repetition == 1


RANDOM_PUBLISHED = ("{'pattern': 'random'}", "published", 1)


def place(sample: Sample) -> tuple[str, str, int, str]:
    return (str(sample.cell), sample.variant, sample.repetition, sample.outcome)


def test_a_plan_is_measured_once(file: Path) -> None:
    first, second = FakeBackend(), FakeBackend()
    samples = run_fake(file, first)
    steps = fake_plan().steps
    assert [(sample.cell, sample.variant, sample.repetition) for sample in samples] == [
        (step.cell.as_dict(), step.variant.name, step.repetition) for step in steps
    ]
    assert first.boots == len(fake_plan().boots)
    assert run_fake(file, second) == samples
    assert second.boots == 0
    assert failure_of(samples) is None


def test_only_kernels_of_which_something_is_missing_are_built(file: Path) -> None:
    built = []

    def build(name: str) -> BuiltKernel:
        built.append(name)
        return kernel_for(name)

    plan = fake_plan()
    variants = choose(["unpatched"], load_variants())
    of_one = make_plan(plan.experiment, plan.scale, variants=variants, repetitions=2)
    for wanted in (of_one, of_one, plan):
        run_fake(file, FakeBackend(), wanted, kernels=Kernels(kernel_for, build))
    assert built == ["unpatched", "patched"]


def test_sources_that_change_before_a_kernel_is_built_end_the_run(file: Path) -> None:
    kernels = Kernels(kernel_for, lambda name: replace(kernel_for(name), hash="another"))
    with pytest.raises(BuildError, match=r"What \w+ is built from changed meanwhile; start again\."):
        run_fake(file, FakeBackend(), kernels=kernels)
    assert read_samples(file) == []


def test_a_sample_says_all_about_itself(file: Path) -> None:
    sample = run_fake(file, FakeBackend())[0]
    assert sample.backend == "fake"
    assert (sample.kernel.version, sample.kernel.hash) == ("6.12.1", f"hash-{sample.kernel.name}")
    assert sample.parameters["read_ahead_kb"] == 8192
    assert "deadline_seconds" not in sample.parameters
    assert sample.metrics == {"read_bytes": 1000, "seconds": 0.5}
    assert sample.recorded.endswith("+00:00")
    assert sample.made_with.endswith("processors; a fake")


def test_a_sample_says_which_code_its_kernel_has(file: Path) -> None:
    def codes(plan: Plan) -> set[tuple[str, str]]:
        return {(sample.kernel.name, sample.code) for sample in run_fake(file, FakeBackend(), plan)}

    plan = fake_plan()
    whole = replace(plan, experiment=replace(plan.experiment, name="whole", unaffected_by=()))
    assert codes(whole) == {("unpatched", ""), ("patched", code_hash("6.12"))}
    some = replace(plan, experiment=replace(plan.experiment, name="some", unaffected_by=("mprotect",)))
    assert codes(some) == {("unpatched", ""), ("patched", code_hash("6.12", without=("mprotect",)))}


def test_what_cannot_affect_an_experiment_is_in_no_key(file: Path) -> None:
    plan = fake_plan()
    keys = [
        [sample.key for sample in run_fake(store, FakeBackend(), replace(plan, experiment=each))]
        for store, each in (
            (file, replace(plan.experiment, unaffected_by=())),
            (file.with_name("other.jsonl"), replace(plan.experiment, unaffected_by=("mprotect",))),
        )
    ]
    assert keys[0] == keys[1]


def test_a_sample_says_how_long_it_took_with_its_boot(file: Path) -> None:
    def slow(step: Step, tried: int) -> dict[str, int | float]:
        if is_target(step):
            time.sleep(0.3)
        return plain(step, tried)

    (target,) = (each for each in run_fake(file, FakeBackend(slow)) if place(each)[:3] == RANDOM_PUBLISHED)
    assert target.took >= 0.3


def test_more_repetitions_add_to_what_is_there(file: Path) -> None:
    run_fake(file, FakeBackend(), fake_plan(repetitions=1))
    backend = FakeBackend()
    run_fake(file, backend, fake_plan(repetitions=2))
    assert {step.repetition for step in backend.tried} == {2}


def test_other_parameters_are_other_samples(file: Path) -> None:
    run_fake(file, FakeBackend())
    plan = fake_plan()
    parameters = plan.scale.parameters
    other = replace(plan, scale=replace(plan.scale, parameters=structs.replace(parameters, read_ahead_kb=128)))
    assert {sample.parameters["read_ahead_kb"] for sample in run_fake(file, FakeBackend(), other)} == {128}
    patient = replace(plan, scale=replace(plan.scale, parameters=structs.replace(parameters, deadline_seconds=9)))
    backend = FakeBackend()
    run_fake(file, backend, patient)
    assert backend.boots == 0


def restricted(*machines: str) -> Plan:
    """A plan whose variant "published" is for these machines only."""
    plan = fake_plan(repetitions=1)

    def at(step: Step) -> Step:
        return (
            replace(step, variant=replace(step.variant, machines=machines))
            if step.variant.name == "published"
            else step
        )

    return replace(plan, boots=tuple(replace(boot, steps=tuple(map(at, boot.steps))) for boot in plan.boots))


def test_a_variant_that_the_machine_cannot_have_is_not_applicable(file: Path) -> None:
    backend = FakeBackend()
    samples = run_fake(file, backend, restricted("arm64-4k"))
    absent = [sample for sample in samples if sample.variant == "published"]
    assert {(sample.outcome, sample.sentence, sample.page_size, sample.boot) for sample in absent} == {
        ("not-applicable", "'published' is for arm64-4k only.", 4096, "")
    }
    assert "published" not in {step.variant.name for step in backend.tried}
    assert failure_of(samples) is None
    # It is recorded once, and measured when it applies after all.
    again = FakeBackend()
    assert run_fake(file, again, restricted("arm64-4k")) == samples
    assert len(read_samples(file)) == len(samples)
    assert again.boots == 0
    assert {sample.outcome for sample in run_fake(file, again, restricted("x86_64-4k"))} == {"ok"}
    assert {step.variant.name for step in again.tried} == {"published"}


@pytest.mark.parametrize(("backend", "again"), [(KVM, True), ("fake", False)])
def test_seconds_of_another_host_are_measured_here_again(backend: str, again: bool, file: Path) -> None:
    plan = restricted("arm64-4k")
    here = run_fake(file, FakeBackend(name=backend), plan)
    with open_store(file.with_name("theirs.jsonl")) as store:
        for sample in here:
            store.append(with_key(replace(sample, host="another")))
    theirs = FakeBackend(name=backend)
    found = run_fake(store.file, theirs, plan)
    assert theirs.boots == (len(plan.boots) if again else 0)
    assert {sample.host for sample in found} == {platform.node() if again else "another"}
    assert [sample.outcome for sample in found] == [sample.outcome for sample in here]
    # Both hosts have a table.
    assert len(group_samples(read_samples(store.file))) == 1 + again


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (OutcomeKind.GUEST_CRASH, GuestCrashed),
        (OutcomeKind.HANG, GuestHung),
        (OutcomeKind.OUT_OF_MEMORY, GuestOutOfMemory),
        (OutcomeKind.NO_RESULT, NoResult),
    ],
)
def test_a_failed_cell_is_a_result_and_the_rest_goes_on(file: Path, kind: OutcomeKind, error: type[LabError]) -> None:
    def measure(step: Step, tried: int) -> dict[str, int | float]:
        if is_target(step):
            raise ending(kind)
        return plain(step, tried)

    backend = FakeBackend(measure)
    samples = run_fake(file, backend)
    (failed,) = [sample for sample in samples if sample.outcome != "ok"]
    assert (failed.outcome, failed.variant, failed.metrics) == (kind.value, "published", {})
    assert len(samples) == len(fake_plan().steps)
    assert set(backend.tried.values()) == {1}
    assert backend.boots == len(fake_plan().boots) + 1
    found = failure_of(samples)
    assert isinstance(found, error)
    assert str(found) == f"random, published, repetition 1: It ended with {kind.value}."
    # It is not tried again by the same command.
    again = FakeBackend(measure)
    assert run_fake(file, again) == samples
    assert again.boots == 0


def test_a_lost_host_is_tried_again_and_every_attempt_is_kept(file: Path) -> None:
    def measure(step: Step, tried: int) -> dict[str, int | float]:
        if is_target(step) and tried < ATTEMPTS - 1:
            raise ending(OutcomeKind.LOST_HOST)
        return plain(step, tried)

    samples = run_fake(file, FakeBackend(measure))
    assert {sample.outcome for sample in samples} == {"ok"}
    assert Counter(sample.outcome for sample in read_samples(file)) == {"ok": len(samples), "lost-host": ATTEMPTS - 1}


def test_a_host_lost_for_good_fails_now_and_is_tried_by_the_next_run(file: Path) -> None:
    def measure(step: Step, tried: int) -> dict[str, int | float]:
        if is_target(step):
            raise ending(OutcomeKind.LOST_HOST)
        return plain(step, tried)

    backend = FakeBackend(measure)
    samples = run_fake(file, backend)
    assert isinstance(failure_of(samples), HostLost)
    assert len(samples) == len(fake_plan().steps)
    assert max(backend.tried.values()) == ATTEMPTS
    again = FakeBackend()
    assert failure_of(run_fake(file, again)) is None
    assert len(again.tried) == 1


def test_a_boot_that_fails_ends_the_run_with_its_reason(file: Path) -> None:
    with pytest.raises(BootFailed, match="It ended with guest-crash"):
        run_fake(file, FakeBackend(failing_boots=[OutcomeKind.GUEST_CRASH]))
    assert read_samples(file) == []


def test_a_boot_that_the_host_lost_is_tried_again(file: Path) -> None:
    backend = FakeBackend(failing_boots=[OutcomeKind.LOST_HOST] * (ATTEMPTS - 1))
    assert failure_of(run_fake(file, backend)) is None
    with pytest.raises(HostLost):
        run_fake(file.with_name("other.jsonl"), FakeBackend(failing_boots=[OutcomeKind.LOST_HOST] * ATTEMPTS))


def test_several_failures_are_counted(file: Path) -> None:
    def measure(step: Step, tried: int) -> dict[str, int | float]:
        raise ending(OutcomeKind.HANG)

    samples = run_fake(file, FakeBackend(measure))
    assert str(failure_of(samples)).endswith(f"It ended with hang. ({len(samples) - 1} more failed.)")


def test_sigkill_of_a_run_at_ten_random_moments(file: Path, tmp_path: Path) -> None:
    moments = random.Random(2)
    command = [sys.executable, "-m", "tests.campaign.fake", str(file)]
    grown: set[int] = set()
    for _ in range(10):
        process = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
        before = len(read_samples(file))
        while len(read_samples(file)) == before and process.poll() is None:
            time.sleep(0.01)  # a busy machine takes its time to start Python
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        process.wait()
        grown.add(len(read_samples(file)))
    assert len(grown) > 3, "the kills came before there was anything to lose"
    subprocess.run(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL, check=True)
    whole = tmp_path / "whole.jsonl"
    run_fake(whole, FakeBackend())
    assert sorted(map(place, read_samples(file))) == sorted(map(place, read_samples(whole)))


def test_data_that_changes_meanwhile_changes_no_key(file: Path) -> None:
    backend = FakeBackend()

    def measure(step: Step, tried: int) -> dict[str, int | float]:
        backend.data = dict.fromkeys((step.cell for step in fake_plan().steps), "changed")
        return plain(step, tried)

    backend.measure = measure
    assert {sample.data for sample in run_fake(file, backend)} == {""}


def test_other_data_makes_other_samples_and_the_newest_of_each_cell_counts(file: Path) -> None:
    cell = fake_plan().steps[0].cell
    run_fake(file, FakeBackend())
    changed = FakeBackend(data={cell: "d1"})
    run_fake(file, changed)
    wanted = sum(step.cell == cell for step in fake_plan().steps)
    assert sum(changed.tried.values()) == wanted
    (group,) = group_samples(read_samples(file))
    assert {sample.data for sample in group.samples if sample.cell == cell.as_dict()} == {"d1"}
    assert {sample.data for sample in group.samples if sample.cell != cell.as_dict()} == {""}
    assert group.older == wanted


def test_what_a_kernel_lacks_ends_no_boot_and_is_not_tried_again(file: Path) -> None:
    def lacking(step: Step, tried: int) -> dict[str, int | float]:
        if step.variant.name == "off":
            raise ending(OutcomeKind.NOT_APPLICABLE)
        return plain(step, tried)

    first, second = FakeBackend(lacking), FakeBackend(lacking)
    samples = run_fake(file, first)
    assert {sample.outcome for sample in samples if sample.variant == "off"} == {"not-applicable"}
    assert {sample.outcome for sample in samples if sample.variant != "off"} == {"ok"}
    assert first.boots == len(fake_plan().boots)
    assert run_fake(file, second) == samples
    assert second.boots == 0


def test_what_takes_our_code_is_passed_over_on_a_kernel_without(file: Path) -> None:
    experiment = find_experiment("sparse-mmap")
    chosen = on_kernels(choose(["unpatched", "off"], load_variants()), ["debian:7.3"], asked=True)
    plan = make_plan(experiment, experiment.scale("quick"), variants=chosen, repetitions=1)
    backend = FakeBackend()
    samples = run_fake(file, backend, plan)
    outcomes = {sample.variant: sample.outcome for sample in samples}
    assert outcomes == {"debian:7.3": "ok", "off on debian:7.3": "not-applicable"}
    assert {sample.kernel.name for sample in samples} == {"debian:7.3"}
    assert backend.boots == 1
