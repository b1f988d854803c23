# SPDX-License-Identifier: GPL-2.0-only
"""What was set on this machine, remembered in a file until it is put back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from foliohost.devices import device_of
from foliohost.errors import FolioError, NoCure, UsageError
from foliohost.files import locked, state_directory, write_atomic
from foliohost.processes import descriptors, start_time
from foliohost.windows import require_window, set_device, set_open_file


@dataclass(frozen=True)
class Cure:
    """A window that was set: of a device, or with ``pid`` of a file that this process has open."""

    file: str
    device: str
    attribute: str
    read_ahead_kb: int
    before_kb: int
    """The device's window before."""
    boot: str
    """Which run of the machine it belongs to; the next one begins with windows of its own."""
    pid: int | None = None
    started: int | None = None
    """In clock ticks since boot."""

    @property
    def key(self) -> tuple[str, int | None, int | None]:
        """Two cures with the same key replace each other."""
        return (self.attribute if self.pid is None else self.file, self.pid, self.started)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def applied() -> list[Cure]:
    """All that is remembered; NoCure if that is damaged."""
    path = _path()
    try:
        return [Cure(**entry) for entry in json.loads(path.read_text())["cures"]]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NoCure(f"{path} is damaged; put windows back by hand and remove it.") from error


def apply_to_device(file: Path, read_ahead_kb: int) -> Cure:
    """Give the device that holds a file another window. What it had is remembered before."""
    require_window(read_ahead_kb)
    device = device_of(file)
    cure = Cure(
        str(file.absolute()), device.name, str(device.attribute), read_ahead_kb, device.read_ahead_kb, boot_id()
    )
    return _apply(cure, lambda: set_device(device.attribute, read_ahead_kb))


def apply_to_open_file(pid: int, file: Path, read_ahead_kb: int) -> Cure:
    """Give a file that a process has open another window."""
    require_window(read_ahead_kb)
    started = start_time(pid)
    device, status = device_of(file), file.stat()
    place = str(file.absolute())
    cure = Cure(place, device.name, str(device.attribute), read_ahead_kb, device.read_ahead_kb, boot_id(), pid, started)
    return _apply(cure, lambda: set_open_file(pid, started, status, device, read_ahead_kb))


def undo(wanted: Callable[[Cure], bool]) -> Iterator[tuple[Cure, str]]:
    """Put back what is wanted, the last first, and forget it; tells of each what became of it.

    FolioError, at the end, if some could not be put back.
    """
    faults: list[FolioError | OSError] = []
    with _state():
        for cure in reversed(applied()):
            if not wanted(cure):
                continue
            try:
                words = _put_back(cure)
            except (FolioError, OSError) as error:
                faults.append(error)
                continue
            _save([other for other in applied() if other.key != cure.key])
            yield cure, words
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise NoCure(" ".join(map(str, faults)))


def state_of(cure: Cure) -> str:
    """``holds``, or why it does not."""
    if cure.boot != boot_id():
        return "the machine was started anew"
    if cure.pid is None:
        try:
            there = int(Path(cure.attribute).read_text())
        except OSError:
            return "the device is gone"
        return "holds" if there == cure.read_ahead_kb else f"somebody has set {there} KiB"
    try:
        if start_time(cure.pid) != cure.started:
            return "the process has ended"
        return "holds" if descriptors(cure.pid, Path(cure.file).stat()) else "the file was closed"
    except UsageError:
        return "the process has ended"
    except OSError:
        return "the file is gone"


def _apply(cure: Cure, act: Callable[[], object]) -> Cure:
    with _state():
        before = applied()
        old = next((other for other in before if other.key == cure.key and other.boot == cure.boot), None)
        if old:
            cure = replace(cure, before_kb=old.before_kb)
        kept = [other for other in before if other.key != cure.key]
        _save([*kept, cure])
        try:
            act()
        except FolioError:
            _save(before)
            raise
    return cure


def _put_back(cure: Cure) -> str:
    state = state_of(cure)
    if state != "holds":
        return state
    if cure.pid is None:
        set_device(Path(cure.attribute), cure.before_kb)
        return f"back to {cure.before_kb} KiB"
    assert cure.started is not None
    file = Path(cure.file)
    device = device_of(file)
    set_open_file(cure.pid, cure.started, file.stat(), device, device.read_ahead_kb)
    return f"back to the device's {device.read_ahead_kb} KiB"


def _path() -> Path:
    return state_directory() / "cures.json"


def _state() -> AbstractContextManager[None]:
    return locked(state_directory() / "lock")


def _save(cures: list[Cure]) -> None:
    write_atomic(_path(), json.dumps({"cures": [asdict(cure) for cure in cures]}, indent=1) + "\n")
