# SPDX-License-Identifier: GPL-2.0-only
"""A guest whose processors have no memory on their nodes, and no counters of hardware."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from foliolab.vm.counted import HARDWARE, run_counted
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.numa import Node
from foliolab.vm.outcome import splats

pytestmark = pytest.mark.boot

NODES = (Node(0, 256 << 20), Node(1, 0), Node(1, 0))
DISTANCES = ((10, 40, 40), (40, 10, 20), (40, 20, 10))
PROBE = ["sparse-mmap", "--file", "/tmp/file", "--create", "4M", "--fraction", "1"]


@pytest.fixture(scope="module")
def guest(config: GuestConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    mine = replace(config, nodes=NODES, distances=DISTANCES)
    with Guest(mine, tmp_path_factory.mktemp("nodes") / "console.log") as running:
        yield running


def read(guest: Guest, name: str) -> str:
    return guest.run([":read", f"/sys/devices/system/node/{name}"]).checked().stdout.decode().strip()


def test_nodes_are_as_they_were_asked_for(guest: Guest) -> None:
    # x86_64 gives the first numbers to nodes with processors.
    memory, cpus = read(guest, "has_memory"), read(guest, "has_cpu")
    assert (memory, cpus) in (("0", "1-2"), ("2", "0-1"))
    assert sorted(read(guest, f"node{number}/cpulist") for number in range(3)) == ["", "0", "1"]
    assert sorted(read(guest, f"node{memory}/distance").split()) == ["10", "40", "40"]
    assert splats(guest.console()) == []


def test_what_is_allocated_lies_elsewhere_and_hardware_is_not_counted(guest: Guest) -> None:
    result, counts = run_counted(guest, PROBE, 60, nodes=True, hardware=True)
    assert (result.status, result.argv) == (0, tuple(PROBE))
    assert counts.metrics["remote_share"] == 1
    assert set(counts.metrics) == {"remote_share"}
    assert counts.not_counted == HARDWARE
    assert counts.remark.startswith("not-counted: cpu_instructions, ")


def test_nothing_is_counted_that_nobody_asked_for(guest: Guest) -> None:
    result, counts = run_counted(guest, PROBE, 60, nodes=False, hardware=False)
    assert result.status == 0
    assert (counts.metrics, counts.remark) == ({}, "")
