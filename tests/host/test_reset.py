# SPDX-License-Identifier: GPL-2.0-only
"""A machine that is reset while a cure or a recording is half done, with the state of cures on a disk that keeps it.

``$FOLIOLAB_KILLS`` is the number of resets at any moment; few by default, because each takes a boot.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

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

RESETS = int(os.environ.get("FOLIOLAB_KILLS", "2"))
ACTS = ("cure", "record")


class Reset(Exception):
    pass


@contextmanager
def booted(config: GuestConfig, console: Path) -> Iterator[Callable[..., str]]:
    """What a step prints, in a guest that is gone behind the block, without a word to its kernel."""
    with Guest(config, console) as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        guest.run([":mount", "/dev/vdb", "/root", "xfs"]).checked()

        def step(*words: str, on_output: Callable[[int, bytes], None] | None = None) -> str:
            command = ["measure", "--counters", "/counters", "--root", "/root", "--", "python3", "/files/steps.py"]
            environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/data", "FOLIOLAB_STATE": "/data/state"}
            done = guest.run([*command, *words], 120, env=environment, on_output=on_output)
            return done.checked().stdout.decode()

        yield step


@pytest.fixture
def config(tmp_path: Path) -> GuestConfig:
    """Guests that one after the other have the same disk, with the tools."""
    content = tmp_path / "content"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "host/foliohost", content / "foliohost", ignore=without)
    (content / "file").write_bytes(os.urandom(4 << 20))
    kernel = build(KernelRequest(NATIVE, KERNEL))
    files = {"/files/steps.py": Path(reset_in_guest.__file__)}
    image = initramfs(guest_programs(NATIVE), files, kernel.modules)
    bare = GuestConfig(NATIVE, kernel.image, image, choose(NATIVE))
    disk = Fresh("ext4", None, content).prepare(bare, tmp_path)
    return replace(bare, disks=(disk, Packages((PACKAGES,)).prepare(NATIVE, bare, tmp_path)))


def reset_in_the_moment(config: GuestConfig, console: Path) -> None:
    """While the device has the window of a cure."""

    def reset(stream: int, text: bytes) -> None:
        assert (stream, text) == (1, b"%d KiB\n" % CURED_KB)
        raise Reset

    with pytest.raises(Reset), booted(config, console) as step:
        step("change", on_output=reset)


def reset_at(share: float, act: str, config: GuestConfig, console: Path) -> dict[str, Any]:
    """Before this share of what an act does. Returns what the guest found before, and that the whole act left."""
    printed = b""

    def reset(stream: int, text: bytes) -> None:
        nonlocal printed
        printed += text if stream == 1 else b""
        if printed.endswith(b"\nnow\n"):
            raise Reset

    with pytest.raises(Reset), booted(config, console) as step:
        step("moment", act, str(share), on_output=reset)
    found: dict[str, Any] = json.loads(printed.splitlines()[0])
    return found


def check_left(left: dict[str, Any], act: str) -> None:
    """Nothing of a cure, and a whole trace or none."""
    assert (left["cures"], left["device_kb"]) == (0, BEFORE_KB), left
    assert left["touches"] is None or (left["touches"] > 0 and act == "record"), left


@pytest.mark.boot
def test_what_a_reset_leaves_on_a_disk_is_no_cure_of_the_next_boot(config: GuestConfig, tmp_path: Path) -> None:
    reset_in_the_moment(config, tmp_path / "first")

    with booted(config, tmp_path / "second") as step:
        found = json.loads(step("after"))
    # The state was written, as a change that has begun. It was another boot's.
    assert found["left"]["change"]["meanwhile_kb"] == CURED_KB
    assert (found["device_kb"], found["cures"]) == (BEFORE_KB, 0)
    assert (found["given"], found["undone"]) == ([[BEFORE_KB, CURED_KB]], [f"back to {BEFORE_KB} KiB"])
    assert found["device_kb_at_last"] == BEFORE_KB


@pytest.mark.boot
def test_a_reset_at_any_moment(config: GuestConfig, tmp_path: Path) -> None:
    """Of a cure or a recording; the next boot finds what was left, does the act as a whole, and is reset in it."""
    chance, before = random.Random(1), ""
    for number in range(RESETS):
        act, share = ACTS[number % len(ACTS)], chance.random()
        found = reset_at(share, act, config, tmp_path / str(number))
        print(f"reset {number}: {act}, before line {share * found['lines']:.0f} of {found['lines']}: {found['left']}")
        check_left(found["left"], before)
        check_left(found["done"], act)
        assert (found["done"]["touches"] is not None) == (act == "record")
        before = act
    with booted(config, tmp_path / "last") as step:
        check_left(json.loads(step("moment"))["left"], before)
