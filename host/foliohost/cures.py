# SPDX-License-Identifier: GPL-2.0-only
"""What was set on this machine, remembered in a file until it is put back.

Each change is one step: before it begins, the file names what has to be put back if it does not end (``Change``).
Whoever takes the lock next does that first: a keeper that waits for it, or the next command. So what the file
lists is what holds, wherever a kill hits.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from foliohost import windows
from foliohost.devices import HostDevice, device_of
from foliohost.errors import FolioError, NoCure, NotPermitted, UsageError
from foliohost.files import locked, state_directory, write_atomic
from foliohost.keeper import start_keeper
from foliohost.openings import Opened, Openings, give_back
from foliohost.processes import descriptors, start_time
from foliohost.windows import OpenFile

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Cure:
    """A window that was set: of a device, or with ``pid`` of a file that this process has open."""

    file: str
    device: str
    attribute: str
    read_ahead_kb: int
    before_kb: int
    """The window before: the device's, or the file's."""
    since: int
    """When the first window was set, in clock ticks since boot."""
    pid: int | None = None
    started: int | None = None
    """In clock ticks since boot."""
    number: int = 0
    """Of the file system, as ``os.stat`` has it."""
    inode: int = 0
    policy: str = ""
    """The policy that asked for it; empty if somebody did."""

    @property
    def key(self) -> tuple[object, ...]:
        """Two cures with the same key replace each other."""
        return (self.attribute,) if self.pid is None else (self.pid, self.started, self.number, self.inode)

    @property
    def open_file(self) -> OpenFile:
        assert self.pid is not None and self.started is not None
        return OpenFile(self.file, self.pid, self.started, self.number, self.inode)


@dataclass(frozen=True)
class Change:
    """A change that has begun."""

    device: str
    attribute: str
    device_kb: int
    """The device's window, which it gets back."""
    meanwhile_kb: int
    """The one that it may have; with any other, somebody else has set it."""
    files: tuple[Cure, ...]
    """Open files that may have another window, and have to have that of these."""


@dataclass(frozen=True)
class Given:
    """What came of giving open files a window."""

    cures: tuple[Cure, ...]
    opened: tuple[Opened, ...] | None
    """What others opened while the device had that window; None if the kernel does not tell us."""
    moment_us: int
    """How long that was, in microseconds."""


class _State:
    """The file, whose lock is held."""

    def __init__(self, cures: Iterable[Cure] = (), change: Change | None = None):
        self.cures = list(cures)
        self._change = change

    @classmethod
    def load(cls) -> _State:
        """NoCure if it is damaged."""
        path = _path()
        try:
            content = json.loads(path.read_text())
            boot, cures, change = content["boot"], content["cures"], content["change"]
            if change:
                change = Change(**{**change, "files": tuple(Cure(**entry) for entry in change["files"])})
            # After a boot all windows are as the kernel gives them.
            return cls((Cure(**entry) for entry in cures), change) if boot == boot_id() else cls()
        except FileNotFoundError:
            return cls()
        except PermissionError as error:
            raise _for_root() from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise NoCure(f"{path} is damaged; put windows back by hand and remove it.") from error

    def _save(self, cures: list[Cure], change: Change | None) -> None:
        content = {
            "boot": boot_id(),
            "cures": [asdict(cure) for cure in cures],
            "change": asdict(change) if change else None,
        }
        write_atomic(_path(), json.dumps(content, indent=1) + "\n")
        _flush(_path().parent)
        self.cures, self._change = cures, change

    def step(self, change: Change, after: list[Cure], act: Callable[[], _Result]) -> _Result:
        """Change windows; ``after`` is what is set then. However it fails, all is put back."""
        windows.require_settable(Path(change.attribute))
        self._save(self.cures, change)
        try:
            start_keeper(state_directory())
            result = act()
            self._save(after, None)
        except BaseException:
            self.recover()
            raise
        return result

    def recover(self) -> list[str]:
        """Put back what a change has left that did not end; returns a sentence for each window."""
        change = self._change
        if not change:
            return []
        attribute, words = Path(change.attribute), []
        if _has(attribute, change.meanwhile_kb) and change.meanwhile_kb != change.device_kb:
            windows.set_device(attribute, change.device_kb)
            words.append(
                f"{change.device} has {change.device_kb} KiB again. What others opened while it had"
                f" {change.meanwhile_kb} KiB keeps that until it is closed."
            )
        for cure in change.files:
            with suppress(FolioError), windows.held(cure.open_file) as handles:  # else it is closed
                now, wanted = windows.window_of(attribute), cure.read_ahead_kb
                self._save(self.cures, replace(change, device_kb=now, meanwhile_kb=wanted))
                windows.give_window(attribute, wanted, handles)
                words.append(f"{_named(cure)} has {wanted} KiB.")
        self._save(self.cures, None)
        return words

    def forget(self, cures: Iterable[Cure]) -> None:
        self._save(self.without(cures), self._change)

    def find(self, cure: Cure) -> Cure | None:
        return next((other for other in self.cures if other.key == cure.key), None)

    def without(self, cures: Iterable[Cure]) -> list[Cure]:
        keys = {cure.key for cure in cures}
        return [cure for cure in self.cures if cure.key not in keys]


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def applied() -> list[Cure]:
    """All that is remembered; NoCure if that is damaged, NotPermitted if it is root's alone."""
    return _State.load().cures


def restore() -> list[str]:
    """Put back what a command left that was killed; returns a sentence for each window."""
    if not os.access(_path(), os.W_OK):  # nothing was ever set, or it is root's
        return []
    with locked(_path().with_name("lock")):
        return _State.load().recover()


def apply_to_device(file: Path, read_ahead_kb: int) -> Cure:
    """Give the device that holds a file another window. What it had is remembered before."""
    windows.require_window(read_ahead_kb)
    device = device_of(file)
    with _changing() as state:
        now = device.read_ahead_kb
        place = str(file.absolute())
        cure = Cure(place, device.name, str(device.attribute), read_ahead_kb, now, _ticks())
        if old := state.find(cure):
            cure = replace(cure, before_kb=old.before_kb, since=old.since)
        change = Change(device.name, cure.attribute, now, read_ahead_kb, ())
        after = [*state.without([cure]), cure]
        state.step(change, after, lambda: windows.set_device(device.attribute, read_ahead_kb))
    return cure


def apply_to_open_files(files: Sequence[OpenFile], device: HostDevice, read_ahead_kb: int, policy: str = "") -> Given:
    """Give files of one device, as processes have them open, another window.

    Those that are closed meanwhile are left out; NoCure, or what else it is, if that is all of them.
    """
    windows.require_window(read_ahead_kb)
    with _changing() as state, ExitStack() as block:
        handles, reached = _held(files, block)
        new = [_cure_of(file, device, read_ahead_kb, policy, state) for file in reached]
        old = [replace(cure, read_ahead_kb=_window_now(cure, state)) for cure in new]
        change = Change(device.name, str(device.attribute), device.read_ahead_kb, read_ahead_kb, tuple(old))
        opened, moment = state.step(
            change, [*state.without(new), *new], lambda: _give(device.attribute, read_ahead_kb, handles, reached)
        )
    return Given(tuple(new), opened, moment // 1000)


def undo(wanted: Callable[[Cure], bool]) -> Iterator[tuple[Cure, str]]:
    """Put back what is wanted, the last first, and forget it; tells of each what became of it.

    FolioError, at the end, if some could not be put back.
    """
    faults: list[FolioError | OSError] = []
    with _changing() as state:
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


def forget_ended() -> None:
    """Forget the open files that were closed."""
    with _changing() as state:
        ended = [cure for cure in state.cures if cure.pid is not None and state_of(cure) != "holds"]
        if ended:
            state.forget(ended)


def state_of(cure: Cure) -> str:
    """``holds``, or why it does not."""
    try:
        there = windows.window_of(Path(cure.attribute))
    except NoCure:
        return "the device is gone"
    if cure.pid is None:
        return "holds" if there == cure.read_ahead_kb else f"somebody has set {there} KiB"
    try:
        if start_time(cure.pid) != cure.started:
            return "the process has ended"
        return "holds" if descriptors(cure.pid, cure.open_file.status) else "the file was closed"
    except UsageError:
        return "the process has ended"


def _held(files: Sequence[OpenFile], block: ExitStack) -> tuple[list[int], list[OpenFile]]:
    """Descriptors of ours, which ``block`` closes, and the files that they are of."""
    handles: list[int] = []
    reached: list[OpenFile] = []
    fault: FolioError = NoCure("No process has this file open.")
    for file in files:
        try:
            handles += block.enter_context(windows.held(file))
            reached.append(file)
        except FolioError as error:
            fault = error
    if not reached:
        raise fault
    return handles, reached


def _cure_of(file: OpenFile, device: HostDevice, read_ahead_kb: int, policy: str, state: _State) -> Cure:
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


def _window_now(cure: Cure, state: _State) -> int:
    old = state.find(cure)
    return old.read_ahead_kb if old else cure.before_kb


def _give(
    attribute: Path, read_ahead_kb: int, handles: Sequence[int], ours: Sequence[OpenFile]
) -> tuple[tuple[Opened, ...] | None, int]:
    """Give open files a window; returns what others opened meanwhile, and how long that was, in nanoseconds."""
    try:
        openings = Openings(attribute)
    except OSError:
        return None, windows.give_window(attribute, read_ahead_kb, handles)
    with closing(openings):
        openings.forget()
        spent = windows.give_window(attribute, read_ahead_kb, handles)
        known = {replace(file, path="") for file in ours}
        others = [file for file in openings.found() if replace(file, path="") not in known] if spent else []
    return tuple(give_back(others)), spent


def _put_back(cure: Cure, state: _State) -> str:
    words = state_of(cure)
    if words != "holds":
        state.forget([cure])
        return words
    attribute, after = Path(cure.attribute), state.without([cure])
    now = windows.window_of(attribute)
    if cure.pid is None:
        change = Change(cure.device, cure.attribute, now, cure.before_kb, ())
        state.step(change, after, lambda: windows.set_device(attribute, cure.before_kb))
    else:
        change = Change(cure.device, cure.attribute, now, cure.before_kb, (cure,))
        with windows.held(cure.open_file) as handles:
            state.step(change, after, lambda: _give(attribute, cure.before_kb, handles, [cure.open_file]))
    return f"back to {cure.before_kb} KiB"


def _named(cure: Cure) -> str:
    return f"{cure.file} in process {cure.pid}"


def _has(attribute: Path, read_ahead_kb: int) -> bool:
    """Whether a device is there and has this window."""
    with suppress(NoCure):
        return windows.window_of(attribute) == read_ahead_kb
    return False


def _ticks() -> int:
    """Clock ticks since boot, in which the kernel tells when a process started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def _path() -> Path:
    return state_directory() / "state.json"


@contextmanager
def _changing() -> Iterator[_State]:
    """The state, while nobody else changes it; what a kill has left half done is put back."""
    directory = state_directory()
    with suppress(PermissionError):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK):
        raise _for_root()
    with locked(directory / "lock"):
        state = _State.load()
        state.recover()
        yield state


def _for_root() -> NotPermitted:
    return NotPermitted("Only root may change windows, and see what was changed.")


def _flush(directory: Path) -> None:
    """Have the names in a directory on its disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
