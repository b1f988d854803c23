# SPDX-License-Identifier: GPL-2.0-only
"""What ./lab says when it is asked for help: at once, and all of it."""

import subprocess
import sys

import pytest

from foliolab.cli.main import _RENAMED, command_line, main
from foliolab.files import REPOSITORY


def test_each_command_has_a_line_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    known = command_line()._subparsers
    assert known is not None
    assert sorted(named) == sorted(known._group_actions[0].choices or ())
    assert max(map(len, lines)) <= 80


def test_help_waits_for_no_command() -> None:
    words = "import sys; from foliolab.__main__ import run; run(); print(*sys.modules, file=sys.stderr)"
    argv = [sys.executable, "-c", words, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    loaded = done.stderr.split()
    assert "foliolab.cli.main" in loaded
    assert not {"rich", "msgspec", "numpy", "foliolab.cli.measure"} & set(loaded)


def test_without_a_command_or_with_another_one_the_status_is_that_of_a_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "./lab COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["no-such"])
    assert "invalid choice: 'no-such'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["measure", "sparse-mmap", "--work", "2"], ["probe", "--js", "/file"]])
def test_options_are_written_whole(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (["run", "sparse-mmap"], "lab: 'run' is now 'measure'.\n"),
        (
            ["kernel", "export", "patched"],
            "lab: 'kernel export' is now 'git am' with a mailbox of release/.\n",
        ),
        (["kernel", "list"], "lab: 'kernel list' is now the files 'kernel.json' below ~/.cache/foliolab/kernels.\n"),
        (
            ["trace", "record", "--live", "-o", "x.trace", "--pid", "7"],
            "lab: 'trace record --live' is now 'record'.\n",
        ),
    ],
)
def test_a_command_of_earlier_versions_is_told_what_does_its_work(
    command: list[str], instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    assert capsys.readouterr().err == instead


def test_commands_of_earlier_versions_are_none_of_today(capsys: pytest.CaptureFixture[str]) -> None:
    parser = command_line()
    for called in _RENAMED:
        command, option, name = called.partition(" --")
        with pytest.raises(SystemExit, match="0" if option else "2"):
            parser.parse_args([*command.split(), "--help"])
        if option:
            assert option + name not in capsys.readouterr().out
