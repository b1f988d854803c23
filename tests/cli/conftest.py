# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from tests.cli.act import compiled
from tests.cli.workloads import COMPARED
from tests.small import small_experiment


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A static program that does what its first argument says, for this machine."""
    return compiled(NATIVE, tmp_path_factory.mktemp("program"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()
    return tmp_path / "results/samples.jsonl"


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """An experiment about three workloads."""
    file = small_experiment(tmp_path).rename(tmp_path / "programs.toml")
    text = file.read_text()
    start, end = text.index("cells ="), text.index("[workload]")
    cells = 'cells = [{ workload = ["gcc", "sqlite", "lmdb"] }]\nvariants = ["unpatched", "published"]\n'
    file.write_text(COMPARED + text[:start].replace('variants = ["off"]\n', "") + cells + text[end:])
    return str(file)
