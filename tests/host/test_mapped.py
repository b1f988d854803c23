# SPDX-License-Identifier: GPL-2.0-only
"""Two files that mappings and tracepoints call by one number, as subvolumes of btrfs have them."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foliohost.faults import faults_of, followed
from foliohost.mapped import MappedFile, MappedFiles
from foliohost.processes import PAGE_BYTES, mappings
from foliohost.watch import Watch
from tests.host.conftest import Toucher
from tests.host.toucher import drop
from tests.host.tracing import here

PAGES = 2048


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[list[Path]]:
    """Of each subvolume, the first file."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir()
    with image.open("wb") as stream:
        stream.truncate(256 << 20)
    commands = [["mkfs.btrfs", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)]]
    commands += [["btrfs", "subvolume", "create", str(place / name)] for name in ("one", "two")]
    try:
        try:
            for argv in commands:
                subprocess.run(argv, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"there is no btrfs here: {error}")
        files = [place / name / "file" for name in ("one", "two")]
        for file in files:
            file.write_bytes(bytes(range(256)) * (PAGES * PAGE_BYTES // 256))
        subprocess.run(["sync", "--file-system", str(place)], check=True)
        yield files
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False, capture_output=True)


def numbers(program: Toucher, file: Path) -> set[tuple[str, int]]:
    return {piece.file for piece in mappings(program.pid) if piece.path == str(file)}


def test_they_are_two_files(twins: list[Path], start: Callable[..., Toucher]) -> None:
    programs = [start(file) for file in twins]
    ((number,), (other,)) = map(numbers, programs, twins)
    assert number == other
    watch = Watch(lambda: [program.pid for program in programs])
    programs[0].tell("random 60")
    programs[1].tell("scan")
    watch.look()
    seen = {Path(file.path): file for file in watch.finish().files}
    assert seen[twins[1]].mapped_pages == PAGES
    assert 60 * 0.9 <= seen[twins[0]].mapped_pages < PAGES
    for program, file in zip(programs, twins, strict=True):
        assert seen[file].processes == (program.pid,)
        assert seen[file].rss_bytes >= 60 * 0.9 * PAGE_BYTES


def test_a_file_is_the_same_at_each_look_and_in_each_process(twins: list[Path], start: Callable[..., Toucher]) -> None:
    looks, (first, second) = MappedFiles(), twins
    alone = start(first)
    (number,) = numbers(alone, first)
    (key,) = (file for file in looks.look([alone.pid]) if file[:2] == number)
    others = [start(file) for file in (first, second)]
    found = looks.look([alone.pid, *(other.pid for other in others)])
    processes = {file: set(pieces) for file, pieces in found.items() if file[:2] == number}
    assert processes == {key: {alone.pid, others[0].pid}, (*number, second.stat().st_dev): {others[1].pid}}


@here
def test_what_faults_read_of_them_is_not_told_apart(twins: list[Path], start: Callable[..., Toucher]) -> None:
    """As long as nothing is read of either, nothing is read of both."""
    programs = [start(file) for file in twins]
    pids = [program.pid for program in programs]
    for tell, pages in (("wait", 0), ("random 60", None)):
        for file in twins:
            drop(file)
        with followed(pids) as trace:
            watch = Watch(lambda: pids, trace=trace)
            programs[0].tell(tell)
            watch.look()
            seen = watch.finish()
        assert {file.fault_pages for file in seen.files if Path(file.path) in twins} == {pages}
        assert ("subvolumes of btrfs" in seen.trace_doubt) == (pages is None)
        assert seen.untraced == ""


@here
def test_a_file_alone_with_its_number_is_told_of(twins: list[Path], start: Callable[..., Toucher]) -> None:
    drop(twins[0])
    program = start(twins[0])
    keys: set[MappedFile] = set(MappedFiles().look([program.pid]))
    with followed([program.pid]) as trace:
        program.tell("random 60")
        found = faults_of(trace, keys)
    (number,) = numbers(program, twins[0])
    assert found.files[(*number, twins[0].stat().st_dev)].read_pages >= 60 * 0.9
    assert found.doubt == ""
