# SPDX-License-Identifier: GPL-2.0-only
"""What helps where mapped files are read badly, what each remedy would give, and its command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from foliohost.called import called
from foliohost.engines import ENGINES
from foliohost.shares import FileShare
from foliohost.sizes import size
from foliohost.verdict import Diagnosis, DiagnosisKind

WINDOW_KB = 16
"""The window that is proposed: some neighbours, at what a single page costs on an SSD."""

_IN_MEMORY = 0.9
"""Of a file that fits into memory, as much as this is there at the end."""

KERNEL = "./lab kernel deb ~/packages && sudo apt install ~/packages/linux-*.deb"
MODULE = (
    "./lab module package && sudo apt install ./foliolab-readahead-dkms_1_all.deb linux-headers-$(uname -r)"
    " && sudo modprobe mmap_readahead_window"
)


@dataclass(frozen=True)
class Remedy:
    name: str
    command: str
    """What to type, or to change in the program; empty where nothing can be done."""
    reads_bytes: int | None
    """It would have read about so much of this file in the same time; None if that cannot be told."""
    formula: str
    """Where that figure comes from."""
    caveat: str


def remedies(verdict: Diagnosis, file: FileShare, page_bytes: int, module_tried: bool) -> list[Remedy]:
    """The remedies for one file, those that change the least for others first; none if nothing is wrong with it.

    ``module_tried`` tells whether our module was tried on this kernel.
    """
    unread = not file.read_bytes and file.seen.cached_pages is not None
    if file.seen.text or verdict.kind is DiagnosisKind.NOTHING_WRONG or unread:
        return []
    engine = ENGINES.get(file.seen.engine)
    if verdict.kind is DiagnosisKind.READS_TOO_LITTLE:
        if not file.seen.hint and 2 * (file.read_bytes or 0) > verdict.read_bytes:
            name, change = "a hint before scans", "madvise(address, length, MADV_SEQUENTIAL)"
            return [Remedy(name, change, None, "", "reads ahead again; look-ups then read windows")]
        if file.seen.hint != "random":
            return []
        change = engine.more if engine and engine.more else "leave madvise(..., MADV_RANDOM) out"
        name = f"{file.seen.engine} without the hint" if engine else "no hint for random access"
        return [Remedy(name, change, None, "", "look-ups then read windows")]
    places = _places(verdict, file)
    window = max(WINDOW_KB << 10, page_bytes)
    path = shlex.quote(file.seen.path)
    found = []
    if file.seen.window_kb > window >> 10:
        formula = f"{places:,} places x {window >> 10} KiB"
        reads = _less(file, places * window)
        found += _for_open_files(file, path, window >> 10, reads, formula)
        found.append(
            Remedy(
                f"a smaller window for {file.seen.device}",
                f"sudo {called()} cure apply --device-of {path} --read-ahead-kb {window >> 10}",
                reads,
                formula,
                "for files opened from then on, of everybody; scans get slower",
            )
        )
    page = f"{places:,} places x {page_bytes >> 10} KiB"
    switch = engine.less if engine else "madvise(address, length, MADV_RANDOM)"
    if switch and file.seen.hint != "random":
        name = f"{file.seen.engine}'s own switch" if engine else "a hint of the program's own"
        found.append(Remedy(name, switch, _less(file, places * page_bytes), page, "scans get slower"))
    kernel, module = _ours(verdict, file, places * page_bytes, page)
    if not module_tried:
        caveat = "not tried on this kernel, but on Debian's 6.1, 6.12 and 7.3 (docs/module.md)"
        module = replace(module, reads_bytes=None, formula="", caveat=caveat)
    return [*found, kernel, module]


def _ours(verdict: Diagnosis, file: FileShare, single_bytes: int, formula: str) -> list[Remedy]:
    """The window that adapts, as a kernel and as a module. Of sparse touches it reads what the hint reads."""
    reads: int | None = _less(file, single_bytes)
    gives = (
        "look-ups in more than memory holds read what they read with the hint, scans less, with more waits; a file"
        " that fits may be filled"
    )
    if file.seen.hint:
        reads, formula, gives = None, "", "what it gives is not known: it leaves mappings with a hint alone"
    elif (file.seen.resident_bytes or 0) >= _IN_MEMORY * file.seen.size_bytes:
        reads, formula, gives = None, "", "what it gives is not known: the file fits into memory, and may be filled"
    elif verdict.kind is not DiagnosisKind.READS_TOO_MUCH:
        reads, formula, gives = None, "", "what it gives is not known: neighbours hide which pages were touched"
    where = "measured with five engines on Debian's 6.12, with LMDB on 7.3; it knows 6.1 as well"
    return [
        Remedy(f"our {what}, whose window adapts", command, reads, formula, f"{gives} ({source})")
        for what, command, source in (
            ("kernel", KERNEL, "docs/stores.md"),
            ("module", MODULE, f"docs/module.md: {where}"),
        )
    ]


def _for_open_files(file: FileShare, path: str, window_kb: int, reads: int | None, formula: str) -> list[Remedy]:
    name = "a smaller window for this open file"
    caveat = "until it is closed; nobody else's files"
    pids: list[int | str] = list(file.seen.open_in)
    if not file.seen.alive:
        pids, caveat = ["PID"], "while the program runs, if it keeps the file open"
    if not pids:
        return [Remedy(name, "", None, "", "not possible: the program has closed its descriptor after mapping")]
    command = f"--file {path} --read-ahead-kb {window_kb}"
    return [Remedy(name, f"sudo {called()} cure apply --pid {pid} {command}", reads, formula, caveat) for pid in pids]


def _places(verdict: Diagnosis, file: FileShare) -> int:
    """Touches that would have to read: blocks of 64 KiB touched, or major faults; and what may be of this file."""
    waits = verdict.major_faults if file.seen.major_faults is None else file.seen.major_faults
    return max(file.seen.places, waits) + verdict.unseen_faults


def _less(file: FileShare, estimate: int) -> int:
    return estimate if file.read_bytes is None else min(estimate, file.read_bytes)


def summary(remedy: Remedy, file: FileShare) -> str:
    """What it gives, in words."""
    if remedy.reads_bytes is None:
        return remedy.caveat
    now = "" if file.read_bytes is None else f" instead of {size(file.read_bytes)}"
    return f"about {size(remedy.reads_bytes)}{now} ({remedy.formula}); {remedy.caveat}"
