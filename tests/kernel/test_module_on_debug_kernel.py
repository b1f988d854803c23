# SPDX-License-Identifier: GPL-2.0-only
"""The module in a kernel that checks itself, while files change below those who fault in them."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE, X86_64
from foliolab.kernel import module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.source import Source
from foliolab.paths import cache_directory
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats

PROGRAM = Path(__file__).parent / "programs/module-reclaim.c"
SECONDS = int(os.environ.get("FOLIOLAB_STRESS_SECONDS", "0"))


@pytest.mark.boot
@pytest.mark.debug
@pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")
@pytest.mark.skipif(not SECONDS, reason="takes a kernel of its own; FOLIOLAB_STRESS_SECONDS asks for it")
def test_files_that_change_on_the_debug_kernel(source: Source, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "unpatched", "debug", ("ftrace",)), Reporter())
    objects = cache_directory() / "build" / f"{source.home.name}-x86_64-debug-ftrace-unpatched"
    assert (objects / ".config").read_text() == kernel.config.read_text(), "another kernel was built there since"
    module.export(tmp_path / "module")
    make = ["make", "--silent", "-C", str(objects), f"M={tmp_path / 'module'}", f"CC={NATIVE.compiler}", "modules"]
    subprocess.run(make, check=True)
    built = tmp_path / f"module/{module.NAME}.ko"
    program = tmp_path / "module-reclaim"
    subprocess.run([NATIVE.compiler, "-O2", "-Wall", "-Werror", "-static", "-o", program, PROGRAM], check=True)

    image = initramfs(guest_programs(NATIVE, Reporter()), {"/bin/module-reclaim": program}, (built,))
    bare = GuestConfig(NATIVE, kernel.image, image, choose(NATIVE), memory_mib=1024, cpus=2)
    disk = DataDisk("ext4", 320 << 20).prepare(bare, Reporter())
    with Guest(replace(bare, disks=(disk,)), tmp_path / "console.log") as running:
        running.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        running.run([":write", "/sys/block/vda/queue/read_ahead_kb", "4096"]).checked()
        command = ["module-reclaim", module.NAME, f"/modules/{built.name}", "/data", str(SECONDS)]
        told = running.run(command, 120 + 2 * SECONDS).checked().stdout.decode()
        print(told)  # for pytest -rP
        assert int(told.split()[-1]) > 100
        events = running.run([":read", "/sys/fs/cgroup/small/memory.events"]).checked().stdout.decode()
        assert re.search(r"^max [1-9]", events, re.MULTILINE)  # it was short of memory
        assert splats(running.console()) == []
