# SPDX-License-Identifier: GPL-2.0-only
"""Traces where patterns are."""

from array import array
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.trace import Trace, TraceFile, write_trace
from foliolab.errors import BadTrace, UsageError
from foliolab.model.clock import Clock
from foliolab.model.library import Counts, Machine
from foliolab.simulate import runs
from foliolab.simulate.rows import make_rows
from foliolab.simulate.runs import run
from foliolab.simulate.suite import PATTERNS, TRACES, TraceCase, trace_cases
from foliolab.trace.replay import simulate_trace
from tests.simulate.small import DEVICES, SMALL

pytestmark = pytest.mark.usefixtures("own_cache")


def stepping(pages: int = 4096, step: int = 48, judged_only: bool = False) -> Trace:
    """What the pattern of that stride touches in two passes."""
    touched = array("I", [*range(0, 80 * step, step)] * 2)
    files = (TraceFile("a", pages), TraceFile("b", 0))
    other = {"judged_only": True} if judged_only else {}
    return Trace(files, array("I", [0] * len(touched)), touched, 16, other=other)


def test_a_trace_costs_what_the_pattern_costs_that_it_is_of() -> None:
    steps = next(case for case in SMALL.cases if case.name == "steps")
    patterns = make_rows(SMALL, [steps], DEVICES)
    traces = make_rows(SMALL, [TraceCase("trace:steps", stepping())], DEVICES)
    assert {row.group for row in traces} == {TRACES}
    assert {row.group for row in patterns} == {PATTERNS}
    assert patterns == [replace(row, pattern="steps") for row in traces]


def test_judged_only_is_what_the_header_says() -> None:
    for judged in (True, False):
        rows = make_rows(SMALL, [TraceCase("trace:t", stepping(judged_only=judged))], DEVICES)
        assert {row.judged_only for row in rows} == {judged}


def test_memories_that_hold_no_two_windows_are_left_out() -> None:
    assert SMALL.places(TraceCase("trace:t", stepping(4096))) == [(0.5, 128), (0.5, 512), (4, 128), (4, 512)]
    assert SMALL.places(TraceCase("trace:t", stepping(1023))) == [(0.5, 128), (0.5, 512), (4, 128)]
    assert SMALL.places(TraceCase("trace:t", stepping(255))) == [(0.5, 128)]
    assert SMALL.places(TraceCase("trace:t", stepping(63))) == []


def test_runs_are_kept_for_what_was_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def simulate(machine: Machine, trace: Trace, window: str, clock: Clock) -> Counts:
        called.append(trace)
        return simulate_trace(machine, trace, window, clock)

    monkeypatch.setattr(runs, "simulate_trace", simulate)
    first = run(SMALL, [TraceCase("trace:t", stepping())], DEVICES)
    assert called
    called.clear()
    again = stepping(judged_only=True)
    assert run(SMALL, [TraceCase("trace:renamed", again)], DEVICES) == first
    assert not called
    for other in (stepping(4097), stepping(step=47), replace(again, files=(TraceFile("a", 4095), TraceFile("b", 1)))):
        called.clear()
        run(SMALL, [TraceCase("trace:t", other)], DEVICES)
        assert called


def test_cases_are_named_for_their_files(tmp_path: Path) -> None:
    for name in ("lmdb.trace", "own"):
        write_trace(tmp_path / name, stepping())
    cases = trace_cases([tmp_path / "lmdb.trace", tmp_path / "own"])
    assert [case.name for case in cases] == ["trace:lmdb", "trace:own"]
    assert cases[0].file_pages == 4096
    with pytest.raises(UsageError, match="two traces with the name 'lmdb'"):
        trace_cases([tmp_path / "lmdb.trace", tmp_path / "lmdb.trace"])
    with pytest.raises(BadTrace, match="none cannot be read"):
        trace_cases([tmp_path / "none"])
