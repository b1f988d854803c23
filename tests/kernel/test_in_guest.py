# SPDX-License-Identifier: GPL-2.0-only
"""Our kernel code in booted kernels: KUnit and the kselftest."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import X86_64
from foliolab.kernel.build import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.paths import KERNEL
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk, Filesystem
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import splats

pytestmark = pytest.mark.boot


@pytest.fixture(scope="module")
def programs(source: Source, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The kselftest, and the programs of this directory, by name; all static."""
    place = tmp_path_factory.mktemp("programs")
    tools = source.tree / "tools"
    selftest = KERNEL / "files/tools/testing/selftests/mm/mmap_readahead.c"
    includes = [f"-I{tools / 'testing/selftests/mm'}", f"-I{tools / 'testing/selftests'}", f"-I{tools / 'include'}"]
    made = {}
    for code in (selftest, *(Path(__file__).parent / "programs").glob("*.c")):
        # As the selftests' own Makefile does, where <kselftest.h> is "../kselftest.h".
        command = [X86_64.compiler, "-O2", "-Wall", "-Werror", "-static", "-pthread", *includes, "-x", "c", "-"]
        text = code.read_text().replace('"../kselftest.h"', "<kselftest.h>")
        made[code.stem] = place / code.stem
        subprocess.run([*command, "-o", str(made[code.stem])], input=text.encode(), check=True)
    return made


def guest_config(kernel: BuiltKernel, programs: dict[str, Path], memory_mib: int = 1024) -> GuestConfig:
    extra = {f"/bin/{name}": path for name, path in programs.items()}
    archive = initramfs(guest_programs(X86_64, Reporter()), extra)
    return GuestConfig(X86_64, kernel.image, archive, choose(X86_64), memory_mib=memory_mib, cpus=2)


def ktap(output: str) -> tuple[list[str], list[str]]:
    """The tests of a KTAP report that passed and those that did not; skipped ones count as passed."""
    lines = [line.strip() for line in output.splitlines()]
    passed = [line for line in lines if re.match(r"ok \d", line)]
    failed = [line for line in lines if re.match(r"not ok \d|Bail out!", line)]
    return passed, failed


def run_selftest(config: GuestConfig, filesystem: Filesystem, console: Path) -> list[str]:
    """Run the kselftest on ``filesystem``; returns the lines of what it skipped."""
    disk = DataDisk(filesystem, 64 << 20).prepare(config, Reporter())
    with Guest(replace(config, disks=(disk,)), console) as guest:
        guest.run([":mount", "/dev/vda", "/data", filesystem]).checked()
        # The test works in the current directory, as kselftests do.
        done = guest.run(["in-directory", "/data", "mmap_readahead"], 300)
        output = done.stdout.decode()
        passed, failed = ktap(output)
        assert (failed, done.status) == ([], 0), output
        assert len(passed) >= 20, output
        assert splats(guest.console()) == []
    return [line for line in passed if "# SKIP" in line]


def test_selftest(patched_kernel: BuiltKernel, programs: dict[str, Path], tmp_path: Path) -> None:
    skipped = run_selftest(guest_config(patched_kernel, programs), "ext4", tmp_path / "console.log")
    # It holds pages locked by FUSE, which only the debug kernel has.
    assert [line for line in skipped if "no /dev/fuse" not in line] == []


@pytest.mark.debug
@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_selftest_on_the_debug_kernel(
    filesystem: Filesystem, debug_kernel: BuiltKernel, programs: dict[str, Path], tmp_path: Path
) -> None:
    assert run_selftest(guest_config(debug_kernel, programs), filesystem, tmp_path / "console.log") == []


@pytest.mark.debug
def test_kunit(debug_kernel: BuiltKernel, programs: dict[str, Path], tmp_path: Path) -> None:
    with Guest(guest_config(debug_kernel, programs), tmp_path / "console.log") as guest:
        console = guest.console()
    report = re.sub(r"^\[ *\d+\.\d+\] ?", "", console.replace("\r", ""), flags=re.MULTILINE)
    suite = report[report.index("# Subtest: mmap_readahead") :]
    passed, failed = ktap(suite)
    assert failed == []
    assert re.search(r"^ok \d+ mmap_readahead$", suite, re.MULTILINE)
    assert len(passed) >= 15
    assert splats(console) == []
