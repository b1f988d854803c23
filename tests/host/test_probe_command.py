# SPDX-License-Identifier: GPL-2.0-only
import json
import signal
import subprocess
from pathlib import Path

import pytest

from foliohost.cli.main import main
from foliohost.errors import NoProbe
from tests.host.command import ARGV, host
from tests.host.conftest import large_file
from tests.processes import wait_until

__all__ = ["large_file"]


def test_a_file_and_its_directory(large_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (large_file, large_file.parent):
        assert main(["probe", str(path), "--seconds", "0.3", "--json"]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert err == ""
        assert found["files"] == [str(large_file)]
        for name in ("request_us", "page_us"):
            assert found[f"{name}_range"][0] <= found[name] <= found[f"{name}_range"][1] + 0.01
        assert found["request_kb"] >= 1


def test_on_a_terminal(large_file: Path) -> None:
    done = host("probe", str(large_file), "--seconds", "0.3", COLUMNS="120")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{large_file}: on ")
    assert "\nrequest_kb: " in done.stdout
    assert "reads/s, depth" in done.stdout


def test_an_interruption_ends_it_with_a_sentence(large_file: Path) -> None:
    argv = [*ARGV, "probe", str(large_file), "--seconds", "600"]
    before = sorted(large_file.parent.iterdir())
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        assert wait_until(lambda: large_file in _open_files(running.pid))
        running.send_signal(signal.SIGINT)
        _, words = running.communicate(timeout=60)
    assert (running.returncode, words) == (130, "foliolab-host: Interrupted.\n")
    assert sorted(large_file.parent.iterdir()) == before


def _open_files(pid: int) -> list[Path]:
    try:
        return [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["{}/absent"], 2, "There is no {}/absent."),
        (["{}"], NoProbe.status, "The largest files below {} have 0 MiB of data that can be read"),
        (["{}/small"], NoProbe.status, "{}/small is too small, with 0 MiB"),
        (["{}/hole"], NoProbe.status, "Only 0 of 64 MiB of {}/hole are data"),
        (["{}/small", "--seconds", "0"], 2, "--seconds is a time"),
    ],
)
def test_refusals(
    argv: list[str], status: int, words: str, large_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = large_file.parent / "refused"
    place.mkdir(exist_ok=True)
    (place / "small").write_bytes(b"x")
    (place / "hole").open("wb").truncate(64 << 20)
    assert main(["probe", *(word.format(place) for word in argv)]) == status
    out, err = capsys.readouterr()
    assert words.format(place) in err
    assert (out, err.count("\n")) == ("", 1)
