# SPDX-License-Identifier: GPL-2.0-only
"""The runner as a plain process: what it makes of a boot that has ended, and what it starts next."""

import hashlib
import json
import os
import re
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from foliolab.errors import LabError
from foliolab.metal.bundle import RUNNER
from foliolab.process import run, tool

_STUBS = ("kexec", "systemctl", "sleep", "sync", "wdctl")
_JOBS = [(0, ":mount"), (1, "one"), (2, "two"), (2, "three"), (3, "four")]
_KERNEL = b"a kernel"
_WORDS = ['"step": 9,', "a\\nb", "c\\\\", "d e"]
"""What is in the command line of each job."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of a run with two boots, of which the first has begun; commands that would do something only say what."""
    for name in ("0001", "0002"):
        boot = tmp_path / "run/boots" / name
        boot.mkdir(parents=True)
        lines = [json.dumps({"id": n, "step": step, "argv": [word, *_WORDS]}) for n, (step, word) in enumerate(_JOBS)]
        (boot / "jobs").write_text("".join(f"{line}\n" for line in lines))
        (boot / "kernel").write_text(f"{hashlib.sha256(_KERNEL).hexdigest()} mem=256M nr_cpus=2\n")
        (boot / "works.json").write_text("{}")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / hashlib.sha256(_KERNEL).hexdigest()).write_bytes(_KERNEL)
    (tmp_path / "run/boots/0001/started").write_text("in an earlier boot of this machine\n")
    for name in ("made", "asked", "journal"):
        (tmp_path / "run" / name).touch()
    (tmp_path / "run/plan").write_text("machine x86_64\ndisk 0 def 1048576\n")
    (tmp_path / "run/options").write_text("spare='' identity='' watchdog=no lease=0 pause=0\n")
    (tmp_path / "runner").write_bytes(RUNNER.read_bytes())
    (tmp_path / "bin").mkdir()
    for name in _STUBS:
        stub = tmp_path / "bin" / name
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/done"\n')
        stub.chmod(0o755)
    return tmp_path


def runner(home: Path, *words: str) -> bytes:
    settings = os.environ | {"PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    argv = ["sh", str(home / "runner"), *words]
    done = subprocess.run(argv, env=settings, stdout=subprocess.PIPE, check=False)
    # It does not end well: this machine stays up.
    assert done.returncode == (1 if words == ("go",) else 0)
    return done.stdout


def jobs(boot: Path) -> list[tuple[int, list[str]]]:
    """The step and the command line of each."""
    lines = [json.loads(line) for line in (boot / "jobs").read_text().splitlines()]
    return [(line["step"], line["argv"]) for line in lines]


def boots_begun(home: Path) -> list[str]:
    """The boots that were begun, from the journal."""
    return re.findall(r" boot (\w+): ", (home / "run/journal").read_text())


def event(**words: object) -> str:
    return json.dumps(words) + "\n"


def memory_end(size_bytes: int) -> int | str:
    """The address below which this machine has so much memory."""
    for line in Path("/proc/iomem").read_text().splitlines():
        if line.endswith(" : System RAM") and not line.startswith(" "):
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if last - first + 1 >= size_bytes:
                return first + size_bytes
            size_bytes -= last - first + 1
    return ""


def test_shellcheck_has_nothing_to_say() -> None:
    run([tool("shellcheck"), str(RUNNER)], LabError)


def test_what_a_reset_has_left_undone_becomes_the_next_boot(home: Path) -> None:
    boots = home / "run/boots"
    (boots / "0001/answers").write_text(event(event="start", id=0, step=0) + event(event="start", id=1, step=1))
    runner(home, "go")
    assert (boots / "0001/outcome").read_text() == "reset\n"
    assert jobs(boots / "0001r") == [(step, [word, *_WORDS]) for step, word in _JOBS if step != 1]
    assert boots_begun(home) == ["0001r"]
    load, *_ = [line for line in (home / "done").read_text().splitlines() if line.startswith("kexec -l")]
    assert f"init={home}/run/programs/init foliolab_job={boots}/0001r" in load
    assert f"mem={memory_end(256 << 20)} nr_cpus=2" in load
    first, *_ = (boots / "0001r/requests").read_text().splitlines()
    assert json.loads(first)["argv"] == ["losetup", "--direct-io=on", "/dev/loop0", f"{home}/run/disk0"]


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        (event(event="start", id=0, step=0), "reset"),
        (event(event="start", id=4, step=3) + event(event="deadline", id=4), "deadline"),
        (event(event="start", id=4, step=3) + event(event="end"), "end"),
    ],
)
def test_a_boot_of_which_nothing_is_left_is_followed_by_the_next(home: Path, answers: str, outcome: str) -> None:
    boots = home / "run/boots"
    (boots / "0001/answers").write_text(answers)
    runner(home, "go")
    assert (boots / "0001/outcome").read_text() == f"{outcome}\n"
    assert sorted(boot.name for boot in boots.iterdir()) == ["0001", "0002"]
    assert boots_begun(home) == ["0002"]


@pytest.mark.parametrize("answers", ["", None])
@pytest.mark.parametrize("before", [None, "", "in an earlier boot of this machine\n"])
def test_a_boot_without_a_word_is_tried_once_more(home: Path, answers: str | None, before: str | None) -> None:
    """Also if the runner was killed when it had said so, and perhaps not on the disk."""
    boot = home / "run/boots/0001"
    for name, text in (("answers", answers), ("again", before)):
        if text is not None:
            (boot / name).write_text(text)
    runner(home, "go")
    assert boots_begun(home) == ["0001"]
    assert not (boot / "outcome").exists()
    assert (boot / "again").read_text() == "in an earlier boot of this machine\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [("again", "in a still earlier boot\n"), ("pstore", "<0>[    3.2] Kernel panic - not syncing: x\n")],
    ids=["second", "last-words"],
)
def test_a_second_boot_without_a_word_is_a_result_and_so_is_one_with_last_words(
    home: Path, name: str, text: str
) -> None:
    boot = home / "run/boots/0001"
    (boot / name).write_text(text)
    runner(home, "go")
    assert (boot / "outcome").read_text() == "reset\n"
    assert boots_begun(home) == ["0002"]


def test_boots_that_have_ended_are_sent_once(home: Path) -> None:
    (home / "run/boots/0001/answers").write_text(event(event="end"))
    runner(home, "go")
    for known, found in (((), {"boots/0001"}), (("0001",), set())):
        with tarfile.open(fileobj=BytesIO(runner(home, "poll", *known))) as stream:
            names = stream.getnames()
        assert {name for name in names if name.count("/") == 1} == found
        assert {"plan", "journal"} <= set(names)
