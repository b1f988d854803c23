# SPDX-License-Identifier: GPL-2.0-only
"""Guests like servers, as experiment files have them."""

from pathlib import Path

import pytest

from foliolab.arch import ARM64, X86_64, Architecture
from foliolab.campaign.measure import Request, measure
from foliolab.errors import BadExperiment, UsageError
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.experiment.spec import Parameters
from foliolab.vm.accel import choose
from tests.experiment.good import GOOD, write

TWO = 'nodes = [{ cpus = 1, memory = "200M" }, { cpus = 1, memory = "56M" }]'


def parameters(place: Path, lines: str) -> Parameters:
    """Those of quick, which has 2 processors and 256 MiB, with more lines."""
    text = GOOD.replace('memory = "256M"', f'memory = "256M"\n{lines}')
    return find_experiment(write(place, text)).scale("quick").parameters


def test_a_number_of_nodes_divides_all_evenly(tmp_path: Path) -> None:
    assert parameters(tmp_path, "nodes = 2").recorded()["nodes"] == "1x128M 1x128M"
    assert parameters(tmp_path, "nodes = 3").recorded()["nodes"] == "1x86M 1x85M 0x85M"


def test_nodes_without_memory_or_processors(tmp_path: Path) -> None:
    lines = 'nodes = [{ cpus = 0, memory = "256M" }, { cpus = 2, memory = "0" }]\ndistances = [[10, 40], [30, 10]]'
    recorded = parameters(tmp_path, lines).recorded()
    assert (recorded["nodes"], recorded["distances"]) == ("0x256M 2x0M", "10,40 30,10")


def test_what_is_not_said_changes_no_older_sample(tmp_path: Path) -> None:
    plain = parameters(tmp_path, "").recorded()
    assert not {"nodes", "distances", "disk_bus", "parallel"} & set(plain)
    said = 'nodes = []\ndistances = []\ndisk_bus = "virtio"\nparallel = false'
    assert parameters(tmp_path, said).recorded() == plain
    assert parameters(tmp_path, 'disk_bus = "nvme"').recorded() == {**plain, "disk_bus": "nvme"}


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("nodes = 0", r"'scales.quick.nodes' is wrong: expected `int` >= 1"),
        ("nodes = 17", r"'scales.quick.nodes' are 17, and a guest has at most 16"),
        ('nodes = "two"', r"'scales.quick.nodes' is wrong: expected `array`"),
        ("nodes = [{ cpus = 2 }]", r"'scales.quick.nodes\[0\].memory' is missing"),
        ('nodes = [{ cpus = 2, memory = "all" }]', r"'scales.quick.nodes\[0\].memory' is wrong: 'all' is not a size"),
        ('nodes = [{ cpus = -1, memory = "256M" }]', r"'scales.quick.nodes\[0\].cpus' is wrong: expected `int` >= 0"),
        (TWO.replace("cpus = 1", "cpus = 2"), r"'scales.quick.nodes' have 4 processors, and 'cpus' is 2"),
        (TWO.replace("56M", "57M"), r"'scales.quick.nodes' have 257 MiB, and 'memory' is 256 MiB"),
        (TWO.replace("200M", "204799K").replace("56M", "57345K"), r"'scales.quick.nodes' take memory in whole MiB"),
        ("distances = [[10]]", r"'scales.quick.distances' is for guests with 'nodes'"),
        (TWO + "\ndistances = [[10, 20]]", r"'scales.quick.nodes' take distances from each to each: 10 to itself"),
        (TWO + "\ndistances = [[10, 10], [20, 10]]", r"'scales.quick.nodes' take distances from each to each"),
        (TWO + "\ndistances = [[10, 255], [20, 10]]", r"to others"),
        ('disk_bus = "scsi"', r"'scales.quick.disk_bus' has to be one of virtio, nvme"),
        ('disk_bus = "nvme"\nprograms = true', r"'scales.quick.disk_bus' is for guests with one disk"),
    ],
)
def test_mistakes_have_a_sentence(tmp_path: Path, lines: str, complaint: str) -> None:
    with pytest.raises(BadExperiment, match=complaint):
        parameters(tmp_path, lines)


def test_a_workload_that_names_its_disk_has_no_other_bus(tmp_path: Path) -> None:
    text = GOOD.replace('"{data}"', '"/dev/vda"').replace("cpus = 2", 'cpus = 2\ndisk_bus = "nvme"')
    with pytest.raises(BadExperiment, match="disk_bus' is not for a workload that names a disk of virtio"):
        find_experiment(write(tmp_path, text))


def test_nodes_keep_their_processors(tmp_path: Path) -> None:
    mine = find_experiment(write(tmp_path, GOOD.replace('memory = "256M"', f'memory = "256M"\n{TWO}')))
    plan = make_plan(mine, mine.scale("quick"))
    assert plan.with_at_most(2) is plan
    with pytest.raises(UsageError, match="The nodes of mine have 2 processors, and here guests have 1"):
        plan.with_at_most(1)


@pytest.mark.parametrize(("arch", "parallel"), [(X86_64, False), (ARM64, True)], ids=["x86_64", "arm64"])
def test_emulated_processors_run_at_the_same_time_where_that_is_safe(arch: Architecture, parallel: bool) -> None:
    assert choose(arch, "tcg").parallel is parallel
    assert not choose(arch, "icount").parallel


def test_a_demand_for_such_processors_is_refused_where_it_is_not(tmp_path: Path) -> None:
    plain = parameters(tmp_path, "").recorded()
    file = write(tmp_path, GOOD.replace("cpus = 2", "cpus = 2\nparallel = true"))
    recorded = find_experiment(file).scale("quick").parameters.recorded()
    assert recorded == plain, "it asks for an accelerator, which the backend says"
    words = "Processors of mine have to run at the same time, and those of x86_64 take turns under qemu-tcg: use KVM"
    with pytest.raises(UsageError, match=words):
        measure(Request(file, arch="x86_64", accelerator="tcg"))
