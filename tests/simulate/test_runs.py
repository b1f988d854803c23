# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foliolab.device import Device
from foliolab.model.clock import Clock, load_processor
from foliolab.model.library import Counts, Machine, Pattern, simulate
from foliolab.simulate import runs
from foliolab.simulate.runs import machines, run
from tests.simulate.small import DEVICES, FAST, SLOW, SMALL

STEPS = SMALL.cases[2]
pytestmark = pytest.mark.usefixtures("own_cache")


class Simulator:
    """Counts calls; is interrupted at a case."""

    def __init__(self, interrupted_at: Pattern | None = None) -> None:
        self.calls: list[tuple[Machine, Pattern]] = []
        self._interrupted_at = interrupted_at

    def __call__(
        self,
        machine: Machine,
        pattern: Pattern,
        count: int,
        passes: int,
        then: Sequence[Pattern],
        window: str,
        clock: Clock,
    ) -> Counts:
        self.calls.append((machine, pattern))
        if pattern == self._interrupted_at:
            raise KeyboardInterrupt
        return simulate(machine, pattern, count, passes, then, window, clock)


def test_what_variants_run_on() -> None:
    found = machines(SMALL, STEPS, 4, 128, SLOW)
    assert list(found) == [
        "off",
        "published",
        "random",
        "adaptive",
        "adaptive-told",
        "adaptive-default",
        "xnu",
        "freebsd",
        "zfetch",
        "competitive",
        "linux-7.3",
        "first-steps",
        *(f"fixed-{kb}" for kb in (4, 32, 128, 512)),
    ]
    assert found["off"] == Machine("off", 4096, 1024, 32, 32)
    assert found["published"] == Machine("published", 4096, 1024, 32, 32)
    assert found["adaptive"] == Machine("adaptive", 4096, 1024, 32, 219, first_request_pages=282)
    assert found["adaptive-told"] == Machine("adaptive", 4096, 1024, 32, 146)
    assert found["adaptive-default"] == Machine("adaptive", 4096, 1024, 32, 32)
    assert found["xnu"] == Machine("xnu", 4096, 1024, 32, 32)
    assert found["competitive"] == Machine("competitive", 4096, 1024, 32, 146)
    assert found["fixed-32"] == Machine("fixed", 4096, 1024, 8, 32)
    assert machines(SMALL, STEPS, 4, 128, FAST)["adaptive"] == found["adaptive-default"]


def test_no_fixed_window_is_larger_than_the_device_allows() -> None:
    found = machines(SMALL, STEPS, 4, 128, SLOW)
    assert found["fixed-512"] == found["fixed-128"]
    assert machines(SMALL, STEPS, 4, 512, SLOW)["fixed-512"].read_ahead_pages == 128


def test_runs_are_those_of_the_model() -> None:
    results = run(SMALL, SMALL.cases, DEVICES)
    for case, found in zip(SMALL.cases, results, strict=True):
        for variant, machine in machines(SMALL, case, 0.5, 512, SLOW).items():
            knows = {"adaptive", "adaptive-told", "zfetch", "competitive"}
            clock = Clock((SLOW,) if variant in knows else DEVICES)
            assert found[machine] == simulate(machine, case.pattern, case.count, case.passes, clock=clock)


def test_runs_are_shared_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator()
    monkeypatch.setattr(runs, "simulate", simulator)
    first = run(SMALL, SMALL.cases[:2], DEVICES)
    assert len(set(simulator.calls)) == len(simulator.calls) == sum(map(len, first))
    simulator.calls.clear()
    assert run(SMALL, SMALL.cases[:2], DEVICES) == first
    assert simulator.calls == []
    assert run(SMALL, SMALL.cases, DEVICES)[:2] == first
    assert {pattern for _, pattern in simulator.calls} == {SMALL.cases[2].pattern}


def test_another_library_or_another_count_is_another_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    simulator = Simulator()
    monkeypatch.setattr(runs, "simulate", simulator)
    case = SMALL.cases[0]

    def simulated(*cases: Any, devices: Sequence[Device] = DEVICES) -> bool:
        simulator.calls.clear()
        run(SMALL, cases, devices)
        return bool(simulator.calls)

    assert simulated(case)
    assert not simulated(replace(case, name="other", judged_only=True))
    assert simulated(replace(case, count=4000))
    assert simulated(replace(case, passes=2))
    assert simulated(replace(case, then=(Pattern("reverse"),)))
    assert simulated(case, devices=[SLOW])
    assert simulated(case, devices=[replace(SLOW, latency_us=4001)])
    busy = partial(Clock, processor=replace(load_processor(), mapped=7))
    with monkeypatch.context() as patch:
        patch.setattr(runs, "Clock", busy)
        assert simulated(case)
    monkeypatch.setattr(runs, "compiled", lambda *_: tmp_path / "model/other/model.so")
    assert simulated(case)


def test_an_interrupted_run_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator(interrupted_at=SMALL.cases[1].pattern)
    monkeypatch.setattr(runs, "simulate", simulator)
    with pytest.raises(KeyboardInterrupt):
        run(SMALL, SMALL.cases, DEVICES)
    simulator = Simulator()
    monkeypatch.setattr(runs, "simulate", simulator)
    run(SMALL, SMALL.cases, DEVICES)
    assert {pattern for _, pattern in simulator.calls} == {case.pattern for case in SMALL.cases[1:]}
