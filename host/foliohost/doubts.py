# SPDX-License-Identifier: GPL-2.0-only
"""What makes the figures of a probe doubtful, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from foliohost.probe import DEEPEST, Probe

_CACHED = 2 / 3
"""Of the time of a first read, below which the second one came from a cache."""
_OTHERS = 0.05
"""Of our bytes or reads: so much other work on the disk is worth a word."""
_WAITED = 0.05
"""Of the time without a processor."""
_LOST = 0.1
"""Of bytes, that rounding and short reads do not explain."""
_BUSY = 0.9
"""Of a processor."""


def doubts(probe: Probe) -> list[str]:
    """Sentences; none if nothing is doubtful."""
    return [*_of_data(probe), *_of_other_work(probe), *_of_figures(probe)]


def _of_data(probe: Probe) -> Iterator[str]:
    if probe.again_us < probe.first_us * _CACHED:
        yield (
            f"Reading the same places again took {probe.again_us:,.0f} us instead of {probe.first_us:,.0f} us: the host"
            " or the drive caches, so reads of other data cost more, and another run needs another --seed."
        )
    if probe.data_bytes < probe.size_bytes * (1 - _LOST):
        yield (
            f"Of {probe.size_bytes >> 20:,} MiB, {probe.size_bytes - probe.data_bytes >> 20:,} MiB were passed over: "
            "holes, extents that are not written, and pieces of less than 1 MiB."
        )
    if probe.device.rotational is not None and probe.reached_bytes is not None:
        share = probe.reached_bytes / probe.read_bytes
        if share < 1 - _LOST:
            yield f"Only {share:.0%} of what was read came from a disk: the file system had the rest in memory."


def _of_other_work(probe: Probe) -> Iterator[str]:
    if probe.others_read_bytes > probe.read_bytes * _OTHERS or probe.others_writes > probe.reads * _OTHERS:
        yield (
            f"The disk was busy: others read {probe.others_read_bytes >> 20:,} MiB of it"
            f" and wrote {probe.others_writes:,} times."
        )
    if probe.waited_seconds > probe.seconds * _WAITED:
        yield (
            f"The processors were busy: for {probe.waited_seconds / probe.seconds:.0%} of the time,"
            " the reads had to wait for one."
        )


def _of_figures(probe: Probe) -> Iterator[str]:
    if not probe.cost.certain:
        yield (
            f"The result is uncertain: the halves of the run disagree {_by(probe.cost.disagreement)}, so request_kb"
            " is the upper end of its range; repeat it while the disk is idle, or with more --seconds."
        )
    if not probe.deep.certain:
        yield (
            f"With {DEEPEST} reads in flight the result is uncertain:"
            f" the halves of the run disagree {_by(probe.deep.disagreement)}."
        )
    share = probe.deepest_processor_seconds / probe.deepest_seconds
    if share > _BUSY:
        yield (
            f"With {DEEPEST} reads in flight, the probe itself took {share:.0%} of a processor,"
            " which may limit these figures, and not the disk."
        )


def _by(disagreement: float) -> str:
    return f"by {disagreement:.0%}" if disagreement < 10 else "more than tenfold"
