# SPDX-License-Identifier: GPL-2.0-only
import mmap
import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from foliohost import pages, residency
from foliohost.bits import _count_ones, count_ones, pack
from foliohost.pages import PageBits
from foliohost.processes import PAGE_BYTES, mappings, runs
from tests.host.command import ENVIRONMENT
from tests.processes import wait_until


def test_pack() -> None:
    numbers = random.Random(7)
    flags = bytes(numbers.randrange(2) for _ in range(1003))
    packed = pack(flags)
    assert [packed >> bit & 1 for bit in range(1003)] == list(flags)
    assert pack(b"") == 0


def test_ones() -> None:
    number = random.Random(7).getrandbits(100_003)
    assert _count_ones(number) == count_ones(number) == bin(number).count("1")
    assert _count_ones(0) == 0


def bits_of(chosen: Iterable[int]) -> PageBits:
    found = PageBits()
    for page in chosen:
        found.add_run(page, page + 1)
    return found


@pytest.mark.parametrize("around", [1, 4, 16])
@pytest.mark.parametrize("skew", [0, 3, 15])
def test_places_are_counted_one_by_one(skew: int, around: int) -> None:
    numbers = random.Random(skew)
    chosen = {numbers.randrange(50_000) for _ in range(3000)} | {4080, 4095, 4096}
    assert bits_of(chosen).arounds(skew, around) == len({(page + skew) // around for page in chosen})
    assert PageBits().arounds(skew, around) == 0


def test_sets_of_pages_are_those_of_python() -> None:
    numbers = random.Random(1)
    one, other = ({numbers.randrange(1 << 28) for _ in range(1000)} | {*range(5000, 9000)} for _ in range(2))
    one |= {*range(12_000, 13_000)}
    new = bits_of(one).since(bits_of(other))
    assert len(new) == len(one - other)
    assert all((page in new) == (page in one - other) for page in one | other)
    runs = PageBits()
    runs.add_run(4000, 13_000)
    runs.add(1 << 28, 0b101)
    assert len(runs) == 9002
    assert (1 << 28) + 2 in runs
    runs.update(bits_of(one))
    assert len(runs) == len({*range(4000, 13_000), 1 << 28, (1 << 28) + 2} | one)


def test_blocks_that_follow_one_another_are_told_from_chance() -> None:
    apart = bits_of(range(0, 64 * 50, 64))  # every fourth block
    assert apart.followers() == PageBits().followers() == 0
    numbers = random.Random(3)
    assert bits_of(16 * numbers.randrange(1000) for _ in range(200)).followers() < 20
    sparse = [16 * numbers.randrange(20_000) for _ in range(200)]
    assert bits_of([*sparse, *(page + 16 for page in sparse)]).followers() == pytest.approx(200, abs=20)


def test_how_often_blocks_were_met_is_told_by_those_that_were_not() -> None:
    assert bits_of(range(0, 64 * 50, 64)).crowds() == ((50, 0.0),)
    assert PageBits().crowds() == ()
    numbers = random.Random(3)
    for touches in (1600, 48_000):  # of 16,384 blocks
        crowds = bits_of(16 * numbers.randrange(16_384) for _ in range(touches)).crowds()
        blocks = sum(number for number, _ in crowds)
        mean = sum(number * met for number, met in crowds) / blocks
        assert mean == pytest.approx(touches / 16_384, rel=0.1)
    # Each part of a file by itself: here all 1,024 blocks that were met six times, and few of the others.
    both = bits_of(16 * numbers.randrange(pages) for pages in (1024, 65_536) for _ in range(6000))
    assert sum(number for number, met in both.crowds() if met > 4) == pytest.approx(1024, rel=0.02)
    assert sum(number for number, met in both.crowds() if met < 0.5) == pytest.approx(5700, rel=0.05)


@pytest.fixture(params=[True, False], ids=["scan", "read"])
def scans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the kernel scans page tables, or is taken for one that cannot."""
    scans: bool = request.param
    if scans and not pages._scans(os.getpid()):
        pytest.skip("this kernel has no PAGEMAP_SCAN")
    monkeypatch.setattr(pages, "_known", [scans])
    return scans


@pytest.mark.parametrize("piece", [1 << 16, 100])
def test_mapped_pages_are_those_touched(
    piece: int, scans: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fault-around, also neighbours; so one page of each of some distant blocks."""
    monkeypatch.setattr(pages, "_PIECE_PAGES", piece)
    monkeypatch.setattr(pages, "_SCAN_BYTES", piece * PAGE_BYTES)
    monkeypatch.setattr(pages, "_SCAN_REGIONS", 1)
    path = tmp_path / "file"
    with path.open("wb", buffering=0) as written:
        for _ in range(256):  # a folio each: since Linux 6.18 a fault may map all of one
            written.write(bytes(PAGE_BYTES))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as place:
        touched = [0, 100, 255]
        assert sum(place[page * PAGE_BYTES] for page in touched) == 0
        ours = [each for each in mappings(os.getpid()) if each.path == str(path)]
        found = pages.mapped(os.getpid(), ours)
        assert all(page in found for page in touched)
        assert len(found) <= 3 * pages.AROUND_PAGES
        assert pages.one_in(os.getpid(), ours) == 1


def test_private_copies_are_no_pages_of_the_file(scans: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(PAGE_BYTES))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as place:
        place[0] = 1
        ours = [each for each in mappings(os.getpid()) if each.path == str(path)]
        assert len(pages.mapped(os.getpid(), ours)) == 0


def test_some_windows_stand_for_all(scans: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the same ones, and half of them where half as many are looked at."""
    path, size = tmp_path / "file", 1 << 30
    path.touch()
    os.truncate(path, size)
    monkeypatch.setattr(pages, "MOST_ENTRIES", size // PAGE_BYTES // 3)
    monkeypatch.setattr(pages, "MOST_RUNS", 1)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), size, prot=mmap.PROT_READ) as place:
        place.madvise(mmap.MADV_RANDOM)
        for offset in range(0, size, 1 << 20):
            place[offset]
        ours = [each for each in mappings(os.getpid()) if each.path == str(path)]
        assert pages.one_in(os.getpid(), ours) >= 4
        whole, some, fewer = (pages.mapped(os.getpid(), ours, sparing) for sparing in (1, 2, 4))
        assert len(whole) >= 1024
        assert len(some) == pytest.approx(len(whole) / 2, rel=0.4)
        assert len(fewer) == pytest.approx(len(whole) / 4, rel=0.4)
        assert len(some.since(whole)) == len(fewer.since(some)) == 0


@pytest.mark.parametrize("opens", [False, True], ids=["zombie", "as in 6.7 to 6.15"])
def test_page_tables_of_a_process_that_has_ended_are_not_scanned(opens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux 6.7 to 6.15 opens them, gives nothing to read, and crashes at a scan; others may not open them."""
    ours, scanned = mappings(os.getpid()), []
    monkeypatch.setattr(pages, "_known", [])
    monkeypatch.setattr("fcntl.ioctl", lambda *words: scanned.append(words))
    with subprocess.Popen(["true"]) as ended:
        assert wait_until(lambda: not runs(ended.pid))
        with pytest.MonkeyPatch.context() as patch:
            if opens:
                empty = os.open
                patch.setattr(os, "open", lambda path, flags: empty(os.devnull, flags))
            assert pages._scans(ended.pid) is False
            with pytest.raises((ProcessLookupError, PermissionError)):  # the second, unless we are root
                pages.mapped(ended.pid, ours)
    assert (scanned, pages._known) == ([], [])


def test_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(9 * PAGE_BYTES + 1))
    assert residency.cached(path) == (1 << 10) - 1
    (tmp_path / "empty").touch()
    assert residency.cached(tmp_path / "empty") == 0
    assert residency.cached(tmp_path / "absent") is None


@pytest.mark.usefixtures("nobody")
def test_what_is_cached_of_others_files_is_not_guessed() -> None:
    assert residency.cached(Path("/bin/sh")) is None


CACHED = (
    "import sys; from pathlib import Path; from foliohost import residency; print(residency.cached(Path(sys.argv[1])))"
)


@pytest.mark.parametrize("mode", [0o644, 0o666])
@pytest.mark.parametrize(
    "within",
    [["unshare", "--map-root-user"], ["setpriv", "--bounding-set", "-fowner,-dac_override"]],
    ids=["user namespace", "fewer capabilities"],
)
def test_a_root_that_owns_not_all_files_is_told_nothing_of_others(within: list[str], mode: int, tmp_path: Path) -> None:
    """Unless it may write them."""
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * PAGE_BYTES))
    if os.geteuid() or subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("to give a file to somebody takes root, and not every machine has name spaces of users")
    os.chown(path, 12345, 12345)
    path.chmod(mode)
    argv = [*within, sys.executable, "-c", CACHED, str(path)]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ("None" if mode == 0o644 else "3")


@pytest.mark.parametrize(
    ("capabilities", "users", "all_files"),
    [
        ("000001ffffffffff", "         0          0 4294967295\n", True),
        ("0000000000000008", "0 0 4294967295", True),
        ("000001fffffffff7", "0 0 4294967295", False),
        ("000001ffffffffff", "0 1000 1", False),
        ("000001ffffffffff", "0 0 1\n1 1 4294967294\n", False),
    ],
)
def test_who_owns_all_files(capabilities: str, users: str, all_files: bool) -> None:
    status = f"Name:\tx\rCapEff:\t{8 * 'f'}\nCapPrm:\t{16 * 'f'}\nCapEff:\t{capabilities}\n"
    assert residency.is_owner_of_all(status.encode(), users.encode()) == all_files


def test_of_another_file_than_the_one_that_is_meant_nothing_is_told(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_bytes(bytes(PAGE_BYTES))
    assert (residency.cached(one, one.stat()), residency.cached(one, other.stat())) == (1, None)
