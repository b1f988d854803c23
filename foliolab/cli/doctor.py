# SPDX-License-Identifier: GPL-2.0-only
"""Tell what this machine can do, and the cure for each thing missing."""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from foliolab.arch import ARCHITECTURES, Architecture, size_name
from foliolab.cli.options import add_json
from foliolab.disks.stores import CHECKS
from foliolab.errors import LabError
from foliolab.files import cache_directory, results_directory
from foliolab.noise import disturbances
from foliolab.process import find, needs, package_of
from foliolab.report.columns import Column
from foliolab.report.terminal import print_table, terminal
from foliolab.vm.accel import boot_tiny_guest, choose, kvm_fails

_GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    subject: str
    state: str
    """ok, missing (something will not work) or limited (it will, but worse)."""
    detail: str
    cure: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "tell instead what makes seconds differ from one measurement to the next"
    parser.add_argument("--noise", action="store_true", help=text)
    add_json(parser)


def handle(arguments: argparse.Namespace) -> int:
    findings = list(_noise() if arguments.noise else _all())
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        _print(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _all() -> Iterator[Finding]:
    yield from _tools()
    for arch in ARCHITECTURES.values():
        yield from (_kernels(arch), _guests(arch))
    yield from (*_stores(), *_room(), _memory())


def _noise() -> Iterator[Finding]:
    found = disturbances()
    for each in found:
        yield Finding(each.subject, "limited", f"{each.state}: {each.effect}", each.cure)
    if not found:
        yield Finding("noise", "ok", "nothing that is known to disturb seconds")


def _tools() -> Iterator[Finding]:
    # What each architecture needs has findings of its own.
    special = {need for arch in ARCHITECTURES.values() for need in (arch.qemu, *_compiling(arch))}
    names = [need.name for need in needs("lab") if need.name not in special]
    lacking = [name for name in names if not find(name)]
    detail = f"{len(names) - len(lacking)} of {len(names)} programs and headers are here"
    yield Finding("tools", "ok" if not lacking else "missing", detail)
    for name in lacking:
        yield Finding(name, "missing", "not installed", _install(name))


def _kernels(arch: Architecture) -> Finding:
    subject = f"{arch.name} kernels"
    lacking = [name for name in _compiling(arch) if not find(name)]
    if not lacking:
        sizes = ", ".join(size_name(size) for size in arch.page_sizes)
        return Finding(subject, "ok", f"built by {arch.compiler}; pages of {sizes}")
    return Finding(subject, "missing", f"no {' and no '.join(lacking)}", _install(*lacking))


def _guests(arch: Architecture) -> Finding:
    subject = f"{arch.name} guests"
    if not find(arch.qemu):
        return Finding(subject, "missing", f"no {arch.qemu}", _install(arch.qemu))
    reason = kvm_fails(arch, again=True)
    if not reason:
        return Finding(subject, "ok", "run under KVM: a guest was booted to see")
    emulated = choose(arch, "tcg")
    if failure := boot_tiny_guest(arch, emulated):
        cure = f"apt-get install --reinstall {package_of(arch.qemu)}"
        return Finding(subject, "missing", f"cannot run: {failure}", cure)
    cure = "counts are exact all the same; for seconds, use a machine whose KVM works"
    return Finding(subject, "limited", f"run by emulation; no KVM: {reason}", cure)


def _stores() -> Iterator[Finding]:
    lacking = False
    for names, check in CHECKS:
        try:
            check()
        except LabError as error:
            lacking = True
            reason, _, cure = str(error).rstrip(".").partition("; ")
            yield Finding(f"stores: {names}", "limited", reason, cure)
    if not lacking:
        yield Finding("stores", "ok", "all storage engines can be fetched and compiled")


def _compiling(arch: Architecture) -> tuple[str, str]:
    """The compiler, and what stands for its C library."""
    return arch.compiler, f"{arch.headers}/stdio.h"


def _install(*names: str) -> str:
    return f"apt-get install {' '.join(map(package_of, names))}"


def _room() -> Iterator[Finding]:
    for subject, place, needed in (("cache", cache_directory(), 6), ("results", results_directory(), 1)):
        existing = next(path for path in (place, *place.parents) if path.exists())
        free = shutil.disk_usage(existing).free / _GIB
        detail = f"{free:.0f} GiB free for {place}"
        if not os.access(existing, os.W_OK):
            yield Finding(subject, "missing", f"{place} cannot be written", f"set FOLIOLAB_{subject.upper()}")
        elif free < needed:
            yield Finding(subject, "missing", detail, f"{needed} GiB are needed; set FOLIOLAB_{subject.upper()}")
        else:
            yield Finding(subject, "ok", detail)


def _memory() -> Finding:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GIB
    detail = f"{total:.0f} GiB, {os.cpu_count()} CPUs"
    if total < 3:
        return Finding("memory", "missing", detail, "the quick scale needs a guest of 1 GiB beside a build: 3 GiB")
    if total < 10:
        return Finding("memory", "limited", detail, "the full scale boots guests of 8 GiB: 10 GiB")
    return Finding("memory", "ok", detail)


def _print(findings: list[Finding]) -> None:
    rows = [(finding.subject, finding.state, finding.detail, finding.cure) for finding in findings]
    titles = ("", "state", "what", "cure")
    columns = [
        Column(("", title), cells, 0, left=True) for title, cells in zip(titles, zip(*rows, strict=True), strict=True)
    ]
    colours = {"ok": "", "missing": "red", "limited": "yellow"}
    print_table(terminal(), columns, [colours[finding.state] for finding in findings])
