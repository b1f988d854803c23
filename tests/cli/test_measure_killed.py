# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliolab.campaign.store import read_samples
from foliolab.kernel.built import BuiltKernel
from tests.processes import started, wait_until
from tests.small import small_experiment

_PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Run:
    """A run of a small experiment with a store of its own, by which its processes are known: they inherit its name."""

    place: Path
    options: Sequence[str]

    @property
    def results(self) -> Path:
        return self.place / "results"

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[bytes]]:
        """Killed at the end of the block."""
        argv = ["-m", "foliolab", "measure", str(small_experiment(self.place)), "--json", *self.options]
        results = {"FOLIOLAB_RESULTS": str(self.results)}
        with (
            (self.place / "output").open("wb") as stream,
            started(*argv, environment=results, output=stream.fileno()) as process,
        ):
            yield process

    def processes(self) -> dict[int, tuple[str, int]]:
        """Command line and parent of each, be it a command, a worker or a guest."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                mine = f"FOLIOLAB_RESULTS={self.results}\0".encode() in (process / "environ").read_bytes()
                words = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                status = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if mine:
                found[int(process.name)] = (words, int(status[1]))
        return found

    def guests(self) -> dict[int, int]:
        """Their parents."""
        return {pid: parent for pid, (words, parent) in self.processes().items() if " -kernel " in words}

    def require_guest(self, process: subprocess.Popen[bytes]) -> tuple[int, int]:
        """Wait for a guest, and tell its parent as well."""
        seen: dict[int, int] = {}
        wait_until(lambda: seen.update(self.guests()) or seen or process.poll() is not None, _PATIENCE_SECONDS)
        assert seen
        return seen.popitem()

    def require_nothing(self) -> None:
        """Nothing is left a moment later."""
        wait_until(lambda: not self.processes())
        assert self.processes() == {}

    def require_all(self, process: subprocess.Popen[bytes]) -> None:
        """The command measures what is left, and then there are three cells, thrice each."""
        assert process.wait() == 0
        samples = json.loads((self.place / "output").read_bytes())["samples"]
        places = [(str(sample["cell"]), sample["variant"], sample["repetition"]) for sample in samples]
        assert len(set(places)) == len(places) == 3 * 3
        assert {sample["outcome"] for sample in samples} == {"ok"}
        assert len(read_samples(self.results / "samples.jsonl")) == len(samples)
        self.require_nothing()


@pytest.mark.boot
def test_a_run_killed_ten_times_measures_all_the_same(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    run = Run(tmp_path, ["--variant", "off,published,adaptive"])
    moments = random.Random(3)
    for _ in range(10):
        with run.started():
            time.sleep(moments.uniform(0.5, 5))
        run.require_nothing()
    with run.started() as process:
        run.require_all(process)


@pytest.mark.boot
def test_no_guest_outlives_its_worker_or_the_run_of_that(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    run = Run(tmp_path, ["--variant", "off", "--repetitions", "3", "--workers", "3"])
    with run.started() as process:
        run.require_guest(process)
    run.require_nothing()
    with run.started() as process:
        guest, worker = run.require_guest(process)
        assert worker != process.pid
        os.kill(worker, signal.SIGKILL)
        assert wait_until(lambda: guest not in run.guests())
        run.require_all(process)
