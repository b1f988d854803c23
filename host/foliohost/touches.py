# SPDX-License-Identifier: GPL-2.0-only
"""Which pages of files were touched and read, of the kernel's events about faults and the page cache."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

File = tuple[int, int]
"""The kernel's number of its device (not that of ``os.stat``), and its inode. Subvolumes of btrfs may share both."""

ADD = "filemap/mm_filemap_add_to_page_cache"
FAULT = "filemap/mm_filemap_fault"
MAP = "filemap/mm_filemap_map_pages"
USER = "exceptions/page_fault_user"
KERNEL = "exceptions/page_fault_kernel"
FIELDS = {
    ADD: ("common_pid", "s_dev", "i_ino", "index", "order"),
    FAULT: ("common_pid", "s_dev", "i_ino", "index"),
    MAP: ("common_pid", "s_dev", "i_ino", "index", "last_index"),
    USER: ("common_pid", "address"),
    KERNEL: ("common_pid", "address"),
}
"""Of each event, what ``Touches`` takes; by tracefs' name of it."""


def device_name(device: int) -> str:
    """Major and minor number, as in sysfs."""
    return f"{device >> 20}:{device & (1 << 20) - 1}"


def device_number(name: str) -> int:
    """The reverse of ``device_name``."""
    major, minor = map(int, name.split(":"))
    return major << 20 | minor


class _Fault:
    """The latest fault of a task, as far as it is known."""

    def __init__(self, place: int | None = None) -> None:
        self.place = place
        """Address in pages; None if only the events of the file tell of it."""
        self.touch: int | None = None
        """Its number."""
        self.file = -1
        self.around = range(0)
        """Pages that it has found; it may still turn out that its own is not among them."""
        self.read: int | None = None
        """The page that it has not found, until it is tried again."""
        self.reads = False
        """Whether what the task brings into the cache of that file now is for this fault."""


class Touches:
    """What the events tell, each to be given to ``take`` in order.

    Where faults map neighbours along, the address of the fault tells which page was meant. Without that, it is the
    first of them. Kernels before 6.11 tell addresses only; ``locate`` finds file and page of what a task had at an
    address at a time. Once faults have read ``most_read_pages``, nothing more is taken.
    """

    def __init__(
        self,
        wanted: Callable[[File], bool],
        page_size: int,
        around: int,
        locate: Callable[[int, int, int], tuple[File, int] | None] | None = None,
        most_read_pages: float = math.inf,
    ) -> None:
        self.files: dict[File, int] = {}
        """Those that are wanted, with their numbers."""
        self.file_of, self.page_of, self.time_of = array("I"), array("I"), array("Q")
        """Of each touch; times are in nanoseconds."""
        self.read_file_of, self.read_page_of, self.read_order_of = array("I"), array("I"), array("B")
        """Of each folio that a fault has read: its first page, and its order."""
        self.read_time_of = array("Q")
        self.start: int | None = None
        """The time of the first event."""
        self.read_pages: Counter[int] = Counter()
        """By file: pages that faults have read."""
        self.requests: Counter[int] = Counter()
        """By file: adjacent pages that faults of one task read in a row."""
        self.majors: Counter[int] = Counter()
        """By file: faults that read their own page."""
        self.full = False
        """Whether so many pages were read that no more events are taken."""
        self._left = most_read_pages
        self._wanted, self._page_size, self._around, self._locate = wanted, page_size, around, locate
        self._numbers: dict[File, int | None] = {}
        self._faults: dict[int, _Fault] = {}
        self._shifts: dict[tuple[int, int], int] = {}
        self._ends: dict[int, tuple[int, int]] = {}
        self._take: Mapping[str, Callable[..., None]] = {
            ADD: self._add,
            FAULT: self._fault,
            MAP: self._map,
            USER: self._user,
            KERNEL: self._user,
        }

    def take(self, events: Iterable[tuple[int, str, tuple[int, ...]]]) -> None:
        """Take time in nanoseconds, name and FIELDS of each event, until it is ``full``."""
        for time, name, fields in events:
            if self.full:
                return
            if self.start is None:
                self.start = time
            self._take[name](time, *fields)

    def _number(self, file: File) -> int | None:
        if file not in self._numbers:
            self._numbers[file] = self.files.setdefault(file, len(self.files)) if self._wanted(file) else None
        return self._numbers[file]

    def _touch(self, time: int, fault: _Fault, file: int, page: int) -> None:
        fault.touch, fault.file = len(self.page_of), file
        self.file_of.append(file)
        self.page_of.append(page)
        self.time_of.append(time)

    def _user(self, time: int, task: int, address: int) -> None:
        fault = self._faults[task] = _Fault(address // self._page_size)
        found = self._locate(task, address, time) if self._locate else None
        if found and (number := self._number(found[0])) is not None:
            self._touch(time, fault, number, found[1])
            fault.read, fault.reads = found[1], True

    def _map(self, time: int, task: int, device: int, inode: int, first: int, last: int) -> None:
        if (number := self._number((device, inode))) is None:
            return
        fault = self._faults.setdefault(task, _Fault())
        if fault.file == number and fault.read is not None and first <= fault.read <= last:
            fault.read, fault.reads = None, False  # it was read, and the fault has been tried again
            return
        if fault.touch is not None:
            fault = self._faults[task] = _Fault()
        fault.around = range(first, last + 1)
        self._touch(time, fault, number, self._meant(task, number, fault))

    def _fault(self, time: int, task: int, device: int, inode: int, page: int) -> None:
        if (number := self._number((device, inode))) is None:
            return
        fault = self._faults.setdefault(task, _Fault())
        if fault.place is not None:
            self._shifts[task, number] = fault.place - page
        again = fault.file == number and fault.read == page
        if fault.file == number and fault.touch is not None and page in fault.around:
            self.page_of[fault.touch] = page
        elif not again:
            if fault.touch is not None:
                fault = self._faults[task] = _Fault()
            self._touch(time, fault, number, page)
        fault.around, fault.read, fault.reads = range(0), page, not again

    def _meant(self, task: int, file: int, fault: _Fault) -> int:
        """Which page a fault was about that has mapped those around it."""
        around, place = fault.around, fault.place
        if place is None:
            return around.start
        # They are aligned by address, but for the ends of a mapping.
        page = around.start + place % self._around
        if len(around) < self._around:
            page = place - self._shifts.get((task, file), place - page)
        return page if page in around else around[-1]

    def _add(self, time: int, task: int, device: int, inode: int, first: int, order: int) -> None:
        fault = self._faults.get(task)
        if (number := self._number((device, inode))) is None or not fault or not fault.reads or fault.file != number:
            return  # of a file that nobody wants, or by read() or write()
        count = 1 << order
        if self._ends.get(task) != (number, first):
            self.requests[number] += 1
        self._ends[task] = number, first + count
        if fault.read is not None and first <= fault.read < first + count:
            self.majors[number] += 1
        self.read_pages[number] += count
        self.read_file_of.append(number)
        self.read_page_of.append(first)
        self.read_order_of.append(order)
        self.read_time_of.append(time)
        self._left -= count
        self.full = self._left <= 0
