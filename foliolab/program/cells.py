# SPDX-License-Identifier: GPL-2.0-only
"""The cells of a command: each variant with each readahead limit, and which of them share a boot."""

from collections.abc import Sequence
from dataclasses import dataclass

from foliolab.experiment.variants import Variant
from foliolab.grouped import grouped


@dataclass(frozen=True)
class ProgramCell:
    """One run of the program."""

    variant: Variant
    read_ahead_kb: int | None
    """Of the guest's disks; None: as the kernel has it."""

    def __str__(self) -> str:
        limit = "" if self.read_ahead_kb is None else f", read_ahead_kb {self.read_ahead_kb}"
        return f"{self.variant.name}{limit}"


def boots(variants: Sequence[Variant], limits: Sequence[int | None]) -> list[list[ProgramCell]]:
    """The cells of each boot, in order: the variants as given, and for each the limits as given.

    As in experiments, variants that set switches share a boot of their kernel, and one that sets none,
    which needs a kernel as booted, does not share one with them.
    """
    groups = grouped(variants, lambda variant: variant.boot).values()
    return [[ProgramCell(variant, limit) for variant in group for limit in limits] for group in groups]
