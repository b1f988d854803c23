# SPDX-License-Identifier: GPL-2.0-only
"""A disk that takes time, in guests whose clock counts instructions."""

import json
from pathlib import Path

import pytest

from foliolab.arch import X86_64
from foliolab.device import Device, device_of, load_devices
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.timed_disk import EXTRA
from foliolab.vm.disk import DATA_FILE
from foliolab.vm.outcome import splats
from tests.guests import guest_on
from tests.machines import ALL_KERNELS

pytestmark = pytest.mark.boot

_TOUCHES = 400
"""Pages far from each other, each of which is read by a request of its own."""


@pytest.fixture(scope="module")
def kernel() -> BuiltKernel:
    return build(KernelRequest(X86_64, "patched", extras=(EXTRA,)))


def seconds(kernel: BuiltKernel, device: Device, console: Path) -> list[float]:
    """Of far pages and then of a part of the file in order, in one boot."""
    far = f"--pattern stride --stride 160 --count {_TOUCHES}"
    found = []
    with guest_on(kernel, device, console) as guest:
        guest.run([":mount", f"/dev/{guest.config.disk_name(0)}", "/data", "ext4", "ro"]).checked()
        guest.run([":write", f"/sys/block/{guest.config.disk_name(0)}/queue/read_ahead_kb", "16"]).checked()
        for pattern in (far, "--pattern sequential --count 8192"):
            argv = ["sparse-mmap", "--file", DATA_FILE, "--drop-caches", *pattern.split()]
            found.append(json.loads(guest.run(argv).checked().stdout)["seconds"])
    return found


def test_two_boots_take_as_long(kernel: BuiltKernel, tmp_path: Path) -> None:
    one, other = (seconds(kernel, load_devices()["sata"], tmp_path / f"console-{boot}") for boot in range(2))
    assert one == pytest.approx(other, rel=0.01)


def test_a_hard_disk_seeks_for_far_pages_and_not_for_near_ones(kernel: BuiltKernel, tmp_path: Path) -> None:
    disk = load_devices()["hdd"]
    far, near = seconds(kernel, disk, tmp_path / "console")
    # Each page lies 640 KiB beyond the last, which is less than what passes during a seek.
    passing = 160 * 4096 / (disk.megabytes_per_second * 1e6)
    assert far == pytest.approx(_TOUCHES * passing, rel=0.1)
    assert near == pytest.approx(8192 * 4096 / (disk.megabytes_per_second * 1e6), rel=0.25)


def test_a_disk_that_cannot_be_is_refused(kernel: BuiltKernel, tmp_path: Path) -> None:
    parameters = "/sys/module/timed_disk/parameters"
    with guest_on(kernel, None, tmp_path / "console") as guest:
        for profile in ("80", "80,0,0,64", "80,18001,0,64", "80,3000,0,0", "80,3000,0,65", "80,3000,0,64,1"):
            job = guest.run([":write", f"{parameters}/profile", profile])
            assert (profile, b"Invalid argument" in job.stderr) == (profile, True)
        job = guest.run([":write", f"{parameters}/add", "vdz"])
        assert b"No such file" in job.stderr


@pytest.mark.debug
@pytest.mark.skipif(not ALL_KERNELS, reason="the driver is in a debug kernel of its own; $FOLIOLAB_KERNELS")
def test_the_debug_kernel_has_nothing_to_complain_about(debug_kernel: BuiltKernel, tmp_path: Path) -> None:
    """Threads that fill the queue, pages that are written back, and a file that is the same after an unmount."""
    device, text = device_of("100,1000,20000,4"), "written and read\n"
    with guest_on(debug_kernel, device, tmp_path / "console.log", memory_mib=1024) as guest:
        disk = guest.config.disk_name(0)

        def mount() -> None:
            guest.run([":mount", f"/dev/{disk}", "/data", "ext4"]).checked()

        def sectors() -> tuple[int, int]:
            """That were read and written."""
            words = guest.run([":read", f"/sys/block/{disk}/stat"]).checked().stdout.split()
            return int(words[2]), int(words[6])

        mount()
        for case in (["pieces", "--form", "fits"], ["writes"]):
            before, written = sectors()
            argv = ["reports", "--file", DATA_FILE, "--drop-caches", "--case", *case]
            found = json.loads(guest.run(argv, 300).checked().stdout)
            read = (sectors()[0] - before) * 512
            # Not even a disk that does all at once is faster than its speed.
            assert read >= found["floor_bytes"] > 0, case
            assert found["seconds"] > found["floor_bytes"] / (device.megabytes_per_second * 1e6), case
        guest.run([":umount", "/data"]).checked()
        # The last case has written to thousands of pages.
        assert sectors()[1] > written + 8 * 1000
        mount()
        guest.run([":write", DATA_FILE, text]).checked()
        guest.run([":umount", "/data"]).checked()
        mount()
        assert guest.run([":read", DATA_FILE]).checked().stdout.decode() == text
        guest.run([":umount", "/data"]).checked()
        assert splats(guest.console()) == []
