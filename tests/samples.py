# SPDX-License-Identifier: GPL-2.0-only
"""Samples for tests of what happens to them after they were measured."""

from dataclasses import replace
from typing import Any

from foliolab.campaign.sample import KernelFacts, Sample, with_key

_PLAIN = Sample(
    key="",
    experiment="sparse-mmap",
    cell={"pattern": "random"},
    variant="off",
    switches={},
    arch="x86_64",
    page_size=4096,
    backend="qemu-tcg",
    scale="quick",
    repetition=1,
    outcome="ok",
    sentence="",
    kernel=KernelFacts("patched", "6.12.1", "6.12.1-foliolab", "k1"),
    profile="lab",
    workload="w1",
    parameters={"cpus": 2},
    metrics={},
    boot="b",
    recorded="2026-01-01T00:00:00+00:00",
)


def sample(read_bytes: int | None = None, *, kernel: str = "k1", named: str = "patched", **changes: Any) -> Sample:
    """A sample that differs from a plain one by kernel and ``changes``; its key follows from them unless given."""
    metrics = {} if read_bytes is None else {"read_bytes": read_bytes, "floor_bytes": 10, "major_faults": 7}
    changed = replace(
        _PLAIN, **{"metrics": metrics, "kernel": replace(_PLAIN.kernel, name=named, hash=kernel), **changes}
    )
    return changed if changed.key else with_key(changed)
