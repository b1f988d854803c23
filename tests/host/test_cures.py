# SPDX-License-Identifier: GPL-2.0-only
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost.cures import applied, apply_to_device, apply_to_open_file, boot_id, state_of, undo
from foliohost.devices import device_of
from foliohost.errors import NoCure
from tests.host.conftest import Toucher


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state/cures.json"


def states() -> list[tuple[int | None, int, str]]:
    return [(cure.pid, cure.read_ahead_kb, state_of(cure)) for cure in applied()]


def undo_all() -> list[str]:
    return [words for _, words in undo(lambda cure: True)]


def test_what_was_there_first_is_put_back(private_disk: Path) -> None:
    path = private_disk / "file"
    device = device_of(path)
    before = device.read_ahead_kb
    for window in (256, 64):
        assert apply_to_device(path, window).before_kb == before
        assert device.read_ahead_kb == window
    assert states() == [(None, 64, "holds")]
    assert undo_all() == [f"back to {before} KiB"]
    assert device.read_ahead_kb == before
    assert applied() == []


def test_what_somebody_else_has_set_stays(private_disk: Path) -> None:
    path = private_disk / "file"
    device = device_of(path)
    apply_to_device(path, 64)
    device.attribute.write_text("512")
    assert states() == [(None, 64, "somebody has set 512 KiB")]
    assert undo_all() == ["somebody has set 512 KiB"]
    assert device.read_ahead_kb == 512


def test_open_file(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    program = start(path)
    apply_to_open_file(program.pid, path, 64)
    assert states() == [(program.pid, 64, "holds")]
    assert undo_all() == [f"back to the device's {device_of(path).read_ahead_kb} KiB"]
    apply_to_open_file(program.pid, path, 64)
    program.tell("close")
    assert states() == [(program.pid, 64, "the file was closed")]
    with pytest.raises(NoCure, match="has no descriptor of this file"):
        apply_to_open_file(program.pid, path, 128)
    assert states() == [(program.pid, 64, "the file was closed")]
    program.end()
    assert states() == [(program.pid, 64, "the process has ended")]
    assert undo_all() == ["the process has ended"]


def test_what_cannot_be_put_back_keeps_nothing_else(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    apply_to_device(path, 64)
    apply_to_open_file(program.pid, path, 256)
    program.tell("hint")
    with pytest.raises(NoCure, match="it reads single pages"):
        undo_all()
    assert states() == [(program.pid, 256, "holds")]
    assert device_of(path).read_ahead_kb == before


def test_a_machine_that_was_started_anew(state: Path) -> None:
    cure = {"file": "/f", "device": "sda", "attribute": "/no", "read_ahead_kb": 16, "before_kb": 128, "boot": "other"}
    state.parent.mkdir()
    state.write_text(json.dumps({"cures": [cure, {**cure, "boot": boot_id()}]}))
    assert [words for _, _, words in states()] == ["the machine was started anew", "the device is gone"]
    assert undo_all() == ["the device is gone", "the machine was started anew"]
    assert applied() == []


@pytest.mark.parametrize("text", ["{", "[]", '{"cures": 3}', "[" * 9**6], ids=lambda text: text[:9])
def test_damaged_state(text: str, state: Path) -> None:
    state.parent.mkdir()
    state.write_text(text)
    with pytest.raises(NoCure, match=r"cures\.json is damaged"):
        applied()
