# SPDX-License-Identifier: GPL-2.0-only
"""The module comes and goes while files change below those who fault in them.

``FOLIOLAB_STRESS_LOADS=3334 pytest -s`` shows how far it is.
"""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.files import cache_directory
from foliolab.kernel import module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.debian_headers import Headers, compiled, copy_sources
from foliolab.kernel.source import Source
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import complaints, splats

PROGRAM = Path(__file__).parent / "programs/module-reclaim.c"
LOADS = int(os.environ.get("FOLIOLAB_STRESS_LOADS", "0"))


def debug_kernel(source: Source, place: Path) -> tuple[Path, tuple[Path, ...]]:
    """The image of a kernel with KASAN and lockdep, and the module, built against it."""
    kernel = build(KernelRequest(NATIVE, "unpatched", "debug", ("ftrace",)))
    objects = cache_directory() / "build" / f"{source.home.name}-x86_64-debug-ftrace-unpatched"
    assert (objects / ".config").read_text() == kernel.config.read_text(), "another kernel was built there since"
    copy_sources(module.sources(), place)
    compiled(place, Headers(kernel.hash, objects / "source", objects), NATIVE.compiler)
    return kernel.image, (place / f"{module.NAME}.ko",)


@pytest.mark.boot
@pytest.mark.debug
@pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")
@pytest.mark.skipif(not LOADS, reason="takes kernels of its own, and time; FOLIOLAB_STRESS_LOADS asks for it")
@pytest.mark.parametrize("version", ["debug", "6.1", "6.12", "7.3"])
def test_it_comes_and_goes_while_files_change(version: str, source: Source, tmp_path: Path) -> None:
    if version == "debug":
        booted, modules = debug_kernel(source, tmp_path / "module")
    else:
        kernel = build(KernelRequest(NATIVE, f"image:debian:{version}+module"))
        booted, modules = kernel.image, kernel.modules
    program = tmp_path / "module-reclaim"
    subprocess.run([NATIVE.compiler, "-O2", "-Wall", "-Werror", "-static", "-o", program, PROGRAM], check=True)

    image = initramfs(guest_programs(NATIVE), {"/bin/module-reclaim": program}, modules)
    bare = GuestConfig(NATIVE, booted, image, choose(NATIVE), memory_mib=1024, cpus=2)
    disk = DataDisk("ext4", 320 << 20).prepare(bare)
    with Guest(replace(bare, disks=(disk,)), tmp_path / "console.log") as running:
        running.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        command = ["module-reclaim", module.NAME, f"/modules/{modules[-1].name}", "/data", str(LOADS)]
        done = running.run(command, 120 + 2 * LOADS, on_output=lambda _, text: print(text.decode(), end="", flush=True))
        words = done.checked().stdout.decode().splitlines()[-1].split()
        told = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
        # All but a few happened while others had to read for faults.
        assert min(told["loads_in_faults"], told["unloads_in_faults"]) > 0.9 * LOADS
        events = running.run([":read", "/sys/fs/cgroup/small/memory.events"]).checked().stdout.decode()
        assert re.search(r"^max [1-9]", events, re.MULTILINE)  # it was short of memory
        found = splats(running.console())
        assert (found if version == "debug" else complaints(found, real_time=False)) == []
