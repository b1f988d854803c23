# SPDX-License-Identifier: GPL-2.0-only
"""The options of ``lab exec``, and what they mean."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from foliolab.arch import Architecture
from foliolab.cli.machine import add_kernels, add_machine
from foliolab.errors import UsageError
from foliolab.experiment.machine import machine_name
from foliolab.experiment.sizes import parse_size
from foliolab.experiment.variants import Variant, choose, load_variants, on_kernels
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.vm.disk import DATA_FILE, DataDisk, Filesystem

_DEFAULT = "adaptive"
_FILESYSTEMS = get_args(Filesystem)


def add_options(parser: argparse.ArgumentParser, accelerators: Sequence[str]) -> None:
    add = parser.add_argument
    add("--variant", help="settings of our kernel, or 'unpatched'; several with commas (adaptive)")
    add_kernels(parser, "run on this kernel, as it boots unless --variant says otherwise")
    add("--read-ahead-kb", metavar="KIB", help="of the guest's disks; several with commas (the kernel's own)")
    add("--memory", default="1G", help="of the guest (default: 1G)")
    add("--cpus", type=int, default=1, help="of the guest (default: 1)")
    root = parser.add_mutually_exclusive_group()
    root.add_argument("--packages", metavar="NAMES", help="a root directory of these Debian packages, with commas")
    root.add_argument("--root", metavar="DIR", type=Path, help="a root directory that is a copy of DIR")
    add("--copy", metavar="FILE", type=Path, action="append", default=[], help="put FILE into /files")
    add("--data", metavar="DIR|IMAGE", type=Path, help="a copy of DIR, or the disk of an earlier --keep, on /data")
    add("--data-size", metavar="SIZE", help="of the disk on /data, which is empty without --data")
    add("--filesystem", choices=_FILESYSTEMS, help="of that disk (ext4)")
    add("--disk", metavar="FILESYSTEM:SIZE", help=f"a disk on /data that a file of SIZE fills, {DATA_FILE}: ext4:2G")
    add("--keep", metavar="IMAGE", type=Path, help="save that disk after the program, unless it failed")
    add("--force", action="store_true", help="overwrite the image of --keep")
    add("--env", metavar="NAME=VALUE", action="append", default=[], help="for the program; can be repeated")
    add("--json", metavar="FILE", type=Path, help="write what the kernel counted to FILE")
    add("--console", metavar="FILE", type=Path, help="write the kernel's log to FILE")
    add("--timeout", type=float, metavar="SECONDS", help="end the guest if a run takes longer (default: never)")
    add("--accelerator", choices=accelerators, default="auto")
    add_machine(parser)
    add("--profile", choices=PROFILES, default="lab", help="debug: a kernel with KASAN and lockdep")
    add("--with", dest="extras", choices=OPTIONAL, action="append", default=[], help="build this in too")
    add("program", help="a static program of this machine's, or with a root directory a program there")
    add("arguments", nargs=argparse.REMAINDER, default=[], help="its arguments")


def variants_of(names: str | None, kernels: Sequence[str], arch: Architecture, page_size: int) -> tuple[Variant, ...]:
    """The variants of these names on these kernels; UsageError for one that the machine cannot have."""
    chosen = choose(names.split(",") if names else [] if kernels else [_DEFAULT], load_variants())
    if kernels:
        chosen = on_kernels(chosen, kernels, asked=True)
    for variant in chosen:
        if obstacle := variant.obstacle(machine_name(arch.name, page_size)):
            raise UsageError(obstacle)
    return chosen


def require_ours(variants: Sequence[Variant], kernels: Mapping[str, BuiltKernel]) -> None:
    """UsageError for a variant that takes our code on a kernel that has none of it."""
    for variant in variants:
        if sentence := variant.lacking(kernels[variant.kernel].ours):
            raise UsageError(sentence)


def limits_of(text: str | None) -> list[int | None]:
    """Readahead limits in KiB, each once; [None] without any."""
    if not text:
        return [None]
    words = list(dict.fromkeys(text.split(",")))
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise UsageError(f"--read-ahead-kb takes numbers of KiB, such as 128,4096, not '{text}'.")
    return [int(word) for word in words]


def size_of(text: str) -> int:
    """Bytes; UsageError for what is no size."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def pairs_of(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--env``."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--env takes NAME=VALUE, not '{text}'.")
        pairs[name] = value
    return pairs


def require_room_for(option: str, file: Path | None) -> None:
    """UsageError for a file that cannot be written; that is better known before a program has run for an hour."""
    if not file:
        return
    if not file.parent.is_dir():
        raise UsageError(f"{option}: {file.parent} is no directory.")
    # Files are replaced whole, which would take a device such as /dev/null away.
    if (file.exists() and not file.is_file()) or not os.access(file.parent, os.W_OK):
        raise UsageError(f"{option}: {file} cannot be written.")


def stored_disk(text: str) -> DataDisk:
    """What ``--disk`` asks for."""
    filesystem, colon, size = text.partition(":")
    if filesystem not in _FILESYSTEMS or not colon:
        raise UsageError(f"'{text}' is no disk; write ext4:2G, with one of {', '.join(_FILESYSTEMS)}.")
    return DataDisk(cast(Filesystem, filesystem), size_of(size))
