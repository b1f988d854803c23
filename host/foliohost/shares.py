# SPDX-License-Identifier: GPL-2.0-only
"""Whose the reads are: what of them faults had read, and what each mapped file has of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foliohost.observation import FileSeen, Observation

LITTLE_BYTES = 4 << 20
"""Reads that are not worth a word."""

TRACED = "tracepoints"
NEWLY_CACHED = "newly cached"
SHARE_OF_PLACES = "share of places"


@dataclass(frozen=True)
class FileShare:
    """What was read and used of one file."""

    seen: FileSeen
    read_bytes: int | None
    method: str
    """How ``read_bytes`` is known: ``tracepoints``, ``newly cached`` or ``share of places``."""
    used_least: int
    """In bytes, and so is ``used_most``."""
    used_most: int


def mapped_reads(seen: Observation, files: Sequence[FileShare]) -> int:
    """Bytes that faults had read: what came into the cache of mapped files, or all that calls cannot have read."""
    if not files and not seen.counted.major_faults:
        return 0  # no page of a mapped file came anywhere, and nobody waited for one
    arrived = sum(file.read_bytes or 0 for file in files if file.method in (TRACED, NEWLY_CACHED))
    if files and all(file.method == TRACED for file in files):
        return min(seen.counted.read_bytes, arrived)
    return min(seen.counted.read_bytes, max(arrived, seen.counted.read_bytes - _by_calls(seen)))


def _by_calls(seen: Observation) -> int:
    """Bytes that read() may have had read: what it returned, which may be a small part of each page.

    Calls on sockets and of what is cached count as well, so each is charged with no more than windows for all waits
    leave over. Where a large mapped file cannot be seen in the cache, only what they returned: there, nothing but the
    rest tells what faults read.
    """
    counted = seen.counted
    large = [file for file in seen.files if not file.text and file.size_bytes >= LITTLE_BYTES]
    if any(file.cached_pages is None and file.fault_pages is None for file in large):
        return counted.called_bytes
    by_waits = counted.major_faults * max((file.window_kb << 10 for file in seen.files), default=0)
    left = max(0, counted.read_bytes - counted.called_bytes - by_waits)
    return counted.called_bytes + min(left, counted.calls * seen.page_bytes)


def share_out(seen: Observation) -> list[FileShare]:
    """What each file has of the reads.

    What its faults read, if these were followed. Of the rest, what came into its cache, if that could be seen and
    explains most of them; cut down to them if others read or wrote as well. Else as large a share as it has of the
    places touched.
    """
    page, counted = seen.page_bytes, seen.counted
    files = [file for file in seen.files if file.mapped_pages or file.cached_pages or file.fault_pages]
    unknown = [file for file in files if file.fault_pages is None]
    traced = sum(file.fault_pages or 0 for file in files) * page
    arrived = sum(file.cached_pages or 0 for file in unknown) * page
    rest = max(0, counted.read_bytes - traced)
    by_faults = max(0, rest - _by_calls(seen))
    by_cache = arrived >= 0.8 * by_faults
    spread = {} if by_cache else _spread(by_faults, unknown)
    shares = []
    for file in files:
        read: int | None = None
        method = NEWLY_CACHED if by_cache else SHARE_OF_PLACES
        if file.fault_pages is not None:
            read, method = file.fault_pages * page, TRACED
        elif not by_cache:
            read = spread[file]
        elif file.cached_pages is not None:
            read = int(file.cached_pages * page * min(1.0, rest / arrived if arrived else 1.0))
        if read == 0 and not file.mapped_pages:
            continue  # others have read it
        shares.append(
            FileShare(file, read, "" if read is None else method, file.places * page, file.mapped_pages * page)
        )
    return sorted(shares, key=lambda share: (-(share.read_bytes or 0), -share.used_most, share.seen.path))


def _spread(amount: int, files: Sequence[FileSeen]) -> dict[FileSeen, int]:
    """Bytes for each file by its places, and no more than it can have."""
    shares: dict[FileSeen, int] = {}
    for file in sorted(files, key=lambda file: _limit(file, amount) / max(1, file.places)):
        places = sum(other.places for other in files if other not in shares)
        share = (amount - sum(shares.values())) * file.places // places if places else 0
        shares[file] = min(share, _limit(file, amount))
    return shares


def _limit(file: FileSeen, amount: int) -> int:
    """Program text and small files are not read twice; what did not come in after we met a file came in before."""
    once = file.size_bytes if file.text or file.size_bytes < LITTLE_BYTES else amount
    return min(once, file.read_before if file.cached_pages == 0 else amount)
