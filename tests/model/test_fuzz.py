# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window under pseudo-random accesses, with the sanitizers of the compiler."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from foliolab import process
from foliolab.errors import BuildError
from foliolab.files import MODEL, REPOSITORY
from foliolab.model.compiled import INCLUDES, WINDOW, WINDOW_HEADER

_FLAGS = ("-g", "-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-DFUZZ_STANDALONE")
_SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Takes longer to compile."""
FUZZER = MODEL / "fuzz.c"


def fuzzer(place: Path, breakage: tuple[Path, str, str] | None = None, checks: Sequence[str] = _SANITIZED) -> Path:
    """The fuzzer of the policy; ``breakage`` is one of both, a text of it, and what to put in its place."""
    for original in (FUZZER, WINDOW, WINDOW_HEADER):
        copy = place / original.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    if breakage:
        broken, old, new = breakage
        text = broken.read_text()
        assert text.count(old) == 1, f"{broken.name} does not have once: {old}"
        (place / broken.relative_to(REPOSITORY)).write_text(text.replace(old, new))
    program = place / "fuzz"
    sources = [str(place / source.relative_to(REPOSITORY)) for source in (FUZZER, WINDOW)]
    process.run([process.tool("cc"), *_FLAGS, *checks, *INCLUDES, "-o", str(program), *sources], BuildError)
    return program


def fuzz(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=300)


def test_nothing_breaks(tmp_path: Path) -> None:
    done = fuzz(fuzzer(tmp_path), "-runs=8000")
    assert (done.returncode, done.stderr) == (0, "")


BREAKAGES = {
    "the file's last page is forgotten": (
        "if (answer->size >= miss->file_pages - answer->start) {",
        "if (answer->size >= miss->file_pages) {",
        "goes beyond the file",
    ),
    "the end of the file has a mark": (
        "answer->async_size = 0;",
        "answer->async_size = answer->size;",
        "the missing page has the mark",
    ),
    "a stream backward misses its page": (
        "answer->start = miss->index - (size - 1);",
        "answer->start = miss->index - size;",
        "does not read the missing page",
    ),
    "a block of a region lies elsewhere": (
        "answer->start = round_down(miss->index, answer->size);",
        "answer->start = round_down(miss->index, answer->size) + answer->size;",
        "does not read the missing page",
    ),
    "windows grow for ever": (
        "if (2UL << side->order > miss->max_pages ||",
        "if (side->order > 40 ||",
        "larger than any limit",
    ),
    "patience grows for ever": (
        "side->patience = min(2 * side->patience, 16 * PATIENCE);",
        "side->patience *= 2;",
        "patience is out of bounds",
    ),
    "reading on has no limit": (
        "unsigned long size = min((single ? 1UL : 2UL) * read->size, most_at_once(mark));",
        "unsigned long size = 2UL * read->size;",
        "larger than the limit",
    ),
    "a forgotten read is not there": (
        "state->next = (state->next + 1) % MMAP_READAHEAD_READS;",
        "state->next++;",
        "no such read to forget",
    ),
    "a read does not know what it holds": (
        "read->index = miss->index;",
        "read->index = miss->index + answer->size;",
        "lies beside its page",
    ),
    "a stream does not know where it ends": (
        "read->end = max(read->end, answer->start + answer->size - 1);",
        "read->end = max(read->end, miss->index);",
        "a read is too large",
    ),
    "a stream goes on without a mark": (
        "answer->async_size = answer->size;",
        "answer->async_size = answer->size / 64;",
        "goes on without a mark",
    ),
    "a single miss has a mark itself": (
        "answer->async_size = ahead / 2;",
        "answer->async_size = ahead + 1;",
        "the missing page has the mark",
    ),
    "a mark of our own is left to others": (
        "		answer->size = 0;\n		return true;",
        "		answer->size = 0;\n		return false;",
        "a mark of our own is left to others",
    ),
    "what is gone is remembered": (
        "if (!state->ahead.patience || !miss->cached_pages)",
        "if (!state->ahead.patience || !miss)",
        "reads are remembered of which nothing is left",
    ),
    "a mark reads what is there": (
        "answer->start = read->end + 1;",
        "answer->start = mark->index;",
        "goes on where it has been",
    ),
    "memory settles what is not told yet": (
        "is_near(regions, miss) ||",
        "is_near(regions, miss) || miss->memory_pages % 2 ||",
        "it is settled by what is not known yet",
    ),
    "a miss is not counted": ("regions->nr += !step;", "", "the regions do not add up"),
    "there are more regions than counts": (
        "ilog2(miss->file_pages) - 3",
        "ilog2(miss->file_pages) - 5",
        "runtime error: ",
    ),
    "a folio is larger than what is read": (
        "return writes || size < 4 ? 0 : size < 64 ? 2 : ilog2(size) - 3;",
        "return 2;",
        "a folio is larger than the read",
    ),
    "a mark in the folio of its miss": (
        "return ilog2(answer->async_size ?: size);",
        "return ilog2(size);",
        "a folio has both the miss and the mark",
    ),
    "blocks that may be written": (
        "return writes ? 0 : ilog2(size);",
        "return ilog2(size);",
        "a page that is written dirties others",
    ),
    "all of a run is looked at": ("pages *= 2;", "pages++;", "looks at too many pages"),
}


BOUNDS = {
    "against single pages with as much memory": (
        "single.limit = size / (most_pages + 1);",
        "single.limit = size;",
        "more is asked for than single pages miss",
    ),
    "against single pages at the same price": (
        "asked_pages + request * requests > (most + request)",
        "asked_pages + request * requests > (most / most + request)",
        "reads cost too much",
    ),
    "against those who know the future": ("factor * cheapest()", "2 * cheapest()", "others read for much less"),
    "against windows": ("dense * around_cost + 3 * most", "2 * around_cost", "windows read for much less"),
    "pieces": ("stretches > 2 * requests", "stretches > requests", "reads fall into many pieces"),
}
"""What docs/window-bound.md proves, made stricter than any policy can be."""


def finds(place: Path, file: Path, breakage: tuple[str, str, str]) -> None:
    """Require a complaint about ``file`` with the first text of ``breakage`` replaced by the second."""
    original, broken, complaint = breakage
    checks = _SANITIZED if complaint.startswith("runtime error") else ()
    done = fuzz(fuzzer(place, (file, original, broken), checks), "-runs=10000")
    assert done.returncode != 0
    assert complaint in done.stderr


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_policy_is_found(name: str, tmp_path: Path) -> None:
    finds(tmp_path, WINDOW, BREAKAGES[name])


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_that_cannot_be_held_is_missed(name: str, tmp_path: Path) -> None:
    finds(tmp_path, FUZZER, BOUNDS[name])


def test_inputs_in_files(tmp_path: Path) -> None:
    program = fuzzer(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 4)
    assert fuzz(program, str(tmp_path / "empty"), str(tmp_path / "noise")).returncode == 0
    assert fuzz(program, str(tmp_path / "none")).returncode == 2
