# SPDX-License-Identifier: GPL-2.0-only
"""What helps where mapped files are read badly, what each remedy would give, and its command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from foliohost.called import called
from foliohost.circumstances import Circumstances
from foliohost.engines import ENGINES, Engine
from foliohost.estimates import DiskCost, Load, Touched, close, present_load, touched
from foliohost.observation import Observation
from foliohost.shares import FileShare
from foliohost.sizes import count, size
from foliohost.verdict import SMALL_WINDOW_KB, Diagnosis, DiagnosisKind, fits, waits_for

_LONGER = 1.1
"""Times the seconds that are taken now, from which a remedy is said to take longer."""

KERNEL = "sudo apt install ~/packages/linux-*.deb"
MODULE = (
    "sudo apt install ./foliolab-readahead-dkms_*_all.deb linux-headers-$(uname -r)"
    " && sudo modprobe mmap_readahead_window"
)
KERNEL_PACKAGES, MODULE_PACKAGE = "./lab kernel deb ~/packages", "./lab module package"
"""What makes the packages, on another machine: as root, the lab installs compilers."""
_LEAVES_ALONE = "what it gives is not known: it leaves mappings with a hint alone"
_HIDDEN = "what it gives is not known: neighbours hide which pages were touched"
_OPEN = "neighbours hide whether pages are touched alone"
_LOOK_UPS = "look-ups then read windows"


@dataclass(frozen=True)
class Forecast:
    """What would have been read of a file in the same time; None where that cannot be told."""

    reads_bytes: int | None = None
    waits: int | None = None
    """Major faults."""
    seconds: float | None = None
    """Of the disk, if it serves one request after the other; None if it was not probed."""
    formula: str = ""
    """Where the bytes come from."""
    bounds: tuple[int, int] | None = None
    """Of the bytes, where what was seen leaves them open; then ``reads_bytes`` is None."""


@dataclass(frozen=True)
class Remedy:
    name: str
    command: str
    """What to type, or to change in the program; empty where nothing can be done."""
    figures: Forecast
    caveat: str


def remedies(seen: Observation, verdict: Diagnosis, file: FileShare, around: Circumstances) -> list[Remedy]:
    """The remedies for one file, those that change the least for others first; none if nothing is wrong with it."""
    unread = not file.read_bytes and file.seen.cached_pages is not None
    if file.seen.text or unread or fits(file) or verdict.kind in (DiagnosisKind.NOTHING_WRONG, DiagnosisKind.FITS):
        return []
    engine = ENGINES.get(file.seen.engine)
    case = _Case(seen, verdict, file, around)
    if verdict.kind is DiagnosisKind.READS_TOO_LITTLE:
        return case.for_more(engine)
    return [*case.smaller_windows(), *case.hints(engine), *case.ours()]


class _Case:
    """A file that is read badly, and what is known of it."""

    def __init__(self, seen: Observation, verdict: Diagnosis, file: FileShare, around: Circumstances) -> None:
        self._seen, self._verdict, self._file, self._around = seen, verdict, file, around
        self._page = seen.page_bytes
        self._cost = around.cost(file.seen)
        self._window_kb = around.window_kb(file.seen)
        self._window_pages = (self._window_kb << 10) // self._page
        self._waits = waits_for(verdict, file)
        majors = seen.counted.major_faults
        unseen = self._waits * seen.unseen.major_faults / majors if majors else 0.0
        self._touched = touched(file, self._window_pages, self._waits, unseen)

    def for_more(self, engine: Engine | None) -> list[Remedy]:
        """Where a program waits for each page."""
        file = self._file
        if not file.seen.hint and 2 * (file.read_bytes or 0) > self._verdict.read_bytes:
            change = "madvise(address, length, MADV_SEQUENTIAL)"
            caveat = "reads ahead again; look-ups then read windows"
            return [Remedy("a hint before scans", change, self._streamed(), caveat)]
        if file.seen.hint != "random":
            return []
        change = engine.more if engine and engine.more else "leave madvise(..., MADV_RANDOM) out"
        name = f"{file.seen.engine} without the hint" if engine else "no hint for random access"
        return [Remedy(name, change, self._streamed(), _LOOK_UPS)]

    def smaller_windows(self) -> list[Remedy]:
        """Of the open file and of its device."""
        window = max(SMALL_WINDOW_KB << 10, self._page)
        file, window_kb = self._file.seen, window >> 10
        if self._window_kb <= window_kb:
            return []
        figures = self._figures(window // self._page)
        cut = self._cut_hints(window_kb)
        path = shlex.quote(file.path)
        command = f"sudo {called()} cure apply --device-of {path} --read-ahead-kb {window_kb}"
        caveat = f"for files opened from then on, of everybody; scans get slower{cut}"
        device = Remedy(f"a smaller window for {file.device}", command, figures, caveat)
        return [self._for_open_file(path, window_kb, figures, cut), device]

    def _for_open_file(self, path: str, window_kb: int, figures: Forecast, cut: str) -> Remedy:
        name = "a smaller window for this open file"
        file = self._file.seen
        if file.alive and not file.open_in:
            caveat = "not possible: the program has closed its descriptor after mapping"
            return Remedy(name, "", Forecast(), caveat)
        command = f"sudo {called()} cure apply --file {path} --read-ahead-kb {window_kb}"
        number = len(file.open_in)
        caveat = (
            f"for the {number} processes that have it open, until they close it" if number > 1 else "until it is closed"
        )
        if not file.alive:
            caveat = "while the program runs, if it keeps the file open"
        return Remedy(name, command, figures, caveat + cut)

    def hints(self, engine: Engine | None) -> list[Remedy]:
        """What the program or its engine can do by itself."""
        switch = engine.less if engine else "madvise(address, length, MADV_RANDOM)"
        if not switch or self._file.seen.hint == "random":
            return []
        name = f"{self._file.seen.engine}'s own switch" if engine else "a hint of the program's own"
        return [Remedy(name, switch, self._figures(1), "scans get slower")]

    def ours(self) -> list[Remedy]:
        """The window that adapts, as a kernel and as a module. Of sparse touches it reads what the hint reads."""
        if self._seen.adaptive:
            caveat = "it leaves mappings with a hint alone, and as a module what its groups and devices leave out"
            return [Remedy("the window that adapts, which is on here", "", Forecast(), f"{caveat} (docs/module.md)")]
        figures = self._figures(1)
        gives = (
            "look-ups in more than memory holds read what they read with the hint, scans less, with more waits; a file"
            " that fits may be filled"
        )
        if self._file.seen.hint:
            figures, gives = Forecast(), _LEAVES_ALONE
        elif self._verdict.kind is not DiagnosisKind.READS_TOO_MUCH:
            figures, gives = Forecast(), _HIDDEN
        elif self._touched.run_pages > 1:
            figures = replace(figures, waits=None, seconds=None)  # it reads runs in fewer requests than the hint
        if off := list(self._seen.switches):
            name, command = "the window that adapts, which is off here", f"echo 1 | sudo tee {off[0]}"
            if "/module/" in off[0]:
                gives += " (docs/module.md: When it refuses)"
                figures = figures if self._seen.module_tried else Forecast()
            return [Remedy(name, command, figures, gives)]
        where = "measured with five engines on Debian's 6.12, with LMDB on 7.3; it knows 6.1 as well"
        told, made = f"{gives} (docs/stores.md)", f"made elsewhere by '{KERNEL_PACKAGES}'"
        kernel = Remedy("our kernel, whose window adapts", KERNEL, figures, f"{told}; {made}")
        told, made = f"{gives} (docs/module.md: {where})", f"made elsewhere by '{MODULE_PACKAGE}'"
        module = Remedy("our module, whose window adapts", MODULE, figures, f"{told}; {made}")
        if not self._seen.module_tried:
            caveat = "not tried on this kernel, but on Debian's 6.1, 6.12, 7.2 and 7.3 (docs/module.md)"
            module = replace(module, figures=Forecast(), caveat=f"{caveat}; {made}")
        return [kernel, module]

    def _cut_hints(self, window_kb: int) -> str:
        """A warning where the kernel reads less of what a program asks for ahead, once the window is smaller."""
        most_kb = self._around.hints_kb.get(self._file.seen.device)
        if most_kb is None or most_kb >= self._window_kb:
            return ""
        least = max(most_kb, window_kb)
        return f"; each call of MADV_WILLNEED or readahead() then reads {least} KiB at most, without a word"

    def _figures(self, window_pages: int) -> Forecast:
        found = self._touched
        load, (least, most) = found.load(window_pages), found.loads(window_pages)
        figures = self._forecast(load, _formula(load, found, window_pages, self._page))
        waits = figures.waits if close(least.waits, most.waits) else None
        if close(least.pages, most.pages):
            return replace(figures, waits=waits)
        bounds = (_bytes(least, self._page, self._file), _bytes(most, self._page, self._file))
        return Forecast(None, waits, None, _OPEN, bounds)

    def _streamed(self) -> Forecast:
        """Of what was read page by page, if it is read by windows; at most as many waits as there are windows."""
        pages = (self._file.read_bytes or 0) / self._page
        windows = pages / max(1, self._window_pages)
        formula = f"{count(windows)} windows of {self._window_kb} KiB"
        figures = self._forecast(Load(pages, 1, windows, max(1, windows / 2)), formula)
        return replace(figures, waits=round(windows))

    def _forecast(self, load: Load, formula: str) -> Forecast:
        seconds = _disk_seconds(load, self._cost, self._seen)
        return Forecast(_bytes(load, self._page, self._file), round(load.waits), seconds, formula)


def _disk_seconds(load: Load, cost: DiskCost | None, seen: Observation) -> float | None:
    return round(load.seconds(cost, seen.seconds), 3) if cost else None


def _bytes(load: Load, page_bytes: int, file: FileShare) -> int:
    """What a load reads: no more than is read now."""
    reads = round(load.pages * page_bytes)
    return reads if file.read_bytes is None else min(reads, file.read_bytes)


def _formula(load: Load, found: Touched, window_pages: int, page_bytes: int) -> str:
    window = f"{max(1, window_pages) * page_bytes >> 10} KiB"
    if found.run_pages == 1:
        return f"{count(load.requests)} reads of {window}"
    return f"{count(load.requests)} reads of {window}, in {count(found.runs)} runs of {found.run_pages:.0f} pages"


def present_figures(seen: Observation, verdict: Diagnosis, file: FileShare, around: Circumstances) -> Forecast:
    """What was read of a file, and how often and how long a program waited for it."""
    waits = waits_for(verdict, file)
    if file.read_bytes is None:
        return Forecast(None, round(waits))
    load = present_load(file.read_bytes, waits, (around.window_kb(file.seen) << 10) // seen.page_bytes)
    return Forecast(file.read_bytes, round(waits), _disk_seconds(load, around.cost(file.seen), seen))


def summary(remedy: Remedy, now: Forecast, seconds: float) -> str:
    """What it gives, in words, beside what is read now, in a look so long."""
    then = remedy.figures
    if then.bounds:
        reads = " to ".join(map(size, then.bounds))
        waits = "" if then.waits is None else f", {_beside(count, then.waits, now.waits)} waits"
        return f"{_beside(str, reads, size(now.reads_bytes or 0))}{waits} ({then.formula}); {remedy.caveat}"
    if then.reads_bytes is None:
        return remedy.caveat
    parts = [_beside(size, then.reads_bytes, now.reads_bytes)]
    if then.waits is not None:
        parts.append(f"{_beside(count, then.waits, now.waits)} waits")
    if then.seconds is not None:
        parts.append(f"{_beside(_seconds, then.seconds, now.seconds)} of waiting for the disk")
    rates = [f"{size(then.reads_bytes / seconds)} a second"]
    if then.waits:
        rates.append(f"{size(then.reads_bytes / then.waits)} for each wait")
    longer = then.seconds and now.seconds and then.seconds > _LONGER * now.seconds
    warning = "it takes longer than now; " if longer else ""
    return f"about {', '.join(parts)}: {', '.join(rates)} ({then.formula}); {warning}{remedy.caveat}"


def _beside(words: Callable[[Any], str], then: Any, now: Any) -> str:
    return words(then) if now is None else f"{words(then)} instead of {words(now)}"


def _seconds(number: float) -> str:
    return f"{number:.1f} s" if number >= 1 else f"{number * 1000:.0f} ms"
