# SPDX-License-Identifier: GPL-2.0-only
"""Faults are followed on this machine, where its kernel lets us: root, and a tracefs that is mounted."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foliohost import faults
from foliohost.devices import device_of
from foliohost.errors import FolioError
from foliohost.faults import FileFaults, followed, with_idle
from foliohost.observation import Observation
from foliohost.processes import PAGE_BYTES
from foliohost.touches import FAULT
from foliohost.tracefs import tracefs
from foliohost.verdict import judge
from foliohost.watch import Watch
from foliohost.windows import set_device
from tests.host import toucher
from tests.host.command import ARGV, host
from tests.host.conftest import Toucher
from tests.host.toucher import drop
from tests.host.tracing import here, instances
from tests.processes import wait_until

KEY = ("8:1", 5)


def seen_of(
    path: Path, start: Callable[..., Toucher], *commands: str, look: Callable[[Watch], None] = Watch.look
) -> Observation:
    """What ``look`` sees by tracepoints of a program with a file that is not cached."""
    drop(path)
    program = start(path)
    with followed([program.pid]) as trace:
        watch = Watch(lambda: [program.pid], path.stat(), trace=trace)
        for command in commands:
            program.tell(command)
        look(watch)
        return watch.finish()


@here
def test_what_faults_read_is_what_came_into_the_cache(private_disk: Path, start: Callable[..., Toucher]) -> None:
    """Nobody else reads this file: the cache tells what the tracepoints have to."""
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    seen = seen_of(path, start, "random 60")
    (file,) = seen.files
    assert file.fault_pages
    assert file.cached_pages
    # The rest of the last window may still be on its way.
    assert file.cached_pages <= file.fault_pages < file.cached_pages + 64 * 1024 // PAGE_BYTES
    assert file.major_faults
    assert file.major_faults <= seen.counted.major_faults  # its own text may be cold, too
    assert judge(seen).files[0].method == "tracepoints"
    assert seen.untraced == ""
    assert instances(os.getpid()) == []


@here
def test_what_a_call_reads_after_a_fault_is_not_the_faults(private_disk: Path, start: Callable[..., Toucher]) -> None:
    path = private_disk / "file"
    set_device(device_of(path).attribute, 64)
    (file,) = seen_of(path, start, "scan 1", "read").files
    half = path.stat().st_size // 2 // PAGE_BYTES
    assert file.cached_pages
    assert file.cached_pages > half
    assert file.fault_pages
    assert file.fault_pages < half / 2


@here
def test_a_command_is_followed_from_its_start(large_file: Path) -> None:
    drop(large_file)
    script = f"(echo random 20; echo wait; echo wait) | {sys.executable} {toucher.__file__} {large_file}"
    found = json.loads(host("diagnose", "--json", "--", "sh", "-c", script).stdout)
    assert found["untraced"] is None
    file = next(file for file in found["files"] if file["path"] == str(large_file))
    assert file["read_method"] == "tracepoints"
    assert 0 < file["major_faults"] <= 20
    assert file["read_bytes"] == file["fault_pages"] * found["page_bytes"] >= file["major_faults"] * found["page_bytes"]
    assert sum(file["major_faults"] or 0 for file in found["files"]) <= found["major_faults"]


@here
def test_buffers_take_no_more_memory_than_is_said() -> None:
    most = max(faults.BUFFERS_KIB, 512 * len(list((tracefs() / "per_cpu").iterdir())))
    with followed([os.getpid()]):
        (ours,) = instances(os.getpid())
        words = (ours / "buffer_total_size_kb").read_text()
        assert 0 < int(words.split()[0]) < 1.01 * most  # whole pages


@here
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_us_nothing_is_left(number: int, start: Callable[..., Toucher], large_file: Path) -> None:
    program = start(large_file)
    argv = [*ARGV, "diagnose", "--pid", str(program.pid), "--seconds", "300"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert wait_until(lambda: any((each / "events" / FAULT / "enable").exists() for each in instances(running.pid)))
        running.send_signal(number)
        running.communicate(timeout=60)
    assert wait_until(lambda: not instances(running.pid))


@here
def test_too_many_events_leave_estimates(
    private_disk: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "LIMIT_BYTES", 4096)
    seen = seen_of(private_disk / "file", start, "scan")
    assert seen.untraced.startswith("There were more than ")
    assert [(file.fault_pages, file.major_faults) for file in seen.files] == [(None, None)]
    assert judge(seen).files[0].method == "newly cached"


@pytest.fixture
def no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Temporary files have 4 KiB to share."""
    place = tmp_path / "small"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("mounting takes root")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@here
@pytest.mark.parametrize("early", [True, False])
def test_no_room_for_events_leaves_estimates(
    early: bool, private_disk: Path, start: Callable[..., Toucher], no_room: None
) -> None:
    def look(watch: Watch) -> None:
        if early:
            watch.run(0.3)
            (ours,) = instances(os.getpid())
            assert (ours / "tracing_on").read_text() == "0\n"
        watch.look()

    seen = seen_of(private_disk / "file", start, "scan", look=look)
    assert seen.untraced == "The kernel's trace cannot be kept: No space left on device."
    assert judge(seen).files[0].method == "newly cached"


def test_a_file_without_events_had_no_faults_unless_events_have_other_numbers() -> None:
    other = ("8:2", 5)
    assert with_idle({other: FileFaults(32, 1)}, [KEY]) == {other: FileFaults(32, 1)}
    assert with_idle({other: FileFaults()}, [KEY])[KEY] == FileFaults()
    assert with_idle({KEY: FileFaults(32, 1)}, [KEY, other]) == {KEY: FileFaults(32, 1), other: FileFaults()}


def test_who_may_not_is_told_so(nobody: None) -> None:
    with pytest.raises(FolioError, match=r"root\.$"), followed([os.getpid()]):
        pass


@here
def test_a_kernel_without_the_event(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(faults, "tracefs", lambda: tmp_path)
    words = r"^This kernel has no tracepoint mm_filemap_fault; Linux since 6\.11 has\.$"
    with pytest.raises(FolioError, match=words), followed([os.getpid()]):
        pass
