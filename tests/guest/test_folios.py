# SPDX-License-Identifier: GPL-2.0-only
"""The folio table, against the kernel's own tool and on commands of every kind."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliolab.kernel.source import Source
from tests.guest.program import MIB, PAGE, failed, failed_as_nobody, needs_root, run


def rows(table: dict[str, Any]) -> dict[str, int]:
    return {row["name"]: row["bytes"] for row in table["rows"]}


# Maps a file in many ways, touches it, says so and waits.
HOLD = """
import ctypes, os, sys
path, page = sys.argv[1], os.sysconf("SC_PAGESIZE")
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd, place, mib = os.open(path, os.O_RDONLY), 0x700000000000, 1 << 20
def touch(shift, offset, length, step=page, access=1):
    global place
    place += 64 * mib
    address = libc.mmap(place + shift, length, access, 2 | 0x10, fd, offset)  # private, fixed
    assert address == place + shift
    for i in range(0, length, step):
        ctypes.c_ubyte.from_address(address + i).value
touch(0, 0, 9 * mib, access=5)            # as aligned as it can be, and text
touch(16 * page, 0, 9 * mib)              # not aligned to the larger folios
touch(page, 0, 9 * mib)                   # not aligned at all
touch(5 * page, 5 * page, 3 * mib)        # begins and ends within a folio
touch(0, 0, 9 * mib, step=40 * page)      # what fault-around maps
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(large_folios: Path) -> Iterator[int]:
    """A process that has a file of large folios mapped in many ways."""
    file = large_folios / "file"
    file.write_bytes(os.urandom(10 * MIB + 300 * 1024 + 1))
    argv = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def thpmaps(source: Source, pid: int) -> Counter[str]:
    """What the kernel's own tool counts, PTEs and PMDs together: name -> bytes."""
    tool = [sys.executable, str(source.tree / "tools/mm/thpmaps")]
    argv = [*tool, "--pid", str(pid), "--rollup", "--inc-empty", "--cont", "64K", "--cont", "16K"]
    text = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
    counted = Counter[str]()
    for name, kib in re.findall(r"^(file-\S+): +(\d+) kB", text, re.MULTILINE):
        counted[re.sub("-(pte|pmd)-", "-", name)] += int(kib) * 1024
    return counted


def mapped_by_smaps(pid: int) -> int:
    """Bytes of files, by another file of /proc."""
    total = 0
    is_file = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            is_file = words[4] != "0"
        elif is_file and words[0] in ("Rss:", "Anonymous:"):
            total += int(words[1]) * (1024 if words[0] == "Rss:" else -1024)
    return total


@needs_root
def test_the_table_is_that_of_the_kernels_own_tool(folios: Path, source: Source, holder: int) -> None:
    ours = run(folios, "--pid", str(holder), "--cont", "64K", "--cont", "16K", "--json")
    theirs = thpmaps(source, holder)
    # Folios of two pages have no row there.
    assert {name: size for name, size in rows(ours).items() if not name.endswith("-8kB")} == dict(theirs)
    assert ours["mapped_bytes"] == mapped_by_smaps(holder)
    assert ours["rows"][0]["share"] == pytest.approx(ours["rows"][0]["bytes"] / ours["mapped_bytes"], abs=1e-6)
    for kind in ("thp-aligned-2048kB", "thp-unaligned-2048kB", "thp-partial", "cont-aligned-64kB"):
        assert theirs[f"file-{kind}"] > 0, kind


@needs_root
def test_text_and_its_tlb_entries(folios: Path, holder: int) -> None:
    everything, only_text = (run(folios, "--pid", str(holder), *more, "--json") for more in ([], ["--text"]))
    text = everything["text"]
    assert text == only_text["text"]
    assert text["bytes"] == only_text["mapped_bytes"] < everything["mapped_bytes"]
    # 9 MiB in blocks; of these, PMDs map as many as there are, and the rest of the text is in small folios.
    assert text["contpte_share"] == pytest.approx(9 * MIB / text["bytes"], abs=1e-6)
    small_pages = (text["bytes"] - 9 * MIB) // PAGE
    pmds = rows(only_text)["file-thp-aligned-2048kB"] // (2 * MIB)
    blocks = (9 - 2 * pmds) * MIB // (64 << 10)
    assert text["tlb_entries_contpte"] == text["tlb_entries"] == pmds + blocks + small_pages
    assert text["tlb_entries_uncoalesced"] == pmds + 16 * blocks + small_pages
    groups = text["tlb_entries_four_pages"] - pmds - 4 * blocks
    assert small_pages / 4 <= groups <= small_pages


@needs_root
def test_the_table_as_text(folios: Path, holder: int) -> None:
    done = subprocess.run([folios, "--pid", str(holder)], capture_output=True, check=True, text=True)
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["folios", "KiB", "%"]
    name, kib, share = lines[0].split()
    assert name.startswith("file-thp-aligned-")
    assert int(kib) > 0 <= float(share) < 100
    assert next(line for line in lines if line.startswith("all mapped files")).split()[-1] == "100.0"


@needs_root
def test_all_processes(folios: Path, holder: int) -> None:
    table, one = run(folios, "--all", "--json"), run(folios, "--pid", str(holder), "--json")
    assert table["processes"] > 1
    for name, size in rows(one).items():
        assert rows(table)[name] >= size


@needs_root
def test_what_cannot_be_looked_at(folios: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    assert failed(folios, "--pid", str(ended.pid)) == (1, f"folios: There is no process {ended.pid}.")
    sentence = "folios: /no/such/program: No such file or directory."
    assert failed(folios, "--run", "--", "/no/such/program") == (127, sentence)
    assert failed(folios, "--run", "--", "/etc/passwd")[0] == 126


def test_others_than_root_are_told_so(folios: Path) -> None:
    sentence = "folios: Only root may see in which folios memory is; run this as root."
    assert failed_as_nobody(folios, "--all") == (1, sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "One of --pid, --all and --run is needed; see --help."),
        (["--all", "--pid", "1"], "One of --pid, --all and --run is needed; see --help."),
        (["--run"], "--run takes a command; see --help."),
        (["--all", "x"], "'x' is not an option; see --help."),
        (["--pid", "me"], "--pid takes a number of at least 1, not 'me'."),
        (["--all", "--cont", "48K"], f"--cont takes a power of two of at least {2 * PAGE} bytes, not '48K'."),
        (["--all", "--cont", "1K"], f"--cont takes a power of two of at least {2 * PAGE} bytes, not '1K'."),
    ],
)
def test_bad_arguments(folios: Path, arguments: list[str], sentence: str) -> None:
    assert failed(folios, *arguments) == (2, f"folios: {sentence}")
