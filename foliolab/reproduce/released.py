# SPDX-License-Identifier: GPL-2.0-only
"""What is shipped in release/: samples, as JSON lines without what is older, and what commands have printed.

The parts of a table change there together, once all of them were measured with the code as it stands.
"""

import json
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from foliolab.campaign.sample import Sample
from foliolab.campaign.store import read_samples
from foliolab.errors import StoreError
from foliolab.files import EXPERIMENTS, KERNEL, MODEL, RELEASE, REPOSITORY, TRACES, digest, digest_files, write_atomic
from foliolab.kernel.code import code_hash
from foliolab.kernel.name import BASE_VERSION
from foliolab.model.compiled import sources
from foliolab.reproduce.plan import Part, Progress

RELEASED = RELEASE / "samples.jsonl.xz"


def read_released(file: Path = RELEASED) -> list[Sample]:
    """All of them, oldest first, none if there is no such file; StoreError if it is damaged."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return []
    return list(_read(file, found.st_ino, found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=1)
def _read(file: Path, *_which: int) -> tuple[Sample, ...]:
    """A check of all documents asks a hundred times."""
    return tuple(read_samples(file))


def write_released(samples: Iterable[Sample], file: Path = RELEASED) -> None:
    """The same samples make the same file, wherever they were measured: a host is named only if seconds are of it."""
    ordered = sorted(
        (replace(sample, host=sample.timed_on) for sample in samples),
        key=lambda sample: (sample.recorded, sample.experiment, sample.key),
    )
    lines = "".join(json.dumps(sample.to_json()) + "\n" for sample in ordered)
    write_atomic(file, lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))


def unfinished(here: Iterable[Progress]) -> set[tuple[str, ...]]:
    """The tables of which some part is not measured."""
    return {progress.part.table for progress in here if not progress.complete}


def released_anew(here: Sequence[Progress], before: Sequence[Progress]) -> list[Sample]:
    """What to ship: the parts of a table as they were measured here, if all of them were, or as they were shipped."""
    waiting = unfinished(here)
    chosen = [old if old.part.table in waiting else mine for mine, old in zip(here, before, strict=True)]
    return list({sample.key: sample for progress in chosen for sample in progress.samples}.values())


@dataclass(frozen=True)
class Output:
    command: list[str]
    code: str
    """The hash of what decides it: the model and what it is asked, or our kernel code, and which selftests run."""
    output: str

    def is_of(self, part: Part) -> bool:
        """Whether it is of the part's command, and of the code as it stands."""
        return self.command == list(part.command) and self.code == code_behind(part)


def code_behind(part: Part) -> str:
    if part.command[0] == "simulate":
        files = [*sources(), *MODEL.glob("*.toml"), *TRACES.iterdir(), EXPERIMENTS / "devices.toml"]
        return digest_files(files, REPOSITORY)
    chosen = [(KERNEL / "kselftests.toml").read_bytes()] if part.command[0] == "kselftest" else []
    return digest([code_hash(BASE_VERSION), *chosen])


def read_output(part: Part, directory: Path) -> Output | None:
    """None if there is none; StoreError if it is damaged."""
    file = directory / f"{part.name}.json"
    try:
        return Output(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{file} cannot be read: {error}.") from None


def write_output(part: Part, output: Output, directory: Path) -> None:
    write_atomic(directory / f"{part.name}.json", json.dumps(asdict(output), indent=1) + "\n")
