# SPDX-License-Identifier: GPL-2.0-only
import io

from foliohost.terminal import Column, Terminal, print_table


def test_names_of_files_do_nothing_to_the_terminal() -> None:
    stream = io.StringIO()
    console = Terminal(stream, 80)
    console.out("/tmp/\x1b]0;title\x07\x9b2J\nnext \u00e4")
    print_table(console, [Column(("", "file"), ("\x1b[2J",), 0, left=True)])
    lines = stream.getvalue().splitlines()
    assert lines[0] == "/tmp/\\x1b]0;title\\x07\\x9b2J\\x0anext \u00e4"
    assert lines[-1] == "\\x1b[2J"
