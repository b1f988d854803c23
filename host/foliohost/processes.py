# SPDX-License-Identifier: GPL-2.0-only
"""What ``/proc`` tells of a process to its owner: counters, mapped files, descriptors."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from operator import add
from pathlib import Path

from foliohost.devices import number_of
from foliohost.errors import FolioError, NotPermitted, UsageError

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DELETED = " (deleted)"
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) (\S+) (\d+) *(.*)")


@dataclass(frozen=True)
class Counters:
    """What a process, and its children that it has waited for, have done so far."""

    read_bytes: int = 0
    """From disks, readahead of its own faults and calls included."""
    called_bytes: int = 0
    """What read() and its like returned, from the cache, pipes and sockets as well."""
    major_faults: int = 0
    minor_faults: int = 0
    """Of all memory, not of files alone."""
    calls: int = 0
    """Of read() and its like."""

    def __add__(self, other: Counters) -> Counters:
        return Counters(*map(add, astuple(self), astuple(other)))

    def since(self, before: Counters) -> Counters:
        """The difference, and never less than nothing: a process that ended takes its counters along."""
        return Counters(*(max(0, now - then) for now, then in zip(astuple(self), astuple(before))))


@dataclass(frozen=True)
class Mapping:
    """A piece of a file in the memory of a process."""

    start: int
    """Its address, in bytes; so is the end."""
    end: int
    offset: int
    """In the file, in bytes."""
    path: str
    """From the root of its mounts, or from ours if it has the same mounts."""
    device: str
    """MAJOR:MINOR of the file system, decimal."""
    inode: int
    text: bool
    """Executable."""

    @property
    def file(self) -> tuple[str, int]:
        """What tells files apart, but for those of btrfs' subvolumes."""
        return self.device, self.inode


@contextmanager
def asked_about(pid: int) -> Iterator[None]:
    """Turn what ``/proc`` answers about a process that is gone, or another user's, into a sentence."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError) as error:
        if isinstance(error, FileNotFoundError) and Path(f"/proc/{pid}/maps").exists():
            missing = Path(error.filename or "io").name
            raise FolioError(f"This kernel was built without /proc/PID/{missing}, which tells what is read.") from error
        raise UsageError(f"There is no process {pid}.") from error
    except PermissionError as error:
        if os.geteuid():
            raise NotPermitted(f"Only its owner and root can see what process {pid} does.") from error
        raise NotPermitted(f"Process {pid} cannot be looked into: root needs CAP_SYS_PTRACE here, too.") from error


def counters(pid: int) -> Counters:
    """UsageError if there is no such process, NotPermitted if it is another user's."""
    with asked_about(pid):
        io = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        minor, children_minor, major, children_major = map(int, stat_fields(pid)[7:11])
    major, minor = major + children_major, minor + children_minor
    return Counters(int(io["read_bytes"]), int(io["rchar"]), major, minor, int(io["syscr"]))


def start_time(pid: int) -> int:
    """When the process started, in clock ticks since boot: with its number, what tells processes apart."""
    with asked_about(pid):
        return int(stat_fields(pid)[19])


def require_running(pid: int) -> None:
    """UsageError if there is no such process, or it has ended and its parent has not taken note."""
    start_time(pid)
    if not runs(pid):
        raise UsageError(f"Process {pid} has ended.")


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended; until its parent takes note, it is there all the same."""
    try:
        return stat_fields(pid)[0] not in "ZX"
    except OSError:
        return False


def name(pid: int) -> str:
    with asked_about(pid):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")


def mappings(pid: int) -> list[Mapping]:
    """The mapped files of a process, those without a name on any disk left out."""
    with asked_about(pid):
        return parse_maps(Path(f"/proc/{pid}/maps").read_bytes().decode(errors="surrogateescape"))


def parse_maps(text: str, deleted: bool = False) -> list[Mapping]:
    """The mapped files that a text like that of ``/proc/PID/maps`` tells of.

    With ``deleted`` those as well that have no name any more, by their last one.
    """
    heads = filter(None, map(_MAPPING.fullmatch, text.split("\n")))
    return [
        _mapping(head)
        for head in heads
        if head[7].startswith("/") and int(head[6]) and (deleted or not head[7].endswith(_DELETED))
    ]


def _mapping(head: re.Match[str]) -> Mapping:
    major, minor = head[5].split(":")
    return Mapping(
        start=int(head[1], 16),
        end=int(head[2], 16),
        offset=int(head[4], 16),
        path=head[7].removesuffix(_DELETED).replace("\\012", "\n"),
        device=f"{int(major, 16)}:{int(minor, 16)}",
        inode=int(head[6]),
        text="x" in head[3],
    )


def seen_by(pid: int, mapping: Mapping) -> Path:
    """Where we find a file that a process maps, in a container or another root as well.

    A way that does not end with the process, if we see the file under the same name.
    """
    inside, named = Path(f"/proc/{pid}/root{mapping.path}"), Path(mapping.path)
    below, ours = _status(inside), _status(named)
    if below and ours and os.path.samestat(below, ours):
        return named
    return named if _likeness(ours, mapping) > _likeness(below, mapping) else inside


def _likeness(status: os.stat_result | None, mapping: Mapping) -> int:
    """2 if a file is the one that is mapped, 1 if it may be: btrfs and overlays have several device numbers. Else 0."""
    if not status or status.st_ino != mapping.inode:
        return 0
    return 2 if number_of(status) == mapping.device else 1


def _status(path: Path) -> os.stat_result | None:
    """None if nothing is there, or we may not know."""
    with suppress(OSError):
        return path.stat()
    return None


def all_processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def tasks_of(pids: Iterable[int]) -> list[int]:
    """The threads of those processes that are there."""
    return [int(path.name) for pid in pids for path in Path(f"/proc/{pid}/task").glob("[0-9]*")]


def descendants(ancestor: int) -> list[int]:
    """All processes below ``ancestor``, as far as parents are alive or it is their subreaper."""
    children: dict[int, list[int]] = {}
    for pid in all_processes():
        try:
            children.setdefault(int(stat_fields(pid)[1]), []).append(pid)
        except OSError:
            continue
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def mapped_by(file: os.stat_result) -> tuple[list[int], int]:
    """The processes that map a file, and how many do not tell us, being of other users."""
    found, closed, number = [], 0, f" {file.st_ino} "
    for pid in all_processes():
        try:
            text = Path(f"/proc/{pid}/maps").read_bytes().decode(errors="surrogateescape")
        except PermissionError:
            closed += 1
        except OSError:
            continue
        else:
            lines = (line for line in text.split("\n") if number in line)  # most files are not this one
            if any(same_file(pid, mapping, file) for line in lines for mapping in parse_maps(line)):
                found.append(pid)
    return found, closed


def same_file(pid: int, mapping: Mapping, file: os.stat_result) -> bool:
    """By number, and where a file system has several device numbers (btrfs), by what lies at the path."""
    if mapping.inode != file.st_ino:
        return False
    if mapping.device == number_of(file):
        return True
    found = _status(seen_by(pid, mapping))
    return found is not None and os.path.samestat(found, file)


def numbers_by_inode(pid: int) -> dict[int, list[int]]:
    """Descriptors of a process by inode, whatever file system that is of.

    No file system is asked, since Linux 5.14: a server that is gone would not answer.
    """
    found: dict[int, list[int]] = {}
    with asked_about(pid):
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 some have a hundred thousand, and this is faster
            try:
                path = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
            except OSError as error:
                path = "/" if error.errno == errno.ENAMETOOLONG else ""
            if path.startswith("/"):  # no socket; and what the kernel tells of an epoll takes long
                with suppress(OSError):
                    found.setdefault(_inode(pid, name), []).append(int(name))
    return found


def _inode(pid: int, number: str) -> int:
    handle = os.open(f"/proc/{pid}/fdinfo/{number}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        told = re.search(rb"^ino:\s*(\d+)$", os.read(handle, PAGE_BYTES), re.MULTILINE)
    finally:
        os.close(handle)
    return int(told[1]) if told else os.stat(f"/proc/{pid}/fd/{number}").st_ino  # noqa: PTH116 before Linux 5.14


def open_files(pid: int, inodes: Collection[int]) -> set[tuple[int, int]]:
    """Device and inode of what a process has open, of some inodes; nothing of one that does not tell us."""
    found = set()
    with suppress(FolioError, OSError):
        told = numbers_by_inode(pid)
        for number in (each for inode in inodes for each in told.get(inode, ())):
            with suppress(OSError):
                facts = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116
                found.add((facts.st_dev, facts.st_ino))
    return found


class Tally:
    """What several processes have done, also those of them that have ended since they were first asked about."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[Counters, int]] = {}
        """What each that was there had done, and its parent."""
        self._ended = Counters()
        """Of those that have ended, and that nobody who is there has waited for."""

    def of(self, pids: Iterable[int]) -> Counters:
        """With those that were asked about before."""
        there: dict[int, tuple[Counters, int]] = {}
        for pid in pids:
            with suppress(OSError, UsageError, NotPermitted):
                there[pid] = counters(pid), int(stat_fields(pid)[1])
        for pid, (done, parent) in self._last.items():
            # A parent that has waited for a child has what that did in its own counters, and so on upwards.
            while parent in self._last and parent not in there:
                parent = self._last[parent][1]
            if pid not in there and parent not in there:
                self._ended += done
        self._last = there
        return sum((done for done, _ in there.values()), self._ended)


def stat_fields(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` from the state on, which is the first; OSError if there is no such process."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
