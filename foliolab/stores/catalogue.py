# SPDX-License-Identifier: GPL-2.0-only
"""The stores that the lab knows, by the names that experiments call them by."""

from collections.abc import Callable
from functools import cache, partial

from foliolab.arch import Architecture
from foliolab.errors import require_known
from foliolab.packages import KEYRING
from foliolab.process import tool
from foliolab.progress import Reporter
from foliolab.stores import engines, git, lucene
from foliolab.stores.disk import StoreDisk

STORES = ("lmdb", "mdbx", "bbolt", "sqlite", "lucene", "git")

CHECKS: tuple[tuple[str, Callable[[], object]], ...] = (
    ("bbolt", partial(tool, "go")),
    ("mdbx", engines.cargo),
    *(("lucene and git", partial(tool, name)) for name in ("mvn", "java", KEYRING)),
)
"""What some stores need beyond what all of the lab does: functions that raise MissingTool without it."""

_RECORDS = 100_000
"""Of 1,000 bytes on average: about 160 MiB of pages."""


@cache
def store_disk(arch: Architecture, name: str, report: Reporter) -> StoreDisk:
    """The disk of a store, not made yet; its engine is fetched and compiled first if the cache does not have it.

    UsageError for a store that is not there.
    """
    require_known("There is no store", [name], STORES)
    match name:
        case "lucene":
            return StoreDisk(arch, name, {}, records=_RECORDS, root=lucene.root(arch, report))
        case "git":
            repository = git.repository(report)
            root = lucene.root(arch, report)
            return StoreDisk(arch, name, git.drivers(arch, report), repository, root=root)
        case _:
            return StoreDisk(arch, name, engines.drivers(arch, name, report), records=_RECORDS)
