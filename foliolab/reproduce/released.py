# SPDX-License-Identifier: GPL-2.0-only
"""The samples behind the documents, shipped in release/: JSON lines as in a store, compressed, without what is older.

A part of the plan changes there as a whole, once all of it was measured with the code as it stands.
"""

import json
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from foliolab.campaign.sample import Sample
from foliolab.errors import StoreError
from foliolab.files import write_atomic
from foliolab.paths import RELEASE
from foliolab.reproduce.progress import Progress

RELEASED = RELEASE / "samples.jsonl.xz"


def read_released(file: Path = RELEASED) -> list[Sample]:
    """All of them, oldest first, none if there is no such file; StoreError if it is damaged."""
    if not file.exists():
        return []
    try:
        lines = lzma.decompress(file.read_bytes()).splitlines()
        return [Sample.from_json(json.loads(line)) for line in lines]
    except (OSError, lzma.LZMAError, ValueError, TypeError) as error:
        raise StoreError(f"{file} cannot be read: {error}.") from None


def with_released(samples: Iterable[Sample], file: Path = RELEASED) -> list[Sample]:
    """These and all that are shipped, oldest first; StoreError if what is shipped is damaged."""
    return sorted([*read_released(file), *samples], key=lambda sample: sample.recorded)


def write_released(samples: Iterable[Sample], file: Path = RELEASED) -> None:
    """The same samples make the same file, wherever they were measured: a host is named only if seconds are of it."""
    ordered = sorted(
        (replace(sample, host=sample.timed_on) for sample in samples),
        key=lambda sample: (sample.recorded, sample.experiment, sample.key),
    )
    lines = "".join(json.dumps(sample.to_json()) + "\n" for sample in ordered)
    write_atomic(file, lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))


def released_anew(here: Sequence[Progress], before: Sequence[Progress]) -> list[Sample]:
    """What to ship: each part as it was measured here, if all of it was, or else as it was shipped before."""
    chosen = [mine if mine.complete else old for mine, old in zip(here, before, strict=True)]
    return list({sample.key: sample for progress in chosen for sample in progress.samples}.values())
