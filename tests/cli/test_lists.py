# SPDX-License-Identifier: GPL-2.0-only
"""Options that take several names or numbers with commas between them, or one, and are given none."""

from pathlib import Path

import pytest

from foliolab.cli.main import main

NAMES = [
    "measure sparse-mmap --variant",
    "compare --no-run --variant",
    "compare --no-run --workload",
    "report --variant",
    "report --machine",
    "report --backend",
    "report sparse-mmap --released --table --column x=off --metric",
    "exec --variant",
    "exec --packages",
    "trace record -o /tmp/x.trace --packages",
    "trace replay --variant",
    "trace store -o /tmp --workload zipf --store",
    "trace store -o /tmp --store lmdb --workload",
    "reproduce --plan --only",
    "simulate --pattern",
    "simulate --device",
]
LIMITS = [
    "exec --data-size 64M --read-ahead-kb",
    "trace replay --read-ahead-kb",
]
PROGRAMS = ("exec", "trace record")
"""Commands that take the name of a program after all options."""


def said(command: str, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Status and complaint of a command whose last option has ``text``, which has to print nothing."""
    status = main([*command.split(), text, *(["./x"] if command.startswith(PROGRAMS) else [])])
    printed = capsys.readouterr()
    assert printed.out == ""
    return status, printed.err.removeprefix("lab: ")


@pytest.mark.parametrize("command", NAMES)
def test_no_name_is_empty(command: str, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "off,", " , off"):
        words = f"{command.split()[-1]} takes names with commas between them, and no empty one, not '{text}'.\n"
        assert said(command, text, capsys) == (2, words)
    assert not store.exists()


@pytest.mark.parametrize("command", LIMITS)
def test_no_window_is_empty(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "128,", 5000 * "9"):
        words = f"--read-ahead-kb takes numbers of KiB, such as 128,4096, not '{text}'.\n"
        assert said(command, text, capsys) == (2, words)


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("measure sparse-mmap --cell", 12, "No cell of this experiment matches ''; there are: "),
        (
            "measure sparse-mmap --kernel",
            24,
            "'' names no kernel; write for instance debian:6.12, or where a tree is.\n",
        ),
        ("compare --kernel", 24, "'' names no kernel"),
        ("compare --no-run --baseline", 11, "There is no variant ''; known: "),
        ("kselftest --kernel", 24, "'' names no kernel"),
        ("shell --kernel", 24, "'' names no kernel"),
        ("kernel build --kernel", 24, "'' names no kernel"),
        ("exec --kernel", 24, "'' names no kernel"),
        ("exec --data-size", 2, "'' is not a size"),
        ("exec --disk", 2, "'' is no disk; write ext4:2G"),
        ("report --scale", 2, "No experiment that was measured has a scale ''."),
        ("report sparse-mmap --scale", 2, "sparse-mmap has no scale ''"),
        ("record -o /tmp/x.trace --pid 1 --limit", 2, "'' is not a size"),
    ],
)
def test_no_name_alone_is_empty(
    command: str, status: int, words: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, complaint = said(command, "", capsys)
    assert (found, complaint[: len(words)]) == (status, words)
