# SPDX-License-Identifier: GPL-2.0-only
"""Virtual time: what a program waits for, and what goes on meanwhile."""

import ctypes
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab.device import Device, load_devices
from foliolab.errors import BadExperiment
from foliolab.files import MODEL
from foliolab.model.clock import ACCESSES, Clock, Processor, ProcessorStruct, ProfileStruct, load_processor
from foliolab.model.library import PAGE_BYTES, Counts, Machine, MachineStruct, Pattern, load, replay, simulate
from tests.model.test_library import compile_checks, layout, members

IDLE = Processor(0, 0, 0, 0, 0)
SLOW = Device("slow", latency_us=1000, megabytes_per_second=100, requests_per_second=0, queue_depth=32)
HEAD = Device("head", latency_us=8000, megabytes_per_second=150, requests_per_second=0, queue_depth=1)
RATED = Device("rated", latency_us=100, megabytes_per_second=1000, requests_per_second=500, queue_depth=64)
PAGE = PAGE_BYTES / 100e6
"""Seconds in which a page passes on SLOW."""


def machine(rules: str = "fixed", pages: int = 4096, window: int = 1) -> Machine:
    return Machine(rules, pages, max(pages, 2 * window), window)


def timed(counts: Counts, device: Device = SLOW) -> float:
    return counts.seconds[device.name]


def test_structs_are_those_of_c(tmp_path: Path) -> None:
    structures = ((ProfileStruct, "device_profile"), (ProcessorStruct, "model_processor"))
    lines = [line for struct, name in structures for line in layout(struct, name)]
    compile_checks(
        [f'#include "{MODEL / "clock.h"}"', *lines, *members("model_access", "MODEL_", ACCESSES), "int main(void) {}"],
        tmp_path / "checks",
    )


def test_mistakes_in_the_file_of_the_processor_are_named(tmp_path: Path) -> None:
    text = (MODEL / "processor.toml").read_text()
    file = tmp_path / "processor.toml"
    for old, new, words in (
        ("page = ", "pages = ", "'pages' is not a key that is known here."),
        ("mapped = 0", "mapped = -1", "'mapped' is wrong: expected `int` >= 0."),
    ):
        assert old in text
        file.write_text(text.replace(old, new))
        with pytest.raises(BadExperiment, match=re.escape(f"{file}: {words}")):
            load_processor(file)


def test_random_accesses_wait_for_the_latency_of_each() -> None:
    counts = simulate(machine(), Pattern("random"), 500, clock=Clock((SLOW,), IDLE))
    assert counts.requests == counts.major_faults > 400
    assert timed(counts) == pytest.approx(counts.requests * (1e-3 + PAGE))


def test_what_is_read_ahead_is_not_waited_for_until_it_is_accessed() -> None:
    """The first access reads 64 pages. Further reads begin at least 15 accesses before their first page is needed."""
    ahead = machine(pages=512, window=64)
    worked = Processor(mapped=300_000, minor_fault=0, major_fault=0, page=0, request=0)
    counts = simulate(ahead, Pattern("sequential"), 512, clock=Clock((SLOW,), worked))
    assert counts.waits == 1
    works = (512 - counts.major_faults - counts.minor_faults) * 300e-6
    assert timed(counts) == pytest.approx(1e-3 + 64 * PAGE + works)
    # A program that does nothing with its pages waits until all have passed.
    idle = simulate(ahead, Pattern("sequential"), 512, clock=Clock((SLOW,), IDLE))
    assert 512 * PAGE < timed(idle) < counts.requests * (1e-3 + 64 * PAGE)


def test_a_program_waits_only_for_the_request_of_at_most_a_megabyte_that_holds_its_page() -> None:
    wide = machine(pages=1024, window=1024)
    whole = [replay(wide, [page], clock=Clock((SLOW,), IDLE)) for page in (0, 255, 256, 500)]
    assert {counts.pages_read for counts in whole} == {1024}
    assert [timed(counts) for counts in whole] == pytest.approx([1e-3 + n * PAGE for n in (256, 256, 512, 512)])


def test_the_processor_works_for_accesses_pages_and_requests() -> None:
    works = Processor(mapped=1, minor_fault=0, major_fault=300, page=4000, request=50_000)
    idle, busy = (simulate(machine(), Pattern("zipf"), 3000, clock=Clock((SLOW,), each)) for each in (IDLE, works))
    mapped = idle.accesses - idle.major_faults
    nanoseconds = mapped + 300 * idle.major_faults + 4000 * idle.pages_read + 50_000 * idle.requests
    assert mapped and idle.major_faults and not idle.minor_faults
    assert timed(busy) - timed(idle) == pytest.approx(nanoseconds / 1e9)


@pytest.mark.parametrize("pattern", [Pattern("random"), Pattern("streams", streams=16), Pattern("objects", object=24)])
def test_seconds_grow_with_the_latency(pattern: Pattern) -> None:
    devices = tuple(structs.replace(SLOW, name=str(us), latency_us=us) for us in (0, 10, 100, 1000, 10_000))
    for rules in ("off", "adaptive"):
        seconds = list(simulate(machine(rules, window=64), pattern, 4000, clock=Clock(devices)).seconds.values())
        assert seconds == sorted(seconds)
        assert seconds[0] < seconds[-1]


def test_several_devices_at_once_are_each_alone() -> None:
    devices = (*load_devices().values(), SLOW, HEAD, RATED)
    for rules in ("off", "adaptive", "zfetch"):
        arguments = Machine(rules, 4096, 2048, 256), Pattern("objects", object=24), 3000, 2
        plain = simulate(*arguments)
        together = simulate(*arguments, clock=Clock(devices))
        assert plain.seconds == {}
        assert replace(together, seconds={}) == plain
        alone = [simulate(*arguments, clock=Clock((device,))).seconds for device in devices]
        assert together.seconds == {name: value for each in alone for name, value in each.items()}


def test_files_lie_one_after_the_other_on_the_device() -> None:
    """So that a head reads on from the end of one to the beginning of the next."""
    two = machine(pages=64)
    on, back = (
        replay(two, [31, 0], array("I", files), [32, 32], clock=Clock((HEAD,), IDLE)) for files in ([0, 1], [1, 0])
    )
    page = PAGE_BYTES / 150e6
    assert timed(on, HEAD) == pytest.approx(min(31 * page, 8e-3) + 2 * page, abs=1e-8)
    assert timed(back, HEAD) == pytest.approx(min(63 * page, 8e-3) + page + 8e-3 + page, abs=1e-8)


@dataclass
class Plain:
    """The same rule without any bookkeeping: for each page, when it has arrived."""

    device: Device
    processor: Processor
    now: float = 0
    passed: float = 0

    def play(self, events: Sequence[tuple[int, int, int]]) -> float:
        arrived: dict[int, float] = {}
        costs = self.processor.mapped, self.processor.minor_fault, self.processor.major_fault
        for how, page, n in events:
            if n:
                for start in range(page, page + n, 256):
                    self._read(arrived, start, min(256, page + n - start))
            else:
                self.now = max(self.now, arrived[page]) + costs[how]
        return self.now / 1e9

    def _read(self, arrived: dict[int, float], start: int, n: int) -> None:
        self.now += self.processor.request + n * self.processor.page
        passing = n * PAGE_BYTES * 1000 // self.device.megabytes_per_second
        self.passed = max(self.now + self.device.latency_us * 1000, self.passed) + passing
        arrived.update(dict.fromkeys(range(start, start + n), self.passed))


def events_of(model: Machine, pages: Sequence[int]) -> list[tuple[int, int, int]]:
    """What an observer is told: how a page was accessed, or the first page of a read and how many."""
    found: list[tuple[int, int, int]] = []
    number = ctypes.c_uint32
    told = ctypes.CFUNCTYPE(None, ctypes.c_void_p, number, number, number)
    read = told(lambda _context, _file, start, n: found.append((0, start, n)))
    accessed = told(lambda _context, _file, page, how: found.append((how, page, 0)))

    class Observer(ctypes.Structure):
        _fields_ = (("context", ctypes.c_void_p), ("read", told), ("accessed", told))

    observer, library = Observer(None, read, accessed), load("")
    files, page_of = (number * 1)(model.file_pages), (number * len(pages))(*pages)
    struct = MachineStruct(4, 0, model.memory_pages, model.read_ahead_pages, model.request_pages)
    handle = library.model_new(ctypes.byref(struct), files, 1)
    library.model_observe(handle, ctypes.byref(observer))
    assert library.model_replay(handle, (number * len(pages))(), page_of, len(pages))
    library.model_free(handle)
    return found


@pytest.mark.parametrize("processor", [IDLE, load_processor(), Processor(50_000, 60_000, 70_000, 10, 500)])
@pytest.mark.parametrize("streams", [1, 200])
def test_the_clock_keeps_the_plain_rule(streams: int, processor: Processor) -> None:
    """With many streams, more reads are on their way than there is room for at first."""
    model = Machine("fixed", 102_400, 102_400, 256)
    pages = [stream * (102_400 // streams) + step for step in range(400) for stream in range(streams)]
    deep = structs.replace(SLOW, queue_depth=64, megabytes_per_second=10_000)
    counts = replay(model, pages, clock=Clock((deep,), processor))
    assert counts.minor_faults and counts.major_faults == streams
    plain = Plain(deep, processor).play(events_of(model, pages))
    assert timed(counts, deep) == pytest.approx(plain, rel=1e-9)
