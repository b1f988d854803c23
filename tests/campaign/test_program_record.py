# SPDX-License-Identifier: GPL-2.0-only
from typing import Any

from foliolab.campaign.program import ProgramCell, Run
from foliolab.campaign.sample import KernelFacts
from foliolab.experiment.variants import choose, load_variants
from foliolab.vm.outcome import JobResult


def run(counts: dict[str, Any], signal: int = 0) -> Run:
    (variant,) = choose(["off"], load_variants())
    job = JobResult(("x",), 0, signal, b"", b"", 0, 0.1)
    return Run(
        ProgramCell(variant, 128),
        128,
        KernelFacts("patched", "6.12.1", "6.12.1-foliolab-patched", "0123"),
        job,
        counts,
        [],
    )


def test_counts_are_of_the_data_disk_and_of_our_kernel() -> None:
    disk = {"read_requests": 2, "read_bytes": 8192, "write_requests": 1, "write_bytes": 4096}
    other = dict.fromkeys(disk, 77)
    events = {"pgfault": 10, "pgmajfault": 3, "workingset_refault_file": 5, "mmap_readahead": 4, "nr_dirty": -1}
    counts = {"seconds": 1.5, "disks": {"data": disk, "root": other}, "vmstat": events}
    facts = run(counts).facts
    assert facts["disks"] == {"data": disk, "root": other}
    expected = {
        "status": 0,
        "seconds": 1.5,
        "read_bytes": 8192,
        "read_requests": 2,
        "write_bytes": 4096,
        "major_faults": 3,
        "minor_faults": 7,
        "refaults_file": 5,
        "refaults_anon": None,
        "mmap_readahead": 4,
    }
    assert {name: facts[name] for name in expected} == expected
    assert "nr_dirty" not in facts


def test_a_run_without_counts() -> None:
    facts = run({}, signal=9).facts
    assert (facts["status"], facts["seconds"], facts["read_bytes"], facts["minor_faults"]) == (137, None, None, None)
    facts = run({"vmstat": {"pgfault": 10}}).facts
    assert (facts["major_faults"], facts["minor_faults"]) == (None, None)
    facts = run({"vmstat": {"pgmajfault": 3}}).facts
    assert (facts["major_faults"], facts["minor_faults"]) == (3, None)
