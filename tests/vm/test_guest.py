# SPDX-License-Identifier: GPL-2.0-only
"""Real boots: jobs, and every way in which a guest can fail to answer."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.errors import GuestCrashed, GuestHung, GuestOutOfMemory, HostLost, LabError, NoResult
from foliolab.vm.accel import choose
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import initramfs
from foliolab.vm.outcome import GuestFailure, Outcome, OutcomeKind, splats
from tests.machines import Machine
from tests.processes import alive, wait_until

pytestmark = pytest.mark.boot

ENDLESS = ["sparse-mmap", "--file", "/tmp/endless", "--create", "1M", "--passes", "99999999999", "--fraction", "1"]
OVERCOMMIT = [":write", "/proc/sys/vm/overcommit_memory", "1"]
HUNGRY = ["sparse-mmap", "--file", "/bin/sparse-mmap", "--count", "60000000"]  # wants 480 MB


@pytest.fixture(scope="module")
def guest(config: GuestConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """One guest for all jobs that leave it as it was."""
    with Guest(config, tmp_path_factory.mktemp("guest") / "console.log") as running:
        yield running


@pytest.fixture
def console(tmp_path: Path) -> Path:
    return tmp_path / "console.log"


def test_a_guest_tells_what_it_is(guest: Guest, machine: Machine) -> None:
    assert guest.ready.page_size == machine.page_size
    assert guest.ready.cpus == 2
    meminfo = guest.run([":read", "/proc/meminfo"]).checked().stdout.split()
    assert 200 << 10 < int(meminfo[meminfo.index(b"MemTotal:") + 1]) < 256 << 10
    assert guest.ready.release.endswith("-foliolab-patched")
    assert splats(guest.console()) == []


def test_a_job_gives_its_output_and_status(guest: Guest) -> None:
    pieces: list[tuple[int, bytes]] = []
    result = guest.run(["sparse-mmap", "--help"], on_output=lambda fd, data: pieces.append((fd, data)))
    assert (result.status, result.signal, result.stderr) == (0, 0, b"")
    assert result.stdout.startswith(b"Usage: sparse-mmap")
    assert b"".join(data for fd, data in pieces if fd == 1) == result.stdout
    assert result.checked() is result


def test_a_failed_job_gives_its_last_words(guest: Guest) -> None:
    result = guest.run(["sparse-mmap"])
    assert (result.status, result.stdout, result.stderr) == (2, b"", b"sparse-mmap: --file is missing; see --help.\n")
    with pytest.raises(NoResult, match=r"sparse-mmap ended with status 2: sparse-mmap: --file is missing"):
        result.checked()


@pytest.mark.parametrize(
    "name",
    ["/a b", '/"quoted\\" {[,:', "/tab\t, newline\n and \x01", "/größe 大 😀", "/\udcff\udcfe", "/" + 7000 * "long"],
    ids=["space", "marks", "control", "utf-8", "bytes", "long"],
)
def test_arguments_and_output_are_bytes(guest: Guest, name: str) -> None:
    result = guest.run(["sparse-mmap", "--file", name])
    assert result.status == 1
    assert name.encode("utf-8", "surrogateescape") in result.stderr


def test_the_environment_is_the_jobs_own(guest: Guest) -> None:
    assert guest.run(["sparse-mmap", "--help"], env={"PATH": "/nowhere"}).status == 127
    assert guest.run(["sparse-mmap", "--help"]).status == 0


def test_verbs_fail_with_a_reason(guest: Guest) -> None:
    assert guest.run([":write", "/proc/sys/vm/drop_caches", "1"]).checked().stderr == b""
    assert guest.run([":read", "/sys/nothing"]).stderr == b":read /sys/nothing: No such file or directory\n"
    assert guest.run([":list", "/sys/nothing"]).stderr == b":list /sys/nothing: No such file or directory\n"
    assert guest.run([":write", "/sys/nothing", "1"]).stderr == b":write /sys/nothing: No such file or directory\n"
    assert guest.run([":write", "/sys/nothing"]).stderr == b":write: wrong number of arguments\n"
    assert guest.run([":sing"]).stderr == b":sing: no such verb\n"
    assert guest.run([":mount", "/dev/vdz", "/data", "ext4"]).status == 1
    assert guest.run(["no-such-program"]).status == 127
    assert guest.run(["/proc/version"]).status == 126


def test_files_can_be_read_and_directories_listed(guest: Guest) -> None:
    guest.run([":write", "/proc/sys/vm/watermark_scale_factor", "12"]).checked()
    assert guest.run([":read", "/proc/sys/vm/watermark_scale_factor"]).checked().stdout == b"12\n"
    assert b"sparse-mmap" in guest.run([":list", "/bin"]).checked().stdout.split()


def test_a_job_without_memory_is_told_apart(guest: Guest) -> None:
    guest.run(OVERCOMMIT).checked()
    result = guest.run(HUNGRY)
    assert (result.signal, result.oom_kills) == (signal.SIGKILL, 1)
    with pytest.raises(GuestOutOfMemory, match="The guest had no memory left for sparse-mmap"):
        result.checked()
    assert guest.run(["sparse-mmap", "--help"]).status == 0


def test_what_is_no_job_is_refused(guest: Guest) -> None:
    with pytest.raises(NoResult, match="The guest's init cannot run"):
        guest.run(["sparse-mmap", "--file", "a\0b"])
    assert guest.run(["sparse-mmap", "--help"]).status == 0


def outcome_of(error: LabError) -> Outcome:
    assert isinstance(error, GuestFailure)
    return error.outcome


def test_a_crash_leaves_the_kernels_report_on_the_console(config: GuestConfig, console: Path) -> None:
    with pytest.raises(GuestCrashed, match="sysrq triggered crash") as caught, Guest(config, console) as guest:
        guest.run([":write", "/proc/sysrq-trigger", "c"])
    assert caught.value.status == 31
    assert "write_sysrq_trigger" in console.read_text()


def test_a_kernel_that_panics_at_boot(config: GuestConfig, programs: dict[str, Path], console: Path) -> None:
    without_init = replace(config, initramfs=initramfs({"sparse-mmap": programs["sparse-mmap"]}))
    with pytest.raises(GuestCrashed, match="Unable to mount root fs") as caught, Guest(without_init, console):
        pass
    assert outcome_of(caught.value).kind is OutcomeKind.GUEST_CRASH


def test_a_hang_shows_where_it_hangs(config: GuestConfig, console: Path) -> None:
    with (
        pytest.raises(GuestHung, match="The guest did not end sparse-mmap within") as caught,
        Guest(config, console) as guest,
    ):
        guest.run(ENDLESS, deadline_seconds=0.5)
    assert caught.value.status == 32
    assert "Comm: sparse-mmap" in console.read_text()


def test_a_boot_that_hangs(config: GuestConfig, console: Path) -> None:
    with (
        pytest.raises(GuestHung, match="The guest did not end its boot within"),
        Guest(replace(config, boot_deadline_seconds=0.1), console),
    ):
        pass


def test_memory_without_room_for_the_programs(
    config: GuestConfig, programs: dict[str, Path], console: Path, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(64 << 20))
    small = replace(config, memory_mib=192, initramfs=initramfs(programs, {"zzz": large}))
    with pytest.raises(GuestOutOfMemory, match="A guest of 192 MiB has no room for") as caught, Guest(small, console):
        pass
    assert caught.value.status == 33


def test_a_panic_for_want_of_memory(config: GuestConfig, console: Path) -> None:
    with (
        pytest.raises(GuestOutOfMemory, match="panic_on_oom") as caught,
        Guest(replace(config, boot_arguments="sysctl.vm.panic_on_oom=1"), console) as guest,
    ):
        guest.run(OVERCOMMIT).checked()
        guest.run(HUNGRY)
    assert caught.value.status == 33


def test_a_guest_that_leaves_without_an_answer(config: GuestConfig, console: Path) -> None:
    with (
        pytest.raises(NoResult, match="switched itself off without an answer") as caught,
        Guest(config, console) as guest,
    ):
        guest.run([":write", "/proc/sysrq-trigger", "o"])
        guest.run(ENDLESS)
    assert caught.value.status == 34


def test_a_reset_without_a_word(config: GuestConfig, console: Path) -> None:
    with pytest.raises(GuestCrashed, match="reset itself without a word"), Guest(config, console) as guest:
        guest.run([":write", "/proc/sysrq-trigger", "b"])


def test_qemu_killed_is_a_lost_host(native_config: GuestConfig, console: Path) -> None:
    with (
        pytest.raises(HostLost, match="QEMU went away: killed by SIGKILL") as caught,
        Guest(native_config, console) as guest,
    ):
        os.kill(guest._qemu._process.pid, signal.SIGKILL)
        guest.run(["sparse-mmap", "--help"])
    assert caught.value.status == 35


def test_a_kernel_that_qemu_cannot_load(config: GuestConfig, console: Path) -> None:
    with pytest.raises(HostLost, match="'/no/kernel'"), Guest(replace(config, kernel=Path("/no/kernel")), console):
        pass


def test_counted_instructions_repeat(config: GuestConfig, console: Path) -> None:
    arguments = config.arch.counting_boot_arguments
    counting = replace(config, accelerator=choose(config.arch, "icount"), cpus=1, boot_arguments=arguments)
    seconds = []
    with Guest(counting, console) as guest:
        for _ in range(5):
            argv = ["sparse-mmap", "--file", "/tmp/file", "--create", "4M", "--count", "2000", "--passes", "200"]
            result = guest.run(argv).checked().stdout
            seconds.append(float(result.split(b'"seconds": ')[1].split(b",")[0]))
    # The first run also faults in what the others find, and the kernel's own work may fall into any of them.
    least, next_to_it = sorted(seconds)[:2]
    assert least == pytest.approx(next_to_it, rel=0.02)


HOST = """
import sys
from pathlib import Path
from foliolab import process
from foliolab.arch import NATIVE
from foliolab.vm.accel import Accelerator
from foliolab.vm.outcome import GuestFailure
from foliolab.vm.guest import Guest, GuestConfig
kernel, initramfs, console, *options = sys.argv[1:]
config = GuestConfig(NATIVE, Path(kernel), Path(initramfs), Accelerator("test", tuple(options), patience=20))
with Guest(config, Path(console)) as guest:
    print(guest._qemu._process.pid, flush=True)
    guest.run(["sparse-mmap", "--file", "/tmp/x", "--create", "1M", "--passes", "99999999999"], None)
"""


# What is left if we are killed before the kernel has been told to kill QEMU as well.
UNPROTECTED = HOST.replace("kernel, initramfs", "process.dying_with_parent = list\nkernel, initramfs", 1)


@pytest.mark.parametrize(
    ("script", "number"),
    [(HOST, signal.SIGINT), (HOST, signal.SIGTERM), (HOST, signal.SIGKILL), (UNPROTECTED, signal.SIGKILL)],
    ids=["SIGINT", "SIGTERM", "SIGKILL", "unprotected"],
)
def test_qemu_dies_with_its_parent(
    native_config: GuestConfig, tmp_path: Path, script: str, number: signal.Signals
) -> None:
    argv = [sys.executable, "-c", script, str(native_config.kernel), str(native_config.initramfs)]
    argv += [str(tmp_path / "console.log"), *native_config.accelerator.options]
    # Started in the background, as by a job of continuous integration, we may ignore what a terminal sends.
    before = signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0) as host:
        if before is not None:
            signal.signal(number, before)
        assert host.stdout
        qemu = int(host.stdout.readline())
        os.killpg(host.pid, number)  # as a terminal does
        host.wait(60)
    assert wait_until(lambda: not alive(qemu))
