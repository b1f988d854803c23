# SPDX-License-Identifier: GPL-2.0-only
import mmap
import os
from pathlib import Path

from foliolab.live.maps import Maps, file_of, memory_bytes, named, read_ahead_kb

TEXT = """\
55d0c2a00000-55d0c2a02000 r--p 00000000 fe:01 77                         /usr/bin/some program
7f0000000000-7f0000004000 r--s 00010000 08:10 4000000000                 /data/gone (deleted)
7f0000004000-7f0000005000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""


def test_addresses_are_places_in_files() -> None:
    maps = Maps()
    maps.add(1, TEXT)
    program, gone = (254 << 20 | 1, 77), (8 << 20 | 16, 4000000000)
    assert maps.names == {program: "/usr/bin/some program", gone: "/data/gone"}
    assert maps.locate(1, 0x55D0C2A01234) == (program, 0x1234)
    assert maps.locate(1, 0x7F0000003FFF) == (gone, 0x13FFF)
    assert [maps.locate(1, address) for address in (0, 0x55D0C2A02000, 0x7F0000004000, 1 << 63)] == [None] * 4
    assert maps.locate(2, 0x55D0C2A01234) is None
    # What is mapped there later counts.
    maps.add(1, TEXT.replace("fe:01 77 ", "fe:01 78 "))
    assert maps.locate(1, 0x55D0C2A01234) == ((254 << 20 | 1, 78), 0x1234)


def test_a_mapped_file_of_ours_is_the_one_that_its_path_names(tmp_path: Path) -> None:
    path = tmp_path / "a b"
    path.write_bytes(bytes(8192))
    maps = Maps()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        maps.look([os.getpid(), 1 << 22])
        assert len(mapped) == 8192
    assert maps.names[file_of(path)] == str(path)


def test_patterns_name_files(tmp_path: Path) -> None:
    for name in ("one.db", "below/two.db", "below/.three.db", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "dangling.db").symlink_to("nowhere")
    found = named([f"{tmp_path}/**/*.db", f"{tmp_path}/other"])
    assert sorted(found.values()) == [
        str(tmp_path / name) for name in ("below/.three.db", "below/two.db", "one.db", "other")
    ]
    assert named([f"{tmp_path}/none*"]) == {}


def test_devices_and_memory(tmp_path: Path) -> None:
    assert read_ahead_kb((1 << 11) - 1 << 20) is None
    numbers = [tuple(map(int, path.name.split(":"))) for path in Path("/sys/dev/block").iterdir()]
    windows = [read_ahead_kb(major << 20 | minor) for major, minor in numbers]
    assert all(window is not None and window >= 0 for window in windows)
    assert 0 < memory_bytes(os.getpid()) <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
