# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from foliolab.arch import ARM64, NATIVE, X86_64
from foliolab.errors import BuildError, UsageError
from foliolab.files import REPOSITORY, lock_if_free, locked, write_atomic
from foliolab.kernel import build as building
from foliolab.kernel import make as making
from foliolab.kernel.build import KernelRequest, build, identify
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.make import hold_build_lock
from foliolab.kernel.name import parse_name
from foliolab.kernel.series import applied
from foliolab.kernel.source import Source
from foliolab.process import process_group
from tests.processes import alive, wait_until


@pytest.mark.boot
def test_a_second_call_makes_nothing(patched_kernel: BuiltKernel) -> None:
    made = patched_kernel.image.stat()
    assert build(KernelRequest(NATIVE, "patched")) == patched_kernel
    assert patched_kernel.image.stat() == made


@pytest.mark.boot
def test_a_kernel_is_described_as_it_will_be_built(patched_kernel: BuiltKernel) -> None:
    request = KernelRequest(NATIVE, "patched")
    assert identify(request) == patched_kernel
    with building._gathered(request) as inputs:
        assert inputs.described == patched_kernel


@pytest.mark.boot
def test_kernel_says_what_it_is(patched_kernel: BuiltKernel, stock_kernel: BuiltKernel) -> None:
    assert patched_kernel.release.endswith("-foliolab-patched")
    assert stock_kernel.release.endswith(f"-{NATIVE.debian}")
    assert (patched_kernel.ours, stock_kernel.ours) == (True, False)


@pytest.mark.boot
def test_an_unpatched_kernel_has_none_of_our_code(source: Source, patched_kernel: BuiltKernel) -> None:
    """By its source and its options: no test needs it built."""
    assert applied(source, parse_name("unpatched").series) == {}
    with building._gathered(KernelRequest(NATIVE, "unpatched")) as inputs:
        unpatched = inputs.options
    assert 'CONFIG_LOCALVERSION="-foliolab-unpatched"' in unpatched
    option = "CONFIG_PAGE_TOUCH"
    assert option in patched_kernel.config.read_text()
    assert option not in unpatched


def test_a_request_has_the_page_size_that_its_architecture_can_have() -> None:
    assert KernelRequest(ARM64, "patched").page_size == 4096
    assert KernelRequest(ARM64, "patched", page_size=65536).page_size == 65536
    with pytest.raises(UsageError, match=r"x86_64 has no pages of 64k; it has 4k\."):
        KernelRequest(X86_64, "patched", page_size=65536)


def test_what_an_earlier_lab_has_described_otherwise_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    source = Source(tmp_path / "home/tree", "6.12.1", "identity")
    inputs = building._Inputs(KernelRequest(X86_64, "patched"), parse_name("patched"), source, {}, "cc")
    place = tmp_path / "kernels" / inputs.hash
    old = {"release": "6.12.1-foliolab-patched", "arch": "x86_64", "flavour": "patched", "profile": "lab"}
    write_atomic(place / "kernel.json", json.dumps(old))
    assert building._found(inputs) is None
    for name in ("artifacts/bzImage", "System.map", ".config", "include/config/kernel.release"):
        write_atomic(inputs.directory / name, "6.12.1")
    kernel = building._published(inputs.hash, lambda place: building._take(inputs, place))
    assert kernel == building._found(inputs)
    assert (kernel.hash, kernel.release, kernel.page_size) == (inputs.hash, "6.12.1", 4096)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("  CC mm/a.o\nmm/a.c:3: error: expected ';'\nmake: *** [mm/a.o] Error 1\n", "mm/a.c:3: error: expected ';'"),
        ("make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'.  Stop."),
        ("  MODPOST x\nERROR: modpost: \"f\" undefined!\nmake: *** [x] Error 1\n", "ERROR: modpost: \"f\" undefined!"),
        ("one\ntwo\n", "two"),
        ("", "make said nothing"),
    ],
)  # fmt: skip
def test_build_failure_is_told_by_its_first_error(log: str, reason: str) -> None:
    assert making.first_error(log) == reason


@pytest.mark.parametrize(
    ("count", "total", "words"),
    [
        (400, 0, "400 objects"),
        (120, 400, "120 of about 400 objects"),
        (200, 400, "200 of about 400 objects, 4 min left"),
        (401, 400, "401 objects"),
    ],
)
def test_how_far_a_build_is(count: int, total: int, words: str) -> None:
    assert making.progress(count, before=100, total=total, seconds=120) == words


def test_a_finished_build_of_another_source_tells_how_many_objects_there_are(tmp_path: Path) -> None:
    for name, objects in (("0a-x86_64-lab-patched", 3), ("0b-x86_64-lab-unpatched", 4), ("0a-x86_64-debug-patched", 9)):
        for file in (*(f"mm/{number}.o" for number in range(objects)), "System.map"):
            write_atomic(tmp_path / name / file, "")
    os.utime(tmp_path / "0a-x86_64-lab-patched/System.map", (0, 0))
    new = tmp_path / "0c-x86_64-lab-patched"
    assert making._expected(new) == 4
    (tmp_path / "0b-x86_64-lab-unpatched/unfinished").touch()
    assert making._expected(new) == 3
    # Nothing is known of an architecture that was not built, nor how much of what is there is made again.
    assert making._expected(tmp_path / "0c-arm64-4k-lab-patched") == 0
    assert making._expected(tmp_path / "0a-x86_64-lab-patched") == 0
    # A user's tree is one more source.
    assert making._expected(tmp_path / "git-0c-x86_64-lab-patched") == 3
    assert making._expected(tmp_path / "tree-0d-x86_64-lab-patched") == 3


@pytest.mark.parametrize(("last_words", "swept"), [("exit 2", False), ("kill -KILL $$", True)])
def test_what_a_killed_make_left_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_words: str, swept: bool
) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(making, "_POLL_SECONDS", 0.01)
    make = tmp_path / "make"
    make.write_text(f"#!/bin/sh\n{last_words}\n")
    make.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(make))
    source = Source(tmp_path / "home/tree", "6.12.1", "identity")
    inputs = building._Inputs(KernelRequest(X86_64, "patched"), parse_name("patched"), source, {}, "cc")
    made = inputs.directory / "made.o"
    with pytest.raises(BuildError, match="Making failed"), making.unfinished_swept(inputs.directory):
        made.touch()
        building._make(inputs, source.tree, ["default"], "Making")
    with making.unfinished_swept(inputs.directory):
        assert made.exists() is not swept


def test_what_was_made_long_before_a_kill_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(making, "_SETTLED_SECONDS", 1)
    settled = f"until [ {making._STAMP} -nt early.o ]; do sleep 0.1; done"
    command = ["/bin/sh", "-c", f"cd {tmp_path}; touch early.o; {settled}; touch late.o late.ko; kill -KILL $$"]
    with pytest.raises(BuildError), making.unfinished_swept(tmp_path):
        making.run_make(command, tmp_path, "log", "Making")
    with making.unfinished_swept(tmp_path):
        assert [path.name for path in tmp_path.glob("*.[ok]*")] == ["early.o"]


_GROUP = """
import sys, time
from pathlib import Path
from foliolab.process import process_group
with open({log!r}, "wb") as log, process_group(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], log):
    time.sleep(1000)
"""


def test_build_dies_with_its_parent_and_takes_its_children_along(tmp_path: Path) -> None:
    log = tmp_path / "log"
    parent = subprocess.Popen([sys.executable, "-c", _GROUP.format(log=str(log))])
    assert wait_until(lambda: log.exists() and log.read_text().endswith("\n"))
    grandchild = int(log.read_text())
    assert alive(grandchild)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_until(lambda: not alive(grandchild))


def test_process_group_ends_with_its_block(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, process_group(["sleep", "1000"], log) as child:
        assert child.poll() is None
    assert child.returncode == -signal.SIGKILL


def test_process_group_keeps_exit_status_and_output(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log, process_group(["/bin/sh", "-c", "echo hello; exit 3"], log) as child:
        child.wait()
    assert child.returncode == 3
    assert (tmp_path / "log").read_text() == "hello\n"


_WAITER = """
import sys
from contextlib import ExitStack
from pathlib import Path
from foliolab.files import locked, write_atomic
with locked(Path(sys.argv[1]), lambda: print("waiting", flush=True)):
    print("mine", flush=True)
"""


def test_lock_is_waited_for_and_said(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        other = subprocess.Popen(
            [sys.executable, "-c", _WAITER, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
        )
        assert other.stdout
        assert other.stdout.readline() == "waiting\n"
        assert other.poll() is None
    assert other.communicate(timeout=60)[0] == "mine\n"


def test_a_build_waits_no_longer_than_another_takes_for_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(making, "_POLL_SECONDS", 0.01)
    looks = iter([False, False, False, True])
    with making.build_lock(), ExitStack() as block:
        hold_build_lock(block, unless=lambda: next(looks))
    assert list(looks) == []
    assert capsys.readouterr().err.count("Another build is running") == 1


def test_a_build_holds_the_lock_where_nobody_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    with ExitStack() as block, ExitStack() as other:
        hold_build_lock(block, unless=lambda: False)
        assert not lock_if_free(other, tmp_path / "build.lock")


def test_clean_knows_every_directory_of_the_cache() -> None:
    used = re.compile(r'cache_directory\(\)(?:\.resolve\(\))? / "([\w-]+)"')
    files = [path for part in ("foliolab", "tests/kernel", "tests/metal") for path in (REPOSITORY / part).rglob("*.py")]
    found = {name for path in files for name in used.findall(path.read_text())}
    assert found == {*building._CACHED, "kvm", "temporary"}
