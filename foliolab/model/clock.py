# SPDX-License-Identifier: GPL-2.0-only
"""The clock of the model in ``model/clock.c``: seconds on several devices from one simulation.

Fields of structures stand in the order of the C structs.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from foliolab.device import Device
from foliolab.errors import ModelError
from foliolab.files import MODEL
from foliolab.toml import Count, Place, read_toml

ACCESSES = ("mapped", "minor", "major")
"""How an access finds its page, as in ``enum model_access``."""


class Processor(Struct, frozen=True, forbid_unknown_fields=True):
    """How long the processor works, in nanoseconds, as ``model/processor.toml`` says it."""

    mapped: Count
    """For an access of a mapped page."""
    minor_fault: Count
    """For an access of a page that is cached and not mapped."""
    major_fault: Count
    """For an access of a page that is not cached, without waiting for it."""
    page: Count
    """For each page that is read."""
    request: Count


@cache
def load_processor(file: Path = MODEL / "processor.toml") -> Processor:
    """That of the file; BadExperiment for a mistake in it."""
    return Place(file).convert(read_toml(file), Processor)


@dataclass(frozen=True)
class Clock:
    devices: tuple[Device, ...]
    """Each has a time of its own, and a name of its own."""
    processor: Processor = field(default_factory=load_processor)


class ProfileStruct(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("latency", "bytes_per_second", "requests_per_second")),
        ("depth", ctypes.c_uint32),
    )


class ProcessorStruct(ctypes.Structure):
    _fields_ = (("access", ctypes.c_uint64 * len(ACCESSES)), ("page", ctypes.c_uint64), ("request", ctypes.c_uint64))


def profile_struct(device: Device) -> ProfileStruct:
    """In nanoseconds and bytes."""
    return ProfileStruct(
        latency=device.latency_us * 1000,
        bytes_per_second=device.megabytes_per_second * 10**6,
        requests_per_second=device.requests_per_second,
        depth=device.queue_depth,
    )


def signatures(library: ctypes.CDLL) -> Sequence[Sequence[Any]]:
    """The clock's functions, each with what it returns and takes."""
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    profiles, processor = ctypes.POINTER(ProfileStruct), ctypes.POINTER(ProcessorStruct)
    return (
        (library.model_clock_new, handle, profiles, number, processor, ctypes.POINTER(number), number),
        (library.model_clock_observer, handle, handle),
        (library.model_clock_read, ctypes.c_bool, handle, ctypes.POINTER(ctypes.c_uint64)),
        (library.model_clock_free, None, handle),
    )


@contextmanager
def running(
    library: ctypes.CDLL, clock: Clock, model: int, files: "ctypes.Array[ctypes.c_uint32]"
) -> Iterator[Callable[[], Mapping[str, float]]]:
    """A clock that begins at 0 and follows the model up to the end of the block.

    It tells the seconds until now by the name of the device; ModelError for lack of memory, also then.
    """
    profiles = (ProfileStruct * len(clock.devices))(*map(profile_struct, clock.devices))
    works = clock.processor
    accesses = (ctypes.c_uint64 * len(ACCESSES))(works.mapped, works.minor_fault, works.major_fault)
    processor = ProcessorStruct(accesses, works.page, works.request)
    handle = library.model_clock_new(profiles, len(profiles), processor, files, len(files))
    if not handle:
        raise ModelError("There is no memory to keep the time of a simulation.")

    def seconds() -> Mapping[str, float]:
        times = (ctypes.c_uint64 * len(profiles))()
        if not library.model_clock_read(handle, times):
            raise ModelError("There is no memory to keep the time of so many requests.")
        return {device.name: time / 1e9 for device, time in zip(clock.devices, times, strict=True)}

    try:
        library.model_observe(model, library.model_clock_observer(handle))
        yield seconds
    finally:
        library.model_clock_free(handle)
