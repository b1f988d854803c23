# SPDX-License-Identifier: GPL-2.0-only
"""The mechanisms of the adaptive window, and how each is switched off, as model/mechanisms.toml says it."""

from msgspec import Struct

from foliolab.paths import MODEL
from foliolab.regret.header import Mechanism
from foliolab.table import Place, Text, read_toml


class _Mechanism(Struct, forbid_unknown_fields=True):
    name: Text
    does: Text
    edits: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()


class _File(Struct, forbid_unknown_fields=True):
    mechanism: list[_Mechanism]


def read_mechanisms() -> list[Mechanism]:
    """All of them in their order; BadExperiment for a mistake in the file."""
    file = MODEL / "mechanisms.toml"
    place = Place(file)
    tables = {table.name: table for table in place.convert(read_toml(file), _File).mechanism}
    for table in tables.values():
        place.at(table.name).at("also").all_of(table.also, tables)
    return [
        Mechanism(table.name, table.does, (*table.edits, *(edit for name in table.also for edit in tables[name].edits)))
        for table in tables.values()
    ]
