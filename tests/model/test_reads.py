# SPDX-License-Identifier: GPL-2.0-only
"""What the model reads is really read, and the kernel that runs here reads the same."""

import errno
import json
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliohost.devices import device_of, windows_adapt
from foliolab import process
from foliolab.errors import BuildError, LabError, ModelError
from foliolab.files import MODEL, REPOSITORY
from foliolab.model.library import PAGE_BYTES, Machine, replay
from foliolab.model.reads import KernelRun, ReadRun, RealCountsStruct, read_queue, replay_on, touch_mapped
from tests.disk_files import disk_file
from tests.model.test_library import layout

PAGES = 4096
SCATTERED = array("I", [number * 2741 % PAGES for number in range(600)])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with disk_file(tmp_path_factory.mktemp("disk"), PAGES * PAGE_BYTES) as path:
        yield path


def zeroes(count: int) -> "array[int]":
    return array("I", bytes(4 * count))


def machine(rules: str = "off", window: int = 32, memory: int = PAGES) -> Machine:
    return Machine(rules, PAGES, memory, window, reclaim="lists")


@pytest.fixture(scope="module")
def queue() -> Iterator[int]:
    """It stays open while page faults are counted."""
    with read_queue() as queue:
        yield queue


@pytest.fixture(scope="module")
def threads() -> Iterator[int]:
    with read_queue(threads=True) as queue:
        yield queue


def on(queue: int, file: Path, machine: Machine, pages: "array[int]") -> ReadRun:
    return replay_on(queue, file, machine, pages, zeroes(len(pages)), [machine.file_pages])


def test_the_struct_is_that_of_c(tmp_path: Path) -> None:
    source = tmp_path / "checks.c"
    header = MODEL / "reads/real_reads.h"
    source.write_text(
        "\n".join(["#include <stddef.h>", f'#include "{header}"', *layout(RealCountsStruct, "real_counts")])
    )
    assert process.run(["cc", "-Werror", "-c", "-o", str(tmp_path / "checks.o"), str(source)], BuildError) == b""


@pytest.mark.parametrize("rules", ["off", "adaptive", "random"])
def test_all_that_the_model_reads_is_read(queue: int, threads: int, file: Path, rules: str) -> None:
    little = machine(rules, memory=PAGES // 4)
    expected = replay(little, SCATTERED)
    one, other = (on(each, file, little, SCATTERED) for each in (queue, threads))
    for run in (one, other):
        assert run.counts == expected
        assert (run.read_bytes, run.requests) == (expected.read_bytes, expected.requests)
        assert run.waits <= len(SCATTERED)
        assert run.seconds > 0
    assert one.read_by in ("io_uring", "threads")
    assert other.read_by == "threads"
    assert other.waits > 0  # on some disks a ring's reads end as they begin, but a thread has to wake up first


def test_a_request_has_a_mebibyte_at_most(queue: int, file: Path) -> None:
    run = on(queue, file, machine("fixed", window=1024), array("I", [2000]))
    assert (run.counts.requests, run.counts.pages_read, run.requests) == (1, 1024, 4)


def test_more_is_read_than_buffers_hold(queue: int, threads: int, file: Path) -> None:
    pages = array("I", [*range(PAGES)] * 6)
    little = machine(window=1024, memory=2048)
    for each in (queue, threads):
        run = on(each, file, little, pages)
        assert run.read_bytes == replay(little, pages).read_bytes > 5 * PAGES * PAGE_BYTES


def test_files_lie_one_after_the_other(queue: int, file: Path) -> None:
    """The last page of the second is the last of the file; one more would be an error."""
    pages, file_of = array("I", [0, 95]), array("I", [0, 1])
    two = Machine("random", PAGES, PAGES, 1)
    assert replay_on(queue, file, two, pages, file_of, [PAGES - 96, 96]).read_bytes == 2 * PAGE_BYTES


SMALL = Machine("random", 5, 5, 1)


def test_the_last_page_may_not_be_whole(queue: int, threads: int, tmp_path: Path, file: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * (4 * PAGE_BYTES + 100))
    for each in (queue, threads):
        assert on(each, tmp_path / "short", SMALL, array("I", [4, 0])).read_bytes == PAGE_BYTES + 100


def test_a_file_that_ends_too_early_is_an_error(queue: int, threads: int, tmp_path: Path, file: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * PAGE_BYTES)
    for each in (queue, threads):
        with pytest.raises(OSError, match="short") as caught:
            on(each, tmp_path / "short", SMALL, array("I", [0, 4]))
        assert caught.value.errno == errno.EIO
        assert on(each, file, machine(), SCATTERED).counts.accesses == len(SCATTERED)


def test_a_page_beyond_the_files_is_an_error(queue: int, file: Path) -> None:
    with pytest.raises(ModelError, match="A page is not one of the 4096"):
        on(queue, file, machine(), array("I", [PAGES]))


def test_a_file_that_cannot_be_opened_is_named(queue: int, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        on(queue, tmp_path / "none", machine(), SCATTERED)
    assert caught.value.filename == str(tmp_path / "none")


_REFUSED = """
import ctypes, json, struct, sys
from array import array
from pathlib import Path
from foliolab.model.library import Machine
from foliolab.model.reads import read_queue, replay_on
# seccomp: load the number of the system call; io_uring_setup gets EPERM, all else is allowed.
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 425, 0x06, 0, 0, 0x00050001, 0x06, 0, 0, 0x7FFF0000)
place = ctypes.create_string_buffer(code)
program = struct.pack("HP", 4, ctypes.addressof(place))
prctl = ctypes.CDLL(None).prctl
assert not prctl(38, 1, 0, 0, 0) and not prctl(22, 2, ctypes.c_char_p(program), 0, 0)
machine = Machine("random", 64, 64, 1)
with read_queue() as queue:
    run = replay_on(queue, Path(sys.argv[1]), machine, array("I", [7, 9]), array("I", [0, 0]), [64])
print(json.dumps([run.read_by, run.requests, run.read_bytes]))
"""


def test_threads_read_where_io_uring_is_refused(file: Path) -> None:
    number = str(file).rpartition("/")[2]
    argv = [sys.executable, "-c", _REFUSED, str(file)]
    done = subprocess.run(argv, cwd=REPOSITORY, pass_fds=[int(number)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["threads", 2, 2 * PAGE_BYTES]


_LITTLE_MEMORY = """
import resource
from pathlib import Path
from foliolab.model.reads import _load, read_queue
_load()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)
try:
    with read_queue(threads=True):
        pass
except OSError as error:
    print(error.filename, error.strerror, sep=": ")
"""


def test_threads_that_cannot_be_are_named() -> None:
    argv = [sys.executable, "-c", _LITTLE_MEMORY]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == "A queue of reads: Resource temporarily unavailable\n"


def window(file: Path) -> int:
    """Pages that the kernel which runs here reads around a miss."""
    try:
        pages = device_of(file).read_ahead_kb // 4
    except LabError as error:
        pytest.skip(str(error))
    if windows_adapt() or not 1 < pages <= PAGES // 2:
        pytest.skip("the kernel that runs here has another window")
    return pages


def check_as_much(found: KernelRun, run: ReadRun) -> None:
    """But for what a busy machine, another kernel or another file system may change."""
    assert found.read_bytes == pytest.approx(run.read_bytes, rel=0.02, abs=64 << 10)
    assert found.major_faults == pytest.approx(run.counts.major_faults, rel=0.02, abs=1)


def test_the_running_kernel_reads_the_same_with_its_window(queue: int, file: Path) -> None:
    pages = array("I", [PAGES // 2, 0, PAGES - 1, 1])
    run = on(queue, file, machine(window=window(file)), pages)
    found = touch_mapped(file, pages, random=False)
    check_as_much(found, run)


def test_the_running_kernel_reads_the_same_with_the_hint(queue: int, file: Path) -> None:
    run = on(queue, file, machine("random"), SCATTERED)
    assert run.counts.major_faults == len(set(SCATTERED))
    found = touch_mapped(file, SCATTERED, random=True)
    check_as_much(found, run)
