# SPDX-License-Identifier: GPL-2.0-only
"""Windows are really set, and what a fault reads is counted."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.devices import HostDevice, device_of
from foliohost.errors import NoCure, UsageError
from foliohost.taken import held
from foliohost.windows import (
    MOST_KB,
    Descriptors,
    give_window,
    open_anywhere,
    open_in,
    require_heeded,
    require_window,
    set_device,
    window_of,
)
from tests.host.conftest import Toucher
from tests.host.windows import PAGE_KB, read_kb


@pytest.fixture
def device(private_disk: Path) -> HostDevice:
    found = device_of(private_disk / "file")
    set_device(found.attribute, 1024)
    return found


def give(program: Toucher, path: Path, window: int) -> int:
    with held(open_in(program.pid, path)) as handles:
        return give_window(device_of(path).attribute, window, handles)


def test_each_open_file_can_have_its_own(device: HostDevice, private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    program, other = start(path), start(path)
    assert {each.pid for each in open_anywhere(path)} == {program.pid, other.pid}
    assert read_kb(program, path) == 1024
    for window in (0, 16 * PAGE_KB, 4 * PAGE_KB):
        assert give(program, path, window) > 0
        assert read_kb(program, path) == max(PAGE_KB, window)
        assert device.read_ahead_kb == 1024
    assert read_kb(other, path) == 1024
    assert give(program, path, 1024) == 0  # the device has it
    assert read_kb(program, path) == 1024


def test_what_cannot_have_one(device: HostDevice, private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    program = start(path)
    file = open_in(program.pid, path)
    with pytest.raises(NoCure, match="is another one by now"), held(replace(file, started=file.started - 1)):
        pass
    program.tell("close")
    with pytest.raises(NoCure, match="has no descriptor of this file"), held(file):
        pass
    hinted = open_in(start(path, "hint").pid, path)
    with pytest.raises(NoCure, match="hint for random access"):
        require_heeded([hinted])
    require_heeded([hinted, open_in(start(path).pid, path)])
    require_heeded([replace(file, pid=4194305), hinted])  # it has ended meanwhile


def test_a_descriptor_that_is_closed_meanwhile_keeps_no_other(
    device: HostDevice, private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = private_disk / "file"
    program = start(path)
    told = Descriptors()
    numbers = told.of(open_in(program.pid, path))
    assert numbers
    numbers.insert(0, 4095)
    with held(open_in(program.pid, path), told) as handles:
        assert len(handles) == len(numbers) - 1


def test_a_signal_in_the_moment_waits(
    device: HostDevice, private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = start(private_disk / "file")
    seen = []

    def interrupted(*words: int) -> None:
        signal.raise_signal(signal.SIGINT)  # for this thread alone: those of a worker that runs tests block nothing
        seen.append(device.read_ahead_kb)

    monkeypatch.setattr(os, "posix_fadvise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        give(program, private_disk / "file", 64)
    assert seen[:1] == [64]
    assert device.read_ahead_kb == 1024


def test_an_error_in_the_moment_leaves_nothing(device: HostDevice) -> None:
    with pytest.raises(NoCure, match="cannot be written: Bad file descriptor"):
        give_window(device.attribute, 64, [-1])
    assert device.read_ahead_kb == 1024


@pytest.mark.parametrize("window", [-4, PAGE_KB + 1, MOST_KB + PAGE_KB])
def test_senseless_windows(window: int) -> None:
    with pytest.raises(UsageError, match=f"a multiple of {PAGE_KB} from 0 to {MOST_KB}, not {window}"):
        require_window(window)


def test_a_device_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NoCure, match="cannot be written"):
        set_device(tmp_path / "no/such", 128)
    with pytest.raises(NoCure, match="cannot be read"):
        window_of(tmp_path / "no/such")
