# SPDX-License-Identifier: GPL-2.0-only
"""The store: results/samples.jsonl, one sample a line, only ever appended to.

A line is written by one system call and synced before the next measurement starts. What a
kill or a power cut leaves of a line at the end has no newline. Readers pass over it unless only that is missing, and
the next writer cuts it off or ends it, under the lock that lets only one run write at a time.
"""

import json
import lzma
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from foliolab.campaign.sample import Sample
from foliolab.errors import StoreError
from foliolab.files import full_disk_named, lock_if_free, results_directory

_LOCK_PATIENCE_SECONDS = 3.0


def store_file() -> Path:
    """Where the samples of this checkout are."""
    return results_directory() / "samples.jsonl"


def consoles_of(file: Path) -> Path:
    """The directory of the console logs of boots that the samples of a store are of."""
    return file.parent / "consoles"


def read_samples(file: Path) -> list[Sample]:
    """All whole samples of a store, or of a compressed copy, the first recorded first; [] if there is none. No lock.

    Raises StoreError with the line's number for a damaged line, and for a copy that is not whole.
    """
    try:
        content = file.read_bytes()
        if file.suffix == ".xz":
            content = _unpacked(content)
    except FileNotFoundError:
        return []
    except (OSError, lzma.LZMAError) as error:
        raise StoreError(f"{file} cannot be read: {error}.") from None
    lines = _whole(content).split(b"\n")[:-1]
    samples = [_parse(file, number, line) for number, line in enumerate(lines, start=1)]
    # What was merged stands behind what is newer.
    return sorted(samples, key=lambda sample: sample.recorded)


def _whole(content: bytes) -> bytes:
    """The lines of a store without what is no whole sample at its end, each with its newline."""
    end = content.rfind(b"\n") + 1
    try:
        msgspec.json.decode(content[end:], type=Sample)
    except (ValueError, RecursionError):
        return content[:end]
    return content + b"\n"


def _unpacked(packed: bytes) -> bytes:
    """All that xz streams behind each other hold; LZMAError unless that is whole lines, and nothing else."""
    content = b""
    while True:
        stream = lzma.LZMADecompressor()
        content += stream.decompress(packed)
        packed = stream.unused_data
        if not packed:
            break
    if not stream.eof or content[-1:] not in (b"", b"\n"):
        raise lzma.LZMAError("it is cut off")
    return content


def _parse(file: Path, number: int, line: bytes) -> Sample:
    try:
        return msgspec.json.decode(line, type=Sample)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"Line {number} of {file} is damaged ({error}); delete or repair that line.") from None


class Store:
    """A store that is open for writing. Use ``open_store``."""

    def __init__(self, file: Path, handle: int, samples: list[Sample]) -> None:
        self.file = file
        self.samples = samples
        """Everything in the store, oldest first."""
        self._handle = handle

    @property
    def consoles(self) -> Path:
        return consoles_of(self.file)

    def append(self, sample: Sample) -> None:
        """Add one sample; on return it survives a power cut.

        Raises DiskFull, with the store as it was before.
        """
        line = json.dumps(sample.to_json(), separators=(",", ":")).encode() + b"\n"
        end = os.lseek(self._handle, 0, os.SEEK_END)
        with full_disk_named(self.file):
            try:
                written = os.write(self._handle, line)
                # A disk that fills up takes a part first, and says why only when asked for the rest.
                while written < len(line):
                    written += os.write(self._handle, line[written:])
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, end)
                raise
        self.samples.append(sample)


@contextmanager
def open_store(file: Path) -> Iterator[Store]:
    """Open for writing, made if absent. A second run at the same time is refused with StoreError."""
    with _only_writer(file):
        with full_disk_named(file):
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            _mend_torn_line(file, handle)
            yield Store(file, handle, read_samples(file))
        finally:
            os.close(handle)


@contextmanager
def _only_writer(file: Path) -> Iterator[None]:
    # The children of a run that was just killed may hold its lock for the moment it takes them to die.
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
    with ExitStack() as block:
        while not lock_if_free(block, file.with_name(f".{file.name}.lock")):
            if time.monotonic() > deadline:
                raise StoreError(f"Another run is writing to {file}; wait for its end.")
            time.sleep(0.1)
        yield


def _mend_torn_line(file: Path, handle: int) -> None:
    content = file.read_bytes()
    whole = _whole(content)
    if whole != content:
        with full_disk_named(file):
            os.ftruncate(handle, min(len(whole), len(content)))
            os.write(handle, whole[len(content) :])  # the newline, if that is all that is missing
            os.fsync(handle)
