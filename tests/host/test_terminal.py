# SPDX-License-Identifier: GPL-2.0-only
import io

import pytest

from foliohost.terminal import Column, Terminal, print_table, terminal


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
