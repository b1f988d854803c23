# SPDX-License-Identifier: GPL-2.0-only
import mmap
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost import processes
from foliohost.errors import FolioError, NotPermitted, UsageError
from foliohost.processes import PAGE_BYTES, Counters, Tally, parse_maps
from foliohost.survey import maps_large_file
from foliohost.watch import Watch
from tests.processes import wait_until

_MAPS = """\
7f0000000000-7f0000010000 r--s 00002000 fe:10 1234                       /srv/my db/data.mdb
7f0000010000-7f0000011000 r-xp 00000000 fe:10 99                         /usr/bin/engine
7f0000011000-7f0000012000 rw-p 00000000 00:00 0                          [heap]
7f0000012000-7f0000013000 rw-s 00000000 00:01 7                          /memfd:x (deleted)
7f0000013000-7f0000014000 r--p 00000000 fe:10 5                          /a\\012b
"""


def test_maps() -> None:
    data, text, odd = parse_maps(_MAPS)
    assert (data.path, data.file, data.offset, data.end - data.start) == (
        "/srv/my db/data.mdb",
        ("254:16", 1234),
        0x2000,
        0x10000,
    )
    assert (data.text, text.text, odd.path) == (False, True, "/a\nb")
    assert [each.path for each in parse_maps(_MAPS, deleted=True)][2] == "/memfd:x"


def test_our_own_mapping_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(bytes(3 * PAGE_BYTES))
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as place:
        assert place[0] == 0
        (found,) = [each for each in processes.mappings(os.getpid()) if each.path == str(path)]
        assert found.end - found.start == 3 * PAGE_BYTES
        assert processes.same_file(os.getpid(), found, path.stat())
        assert not processes.same_file(os.getpid(), replace(found, device="0:0", path="/no/such"), path.stat())
        assert os.getpid() in processes.mapped_by(path.stat())[0]
        facts = path.stat()
        assert stream.fileno() in processes.numbers_by_inode(os.getpid())[facts.st_ino]
        assert processes.open_files(os.getpid(), {facts.st_ino, 1}) >= {(facts.st_dev, facts.st_ino)}
    assert os.getpid() not in processes.mapped_by(path.stat())[0]


IN_A_ROOT = """
import mmap, os, sys
os.chroot(sys.argv[1])
with open(sys.argv[2], "rb") as stream:
    place = mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)
print(place[0], flush=True)
input()
"""


@pytest.mark.parametrize("mounts", ["ours", "others"])
def test_a_file_below_another_root_is_found(mounts: str, cold: Path, tmp_path: Path) -> None:
    """With our mounts, the kernel tells us its path from our root."""
    place, root = tmp_path / "place", tmp_path if mounts == "ours" else Path("/")
    place.mkdir()
    argv = [sys.executable, "-c", IN_A_ROOT, str(root), f"/{cold.name}"]
    if mounts == "others":
        script = 'mount --bind "$0" "$1"; shift; exec "$@"'
        argv = ["unshare", "--mount", "sh", "-c", script, str(tmp_path), str(place), *argv[:-1], str(place / cold.name)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as other:
        assert other.stdin and other.stdout and other.stderr
        if not other.stdout.readline():
            pytest.skip(f"another root takes root: {other.stderr.read().decode()}")
        (mapping,) = (each for each in processes.mappings(other.pid) if each.path.endswith(f"/{cold.name}"))
        way = cold if mounts == "ours" else Path(f"/proc/{other.pid}/root{place}/{cold.name}")
        assert processes.seen_by(other.pid, mapping) == way
        assert processes.same_file(other.pid, replace(mapping, device="0:0"), cold.stat())
        assert maps_large_file(other.pid)
        (file,) = Watch(lambda: [other.pid], cold.stat()).finish().files
        assert file.path == str(way)
        other.stdin.close()


def test_counters_are_those_of_the_kernel() -> None:
    before = processes.counters(os.getpid())
    memory = mmap.mmap(-1, 64 * PAGE_BYTES)
    for page in range(64):
        memory[page * PAGE_BYTES] = 1
    found = processes.counters(os.getpid()).since(before)
    assert found.minor_faults >= 1
    assert found.called_bytes > 0
    assert found.calls > 0


def test_differences_are_never_negative() -> None:
    assert Counters(1, 2, 3, 4).since(Counters(2, 1, 9, 4)) == Counters(0, 1, 0, 0)


def test_descendants() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        sleeper = int(shell.stdout.readline())
        assert {shell.pid, sleeper} <= set(processes.descendants(os.getpid()))
        os.kill(sleeper, 15)
    assert sleeper not in processes.descendants(os.getpid())


def test_what_parent_and_child_have_done_stays_when_both_end() -> None:
    """Nobody that is asked about has waited for either."""
    words = "(head -c 9000000 /dev/zero >/dev/null; echo; exec sleep 300) & echo $!; wait"
    with subprocess.Popen(["sh", "-c", words], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout
        said = shell.stdout.readline() + shell.stdout.readline()  # by either of them first
        sleeper = int(said)
        tally = Tally()
        assert tally.of([shell.pid, sleeper]).called_bytes >= 9_000_000
        shell.kill()
        os.kill(sleeper, 9)
    assert tally.of([shell.pid]).called_bytes >= 9_000_000


def test_nobody_there() -> None:
    with pytest.raises(UsageError, match=r"There is no process 4194305\."):
        processes.counters(4194305)


def test_a_process_that_has_ended_is_not_taken_for_a_kernel_without_a_file() -> None:
    """Nobody has waited for it. Since Linux 6.16 it has no mappings to open."""
    with subprocess.Popen(["true"]) as ended:
        assert wait_until(lambda: not processes.runs(ended.pid))
        try:
            assert processes.mappings(ended.pid) == []
        except UsageError as error:
            assert str(error) == f"There is no process {ended.pid}."
        with pytest.raises(UsageError, match="There is no process"), processes.asked_about(ended.pid):
            raise ProcessLookupError
        with pytest.raises(FolioError, match="built without /proc/PID/io"), processes.asked_about(ended.pid):
            raise FileNotFoundError


@pytest.mark.usefixtures("nobody")
def test_of_somebody_else() -> None:
    with pytest.raises(NotPermitted, match="Only its owner and root"):
        processes.mappings(1)
