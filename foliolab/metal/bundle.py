# SPDX-License-Identifier: GPL-2.0-only
"""A bundle: all that a machine takes to measure by itself. A directory, or one packed as .tar.gz.

runner                   what executes it there, in POSIX sh
files/HASH               kernels, programs, and images of disks, by what is in them
run/plan                 lines of words: "machine x86_64", "program NAME HASH", "disk NUMBER HASH BYTES", and
                         "disks anew" if each boot wants them as they were
run/boots/NAME/kernel    its hash, and what is appended to its command line
run/boots/NAME/jobs      what init is to do, one job a line; step 0 is for all others
run/boots/NAME/works.json  what the lab makes samples of, from the answers
"""

import gzip
import json
import os
import secrets
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO

from foliolab import process
from foliolab.campaign.host_backend import HostBootable
from foliolab.campaign.job import Job
from foliolab.errors import LabError
from foliolab.files import cache_directory, digest, full_disk_named, made_once, sha256, write_atomic
from foliolab.progress import working
from foliolab.vm.counted import counted

RUNNER = Path(__file__).with_name("runner.sh")
RESULT_BYTES = 4 << 30
"""A bound on unpacked results. They are text, and far smaller."""
_DISK = "@disk{}@"
"""For what the machine calls a disk, which its runner knows."""


def make_bundle(place: Path, jobs: Iterable[Job]) -> int:
    """Make one of jobs whose bootables are a HostBackend's, in a directory that is empty; returns how many boots."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    files = place / "files"
    files.mkdir(parents=True)
    lines: dict[str, None] = {}
    boots = 0
    with full_disk_named(place):
        for boots, job in enumerate(jobs, start=1):
            bootable = job.bootable
            assert isinstance(bootable, HostBootable)
            lines |= dict.fromkeys(_plan(files, bootable))
            boot = place / f"run/boots/{name}-{boots:04}"
            boot.mkdir(parents=True)
            kernel = _added(files, bootable.kernel.image)
            write_atomic(boot / "kernel", f"{kernel} {bootable.boot_arguments}\n")
            _write_jobs(boot, job, bootable)
        write_atomic(place / "run/plan", "".join(f"{line}\n" for line in lines))
        shutil.copyfile(RUNNER, place / "runner")
    return boots


def pack(place: Path, archive: Path) -> None:
    """Write a bundle's directory as one file, which unpacks into a directory "metal"."""
    partial = archive.with_name(f".{archive.name}.partial")
    try:
        with full_disk_named(archive.parent), tarfile.open(partial, "w:gz", compresslevel=1) as stream:
            stream.add(place, "metal", filter=_of_root)
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same as root's, who executes it: tar, as root, would give it to whoever has our number there."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode &= 0o755
    return member


def _plan(files: Path, bootable: HostBootable) -> list[str]:
    """The lines that one boot adds to the plan: the same for each, as one plan has the same disks."""
    lines = [f"machine {bootable.kernel.arch.name}"]
    if bootable.plan.scale.parameters.writable:
        lines.append("disks anew")
    lines += [f"program {name} {_added(files, path)}" for name, path in sorted(bootable.programs.items())]
    for number, disk in enumerate(bootable.disks):
        image, size = _image(disk)
        lines.append(f"disk {number} {_added(files, image)} {size}")
    return lines


def _write_jobs(boot: Path, job: Job, bootable: HostBootable) -> None:
    numbers = count(1)
    lines = [_line(next(numbers), 0, argv, 60) for argv in bootable.settings(_DISK.format)]
    works = []
    for step, work in enumerate(job.works, start=1):
        asked = {}
        for (argv, deadline), number in zip(bootable.jobs(work.step, _DISK.format(0)), numbers, strict=False):
            lines.append(_line(number, step, argv, deadline))
            asked[number] = list(counted(argv))
        works.append({"jobs": asked, "form": work.form.to_json()})
    write_atomic(boot / "jobs", "".join(lines))
    write_atomic(boot / "works.json", json.dumps({"metric": bootable.plan.experiment.metric, "works": works}))


def _line(identity: int, step: int, argv: Sequence[str], deadline: float) -> str:
    """A job as init reads it, and the runner, which looks for the step."""
    return json.dumps({"id": identity, "step": step, "deadline": round(deadline), "argv": list(argv)}) + "\n"


def _added(files: Path, path: Path) -> str:
    """The hash by which a bundle has a file, added to it if need be."""
    name = sha256(path)
    if not (files / name).exists():
        try:
            os.link(path.resolve(), files / name)
        except OSError:
            shutil.copyfile(path, files / name)
    return name


def _image(disk: Path) -> tuple[Path, int]:
    """A disk of the cache as a machine can write it to one of its own: compressed, and its size in bytes."""

    def make(partial: Path) -> None:
        with working(f"packing {disk.name}"):
            raw = partial / "raw"
            process.run([process.tool("qemu-img"), "convert", "-O", "raw", str(disk), str(raw)], LabError)
            write_atomic(partial / "bytes", str(raw.stat().st_size))
            process.run(["gzip", "-1", "-n", str(raw)], LabError)
            (partial / "raw.gz").rename(partial / "image.gz")

    status = disk.stat()
    key = digest([str(disk), str(status.st_size), str(status.st_mtime_ns)])
    place = made_once(cache_directory() / "images-of-disks", key, make)
    return place / "image.gz", int((place / "bytes").read_text())


def is_packed(path: Path) -> bool:
    """Whether a file is something that gzip has packed."""
    with path.open("rb") as stream:
        return _begins_packed(stream)


def unpack(archive: IO[bytes], place: Path, name: str) -> None:
    """Unpack the files that a machine has sent into an empty directory.

    LabError, with the archive's ``name``, for one that is damaged, that holds anything but files and directories, or
    that takes more than RESULT_BYTES. DiskFull for a full disk here.
    """
    try:
        with full_disk_named(place), tempfile.TemporaryFile() as plain:
            _copy_plain(archive, plain)
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r:") as stream:
                _require_end(plain)
                for member in stream:
                    if complaint := _complaint(member):
                        raise tarfile.TarError(f"it contains {complaint}, {member.name!r}")
                    _write(stream, member, place)
    except (tarfile.TarError, OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise LabError(f"{name} is no result of a bundle: {error}.") from None


def _require_end(plain: IO[bytes]) -> None:
    """TarError unless a tar file ends as all do: tarfile takes one that is cut between members for whole."""
    place = plain.tell()
    size = plain.seek(0, os.SEEK_END)
    plain.seek(max(0, size - 1024))
    if plain.read() != bytes(1024):
        raise tarfile.TarError("it is cut off")
    plain.seek(place)


def _begins_packed(stream: IO[bytes]) -> bool:
    begin = stream.read(2)
    stream.seek(0)
    return begin == b"\x1f\x8b"


def _copy_plain(archive: IO[bytes], plain: IO[bytes]) -> None:
    """Copy a tar file, without its compression. It is read to its end, where gzip has a checksum."""
    source = gzip.GzipFile(fileobj=archive) if _begins_packed(archive) else archive
    left = RESULT_BYTES
    while chunk := source.read(1 << 20):
        left -= len(chunk)
        if left < 0:
            raise tarfile.TarError(f"it takes more than {RESULT_BYTES >> 20} MiB")
        plain.write(chunk)


def _complaint(member: tarfile.TarInfo) -> str:
    """Why a member must not be unpacked; empty if it may."""
    path = PurePosixPath(member.name)
    if member.issym() or member.islnk():
        return "a link"
    if member.issparse():
        return "a sparse file"  # which takes more room than the archive
    if not (member.isreg() or member.isdir()):
        return "a special file"
    if path.is_absolute():
        return "an absolute path"
    return "a path out of its directory" if ".." in path.parts else ""


def _write(stream: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    if member.isdir():
        return
    file = place / member.name
    file.parent.mkdir(parents=True, exist_ok=True)
    content = stream.extractfile(member)
    assert content
    with content, file.open("wb") as target:
        shutil.copyfileobj(content, target)
