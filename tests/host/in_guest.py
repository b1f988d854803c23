# SPDX-License-Identifier: GPL-2.0-only
"""What ``test_in_guest.py`` has a guest do, with the tools in /data and ``sparse-mmap`` in /files; needs no pytest.

Each word of the command line is a step, which prints a line of JSON.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foliohost import residency, tracefs
from foliohost.bits import count_ones
from foliohost.maps import Maps
from foliohost.record import LiveRecording, record
from foliohost.spool import Spool
from foliohost.target import StartedProgram
from foliohost.trace import write_trace

PROBE = "/files/sparse-mmap"
FILE = "/data/file"
FOUND = ("--memory", "warm", "--pattern", "stride", "--stride", "16", "--count", "1024")
"""Each touch is a fault that finds its page, and maps 16."""
READING = ("--pattern", "stride", "--stride", "64", "--count", "200")
"""Each reads a window of 128 KiB."""
CACHED = ("--memory", "warm", "--pattern", "stride", "--stride", "1", "--count", "4096")
"""Page after page: a fault maps 16 of them, and with ``fine`` one."""
LOOK_UPS = ("--pattern", "btree", "--count", "3000")


def probe(*options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(subprocess.check_output([PROBE, "--file", FILE, *options]))
    return found


def recorded(options: Sequence[str], **how: Any) -> tuple[dict[str, Any], LiveRecording]:
    """What the probe prints while it is recorded, and the recording."""
    with tempfile.TemporaryFile() as output:
        ours = os.dup(1)
        os.dup2(output.fileno(), 1)
        program = StartedProgram([PROBE, "--file", FILE, *options])
        os.dup2(ours, 1)
        recording = record(program, patterns=[FILE], **how)
        assert program.status() == 0
        output.seek(0)
        return json.loads(output.read()), recording


class Timed:
    """Processor time of all calls of a method, in nanoseconds, which are instructions by icount."""

    def __init__(self, owner: type, name: str) -> None:
        self.spent = self.calls = 0
        self._method: Callable[..., Any] = getattr(owner, name)
        setattr(owner, name, lambda *words: self._call(*words))

    def _call(self, *words: Any) -> Any:
        start = time.process_time_ns()
        try:
            return self._method(*words)
        finally:
            self.spent += time.process_time_ns() - start
            self.calls += 1


def cost() -> dict[str, Any]:
    """Instructions for each fault: of the program by itself, more of it while recorded, and of the recorder.

    What the recorder does without any events is told by itself: for each time that it fetches, and that it looks.
    """
    record(StartedProgram(["sleep", "0.3"]), patterns=[FILE])  # which loads what is loaded once
    fetches, looks, rest = Timed(Spool, "add"), Timed(Maps, "look"), Timed(tracefs.Instance, "stop")
    record(StartedProgram(["sleep", "1"]), patterns=[FILE])
    idle = fetches.spent / fetches.calls
    found: dict[str, Any] = {"fetch": idle, "look": looks.spent / looks.calls}
    cases: tuple[tuple[str, Sequence[str], dict[str, bool]], ...] = (
        ("found", FOUND, {}),
        ("reading", READING, {}),
        ("reads", READING, {"reads": True}),
        ("fine", CACHED, {"fine": True}),
    )
    for name, options, how in cases:
        alone = min(probe(*options)["cpu_seconds"] for _ in range(2))
        tries = []
        for _ in range(2):
            fetches.spent = fetches.calls = rest.spent = 0
            with_it, recording = recorded(options, **how)
            tries.append((with_it["cpu_seconds"], fetches.spent - fetches.calls * idle + rest.spent))
        faults = recording.trace.touches
        found[name] = {
            "faults": faults,
            "program": alone * 1e9 / faults,
            "recorded": (min(tries)[0] - alone) * 1e9 / faults,
            "reader": min(tries)[1] / faults,
            "lost": recording.trace.lost,
        }
    return found


def predict() -> dict[str, Any]:
    """A trace of look-ups, and what they read with each remedy."""
    _, recording = recorded(LOOK_UPS, fine=True)
    write_trace(Path("/tmp/trace"), recording.trace)
    found: dict[str, Any] = {"trace": base64.b64encode(Path("/tmp/trace").read_bytes()).decode()}
    window = window_of(FILE)
    for kib, hint in ((128, "normal"), (16, "normal"), (128, "random")):
        window.write_text(str(kib))
        found[f"{hint} {kib}"] = probe(*LOOK_UPS, "--hint", hint)["read_bytes"]
    return found


def window_of(file: str) -> Path:
    number = Path(file).stat().st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue/read_ahead_kb")


def diagnose() -> dict[str, Any]:
    """Of a few look-ups."""
    subprocess.run(["sh", "-c", "echo 3 > /proc/sys/vm/drop_caches"], check=True)
    argv = [sys.executable, "-m", "foliohost", "diagnose", "--json", "--", PROBE, "--file", FILE, "--count", "150"]
    found: dict[str, Any] = json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
    return found


def cure() -> dict[str, Any]:
    """The windows of an open file before a cure, with it and after, by one fault each; and what the cure tells."""
    argv = [sys.executable, "/files/toucher.py", FILE]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin and program.stdout
        program.stdout.readline()

        def read_kb() -> int:
            assert program.stdin and program.stdout
            program.stdin.write("page 1000\n")
            program.stdin.flush()
            program.stdout.readline()
            return count_ones(residency.cached(Path(FILE)) or 0) * 4

        def asked(*words: str) -> dict[str, Any]:
            argv = [sys.executable, "-m", "foliohost", "cure", *words, "--json"]
            found: dict[str, Any] = json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
            return found

        window_of(FILE).write_text("128")
        windows = [read_kb()]
        given = asked("apply", "--file", FILE, "--read-ahead-kb", "16")
        windows.append(read_kb())
        undone = asked("undo")
        windows.append(read_kb())
        program.stdin.close()
    return {"windows": windows, "given": given, "undone": undone, "device_kb": int(window_of(FILE).read_text())}


if __name__ == "__main__":
    for step in sys.argv[1:]:
        steps = {"cost": cost, "predict": predict, "diagnose": diagnose, "cure": cure}
        print(json.dumps({"step": step, **steps[step]()}), flush=True)
