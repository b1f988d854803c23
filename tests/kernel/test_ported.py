# SPDX-License-Identifier: GPL-2.0-only
"""Our series for later kernels: it applies, is built, boots, and does there what it does on 6.12."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.files import KERNEL
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.debian_source import from_debian
from foliolab.kernel.name import BASE_VERSION, OURS
from foliolab.kernel.series import applied, read_series
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import splats
from tests.conftest import BASES
from tests.kernel.conftest import compiled
from tests.kernel.selftests import Programs, check_kunit, guest_config, guest_with_data, run_in, with_kunit

ADAPTIVE = "/sys/kernel/mm/mmap_readahead/adaptive"
TOUCHES, STRIDE = 200, 1021


def ported(version: str, pattern: str) -> tuple[str, ...]:
    """Our files in the series for a version that match, by their names without suffix."""
    files = [Path(file) for feature in read_series(version) for file in feature.files]
    return tuple(sorted(file.stem for file in files if file.match(pattern)))


def kunit_suites(version: str) -> tuple[str, ...]:
    return tuple(name.removesuffix("_kunit") for name in ported(version, "mm/*_kunit.c"))


@pytest.fixture(scope="module", params=[base for base in BASES if base != BASE_VERSION])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def programs(version: str, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The kselftests as the series fits them to that kernel."""
    source = from_debian(version)
    ours = tmp_path_factory.mktemp("selftests")
    for file, content in applied(source, [OURS]).items():
        if content is not None and Path(file).match("selftests/mm/*.[ch]"):
            (ours / Path(file).name).write_bytes(content)
    return compiled(ours, source)


@pytest.mark.boot
def test_the_policy_is_the_one_of_6_12(version: str) -> None:
    source = from_debian(version)
    changed = applied(source, [OURS])
    file = "mm/mmap_readahead_window.c"
    assert changed[file] == (KERNEL / "files" / file).read_bytes()
    assert b"mmap_readahead_adapted(vmf" in (changed["mm/filemap.c"] or b"")


def check_sparse_access(guest: Guest) -> None:
    """It reads what it touches."""
    guest.run([":write", "/sys/block/vda/queue/read_ahead_kb", "4096"]).checked()
    read = {}
    for adaptive in ("0", "1"):
        guest.run([":write", ADAPTIVE, adaptive]).checked()
        argv = ["sparse-mmap", "--file", DATA_FILE, "--pattern", "stride", "--stride", str(STRIDE)]
        done = guest.run([*argv, "--count", str(TOUCHES), "--drop-caches"], 120).checked()
        read[adaptive] = json.loads(done.stdout)["read_bytes"] // 4096
    print(read)  # for pytest -rP
    assert TOUCHES <= read["1"] < 5 * TOUCHES
    assert read["0"] > 100 * TOUCHES


@pytest.mark.boot
def test_it_works(version: str, programs: Programs, tmp_path: Path) -> None:
    """In one boot, which begins with KUnit; the kselftests are for the debug kernel. test_shell.py boots it too."""
    kernel = build(KernelRequest(NATIVE, f"debian:{version}+ours", "host"))
    assert kernel.version.startswith(f"{version}.") and kernel.ours
    config = with_kunit(guest_config(kernel, programs))
    disk = DataDisk("ext4", TOUCHES * STRIDE * 4096).prepare(config)
    with Guest(replace(config, disks=(disk,)), tmp_path / "console.log") as guest:
        guest.run([":mount", "/dev/vda", "/data", "ext4"]).checked()
        check_sparse_access(guest)
        console = guest.console()
    check_kunit(console, kunit_suites(version))
    assert splats(console) == []


@pytest.mark.boot
@pytest.mark.debug
@pytest.mark.skipif(not os.environ.get("FOLIOLAB_PORTED_DEBUG"), reason="takes half an hour; $FOLIOLAB_PORTED_DEBUG")
def test_it_works_on_the_debug_kernel(version: str, programs: Programs, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, f"debian:{version}+ours", "debug", ("xfs",)))
    with guest_with_data(with_kunit(guest_config(kernel, programs)), "xfs", tmp_path / "console.log") as guest:
        selftests = (name for name in ported(version, "selftests/mm/*.c") if not name.endswith("_util"))
        assert run_in(guest, selftests) == []
        console = guest.console()
    check_kunit(console, kunit_suites(version))
    assert splats(console) == []
