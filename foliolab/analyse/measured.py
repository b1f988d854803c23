# SPDX-License-Identifier: GPL-2.0-only
"""What kernels were measured to do with the accesses of a storage engine, beside the trace of them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from foliohost.trace import Measured, Trace
from foliolab.analyse.rows import Group, group_samples
from foliolab.campaign.sample import OK, Sample

EXPERIMENT = "stores"
SCALE = "full"


def with_measured(trace: Trace, groups: Iterable[Group]) -> Trace:
    """``trace`` with what the last of ``groups`` that has its database did with its accesses, beside what it has."""
    accesses = _accesses(trace)
    mine = [group for group in groups if accesses and group.page_size == trace.page_size]
    found = [each for group in mine if (each := tuple(_measured(trace, accesses, group)))]
    return replace(trace, measured=(*trace.measured, *(found[-1] if found else ())))


def store_groups(samples: Iterable[Sample]) -> list[Group]:
    """Those of real stores, in full."""
    chosen = (sample for sample in samples if (sample.experiment, sample.scale) == (EXPERIMENT, SCALE))
    return group_samples(chosen)


def _accesses(trace: Trace) -> dict[str, str]:
    """The options that tell what a storage engine did and had, as words; none of another program."""
    if trace.program[:1] != ("store",):
        return {}
    words = trace.program[1:]
    options = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=False))
    return {name: value for name, value in options.items() if name not in ("data", "read_ahead_kb")}


def _measured(trace: Trace, accesses: dict[str, str], group: Group) -> Iterator[Measured]:
    for sample in group.samples:
        cell = {name: str(value) for name, value in sample.cell.items()} | {"seed": str(sample.repetition)}
        same = sample.data == trace.other.get("data") and accesses.items() <= cell.items()
        if sample.outcome == OK and same:
            yield Measured(
                variant=sample.variant,
                read_ahead_kb=int(sample.cell["read_ahead_kb"]),
                read_bytes=int(sample.metrics["read_bytes"]),
                read_requests=int(sample.metrics["read_requests"]),
                major_faults=int(sample.metrics["major_faults"]),
                # Where little was read, what was cached does not tell what could have been.
                memory_bytes=max(int(sample.metrics["cached_bytes"]), trace.memory_bytes or 0),
            )
