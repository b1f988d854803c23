# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of a disk that takes time, in figures that can be counted by hand."""

import ctypes
from collections.abc import Callable

import pytest

from foliolab import process
from foliolab.device import Device
from foliolab.errors import BuildError
from foliolab.files import DEVICE
from foliolab.model.clock import profile_struct

SOURCE = f"""
#include <stdlib.h>
#include "{DEVICE / "device_time.h"}"

struct device_state *new_state(void) {{ return calloc(1, sizeof(struct device_state)); }}

uint64_t request(const struct device_profile *profile, struct device_state *state, uint64_t now, uint64_t place,
                 uint64_t bytes)
{{
    return device_request(profile, state, now, place, bytes);
}}
"""
MEGABYTE = 10**6

Disk = Callable[[int, int, int], int]
"""When a request is done that comes at a time, at a place and of a size, in nanoseconds and bytes."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    directory = tmp_path_factory.mktemp("device")
    (directory / "device.c").write_text(SOURCE)
    flags = ["-Wall", "-Wextra", "-Werror", "-std=gnu11", "-fPIC", "-shared", "-fsanitize=undefined"]
    flags.append("-fno-sanitize-recover=all")
    process.run(["cc", *flags, "-o", str(directory / "device.so"), str(directory / "device.c")], BuildError)
    library = ctypes.CDLL(str(directory / "device.so"))
    library.new_state.restype = ctypes.c_void_p
    library.request.restype = ctypes.c_uint64
    library.request.argtypes = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint64] * 3)
    return library


@pytest.fixture
def disk(library: ctypes.CDLL) -> Callable[..., Disk]:
    def make(latency_us: int = 100, speed: int = 1, rate: int = 0, depth: int = 64) -> Disk:
        """Of one byte in a microsecond, unless it is faster."""
        profile, state = profile_struct(Device("d", latency_us, speed, rate, depth)), library.new_state()
        return lambda now, place, size: library.request(ctypes.byref(profile), state, now * 1000, place, size) // 1000

    return make


def test_a_request_takes_the_latency_and_then_its_data_pass(disk: Callable[..., Disk]) -> None:
    request = disk()
    assert request(0, 0, 50) == 100 + 50
    assert request(1000, 7777, 20) == 1000 + 100 + 20


def test_latencies_overlap_and_data_pass_one_after_the_other(disk: Callable[..., Disk]) -> None:
    request = disk()
    assert [request(0, place, 50) for place in (0, 500, 900)] == [150, 200, 250]
    # By then all have passed, and its own latency counts again.
    assert request(160, 0, 50) == 310


def test_no_more_requests_are_in_work_than_the_queue_is_deep(disk: Callable[..., Disk]) -> None:
    request = disk(depth=2)
    assert [request(0, 0, 10) for _ in range(5)] == [110, 120, 220, 230, 330]
    deepest = disk(depth=64)
    done = [deepest(0, 0, 1) for _ in range(65)]
    assert done[:64] == [100 + number for number in range(1, 65)]
    assert done[64] == 101 + 100 + 1


def test_requests_begin_as_often_as_the_rate_allows(disk: Callable[..., Disk]) -> None:
    request = disk(rate=1000, latency_us=100, speed=1000)
    assert [request(0, 0, 0) for _ in range(3)] == [100, 1100, 2100]
    # Nothing is saved up while none come.
    assert [request(50_000, 0, 0) for _ in range(2)] == [50_100, 51_100]


def test_a_head_goes_on_where_it_is_without_a_seek(disk: Callable[..., Disk]) -> None:
    request = disk(depth=1)
    assert request(0, 0, 50) == 50
    assert request(50, 50, 30) == 80
    assert request(1000, 80, 10) == 1010


def test_a_head_lets_a_short_gap_pass_and_seeks_over_a_long_one(disk: Callable[..., Disk]) -> None:
    request = disk(depth=1)
    assert request(0, 40, 10) == 40 + 10
    assert request(50, 150, 10) == 50 + 100 + 10
    assert request(160, 261, 10) == 160 + 100 + 10
    assert request(270, 100_000, 10) == 270 + 100 + 10


def test_a_head_seeks_backwards(disk: Callable[..., Disk]) -> None:
    request = disk(depth=1)
    request(0, 1000, 10)
    assert request(5000, 1009, 1) == 5000 + 100 + 1


def test_a_head_does_one_request_after_the_other(disk: Callable[..., Disk]) -> None:
    request = disk(depth=1)
    assert [request(0, place, 10) for place in (1000, 5000)] == [110, 220]


def test_much_data_takes_whole_seconds(disk: Callable[..., Disk]) -> None:
    fast = disk(latency_us=0, speed=3)
    assert fast(0, 0, 6 * MEGABYTE + 1) == 2 * 10**6
    assert disk(latency_us=0, speed=18_000)(0, 0, 1 << 50) == (1 << 50) // 18_000
