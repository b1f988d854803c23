# SPDX-License-Identifier: GPL-2.0-only
import json
import os

import pytest

from foliolab.cli.folios import folios_of_text
from foliolab.errors import NotPermitted, UsageError
from tests.cli.command import lab, sentence
from tests.host.conftest import nobody

__all__ = ["nobody"]

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


@needs_root
def test_shares_of_text_are_what_the_table_has() -> None:
    found = folios_of_text([os.getpid()])
    table = json.loads(lab("folios", "--json", "--text", "--pid", str(os.getpid())).stdout)
    assert found.mapped_bytes == sum(found.by_size_kb.values()) + found.partial_bytes > 0
    # Less than that is mapped meanwhile by the second look.
    assert found.mapped_bytes == pytest.approx(table["mapped_bytes"], rel=0.2)
    large = sum(row["bytes"] for row in table["rows"] if "cont" not in row["name"])
    single = found.by_size_kb.get(table["page_size"] >> 10, 0)
    assert found.mapped_bytes - single == pytest.approx(large, rel=0.2, abs=1 << 20)


def test_what_keeps_folios_from_being_known(nobody: None) -> None:
    with pytest.raises(NotPermitted, match=r"^Only root sees in which folios memory is\.$"):
        folios_of_text([os.getpid()])


@needs_root
def test_nothing_is_known_of_what_has_ended() -> None:
    with pytest.raises(UsageError, match=r"^The program has ended; "):
        folios_of_text([])
