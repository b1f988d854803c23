# SPDX-License-Identifier: GPL-2.0-only
"""Seconds that pass while the model decides and a file is really read, or while the kernel that runs here does both."""

import ctypes
import os
import resource
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from foliohost.libc import advise_random, last_error, mapping, residency
from foliolab.errors import ModelError
from foliolab.model.compiled import compiled_reads
from foliolab.model.library import Counts, Machine, numbers_of, simulation

_AT_ONCE = 256
"""Accesses between two moments at which Ctrl-C is noticed."""
_SECTOR_BYTES = 512
_DROPS = 50
_DROP_SECONDS = 0.01
"""Between these tries."""


@dataclass(frozen=True)
class ReadRun:
    """What one replay on a file came to."""

    seconds: float
    """From the first access to the last, by the clock."""
    counts: Counts
    """Of the model."""
    requests: int
    """Of 1 MiB at most."""
    read_bytes: int
    waits: int
    """Accesses whose page was still being read."""
    read_by: str
    """``io_uring`` or ``threads``."""


@dataclass(frozen=True)
class KernelRun:
    """What the kernel that runs here came to with the same accesses."""

    seconds: float
    read_bytes: int
    major_faults: int


class RealCountsStruct(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("requests", "read_bytes", "waits"))


@cache
def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(compiled_reads()), use_errno=True)
    handle, numbers, whole, yes = ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint64, ctypes.c_bool
    signatures: Sequence[Sequence[Any]] = (
        (library.real_reads_queue, handle, yes),
        (library.read_queue_has_threads, yes, handle),
        (library.read_queue_free, None, handle),
        (library.real_reads_new, handle, handle, ctypes.c_int, whole, numbers, ctypes.c_uint32),
        (library.real_reads_observer, handle, handle),
        (library.real_reads_error, ctypes.c_int, handle),
        (library.real_reads_count, None, handle, ctypes.POINTER(RealCountsStruct)),
        (library.real_reads_free, None, handle),
        (library.mapping_touch, None, handle, numbers, whole),
    )
    for function, result, *arguments in signatures:
        function.restype, function.argtypes = result, arguments
    return library


@contextmanager
def read_queue(*, threads: bool = False) -> Iterator[int]:
    """What reads are put into, for one replay at a time. OSError if there can be none.

    With ``threads``, io_uring is not tried. Page faults should be counted before the queue goes: see ``read_queue.h``.
    """
    queue = _load().real_reads_queue(threads)
    if not queue:
        raise last_error("A queue of reads")
    try:
        yield queue
    finally:
        _load().read_queue_free(queue)


def replay_on(
    queue: int, path: Path, machine: Machine, pages: "array[int]", file_of: "array[int]", files: Sequence[int]
) -> ReadRun:
    """Access these pages, as ``replay`` of the model does, and read from a file what the model's page cache reads.

    The model's files lie in that one, one after the other. OSError if it cannot be read past the page cache, ModelError
    as of ``replay``.
    """
    library = _load()
    with simulation(machine, files, "", None) as model, _reads(queue, path, files) as reads:
        model.library.model_observe(ctypes.c_void_p(model.handle), ctypes.c_void_p(library.real_reads_observer(reads)))
        if not model.library.model_has(model.handle, numbers_of(file_of), numbers_of(pages), len(pages)):
            raise ModelError(f"A page is not one of the {machine.file_pages} of the model's files.")
        start = time.perf_counter()
        for some_files, some_pages in zip(_parts(file_of), _parts(pages), strict=True):
            if not model.library.model_replay(model.handle, some_files, some_pages, len(some_pages)):
                raise ModelError(f"There is no memory to simulate {len(pages)} accesses.")
            if error := library.real_reads_error(reads):
                raise OSError(error, os.strerror(error), str(path))
        seconds = time.perf_counter() - start
        counts = RealCountsStruct()
        library.real_reads_count(reads, counts)
        read_by = "threads" if library.read_queue_has_threads(queue) else "io_uring"
        return ReadRun(seconds, model.counts(), counts.requests, counts.read_bytes, counts.waits, read_by)


@contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _reads(queue: int, path: Path, files: Sequence[int]) -> Iterator[int]:
    library = _load()
    with opened(path, os.O_DIRECT) as file:
        reads = library.real_reads_new(queue, file, os.fstat(file).st_size, numbers_of(files), len(files))
        if not reads:
            raise last_error("Memory for reads")
        try:
            yield reads
        finally:
            library.real_reads_free(reads)


def _parts(numbers: "array[int]") -> "Iterator[ctypes.Array[ctypes.c_uint32]]":
    for first in range(0, len(numbers), _AT_ONCE):
        size = min(_AT_ONCE, len(numbers) - first)
        yield (ctypes.c_uint32 * size).from_buffer(numbers, first * numbers.itemsize)


def touch_mapped(path: Path, pages: "array[int]", *, random: bool) -> KernelRun:
    """Touch pages of a file through a new mapping of it, of which nothing is cached before; the kernel reads them.

    With ``random`` the mapping has the hint for random access. OSError if the file cannot be mapped. What others have
    mapped of the file stays cached.
    """
    with opened(path) as file:
        _drop(file)
        size = os.fstat(file).st_size
        with mapping(file, size) as address:
            if random:
                advise_random(address, size)
            before, start = resource.getrusage(resource.RUSAGE_THREAD), time.perf_counter()
            for part in _parts(pages):
                _load().mapping_touch(address, part, len(part))
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_THREAD)
        _drop(file)
    read_bytes = (after.ru_inblock - before.ru_inblock) * _SECTOR_BYTES
    return KernelRun(seconds, read_bytes, after.ru_majflt - before.ru_majflt)


def _drop(file: int) -> None:
    """Drop what is cached of a file. Pages that are still being read cannot be dropped at once."""
    size = os.fstat(file).st_size
    with mapping(file, size) as address:
        for _ in range(_DROPS):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            if not residency(address, size).strip(b"\0"):
                return
            time.sleep(_DROP_SECONDS)
