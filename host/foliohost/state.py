# SPDX-License-Identifier: GPL-2.0-only
"""The file that lists what was set on this machine, until it is put back.

Each change is one step: before it begins, the file names what has to be put back if it does not end (``WindowChange``).
Whoever takes the lock next does that first: a keeper that waits for it, or the next command. So what the file
lists is what holds, wherever a kill hits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from foliohost import taken, windows
from foliohost.errors import FolioError, NoCure, NotPermitted, UsageError
from foliohost.files import locked, state_directory, write_atomic
from foliohost.keeper import start_keeper
from foliohost.windows import Closed, Descriptors, OpenFile

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Cure:
    """A window that was set: of a device, or with ``pid`` of a file that this process has open."""

    file: str
    device: str
    attribute: str
    read_ahead_kb: int
    before_kb: int
    """The device's window before, of a file as well, because its own cannot be read."""
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
    given: int = 0
    """When the file got this window last, in clock ticks since boot."""
    descriptors: tuple[int, ...] = ()
    """The numbers under which the process had it open then."""
    sequence: int | None = None
    """Of the device, as ``HostDevice`` has it; files of older versions have none."""

    @property
    def key(self) -> tuple[object, ...]:
        """Two cures with the same key replace each other."""
        return (self.attribute,) if self.pid is None else self.open_file.key

    @property
    def open_file(self) -> OpenFile:
        assert self.pid is not None and self.started is not None
        return OpenFile(self.file, self.pid, self.started, self.number, self.inode)


@dataclass(frozen=True)
class WindowChange:
    """A change that has begun."""

    device: str
    attribute: str
    device_kb: int
    """The device's window, which it gets back."""
    meanwhile_kb: int
    """The one that it may have; with any other, somebody else has set it."""
    files: tuple[Cure, ...]
    """Open files that may have another window, and have to have that of these."""


class State:
    """What the file says, whose lock is held."""

    def __init__(self, cures: Iterable[Cure] = (), change: WindowChange | None = None):
        self.cures = list(cures)
        self._change = change

    @classmethod
    def load(cls) -> State:
        """NoCure if it is damaged."""
        path = _path()
        try:
            content = json.loads(path.read_text())
            boot, cures, change = content["boot"], content["cures"], content["change"]
            if change:
                change = WindowChange(**{**change, "files": tuple(map(_cure, change["files"]))})
            # After a boot all windows are as the kernel gives them.
            return cls(map(_cure, cures), change) if boot == boot_id() else cls()
        except FileNotFoundError:
            return cls()
        except PermissionError as error:
            raise _for_root() from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise NoCure(f"{path} is damaged; put windows back by hand and remove it.") from error

    def _save(self, cures: list[Cure], change: WindowChange | None) -> None:
        content = {
            "boot": boot_id(),
            "cures": [asdict(cure) for cure in cures],
            "change": asdict(change) if change else None,
        }
        write_atomic(_path(), json.dumps(content, indent=1) + "\n")
        _flush(_path().parent)
        self.cures, self._change = cures, change

    def step(self, change: WindowChange, after: list[Cure], act: Callable[[], _Result]) -> _Result:
        """Change windows; ``after`` is what is set then. However it fails, all is put back.

        FolioError while a change before it cannot be put back.
        """
        self.recover([])
        windows.require_settable(Path(change.attribute))
        self._save(self.cures, change)
        try:
            self.have_keeper()
            result = act()
            self._save(after, None)
        except BaseException:
            self.recover([])
            raise
        return result

    def have_keeper(self) -> None:
        """Have one before descriptors of others are held: to start it may take seconds."""
        start_keeper(state_directory())

    def recover(self, words: list[str]) -> None:
        """Put back what a change has left that did not end; adds a sentence for each window.

        FolioError if some cannot be, which alone are remembered then.
        """
        change = self._change
        if not change:
            return
        attribute = Path(change.attribute)
        if not attribute.exists():  # with its files
            self._save(self.cures, None)
            return
        if windows.window_of(attribute) == change.meanwhile_kb != change.device_kb:
            windows.set_device(attribute, change.device_kb)
            words.append(
                f"{change.device} has {change.device_kb} KiB again. What others opened while it had"
                f" {change.meanwhile_kb} KiB keeps that until it is closed."
            )
        told = Descriptors()
        faults: list[FolioError] = []
        left = change.files
        for wanted in dict.fromkeys(cure.read_ahead_kb for cure in change.files):
            files = (cure.open_file for cure in change.files if cure.read_ahead_kb == wanted)
            with taken.all_held(files, told) as (handles, reached, unreached):
                faults += [fault for fault in unreached if not isinstance(fault, (Closed, UsageError))]
                if reached:
                    now = windows.window_of(attribute)
                    self._save(self.cures, replace(change, device_kb=now, meanwhile_kb=wanted, files=left))
                    windows.give_window(attribute, wanted, handles)
                    words += [f"{named(file)} has {wanted} KiB again." for file in reached]
                    left = tuple(cure for cure in left if cure.open_file not in reached)
        if faults:
            now = windows.window_of(attribute)  # the device's own: whoever sets another one later may keep it
            self._save(self.cures, replace(change, device_kb=now, meanwhile_kb=now, files=left))
            raise faults[0]
        self._save(self.cures, None)

    def forget(self, cures: Iterable[Cure]) -> None:
        self._save(self.without(cures), self._change)

    def by_key(self) -> dict[tuple[object, ...], Cure]:
        return {cure.key: cure for cure in self.cures}

    def without(self, cures: Iterable[Cure]) -> list[Cure]:
        keys = {cure.key for cure in cures}
        return [cure for cure in self.cures if cure.key not in keys]


def _cure(entry: dict[str, Any]) -> Cure:
    return Cure(**{**entry, "descriptors": tuple(entry.get("descriptors", ()))})


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def applied() -> list[Cure]:
    """All that is remembered; NoCure if that is damaged, NotPermitted if it is root's alone."""
    return State.load().cures


def restore(words: list[str]) -> None:
    """Put back what a command left that was killed, and never wait; adds a sentence for each window.

    FolioError if others cannot be put back.
    """
    if not os.access(_path(), os.W_OK):  # nothing was ever set, or it is root's
        return
    with suppress(_InUse), locked(_path().with_name("lock"), on_wait=_leave):
        State.load().recover(words)


class _InUse(Exception):
    """Whoever has the lock has put back what was left before, and has a keeper."""


def _leave() -> None:
    raise _InUse


def _path() -> Path:
    return state_directory() / "state.json"


@contextmanager
def changing() -> Iterator[State]:
    """The state, while nobody else changes it; what a kill has left half done is put back."""
    directory = state_directory()
    with ExitStack() as block:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            block.enter_context(locked(directory / "lock"))
        except PermissionError as error:
            raise _for_root() from error
        state = State.load()
        state.recover([])
        yield state


def named(file: OpenFile) -> str:
    return f"{file.path} in process {file.pid}"


def _for_root() -> NotPermitted:
    return NotPermitted("Only root may change windows, and see what was changed.")


def _flush(directory: Path) -> None:
    """Have the names in a directory on its disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
