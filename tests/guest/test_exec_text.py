# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine, and on a file system with large folios in a guest."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from foliolab.arch import NATIVE
from foliolab.experiment.variants import load_variants
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from foliolab.vm.switches import switched
from tests.guest.program import MIB, PAGE, as_nobody, failed, needs_root, run
from tests.guests import guest_with
from tests.machines import ARM64_4K, ARM64_64K, MACHINES, Machine

PROBE = "exec-text"
PAGES = 1000
TEXT_BYTES = 64 * MIB  # in guests

RETURN, INVALID = {"x86_64": (b"\xc3" * 4, b"\x0f\x0b" * 2), "arm64": (b"\xc0\x03\x5f\xd6", bytes(4))}[NATIVE.name]
STUBS = RETURN * (PAGE // 4)

ROWS = [
    "file_thp_aligned_16kb",
    "file_thp_aligned_32kb",
    "file_thp_aligned_64kb",
    "file_thp_aligned_128kb",
    "file_thp_unaligned_16kb",
    "file_thp_unaligned_128kb",
    "file_cont_aligned_64kb",
]

needs_4k = pytest.mark.skipif(PAGE != 4096, reason="the rows are those of pages of 4 KiB")


@pytest.fixture
def memory_file() -> Iterator[Path]:
    """Stubs on tmpfs, which has no device below it and folios of one page."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as stream:
        stream.write(STUBS * PAGES)
        stream.flush()
        yield Path(stream.name)


@needs_root
@needs_4k
def test_the_result_says_all(probe: Path, tmp_path: Path) -> None:
    file = tmp_path / "text"
    result = run(probe, "--file", file, "--size", str(PAGES * PAGE + 100))
    known = ["read_ahead_kb", "read_bytes", "read_requests", "file_alloc", "file_fallback"]
    assert [key for key in result if key not in known] == [
        *("probe", "file", "phase", "hint", "calls", "threads", "seed", "page_size", "text_bytes", "pgpgin_bytes"),
        *("floor_bytes", "major_faults", "minor_faults", "seconds", "touched_bytes"),
        *("mapped_bytes", "tlb_entries", "tlb_entries_uncoalesced", "contpte_share", *ROWS),
    ]
    asked = {"probe": "exec-text", "file": str(file), "phase": "cold", "hint": "none", "threads": 1, "seed": 1}
    assert asked.items() <= result.items()
    assert result["calls"] == PAGES
    assert result["text_bytes"] == result["touched_bytes"] == result["floor_bytes"] == PAGES * PAGE
    assert result["mapped_bytes"] == PAGES * PAGE
    assert 0 < result["seconds"] < 60


def test_what_others_than_root_cannot_know_is_left_out(probe: Path, memory_file: Path) -> None:
    memory_file.chmod(0o644)
    result = json.loads(as_nobody(probe, "--file", memory_file).stdout)
    assert result["touched_bytes"] == PAGES * PAGE
    # tmpfs has no device, either.
    for key in ("contpte_share", "tlb_entries", "mapped_bytes", *ROWS, "read_bytes", "read_requests"):
        assert key not in result


@pytest.mark.parametrize(
    ("arguments", "calls", "touched"),
    [
        ([], PAGES, PAGES),
        (["--size", str(10 * PAGE)], 10, 10),
        (["--fraction", "0.3"], 300, 300),
        (["--fraction", "0.0001"], 1, 1),
        (["--threads", "7"], PAGES, PAGES),
        (["--phase", "random", "--size", str(3 * PAGE), "--calls", "50000", "--threads", "2"], 50000, 3),
    ],
)
def test_the_pages_called(probe: Path, memory_file: Path, arguments: list[str], calls: int, touched: int) -> None:
    result = run(probe, "--file", memory_file, *arguments)
    assert (result["calls"], result["touched_bytes"]) == (calls, touched * PAGE)


def test_random_calls_are_seeded_and_uniform(probe: Path, memory_file: Path) -> None:
    first, again, other = (
        run(probe, "--file", memory_file, "--phase", "random", "--seed", seed)["touched_bytes"] for seed in "112"
    )
    assert first == again != other
    # Of n pages drawn n times, 1 - 1/e are drawn at least once.
    assert 590 * PAGE < first < 675 * PAGE


def test_the_random_phase_finds_everything_mapped(probe: Path, tmp_path: Path) -> None:
    result = run(probe, "--file", tmp_path / "text", "--size", "4M", "--phase", "random")
    assert (result["major_faults"], result["floor_bytes"]) == (0, 0)
    assert result["minor_faults"] < 20  # the thread's own


def test_paged_out_text_is_read_again(probe: Path, tmp_path: Path) -> None:
    """Text of a disk whose pages were in memory before has to come from there again."""
    result = run(probe, "--file", tmp_path / "text", "--size", "4M", "--phase", "paged-out", "--fraction", "0.5")
    assert (result["calls"], result["touched_bytes"]) == (2 * MIB // PAGE, 2 * MIB)
    assert result["floor_bytes"] == 2 * MIB
    assert result["pgpgin_bytes"] >= 2 * MIB


@needs_root
@needs_4k
def test_text_in_small_folios(probe: Path, memory_file: Path) -> None:
    result = run(probe, "--file", memory_file, "--fraction", "0.5")
    assert result["contpte_share"] == 0
    assert result["tlb_entries"] == result["tlb_entries_uncoalesced"] == PAGES // 2
    assert [result[row] for row in ROWS] == [0] * 7


def table_of(result: dict[str, Any]) -> dict[str, int]:
    """The rows that both programs have, as bytes, by their names in the metrics."""
    return {row: round(result[row] * result["mapped_bytes"]) for row in ROWS}


@needs_root
def test_the_probe_sees_of_itself_what_folios_sees(probe: Path, folios: Path, large_folios: Path) -> None:
    argv: list[str | Path] = [
        folios,
        "--json",
        "--run",
        "--",
        probe,
        "--file",
        large_folios / "text",
        "--size",
        "10600K",
    ]
    # A kernel short of memory may split huge pages between the two looks.
    for _ in range(3):
        done = subprocess.run(argv, capture_output=True, check=True)
        seen, table = json.loads(done.stderr), json.loads(done.stdout)
        rows = {row["name"].replace("-", "_").lower(): row["bytes"] for row in table["rows"]}
        # The probe itself is in files, too, but those are in small folios or at other places.
        if rows["file_cont_aligned_64kb"] >= table_of(seen)["file_cont_aligned_64kb"] > 8 * MIB:
            break
    else:
        pytest.fail(f"{rows} {table_of(seen)}")
    assert seen["contpte_share"] > 8 / 10.6
    assert seen["tlb_entries"] < seen["tlb_entries_uncoalesced"] <= seen["mapped_bytes"] / PAGE


def test_the_file_is_made_and_made_longer(probe: Path, tmp_path: Path) -> None:
    file = tmp_path / "text"
    assert failed(probe, "--file", file) == (1, f"exec-text: {file}: No such file or directory.")
    assert run(probe, "--file", file, "--size", str(PAGE + 5))["text_bytes"] == PAGE
    assert file.read_bytes() == (STUBS * 2)[: PAGE + 5]
    run(probe, "--file", file, "--size", "2M")
    assert file.read_bytes() == RETURN * (2 * MIB // 4)
    assert run(probe, "--file", file, "--size", "64K")["text_bytes"] == 64 << 10
    assert file.stat().st_size == 2 * MIB
    assert run(probe, "--file", file)["text_bytes"] == 2 * MIB


@pytest.mark.parametrize("content", [b"mine", STUBS + b"mine", b"\0" + STUBS * 4])
def test_a_file_of_something_else_is_left_alone(probe: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "precious"
    file.write_bytes(content)
    words = f"exec-text: {file} holds something else than return instructions; it is left alone."
    assert failed(probe, "--file", file, "--size", "1M") == (1, words)
    assert file.read_bytes() == content


def test_a_file_that_is_not_stubs_throughout(probe: Path, memory_file: Path) -> None:
    memory_file.write_bytes(STUBS * 10 + INVALID * (PAGE // 4) + STUBS * 10)
    sentence = "exec-text: The file does not hold return instructions throughout."
    assert failed(probe, "--file", memory_file) == (1, sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--file is missing; see --help."),
        (["--file", "x", "y"], "'y' is not an option; see --help."),
        (["--file", "x", "--phase", "warm"], "--phase has no value 'warm'; see --help."),
        (["--file", "x", "--hint", "normal"], "--hint has no value 'normal'; see --help."),
        (["--file", "x", "--calls", "5"], "--calls is for --phase random only."),
        (["--file", "x", "--phase", "paged-out", "--calls", "5"], "--calls is for --phase random only."),
        (["--file", "x", "--phase", "random", "--fraction", "1"], "--fraction is not for --phase random."),
        (["--file", "x", "--size", "5"], "--size is to be a page at least."),
        (["--file", "x", "--threads", "100000"], "--threads goes up to 1024."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"exec-text: {sentence}")


def test_files_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    assert failed(probe, "--file", tmp_path) == (1, f"exec-text: {tmp_path} is no regular file.")
    (tmp_path / "empty").touch()
    assert failed(probe, "--file", tmp_path / "empty") == (1, f"exec-text: {tmp_path}/empty holds less than a page.")


def booted(kernel: BuiltKernel, place: Path) -> AbstractContextManager[Guest]:
    """A guest with 64 MiB of text on XFS, which has large folios."""
    return guest_with(DataDisk("xfs", TEXT_BYTES, "stubs"), kernel, place / "console.log", "ro")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """Our kernel with all rules off, which reads as one without them."""
    kernel = ARM64_4K.kernel()
    with booted(kernel, tmp_path_factory.mktemp("guest")) as running:
        running.run(switched(load_variants()["off"].switches)).checked()
        yield running


def in_guest(guest: Guest, *arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the probe says, and the table of what it has mapped at its end."""
    command = ["exec-text", "--file", DATA_FILE, "--drop-caches", *arguments]
    done = guest.run(["folios", "--json", "--run", "--", *command]).checked()
    return json.loads(done.stderr), json.loads(done.stdout)


@pytest.mark.boot
def test_text_on_xfs_with_the_huge_page_hint(guest: Guest) -> None:
    # Readahead takes a huge page where it can have one at once, and small pages for the whole window otherwise.
    for _ in range(3):
        seen, _ = in_guest(guest, "--hint", "huge")
        if seen["contpte_share"] == 1:
            break
    assert seen["contpte_share"] == seen["file_cont_aligned_64kb"] == 1, seen
    assert seen["tlb_entries"] == seen["tlb_entries_uncoalesced"] == TEXT_BYTES / (2 * MIB)
    assert seen["read_bytes"] >= seen["floor_bytes"] == TEXT_BYTES
    assert seen["major_faults"] <= TEXT_BYTES / (2 * MIB)


@pytest.mark.boot
def test_text_on_xfs_without_a_hint(guest: Guest) -> None:
    seen, table = in_guest(guest, "--fraction", "0.5")
    assert seen["touched_bytes"] == TEXT_BYTES / 2
    assert 0 < seen["contpte_share"] < 1
    assert 0 < seen["tlb_entries"] < seen["tlb_entries_uncoalesced"] == seen["touched_bytes"] / 4096
    # The programs themselves are in the guest's initramfs, in folios of a page.
    rows = {row["name"].replace("-", "_").lower(): row["bytes"] for row in table["rows"]}
    assert {row: rows[row] for row in ROWS} == pytest.approx(table_of(seen), abs=4096)
    assert sum(rows[row] > 0 for row in ROWS) >= 2


@pytest.mark.boot
def test_the_folios_of_a_whole_guest(guest: Guest) -> None:
    done = guest.run(["folios", "--all", "--text"]).checked()
    assert b"\nall mapped text" in done.stdout
    assert b"Text mapped by 2 processes" in done.stdout  # init and folios


@pytest.mark.boot
@pytest.mark.parametrize(
    ("machine", "hint", "block"),
    [row for row in ((ARM64_4K, "none", 64 << 10), (ARM64_64K, "huge", 2 * MIB)) if row[0] in MACHINES],
    ids=str,
)
def test_text_in_contpte_blocks(machine: Machine, hint: str, block: int, tmp_path: Path) -> None:
    """Our kernel as it boots puts text into folios that are one TLB entry."""
    with booted(machine.kernel(), tmp_path) as running:
        seen, table = in_guest(running, "--hint", hint)
    assert seen["contpte_share"] == 1
    assert seen["tlb_entries"] == TEXT_BYTES / block
    assert seen["tlb_entries_uncoalesced"] == TEXT_BYTES / machine.page_size
    assert seen["file_alloc"] >= TEXT_BYTES / block
    rows = {row["name"]: row["bytes"] for row in table["rows"]}
    assert rows[f"file-thp-aligned-{block >> 10}kB"] == rows[f"file-cont-aligned-{block >> 10}kB"] == TEXT_BYTES
