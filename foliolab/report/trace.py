# SPDX-License-Identifier: GPL-2.0-only
"""What traces come to when they are replayed in the model, or on a file, as tables for the terminal."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.text import Text

from foliolab.analyse.agreement import apart
from foliolab.errors import NoResult
from foliolab.report.columns import Column, change, count, mib, off_by, seconds
from foliolab.report.terminal import print_table, print_title
from foliolab.trace.on_file import ReadCosts, TimedReplay, apart_from, bases
from foliolab.trace.replay import Figures, Replay

_FIGURES: Sequence[tuple[str, str, Callable[[float], str], int]] = (
    ("read MiB", "read_bytes", mib, 0),
    ("requests", "read_requests", count, 3),
    ("major faults", "major_faults", count, 0),
)
"""Title, name, how it is spelled, and the rank of its columns."""
_NOISE = "within noise"


def print_replays(console: Console, replays: Sequence[Replay], device: str = "") -> None:
    """Print what the model predicts beside what guests did, and how far these are apart; seconds are on ``device``."""
    print_title(console, "Traces in the model of the page cache")
    columns = place_columns(replays, rank_of_memory=2)
    for title, name, spell, rank in _FIGURES:
        columns += _columns(title, name, spell, rank, replays)
    times = tuple(seconds(each.seconds) for each in replays if each.seconds is not None)
    if times:
        columns.append(Column((device, "seconds"), times, 1))
    print_table(console, columns, groups=[each.trace for each in replays])


def place_columns(replays: Sequence[Replay], *, rank_of_memory: int) -> list[Column]:
    """What tells replays from each other."""
    return [
        Column(("", "trace"), tuple(Path(each.trace).stem for each in replays), 0, left=True),
        Column(("", "variant"), tuple(each.variant for each in replays), 0, left=True),
        Column(("window", "KiB"), tuple(str(each.read_ahead_kb) for each in replays), 0),
        Column(("memory", "MiB"), tuple(mib(each.memory_bytes) for each in replays), rank_of_memory),
    ]


def difference_columns(replays: Sequence[Replay]) -> list[Column]:
    """A row for each trace, a column for each variant and window: by how many per cent the model is off the guest.

    In bytes, requests and major faults. NoResult if no guest was measured.
    """
    found = {
        (each.trace, (each.variant, each.read_ahead_kb)): _all_off_by(each.predicted, each.recorded)
        for each in replays
        if each.recorded
    }
    if not found:
        raise NoResult("Nothing was measured that these traces could stand beside.")
    traces = dict.fromkeys(trace for trace, _ in found)
    heads = dict.fromkeys(head for _, head in found)
    return [
        Column(("", "trace"), tuple(Path(trace).stem for trace in traces), 0, left=True),
        *(
            Column(
                ("", f"{variant}, {window}"), tuple(found.get((trace, (variant, window)), "") for trace in traces), 0
            )
            for variant, window in heads
        ),
    ]


def _all_off_by(predicted: Figures, recorded: Figures) -> str:
    pairs = [(getattr(predicted, name), getattr(recorded, name)) for _, name, _, _ in _FIGURES]
    shares = (apart(one, other) for one, other in pairs)
    percents = (None if share is None else round(share * 100) for share in shares)
    return " / ".join("-" if each is None else f"{each:+d}" if each else "0" for each in percents)


def _columns(
    title: str, name: str, spell: Callable[[float], str], rank: int, replays: Sequence[Replay]
) -> Iterator[Column]:
    predicted = [getattr(each.predicted, name) for each in replays]
    recorded = [getattr(each.recorded, name) if each.recorded else None for each in replays]
    yield Column((title, "predicted"), tuple(spell(value) for value in predicted), rank)
    if any(value is not None for value in recorded):
        yield Column((title, "recorded"), tuple("-" if value is None else spell(value) for value in recorded), rank)
        pairs = zip(predicted, recorded, strict=True)
        shares = ("-" if other is None else off_by(apart(one, other)) for one, other in pairs)
        yield Column((title, "off by"), tuple(shares), rank)


def print_timed(console: Console, timed: Sequence[TimedReplay], costs: ReadCosts | None) -> None:
    """Print seconds of the disk, what they are against the first variant, and what was read."""
    print_title(console, "Traces on a disk of this machine")
    columns = place_columns([each.replay for each in timed], rank_of_memory=4)
    columns += _time_columns(timed)
    if costs:
        predicted = tuple(seconds(costs.seconds(each.runs[0])) for each in timed)
        columns.append(Column(("predicted", "seconds"), predicted, 1))
    columns += [*_kernel_columns(timed), *_read_columns(timed)]
    print_table(console, columns, groups=[each.replay.trace for each in timed])
    console.print()
    runs = timed[0].runs
    remark = f"Medians of {len(runs)} replays, read by {runs[0].read_by}. Ranges that overlap are {_NOISE}."
    console.print(Text(remark, style="dim"))


def _time_columns(timed: Sequence[TimedReplay]) -> Iterator[Column]:
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


def _kernel_columns(timed: Sequence[TimedReplay]) -> Iterator[Column]:
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


def _read_columns(timed: Sequence[TimedReplay]) -> Iterator[Column]:
    runs = [each.runs[0] for each in timed]
    yield Column(("read", "MiB"), tuple(mib(run.read_bytes) for run in runs), 0)
    yield Column(("", "requests"), tuple(count(run.requests) for run in runs), 3)
    waits = (median(run.waits for run in each.runs) for each in timed)
    yield Column(("", "waits"), tuple(map(count, waits)), 3)
