# SPDX-License-Identifier: GPL-2.0-only
import json
import os

import pytest

from tests.cli.command import lab, sentence

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root sees in which folios memory is")


@needs_root
def test_a_command_keeps_its_status_and_the_table_is_alone() -> None:
    done = lab("folios", "--json", "--text", "--cont", "16K", "--", "sh", "-c", "echo $0; exit 7", "--all")
    table = json.loads(done.stdout)
    assert (done.returncode, table["status"], table["processes"]) == (7, 7, 1)
    assert table["rows"][-1]["name"] == "file-cont-aligned-16kB"
    assert table["mapped_bytes"] == table["text"]["bytes"] > 0
    assert done.stderr.splitlines()[-1] == "--all"


@needs_root
def test_a_command_is_run_as_from_a_shell() -> None:
    """Python ignores SIGPIPE, and who inherits that writes into closed pipes for ever."""
    done = lab("folios", "--json", "--", "sh", "-c", "yes | head -n 1")
    assert json.loads(done.stdout)["processes"] == 3
    assert done.stderr.splitlines()[-1] == "y"


@needs_root
def test_processes() -> None:
    done = lab("folios", "--pid", str(os.getpid()), "--pid", str(os.getppid()))
    assert done.returncode == 0
    assert done.stdout.startswith("folios ")
    assert "Text mapped by 2 processes" in done.stdout


@pytest.mark.parametrize("argv", [[], ["--all", "--pid", "1"], ["--all", "--", "true"]])
def test_somebodys_folios_are_wanted(argv: list[str]) -> None:
    done = lab("folios", *argv)
    assert sentence(done) == "Say whose folios: --pid, --all, or -- and a command."
    assert done.returncode == 2
