# SPDX-License-Identifier: GPL-2.0-only
"""Recorded touches, against programs whose touches are known."""

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.cli.main import main
from foliolab.errors import BuildError
from foliolab.trace.record import WINDOW, record, without_repeats
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from tests.guests import guest_with
from tests.machines import ARM64_4K, X86_64_4K, Machine

PAGES = 16384
COUNT = 4000

PATTERNS: dict[str, dict[str, str]] = {
    "random": {},
    "stride": {"stride": "1021"},
    "zipf": {},
    "sequential": {},
    "scan-random": {},
    # Half of the touches are within the window, and half are not.
    "random in 24 pages": {"region": str(24 / PAGES)},
}


def planned(tmp_path: Path, name: str, options: dict[str, str]) -> list[int]:
    """The pages that sparse-mmap touches, in order."""
    program = tmp_path / "pattern_pages"
    if not program.exists():
        source = Path(__file__).parents[1] / "guest/pattern_pages.c"
        process.run([process.tool(NATIVE.compiler), "-o", str(program), str(source)], BuildError)
    order = [name, "forward", options.get("stride", "0"), "0", "0", "0", options.get("region", "0"), "1"]
    return [int(line) for line in process.run([str(program), *order, str(PAGES), str(COUNT)], BuildError).split()]


def needed(touches: list[int], window: int) -> list[int]:
    """Those that are not of one of the last ``window`` distinct pages."""
    kept, last = [], list[int]()
    for page in touches:
        if page in last:
            last.remove(page)
        else:
            kept.append(page)
        last = [page, *last][:window]
    return kept


def found(wanted: list[int], touches: list[int]) -> int:
    """How many of ``wanted`` are in ``touches``, in order."""
    at = count = 0
    for page in wanted:
        try:
            at = touches.index(page, at) + 1
        except ValueError:
            continue
        count += 1
    return count


@pytest.fixture(scope="module", params=[X86_64_4K, ARM64_4K], ids=str)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    machine: Machine = request.param
    console = tmp_path_factory.mktemp("guest") / "console"
    disk = DataDisk("xfs" if "xfs" in machine.extras else "ext4", PAGES * 4096)
    with guest_with(disk, machine.kernel(), console) as guest:
        yield guest


@pytest.mark.boot
def test_touches_are_found_in_order(guest: Guest, tmp_path: Path) -> None:
    for label, options in PATTERNS.items():
        name = label.partition(" ")[0]
        argv = ["sparse-mmap", "--file", DATA_FILE, "--pattern", name, "--count", str(COUNT)]
        for option, value in options.items():
            argv += [f"--{option}", value]
        trace, status = record(guest, argv)
        assert (status, trace.cut, trace.lost) == (0, 0, 0)
        assert [(file.name, file.pages) for file in trace.files] == [("file", PAGES)]
        assert (trace.window, trace.page_size, set(trace.file_of)) == (WINDOW, 4096, {0})
        all_touches, touches = planned(tmp_path, name, options), list(trace.page_of)
        wanted = needed(all_touches, WINDOW)
        # More than that is there: what the kernel keeps mapped is less than the window.
        share = found(wanted, touches) / len(wanted)
        print(f"{label}: {len(wanted)} needed, {len(touches)} recorded, {share:.2%} found")  # for pytest -rP
        assert share == 1
        assert found(touches, all_touches) == len(touches)


@pytest.mark.boot
def test_what_is_recorded_is_bounded_and_files_are_told_apart(guest: Guest) -> None:
    argv = ["sparse-mmap", "--file", "/data/second", "--create", "1M", "--pattern", "sequential", "--count", "256"]
    trace, _ = record(guest, argv, most=100)
    assert (trace.cut, trace.other, trace.touches) == (156, {"cut": 156}, 100)
    assert [(file.name, file.pages) for file in trace.files] == [("second", 256)]
    assert list(trace.page_of) == list(range(100))
    # The program's status is passed on, and so is what was recorded until its end.
    failed, status = record(guest, ["sparse-mmap", "--file", "/data/none"])
    assert (status, failed.touches, failed.files) == (1, 0, ())
    # What it switched on is off again.
    assert guest.run([":read", "/sys/kernel/debug/page_touch/window"]).stdout == b"0\n"
    assert b"foliolab" not in guest.run([":list", "/sys/kernel/tracing/instances"]).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--disk", "ext4:64M", "-o", "/nowhere/t"], "--output: /nowhere is no directory."),
        (["--disk", "ext4:64M", "-o", "/"], "--output: / cannot be written."),
        (["--disk", "ext4:64M", "--copy", "/nowhere"], "There is no file /nowhere to copy."),
        (["--disk", "ext4:64M", "--data", "/tmp"], "--disk makes a data disk of its own"),
        ([], "Only files on /data are recorded"),
    ],
)
def test_what_cannot_be_recorded_is_known_before_a_boot(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "record", "-o", str(tmp_path / "t"), *words, "--", "./program"]) == 2
    assert sentence in capsys.readouterr().err


def test_repeats_are_left_out() -> None:
    files, pages = without_repeats(array("I", [0, 0, 0, 0, 0, 0, 1]), array("I", [1, 2, 1, 3, 2, 1, 1]), 2)
    assert list(zip(files, pages, strict=True)) == [(0, 1), (0, 2), (0, 3), (0, 2), (0, 1), (1, 1)]
