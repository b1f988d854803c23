# SPDX-License-Identifier: GPL-2.0-only
"""Seconds of traces that were replayed on a file, as a table for the terminal."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.text import Text

from foliolab.analyse.agreement import apart
from foliolab.report.columns import Column, change, count, mib, off_by, seconds
from foliolab.report.terminal import print_table, print_title
from foliolab.report.trace import place_columns
from foliolab.trace.on_file import ReadCosts, TimedReplay, apart_from, bases

_NOISE = "within noise"


def print_timed(console: Console, timed: Sequence[TimedReplay], costs: ReadCosts | None) -> None:
    """Print seconds of the disk, what they are against the first variant, and what was read."""
    print_title(console, "Traces on a disk of this machine")
    columns = place_columns([each.replay for each in timed], rank_of_memory=4)
    columns += _seconds(timed)
    if costs:
        predicted = tuple(seconds(costs.seconds(each.runs[0])) for each in timed)
        columns.append(Column(("predicted", "seconds"), predicted, 1))
    columns += [*_kernel(timed), *_reads(timed)]
    print_table(console, columns, groups=[each.replay.trace for each in timed])
    console.print()
    runs = timed[0].runs
    remark = f"Medians of {len(runs)} replays, read by {runs[0].read_by}. Ranges that overlap are {_NOISE}."
    console.print(Text(remark, style="dim"))


def _seconds(timed: Sequence[TimedReplay]) -> Iterator[Column]:
    yield Column(("", "seconds"), tuple(seconds(median(each.seconds)) for each in timed), 0)
    yield Column(("min to max", "seconds"), tuple(_range(each.seconds) for each in timed), 0)
    against = bases(timed)
    if any(base is not each for each, base in zip(timed, against, strict=True)):
        name = against[0].replay.variant
        yield Column(("against", name), tuple(map(_against, timed, against)), 0)


def _against(each: TimedReplay, base: TimedReplay) -> str:
    if each is base:
        return ""
    if not apart_from(each.seconds, base.seconds):
        return _NOISE
    return change(median(each.seconds) / median(base.seconds))


def _kernel(timed: Sequence[TimedReplay]) -> Iterator[Column]:
    """What the running kernel took, how far our seconds and reads are off it."""
    if not any(each.kernel for each in timed):
        return

    def column(title: tuple[str, str], rank: int, cell: Callable[[TimedReplay], str]) -> Column:
        return Column(title, tuple(cell(each) if each.kernel else "" for each in timed), rank)

    yield column(("kernel's", "seconds"), 0, lambda each: seconds(median(each.kernel_seconds)))
    yield column(("min to max", "seconds"), 2, lambda each: _range(each.kernel_seconds))
    yield column(("ours", "off by"), 0, lambda each: _off_by(median(each.seconds), each.kernel_seconds))
    read = ("read MiB", "off by")
    yield column(read, 0, lambda each: _off_by(each.runs[0].read_bytes, [run.read_bytes for run in each.kernel]))
    faults = ("major faults", "off by")
    yield column(
        faults, 0, lambda each: _off_by(each.runs[0].counts.major_faults, [run.major_faults for run in each.kernel])
    )


def _off_by(ours: float, kernel: Sequence[float]) -> str:
    return off_by(apart(ours, median(kernel)))


def _range(values: Sequence[float]) -> str:
    return f"{seconds(min(values))} to {seconds(max(values))}"


def _reads(timed: Sequence[TimedReplay]) -> Iterator[Column]:
    runs = [each.runs[0] for each in timed]
    yield Column(("read", "MiB"), tuple(mib(run.read_bytes) for run in runs), 0)
    yield Column(("", "requests"), tuple(count(run.requests) for run in runs), 3)
    waits = (median(run.waits for run in each.runs) for each in timed)
    yield Column(("", "waits"), tuple(map(count, waits)), 3)
