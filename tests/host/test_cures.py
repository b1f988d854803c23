# SPDX-License-Identifier: GPL-2.0-only
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest

from foliohost import openings, processes, taken, windows
from foliohost import state as kept
from foliohost.cli.cure import tell_restored
from foliohost.cli.main import main
from foliohost.cures import Given, apply_to_device, apply_to_open_files, forget_ended, state_of, undo
from foliohost.devices import device_of
from foliohost.errors import NoCure, NotPermitted
from foliohost.state import Cure, applied, boot_id, changing, restore
from foliohost.windows import Descriptors, OpenFile, open_in
from tests.host.command import ENVIRONMENT
from tests.host.conftest import Toucher
from tests.host.windows import read_kb


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOLIOLAB_STATE", str(tmp_path / "state"))
    return tmp_path / "state/state.json"


def apply(path: Path, window: int, *programs: Toucher) -> Given:
    return apply_to_open_files([open_in(program.pid, path) for program in programs], device_of(path), window)


def states() -> list[tuple[int | None, int, str]]:
    return [(cure.pid, cure.read_ahead_kb, state_of(cure)) for cure in applied()]


def of_process(pid: int | None) -> Callable[[Cure], bool]:
    return lambda cure: cure.pid == pid


def undo_all() -> list[str]:
    return [words for _, words in undo(lambda cure: True)]


def test_what_was_there_first_is_put_back(private_disk: Path) -> None:
    path = private_disk / "file"
    device = device_of(path)
    before = device.read_ahead_kb
    for window in (256, 64):
        assert apply_to_device(path, window).before_kb == before
        assert device.read_ahead_kb == window
    assert states() == [(None, 64, "holds")]
    assert undo_all() == [f"back to {before} KiB"]
    assert device.read_ahead_kb == before
    assert applied() == []


def test_what_somebody_else_has_set_stays(private_disk: Path) -> None:
    path = private_disk / "file"
    device = device_of(path)
    apply_to_device(path, 64)
    device.attribute.write_text("512")
    assert states() == [(None, 64, "somebody has set 512 KiB")]
    assert undo_all() == ["somebody has set 512 KiB"]
    assert device.read_ahead_kb == 512


def test_what_somebody_else_has_set_is_what_the_next_cure_puts_back(private_disk: Path) -> None:
    path = private_disk / "file"
    device = device_of(path)
    apply_to_device(path, 64)
    device.attribute.write_text("512")
    assert apply_to_device(path, 32).before_kb == 512
    assert undo_all() == ["back to 512 KiB"]
    assert device.read_ahead_kb == 512


def test_what_somebody_has_set_since_is_not_the_window_of_what_was_open_before(
    private_disk: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    device = device_of(path)
    windows.set_device(device.attribute, 128)
    program = start(path)
    apply_to_device(path, 64)
    device.attribute.write_text("256")
    assert apply(path, 16, program).cures[0].before_kb == 128
    assert undo_all() == ["back to 128 KiB", "somebody has set 256 KiB"]
    assert (read_kb(program, path), device.read_ahead_kb) == (128, 256)


@pytest.mark.parametrize("change", ["another", "older version"])
def test_another_disk_of_the_same_name_has_its_own_window(
    change: str, private_disk: Path, state: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    apply_to_device(path, 64)
    apply(path, 16, program)
    content = json.loads(state.read_text())
    for cure in content["cures"]:
        if change == "another":
            cure["sequence"] -= 1
        else:
            del cure["sequence"]
    state.write_text(json.dumps(content))
    same = change != "another"
    assert [words for _, _, words in states()] == ["holds" if same else "the device is another one by now"] * 2
    (given,) = apply(path, 32, program).cures
    assert (given.before_kb, apply_to_device(path, 32).before_kb) == ((before, before) if same else (64, 64))
    undo_all()


def test_a_file_that_was_opened_again_has_the_window_of_that_time(
    private_disk: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    device = device_of(path)
    windows.set_device(device.attribute, 1024)
    program = start(path)
    apply(path, 64, program)
    program.tell("open")
    assert apply(path, 32, program).cures[0].before_kb == 1024
    windows.set_device(device.attribute, 512)
    program.tell("anew")
    assert apply(path, 16, program).cures[0].before_kb == 512
    assert undo_all() == ["back to 512 KiB"]


def test_open_file(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    given = apply(path, 64, program)
    assert (given.opened, [cure.before_kb for cure in given.cures]) == ((), [before])
    assert 0 < given.moment_us < 1e6
    assert states() == [(program.pid, 64, "holds")]
    assert undo_all() == [f"back to {before} KiB"]
    apply(path, 64, program)
    program.tell("close")
    assert states() == [(program.pid, 64, "the file was closed")]
    with pytest.raises(NoCure, match="has no descriptor of this file"):
        apply(path, 128, program)
    assert states() == [(program.pid, 64, "the file was closed")]
    program.end()
    assert states() == [(program.pid, 64, "the process has ended")]
    assert undo_all() == ["the process has ended"]


def test_several_who_have_it_open(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    first, second, closed = (start(path) for _ in range(3))
    closed.tell("close")
    assert [cure.pid for cure in apply(path, 64, first, closed, second).cures] == [first.pid, second.pid]
    assert [read_kb(program, path) for program in (first, second)] == [64, 64]
    second.tell("close")
    forget_ended()
    assert states() == [(first.pid, 64, "holds")]


def test_a_process_with_many_files_is_looked_at_once(private_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [private_disk / str(number) for number in range(50)]
    handles = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    look, looked = processes.numbers_by_inode, []

    def count(pid: int) -> dict[int, list[int]]:
        looked.append(pid)
        return look(pid)

    monkeypatch.setattr(windows, "numbers_by_inode", count)
    with subprocess.Popen(["sleep", "300"], pass_fds=handles) as program:
        files = [open_in(program.pid, path) for path in paths]
        given = apply_to_open_files(files, device_of(paths[0]), 64)
        forget_ended()
        assert len(given.cures) == len(applied()) == 50
        assert looked == [program.pid, program.pid]
        give = windows.give_window
        moments: list[int] = []

        def noted(attribute: Path, window: int, handles: Sequence[int]) -> int:
            moments.append(len(handles))
            return give(attribute, window, handles)

        monkeypatch.setattr(windows, "give_window", noted)
        assert len(undo_all()) == 50
        assert (moments, looked, applied()) == ([50], [program.pid] * 3, [])
        program.kill()
    for handle in handles:
        os.close(handle)


def has_open(device: int) -> bool:
    """Whether we have a file of a device open."""
    links = Path("/proc/self/fd").iterdir()
    return any(link.stat().st_dev == device for link in links if link.exists())


def test_nothing_of_others_is_held_while_a_keeper_starts(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may take seconds, in which a lock of theirs would outlast them."""
    path = private_disk / "file"
    number, program = path.stat().st_dev, start(path)
    there = [False]
    held = []

    def come(directory: Path) -> bool:
        if not there[0]:
            held.append(has_open(number))
        there[0] = True
        return True

    monkeypatch.setattr(kept, "start_keeper", come)
    apply(path, 64, program)
    there[0] = False
    undo_all()
    assert held == [False, False]


def test_nothing_of_others_is_held_while_mounts_are_looked_through(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be thousands."""
    path = private_disk / "file"
    number, program = path.stat().st_dev, start(path)
    look, held = processes.all_processes, []

    def noted() -> list[int]:
        held.append(has_open(number))
        return look()

    monkeypatch.setattr(openings, "all_processes", noted)
    apply(path, 64, program)
    undo_all()
    assert held == [False, False]


def test_a_file_that_has_lost_its_name_is_put_back(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    apply(path, 64, program)
    path.rename(private_disk / "other")
    path.write_bytes(b"another")
    assert undo_all() == [f"back to {before} KiB"]
    program.tell("page 0")
    assert read_kb(program, private_disk / "other") >= min(before, 4096)


def test_undo_ends_at_what_was_before_in_any_order(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)  # nothing is killed, and there are many changes
    path = private_disk / "file"
    device = device_of(path)
    windows.set_device(device.attribute, 512)
    first, second = start(path), start(path)
    acts: dict[int | None, Callable[[], object]] = {
        None: lambda: apply_to_device(path, 256),
        first.pid: lambda: apply(path, 64, first),
        second.pid: lambda: apply(path, 128, second),
    }
    for several in ([None, first.pid], [None, first.pid, second.pid]):
        for applying, undoing in product(permutations(several), repeat=2):
            if second.pid in applying and applying.index(second.pid) < applying.index(first.pid):
                continue  # they are alike
            for each in applying:
                acts[each]()
            assert {cure.before_kb for cure in applied()} == {512}
            for pid in undoing:
                assert [cure.pid for cure, _ in undo(of_process(pid))] == [pid]
            assert device.read_ahead_kb == 512
    assert [read_kb(program, path) for program in (first, second)] == [512, 512]


@pytest.mark.parametrize("device_first", [True, False])
def test_the_file_has_its_window_whichever_is_undone_first(
    device_first: bool, private_disk: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    windows.set_device(device_of(path).attribute, 512)
    program = start(path)
    apply_to_device(path, 256)
    assert read_kb(program, path) == 512
    apply(path, 64, program)
    assert read_kb(program, path) == 64
    later = start(path)
    assert apply(path, 128, later).cures[0].before_kb == 256
    list(undo(lambda cure: (cure.pid is None) == device_first))
    list(undo(lambda cure: True))
    assert (read_kb(program, path), read_kb(later, path)) == (512, 256)


def test_a_hint_of_the_program_does_not_keep_it_from_being_put_back(
    private_disk: Path, start: Callable[..., Toucher]
) -> None:
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    apply(path, 256, program)
    program.tell("hint")
    assert undo_all() == [f"back to {before} KiB"]


def restored() -> list[str]:
    words: list[str] = []
    restore(words)
    return words


def fails(*words: object) -> int:
    raise NoCure("No.")


def test_what_cannot_be_put_back_is_not_forgotten(
    private_disk: Path, state: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is changed until it can be."""
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)  # it would be faster than we are
    path = private_disk / "file"
    before = device_of(path).read_ahead_kb
    program = start(path)
    apply_to_device(path, 64)
    apply(path, 256, program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "give_window", fails)
        with pytest.raises(NoCure, match=r"No\."):
            undo_all()
        assert json.loads(state.read_text())["change"]["files"][0]["pid"] == program.pid
        with pytest.raises(NoCure, match=r"No\."):
            restore([])
    assert states() == [(None, 64, "holds"), (program.pid, 256, "holds")]
    assert restored() == [f"{path} in process {program.pid} has 256 KiB again."]
    assert undo_all() == [f"back to {before} KiB"] * 2
    assert device_of(path).read_ahead_kb == before


def left(path: Path, state: Path) -> None:
    """As a kill leaves a change of open files."""
    device = device_of(path)
    content = json.loads(state.read_text())
    change = {"device": device.name, "attribute": str(device.attribute), "device_kb": device.read_ahead_kb}
    state.write_text(json.dumps({**content, "change": {**change, "meanwhile_kb": 16, "files": content["cures"]}}))


def test_what_was_closed_is_forgotten_and_what_may_not_be_taken_is_not(
    private_disk: Path, state: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)
    path = private_disk / "file"
    closed, ended, there = (start(path) for _ in range(3))
    apply(path, 64, closed, ended, there)
    left(path, state)
    closed.tell("close")
    ended.end()
    with monkeypatch.context() as patch:

        def refuse(pidfd: int, number: int) -> int:
            raise PermissionError

        patch.setattr(taken, "pidfd_getfd", refuse)
        with pytest.raises(NotPermitted, match=f"take a descriptor of process {there.pid}"):
            restore([])
    assert json.loads(state.read_text())["change"]
    assert restored() == [f"{path} in process {there.pid} has 64 KiB again."]
    assert json.loads(state.read_text())["change"] is None


def test_what_could_be_put_back_is_told_of_and_not_put_back_again(
    private_disk: Path,
    state: Path,
    start: Callable[..., Toucher],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor is the device's window, which somebody may set meanwhile to what it was when the change began."""
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)
    path = private_disk / "file"
    device = device_of(path)
    first, second = (start(path) for _ in range(2))
    apply(path, 64, first, second)
    left(path, state)
    held, refused = taken.held, [second.pid]

    def refuse(file: OpenFile, told: Descriptors | None = None) -> AbstractContextManager[list[int]]:
        if file.pid in refused:
            raise NotPermitted("No.")
        return held(file, told)

    monkeypatch.setattr(taken, "held", refuse)
    assert main(["cure", "restore"]) == NotPermitted.status
    assert capsys.readouterr() == (f"{path} in process {first.pid} has 64 KiB again.\n", "foliolab-host: No.\n")
    assert [cure["pid"] for cure in json.loads(state.read_text())["change"]["files"]] == [second.pid]
    windows.set_device(device.attribute, 64)
    with pytest.raises(NotPermitted, match=r"^No\.$"):
        restored()
    assert device.read_ahead_kb == 64
    tell_restored()
    assert capsys.readouterr().err == "Of what a killed command left, this cannot be put back: No.\n"
    refused.clear()
    assert restored() == [f"{path} in process {second.pid} has 64 KiB again."]
    assert restored() == []


def test_what_keeps_several_from_being_put_back_is_told_once(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)
    path = private_disk / "file"
    first, second = start(path), start(path)
    apply(path, 64, first)
    windows.set_device(device_of(path).attribute, 512)
    apply(path, 64, second)
    with monkeypatch.context() as patch:
        patch.setattr(windows, "give_window", fails)
        with pytest.raises(NoCure, match=r"^No\.$"):
            undo_all()
    assert len(undo_all()) == 2


FEW = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
from foliohost.cli.main import main
sys.exit(main(["cure", *sys.argv[1:]]))
"""


def with_few(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What comes of a command of ``cure`` that may have 48 descriptors."""
    argv, environment = [sys.executable, "-c", FEW, *words], {**ENVIRONMENT, "FOLIOLAB_STATE": str(state.parent)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_more_open_files_than_we_may_hold_are_put_back_bit_by_bit(private_disk: Path, state: Path) -> None:
    paths = [private_disk / str(number) for number in range(50)]
    handles = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    with subprocess.Popen(["sleep", "300"], pass_fds=handles) as program:
        apply_to_open_files([open_in(program.pid, path) for path in paths], device_of(paths[0]), 64)
        counts = [len(applied())]
        all_done: list[subprocess.CompletedProcess[str]] = []
        while counts[-1] and len(all_done) < 10:
            all_done.append(with_few(state, "undo"))
            counts.append(len(applied()))
        program.kill()
    for handle in handles:
        os.close(handle)
    assert [done.returncode for done in all_done] == [*[NoCure.status] * (len(all_done) - 1), 0]
    assert [done.stdout.count("back to") for done in all_done] == [one - other for one, other in pairwise(counts)]
    words = "These are more open files than may be held at a time here (ulimit -n).\n"
    assert all(done.stderr.endswith(words) for done in all_done[:-1])
    assert len(all_done) > 1


def test_more_open_files_than_we_may_hold_are_told_of(private_disk: Path, state: Path) -> None:
    path = private_disk / "file"
    handles = [os.open(path, os.O_RDONLY) for _ in range(100)]
    with subprocess.Popen(["sleep", "300"], pass_fds=handles) as program:
        words = ["apply", "--file", str(path), "--pid", str(program.pid), "--read-ahead-kb", "64"]
        done = with_few(state, *words)
        program.kill()
    for handle in handles:
        os.close(handle)
    assert done.returncode == NoCure.status
    assert "These are more open files than may be held at a time here (ulimit -n).\n" in done.stderr
    assert applied() == []


@pytest.mark.parametrize("boot", ["another", None])
def test_what_a_killed_command_left_is_put_back_unless_the_machine_was_started_anew(
    boot: str | None, state: Path, private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "start_keeper", lambda directory: True)  # it would be faster than we are
    path = private_disk / "file"
    device = device_of(path)
    windows.set_device(device.attribute, 1024)
    program = start(path)
    (cure,) = apply(path, 64, program).cures
    content = json.loads(state.read_text())
    change = {"device": device.name, "attribute": str(device.attribute), "device_kb": 1024, "meanwhile_kb": 16}
    after_kill = {**content, "boot": boot or content["boot"], "change": {**change, "files": content["cures"]}}
    windows.set_device(device.attribute, 16)
    state.write_text(json.dumps(after_kill))
    words = restored()
    if boot:
        assert (words, applied(), device.read_ahead_kb) == ([], [], 16)
    else:
        assert words == [
            f"{device.name} has 1024 KiB again. What others opened while it had 16 KiB keeps that until it is closed.",
            f"{path} in process {program.pid} has 64 KiB again.",
        ]
        assert (applied(), device.read_ahead_kb, read_kb(program, path)) == ([cure], 1024, 64)
        assert json.loads(state.read_text())["boot"] == boot_id()
    assert restored() == []


def test_nobody_waits_to_put_back(private_disk: Path) -> None:
    apply_to_device(private_disk / "file", 64)
    with changing():
        assert restored() == []
    undo_all()


def test_what_somebody_has_set_after_a_kill_stays(state: Path, private_disk: Path) -> None:
    device = device_of(private_disk / "file")
    windows.set_device(device.attribute, 512)
    change = {"device": device.name, "attribute": str(device.attribute), "device_kb": 1024, "meanwhile_kb": 16}
    state.parent.mkdir()
    state.write_text(json.dumps({"boot": boot_id(), "cures": [], "change": {**change, "files": []}}))
    (state.parent / "lock").touch()
    assert (restored(), device.read_ahead_kb) == ([], 512)


def test_a_device_that_has_gone(state: Path) -> None:
    cure = Cure("/f", "sda", "/no", 16, 128, 0)
    state.parent.mkdir()
    change = {"device": "sda", "attribute": "/no", "device_kb": 1024, "meanwhile_kb": 16, "files": []}
    state.write_text(json.dumps({"boot": boot_id(), "cures": [vars(cure)], "change": change}))
    assert restored() == []
    assert states() == [(None, 16, "the device is gone")]
    assert undo_all() == ["the device is gone"]
    assert applied() == []


@pytest.mark.parametrize("text", ["{", "[]", '{"boot": 3}', "[" * 9**6], ids=lambda text: text[:9])
def test_damaged_state(text: str, state: Path) -> None:
    state.parent.mkdir()
    state.write_text(text)
    with pytest.raises(NoCure, match=r"state\.json is damaged"):
        applied()
