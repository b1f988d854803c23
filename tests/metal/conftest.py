# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metal.answered import bundled
from tests.metal.lab import Lab
from tests.metal.pretended import Pretended, pretended


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("foliolab.metal.machine._POLL_SECONDS", 0.02)
    for name in ("bzImage", "init", "disk.img"):
        (tmp_path / name).write_bytes(name.encode() * 512)
    (tmp_path / "kernel.json").write_text('{"compiler": "cc"}')
    return Lab(tmp_path)


@pytest.fixture
def pretence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretended]:
    with pretended(tmp_path / "machine", monkeypatch) as machine:
        yield machine


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the only boot of a bundle, with three steps."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    return bundled(tmp_path)
