# SPDX-License-Identifier: GPL-2.0-only
"""What the events of two kernels tell of a program whose touches are known."""

import tracemalloc
from collections.abc import Iterator

import pytest

from foliohost.faults import FaultCounts
from foliohost.maps import Maps
from foliohost.touches import ADD, FAULT, KERNEL, MAP, USER, File, Touches
from tests.host.recorded import KERNELS, Recorded, recorded

FILE = (1, 2)


def of(record: Recorded, around: int = 16) -> Touches:
    maps = Maps()
    by_address = MAP not in record.layouts

    def locate(task: int, address: int, time: int) -> tuple[File, int] | None:
        found = maps.locate(task, address, time)
        return (found[0], found[1] // 4096) if found else None

    if by_address:
        for _, _, fields in record.events():
            maps.add(fields[0], record.maps, 0)
    touches = Touches(lambda file: file == record.file, 4096, around, locate if by_address else None)
    touches.take(record.events())
    return touches


def read(touches: Touches) -> list[int]:
    """The pages of all folios that faults have read."""
    folios = zip(touches.read_page_of, touches.read_order_of, strict=True)
    return [page for first, order in folios for page in range(first, first + (1 << order))]


def in_order(some: list[int], all_of_them: list[int]) -> bool:
    rest = iter(all_of_them)
    return all(page in rest for page in some)


@pytest.mark.parametrize(("kernel", "faults", "majors"), [("6.18", 14, 8), ("6.1", 16, 8)])
def test_each_fault_is_a_touch_of_its_page(kernel: str, faults: int, majors: int) -> None:
    record = recorded(kernel)
    touches = of(record)
    assert touches.start == record.events()[0][0]
    assert touches.files == {record.file: 0}
    assert len(touches.page_of) == faults
    assert in_order(list(touches.page_of), record.planned)
    assert list(touches.time_of) == sorted(touches.time_of)
    assert touches.majors == {0: majors}
    added = sum(name == ADD and fields[1:3] == record.file for _, name, fields in record.events())
    pages = read(touches)
    assert len(pages) == len(set(pages)) == added
    assert set(touches.page_of) <= set(pages)


def test_kernels_are_told_apart() -> None:
    assert [MAP in recorded(kernel).layouts for kernel in KERNELS] == [True, False]


def pages(*events: tuple[str, int, int]) -> list[int]:
    """Touched according to events of one task: for USER an address in pages, for others the first and last page."""
    touches = Touches(lambda file: True, 4096, 16)
    for time, (name, first, last) in enumerate(events):
        fields = {FAULT: (*FILE, first), MAP: (*FILE, first, last), ADD: (*FILE, first, last)}
        touches.take([(time, name, (9, *fields.get(name, (first * 4096 + last,))))])
    return list(touches.page_of)


def test_with_addresses() -> None:
    # What is mapped around is aligned by address, not by page.
    assert pages((USER, 0x1005, 7), (MAP, 103, 118)) == [108]
    # A fault that has to read is tried again. So may be its first attempt.
    assert pages((USER, 0x1005, 0), (MAP, 0, 15), (FAULT, 5, 0), (ADD, 5, 0), (FAULT, 5, 0), (MAP, 0, 15)) == [5]
    # The end of a mapping: what a known place tells of it.
    assert pages((USER, 0x1002, 0), (FAULT, 2, 0), (USER, 0x100F, 0), (MAP, 10, 15)) == [2, 15]
    # Two pages that one read brings in.
    assert pages((USER, 0x1002, 0), (MAP, 0, 15), (USER, 0x1003, 0), (MAP, 0, 15)) == [2, 3]
    # The kernel's own faults tell their addresses, too.
    assert pages((USER, 0x1002, 0), (MAP, 0, 15), (KERNEL, 0x1004, 0), (MAP, 0, 15)) == [2, 4]


def test_without_addresses_the_first_page_stands_for_all_that_are_mapped() -> None:
    assert pages((MAP, 0, 15), (FAULT, 5, 0), (ADD, 4, 1), (MAP, 0, 15), (MAP, 0, 15), (MAP, 16, 31)) == [5, 0, 16]


def test_faults_of_single_pages() -> None:
    assert pages((FAULT, 5, 0), (ADD, 5, 0), (FAULT, 5, 0), (FAULT, 6, 0), (FAULT, 5, 0)) == [5, 6, 5]


def test_requests_are_runs_of_one_task() -> None:
    touches = Touches(lambda file: True, 4096, 16)
    touches.take((0, FAULT, (task, *FILE, 900 + task)) for task in (1, 2))
    adds = [(1, 0, 2), (1, 4, 0), (2, 5, 0), (1, 5, 0), (1, 7, 0)]
    touches.take((0, ADD, (task, *FILE, first, order)) for task, first, order in adds)
    assert read(touches) == [0, 1, 2, 3, 4, 5, 5, 7]
    assert (touches.requests, touches.majors) == ({0: 3}, {})
    # Files that nobody wants are not there.
    nothing = Touches(lambda file: False, 4096, 16)
    nothing.take([(0, ADD, (1, *FILE, 0, 0)), (1, FAULT, (1, *FILE, 0)), (2, MAP, (1, *FILE, 0, 9))])
    assert (nothing.files, len(nothing.page_of), len(nothing.read_page_of)) == ({}, 0, 0)


def read_pages(*events: tuple[str, tuple[int, ...]]) -> list[int]:
    """Pages that were read according to events of one task."""
    touches = Touches(lambda file: True, 4096, 16)
    for time, (name, fields) in enumerate(events):
        touches.take([(time, name, (9, *fields))])
    return read(touches)


def test_large_folios_take_no_more_memory_than_their_events() -> None:
    folios = 10_000

    def events() -> Iterator[tuple[int, str, tuple[int, ...]]]:
        yield 0, FAULT, (1, *FILE, 0)
        for number in range(folios):
            yield number, ADD, (1, *FILE, number << 9, 9)

    touches = Touches(lambda file: True, 4096, 16)
    tracemalloc.start()
    try:
        touches.take(events())
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(touches.read_pages.values()) == len(read(touches)) == folios << 9
    assert taken < folios * 40
    # What is made of them in the end has an entry for each page, so there is a bound.
    bounded = Touches(lambda file: True, 4096, 16, most_read_pages=1000)
    bounded.take(events())
    assert (bounded.full, len(read(bounded)), touches.full) == (True, 1024, False)


def test_what_read_and_write_bring_into_the_cache_is_not_read_by_faults() -> None:
    add, fault, mapped = (ADD, (*FILE, 5, 0)), (FAULT, (*FILE, 5)), (MAP, (*FILE, 0, 15))
    other = (ADD, (*FILE, 70, 0))
    assert read_pages(add, other) == []
    assert read_pages(fault, add, other) == [5, 70]
    # The fault is over when it has been tried again, in either way.
    assert read_pages(fault, add, fault, other) == [5]
    assert read_pages(fault, add, mapped, other) == [5]
    # Another fault has begun.
    assert read_pages(fault, add, (USER, (4096,)), other) == [5]
    # Of another file.
    assert read_pages(fault, add, (ADD, (1, 3, 70, 0))) == [5]


def test_counts_of_faults_are_the_same_where_no_pages_are_kept() -> None:
    record = recorded("6.18")
    kept, counts = of(record), FaultCounts()
    counts.take([event for event in record.events() if event[1] in (ADD, FAULT, MAP)])
    number = kept.files[record.file]
    assert counts.read_pages[record.file] == kept.read_pages[number] == len(read(kept)) > 0
    assert counts.major_faults[record.file] == kept.majors[number] > 0
