# SPDX-License-Identifier: GPL-2.0-only
"""The probe by itself on this machine."""

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError
from foliolab.files import GUEST
from tests.guest.program import PAGE, failed, failed_as_nobody, run
from tests.processes import wait_until

PROBE = "sparse-mmap"
PAGES = 1000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(random.Random(1).randbytes(PAGES * PAGE + 100))
    return path


@pytest.fixture
def memory_file() -> Iterator[Path]:
    """A file on tmpfs, which has no device below it."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as stream:
        stream.truncate(PAGES * PAGE)
        yield Path(stream.name)


def test_the_help_explains_every_pattern(probe: Path) -> None:
    """No compiler complains of a table that ends too early."""
    as_long = "sizeof(pattern_helps) + sizeof(NULL) == sizeof(pattern_names)"
    checks = f'#include "windows/sparse-mmap.c"\n_Static_assert({as_long}, "pattern_helps[] lacks a pattern");'
    options = ["-x", "c", "-std=gnu11", "-fsyntax-only", f"-I{GUEST}", "-"]
    process.run([process.tool(NATIVE.compiler), *options], BuildError, stdin=checks.encode())
    assert b"(null)" not in subprocess.run([probe, "--help"], capture_output=True, check=True).stdout


KEYS = [
    "probe",
    "file",
    "pattern",
    "stride",
    "streams",
    "object",
    "burst",
    "order",
    "region",
    "count",
    "passes",
    "threads",
    "hint",
    "seed",
    "page_size",
    "file_bytes",
    "read_ahead_kb",
    "read_bytes",
    "read_requests",
    "major_faults",
    "minor_faults",
    "pgpgin_bytes",
    "faults",
    "cpu_seconds",
    "seconds",
    "pages_touched",
    "floor_bytes",
]


def test_a_warm_file_needs_no_reads(probe: Path, file: Path) -> None:
    result = run(probe, "--file", file, "--memory", "warm", "--passes", "10000")
    assert result["major_faults"] == 0 < result["minor_faults"]
    assert result["faults"] == result["minor_faults"]
    assert result["cpu_seconds"] > 0


def test_the_result_says_all(probe: Path, file: Path) -> None:
    result = run(probe, "--file", file)
    assert list(result) == KEYS
    asked = {"file": str(file), "pattern": "random", "stride": None, "passes": 1, "threads": 1, "hint": "normal"}
    assert asked.items() <= result.items()
    assert [result[name] for name in ("streams", "object", "burst", "order", "region")] == [None] * 5
    assert (result["count"], result["page_size"], result["file_bytes"]) == (PAGES // 100, PAGE, PAGES * PAGE + 100)
    assert result["floor_bytes"] == result["pages_touched"] * PAGE
    assert 0 < result["seconds"] < 60


@pytest.mark.parametrize(
    ("arguments", "touched"),
    [
        (["--pattern", "sequential", "--count", "10"], 10),
        (["--pattern", "sequential", "--count", "5000"], PAGES),
        (["--pattern", "reverse", "--count", "1000"], PAGES),
        (["--pattern", "stride", "--stride", "7", "--fraction", "1"], PAGES),
        (["--pattern", "stride", "--stride", "250", "--fraction", "1"], 4),
        (["--pattern", "stride", "--stride", "1003", "--count", "10"], 10),
        (["--pattern", "sequential", "--count", "10", "--passes", "3", "--threads", "4"], 10),
        (["--count", "1"], 1),
        (["--pattern", "streams", "--streams", "5", "--count", "1000"], PAGES),
        (["--pattern", "pingpong", "--count", "1000"], PAGES),
        (["--pattern", "objects", "--object", "9", "--order", "shuffled", "--count", "9"], 9),
        (["--pattern", "drift", "--stride", "1", "--count", "100"], 1),
        (["--region", "0.001", "--count", "100"], 1),
    ],
)
def test_the_pages_touched(probe: Path, memory_file: Path, arguments: list[str], touched: int) -> None:
    assert run(probe, "--file", memory_file, *arguments)["pages_touched"] == touched


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["--region", "0.25"], {"pattern": "random", "region": 0.25}),
        (["--pattern", "drift", "--stride", "8"], {"pattern": "drift", "stride": 8}),
        (["--pattern", "streams", "--streams", "3"], {"pattern": "streams", "streams": 3}),
        (["--pattern", "objects", "--object", "4"], {"pattern": "objects", "object": 4, "order": "forward"}),
        (
            ["--pattern", "objects", "--object", "4", "--order", "backward"],
            {"pattern": "objects", "object": 4, "order": "backward"},
        ),
        (["--pattern", "walk", "--stride", "8"], {"pattern": "walk", "stride": 8}),
        (["--pattern", "btree-scan", "--object", "4"], {"pattern": "btree-scan", "object": 4}),
        (["--pattern", "blobs", "--object", "9"], {"pattern": "blobs", "object": 9, "order": "forward"}),
        (
            ["--pattern", "hot-spots", "--object", "4", "--burst", "2"],
            {"pattern": "hot-spots", "object": 4, "burst": 2},
        ),
        *(
            (["--pattern", name, "--streams", "3", "--burst", "2"], {"pattern": name, "streams": 3, "burst": 2})
            for name in ("merge", "scanners")
        ),
        *(
            (
                ["--pattern", name, "--streams", "3", "--burst", "2", "--object", "9"],
                {"pattern": name, "streams": 3, "object": 9, "burst": 2},
            )
            for name in ("readers", "scan-readers")
        ),
        *([["--pattern", name], {"pattern": name}] for name in ("zipf", "btree", "scan-random", "phases")),
    ],
)
def test_the_settings_of_a_pattern(
    probe: Path, memory_file: Path, arguments: list[str], settings: dict[str, Any]
) -> None:
    result = run(probe, "--file", memory_file, *arguments)
    names = ("pattern", "stride", "streams", "object", "burst", "order", "region")
    assert {name: result[name] for name in names if result[name] is not None} == settings


def test_random_pages_are_seeded_and_uniform(probe: Path, memory_file: Path) -> None:
    first, again, other = (
        run(probe, "--file", memory_file, "--count", "1000", "--seed", seed)["pages_touched"] for seed in "112"
    )
    assert first == again != other
    # Of n pages drawn n times, 1 - 1/e are drawn at least once.
    assert 600 < first < 665


def test_every_first_touch_of_a_page_is_a_fault(probe: Path, memory_file: Path) -> None:
    """Holes of tmpfs are filled page by page, but neighbours that are in memory are mapped along."""
    sparse = run(probe, "--file", memory_file, "--pattern", "stride", "--stride", "16", "--count", "62")
    assert sparse["major_faults"] + sparse["minor_faults"] >= 62


def test_a_file_without_a_device(probe: Path, memory_file: Path) -> None:
    result = run(probe, "--file", memory_file)
    assert (result["read_bytes"], result["read_requests"], result["read_ahead_kb"]) == (None, None, None)


def test_create_writes_and_never_shortens(probe: Path, tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.write_bytes(b"mine")
    result = run(probe, "--file", path, "--create", "2M")
    assert result["file_bytes"] == path.stat().st_size == 2 << 20
    assert path.stat().st_blocks * 512 >= 2 << 20
    assert path.read_bytes()[:4] == b"mine"
    assert run(probe, "--file", path, "--create", "64K")["file_bytes"] == 2 << 20


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--file is missing; see --help."),
        (["--file", "x", "y"], "'y' is not an option; see --help."),
        (["--file", "x", "--pattern", "no-such"], "--pattern has no value 'no-such'; see --help."),
        (["--file", "x", "--pattern", "stride"], "--pattern stride needs --stride."),
        (["--file", "x", "--pattern", "drift"], "--pattern drift needs --stride."),
        (["--file", "x", "--stride", "3"], "--pattern random has no --stride."),
        (["--file", "x", "--pattern", "streams"], "--pattern streams needs --streams."),
        (["--file", "x", "--pattern", "zipf", "--streams", "3"], "--pattern zipf has no --streams."),
        (["--file", "x", "--pattern", "objects"], "--pattern objects needs --object."),
        (["--file", "x", "--pattern", "objects", "--order", "forward"], "--pattern objects needs --object."),
        (["--file", "x", "--pattern", "btree", "--object", "3"], "--pattern btree has no --object."),
        (["--file", "x", "--order", "forward"], "--pattern random has no --order."),
        (["--file", "x", "--burst", "3"], "--pattern random has no --burst."),
        (["--file", "x", "--pattern", "walk"], "--pattern walk needs --stride."),
        (["--file", "x", "--pattern", "merge", "--burst", "3"], "--pattern merge needs --streams."),
        (["--file", "x", "--pattern", "scanners", "--streams", "3"], "--pattern scanners needs --burst."),
        (["--file", "x", "--pattern", "readers", "--streams", "3"], "--pattern readers needs --object."),
        (["--file", "x", "--pattern", "phases", "--region", "1"], "--pattern phases has no --region."),
        (["--file", "x", "--region", "0"], "--region takes a number above 0 and up to 1, not '0'."),
        (["--file", "x", "--streams", "0"], "--streams takes a number of at least 1, not '0'."),
        (["--file", "x", "--order", "upward"], "--order has no value 'upward'; see --help."),
        (["--file", "x", "--fraction", "2"], "--fraction takes a number above 0 and up to 1, not '2'."),
        (["--file", "x", "--fraction", "nan"], "--fraction takes a number above 0 and up to 1, not 'nan'."),
        (["--file", "x", "--count", "-1"], "--count takes a number of at least 1, not '-1'."),
        (["--file", "x", "--count", "1x"], "--count takes a number of at least 1, not '1x'."),
        (["--file", "x", "--count", "1", "--fraction", "1"], "--fraction and --count exclude each other."),
        (["--file", "x", "--threads", "100000"], "--threads goes up to 1024."),
        (["--file", "x", "--create", "9999999999G"], "--create 9999999999G is too much."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"sparse-mmap: {sentence}")


def test_files_that_cannot_be_used(probe: Path, tmp_path: Path) -> None:
    assert failed(probe, "--file", "/no/file") == (1, "sparse-mmap: /no/file: No such file or directory.")
    (tmp_path / "empty").touch()
    assert failed(probe, "--file", tmp_path / "empty") == (1, f"sparse-mmap: {tmp_path}/empty holds less than a page.")


def test_dropping_all_caches_needs_root(probe: Path, memory_file: Path) -> None:
    memory_file.chmod(0o644)
    status, sentence = failed_as_nobody(probe, "--file", memory_file, "--drop-caches")
    assert (status, "--drop-caches needs root" in sentence) == (1, True)


def test_a_file_that_becomes_shorter(probe: Path, memory_file: Path) -> None:
    arguments = ["--file", str(memory_file), "--fraction", "1", "--passes", "999999999"]
    with subprocess.Popen([probe, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert wait_until(lambda: str(memory_file) in Path(f"/proc/{running.pid}/maps").read_text())
        os.truncate(memory_file, PAGE)
        _, words = running.communicate(timeout=30)
    assert running.returncode == 1
    assert words.startswith(b"sparse-mmap: A page could not be read")
