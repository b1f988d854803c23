# SPDX-License-Identifier: GPL-2.0-only
from collections import Counter
from dataclasses import replace

import pytest
from msgspec import structs

from foliolab.errors import UsageError
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import Plan, make_plan
from foliolab.experiment.variants import again, choose, first_name, load_variants


def plan(variants: str = "unpatched,off,published", repetitions: int | None = 3) -> Plan:
    experiment = find_experiment("sparse-mmap")
    chosen = choose(variants.split(","), load_variants())
    scale = experiment.scale("quick")
    return make_plan(experiment, scale, variants=chosen, repetitions=repetitions)


def test_every_cell_once_for_each_variant_and_repetition() -> None:
    steps = plan().steps
    assert len(set(steps)) == len(steps) == 5 * 3 * 3


def test_a_repetition_is_a_boot_of_each_kernel() -> None:
    boots = Counter((boot.kernel, boot.repetition) for boot in plan().boots)
    assert boots == {(flavour, number): 1 for flavour in ("patched", "unpatched") for number in (1, 2, 3)}


def test_variants_of_a_kernel_stand_next_to_each_other_and_take_turns_in_being_first() -> None:
    patched = [boot for boot in plan().boots if boot.kernel == "patched"]
    first = set()
    for boot in patched:
        for one, other in zip(boot.steps[::2], boot.steps[1::2], strict=True):
            assert one.cell == other.cell
            first.add(one.variant.name)
    assert first == {"off", "published"}


def test_cells_and_kernels_change_their_order() -> None:
    boots = plan().boots
    assert len({tuple(step.cell for step in boot.steps) for boot in boots if boot.kernel == "unpatched"}) > 1
    assert {boot.kernel for boot in boots[::2]} == {"patched", "unpatched"}


def test_the_order_is_the_same_every_time() -> None:
    assert plan() == plan()


def test_the_kernel_s_own_defaults_get_boots_of_their_own() -> None:
    boots = plan("off,adaptive,published", repetitions=1).boots
    assert [{step.variant.name for step in boot.steps} for boot in boots] == [{"off", "published"}, {"adaptive"}]


@pytest.mark.parametrize("name", ["unpatched", "off"])
def test_what_is_measured_again_has_boots_of_its_own(name: str) -> None:
    experiment = find_experiment("sparse-mmap")
    chosen = choose(["published", name], load_variants())
    variants = [*chosen, again(chosen[-1])]
    found = make_plan(experiment, experiment.scale("quick"), variants=variants, repetitions=2)
    alone = [boot for boot in found.boots if {step.variant.name for step in boot.steps} == {f"{name} again"}]
    assert [boot.repetition for boot in alone] == [1, 2]
    assert {step.variant.name for step in found.steps if step.variant.name != first_name(step.variant.name)} == {
        f"{name} again"
    }


def test_what_would_learn_from_others_has_boots_of_its_own() -> None:
    experiment = find_experiment("sparse-mmap")
    scale = experiment.scale("quick")
    each = replace(scale, parameters=structs.replace(scale.parameters, boot_each=True))
    chosen = choose(["off", "published", "adaptive"], load_variants())
    together, apart = (make_plan(experiment, one, variants=chosen, repetitions=2) for one in (scale, each))
    assert (len(together.boots), len(apart.boots)) == (4, len(apart.steps))
    assert apart.steps == together.steps
    assert {(boot.kernel, boot.repetition) for boot in apart.boots} == {("patched", 1), ("patched", 2)}


def test_a_backend_s_limit_of_cpus() -> None:
    assert plan().with_at_most(1).scale.parameters.cpus == 1
    assert plan().with_at_most(None) == plan()
    assert plan().with_at_most(8).scale.parameters.cpus == 2


def test_no_repetition_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="At least one repetition"):
        plan(repetitions=0)


def test_a_plan_that_no_memory_would_hold() -> None:
    with pytest.raises(
        UsageError, match=r"^1,000,000,000,000 repetitions are more than the 10,000 that can be planned"
    ):
        plan(repetitions=10**12)
