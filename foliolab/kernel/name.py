# SPDX-License-Identifier: GPL-2.0-only
"""Names of kernels: where the source comes from, and what is put on top of it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import UnknownKernel

UNPATCHED, PATCHED = "unpatched", "patched"
BASE_VERSION = "6.12"
"""That our series is made for."""

OURS = "ours"
MODULE = "module"
_DEBIAN = "debian:"
_IMAGE = "image:debian:"
RELEASES = {"12": "bookworm", "13": "trixie"}
"""Debian's, whose own kernels are named by them."""
_OWN = {UNPATCHED: f"{_DEBIAN}{BASE_VERSION}", PATCHED: f"{_DEBIAN}{BASE_VERSION}+{OURS}"}
"""The lab's own two kernels, and the names that they are short for."""

HELP = (
    "debian:VERSION, or a kernel tree, tarball or git tree @REF, each with +SERIES (an mbox, a patch or 'ours'), or"
    " image:debian:VERSION or image:debian:RELEASE, and that with +module"
)


@dataclass(frozen=True)
class KernelName:
    """What a name says."""

    text: str
    """As samples have it: that of the lab's own kernels is short however they were asked for."""
    debian: str
    """The version of Debian's package, or nothing."""
    path: Path
    """Of a tree or tarball, without a package."""
    ref: str
    """Of a git tree; nothing for the tree as it stands."""
    series: tuple[str, ...]
    """Put on top, in order: OURS, or the path of a patch or mailbox."""
    image: str = ""
    """A kernel that is not built, Debian's binary package without a source: its version, or one of RELEASES."""
    module: bool = False
    """Whether guests load our module on top of it."""

    @property
    def label(self) -> str:
        """What is on top, in a word."""
        return PATCHED if OURS in self.series else "series" if self.series else UNPATCHED

    @property
    def tree(self) -> str:
        """Which of the working trees of its source it is built in: ours differs from all others in most objects."""
        return PATCHED if OURS in self.series else UNPATCHED


def stem(name: str) -> str:
    """A kernel's name for names of files."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-")[-40:]


def expanded(path: str) -> Path:
    """A path with the home directory that it means by a '~'; as it is if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 (that of Path raises RuntimeError then)


def parse_name(text: str) -> KernelName:
    """Understand ``text``; UnknownKernel if it is no name, or names a file that is not there."""
    full = _OWN.get(text, text)
    base, *series = _split(full)
    for patch in series:
        if patch == MODULE and base.startswith(_IMAGE):
            continue
        if patch != OURS and not expanded(patch).is_file():
            raise UnknownKernel(f"There is no series {patch} to put on {base}; write '+ours' or '+' and a file.")
    short = next((own for own, meant in _OWN.items() if meant == full), text)
    for prefix in (_DEBIAN, _IMAGE):
        if not base.startswith(prefix):
            continue
        version = base.removeprefix(prefix)
        if not re.fullmatch(r"\d+\.\d+", version) and not (prefix == _IMAGE and version in RELEASES):
            other = f" or {_IMAGE}{max(RELEASES)}" if prefix == _IMAGE else ""
            raise UnknownKernel(
                f"'{base}' names no version of Debian's; write for instance {prefix}{BASE_VERSION}{other}."
            )
        if prefix == _DEBIAN:
            return KernelName(short, version, Path(), "", tuple(series))
        if series not in ([], [MODULE]):
            source = BASE_VERSION if version in RELEASES else version
            raise UnknownKernel(
                f"{base} is not built, so that no series can be put on it; take for instance {_DEBIAN}{source}."
            )
        return KernelName(short, "", Path(), "", (), version, module=bool(series))
    if not _place(base):
        raise UnknownKernel(
            f"'{text}' names no kernel; write for instance {_DEBIAN}{BASE_VERSION}, or where a tree is."
        )
    path, at, ref = _place(base), *base[len(_place(base)) :].partition("@")[1:]
    if at and not ref:
        raise UnknownKernel(f"'{base}' names no ref after the '@'.")
    place = expanded(path)
    if not place.exists():
        raise UnknownKernel(f"There is no kernel tree or tarball at {path}.")
    return KernelName(short, "", place.resolve(), ref, tuple(series))


def _split(text: str) -> list[str]:
    """The base and each series. A '+' in the path of a tree that exists is of its name."""
    start = 0 if text.startswith((_DEBIAN, _IMAGE)) else len(_place(text))
    head, *series = text[start:].split("+")
    return [text[:start] + head, *series]


def _place(text: str) -> str:
    """The longest part before an '@' or '+' that exists, or else the shortest."""
    parts = [text[: match.start()] for match in re.finditer(r"[@+]|$", text)]
    return next((part for part in reversed(parts) if part and expanded(part).exists()), parts[0])
