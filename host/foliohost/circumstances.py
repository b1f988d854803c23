# SPDX-License-Identifier: GPL-2.0-only
"""What is known of files and processes beside what was seen of them: cures, disks, control groups."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from foliohost.cures import state_of
from foliohost.errors import FolioError
from foliohost.estimates import DiskCost
from foliohost.glimpse import glimpse
from foliohost.groups import ControlGroup, Groups, blind_spots
from foliohost.observation import FileSeen, Observation
from foliohost.state import applied
from foliohost.verdict import Diagnosis, DiagnosisKind
from foliohost.windows import Descriptors

NOT_PROBED = "It was not probed."
_MOST_DISKS = 4


@dataclass(frozen=True)
class Circumstances:
    cured_kb: Mapping[str, int] = field(default_factory=dict)
    """Of files that have another window than their device gives, by path: the smallest that a process has, in KiB."""
    costs: Mapping[str, DiskCost | str] = field(default_factory=dict)
    """What the disk under a file takes, by device, or a sentence why that is not known."""
    hints_kb: Mapping[str, int] = field(default_factory=dict)
    """What a call of MADV_WILLNEED or readahead() reads at least if it asks for it, in KiB, by device."""
    groups: tuple[ControlGroup, ...] = ()
    blind: tuple[str, ...] = ()
    """What cannot be seen from here, a sentence each."""

    def window_kb(self, file: FileSeen) -> int:
        """The window that a file is taken to have now."""
        return self.cured_kb.get(file.path, file.window_kb)

    def cost(self, file: FileSeen) -> DiskCost | None:
        found = self.costs.get(file.device)
        return found if isinstance(found, DiskCost) else None


def circumstances(seen: Observation, verdict: Diagnosis, groups: Groups, probe: bool | None) -> Circumstances:
    """All that is told beside an observation.

    The disk is probed if ``probe`` says so, and with None where something is wrong with the file.
    """
    asked = probe or (probe is None and verdict.kind not in (DiagnosisKind.NOTHING_WRONG, DiagnosisKind.FITS))
    data = [file.seen for file in verdict.files if file.read_bytes and not file.seen.text]
    costs: dict[str, DiskCost | str] = {}
    for file in data:
        if not isinstance(costs.get(file.device), DiskCost):
            costs[file.device] = _probed(file) if asked and len(costs) < _MOST_DISKS else NOT_PROBED
    groups.look(pid for file in seen.files for pid in file.processes)
    return Circumstances(
        _cured_windows(seen.files),
        costs,
        {file.device: _hint_kb(file.device) for file in data},
        groups.finish(),
        tuple(blind_spots()),
    )


def _cured_windows(files: tuple[FileSeen, ...]) -> dict[str, int]:
    """The windows of open files that a cure has changed and that still have them, by path."""
    found: dict[str, int] = {}
    with suppress(FolioError):
        told = Descriptors()
        for cure in applied():
            if cure.pid is None or state_of(cure, told) != "holds":
                continue
            for file in files:
                if cure.pid in file.processes and _same(file.path, cure.file):
                    found[file.path] = min(cure.read_ahead_kb, found.get(file.path, cure.read_ahead_kb))
    return found


def _same(one: str, other: str) -> bool:
    with suppress(OSError):
        return Path(one).samefile(other)
    return one == other


def _probed(file: FileSeen) -> DiskCost | str:
    """What the disk under a file takes now, or why that is not known."""
    try:
        return glimpse(Path(file.path))
    except FolioError as error:
        return str(error)


def _hint_kb(device: str) -> int:
    """What one call may have read ahead although the window is smaller (io_pages); 0 of what is no block device."""
    with suppress(OSError, ValueError):
        return int(Path(f"/sys/block/{device}/queue/max_sectors_kb").read_text())
    return 0
