# SPDX-License-Identifier: GPL-2.0-only
"""A machine that is reset while a cure is half done, with the state of cures on a disk that keeps it."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.disks.userland import Packages
from foliolab.files import REPOSITORY
from foliolab.kernel.build import KernelRequest, build
from foliolab.vm.accel import choose
from foliolab.vm.data import Fresh
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.host import reset_in_guest
from tests.host.reset_in_guest import BEFORE_KB, CURED_KB
from tests.host.test_in_guest import KERNEL, PACKAGES


class Reset(Exception):
    pass


@contextmanager
def booted(config: GuestConfig, console: Path) -> Iterator[Callable[..., str]]:
    """What a step prints, in a guest that is gone behind the block, without a word to its kernel."""
    with Guest(config, console) as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        guest.run([":mount", "/dev/vdb", "/root", "xfs"]).checked()

        def step(name: str, on_output: Callable[[int, bytes], None] | None = None) -> str:
            command = ["measure", "--counters", "/counters", "--root", "/root", "--", "python3", "/files/steps.py"]
            environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/data", "FOLIOLAB_STATE": "/data/state"}
            done = guest.run([*command, name], 120, env=environment, on_output=on_output)
            return done.checked().stdout.decode()

        yield step


@pytest.mark.boot
def test_what_a_reset_leaves_on_a_disk_is_no_cure_of_the_next_boot(tmp_path: Path) -> None:
    content = tmp_path / "content"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "host/foliohost", content / "foliohost", ignore=without)
    (content / "file").write_bytes(os.urandom(4 << 20))
    kernel = build(KernelRequest(NATIVE, KERNEL))
    files = {"/files/steps.py": Path(reset_in_guest.__file__)}
    image = initramfs(guest_programs(NATIVE), files, kernel.modules)
    bare = GuestConfig(NATIVE, kernel.image, image, choose(NATIVE))
    disk = Fresh("ext4", None, content).prepare(bare, tmp_path)
    config = replace(bare, disks=(disk, Packages((PACKAGES,)).prepare(NATIVE, bare, tmp_path)))

    def reset(stream: int, text: bytes) -> None:
        assert (stream, text) == (1, b"%d KiB\n" % CURED_KB)
        raise Reset

    with pytest.raises(Reset), booted(config, tmp_path / "first") as step:
        step("change", reset)

    with booted(config, tmp_path / "second") as step:
        found = json.loads(step("after"))
    # The state was written, as a change that has begun. It was another boot's.
    assert found["left"]["change"]["meanwhile_kb"] == CURED_KB
    assert (found["device_kb"], found["cures"]) == (BEFORE_KB, 0)
    assert (found["given"], found["undone"]) == ([[BEFORE_KB, CURED_KB]], [f"back to {BEFORE_KB} KiB"])
    assert found["device_kb_at_last"] == BEFORE_KB
