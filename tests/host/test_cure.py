# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from foliohost import taken, windows
from foliohost.cli.main import main
from foliohost.devices import device_of
from foliohost.errors import NoCure
from foliohost.state import applied, boot_id
from foliohost.windows import set_device
from tests.host.command import ARGV, host
from tests.host.conftest import Toucher, nobody, private_disk, start
from tests.host.test_cures import with_few
from tests.host.windows import read_kb

__all__ = ["nobody", "private_disk", "start"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state/state.json"


@pytest.fixture
def cure(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command, which has to succeed; returns its output."""

    def run(*words: str) -> str:
        assert main(["cure", *words]) == 0
        return capsys.readouterr().out

    return run


def test_device(private_disk: Path, state: Path) -> None:
    path = private_disk / "file"
    device, place = device_of(path), str(state.parent)
    before = device.read_ahead_kb
    done = host("cure", "apply", "--device-of", str(path), "--read-ahead-kb", "64", FOLIOLAB_STATE=place)
    assert f"{device.name}: {before} -> 64 KiB" in done.stdout
    (found,) = json.loads(host("cure", "show", "--json", FOLIOLAB_STATE=place).stdout)["cures"]
    assert (found["pid"], found["read_ahead_kb"], found["state"]) == (None, 64, "holds")
    assert device.name in host("cure", "show", FOLIOLAB_STATE=place).stdout
    done = host("cure", "undo", "--device-of", str(path), FOLIOLAB_STATE=place)
    assert done.stdout == (
        f"{device.name}: back to {before} KiB. Files that were opened meanwhile keep 64 KiB until they are closed, or"
        f" until 'foliolab-host cure apply --file FILE --read-ahead-kb {before}'.\n"
    )
    assert device.read_ahead_kb == before
    assert host("cure", "undo", FOLIOLAB_STATE=place).stdout == "Nothing is applied.\n"
    assert state.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_in_all_who_have_it_open(
    private_disk: Path, start: Callable[..., Toucher], cure: Callable[..., str]
) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 1024)
    programs = [start(path), start(path)]
    choice = ["--file", str(path)]
    pids = ", ".join(str(pid) for pid in sorted(program.pid for program in programs))
    told = cure("apply", *choice, "--read-ahead-kb", "64")
    assert told == (
        f"{path} in processes {pids}: 1024 -> 64 KiB, until it is closed.\n"
        "'foliolab-host cure undo' puts back the device's window before the cure: the kernel does not tell a file's"
        " own.\n"
    )
    assert [read_kb(program, path) for program in programs] == [64, 64]
    last = programs[1].pid
    assert cure("undo", *choice, "--pid", str(last)) == f"{path} in process {last}: back to 1024 KiB.\n"
    assert [read_kb(program, path) for program in programs] == [64, 1024]
    assert cure("show").count("holds") == 1
    assert f"{path} in process {programs[0].pid}: back" in cure("undo", *choice)


def test_json(private_disk: Path, start: Callable[..., Toucher], cure: Callable[..., str]) -> None:
    path = private_disk / "file"
    device = device_of(path)
    set_device(device.attribute, 1024)
    program = start(path)

    def asked(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(cure(*words, "--json"))
        return found

    given = asked("apply", "--file", str(path), "--read-ahead-kb", "16")
    (applied,) = given["cures"]
    assert (applied["pid"], applied["before_kb"], applied["read_ahead_kb"]) == (program.pid, 1024, 16)
    assert (applied["state"], given["opened"]) == ("holds", [])
    assert given["moment_us"] > 0
    (whole,) = asked("apply", "--device-of", str(path), "--read-ahead-kb", "64")["cures"]
    assert (whole["pid"], whole["device"], whole["read_ahead_kb"]) == (None, device.name, 64)
    assert asked("show") == {"cures": [applied, whole]}
    undone = asked("undo")["cures"]
    assert [(each["pid"], each["result"], bool(each["note"])) for each in undone] == [
        (None, "back to 1024 KiB", True),
        (program.pid, "back to 1024 KiB", False),
    ]
    assert asked("show") == {"cures": []}
    assert asked("restore") == {"restored": []}


def test_policies(private_disk: Path, start: Callable[..., Toucher], cure: Callable[..., str], tmp_path: Path) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 1024)
    policies = tmp_path / "policies"
    enforce = ["enforce", "--policies", str(policies)]
    assert cure(*enforce) == "0 open files have the window of a policy.\n"
    policies.mkdir()
    (policies / "x.conf").write_text(f"[mine]\nfiles = {private_disk}/*\nread_ahead_kb = 64\n")
    program = start(path)
    line = f"{path} in process {program.pid}: 64 KiB (policy 'mine').\n"
    assert cure(*enforce, "--dry-run") == line
    (found,) = json.loads(cure(*enforce, "--dry-run", "--json"))["files"]
    assert (found["path"], found["pid"], found["name"]) == (str(path), program.pid, "mine")
    assert read_kb(program, path) == 1024
    assert cure(*enforce) == f"{line}1 open file has the window of a policy.\n"
    assert read_kb(program, path) == 64
    # What nothing has changed of is left alone, and the device as well.
    kept = json.loads(cure(*enforce, "--json"))
    assert ([found["pid"] for found in kept["cures"]], kept["moment_us"]) == ([program.pid], 0)
    program.tell("open")
    anew = json.loads(cure(*enforce, "--json"))
    assert ([found["pid"] for found in anew["cures"]], anew["moment_us"] > 0) == ([program.pid], True)
    again = start(path)
    told = cure(*enforce)
    assert told.startswith(f"{path} in process {again.pid}")
    assert told.endswith("2 open files have the window of a policy.\n")
    assert "mine" in cure("show")
    again.end()
    assert len(json.loads(cure(*enforce, "--json"))["cures"]) == 1
    assert cure("undo") == (
        f"{path} in process {program.pid}: back to 1024 KiB. Policy 'mine' gives it 64 KiB again when it is enforced.\n"
    )
    assert read_kb(program, path) == 1024


def refuse(monkeypatch: pytest.MonkeyPatch, program: Toucher) -> None:
    """Have the kernel give no descriptor of a program."""
    fetch = taken.pidfd_getfd

    def refusing(pidfd: int, number: int) -> int:
        if f"Pid:\t{program.pid}\n" in Path(f"/proc/self/fdinfo/{pidfd}").read_text():
            raise PermissionError
        return fetch(pidfd, number)

    monkeypatch.setattr(taken, "pidfd_getfd", refusing)


def test_what_the_kernel_refuses_keeps_no_other_policy(
    private_disk: Path,
    start: Callable[..., Toucher],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a process that a security module protects."""
    paths = [private_disk / name for name in ("first", "second")]
    for path in paths:
        path.write_bytes(b"x" * (1 << 20))
    text = "".join(f"[{path.name}]\nfiles = {path}\nread_ahead_kb = 64\n" for path in paths)
    (tmp_path / "x.conf").write_text(text)
    programs = [start(path) for path in paths]
    refuse(monkeypatch, programs[0])
    assert main(["cure", "enforce", "--policies", str(tmp_path)]) == 41
    out, err = capsys.readouterr()
    assert f"{paths[1]} in process {programs[1].pid}: 64 KiB (policy 'second').\n" in out
    assert err == f"Policy 'first': Only root may take a descriptor of process {programs[0].pid}.\n"


def test_a_process_that_is_left_out_is_told_of(
    private_disk: Path,
    start: Callable[..., Toucher],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As one that a security module protects, where another has the same file open."""
    path = private_disk / "file"
    (tmp_path / "x.conf").write_text(f"[mine]\nfiles = {path}\nread_ahead_kb = 64\n")
    programs = [start(path) for _ in range(2)]
    refuse(monkeypatch, programs[0])
    words = f"Only root may take a descriptor of process {programs[0].pid}.\n"
    for argv, said in (
        (["apply", "--file", str(path), "--read-ahead-kb", "32"], words),
        (["enforce", "--policies", str(tmp_path)], f"Policy 'mine': {words}"),
    ):
        assert main(["cure", *argv]) == 41
        assert capsys.readouterr().err == said
    assert [(cure.pid, cure.read_ahead_kb) for cure in applied()] == [(programs[1].pid, 64)]


FILES = (("file", 32), ("other", 64))
"""And the window that a policy has for each."""


def test_a_device_that_keeps_its_window_keeps_no_other_policy(
    private_disk: Path,
    start: Callable[..., Toucher],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The unit that enforces policies has to fail."""
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    text = "".join(f"[{window}]\nfiles = {private_disk}/{name}\nread_ahead_kb = {window}\n" for name, window in FILES)
    (tmp_path / "x.conf").write_text(text)
    (private_disk / "other").write_bytes(b"x")
    programs = [start(private_disk / name) for name, _ in FILES]
    give = windows.give_window

    def keep(attribute: Path, window: int, handles: Sequence[int]) -> int:
        if window == FILES[0][1]:
            raise NoCure("It keeps its own.")
        return give(attribute, window, handles)

    monkeypatch.setattr(windows, "give_window", keep)
    assert main(["cure", "enforce", "--policies", str(tmp_path)]) == NoCure.status
    out, err = capsys.readouterr()
    assert f"{private_disk}/other in process {programs[1].pid}: 64 KiB (policy '64').\n" in out
    assert err == "Policy '32': It keeps its own.\n"
    assert device_of(path).read_ahead_kb == before
    assert [cure.pid for cure in applied()] == [programs[1].pid]


def test_more_files_than_may_be_held_get_their_windows_in_parts(
    private_disk: Path, state: Path, tmp_path: Path
) -> None:
    handles = [os.open(private_disk / str(number), os.O_RDWR | os.O_CREAT) for number in range(50)]
    (tmp_path / "x.conf").write_text(f"[mine]\nfiles = {private_disk}/*\nread_ahead_kb = 64\n")
    with subprocess.Popen(["sleep", "300"], pass_fds=handles) as program:
        for handle in handles:
            os.close(handle)
        done = with_few(state, "enforce", "--policies", str(tmp_path))
        counts = [cure.pid for cure in applied()].count(program.pid)
        program.kill()
    assert (done.returncode, done.stderr, counts) == (0, "", 50)
    assert done.stdout.endswith("50 open files have the window of a policy.\n")


@pytest.mark.parametrize("verb", ["apply", "enforce"])
def test_a_container_sets_nothing(verb: str, private_disk: Path, state: Path, tmp_path: Path) -> None:
    """It would forget what was set."""
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    words = {"apply": ["--device-of", str(path), "--read-ahead-kb", "64"], "enforce": ["--policies", str(tmp_path)]}
    argv = ["unshare", "--pid", "--fork", "--mount-proc", *ARGV, "cure", verb, *words[verb]]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (NoCure.status, "")
    assert done.stderr == (
        "foliolab-host: The record of a cure may be lost with this container, or PID namespace. Run it on the host.\n"
    )
    assert not state.exists()
    assert device_of(path).read_ahead_kb == before


def test_a_reader_that_has_gone_keeps_nothing_from_being_put_back(
    private_disk: Path, start: Callable[..., Toucher], cure: Callable[..., str]
) -> None:
    path = private_disk / "file"
    before, program = device_of(path).read_ahead_kb, start(path)
    cure("apply", "--device-of", str(path), "--read-ahead-kb", "64")
    cure("apply", "--file", str(path), "--read-ahead-kb", "32")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*ARGV, "cure", "undo"], stdout=writer, env={**os.environ, "PYTHONUNBUFFERED": "1"}, check=False
    )
    os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE
    assert json.loads(cure("show", "--json")) == {"cures": []}
    assert device_of(path).read_ahead_kb == before
    program.end()


def test_undo_finds_a_file_by_another_name(
    private_disk: Path, start: Callable[..., Toucher], cure: Callable[..., str], tmp_path: Path
) -> None:
    """A container has others, too."""
    path, link = private_disk / "file", tmp_path / "link"
    link.symlink_to(path)
    program = start(path)
    cure("apply", "--file", str(link), "--read-ahead-kb", "32")
    assert f"in process {program.pid}: back to" in cure("undo", "--file", str(path))


@pytest.mark.parametrize("command", [["cure", "show"], ["diagnose", "--file"]])
def test_the_next_command_puts_back_what_a_killed_one_left(
    command: list[str], private_disk: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = private_disk / "file"
    device = device_of(path)
    change = {"device": device.name, "attribute": str(device.attribute), "device_kb": 64, "meanwhile_kb": 16}
    state.parent.mkdir()
    (state.parent / "lock").touch()
    state.write_text(json.dumps({"boot": boot_id(), "cures": [], "change": {**change, "files": []}}))
    set_device(device.attribute, 16)
    assert main([*command, *([str(path)] if "--file" in command else [])]) == 0
    assert f"A command was killed: {device.name} has 64 KiB again." in capsys.readouterr().err
    assert device.read_ahead_kb == 64


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["apply", "--read-ahead-kb", "16"], 2, "Say what to cure: --device-of FILE, or --file FILE, with --pid P"),
        (["apply", "--pid", "1", "--read-ahead-kb", "16"], 2, "Say what to cure"),
        (["undo", "--pid", "1"], 2, "Say what to cure"),
        (["undo", "--file", "/x", "--device-of", "/x"], 2, "Say what to cure"),
        (["apply", "--device-of", "/no/such", "--read-ahead-kb", "16"], 2, "There is no file /no/such."),
        (["apply", "--file", "/no/such", "--read-ahead-kb", "16"], 2, "There is no file /no/such."),
        (["apply", "--file", __file__, "--read-ahead-kb", "16"], 42, f"No process has {__file__} open"),
        (["apply", "--device-of", "/proc/self/stat", "--read-ahead-kb", "64"], 42, "has no read_ahead_kb"),
        (["apply", "--device-of", __file__, "--read-ahead-kb", "99999999"], 2, "--read-ahead-kb is a multiple of"),
        (["apply", "--pid", "4194305", "--file", __file__, "--read-ahead-kb", "64"], 2, "no process 4194305"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_requests(argv: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cure", *argv]) == status
    out, err = capsys.readouterr()
    assert words in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_place_that_cannot_be_written_is_named(state: Path) -> None:
    """Root is not told that only root may."""
    place = state.parent
    place.mkdir()
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", str(place), *ARGV, "cure", "undo"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if os.geteuid() or done.returncode in (1, 32):
        pytest.skip("a mount of one's own takes root")
    assert (done.returncode, done.stderr) == (3, f"foliolab-host: {place}/lock: Read-only file system.\n")


def test_it_takes_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nobody: None) -> None:
    try:
        device_of(Path("/bin/sh"))
    except NoCure as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory() as state:  # below tmp_path there is root alone
        monkeypatch.setenv("FOLIOLAB_STATE", state)
        assert main(["cure", "apply", "--device-of", "/bin/sh", "--read-ahead-kb", "64"]) == 41
    assert "Only root may write" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["show", "undo"])
def test_what_root_set_is_root_s(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], nobody: None, tmp_path: Path
) -> None:
    with tempfile.TemporaryDirectory() as state:
        monkeypatch.setenv("FOLIOLAB_STATE", state)
        (Path(state) / "state.json").write_text("{}")
        Path(state).chmod(0)
        try:
            assert main(["cure", verb]) == 41
        finally:
            Path(state).chmod(0o700)
    assert capsys.readouterr().err == "foliolab-host: Only root may change windows, and see what was changed.\n"
