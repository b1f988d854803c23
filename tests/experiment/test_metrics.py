# SPDX-License-Identifier: GPL-2.0-only
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment
from foliolab.experiment.metrics import METRICS, Kind, figure, load_metrics
from foliolab.files import EXPERIMENTS, REPOSITORY


def test_a_sum_is_made_of_its_parts_unless_it_was_counted_itself() -> None:
    assert figure({"major_faults": 2, "minor_faults": 3}, "faults") == 5
    assert figure({"major_faults": 2, "minor_faults": 3, "faults": 4}, "faults") == 4
    assert figure({"major_faults": 2}, "faults") is None
    assert figure({"major_faults": 2}, "major_faults") == 2


def test_whatever_is_made_of_instructions_is_only_there_with_them() -> None:
    quotients = [metric for metric in METRICS.values() if metric.quotient]
    assert quotients
    assert all(metric.by_instructions and metric.kind is Kind.RATE for metric in quotients)


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ('kind = "bits"', "'read_bytes.kind' has to be one of bytes, count, rate, millions, share, seconds, speed."),
        ("more_is_better = false", "'read_bytes.kind' is missing."),
        ('kind = "bytes", name = "read"', "'read_bytes.name' is not a key that is known here."),
        ('kind = "bytes", unit = "MiB"', "'read_bytes.unit' is not a key that is known here."),
        ('kind = "bytes", sum = ["read"]', "'read_bytes.sum' names 'read', which is not one of read_bytes, "),
    ],
)
def test_mistakes_are_named_with_their_keys(new: str, words: str, tmp_path: Path) -> None:
    text = (EXPERIMENTS / "metrics.toml").read_text()
    file = tmp_path / "metrics.toml"
    file.write_text(text.replace('kind = "bytes"', new, 1))
    with pytest.raises(BadExperiment) as error:
        load_metrics(file)
    assert f"{file}: {words}" in str(error.value)


def test_a_mistake_ends_every_command_with_a_sentence(tmp_path: Path) -> None:
    without = shutil.ignore_patterns("__pycache__")  # others write there meanwhile
    for name in ("foliolab", "host"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=without)
    file = tmp_path / "experiments/metrics.toml"
    file.parent.mkdir()
    file.write_text("read_bytes = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "foliolab", "report"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    words = f"lab: {file}: 'read_bytes' is wrong: expected `table`, got `int`.\n"
    assert (done.returncode, done.stdout, done.stderr) == (BadExperiment.status, "", words)
