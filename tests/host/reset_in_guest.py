# SPDX-License-Identifier: GPL-2.0-only
"""What ``test_reset.py`` has a guest do, with the tools, a file and their state in /data; needs no pytest.

``change`` cures an open file, says when the device has its window, and waits. ``after`` prints what is left. So does
``moment``, which then does an act as a whole, and once more up to a line of the tools, where it waits. There is no
keeper, which a reset takes along. ``processors`` prints how the kernel's trace takes those that are offline.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from foliohost import state
from foliohost.cli.main import main
from foliohost.cures import apply_to_device, apply_to_open_files, undo
from foliohost.devices import HostDevice, device_of
from foliohost.faults import faults_of, followed
from foliohost.state import applied
from foliohost.trace import read_trace
from foliohost.tracefs import tracefs
from foliohost.windows import open_in, set_device

FILE, TRACE = Path("/data/file"), Path("/data/trace")
BEFORE_KB, CURED_KB = 128, 16
_PACKAGE = str(Path(state.__file__).parent)


def change() -> None:
    device = device_of(FILE)
    set_device(device.attribute, BEFORE_KB)
    with FILE.open("rb") as stream:
        program = subprocess.Popen(["sleep", "600"], stdin=stream)

    def stop(*words: int) -> None:
        print(f"{device.read_ahead_kb} KiB", flush=True)
        time.sleep(600)

    os.posix_fadvise = stop
    apply_to_open_files([open_in(program.pid, FILE)], device, CURED_KB)


def cured_and_undone(device: HostDevice) -> dict[str, Any]:
    with FILE.open("rb") as stream, subprocess.Popen(["sleep", "600"], stdin=stream) as program:
        given = apply_to_open_files([open_in(program.pid, FILE)], device, CURED_KB)
        undone = [words for _, words in undo(lambda cure: True)]
        program.kill()
    return {"given": [(cure.before_kb, cure.read_ahead_kb) for cure in given.cures], "undone": undone}


def after() -> None:
    device = device_of(FILE)
    left = json.loads(Path(os.environ["FOLIOLAB_STATE"], "state.json").read_text())
    found = {"left": left, "device_kb": device.read_ahead_kb, "cures": len(applied())}
    found |= cured_and_undone(device)
    print(json.dumps({**found, "device_kb_at_last": device.read_ahead_kb}), flush=True)


def cure() -> None:
    """Of the device and of an open file, and the way back."""
    apply_to_device(FILE, CURED_KB * 2)
    cured_and_undone(device_of(FILE))


def record() -> None:
    assert main(["record", "-o", str(TRACE), "--", "sleep", "0.1"]) == 0


def processors() -> None:
    """How many the trace has a place for, what the buffer of each holds, and why faults are not followed."""
    record()
    with followed([os.getpid()]) as trace:
        buffer_bytes, untraced = trace._instance.buffer_bytes, faults_of(trace, []).untraced
    places = len(list((tracefs() / "per_cpu").iterdir()))
    print(json.dumps({"places": places, "buffer_bytes": buffer_bytes, "untraced": untraced}), flush=True)


def at_line(number: int, then: Callable[[], None], act: Callable[[], None]) -> int:
    """How many lines of the tools an act takes, ``then`` being called before the one of this number."""
    seen = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if event == "line":
            seen += 1
            if seen == number:
                then()
        return count

    sys.settrace(count)
    act()
    sys.settrace(None)
    return seen


def stop() -> None:
    print("now", flush=True)
    time.sleep(600)


def moment(name: str = "", share: str = "0") -> None:
    """What is left, an act as a whole, and what is left then; and that act up to this share of its lines."""

    def left() -> dict[str, Any]:
        touches = read_trace(TRACE).touches if TRACE.exists() else None
        return {"cures": len(applied()), "device_kb": device_of(FILE).read_ahead_kb, "touches": touches}

    found = left()
    TRACE.unlink(missing_ok=True)
    if name:
        act = {"cure": cure, "record": record}[name]
        lines = at_line(0, stop, act)
        print(json.dumps({"left": found, "lines": lines, "done": left()}), flush=True)
        TRACE.unlink(missing_ok=True)
        os.sync()
        at_line(1 + int(float(share) * lines), stop, act)
        stop()  # it took fewer lines this time
    print(json.dumps({"left": found}), flush=True)


if __name__ == "__main__":
    vars(state)["start_keeper"] = lambda directory: True
    {"change": change, "after": after, "moment": moment, "processors": processors}[sys.argv[1]](*sys.argv[2:])
