# SPDX-License-Identifier: GPL-2.0-only
"""What ``test_reset.py`` has a guest do, with the tools, a file and their state in /data; needs no pytest.

``change`` cures an open file, says when the device has its window, and waits. ``after`` prints what is left. There is
no keeper, which a reset takes along.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from foliohost import state
from foliohost.cures import apply_to_open_files, undo
from foliohost.devices import device_of
from foliohost.state import applied
from foliohost.windows import open_in, set_device

FILE = Path("/data/file")
BEFORE_KB, CURED_KB = 128, 16


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


def after() -> None:
    device = device_of(FILE)
    left = json.loads(Path(os.environ["FOLIOLAB_STATE"], "state.json").read_text())
    found = {"left": left, "device_kb": device.read_ahead_kb, "cures": len(applied())}
    with FILE.open("rb") as stream, subprocess.Popen(["sleep", "600"], stdin=stream) as program:
        given = apply_to_open_files([open_in(program.pid, FILE)], device, CURED_KB)
        found["given"] = [(cure.before_kb, cure.read_ahead_kb) for cure in given.cures]
        found["undone"] = [words for _, words in undo(lambda cure: True)]
        program.kill()
    print(json.dumps({**found, "device_kb_at_last": device.read_ahead_kb}), flush=True)


if __name__ == "__main__":
    vars(state)["start_keeper"] = lambda directory: True
    {"change": change, "after": after}[sys.argv[1]]()
