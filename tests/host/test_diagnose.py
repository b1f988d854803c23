# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foliohost import residency
from foliohost.cli import diagnose
from foliohost.cli.diagnose import _SECONDS
from foliohost.cli.main import main
from foliohost.devices import device_of
from foliohost.errors import FolioError
from foliohost.folios import text_folios
from foliohost.processes import runs
from foliohost.remedies import KERNEL, MODULE
from foliohost.windows import set_device
from tests.host import toucher
from tests.host.command import ARGV, ENVIRONMENT, host
from tests.host.conftest import Toucher, large_file, private_disk, start
from tests.host.toucher import drop
from tests.processes import alive, wait_until

__all__ = ["large_file", "private_disk", "start"]


def test_a_command_that_reads_too_much(large_file: Path) -> None:
    drop(large_file)
    script = f"(echo random 28; echo wait) | {sys.executable} {toucher.__file__} {large_file}; exit 7"
    done = host("diagnose", "--json", "--", "sh", "-c", script)
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (7, "reads-too-much"), found["sentence"]
    assert "done" in done.stderr.splitlines()
    # What the interpreter reads for itself may be cold as well.
    file = next(file for file in found["files"] if file["path"] == str(large_file))
    assert file["read_bytes"] > 3 * file["used_bytes_least"] > 0
    assert found["read_bytes"] >= found["mapped_read_bytes"] > 3 * found["used_bytes_least"]
    assert [remedy["command"] for remedy in file["remedies"]][-3:] == [
        "madvise(address, length, MADV_RANDOM)",
        KERNEL,
        MODULE,
    ]


@pytest.mark.parametrize(("words", "name"), [(["--no-probe"], None), ([], "GGUF")])
def test_the_engine_is_told_unless_nothing_may_be_read_of_the_file(
    words: list[str], name: str | None, private_disk: Path
) -> None:
    """It is on the first page."""
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    with path.open("rb+") as stream:
        stream.write(b"GGUF")
    os.sync()
    script = f"(echo page 1000; yes wait | head -4) | {sys.executable} {toucher.__file__} {path}"
    found = json.loads(host("diagnose", "--json", *words, "--", "sh", "-c", script).stdout)
    file = next(file for file in found["files"] if file["path"] == str(path))
    assert file["read_bytes"]
    there = [residency.cached(path)]
    alone = json.loads(host("diagnose", "--json", *words, "--file", str(path)).stdout)
    there.append(residency.cached(path))
    assert (file["engine"], alone["engine"]) == (name, name)
    assert [bool((pages or 0) & 1) for pages in there] == [bool(name)] * 2


def test_a_command_that_computes_keeps_its_output_and_status() -> None:
    done = host("diagnose", "--", "sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert done.stderr.startswith("Nothing wrong: ")


ORPHANS = """
for number in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'exit 5' &); done
sleep 0.5
children() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") [A-Z] $PPID "; }
tries=0
while [ "$(children)" -gt 4 ] && [ $tries -lt 100 ]; do sleep 0.3; tries=$((tries + 1)); done
children
exit 7
"""


def test_orphans_are_waited_for_as_init_does_it() -> None:
    """The command, and who cleans up, are the only children then."""
    done = host("diagnose", "--", "sh", "-c", ORPHANS)
    assert done.returncode == 7
    assert int(done.stdout) <= 4


ONE_LOOK = """
import sys, time
from foliohost.cli.main import main
from foliohost.watch import Watch
def run(watch, seconds, ended):
    while not ended():
        time.sleep(0.01)
    watch.look()
Watch.run = run
sys.exit(main(["diagnose", "--json", "--", *sys.argv[1:]]))
"""
READING_ORPHAN = '(dd if="$1" of=/dev/null bs=1M count=16 &) | cat; sleep 0.5'


def test_what_an_orphan_has_read_that_ends_last_is_counted(large_file: Path) -> None:
    """The last look but one finds that it has ended, and the last one waits for it."""
    drop(large_file)
    argv = [sys.executable, "-c", ONE_LOOK, "sh", "-c", READING_ORPHAN, "sh", str(large_file)]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["read_bytes"] >= 16 << 20, done.stderr


def without_folios() -> str | None:
    """Why they are not known here; what tells of them is compiled by this, if it was not yet."""
    try:
        text_folios([os.getpid()])
    except FolioError as error:
        return str(error)
    return None


def test_a_process(large_file: Path, start: Callable[..., Toucher]) -> None:
    program = start(large_file)
    done = host("diagnose", "--pid", str(program.pid), "--seconds", "0.3", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"], found["files"]) == (0, "nothing-wrong", [])
    # What starting and ending the trace takes is taken off, down to a quarter.
    assert 0.3 / 4 <= found["seconds"] < _SECONDS
    folios, missing = found["text_folios"], found["text_folios_missing"]
    if obstacle := without_folios():
        assert (folios, missing) == (None, obstacle)
    else:
        assert (sum(folios["by_size_kb"].values()) + folios["partial_bytes"], missing) == (folios["mapped_bytes"], None)


def test_folios_of_a_command_that_goes_on() -> None:
    obstacle = without_folios()
    done = host("diagnose", "--json", "--seconds", "0.3", "--", "sleep", "5")
    found = json.loads(done.stdout)
    assert found["text_folios_missing"] == obstacle
    assert (found["text_folios"] is None) == bool(obstacle)


def test_a_file(large_file: Path, start: Callable[..., Toucher]) -> None:
    alone = json.loads(host("diagnose", "--file", str(large_file), "--json").stdout)
    assert (alone["verdict"], alone["files"], alone["processes"]) == ("not-mapped", [], {})
    assert alone["size_bytes"] == large_file.stat().st_size
    program = start(large_file)
    done = host("diagnose", "--file", str(large_file), "--seconds", "0.2")
    assert f"mapped by: {program.pid} (" in done.stdout
    assert f"window {alone['window_kb']} KiB" in done.stdout
    assert "Nothing wrong: " in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_is_told_of(number: int) -> None:
    argv = [*ARGV, "diagnose", "--", "sleep", "600"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        _wait_for_child(running.pid)
        if number == signal.SIGINT:
            os.killpg(running.pid, number)  # as the terminal does it
        else:
            running.send_signal(number)
        _, words = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert words.startswith("Nothing wrong: ")


def test_who_asks_twice_for_the_end_gets_a_report() -> None:
    with subprocess.Popen([*ARGV, "diagnose", "--", "sh", "-c", "echo up; exec sleep 300"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as running:  # fmt: skip
        assert running.stdout
        assert running.stdout.readline() == "up\n"
        for _ in range(2):
            running.terminate()
            time.sleep(0.05)
        _, said = running.communicate()
    assert "Nothing wrong" in said
    assert running.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("command", [["diagnose"], ["record", "-o", "/tmp/trace"]], ids=lambda command: command[0])
def test_a_process_that_has_ended_and_that_nobody_waits_for(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(["true"]) as ended:
        assert wait_until(lambda: not runs(ended.pid))
        assert main([*command, "--pid", str(ended.pid)]) == 2
    assert capsys.readouterr().err == f"foliolab-host: Process {ended.pid} has ended.\n"


def test_who_maps_a_file_and_ends_at_once_is_left_out(
    large_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(diagnose, "mapped_by", lambda status: ([4194305], 0))
    assert main(["diagnose", "--json", "--file", str(large_file)]) == 0
    assert json.loads(capsys.readouterr().out)["processes"] == {}


def test_a_kill_takes_the_command_along() -> None:
    argv = [*ARGV, "diagnose", "--", "sleep", "600"]
    with subprocess.Popen(argv) as running:
        child = _wait_for_child(running.pid)
        running.kill()
    assert wait_until(lambda: not alive(child))


def _wait_for_child(pid: int) -> int:
    """The number of the command, once it is what it will be."""
    found: list[int] = []

    def is_there() -> bool:
        argv = ["ps", "-o", "pid=,comm=", "--ppid", str(pid)]
        rows = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
        found[:] = [int(row.split()[0]) for row in rows if row.split()[1] == "sleep"]
        return bool(found)

    assert wait_until(is_there)
    return found[0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "Say what to look at: one of --pid, --file, --host, or -- and a command."),
        (["--pid", "1", "--", "true"], "Say what to look at"),
        (["--pid", "4194305"], "There is no process 4194305."),
        (["--file", "/no/such"], "There is no file /no/such."),
        (["--seconds", "0", "--pid", "1"], "--seconds is a time"),
        (["--", "no-such-program"], "There is no program no-such-program that can be run."),
        (["--host", "--pid", "1"], "Say what to look at: one of "),
        (["--pid", "1", "--openmetrics", "x.prom"], "--openmetrics belongs to --host."),
        (["--pid", "1", "--top", "3"], "--top belongs to --host."),
        (["--host", "--top", "0"], "--top is a number from 1 to 1,000."),
        (["--host", "--processes", "1001"], "--processes is a number from 1 to 1,000."),
        (["--host", "--openmetrics", "/no/such/x.prom"], "--openmetrics: /no/such is no directory."),
        (["--host", "--openmetrics", "/dev/null"], "--openmetrics: /dev/null cannot be written."),
        (["--host", "--json", "--openmetrics", "x.prom"], "One of --json and --openmetrics is enough."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_requests(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", *argv]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert (out, err.count("\n")) == ("", 1)
