# SPDX-License-Identifier: GPL-2.0-only
"""The tools as one file that some Python runs, and what they say of five small programs."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliolab.files import REPOSITORY
from tests.host import small_programs
from tests.host.test_large import ahead_of_others
from tests.host.toucher import drop
from tests.host.tracing import instances, obstacle
from tests.processes import wait_until

HOST = REPOSITORY / "host"
VERDICTS = {
    "random": "reads-too-much",
    "sequential": "nothing-wrong",
    "pread": "nothing-wrong",
    "openers": "reads-too-much",
    "fits": "fits-in-memory",
}
_LATE_SECONDS = 1
"""Of a report, after the program that it is about has ended."""
_STARTS = 5
"""Starts of the tool that may pass instead, where a machine is so busy that these take longer."""
_TRIES = 3


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tools as the one file that is copied to servers."""
    place = tmp_path_factory.mktemp("built") / "foliolab-host"
    subprocess.run([sys.executable, str(HOST / "build"), str(place)], check=True)
    return place


@dataclass(frozen=True)
class Tools:
    """The file as one Python runs it: in an empty directory, and without what anybody has installed or set."""

    minor: int
    python: str
    file: Path
    place: Path
    entered_by: tuple[str, ...] = ()
    """What comes before the command, to get to where that Python and the file are."""

    def run(self, *words: str, status: int = 0) -> str:
        """What a command says, which has to end with that status."""
        done = self.call(*words, status=status)
        return done.stdout or done.stderr

    def call(
        self, *words: str, status: int = 0, first: Callable[[], None] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What came of a command, which has to leave nothing behind; ``first`` is done by its process."""
        state = f"{self.place}/state"
        argv = [*self.entered_by, self.python, "-I", "-S", "-W", "error", str(self.file), *words]
        with subprocess.Popen(
            argv,
            cwd=self.place,
            env={"FOLIOLAB_STATE": state, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=first,
        ) as running:
            out, said = running.communicate()
        assert running.returncode == status, said
        # Who waits for the end of a cure, to put windows back, sees it a moment later.
        assert wait_until(lambda: not started_with(f"FOLIOLAB_STATE={state}")), started_with(f"FOLIOLAB_STATE={state}")
        assert obstacle() or instances(running.pid) == []
        return subprocess.CompletedProcess(argv, running.returncode, out, said)


def started_with(setting: str) -> list[str]:
    """The processes whose environment has this, in which they were started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if setting.encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append(f"{place.name}: {(place / 'cmdline').read_bytes()!r}")
    return found


def judge_all(tools: Tools, path: Path, program: str = small_programs.__file__, seen_as: str = "") -> None:
    """Have the tools look at each small program; ``program`` and ``seen_as`` are it and the file, where they run."""
    found = {}
    for name in VERDICTS:
        for _ in range(_TRIES):
            verdict, late, allowed = _judged(tools, path, [program, name, seen_as or str(path)])
            if late <= allowed:
                break
        found[name] = verdict
        print(f"{tools.python} {name}: {verdict}, {late:.2f} s after its end, of {allowed:.2f}")
        assert late <= allowed, name
    assert found == VERDICTS


def _judged(tools: Tools, path: Path, program: list[str]) -> tuple[str, float, float]:
    """The verdict, how much longer than the program it took, and how long that may be on this machine now."""
    # Looks that come late on a busy machine miss what a program did at its end.
    began = time.monotonic()
    tools.call("--version", first=ahead_of_others)
    allowed = max(_LATE_SECONDS, _STARTS * (time.monotonic() - began))
    drop(path)
    began = time.monotonic()
    words = ["diagnose", "--json", "--no-probe", "--", tools.python, *program]
    done = tools.call(*words, first=ahead_of_others)
    took = time.monotonic() - began
    (alone,) = re.findall(r"took (\S+) s", done.stderr)
    return json.loads(done.stdout)["verdict"], took - float(alone), allowed
