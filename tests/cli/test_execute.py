# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the user's in guests, through the real command line."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foliolab.arch import ARM64, NATIVE, size_name
from foliolab.files import REPOSITORY
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.image import guest_programs
from tests.cli.act import cells, compiled
from tests.cli.command import lab, sentence
from tests.machines import MACHINES


def scratch_of(pid: int) -> Path:
    """The directory of its disks that a command has, by what its guest was started with."""
    (guest,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = re.search(r"file=([^,\0]*/temporary/[^/]+)/", Path(f"/proc/{guest}/cmdline").read_text())
    assert found
    return Path(found[1])


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--variant", "off,no-such", "--", "./x"], 11, "no variant 'no-such'"),
        (["--disk", "ntfs:1G", "--", "./x"], 2, "'ntfs:1G' is no disk; write ext4:2G"),
        (["--disk", "ext4:1G", "--data-size", "1G", "--", "./x"], 2, "does not go with --data or --data-size"),
        (["--memory", "much", "--", "./x"], 2, "'much' is not a size"),
        (["--timeout", "nan", "--", "./x"], 2, "--timeout is a time of more than nothing"),
        (["--read-ahead-kb", "128,x", "--data-size", "1G", "--", "./x"], 2, "such as 128,4096, not '128,x'"),
        (["--read-ahead-kb", "128", "--", "./x"], 2, "--read-ahead-kb is of disks"),
        (["--env", "NAME", "--", "./x"], 2, "--env takes NAME=VALUE, not 'NAME'"),
        (["--data", "/no/such", "--", "./x"], 2, "--data: /no/such does not exist"),
        (["--data", "/etc/passwd", "--", "./x"], 2, "/etc/passwd holds no file system"),
        (["--data-size", "64M", "--filesystem", "xfs", "--", "./x"], 2, "XFS needs a disk of 320M at least"),
        (["--filesystem", "xfs", "--", "./x"], 2, "--filesystem is of a disk"),
        (["--root", "/no/such", "--", "x"], 2, "--root: /no/such does not exist"),
        (["--root", "/", "--", "x"], 2, "the whole of this machine"),
        (["--keep", "/tmp/x", "--", "./x"], 2, "--keep is of the data disk"),
        (["--keep", "/no/such/x", "--data-size", "64M", "--", "./x"], 2, "--keep: /no/such is no directory"),
        (["--keep", "/etc/passwd", "--data-size", "64M", "--", "./x"], 2, "/etc/passwd exists already; --force"),
        (["--json", "/no/such/x", "--", "./x"], 2, "--json: /no/such is no directory"),
        (["--console", "/dev/null", "--", "./x"], 2, "--console: /dev/null cannot be written"),
        (["--copy", "/no/such", "--", "./x"], 2, "There is no file /no/such to copy"),
        (["--copy", "/etc/passwd", "--copy", "/etc/./passwd", "--", "./x"], 2, "two files /files/passwd"),
        (["--", "/no/such/program"], 2, "/no/such/program cannot be read: No such file"),
        (["--", "/bin/sh"], 2, "link it with -static, or give it Debian packages with --packages, or a root directory"),
        (["--", "/etc/passwd"], 2, "is not a 64-bit executable"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_request(argv: list[str], status: int, words: str) -> None:
    done = lab("exec", *argv)
    assert words in sentence(done)
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.boot
def test_too_little_memory_is_told_before_a_boot(program: str, patched_kernel: BuiltKernel) -> None:
    done = lab("exec", "--memory", "24M", "--", program, "write", "x", "0")
    assert "A guest with 24M of memory is too small for its kernel and its programs; give it " in sentence(done)
    assert done.returncode == 2
    least = sentence(done).split()[-1].rstrip(".")
    done = lab("exec", "--memory", least, "--", program, "write", "x", "0")
    assert (done.returncode, done.stdout) == (0, "x\n")


@pytest.mark.boot
def test_output_and_status_are_passed_on(program: str, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    done = lab("exec", "--console", str(tmp_path / "console"), "--", program, "write", "a b  'c'", "42")
    assert (done.returncode, done.stdout) == (42, "a b  'c'\n")
    assert "to stderr" in done.stderr
    assert "Linux version" in (tmp_path / "console").read_text()


@pytest.mark.boot
def test_input_and_environment_are_passed_on(program: str, patched_kernel: BuiltKernel) -> None:
    """More input than the guest has memory."""
    argv = [sys.executable, "-m", "foliolab", "exec", "--memory", "64M", "--env", "WORD=a=b c", "--", program, "count"]
    done = subprocess.run(argv, cwd=REPOSITORY, input=bytes(100 << 20) + b"end", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{(100 << 20) + 3} a=b c\n".encode()), done.stderr


@pytest.mark.boot
def test_on_another_machine(tmp_path: Path) -> None:
    program = compiled(ARM64, tmp_path)
    assert sentence(lab("exec", "--arch", "x86_64", "--", program)) == f"{program} is not a program for x86_64."
    machine = MACHINES[-1]
    machine.kernel()  # outside of the command's time limit
    options = ["--arch", "arm64", "--page-size", size_name(machine.page_size)]
    options += [f"--with={extra}" for extra in machine.extras]
    done = lab("exec", *options, "--", program, "write", "hello", "7")
    assert (done.returncode, done.stdout) == (7, "hello\n")


@pytest.mark.boot
def test_a_signal_becomes_a_status(program: str, patched_kernel: BuiltKernel) -> None:
    assert lab("exec", "--", program, "abort").returncode == 128 + 6


@pytest.mark.boot
def test_memory_that_ran_out_is_told(program: str, patched_kernel: BuiltKernel) -> None:
    done = lab("exec", "--memory", "128M", "--", program, "eat")
    assert done.returncode == 128 + 9
    assert "The guest had no memory left for /program/act." in done.stderr


@pytest.mark.boot
@pytest.mark.parametrize(
    ("argv", "act", "status", "words"),
    [([], "crash", 31, "The guest crashed: "), (["--timeout", "2"], "sleep", 32, "The guest did not ")],
    ids=["crash", "hang"],
)
def test_guest_that_ends_badly(
    argv: list[str], act: str, status: int, words: str, program: str, patched_kernel: BuiltKernel, tmp_path: Path
) -> None:
    file = tmp_path / "json"
    file.write_text("of another command")
    done = lab("exec", *argv, "--json", str(file), "--", program, act, "x", "0")
    assert words in sentence(done)
    assert done.returncode == status
    assert cells(file) == []


@pytest.mark.boot
@pytest.mark.parametrize(("own", "status"), [(0, 31), (5, 5)])
def test_a_kernel_that_complains_is_reported(
    own: int, status: int, program: str, patched_kernel: BuiltKernel, tmp_path: Path
) -> None:
    title = "WARNING: CPU: 0 PID: 1 at mm/none.c:1 something"
    done = lab("exec", "--json", str(tmp_path / "json"), "--", program, "log", title, str(own))
    assert f"The guest's kernel complained (adaptive): {title}" in " ".join(done.stderr.split())
    assert done.returncode == status
    (cell,) = cells(tmp_path / "json")
    assert (cell["status"], cell["warnings"], cell["remark"]) == (own, [title], "")


@pytest.mark.boot
def test_an_emulated_guest_that_had_too_little_time_says_so(
    program: str, patched_kernel: BuiltKernel, tmp_path: Path
) -> None:
    title = "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [act:77]"
    ends = ["--json", str(tmp_path / "json"), "--", program, "log", title, "0"]
    done = lab("exec", "--accelerator", "tcg", "--variant", "off,adaptive", *ends)
    remark = f"The guest had too little time: {title}"
    assert (done.returncode, " ".join(done.stderr.split()).count(remark)) == (0, 2)
    assert [(cell["warnings"], cell["remark"]) for cell in cells(tmp_path / "json")] == [([], remark)] * 2


@pytest.mark.boot
def test_every_variant_with_every_window(patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    probe = str(guest_programs(NATIVE)["sparse-mmap"])
    file = tmp_path / "counts.json"
    done = lab("exec", "--variant", "off,adaptive", "--read-ahead-kb", "128,4096", "--disk", "ext4:64M",
               "--json", str(file), "--", probe, "--file", "/data/file", "--pattern", "random")  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {(cell["variant"], cell["read_ahead_kb"]): cell for cell in cells(file)}
    assert list(found) == [("off", 128), ("off", 4096), ("adaptive", 128), ("adaptive", 4096)]
    assert [line for line in done.stderr.splitlines() if line.startswith("---")] == [
        f"--- {variant}, read_ahead_kb {limit}" for variant, limit in found
    ]
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    for cell, probed in zip(found.values(), printed, strict=True):
        # The program's own count begins later.
        assert probed["read_bytes"] <= cell["read_bytes"] < probed["read_bytes"] + (1 << 20)
        assert cell["disks"]["data"]["read_requests"] == cell["read_requests"] > 0
        assert cell["major_faults"] > 0
        assert cell["kernel"] == {
            "name": "patched",
            "version": patched_kernel.version,
            "release": patched_kernel.release,
            "hash": patched_kernel.hash,
        }
    bytes_read = {place: cell["read_bytes"] for place, cell in found.items()}
    assert bytes_read["off", 4096] > 2 * bytes_read["off", 128] > 2 * bytes_read["adaptive", 128]
    assert found["adaptive", 4096]["mmap_readahead"] > 0


@pytest.mark.boot
def test_every_kernel(program: str, stock_kernel: BuiltKernel, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    names = {kernel.name: kernel for kernel in (stock_kernel, patched_kernel)}
    file, console = tmp_path / "json", tmp_path / "console"
    options = [word for name in names for word in ("--kernel", name)]
    done = lab("exec", *options, "--json", str(file), "--console", str(console), "--", program, "write", "x", "0")
    assert (done.returncode, done.stdout) == (0, "x\nx\n"), done.stderr
    found = [(cell["variant"], cell["kernel"]["name"], cell["kernel"]["hash"]) for cell in cells(file)]
    assert found == [(name, name, kernel.hash) for name, kernel in names.items()]
    booted = re.findall(r"Linux version (\S+)", console.read_text())
    assert booted == [kernel.release for kernel in names.values()]


@pytest.mark.boot
def test_an_interrupted_command_leaves_nothing(program: str, patched_kernel: BuiltKernel, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "foliolab", "exec", "--data-size", "64M", "--keep", str(tmp_path / "image")]
    process = subprocess.Popen(
        [*argv, "--", program, "sleep"],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "asleep\n"
        scratch = scratch_of(process.pid)
        assert scratch.is_dir()
        process.send_signal(signal.SIGINT)
        _, words = process.communicate()
    finally:
        process.kill()
    assert words.splitlines()[-1].startswith("lab: Interrupted; the guest has ended and its disk is not kept.")
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert not scratch.exists()
