# SPDX-License-Identifier: GPL-2.0-only
"""Set windows of devices and of open files, and put them back; ``state.py`` remembers them meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from foliohost import windows
from foliohost.devices import HostDevice, device_of
from foliohost.errors import FolioError, NoCure, UsageError
from foliohost.files import in_container
from foliohost.openings import DiskMounts, Opened, Openings, give_back
from foliohost.processes import start_time
from foliohost.state import Cure, State, WindowChange, changing
from foliohost.taken import TooMany, all_held
from foliohost.windows import Closed, Descriptors, OpenFile

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
    left_out: tuple[FolioError, ...] = ()
    """Why others could not be given it, unless they were closed."""


def require_machine() -> None:
    """NoCure in a container: it would forget at its end what was set, and cannot see who else has a file open."""
    if in_container():
        raise NoCure("The record of a cure may be lost with this container, or PID namespace. Run it on the host.")


def apply_to_device(file: Path, read_ahead_kb: int) -> Cure:
    """Give the device that holds a file another window. What it had is remembered before."""
    windows.require_window(read_ahead_kb)
    device = device_of(file)
    with changing() as state:
        now = windows.window_of(device.attribute)
        place = str(file.absolute())
        cure = Cure(place, device.name, str(device.attribute), read_ahead_kb, now, _ticks(), sequence=device.sequence)
        if old := _of_device(device, state.by_key()):
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
    with changing() as state:
        state.have_keeper()
        told, mounts = Descriptors(), DiskMounts(device.attribute)
        with all_held(files, told) as (handles, reached, faults):
            for fault in faults:
                if isinstance(fault, TooMany):  # of those that are left out nobody would know
                    raise fault
            left_out = [fault for fault in faults if not isinstance(fault, (Closed, UsageError))]
            if not reached:
                raise [NoCure("No process has this file open."), *faults, *left_out][-1]
            known = state.by_key()
            for file in reached:
                if (before := known.get(file.key)) and not _stays(before, device, told.of(file)):
                    del known[file.key]
            new = [
                replace(
                    _cure_of(file, device, read_ahead_kb, policy, known),
                    given=_ticks(),
                    descriptors=tuple(told.of(file)),
                )
                for file in reached
            ]
            old = [replace(cure, read_ahead_kb=_window_now(cure, known)) for cure in new]
            now = windows.window_of(device.attribute)
            change = WindowChange(device.name, str(device.attribute), now, read_ahead_kb, tuple(old))
            opened, moment = state.step(
                change,
                [*state.without(new), *new],
                lambda: _give(device.attribute, read_ahead_kb, handles, reached, mounts),
            )
    return Given(tuple(new), opened, moment // 1000, tuple(left_out))


def undo(wanted: Callable[[Cure], bool]) -> Iterator[tuple[Cure, str]]:
    """Put back what is wanted, the last first, and forget it; tells of each what became of it.

    Open files of a device that had the same window get it back together, as each time is another moment in which their
    device has it. FolioError, at the end, if some could not be put back.
    """
    faults: list[FolioError | OSError] = []
    with changing() as state:
        together: dict[tuple[object, ...], list[Cure]] = {}
        for cure in filter(wanted, reversed(state.cures)):
            together.setdefault((cure.attribute, cure.before_kb, cure.pid is None), []).append(cure)
        for cures in together.values():
            try:
                yield from _put_back(cures, state, faults)
            except (FolioError, OSError) as error:
                faults.append(error)
    different = {str(fault): fault for fault in faults}  # what keeps one from being put back may keep all
    if len(different) == 1:
        raise faults[0]
    if different:
        raise NoCure(" ".join(different))


def still_given(cure: Cure, read_ahead_kb: int, policy: str, told: Descriptors) -> bool:
    """Whether an open file has this window by this policy, and nothing has changed since.

    Not if that is long ago: a program may have closed the file and opened it again under the same number.
    """
    asked = (cure.read_ahead_kb, cure.policy) == (read_ahead_kb, policy)
    lately = _ticks() - cure.given < _AGAIN_SECONDS * os.sysconf("SC_CLK_TCK")
    try:
        return asked and lately and cure.descriptors == tuple(told.of(cure.open_file))
    except FolioError:  # it ends just now, which whoever gives it its window will tell
        return False


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
    if cure.sequence not in (None, HostDevice(cure.device, Path(cure.attribute), None).sequence):
        return "the device is another one by now"
    if cure.pid is None:
        return "holds" if there == cure.read_ahead_kb else f"somebody has set {there} KiB"
    try:
        if start_time(cure.pid) != cure.started:
            return "the process has ended"
        return "holds" if (told or Descriptors()).of(cure.open_file) else "the file was closed"
    except UsageError:
        return "the process has ended"


def _cure_of(
    file: OpenFile, device: HostDevice, read_ahead_kb: int, policy: str, known: Mapping[tuple[object, ...], Cure]
) -> Cure:
    attribute = str(device.attribute)
    cure = Cure(
        file.path, device.name, attribute, read_ahead_kb, windows.window_of(device.attribute), _ticks(),
        file.pid, file.started, file.number, file.inode, policy, sequence=device.sequence,
    )  # fmt: skip
    if old := known.get(cure.key):
        return replace(cure, before_kb=old.before_kb, since=old.since)
    # Files get the device's window when they are opened: programs open theirs when they start.
    # What somebody has set since does not change that.
    whole = known.get((attribute,))
    if whole and whole.sequence in (None, device.sequence) and file.started <= whole.since:
        return replace(cure, before_kb=whole.before_kb)
    return cure


def _of_device(device: HostDevice, known: Mapping[tuple[object, ...], Cure]) -> Cure | None:
    """The cure of a device that still has that window."""
    old = known.get((str(device.attribute),))
    return old if old and state_of(old) == "holds" else None


def _stays(cure: Cure, device: HostDevice, descriptors: Sequence[int]) -> bool:
    """Whether a process still has the file open as it was when it got this cure, on the same disk."""
    same = not cure.descriptors or not set(cure.descriptors).isdisjoint(descriptors)
    return same and cure.sequence in (None, device.sequence)


def _window_now(cure: Cure, known: Mapping[tuple[object, ...], Cure]) -> int:
    old = known.get(cure.key)
    return old.read_ahead_kb if old else cure.before_kb


def _give(
    attribute: Path, read_ahead_kb: int, handles: Sequence[int], ours: Sequence[OpenFile], mounts: DiskMounts
) -> tuple[tuple[Opened, ...] | None, int]:
    """Give open files a window; returns what others opened meanwhile, and how long that was, in nanoseconds.

    None if the kernel does not tell us all of that.
    """
    try:
        openings = Openings(mounts)
    except OSError:
        return None, windows.give_window(attribute, read_ahead_kb, handles)
    with closing(openings):
        openings.forget()
        spent = windows.give_window(attribute, read_ahead_kb, handles)
        opened, all_told = openings.found() if spent else ([], True)
    known = {file.key for file in ours}
    back = give_back([file for file in opened if file.key not in known])
    return tuple(back) if all_told else None, spent


def _put_back(cures: Sequence[Cure], state: State, faults: list[FolioError | OSError]) -> Iterator[tuple[Cure, str]]:
    """Put back open files of a device, or this device, that had the same window; adds why some cannot be."""
    told = Descriptors()
    words = {cure: state_of(cure, told) for cure in cures}
    if ended := [cure for cure in cures if words[cure] != "holds"]:
        state.forget(ended)
        yield from ((cure, words[cure]) for cure in ended)
    there = [cure for cure in cures if words[cure] == "holds"]
    if not there:
        return
    if there[0].pid is None:
        _put_device_back(there[0], state)
    else:
        there = _put_files_back(there, state, told, faults)
    yield from ((cure, f"back to {cure.before_kb} KiB") for cure in there)


def _put_device_back(cure: Cure, state: State) -> None:
    attribute = Path(cure.attribute)
    change = WindowChange(cure.device, cure.attribute, windows.window_of(attribute), cure.before_kb, ())
    state.step(change, state.without([cure]), lambda: windows.set_device(attribute, cure.before_kb))


def _put_files_back(
    cures: Sequence[Cure], state: State, told: Descriptors, faults: list[FolioError | OSError]
) -> list[Cure]:
    """Those that could be."""
    first = cures[0]
    attribute = Path(first.attribute)
    state.have_keeper()
    mounts = DiskMounts(attribute)
    with all_held([cure.open_file for cure in cures], told) as (handles, reached, unreached):
        faults += unreached
        keys = {file.key for file in reached}
        back = [cure for cure in cures if cure.key in keys]
        if back:
            change = WindowChange(
                first.device, first.attribute, windows.window_of(attribute), first.before_kb, tuple(back)
            )
            state.step(change, state.without(back), lambda: _give(attribute, first.before_kb, handles, reached, mounts))
    return back


def _ticks() -> int:
    """Clock ticks since boot, in which the kernel tells when a process started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
