# SPDX-License-Identifier: GPL-2.0-only
"""Windows are really set, and what a fault reads is counted."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost import pages
from foliohost.devices import HostDevice, device_of
from foliohost.errors import NoCure, UsageError
from foliohost.processes import PAGE_BYTES, start_time
from foliohost.windows import MOST_KB, _for_a_moment, require_window, set_device, set_open_file
from tests.host.conftest import Toucher
from tests.processes import wait_until

PAGE_KB = PAGE_BYTES >> 10


@pytest.fixture
def device(private_disk: Path) -> HostDevice:
    found = device_of(private_disk / "file")
    set_device(found.attribute, 1024)
    return found


def read_by_one_fault(program: Toucher, path: Path) -> int:
    program.tell("page 1000")
    found = pages.cached(path)
    assert found is not None
    return found.bit_count()


def test_each_open_file_can_have_its_own(device: HostDevice, private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    program, other = start(path), start(path)
    status, started = path.stat(), start_time(program.pid)
    assert read_by_one_fault(program, path) == 1024 // PAGE_KB
    for window in (0, 16 * PAGE_KB, 4 * PAGE_KB):
        assert set_open_file(program.pid, started, status, device, window)
        assert read_by_one_fault(program, path) == max(1, window // PAGE_KB)
        assert device.read_ahead_kb == 1024
    assert read_by_one_fault(other, path) == 1024 // PAGE_KB
    with pytest.raises(NoCure, match="is another one by now"):
        set_open_file(program.pid, started - 1, status, device, 64)
    program.tell("close")
    with pytest.raises(NoCure, match="has no descriptor of this file"):
        set_open_file(program.pid, started, status, device, 64)
    hinted = start(path, "hint")
    with pytest.raises(NoCure, match="hint for random access"):
        set_open_file(hinted.pid, start_time(hinted.pid), status, device, 64)


def test_a_kill_in_the_moment_leaves_nothing(device: HostDevice) -> None:
    child = os.fork()
    if not child:
        with _for_a_moment(device.attribute, 64):
            os.kill(os.getpid(), signal.SIGKILL if device.read_ahead_kb == 64 else signal.SIGABRT)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert wait_until(lambda: device.read_ahead_kb == 1024)


def test_an_exception_in_the_moment_leaves_nothing(device: HostDevice) -> None:
    with pytest.raises(KeyboardInterrupt), _for_a_moment(device.attribute, 64):
        assert device.read_ahead_kb == 64
        raise KeyboardInterrupt
    assert device.read_ahead_kb == 1024


@pytest.mark.parametrize("window", [-4, PAGE_KB + 1, MOST_KB + PAGE_KB])
def test_senseless_windows(window: int) -> None:
    with pytest.raises(UsageError, match=f"a multiple of {PAGE_KB} from 0 to {MOST_KB}, not {window}"):
        require_window(window)


def test_a_device_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NoCure, match="cannot be written"):
        set_device(tmp_path / "no/such", 128)
