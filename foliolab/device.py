# SPDX-License-Identifier: GPL-2.0-only
"""Disks that take time, as experiments/devices.toml has them and as a user gives them on the command line."""

import re
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, ValidationError, convert

from foliolab.errors import UsageError
from foliolab.files import EXPERIMENTS
from foliolab.toml import Place, read_toml

MOST_DEPTH = 64
"""Requests, as DEVICE_MOST_DEPTH in device/device_time.h."""

_Latency = Annotated[int, Meta(ge=0, le=10**8)]
_Speed = Annotated[int, Meta(ge=1, le=18_000)]
_Rate = Annotated[int, Meta(ge=0, le=10**9)]
_Depth = Annotated[int, Meta(ge=1, le=MOST_DEPTH)]


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """A disk by four numbers; ``device/device_time.h`` says what they mean for a request."""

    name: str
    """That of its table, or the four numbers with commas between them."""
    latency_us: _Latency
    """Of a request; with a depth of 1, of a seek."""
    megabytes_per_second: _Speed
    """In units of 10^6 bytes."""
    requests_per_second: _Rate
    """At most; 0 is no limit."""
    queue_depth: _Depth
    """Requests that it works on at a time."""

    @property
    def numbers(self) -> str:
        """All four in the order of the fields, with commas between them."""
        return f"{self.latency_us},{self.megabytes_per_second},{self.requests_per_second},{self.queue_depth}"

    @property
    def request_kb(self) -> int:
        """What a request costs, in KiB that the disk could read meanwhile: what one can tell the kernel."""
        return max(round(self._wait_us * self.megabytes_per_second / 1024), 1)

    @property
    def first_request_kb(self) -> int:
        """What our kernel takes a request to cost in a file that it has not waited for, in KiB.

        A disk that rotates, as a timed disk of depth 1 says, is taken to answer in 5 ms, any other in 1 ms; see
        ``ROTATING_WAIT_US`` in ``mm/mmap_readahead_file.c``.
        """
        return _kb_of(5000 if self.queue_depth == 1 else 1000)

    @property
    def measured_request_kb(self) -> int:
        """What our kernel takes a request to cost once it has timed some, if nobody tells it, in KiB.

        See ``mmap_readahead_request_kb()``.
        """
        return _kb_of(round(self._wait_us))

    @property
    def _wait_us(self) -> float:
        """How long a program waits for a request: the whole latency, but at least as long as the rate demands."""
        return max(self.latency_us, 10**6 / self.requests_per_second if self.requests_per_second else 0)


def _kb_of(wait_us: int) -> int:
    """128 KiB for a wait of a millisecond or less, and one more for each 4 us more, up to 4 MiB."""
    return min(128 + max(wait_us - 1000, 0) // 4, 4096)


@cache
def load_devices(file: Path = EXPERIMENTS / "devices.toml") -> dict[str, Device]:
    """The named devices in the order of the file; BadExperiment for a mistake in it."""
    return Place(file).named(read_toml(file), Device)


def help_text() -> str:
    names = ", ".join(load_devices())
    return f"{names}, or LATENCY_US,MB/S,REQUESTS/S,DEPTH such as 1000,125,3000,64 (0 requests/s: no limit)"


def device_of(text: str) -> Device:
    """The device that ``--device`` means; UsageError for a name that is not known, and for numbers that cannot be."""
    known = load_devices()
    if text in known:
        return known[text]
    words = text.split(",")
    if len(words) != 4 or not all(re.fullmatch("[0-9]{1,10}", word) for word in words):
        raise UsageError(
            f"There is no device '{text}'; there are {', '.join(known)}, or four numbers such as 1000,125,3000,64."
        )
    numbers = dict(zip(Device.__struct_fields__[1:], map(int, words), strict=True))
    try:
        return convert({"name": ",".join(map(str, numbers.values())), **numbers}, Device)
    except ValidationError as error:
        raise UsageError(
            f"There is no such device as '{text}': the latency is up to 100,000,000 us, the speed 1 to 18,000 MB/s, "
            f"the rate up to 1,000,000,000 requests/s, and the depth 1 to {MOST_DEPTH}."
        ) from error
