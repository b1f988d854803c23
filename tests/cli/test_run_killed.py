# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from foliolab.campaign.store import read_samples
from foliolab.kernel.built import BuiltKernel
from foliolab.paths import REPOSITORY
from tests.small import small_experiment


def processes_that_name(place: Path) -> list[str]:
    """Command lines in which ``place`` stands, as it does in those of our guests."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue  # it has ended meanwhile
        if str(place) in words:
            found.append(words)
    return found


@pytest.mark.boot
def test_a_run_killed_ten_times_measures_all_the_same(
    tmp_path: Path, patched_kernel: BuiltKernel, unpatched_kernel: BuiltKernel
) -> None:
    results = tmp_path / "results"
    environment = {**os.environ, "FOLIOLAB_RESULTS": str(results)}
    command = [sys.executable, "-m", "foliolab", "run", str(small_experiment(tmp_path)), "--json"]
    command += ["--variant", "unpatched,off,published"]
    moments = random.Random(3)
    for _ in range(10):
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.5, 5))
        process.kill()
        process.wait()
        time.sleep(0.5)
        assert processes_that_name(results) == []
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, check=True)
    samples = json.loads(done.stdout)["samples"]
    places = [(str(sample["cell"]), sample["variant"], sample["outcome"]) for sample in samples]
    assert len(set(places)) == len(places) == 3 * 3
    assert {outcome for _, _, outcome in places} == {"ok"}
    assert len(read_samples(results / "samples.jsonl")) == len(samples)
