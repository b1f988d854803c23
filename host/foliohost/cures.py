# SPDX-License-Identifier: GPL-2.0-only
"""Set windows of devices and of open files, and put them back; ``state.py`` remembers them meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from foliohost import windows
from foliohost.devices import HostDevice, device_of
from foliohost.errors import FolioError, NoCure, UsageError
from foliohost.openings import Opened, Openings, give_back
from foliohost.processes import start_time
from foliohost.state import Cure, State, WindowChange, changing
from foliohost.windows import Descriptors, OpenFile

_AGAIN_SECONDS = 3600
"""After which a policy gives a file its window again although nothing has changed that we see."""


@dataclass(frozen=True)
class Given:
    """What came of giving open files a window."""

    cures: tuple[Cure, ...]
    opened: tuple[Opened, ...] | None
    """What others opened while the device had that window; None if the kernel does not tell us all."""
    moment_us: int
    """How long that was, in microseconds."""


def apply_to_device(file: Path, read_ahead_kb: int) -> Cure:
    """Give the device that holds a file another window. What it had is remembered before."""
    windows.require_window(read_ahead_kb)
    device = device_of(file)
    with changing() as state:
        now = device.read_ahead_kb
        place = str(file.absolute())
        cure = Cure(place, device.name, str(device.attribute), read_ahead_kb, now, _ticks())
        if old := state.find(cure):
            cure = replace(cure, before_kb=old.before_kb, since=old.since)
        change = WindowChange(device.name, cure.attribute, now, read_ahead_kb, ())
        after = [*state.without([cure]), cure]
        state.step(change, after, lambda: windows.set_device(device.attribute, read_ahead_kb))
    return cure


def apply_to_open_files(files: Sequence[OpenFile], device: HostDevice, read_ahead_kb: int, policy: str = "") -> Given:
    """Give files of one device, as processes have them open, another window.

    Those that are closed meanwhile are left out; NoCure, or what else it is, if that is all of them.
    """
    windows.require_window(read_ahead_kb)
    with changing() as state, ExitStack() as block:
        state.have_keeper()
        told = Descriptors()
        handles, reached = _held(files, block, told)
        new = [
            replace(
                _cure_of(file, device, read_ahead_kb, policy, state), given=_ticks(), descriptors=tuple(told.of(file))
            )
            for file in reached
        ]
        old = [replace(cure, read_ahead_kb=_window_now(cure, state)) for cure in new]
        change = WindowChange(device.name, str(device.attribute), device.read_ahead_kb, read_ahead_kb, tuple(old))
        opened, moment = state.step(
            change, [*state.without(new), *new], lambda: _give(device.attribute, read_ahead_kb, handles, reached)
        )
    return Given(tuple(new), opened, moment // 1000)


def undo(wanted: Callable[[Cure], bool]) -> Iterator[tuple[Cure, str]]:
    """Put back what is wanted, the last first, and forget it; tells of each what became of it.

    FolioError, at the end, if some could not be put back.
    """
    faults: list[FolioError | OSError] = []
    with changing() as state:
        for cure in reversed(state.cures):
            if not wanted(cure):
                continue
            try:
                words = _put_back(cure, state)
            except (FolioError, OSError) as error:
                faults.append(error)
                continue
            yield cure, words
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise NoCure(" ".join(map(str, faults)))


def still_given(
    file: OpenFile, read_ahead_kb: int, policy: str, known: Sequence[Cure], told: Descriptors
) -> Cure | None:
    """The one of the ``known`` cures by which a policy has given an open file its window, if nothing has changed since.

    None as well if that is long ago: a program may have closed the file and opened it again under the same number.
    """
    for cure in known:
        if cure.pid is None or cure.open_file != replace(file, path=cure.file):
            continue
        asked = (cure.read_ahead_kb, cure.policy) == (read_ahead_kb, policy)
        lately = _ticks() - cure.given < _AGAIN_SECONDS * os.sysconf("SC_CLK_TCK")
        try:
            return cure if asked and lately and cure.descriptors == tuple(told.of(file)) else None
        except FolioError:  # it ends just now, which whoever gives it its window will tell
            return None
    return None


def forget_ended() -> None:
    """Forget the open files that were closed."""
    with changing() as state:
        told = Descriptors()
        ended = [cure for cure in state.cures if cure.pid is not None and state_of(cure, told) != "holds"]
        if ended:
            state.forget(ended)


def state_of(cure: Cure, told: Descriptors | None = None) -> str:
    """``holds``, or why it does not; of many cures ``told`` keeps what processes have open."""
    try:
        there = windows.window_of(Path(cure.attribute))
    except NoCure:
        return "the device is gone"
    if cure.pid is None:
        return "holds" if there == cure.read_ahead_kb else f"somebody has set {there} KiB"
    try:
        if start_time(cure.pid) != cure.started:
            return "the process has ended"
        return "holds" if (told or Descriptors()).of(cure.open_file) else "the file was closed"
    except UsageError:
        return "the process has ended"


def _held(files: Sequence[OpenFile], block: ExitStack, told: Descriptors) -> tuple[list[int], list[OpenFile]]:
    """Descriptors of ours, which ``block`` closes, and the files that they are of."""
    handles: list[int] = []
    reached: list[OpenFile] = []
    fault: FolioError = NoCure("No process has this file open.")
    for file in files:
        try:
            handles += block.enter_context(windows.held(file, told))
            reached.append(file)
        except FolioError as error:
            fault = error
    if not reached:
        raise fault
    return handles, reached


def _cure_of(file: OpenFile, device: HostDevice, read_ahead_kb: int, policy: str, state: State) -> Cure:
    attribute = str(device.attribute)
    cure = Cure(
        file.path, device.name, attribute, read_ahead_kb, device.read_ahead_kb, _ticks(),
        file.pid, file.started, file.number, file.inode, policy,
    )  # fmt: skip
    if old := state.find(cure):
        return replace(cure, before_kb=old.before_kb, since=old.since)
    # Files get the device's window when they are opened: programs open theirs when they start.
    whole = next((other for other in state.cures if other.pid is None and other.attribute == attribute), None)
    if whole and file.started <= whole.since:
        return replace(cure, before_kb=whole.before_kb)
    return cure


def _window_now(cure: Cure, state: State) -> int:
    old = state.find(cure)
    return old.read_ahead_kb if old else cure.before_kb


def _give(
    attribute: Path, read_ahead_kb: int, handles: Sequence[int], ours: Sequence[OpenFile]
) -> tuple[tuple[Opened, ...] | None, int]:
    """Give open files a window; returns what others opened meanwhile, and how long that was, in nanoseconds.

    None if the kernel does not tell us all of that.
    """
    try:
        openings = Openings(attribute)
    except OSError:
        return None, windows.give_window(attribute, read_ahead_kb, handles)
    with closing(openings):
        openings.forget()
        spent = windows.give_window(attribute, read_ahead_kb, handles)
        opened, all_told = openings.found() if spent else ([], True)
    known = {replace(file, path="") for file in ours}
    back = give_back([file for file in opened if replace(file, path="") not in known])
    return tuple(back) if all_told else None, spent


def _put_back(cure: Cure, state: State) -> str:
    words = state_of(cure)
    if words != "holds":
        state.forget([cure])
        return words
    attribute, after = Path(cure.attribute), state.without([cure])
    now = windows.window_of(attribute)
    if cure.pid is None:
        change = WindowChange(cure.device, cure.attribute, now, cure.before_kb, ())
        state.step(change, after, lambda: windows.set_device(attribute, cure.before_kb))
    else:
        change = WindowChange(cure.device, cure.attribute, now, cure.before_kb, (cure,))
        state.have_keeper()
        with windows.held(cure.open_file) as handles:
            state.step(change, after, lambda: _give(attribute, cure.before_kb, handles, [cure.open_file]))
    return f"back to {cure.before_kb} KiB"


def _ticks() -> int:
    """Clock ticks since boot, in which the kernel tells when a process started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
