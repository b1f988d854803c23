# SPDX-License-Identifier: GPL-2.0-only
"""What users have reported, in the model: several processes or threads access one file.

Names stand in the order of the C enum, and fields in the order of the C struct, of ``guest/cases.h``.
"""

import ctypes
from typing import Annotated

from msgspec import Struct
from msgspec.structs import astuple

from foliolab.errors import ModelError
from foliolab.model.clock import Clock
from foliolab.model.library import Counts, Machine, number_of, require_whole, simulation
from foliolab.toml import one_of

CASES = ("openers", "pieces", "snapshot", "parts", "reclaim", "remote", "writes")
OPENED_BY_EACH = ("openers", "snapshot")
"""In these, each runner opens the file itself; in the others all share one open file."""
MOST_OPENERS = 64

_BITS = 32
"""Of all numbers but the seed."""


class Reported(Struct, frozen=True, forbid_unknown_fields=True):
    """A case, and how large it is; what a case does not use may be anything from 1 on."""

    kind: Annotated[str, one_of(CASES)]
    pages: int
    """From the start of the file, that may be accessed."""
    runners: int = 1
    """Processes that open the file, at most MOST_OPENERS, or threads."""
    in_turn: int = 0
    """So many of them one after the other, before the others begin together."""
    unit: int = 1
    """Pages of a mapping or tensor, or of the largest one."""
    units: int = 1
    """Mappings, or phases."""
    count: int = 1
    """Accesses of a process, in a mapping, or in a phase."""
    passes: int = 1
    seed: int = 1


class ReportedStruct(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        *((name, ctypes.c_uint32) for name in Reported.__struct_fields__[1:-1]),
        ("seed", ctypes.c_uint64),
    )


def play(
    machine: Machine, reported: Reported, reclaimed_pages: int = 0, window: str = "", clock: Clock | None = None
) -> Counts:
    """Access pages of a file that is not cached yet, and reclaim so many after each phase.

    With ``clock`` the counts have seconds: as if one program did all of that, and no runner while another one waits.

    ModelError if there is no such machine or case, or not enough memory to simulate it. Threads may call this side
    by side.
    """
    struct = _struct_of(reported, machine)
    require_whole("reclaimed_pages", reclaimed_pages, 0, 64)
    with simulation(machine, (machine.file_pages,), window, clock) as model:
        if not model.library.model_play(model.handle, ctypes.byref(struct), reclaimed_pages):
            raise ModelError(f"There is no memory to simulate what {reported.runners} runners access.")
        return model.counts()


def _struct_of(reported: Reported, machine: Machine) -> ReportedStruct:
    for name in ("pages", "runners", "unit", "units", "count", "passes"):
        require_whole(name, getattr(reported, name), 1, _BITS)
    require_whole("in_turn", reported.in_turn, 0, _BITS)
    require_whole("seed", reported.seed, 0, 64)
    most_runners = MOST_OPENERS if reported.kind in OPENED_BY_EACH else reported.pages
    for name, value, most in (
        ("pages", reported.pages, machine.file_pages),
        ("runners", reported.runners, most_runners),
        ("in_turn", reported.in_turn, reported.runners),
        ("unit", reported.unit, reported.pages),
    ):
        if value > most:
            raise ModelError(f"The model's {name} has to be at most {most}, not {value}.")
    return ReportedStruct(number_of("cases", reported.kind, CASES), *astuple(reported)[1:])
