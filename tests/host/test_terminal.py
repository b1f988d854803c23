# SPDX-License-Identifier: GPL-2.0-only
import io
import subprocess
import sys

import pytest

from foliohost.terminal import Column, Terminal, print_table, terminal
from tests.host.command import ENVIRONMENT


def test_names_of_files_do_nothing_to_the_terminal() -> None:
    stream = io.StringIO()
    console = Terminal(stream, 80)
    console.out("/tmp/\x1b]0;title\x07\x9b2J\nnext \u00e4")
    print_table(console, [Column(("", "file"), ("\x1b[2J",), 0, left=True)])
    lines = stream.getvalue().splitlines()
    assert lines[0] == "/tmp/\\x1b]0;title\\x07\\x9b2J\\x0anext \u00e4"
    assert lines[-1] == "\\x1b[2J"


def test_a_file_has_all_columns_unless_it_is_told_how_wide_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [Column(("", title), ("x" * 50,), rank) for rank, title in enumerate(("file", "device"))]
    for width, titles in (("", ["file", "device"]), ("60", ["file"])):
        monkeypatch.setenv("COLUMNS", width)
        print_table(terminal(), columns)
        assert capsys.readouterr().out.splitlines()[1].split() == titles


TABLE = """
from foliohost.cli.ending import run_command
from foliohost.terminal import Column, print_table, terminal

def show():
    print_table(terminal(), [Column(("", "file"), ("\\udce9\\xe9\\u0444",), 0, left=True)])
    raise KeyboardInterrupt

run_command("it", show)
"""


@pytest.mark.parametrize(
    ("encoding", "line", "name"),
    [
        ("utf-8", "\u2500\u2500\u2500\u2500", b"\xe9\xc3\xa9\xd1\x84"),
        ("iso-8859-1", "----", b"\xe9\xe9\\u0444"),
        ("ascii", "----", b"\xe9\\xe9\\u0444"),
    ],
)
def test_characters_that_a_locale_has_not_are_told_otherwise(encoding: str, line: str, name: bytes) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", TABLE], env=environment, capture_output=True, check=False)
    assert done.stdout.splitlines()[1:] == [b"file", line.encode(encoding), name]
    assert done.stderr == b"it: Interrupted.\n"
