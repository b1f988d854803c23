# SPDX-License-Identifier: GPL-2.0-only
"""Archives that machines send: what is refused, and what comes of merging them."""

import errno
import gzip
import random
import shutil
import tarfile
from datetime import datetime, timedelta, tzinfo
from io import BytesIO
from pathlib import Path

import pytest

from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.errors import DiskFull, LabError, StoreError, UsageError
from foliolab.metal.bundle import unpack
from tests.metal.answered import FACTS, answer, result_of


def packed(place: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    archive = place / "result.tar.gz"
    with tarfile.open(archive, mode) as stream:  # type: ignore[call-overload]
        for member, content in members:
            member.size = len(content)
            stream.addfile(member, BytesIO(content))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "facts"
    return info


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        ("/facts", tarfile.REGTYPE, "it contains an absolute path, '/facts'"),
        ("boots/../../facts", tarfile.REGTYPE, "it contains a path out of its directory, 'boots/../../facts'"),
        ("link", tarfile.SYMTYPE, "it contains a link, 'link'"),
        ("link", tarfile.LNKTYPE, "it contains a link, 'link'"),
        ("null", tarfile.CHRTYPE, "it contains a special file, 'null'"),
        ("disk", tarfile.BLKTYPE, "it contains a special file, 'disk'"),
        ("\x1b[2J", tarfile.SYMTYPE, r"it contains a link, '\x1b[2J'"),
        ("pipe", tarfile.FIFOTYPE, "it contains a special file, 'pipe'"),
        ("x" * 300, tarfile.REGTYPE, "File name too long"),
    ],
)
def test_what_no_result_has_is_not_unpacked(tmp_path: Path, name: str, kind: bytes, complaint: str) -> None:
    place = tmp_path / "unpacked"
    place.mkdir()
    archive = packed(tmp_path, (member(name, kind), b""))
    with archive.open("rb") as stream, pytest.raises(LabError) as caught:
        unpack(stream, place, "It")
    assert str(caught.value).startswith("It is no result of a bundle: ")
    assert complaint in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


def test_a_full_disk_here_is_no_fault_of_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    place = tmp_path / "unpacked"
    place.mkdir()
    archive = packed(tmp_path, (member("facts", tarfile.REGTYPE), b""))
    with archive.open("rb") as stream, pytest.raises(DiskFull, match=f"No space left on the disk that holds {place}"):
        unpack(stream, place, "It")


def test_what_is_too_large_or_not_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliolab.metal.bundle.RESULT_BYTES", 2 << 20)
    for mode in ("w:gz", "w:"):
        archive = packed(tmp_path, (member("facts"), bytes(3 << 20)), mode=mode)
        with archive.open("rb") as stream, pytest.raises(LabError, match=r"it takes more than 2 MiB\.$"):
            unpack(stream, tmp_path / "unpacked", "It")
    whole = packed(tmp_path, (member("facts"), random.Random(1).randbytes(4096))).read_bytes()
    flipped = bytes([*whole[:2000], whole[2000] ^ 1, *whole[2001:]])
    for content in (whole[:2000], flipped, b"", b"\x1f\x8b", b"no tar file" * 100):
        with pytest.raises(LabError, match=r"^It is no result of a bundle: "):
            unpack(BytesIO(content), tmp_path / "unpacked", "It")
    unpack(BytesIO(whole), tmp_path / "unpacked", "It")
    assert (tmp_path / "unpacked/facts").stat().st_size == 4096


def cut_archives() -> dict[str, bytes]:
    """What a copy leaves that ends too early, and what is no archive at all."""
    stream = BytesIO()
    boundaries = []
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in ("facts", "boots/1/works.json", "boots/1/answers"):
            boundaries.append(stream.tell())
            content = BytesIO(b"name bench1\n" * 50)
            info = member(name)
            info.size = len(content.getvalue())
            archive.addfile(info, content)
        boundaries.append(stream.tell())
    whole = stream.getvalue()
    lengths = {
        "between": boundaries[1],
        "before-the-last": boundaries[2],
        "before-the-end": boundaries[3],
        "in-the-end": boundaries[3] + 512,
        "in-a-header": boundaries[1] + 200,
        "in-a-file": boundaries[1] + 600,
    }
    plain = {name: whole[:length] for name, length in lengths.items()}
    packed_whole = gzip.compress(whole)
    return {
        **plain,
        **{f"packed-{name}": gzip.compress(content) for name, content in plain.items()},
        "in-gzip": packed_whole[:-20],
        "without-checksum": packed_whole[:-8],
        "empty": b"",
        "packed-empty": gzip.compress(b""),
        "one-byte": b"\x1f",
        "two-bytes": b"\x1f\x8b",
        "text": b"no archive",
        "line": b"no archive\n",
    }


CUT = cut_archives()


@pytest.mark.parametrize("name", CUT)
def test_an_archive_that_was_cut_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "unpacked").mkdir()
    with pytest.raises(LabError, match=r"^It is no result of a bundle: [^\n]*\.$"):
        unpack(BytesIO(CUT[name]), tmp_path / "unpacked", "It")
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    archive = tmp_path / "result.tar.gz"
    archive.write_bytes(CUT[name])
    status = main(["merge", str(archive)])
    (sentence,) = capsys.readouterr().err.splitlines()
    assert str(archive) in sentence
    assert status in (LabError.status, UsageError.status, StoreError.status)
    assert not (tmp_path / "results/samples.jsonl").exists()


class Later(datetime):
    """A clock that is an hour ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Later":
        return super().now(tz) + timedelta(hours=1)


def test_a_result_that_is_merged_twice_adds_nothing(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    answer(boot, outcome="end")
    archive = result_of(boot, tmp_path / "result.tar.gz")
    assert main(["merge", str(archive)]) == 0
    merged = (tmp_path / "results/samples.jsonl").read_bytes()
    monkeypatch.setattr("foliolab.campaign.job.datetime", Later)
    assert main(["merge", str(archive)]) == 0
    assert capsys.readouterr().err.splitlines() == ["3 of 3 samples are new.", "0 of 3 samples are new."]
    assert (tmp_path / "results/samples.jsonl").read_bytes() == merged


def test_two_runs_of_one_bundle_have_consoles_of_their_own(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    for begun in ("a1b2c3", "d4e5f6"):
        facts = {**FACTS, "begun": begun}
        answer(boot, outcome="end", facts=facts)
        (boot / "console").write_text(f"of {begun}\n")
        assert main(["merge", str(result_of(boot, tmp_path / "result.tar.gz", facts))]) == 0
    samples = read_samples(tmp_path / "results/samples.jsonl")
    assert [each.boot for each in samples] == [f"{boot.name}-a1b2c3"] * 3 + [f"{boot.name}-d4e5f6"] * 3
    assert {file.name: file.read_text() for file in (tmp_path / "results/consoles").iterdir()} == {
        f"{boot.name}-a1b2c3.log": "of a1b2c3\n",
        f"{boot.name}-d4e5f6.log": "of d4e5f6\n",
    }


def test_a_damaged_boot_leaves_the_others_to_merge(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    answer(boot, outcome="end")
    shutil.copytree(boot, boot.with_name("other"))
    for name, text in (("works.json", "{}"), ("outcome.whole", "")):
        (boot.with_name("other") / name).write_text(text)
    archive = result_of(boot, tmp_path / "result.tar.gz")
    assert main(["merge", str(archive)]) == LabError.status
    error = capsys.readouterr().err
    assert "3 of 3 samples are new." in error
    assert f"{archive}: boots/other/works.json cannot be used: " in error
    assert [each.outcome for each in read_samples(tmp_path / "results/samples.jsonl")] == ["ok"] * 3
