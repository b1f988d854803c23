# SPDX-License-Identifier: GPL-2.0-only
"""Debian packages of any architecture: fetched without root, and apart from what apt knows of this machine."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from foliolab.arch import NATIVE, Architecture
from foliolab.errors import DiskFull, LabError, MissingTool
from foliolab.files import cache_directory, digest, full_disk_named, locked, sha256, write_atomic
from foliolab.process import dying_with_parent, run, tool
from foliolab.progress import say, working

# Only "#clear" takes back what the machine's own configuration has put into a list. Its hooks would run after
# an update, and what it has installed, or thinks of other architectures, must not decide what we get.
_CONFIGURATION = """\
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
"""

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""The keys by which packages of another release are known.

Every Debian has it, and so have distributions made from it that build Debian's own root directories.
"""

_NOTE = "packages.json"
"""Beside the packages that were fetched: their names and hashes."""

_FULL = ("No space left on device", "enough free space")


@dataclass(frozen=True)
class Package:
    """A package file in the cache; its name holds name, version and architecture of the package."""

    file: Path
    hash: str


def fetch(arch: Architecture, names: Iterable[str], suite: str = "") -> tuple[Package, ...]:
    """The packages of these names and all that they depend on, from the mirrors that this machine uses.

    With ``suite``, such as "trixie", they are of that release of Debian and of no other; without, of those that
    this machine is of. What was fetched once stays, so that a new version on a mirror does not change measurements.
    """
    wanted = sorted(set(names))
    place = f"{arch.name}-{suite}" if suite else arch.name
    home = cache_directory() / "packages" / f"{place}-{digest(wanted)}"
    text = f"fetching Debian packages for {place}: {', '.join(wanted)}"
    with locked(home.with_suffix(".lock"), lambda: say(f"waiting for another process {text}")):
        if found := _noted(home):
            return found
        with working(text), full_disk_named(home):
            return _fetch(home, arch, wanted, suite)


def unpack(package: Path, tree: Path) -> None:
    """Put the files of a package into a directory, which is made if need be."""
    run([tool("dpkg-deb"), "--extract", str(package), str(tree)], LabError)


def package_field(package: Path, name: str) -> str:
    """What a package file says of itself, such as "Depends"."""
    return run([tool("dpkg-deb"), "--field", str(package), name], LabError).decode()


class Downloads:
    """Files of single packages, without what they depend on, each from the first of some suites that has it.

    A suite of no name is what this machine uses. The list of each is fetched once, and is gone after the block.
    """

    def __init__(self, directory: Path, suites: Iterable[str], arch: Architecture = NATIVE) -> None:
        """``directory`` is where the files go."""
        self._directory = directory
        self._arch = arch
        self._suites = tuple(suites)
        self._complaints: dict[str, str] = {}
        """Of the suites that were looked into."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._directory / "apt", ignore_errors=True)

    def bring(self, pattern: str, what: str) -> Path:
        """The file, of the package with the newest name.

        ``pattern`` is a regular expression for the whole name, and ``what`` says that to people.
        """
        for suite in self._suites:
            apt = self._looked_into(suite, what)
            if found := apt.newest(pattern):
                others = set(self._directory.glob("*.deb"))
                apt.bring(found, self._directory)
                (file,) = set(self._directory.glob("*.deb")) - others
                return file
        looked = ", ".join(suite or "this machine's own" for suite in self._suites)
        complaint = self._complaints.get("", "")
        before = f" (apt said: {complaint})" if complaint else ""
        raise LabError(f"Debian has no package {what} in any of these suites: {looked}.{before}")

    def _looked_into(self, suite: str, what: str) -> "_Apt":
        apt = _Apt(self._directory / "apt" / (suite or "own"), self._arch.debian, what)
        if suite not in self._complaints:
            _prepared(apt.home)
            if suite:
                apt.use_suite(suite, self._looked_into("", what).mirrors(self._complaints[""]))
            self._complaints[suite] = apt.update()
        return apt


def _noted(home: Path) -> tuple[Package, ...] | None:
    """The packages of an earlier fetch, if all of them are still there."""
    try:
        hashes = json.loads((home / _NOTE).read_text())
    except (OSError, ValueError):
        return None
    found = tuple(Package(home / "archives" / name, value) for name, value in hashes.items())
    return found if all(package.file.exists() for package in found) else None


def _fetch(home: Path, arch: Architecture, names: list[str], suite: str) -> tuple[Package, ...]:
    shutil.rmtree(home, ignore_errors=True)  # what a kill has left, or somebody has removed a part of
    apt = _Apt(_prepared(home), arch.debian, f"{', '.join(names)} for {arch.name}{f' from {suite}' if suite else ''}")
    complaint = apt.update()
    if suite:
        apt.use_suite(suite, apt.mirrors(complaint))
        complaint = apt.update()
    apt.download(names, complaint)
    hashes = {file.name: sha256(file) for file in sorted((home / "archives").glob("*.deb"))}
    write_atomic(home / _NOTE, json.dumps(hashes, indent=1))
    for directory in ("state", "cache"):
        shutil.rmtree(home / directory)
    found = _noted(home)
    assert found
    return found


def _prepared(home: Path) -> Path:
    """``home`` with what apt wants to find there."""
    for directory in ("state/lists/partial", "cache", "archives/partial"):
        (home / directory).mkdir(parents=True, exist_ok=True)
    # Nothing is installed; the lock file that apt keeps beside its list must not land in /dev, as with /dev/null.
    write_atomic(home / "state/status", "")
    write_atomic(home / "apt.conf", _CONFIGURATION)
    return home


@dataclass(frozen=True)
class _Apt:
    home: Path
    architecture: str
    what: str
    """That is being fetched, for complaints."""

    def mirrors(self, complaint: str) -> list[str]:
        """Where the machine has Debian from, among others perhaps that are not Debian's."""
        targets = self._run("indextargets", "--format", "$(COMPONENT) $(REPO_URI)", "Created-By: Packages")
        lines = self._checked(targets, complaint).splitlines()
        uris = list(dict.fromkeys(line[5:] for line in lines if line.startswith("main ")))
        if not uris:
            before = f" (before that: {complaint})" if complaint else ""
            raise LabError(f"apt cannot fetch {self.what}: this machine has no mirror of Debian.{before}")
        return uris

    def use_suite(self, suite: str, mirrors: Iterable[str]) -> None:
        """Forget the machine's sources for this suite of their mirrors.

        Not all of these mirrors need have it: apt goes on without those that do not, or are not Debian's.
        """
        tool(KEYRING)
        lines = "".join(f"deb [signed-by={KEYRING}] {uri} {suite} main\n" for uri in mirrors)
        write_atomic(self.home / "sources.list", lines)
        own = f'Dir::Etc::SourceList "{self.home}/sources.list";\nDir::Etc::SourceParts "/dev/null";\n'
        write_atomic(self.home / "apt.conf", _CONFIGURATION + own)

    def newest(self, pattern: str) -> str:
        """Of the packages whose whole names match, the one with the highest numbers in its name, or nothing."""
        known = self._run("pkgnames", program="apt-cache").stdout.split()
        found = [each for each in known if re.fullmatch(pattern, each)]
        found.sort(key=lambda each: [int(number) for number in re.findall(r"\d+", each)], reverse=True)
        # What only others depend on has a name as well.
        return next((each for each in found if not self._run("download", "--print-uris", each).returncode), "")

    def bring(self, name: str, directory: Path) -> None:
        """Download one package file without what it depends on."""
        self._checked(self._run("download", name, cwd=directory), "")

    def update(self) -> str:
        """Fetch the mirrors' lists; return what went wrong with any, which need not matter."""
        return _complaint(self._run("update"))

    def download(self, names: list[str], complaint: str) -> None:
        self._checked(self._run("--download-only", "install", *names), complaint)

    def _run(
        self, *arguments: str, cwd: Path | None = None, program: str = "apt-get"
    ) -> subprocess.CompletedProcess[str]:
        try:
            argv = [tool(program), "-c", str(self.home / "apt.conf")]
        except MissingTool:
            raise MissingTool(
                "Programs for guests and kernel sources come from Debian packages, and this machine has no apt-get; "
                "use Debian, or a distribution made from it."
            ) from None
        options = {
            "APT::Architecture": self.architecture,
            "APT::Architectures::": self.architecture,
            "Dir::State": self.home / "state",
            "Dir::State::status": self.home / "state/status",
            "Dir::Cache": self.home / "cache",
            "Dir::Cache::archives": self.home / "archives",
        }
        if program == "apt-get":
            argv += ["-qq", "-y"]
        for name, value in options.items():
            argv += ["-o", f"{name}={value}"]
        done = subprocess.run(
            dying_with_parent([*argv, *arguments]),
            cwd=cwd,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if any(words in done.stderr for words in _FULL):
            raise DiskFull(f"No space left on the disk that holds {self.home}.")
        return done

    def _checked(self, done: subprocess.CompletedProcess[str], complaint: str) -> str:
        if done.returncode:
            reason = _complaint(done) or f"exit status {done.returncode}"
            before = f" (before that: {complaint})" if complaint else ""
            raise LabError(f"apt cannot fetch {self.what}: {reason}{before}")
        return done.stdout


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The first error or warning that apt printed, or nothing."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
    return lines[0][2:].strip() if lines else ""
