# SPDX-License-Identifier: GPL-2.0-only
import json
import tempfile
from pathlib import Path

import pytest

from foliohost.cli.main import main
from foliohost.devices import device_of
from foliohost.errors import NoCure
from tests.host.command import host
from tests.host.conftest import nobody, private_disk

__all__ = ["nobody", "private_disk"]


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def test_device(private_disk: Path, state: str) -> None:
    path = private_disk / "file"
    device = device_of(path)
    before = device.read_ahead_kb
    done = host("cure", "apply", "--device-of", str(path), "--read-ahead-kb", "64", FOLIOLAB_STATE=state)
    assert f"{device.name}: {before} -> 64 KiB" in done.stdout
    (cure,) = json.loads(host("cure", "show", "--json", FOLIOLAB_STATE=state).stdout)["cures"]
    assert (cure["pid"], cure["read_ahead_kb"], cure["state"]) == (None, 64, "holds")
    assert device.name in host("cure", "show", FOLIOLAB_STATE=state).stdout
    done = host("cure", "undo", "--device-of", str(path), FOLIOLAB_STATE=state)
    assert done.stdout == f"{device.name}: back to {before} KiB.\n"
    assert device.read_ahead_kb == before
    assert host("cure", "undo", FOLIOLAB_STATE=state).stdout == "Nothing is applied.\n"


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["apply", "--read-ahead-kb", "16"], 2, "Say what to cure: --device-of FILE, or --pid P with --file FILE."),
        (["apply", "--pid", "1", "--read-ahead-kb", "16"], 2, "Say what to cure"),
        (["undo", "--file", "/x"], 2, "Say what to cure"),
        (["apply", "--device-of", "/no/such", "--read-ahead-kb", "16"], 2, "There is no file /no/such."),
        (["apply", "--device-of", "/proc/self/stat", "--read-ahead-kb", "64"], 42, "has no read_ahead_kb"),
        (["apply", "--device-of", __file__, "--read-ahead-kb", "99999999"], 2, "--read-ahead-kb is a multiple of"),
        (["apply", "--pid", "4194305", "--file", __file__, "--read-ahead-kb", "64"], 2, "no process 4194305"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_requests(
    argv: list[str],
    status: int,
    words: str,
    state: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FOLIOLAB_STATE", state)
    assert main(["cure", *argv]) == status
    out, err = capsys.readouterr()
    assert words in err
    assert (out, err.count("\n")) == ("", 1)


def test_it_takes_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nobody: None) -> None:
    try:
        device_of(Path("/bin/sh"))
    except NoCure as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory() as state:  # below tmp_path there is root alone
        monkeypatch.setenv("FOLIOLAB_STATE", state)
        assert main(["cure", "apply", "--device-of", "/bin/sh", "--read-ahead-kb", "64"]) == 41
    assert "Only root may write" in capsys.readouterr().err


def test_who_is_not_root_is_told_where_the_cures_of_root_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nobody: None
) -> None:
    with tempfile.TemporaryDirectory() as state:
        monkeypatch.setenv("FOLIOLAB_STATE", state)
        for verb in ("show", "undo"):
            assert main(["cure", verb]) == 0
            assert (
                capsys.readouterr().out
                == "Nothing is applied. What root applied, 'sudo foliolab-host cure show' tells.\n"
            )
