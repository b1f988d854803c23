# SPDX-License-Identifier: GPL-2.0-only
import json
import lzma
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foliolab.campaign.store import open_store, read_samples
from foliolab.errors import StoreError
from foliolab.files import REPOSITORY
from tests.samples import sample


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "results" / "samples.jsonl"


def test_what_was_appended_is_read_again(file: Path) -> None:
    samples = [sample(1), sample(2, repetition=2), sample(outcome="hang", sentence="Slow: 10 µs.", repetition=3)]
    with open_store(file) as store:
        for item in samples:
            store.append(item)
        assert store.samples == samples
    assert read_samples(file) == samples
    with open_store(file) as store:
        assert store.samples == samples


def test_no_store_has_no_samples(file: Path) -> None:
    assert read_samples(file) == []


def test_a_line_has_what_other_programs_rely_on(file: Path) -> None:
    with open_store(file) as store:
        store.append(sample(1))
    (line,) = file.read_text().splitlines()
    assert {
        "experiment", "cell", "variant", "arch", "page_size", "backend", "scale", "repetition", "outcome", "kernel",
        "metrics",
    } <= set(json.loads(line))  # fmt: skip


def test_a_compressed_copy_may_have_several_streams(tmp_path: Path) -> None:
    lines = [json.dumps(sample(repetition=number).to_json()).encode() + b"\n" for number in (1, 2)]
    packed = tmp_path / "samples.jsonl.xz"
    packed.write_bytes(lzma.compress(lines[0][:9]) + lzma.compress(lines[0][9:]) + lzma.compress(lines[1]))
    assert [each.repetition for each in read_samples(packed)] == [1, 2]
    packed.write_bytes(lzma.compress(b""))
    assert read_samples(packed) == []


@pytest.mark.parametrize(
    "damaged",
    [
        lambda lines: lzma.compress(lines)[:-4],
        lambda lines: lzma.compress(lines[:-1]),
        lambda lines: lzma.compress(lines) + b"junk",
        lambda lines: lzma.compress(lines) + b"\0" + lzma.compress(lines)[1:],
        lambda lines: b"",
    ],
    ids=["cut off", "torn line", "junk behind", "second header", "nothing"],
)
def test_a_compressed_copy_is_whole(tmp_path: Path, damaged: Callable[[bytes], bytes]) -> None:
    packed = tmp_path / "samples.jsonl.xz"
    packed.write_bytes(damaged(json.dumps(sample(1).to_json()).encode() + b"\n"))
    with pytest.raises(StoreError, match=f"{packed} cannot be read: "):
        read_samples(packed)


@pytest.mark.parametrize("length", [1, 20, -2])
def test_a_torn_last_line_is_passed_over_then_cut(file: Path, length: int) -> None:
    with open_store(file) as store:
        store.append(sample(1))
        store.append(sample(2, repetition=2))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:length])
    assert read_samples(file) == [sample(1)]
    with open_store(file) as store:
        store.append(sample(3, repetition=3))
    assert read_samples(file) == [sample(1), sample(3, repetition=3)]


def test_a_last_sample_that_lacks_its_newline_only_is_kept(file: Path) -> None:
    """As editors leave it, or a copy of a line."""
    with open_store(file) as store:
        store.append(sample(1))
        store.append(sample(2, repetition=2))
    before = file.read_bytes()
    file.write_bytes(before[:-1])
    assert read_samples(file) == [sample(1), sample(2, repetition=2)]
    assert file.read_bytes() == before[:-1]
    with open_store(file) as store:
        assert file.read_bytes() == before
        store.append(sample(3, repetition=3))
    assert [each.repetition for each in read_samples(file)] == [1, 2, 3]


@pytest.mark.parametrize(
    "damage",
    [b"{]\n", b"[]\n", b"\xff\xfe\n", b"\n", b'{"key": "x"}\n', b"[" * 9**6 + b"\n"],
    ids=lambda damage: str(damage[:12]),
)
def test_a_damaged_line_is_named(file: Path, damage: bytes) -> None:
    with open_store(file) as store:
        store.append(sample(1))
    line = file.read_bytes()
    file.write_bytes(line + damage + line)
    with pytest.raises(StoreError, match=rf"Line 2 of {file} is damaged"):
        read_samples(file)
    with pytest.raises(StoreError, match="Line 2"), open_store(file):
        pass
    assert file.read_bytes() == line + damage + line


def test_a_line_with_a_wrong_type_is_damaged(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps(sample(1).to_json() | {"repetition": "1"}) + "\n")
    with pytest.raises(StoreError, match=r"got `str` - at `\$\.repetition`"):
        read_samples(file)


def writer(file: Path, first: int, before: tuple[str, ...] = ()) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*before, sys.executable, "-m", "tests.campaign.write", str(file), str(first)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_second_writer_is_refused_and_readers_are_not(file: Path) -> None:
    process = writer(file, 1)
    try:
        assert process.stdout
        process.stdout.readline()
        with pytest.raises(StoreError, match="Another run is writing to"), open_store(file):
            pass
        assert read_samples(file)
    finally:
        process.kill()
        process.communicate()


def test_sigkill_at_random_moments_loses_nothing_that_was_reported(file: Path) -> None:
    moments = random.Random(1)
    reported: list[int] = []
    for _ in range(10):
        process = writer(file, len(read_samples(file)) + 1)
        assert process.stdout
        reported.append(int(process.stdout.readline()))
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        output, _ = process.communicate()
        # The pipe itself may end with half a number.
        reported += [int(line) for line in output.split(b"\n")[:-1]]
        there = [item.repetition for item in read_samples(file)]
        assert there == list(range(1, len(there) + 1))
        assert there[-1] >= reported[-1]
    assert len(read_samples(file)) > 10


def test_a_full_disk_is_named_and_leaves_whole_lines(tmp_path: Path) -> None:
    """On a real file system of 64 KiB, in a mount namespace of its own."""
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    small = tmp_path / "small"
    small.mkdir()
    script = f"""
        mount -t tmpfs -o size=64k none {small} || exit 99
        {sys.executable} -m tests.campaign.write {small}/samples.jsonl 1 > {tmp_path}/reported
        status=$?
        cp {small}/samples.jsonl {tmp_path}/full.jsonl
        mount -o remount,size=1m {small}
        {sys.executable} -m tests.campaign.write {small}/samples.jsonl 1000 > {tmp_path}/more &
        while kill -0 $! && [ ! -s {tmp_path}/more ]; do sleep 0.1; done
        kill -KILL $!
        cp {small}/samples.jsonl {tmp_path}/later.jsonl
        exit $status
    """
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode in (1, 99):
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 40, done.stderr
    assert f"No space left on the disk that holds {small}/samples.jsonl." in done.stderr
    reported = (tmp_path / "reported").read_text().split()
    full = tmp_path / "full.jsonl"
    assert full.read_bytes().endswith(b"\n")
    assert [item.repetition for item in read_samples(full)] == [int(number) for number in reported]
    assert len(reported) > 10
    assert len(read_samples(tmp_path / "later.jsonl")) > len(reported)


def test_a_sample_that_lacks_a_part_is_told_with_its_place(file: Path) -> None:
    new = sample(1)
    file.parent.mkdir()
    file.write_text(json.dumps(new.to_json() | {"kernel": {"name": "patched"}}) + "\n")
    with pytest.raises(StoreError, match=r"field `version` - at `\$\.kernel`"):
        read_samples(file)
