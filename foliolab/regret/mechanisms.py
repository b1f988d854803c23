# SPDX-License-Identifier: GPL-2.0-only
"""The mechanisms of the adaptive window, and how each is switched off, as model/mechanisms.toml says it."""

from msgspec import Struct
from msgspec.structs import replace

from foliolab.paths import MODEL
from foliolab.regret.header import Mechanism
from foliolab.table import Place, read_toml


class _Mechanisms(Struct, forbid_unknown_fields=True):
    mechanism: list[Mechanism]


def read_mechanisms() -> list[Mechanism]:
    """All of them in their order, with all their edits; BadExperiment for a mistake in the file."""
    file = MODEL / "mechanisms.toml"
    place = Place(file)
    found = {each.name: each for each in place.convert(read_toml(file), _Mechanisms).mechanism}
    for each in found.values():
        place.at(each.name).at("also").all_of(each.also, found)
    return [
        replace(each, edits=(*each.edits, *(edit for name in each.also for edit in found[name].edits)))
        for each in found.values()
    ]
