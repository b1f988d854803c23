# SPDX-License-Identifier: GPL-2.0-only
"""Hosts that ssh reaches: this machine, by an sshd of the tests' own on loopback."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliolab.campaign import cluster
from foliolab.campaign.hosts import Hosts
from foliolab.campaign.store import read_samples
from foliolab.errors import ClusterError
from foliolab.files import REPOSITORY
from tests.campaign.fake import FakeBackend, fake_plan, once, run_fake, slower
from tests.processes import alive, wait_until

OURS = str(REPOSITORY)


@dataclass(frozen=True)
class Sshd:
    place: Path
    """With ``bin/ssh``, whose configuration knows this machine by several names."""
    pid: int
    """Its children are the connections."""


def sshd_program(place: Path) -> list[str]:
    """The command of an sshd that is installed, or fetched without being installed."""
    if installed := shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin"):
        return [installed]
    try:
        fetching = ["apt-get", "download", "openssh-server", "libwrap0"]
        subprocess.run(fetching, cwd=place, capture_output=True, check=True, timeout=120)
        for package in place.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, place], check=True)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no sshd is installed, and none can be fetched: {error}")
    libraries = ":".join(str(each.parent) for each in place.rglob("libwrap.so.0"))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(place / "usr/sbin/sshd")]


def apart(place: Path, argv: list[str]) -> list[str]:
    """The same command; for root, where its user and its directory exist that installing sshd would have made."""
    if os.geteuid():
        return argv
    known = Path("/etc/passwd").read_text()
    (place / "passwd").write_text(known + "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
    script = 'mount --bind "$1" /etc/passwd; mount -t tmpfs none /run; mkdir -m 755 /run/sshd; shift; exec "$@"'
    argv = ["unshare", "--mount", "sh", "-ec", script, "sh", str(place / "passwd"), *argv]
    if subprocess.run([*argv[:7], "true"], capture_output=True).returncode:
        pytest.skip("no name space of mounts can be had here")
    return argv


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    place = tmp_path_factory.mktemp("sshd")
    if not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("ssh is not installed")
    program = sshd_program(place)
    for key in ("host", "user", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / key], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"PasswordAuthentication no\nKbdInteractiveAuthentication no\nAuthorizedKeysFile {place}/user.pub\n"
    )
    (place / "known").write_text(f"[127.0.0.1]:{port} {(place / 'host.pub').read_text()}")
    (place / "config").write_text(
        f"Host dead\n  Port 1\nHost stranger\n  IdentityFile {place}/stranger\n"
        f"Host * !stranger\n  IdentityFile {place}/user\nHost *\n  HostName 127.0.0.1\n  Port {port}\n"
        f"  User {pwd.getpwuid(os.geteuid()).pw_name}\n  IdentitiesOnly yes\n  UserKnownHostsFile {place}/known\n"
    )
    (place / "bin").mkdir()
    (place / "bin/ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {place}/config "$@"\n')
    (place / "bin/ssh").chmod(0o755)
    argv = apart(place, [*program, "-D", "-e", "-f", str(place / "sshd_config")])
    with (place / "log").open("wb") as log, subprocess.Popen(argv, stderr=log) as process:
        wait_until(lambda: b"listening" in (place / "log").read_bytes() or process.poll() is not None)
        if b"listening" not in (place / "log").read_bytes():
            process.kill()
            pytest.skip(f"sshd does not start: {(place / 'log').read_text()}")
        try:
            yield Sshd(place, process.pid)
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def below(pid: int) -> list[int]:
    """All that a process has started, and these have."""
    return [each for child in children(pid) for each in (child, *below(child))]


@pytest.fixture
def names(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two of this machine, to be used one after the other."""
    monkeypatch.setenv("PATH", f"{sshd.place}/bin:{os.environ['PATH']}")
    assert wait_until(lambda: not children(sshd.pid))
    return "here", "there"


def test_hosts_that_are_cut_off_lose_nothing_and_keep_nothing(
    sshd: Sshd, names: tuple[str, str], tmp_path: Path
) -> None:
    plan = fake_plan(repetitions=2)
    store = tmp_path / "store.jsonl"
    alone = run_fake(tmp_path / "alone.jsonl", FakeBackend(), plan)
    with cluster.ssh(Hosts(tuple(names), OURS)) as found:
        first, second = children(sshd.pid)
        there = below(sshd.pid)
        with once(lambda: len(read_samples(store)) >= 3, lambda: os.kill(first, signal.SIGKILL)):
            run_fake(store, FakeBackend(slower), plan, found)
        assert sorted(each.key for each in read_samples(store)) == sorted(each.key for each in alone)
        assert alive(second) and not alive(first)
        store = tmp_path / "other.jsonl"
        complaint = r"no connection with (here|there): .* No host is left\."
        with (
            once(lambda: len(read_samples(store)) >= 3, lambda: os.kill(second, signal.SIGKILL)),
            pytest.raises(ClusterError, match=complaint),
        ):
            run_fake(store, FakeBackend(slower), plan, found)
        assert 3 <= len(read_samples(store)) < len(alone)
    assert wait_until(lambda: not any(map(alive, there)))


@pytest.mark.parametrize(
    ("host", "checkout", "complaint"),
    [
        ("dead", OURS, "no connection with dead: .* Connection refused"),
        ("stranger", OURS, "no connection with stranger: .* Permission denied"),
        ("there", "/nowhere", "there has no such foliolab .* in /nowhere: "),
    ],
)
@pytest.mark.usefixtures("names")
def test_a_host_that_cannot_measure(host: str, checkout: str, complaint: str) -> None:
    with pytest.raises(ClusterError, match=complaint), cluster.ssh(Hosts((host,), checkout)):
        pass


@pytest.mark.usefixtures("names")
def test_a_host_with_another_foliolab(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(REPOSITORY / ".venv")
    without = shutil.ignore_patterns("__pycache__")  # others write there meanwhile
    for name in ("foliolab", "host", "experiments"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=without)
    with (tmp_path / "foliolab/files.py").open("a") as file:
        file.write("# other words\n")
    test_a_host_that_cannot_measure("there", str(tmp_path), "there cannot measure: it has another foliolab")
