# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window under pseudo-random accesses, with the sanitizers of the compiler."""

import shutil
import subprocess
from pathlib import Path

import pytest

from foliolab import process
from foliolab.errors import BuildError
from foliolab.model.library import POLICY
from foliolab.paths import MODEL, REPOSITORY

_FLAGS = ("-g", "-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all", "-DFUZZ_STANDALONE")  # fmt: skip


def fuzzer(place: Path, breakage: tuple[str, str] | None = None, page_shift: int = 12) -> Path:
    """The fuzzer of the policy; ``breakage`` is a text of it, and what to put in its place."""
    for original in (MODEL / "fuzz.c", POLICY):
        copy = place / original.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    if breakage:
        policy = place / POLICY.relative_to(REPOSITORY)
        text = policy.read_text()
        assert text.count(breakage[0]) == 1, f"the policy does not have once: {breakage[0]}"
        policy.write_text(text.replace(*breakage))
    program = place / "fuzz"
    source = place / MODEL.relative_to(REPOSITORY) / "fuzz.c"
    pages = f"-DMMAP_READAHEAD_PAGE_SHIFT={page_shift}"
    process.run([process.tool("cc", "gcc"), *_FLAGS, pages, "-o", str(program), str(source)], BuildError)
    return program


def fuzz(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("page_shift", [12, 16])
def test_nothing_breaks(tmp_path: Path, page_shift: int) -> None:
    done = fuzz(fuzzer(tmp_path, page_shift=page_shift), "-runs=20000")
    assert (done.returncode, done.stderr) == (0, "")


BREAKAGES = {
    "the file's last page is forgotten": (
        "if (answer->size > miss->file_pages - answer->start)",
        "if (false)",
        "goes beyond the file",
    ),
    "runs know no limit": (
        "return limit < most ? limit : most;",
        "return limit < most ? ~0U / 2 : most + ~0U / 2;",
        "larger than the limit",
    ),
    "a visit meets a region again and again": (
        "if (!(visits->met & bit)) {",
        "if (visits) {",
        "regions were not counted that were met",
    ),
    "a visit goes on": (
        "++visits->misses >= MMAP_READAHEAD_VISIT",
        "++visits->misses > MMAP_READAHEAD_VISIT",
        "a visit does not end",
    ),
    "a region is left while it is back": (
        "visits->left = visits->dense & (visits->left | ~visits->met);",
        "visits->left = visits->dense;",
        "a region was left and is not",
    ),
    "a region that was lost still comes back": (
        "visits->dense &= ~bit;\n\tvisits->left &= ~bit;\n\tvisits->back &= ~bit;",
        "visits->dense &= ~bit;",
        "comes back that was not filled",
    ),
    "a run backward misses its page": (
        "answer->start = miss->index - (size - 1);",
        "answer->start = miss->index - size;",
        "does not read the missing page",
    ),
    "windows grow for ever": (
        "if (!mmap_readahead_may_grow(side, miss) ||",
        "if (false ||",
        "larger than any limit",
    ),
    "a run does not know where it ends": (
        "read->end = end + size;",
        ";",
        "goes on without a mark",
    ),
    "a run takes what it read for more": (
        "read->size = size;",
        "read->size = ~0U / 2;",
        "a read is too large",
    ),
    "a run goes on without a mark": (
        "answer.async_size = size;",
        "answer.async_size = size / 64;",
        "goes on without a mark",
    ),
    "reading alone has not been allowed": (
        "if (state->allowed < MMAP_READAHEAD_MAX_ALLOWED)",
        "if (false)",
        "read alone that may not be",
    ),
    "there are more regions than counts": (
        "regions = ((miss->file_pages - 1) >> shift) + 1;",
        "regions = ((miss->file_pages - 1) >> (shift -= 2)) + 1;",
        "runtime error: ",
    ),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_policy_is_found(name: str, tmp_path: Path) -> None:
    original, broken, complaint = BREAKAGES[name]
    done = fuzz(fuzzer(tmp_path, (original, broken)), "-runs=10000")
    assert done.returncode != 0
    assert complaint in done.stderr


def test_evicted_pages_before_a_run(tmp_path: Path) -> None:
    """Page 18, a run from 35 on that leaves out what is between, and an evicted page before both."""

    def touch(page: int) -> list[int]:
        return [0, 2 * page + 1]

    machine = [0, 9, 6, 4, 1, 1]
    evict_all, evict_64 = [10], [5 * 16 + 8, 1]
    cached_elsewhere = [15, *[0] * 96, 1, 0]
    ends_after_18, ends_nowhere = [14, 0, 2 * 18 + 1], [14, 1, 1]
    steps = [touch(0), evict_all, touch(100), cached_elsewhere, ends_after_18, touch(18), ends_nowhere, touch(35)]
    steps += [evict_64, touch(2)]
    (tmp_path / "input").write_bytes(bytes(sum(steps, machine)))
    done = fuzz(fuzzer(tmp_path), str(tmp_path / "input"))
    assert (done.returncode, done.stderr) == (0, "")


def test_inputs_in_files(tmp_path: Path) -> None:
    program = fuzzer(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 4)
    assert fuzz(program, str(tmp_path / "empty"), str(tmp_path / "noise")).returncode == 0
    assert fuzz(program, str(tmp_path / "none")).returncode == 2
