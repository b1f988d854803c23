# SPDX-License-Identifier: GPL-2.0-only
"""The model of the page cache, as a shared library.

Names stand in the order of the C enums, and fields in the order of the C structs.
"""

import ctypes
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import astuple

from foliolab.errors import ModelError, require_known
from foliolab.model.clock import Clock, running, signatures
from foliolab.model.compiled import compiled
from foliolab.toml import one_of

PAGE_BYTES = 4096
DEFAULT_REQUEST_KB = 128
"""What our kernel takes a request to cost at least, and the module unless it is told."""

RULES = (
    "off", "published", "adaptive", "random", "fixed", "xnu", "freebsd", "zfetch", "competitive", "linux-7.3",
    "first-steps",
)  # fmt: skip
"""What a miss reads, as in ``enum model_rules``."""
RECLAIM = ("second-chance", "lists")
"""What is evicted, as in ``enum model_reclaim``."""
KINDS = (
    "random", "sequential", "reverse", "stride", "zipf", "streams", "pingpong", "objects", "btree", "scan-random",
    "phases", "drift", "blobs", "hot-spots", "merge", "walk", "btree-scan", "scanners", "readers", "scan-readers",
)  # fmt: skip
ORDERS = ("forward", "backward", "shuffled")
"""In which the pages of an object are accessed."""
MISS_KINDS = ("single", "forward", "backward", "fill")
"""What an adaptive read is, as in ``enum mmap_readahead_kind``."""

_BITS = 32
"""Of the numbers of pages, and of accesses at once."""


@dataclass(frozen=True)
class Machine:
    """What the model runs on. Sizes are in pages."""

    rules: str
    file_pages: int
    """Of all files."""
    memory_pages: int
    """For these files alone; at least two windows."""
    read_ahead_pages: int
    """The window that the device allows, and what ``fixed`` reads."""
    request_pages: int = 32
    """What ``adaptive``, ``zfetch`` and ``competitive`` take a request to cost."""
    reclaim: str = RECLAIM[0]
    """What is evicted; ``lists`` is nearer to a kernel, and takes longer."""
    first_request_pages: int = 0
    """What ``adaptive`` takes a request to cost in a file of which it has not waited for one; 0 if it has been told."""


class Pattern(Struct, frozen=True, forbid_unknown_fields=True):
    """An order in which pages are accessed; what a pattern does not use may be anything."""

    kind: Annotated[str, one_of(KINDS)]
    order: Annotated[str, one_of(ORDERS)] = "forward"
    stride: int = 0
    """Pages; a drift steps by less than that, and it is the standard deviation of a walk's steps."""
    streams: int = 0
    """Also runs that are merged, and threads."""
    object: int = 0
    """Pages, also of a hot spot; at most so many leaves of a scan."""
    burst: int = 0
    """Accesses in a row: of a hot spot, of a merge between look-ups (on average), of a thread (at most)."""
    region: float = 0
    """Share of the file, for random accesses; 0 is all of it."""
    seed: int = 1


@dataclass(frozen=True)
class Counts:
    accesses: int
    major_faults: int
    minor_faults: int
    pages_read: int
    waits: int
    """Reads that the program waits for."""
    requests: int
    """Contiguous ranges read."""
    seeks: int
    """Of these, those that do not come soon after the one before."""
    pages_skipped: int
    """Between a request and one that does."""
    evicted: int
    """Pages."""
    evicted_unused: int
    """Pages that were never mapped."""
    refaults: int
    """Pages read again after they were evicted."""
    looks: int
    """At pages of the cache, by misses under ``adaptive``."""
    most_looks: int
    """By one of them, or at one mark."""
    kinds: tuple[int, ...]
    """Misses under ``adaptive``, one number for each of MISS_KINDS."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By name of the device, of those whose time was kept."""

    @property
    def read_bytes(self) -> int:
        return self.pages_read * PAGE_BYTES


class MachineStruct(ctypes.Structure):
    _fields_ = (
        ("rules", ctypes.c_int),
        ("reclaim", ctypes.c_int),
        ("memory_pages", ctypes.c_uint32),
        ("read_ahead_pages", ctypes.c_uint32),
        ("request_pages", ctypes.c_uint32),
        ("first_request_pages", ctypes.c_uint32),
    )


class PatternStruct(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("kind", "order")),
        *((name, ctypes.c_uint64) for name in ("stride", "streams", "object", "burst")),
        ("region", ctypes.c_double),
        ("seed", ctypes.c_uint64),
    )


_COUNTERS = tuple(name for name in Counts.__dataclass_fields__ if name not in ("kinds", "seconds"))


class CountsStruct(ctypes.Structure):
    _fields_ = (*((name, ctypes.c_uint64) for name in _COUNTERS), ("kinds", ctypes.c_uint64 * len(MISS_KINDS)))


@cache
def load(window: str) -> ctypes.CDLL:
    """The library, ready to be called. Call this from the main thread before others simulate."""
    library = ctypes.CDLL(str(compiled(window)))
    handle, numbers, count = ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint64
    own: Sequence[Sequence[Any]] = (
        (library.model_new, handle, ctypes.POINTER(MachineStruct), numbers, ctypes.c_uint32),
        (library.model_run, ctypes.c_bool, handle, ctypes.POINTER(PatternStruct), count, count),
        (library.model_has, ctypes.c_bool, handle, numbers, numbers, count),
        (library.model_replay, ctypes.c_bool, handle, numbers, numbers, count),
        (library.model_play, ctypes.c_bool, handle, handle, count),
        (library.model_counts, None, handle, ctypes.POINTER(CountsStruct)),
        (library.model_free, None, handle),
        (library.model_observe, None, handle, handle),
    )
    for function, result, *arguments in (*own, *signatures(library)):
        function.restype, function.argtypes = result, arguments
    return library


def simulate(
    machine: Machine,
    pattern: Pattern,
    count: int,
    passes: int = 1,
    then: Sequence[Pattern] = (),
    window: str = "",
    clock: Clock | None = None,
) -> Counts:
    """Access ``count`` pages of a file that is not cached yet, and the same ones again in each further pass.

    Each pass goes on with as many accesses by every pattern of ``then``. With ``clock`` the counts have seconds.

    ModelError if there is no such machine or pattern, or not enough memory to simulate it. Threads may call
    this side by side.
    """
    structs = [_pattern_struct(each) for each in (pattern, *then)]
    require_whole("count", count, 0, _BITS)
    require_whole("passes", passes, 0, _BITS)
    with simulation(machine, (machine.file_pages,), window, clock) as model:
        for _ in range(passes if then else 1):
            for struct in structs:
                if not model.library.model_run(model.handle, struct, count, 1 if then else passes):
                    raise ModelError(f"There is no memory to simulate {count} accesses.")
        return model.counts()


def replay(
    machine: Machine,
    pages: Sequence[int],
    file_of: Sequence[int] = (),
    files: Sequence[int] = (),
    window: str = "",
    clock: Clock | None = None,
) -> Counts:
    """Access these pages in this order, of files of which nothing is cached yet.

    ``files`` has the pages of each file, and ``file_of`` the index of the file for each access; without them
    there is one file. Arrays of type code ``I`` are the fastest. With ``clock`` the counts have seconds.

    ModelError if there is no such machine or page, or not enough memory to simulate it. Threads may call this side by
    side.
    """
    files = files or (machine.file_pages,)
    file_of = file_of or array("I", bytes(array("I").itemsize * len(pages)))
    if sum(files) != machine.file_pages or len(file_of) != len(pages):
        raise ModelError("The model's machine has other files than are accessed.")
    with simulation(machine, files, window, clock) as model:
        accesses = numbers_of(file_of), numbers_of(pages), len(pages)
        if not model.library.model_has(model.handle, *accesses):
            raise ModelError(f"A page is not one of the {machine.file_pages} of the model's files.")
        if not model.library.model_replay(model.handle, *accesses):
            raise ModelError(f"There is no memory to simulate {len(pages)} accesses.")
        return model.counts()


def numbers_of(numbers: Sequence[int]) -> "ctypes.Array[ctypes.c_uint32]":
    """As the library takes them; the memory is that of an array of type code ``I``."""
    try:
        whole = numbers if isinstance(numbers, array) and numbers.typecode == "I" else array("I", numbers)
    except OverflowError as error:
        raise ModelError(f"The model's pages and files have numbers from 0 to 2^{_BITS}.") from error
    return (ctypes.c_uint32 * len(whole)).from_buffer(whole)


@dataclass(frozen=True)
class Simulation:
    library: ctypes.CDLL
    handle: int
    seconds: Callable[[], Mapping[str, float]]
    """Until now."""

    def counts(self) -> Counts:
        struct = CountsStruct()
        self.library.model_counts(self.handle, struct)
        counters = {name: getattr(struct, name) for name in _COUNTERS}
        return Counts(**counters, kinds=tuple(struct.kinds), seconds=self.seconds())


@contextmanager
def simulation(machine: Machine, files: Sequence[int], window: str, clock: Clock | None) -> Iterator[Simulation]:
    """A machine that has accessed nothing yet, and is gone at the end of the block."""
    struct, library, pages = _machine_struct(machine), load(window), numbers_of(files)
    handle = library.model_new(struct, pages, len(pages))
    if not handle:
        raise ModelError(f"There is no memory to simulate a file of {machine.file_pages} pages.")
    try:
        with running(library, clock, handle, pages) if clock else nullcontext(dict) as seconds:
            yield Simulation(library, handle, seconds)
    finally:
        library.model_free(handle)


def _machine_struct(machine: Machine) -> MachineStruct:
    require_whole("file_pages", machine.file_pages, 1, _BITS)
    require_whole("read_ahead_pages", machine.read_ahead_pages, 1, _BITS - 1)
    require_whole("request_pages", machine.request_pages, 1, _BITS)
    require_whole("memory_pages", machine.memory_pages, 1, _BITS)
    if machine.memory_pages < 2 * machine.read_ahead_pages:
        raise ModelError(
            f"A memory of {machine.memory_pages} pages is too small: it has to hold two windows of "
            f"{machine.read_ahead_pages} pages."
        )
    return MachineStruct(
        rules=number_of("rules", machine.rules, RULES),
        reclaim=number_of("reclaim", machine.reclaim, RECLAIM),
        memory_pages=machine.memory_pages,
        read_ahead_pages=machine.read_ahead_pages,
        request_pages=machine.request_pages,
        first_request_pages=machine.first_request_pages,
    )


def _pattern_struct(pattern: Pattern) -> PatternStruct:
    for name in ("stride", "streams", "object", "burst", "seed"):
        require_whole(name, getattr(pattern, name), 0, 64)
    if not 0 <= pattern.region <= 1:
        raise ModelError(f"The model's region has to be from 0 to 1, not {pattern.region}.")
    kind, order = number_of("patterns", pattern.kind, KINDS), number_of("orders", pattern.order, ORDERS)
    return PatternStruct(kind, order, *astuple(pattern)[2:])


def number_of(what: str, name: str, names: Sequence[str]) -> int:
    require_known(f"The model has no {what}", [name], names, ModelError)
    return names.index(name)


def require_whole(name: str, value: int, least: int, bits: int) -> None:
    if not least <= value < 1 << bits:
        raise ModelError(f"The model's {name} has to be at least {least} and below 2^{bits}, not {value}.")
