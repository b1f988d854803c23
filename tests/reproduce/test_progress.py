# SPDX-License-Identifier: GPL-2.0-only
"""How far a part is, and what of it is shipped."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from foliolab.campaign.sample import Sample
from foliolab.errors import StoreError
from foliolab.files import KERNEL, REPOSITORY, digest_files
from foliolab.kernel import code, module
from foliolab.kernel.code import code_hash
from foliolab.model.compiled import POLICIES
from foliolab.reproduce import released
from foliolab.reproduce.plan import Part, PlannedPlaces, load_plan, measured, places_of
from foliolab.reproduce.released import (
    Output,
    code_behind,
    read_output,
    read_released,
    released_anew,
    write_output,
    write_released,
)
from tests.samples import sample

PART = Part(name="sparse", shown=("README.md",), experiment="sparse-mmap", machine="x86_64-4k", n=2)
VARIANTS = ("unpatched", "adaptive")
CELL = '{"pattern": "random"}'
PLACES: PlannedPlaces = {(CELL, variant, repetition): ({}, {}) for variant in VARIANTS for repetition in (1, 2)}
MPROTECT = ("mprotect",)
NOW = code_hash("6.12.1", without=MPROTECT)


def kept(variant: str, repetition: int, *, code: str = NOW, took: float = 0.0, **changes: Any) -> Sample:
    ours = variant != "unpatched"
    named, kernel = ("patched", f"of-{code}") if ours else ("unpatched", "k0")
    made = sample(1, variant=variant, repetition=repetition, kernel=kernel, named=named, **changes)
    return replace(made, code=code if ours else "", took=took)


def test_nothing_is_measured() -> None:
    found = measured(PART, PLACES, [])
    assert (found.done, found.steps, found.complete, found.hours) == (0, 4, False, None)
    shipped = [
        kept("adaptive", 1, took=1800),
        kept("unpatched", 1, took=900),
        kept("adaptive", 1, took=1, scale="full"),
    ]
    assert measured(PART, PLACES, [], shipped).hours == 1.5


def test_all_is_measured() -> None:
    found = measured(PART, PLACES, [kept(variant, number) for variant in VARIANTS for number in (1, 2)])
    assert (found.done, found.complete, found.older, found.hours) == (4, True, False, 0)
    assert found.to_json()["complete"] is True
    assert found.to_json()["n"] == 2


def test_what_was_measured_with_other_code_counts_for_nothing_but_the_price() -> None:
    older = [kept(variant, number, code="older", took=1800) for variant in VARIANTS for number in (1, 2)]
    found = measured(PART, PLACES, older)
    assert (found.done, found.hours) == (2, 1.0)  # the unpatched kernel has none of our code
    assert len(found.samples) == 4
    assert found.older


@pytest.mark.parametrize(("code", "older"), [(module.code_hash(), False), ("older", True), ("", True)])
def test_the_module_goes_by_its_sources(code: str, older: bool) -> None:
    made = sample(1, variant="module", named="image:debian:6.12+module")
    assert measured(PART, {(CELL, "module", 1): ({}, {})}, [replace(made, code=code)]).older is older


def test_what_was_measured_of_a_change_that_was_taken_back_does_not_hide_what_stands() -> None:
    present = [kept(variant, number) for variant in VARIANTS for number in (1, 2)]
    tried = [kept(variant, number, code="tried", workload="tried") for variant in VARIANTS for number in (1, 2)]
    found = measured(PART, PLACES, [*present, *tried])
    assert found.complete
    assert list(found.samples) == present


@pytest.mark.parametrize(
    "change", [{"scale": "full"}, {"arch": "arm64"}, {"experiment": "other"}, {"backend": "model"}, {"device": "hdd"}]
)
def test_what_is_of_another_place_counts_for_nothing(change: dict[str, Any]) -> None:
    assert measured(PART, PLACES, [kept("unpatched", 1, **change)]).done == 0


def test_a_timed_disk_and_another_are_shipped_beside_each_other() -> None:
    parts = [structs.replace(PART, name=device, device=device) for device in ("", "nvme", "hdd")]
    places: list[PlannedPlaces] = [{place: ({}, {"device": part.device}) for place in PLACES} for part in parts]
    samples = [
        kept(variant, number, device=part.device, parameters={"device": part.device})
        for part in parts
        for variant in VARIANTS
        for number in (1, 2)
    ]
    found = [measured(part, mine, samples) for part, mine in zip(parts, places, strict=True)]
    assert all(each.complete for each in found)
    assert [{sample.device for sample in each.samples} for each in found] == [{""}, {"nvme"}, {"hdd"}]
    assert len(released_anew(found, found)) == len(samples)


def test_what_failed_is_measured_again() -> None:
    assert measured(PART, PLACES, [kept("unpatched", 1, outcome="lost-host")]).done == 0


def test_what_was_measured_under_other_switches_is_measured_again() -> None:
    now, before = {"x/adaptive": 1}, {"x/adaptive": 2}
    planned: PlannedPlaces = {(CELL, "adaptive", number): (now, {}) for number in (1, 2)}
    samples = [kept("adaptive", number, switches=now) for number in (1, 2)]
    assert measured(PART, planned, samples).complete
    found = measured(PART, planned, [samples[0], kept("adaptive", 2, switches=before)])
    assert (found.done, found.older) == (1, True)
    # What was tried and taken back hides nothing.
    assert measured(PART, planned, [*samples, kept("adaptive", 1, switches=before)]).complete


def test_what_was_measured_with_other_parameters_is_measured_again() -> None:
    """But for processors: under emulation a guest has one."""
    part = next(each for each in load_plan() if each.experiment == "exec-text")
    ((cell, variant, _), (switches, parameters)), *_ = places_of(part).items()
    place = {"experiment": "exec-text", "scale": part.scale, "cell": json.loads(cell), "variant": variant}
    made = {**place, "switches": dict(switches), "named": "unpatched", "kernel": "k0"}
    memory = parameters["memory_bytes"]
    assert isinstance(memory, int)
    for changes, done in (({}, 1), ({"cpus": 1}, 1), ({"memory_bytes": memory // 2}, 0)):
        measured_so = sample(1, **made, parameters={**parameters, "cpus": 2, **changes})
        assert measured(part, {(cell, variant, 1): (switches, parameters)}, [measured_so]).done == done


@pytest.mark.parametrize("variant", VARIANTS)
def test_repetitions_of_two_kernels_are_not_shipped_as_one(variant: str) -> None:
    """Which a compiler makes of the same code."""
    samples = [kept(each, number) for each in VARIANTS for number in (1, 2)]
    other = next(each for each in samples if (each.variant, each.repetition) == (variant, 2))
    mixed = [each for each in samples if each is not other]
    mixed.append(replace(other, kernel=replace(other.kernel, hash="other"), key="other"))
    found = measured(PART, PLACES, mixed)
    assert (found.done, found.complete, found.older) == (3, False, True)
    # What a host lacked, or lost, decides nothing.
    lost, lacking = replace(mixed[-1], outcome="lost-host"), replace(mixed[-1], outcome="not-applicable", boot="")
    assert measured(PART, PLACES, [*samples, lost, lacking]).complete


def test_a_kernel_that_was_measured_by_a_probe_that_was_taken_back_decides_nothing() -> None:
    samples = [kept(variant, number) for variant in VARIANTS for number in (1, 2)]
    tried = replace(samples[0], workload="tried", kernel=replace(samples[0].kernel, hash="other"), key="tried")
    assert measured(PART, PLACES, [*samples, tried]).complete


def test_what_a_host_lacks_is_not_done_and_hides_nothing() -> None:
    lacking = [kept(variant, 1, outcome="not-applicable", boot="") for variant in VARIANTS]
    # Where nobody has measured a variant, this is all that can be said.
    assert measured(PART, PLACES, lacking).done == 2
    for text in (NOW, "older"):
        found = measured(PART, PLACES, [kept("adaptive", 1, code=text, data="d"), *lacking])
        assert {sample.variant: sample.outcome for sample in found.samples} == {
            "adaptive": "ok",
            "unpatched": "not-applicable",
        }
        assert found.done == 1 + (text == NOW)


def test_the_model_goes_by_its_policy() -> None:
    part = structs.replace(PART, backend="model", machine="arm64-4k")
    current = digest_files(POLICIES, REPOSITORY)
    samples = [
        sample(1, variant="adaptive", repetition=number, kernel=hash_, backend="model")
        for number, hash_ in ((1, current), (2, "old"))
    ]
    assert measured(part, PLACES, samples).done == 1


def test_the_text_is_that_of_the_code(tmp_path: Path) -> None:
    for name in ("files/mm", "files/Documentation", "patches/6.12"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "files/mm/a.c").write_text("one")
    (tmp_path / "files/Documentation/a.rst").write_text("text")
    (tmp_path / "files/mm/a_kunit.c").write_text("one")
    series, hook = tmp_path / "patches/6.12/series", tmp_path / "patches/6.12/a.patch"
    series.write_text("a.patch mm/a.c mm/a_kunit.c Documentation/a.rst")

    def patch(message: str, place: str = "-1 +1", **hooks: str) -> None:
        diff = "".join(f"--- a/{file}\n+++ b/{file}\n@@ {place} @@\n-\n+{line}\n" for file, line in hooks.items())
        hook.write_text(f"From: A <a@b.invalid>\nDate: today\nSubject: [PATCH] a\n\n{message}\n---\n{diff}")

    patch("Why.", mm="one", MAINTAINERS="one")
    before = code_hash("6.12.3", tmp_path)
    (tmp_path / "files/Documentation/a.rst").write_text("words")
    (tmp_path / "files/mm/a_kunit.c").write_text("two")
    (tmp_path / "files/mm/a.c").write_text("/*\n * A comment\n * of two lines.\n */\n\none\t/* and another */\n")
    patch("Why, in other words.", place="-7 +7", mm="/* A comment\n+ * of two lines. */\n+one", MAINTAINERS="two")
    assert code_hash("6.12.3", tmp_path) == before
    patch("Why.", mm="two", MAINTAINERS="one")
    hooked = code_hash("6.12.3", tmp_path)
    (tmp_path / "files/mm/a.c").write_text("two")
    written = code_hash("6.12.3", tmp_path)
    (tmp_path / "patches/6.12/b.patch").write_text(hook.read_text().replace("two", "three"))
    series.write_text(f"{series.read_text()}\nb.patch")
    assert len({before, hooked, written, code_hash("6.12.3", tmp_path)}) == 4


def test_what_cannot_affect_an_experiment_leaves_its_samples_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel"
    shutil.copytree(KERNEL, kernel)
    monkeypatch.setattr(code, "code_hash", partial(code_hash, kernel=kernel))

    def edit(patch: str, line: str) -> tuple[str, str, bool]:
        """The hashes, and whether a sample is of the code as it stands, after a line of a patch has changed."""
        file = kernel / "patches/6.12" / patch
        text = file.read_text()
        assert line in text
        file.write_text(text.replace(line, f"{line} changed", 1))
        narrow = code_hash("6.12.1", kernel, MPROTECT)
        found = measured(PART, PLACES, [kept("adaptive", 1)])
        return code_hash("6.12.1", kernel), narrow, not found.older

    whole = code_hash("6.12.1")
    assert len({whole, NOW}) == 2
    whole_after, narrow, fresh = edit("mprotect-runs.patch", "+#include <linux/pte_modify.h>")
    assert whole_after != whole
    assert (narrow, fresh) == (NOW, True)
    last, narrow, fresh = edit("adaptive-window.patch", '+#include "mmap_readahead_adaptive.h"')
    assert len({last, whole_after, whole}) == 3
    assert narrow != NOW
    assert not fresh


def test_a_new_file_of_what_cannot_affect_an_experiment_is_left_out(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    shutil.copytree(KERNEL, kernel)
    (kernel / "files/include/linux/pte_modify.h").write_text("other")
    for version in ("6.12", "7.3"):
        assert code_hash(version, kernel) != code_hash(version)
        assert code_hash(version, kernel, MPROTECT) == code_hash(version, without=MPROTECT)


def test_a_part_is_shipped_as_a_whole() -> None:
    whole = [kept(variant, number) for variant in VARIANTS for number in (1, 2)]
    before = [kept(variant, number, code="older") for variant in VARIANTS for number in (1, 2)]

    def shipped(here: list[Sample], before: list[Sample]) -> set[str]:
        found = released_anew([measured(PART, PLACES, here)], [measured(PART, PLACES, before)])
        assert len(found) in (0, len(PLACES))
        return {sample.key for sample in found}

    assert shipped(whole, before) == {sample.key for sample in whole}
    assert shipped(whole[:-1], before) == {sample.key for sample in before}
    assert shipped([], []) == set()


def test_parts_of_a_table_are_shipped_together() -> None:
    ours, theirs = structs.replace(PART, name="ours"), structs.replace(PART, name="theirs")
    of_theirs, of_ours = (
        {place: settings for place, settings in PLACES.items() if place[1] == variant} for variant in VARIANTS
    )

    def shipped(samples: list[Sample], before: list[Sample]) -> set[str]:
        here, old = (
            [measured(ours, of_ours, some), measured(theirs, of_theirs, some, (), of_ours)]
            for some in (samples, before)
        )
        return {sample.key for sample in released_anew(here, old)}

    before = [kept(variant, number, workload="older") for variant in VARIANTS for number in (1, 2)]
    now = [kept(variant, number) for variant in VARIANTS for number in (1, 2)]
    assert shipped(now, before) == {sample.key for sample in now}
    # A kernel without our code is measured by the newer probe, too, before the table changes.
    assert shipped([*before, *now[2:]], before) == {sample.key for sample in before}
    partly = measured(theirs, of_theirs, [*before, *now[2:]], (), of_ours)
    assert (partly.done, len(partly.samples), partly.older) == (0, 2, True)
    # What no part of the table plans decides nothing.
    tried = kept("adaptive", 9, workload="tried")
    assert measured(ours, of_ours, [*now, tried], (), of_theirs).complete


def test_the_file_keeps_samples_and_is_the_same_for_the_same_ones(tmp_path: Path) -> None:
    samples = [kept(variant, number) for variant in VARIANTS for number in (1, 2)]
    one, other = tmp_path / "one.xz", tmp_path / "other.xz"
    write_released(samples, one)
    write_released(reversed(samples), other)
    assert one.read_bytes() == other.read_bytes()
    assert sorted(each.key for each in read_released(one)) == sorted(each.key for each in samples)


@pytest.mark.parametrize(("backend", "mixed"), [("qemu-kvm", False), ("qemu-tcg", True)])
def test_seconds_of_two_hosts_are_not_shipped_as_one(tmp_path: Path, backend: str, mixed: bool) -> None:
    ours, theirs = (
        [kept(variant, number, backend=backend, host=host) for variant in VARIANTS for number in (1, 2)]
        for host in ("ours", "theirs")
    )
    assert measured(PART, PLACES, [*ours, theirs[-1]]).complete is mixed
    parts = [measured(PART, PLACES, samples) for samples in (ours, theirs)]
    file = tmp_path / "samples.xz"
    write_released(released_anew(parts, parts), file)
    assert {sample.host for sample in read_released(file)} == ({""} if mixed else {"ours", "theirs"})


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "samples.xz"
    file.write_bytes(b"none")
    with pytest.raises(StoreError, match=r"samples\.xz cannot be read"):
        read_released(file)


@pytest.mark.parametrize(
    ("command", "decides", "other"), [("simulate", "TRACES", REPOSITORY / "experiments"), ("kselftest", "KERNEL", None)]
)
def test_an_output_is_of_all_that_decides_it(
    command: str, decides: str, other: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part(name="a", shown=("README.md",), command=(command,))
    write_output(part, Output([command], code_behind(part), "rows"), tmp_path)
    kept = read_output(part, tmp_path)
    assert kept
    assert kept.is_of(part)
    (tmp_path / "kselftests.toml").write_text("other suites")
    monkeypatch.setattr(released, decides, other or tmp_path)
    assert not kept.is_of(part)
