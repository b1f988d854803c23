# SPDX-License-Identifier: GPL-2.0-only
import mmap
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from foliohost.details import details
from foliohost.maps import Maps, _group, file_of, memory_bytes, named, read_ahead_kb
from foliohost.processes import mappings
from tests.processes import wait_until

TEXT = """\
55d0c2a00000-55d0c2a02000 r--p 00000000 fe:01 77                         /usr/bin/some program
7f0000000000-7f0000004000 r--s 00010000 08:10 4000000000                 /data/gone (deleted)
7f0000004000-7f0000005000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""


PROGRAM, GONE = (254 << 20 | 1, 77), (8 << 20 | 16, 4000000000)


def test_addresses_are_places_in_files() -> None:
    maps = Maps()
    maps.add(1, TEXT, 10)
    assert maps.names == {PROGRAM: "/usr/bin/some program", GONE: "/data/gone"}
    assert maps.locate(1, 0x55D0C2A01234, 5) == (PROGRAM, 0x1234)
    assert maps.locate(1, 0x7F0000003FFF, 15) == (GONE, 0x13FFF)
    assert [maps.locate(1, address, 5) for address in (0, 0x55D0C2A02000, 0x7F0000004000, 1 << 63)] == [None] * 4
    assert maps.locate(2, 0x55D0C2A01234, 5) is None


def test_what_was_mapped_at_the_time_counts() -> None:
    """Of a number that is another program from 20 on, and has mapped less when it is looked at at 40 and 50."""
    maps = Maps()
    other = (254 << 20 | 1, 78)
    gone = "".join(TEXT.splitlines(keepends=True)[1:])
    for moment, text in ((10, TEXT), (20, TEXT.replace("fe:01 77 ", "fe:01 78 ")), (30, gone), (40, gone)):
        maps.add(1, text, moment)
    found = [maps.locate(1, 0x55D0C2A01234, moment) for moment in (5, 10, 11, 20, 25, 30, 35, 45)]
    # Between two looks the later one decides, unless nothing is there any more.
    assert found == [(PROGRAM, 0x1234)] * 2 + [(other, 0x1234)] * 3 + [None] * 3
    assert [maps.locate(1, 0x7F0000000000, moment) for moment in (5, 25, 45)] == [(GONE, 0x10000)] * 3


def test_a_long_recording_of_names_takes_no_more_memory() -> None:
    """Mappings come and go all the time."""
    maps = Maps(keep=False)
    tracemalloc.start()
    try:
        for moment in range(500):
            maps.add(1, TEXT.replace("55d0c2a", f"{moment:07x}"), moment)
            if moment == 100:
                before, _ = tracemalloc.get_traced_memory()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert set(maps.names) == {PROGRAM, GONE}
    assert after < before + 10_000


def test_mappings_that_are_kept_share_what_stays_and_are_counted() -> None:
    """One of 500 mappings comes and goes at each look."""
    line = "{:012x}-{:012x} r--s 00000000 fe:01 {} /data/{}\n"
    same = "".join(line.format(number << 20, (number << 20) + 4096, number, number) for number in range(1, 500))
    maps = Maps()
    tracemalloc.start()
    try:
        for moment in range(200):
            address = (1000 + moment) << 20
            maps.add(1, same + line.format(address, address + 4096, 7, 7), moment)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert maps.size == 699 * 400 + 200 * 500 * 8
    assert taken / 2 < maps.size < taken * 2


def test_a_program_that_another_has_replaced_is_not_looked_for_in_it(tmp_path: Path) -> None:
    """exec, with the next program's file mapped instead."""
    maps = Maps()
    argv = ["sh", "-c", "echo; read -r _; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        maps.look([child.pid])
        between = time.monotonic_ns()
        place = next(each.start for each in mappings(child.pid) if each.path.endswith("sh"))
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "cat\n")
        maps.look([child.pid])
        after = time.monotonic_ns()
        found = [maps.locate(child.pid, place, moment) for moment in (between, after)]
    names = [maps.names[each[0]] if each else None for each in found]
    assert names[0] is not None
    assert names[0].endswith("sh")
    assert names[1] is None or not names[1].endswith("sh")


def test_a_mapped_file_of_ours_is_the_one_that_its_path_names(tmp_path: Path) -> None:
    path = tmp_path / "a b\rc\x0cd\u2028e"
    path.write_bytes(bytes(8192))
    maps = Maps()
    with (
        path.open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped,
        subprocess.Popen(["sleep", "600"]) as other,
    ):
        maps.look([os.getpid(), other.pid, 1 << 22])
        other.kill()
        assert len(mapped) == 8192
        place = next(each.start for each in mappings(os.getpid()) if each.path == str(path))
    assert maps.names[file_of(path)] == str(path)
    assert maps.locate(os.getpid(), place, 0) == (file_of(path), 0)
    assert maps.locate(other.pid, place, 0) != (file_of(path), 0)


def test_a_task_cannot_name_itself_into_another_group() -> None:
    program = "open('/proc/self/comm', 'w', newline='').write('\\x1c\\rTgid:\\t1'); print(flush=True); input()"
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        assert _group(child.pid) == child.pid
        assert details(child.pid) is not None
        child.communicate()


def test_patterns_name_files(tmp_path: Path) -> None:
    for name in ("one.db", "below/two.db", "below/.three.db", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "dangling.db").symlink_to("nowhere")
    (tmp_path / "directory.db").mkdir()
    found = named([f"{tmp_path}/**/*.db", f"{tmp_path}/other"])
    assert sorted(found.values()) == [
        str(tmp_path / name) for name in ("below/.three.db", "below/two.db", "one.db", "other")
    ]
    assert named([f"{tmp_path}/none*"]) == {}


def test_what_is_mounted_is_read_once_for_many_files(tmp_path: Path, tables: list[Path]) -> None:
    for number in range(20):
        (tmp_path / f"{number}.db").touch()
    found = named([f"{tmp_path}/*.db", "/proc/self/stat"])
    assert len(found) == 21
    assert tables == [Path("/proc/self/mountinfo")]
    assert all(file_of(Path(name)) == file for file, name in found.items() if name.startswith(str(tmp_path)))


def test_directories_that_somebody_made_deep_are_looked_through(tmp_path: Path) -> None:
    """Down to where a path would be too long."""
    depths = {"a": 1500, 200 * "b": 40}
    for name, depth in depths.items():
        at = os.open(tmp_path, os.O_PATH)
        for _ in range(depth):
            os.mkdir(name, dir_fd=at)
            below = os.open(name, os.O_PATH, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
    (tmp_path / "a/a/file").touch()
    try:
        assert set(named([f"{tmp_path}/**/file"]).values()) == {str(tmp_path / "a/a/file")}
    finally:
        subprocess.run(["rm", "-rf", *(tmp_path / name for name in depths)], check=True)


def test_devices_and_memory(tmp_path: Path) -> None:
    assert read_ahead_kb((1 << 11) - 1 << 20) is None
    for disk in Path("/sys/dev/block").iterdir():
        major, minor = map(int, disk.name.split(":"))
        # Those of a partition are above it.
        (window,) = (place for place in (disk / "queue", disk.resolve().parent / "queue") if place.exists())
        assert read_ahead_kb(major << 20 | minor) == int((window / "read_ahead_kb").read_text())
    assert 0 < memory_bytes(os.getpid()) <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")


def test_mappings_outlive_the_thread_that_began() -> None:
    """Its file ``maps`` is empty then; the group's others have what is mapped."""
    program = (
        "import ctypes, os, sys, threading, time\n"
        "threading.Thread(target=lambda: time.sleep(60)).start()\n"
        "print('ready', flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        try:
            assert wait_until(lambda: not Path(f"/proc/{process.pid}/maps").read_bytes())
            tasks = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
            maps = Maps()
            maps.look(tasks)
            assert any("libc" in name for name in maps.names.values())
        finally:
            process.kill()
