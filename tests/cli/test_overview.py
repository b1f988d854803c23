# SPDX-License-Identifier: GPL-2.0-only
"""What ./lab says when it is asked for help: at once, and all of it."""

import subprocess
import sys

import pytest

from foliolab.cli.main import command_line, main
from foliolab.files import REPOSITORY


def test_each_command_has_a_line_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines if line.startswith("  ")]
    known = command_line()._subparsers
    assert known is not None
    assert sorted(named) == sorted(known._group_actions[0].choices or ())
    assert max(map(len, lines)) <= 100


def test_help_waits_for_no_command() -> None:
    words = "import sys; from foliolab.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, cwd=REPOSITORY)
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
