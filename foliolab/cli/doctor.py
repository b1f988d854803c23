# SPDX-License-Identifier: GPL-2.0-only
"""``lab doctor``: what this machine can do, and the cure for what it cannot."""

import argparse
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foliolab.arch import ARCHITECTURES
from foliolab.errors import LabError
from foliolab.paths import REPOSITORY, cache_directory, results_directory
from foliolab.process import tool
from foliolab.vm.accel import probe_kvm

_GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    subject: str
    state: str
    """ok, missing (something will not work) or limited (it will, but worse)."""
    detail: str
    cure: str = ""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "tell what this machine can do, and the cure for each thing missing"
    parser = commands.add_parser("doctor", help=text, description=text.capitalize() + ".")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    findings = [*_tools(), *_guests(), *_room(), _memory()]
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        _print(findings)
    return 1 if any(finding.state == "missing" for finding in findings) else 0


def _tools() -> Iterator[Finding]:
    # The bootstrap's own list, so that there is one. QEMU has findings of its own.
    needs = re.findall(r"\bneed (\S+) ([^\s;]+)", (REPOSITORY / "lab").read_text())
    needs = [(name, package) for name, package in needs if not name.startswith("qemu-system-")]
    lacking = [(name, package) for name, package in needs if not _has(name, package)]
    detail = f"{len(needs) - len(lacking)} of {len(needs)} programs and headers are here"
    yield Finding("tools", "ok" if not lacking else "missing", detail)
    for name, package in lacking:
        yield Finding(name, "missing", "not installed", f"apt-get install {package}")


def _guests() -> Iterator[Finding]:
    for arch in ARCHITECTURES.values():
        if not _has(arch.qemu, arch.qemu_package):
            yield Finding(f"{arch.name} guests", "missing", f"no {arch.qemu}", f"apt-get install {arch.qemu_package}")
            continue
        verdict = probe_kvm(arch, again=True)
        if verdict.works:
            yield Finding(f"{arch.name} guests", "ok", "run under KVM: a guest was booted to see")
        else:
            yield Finding(
                f"{arch.name} guests",
                "limited",
                f"run by emulation: {verdict.reason}",
                "counts are exact all the same; for seconds, use a machine whose KVM works",
            )


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


def _has(name: str, package: str) -> bool:
    """Whether a program, or a C header, is installed."""
    if name.endswith(".h"):
        return Path("/usr/include", name).exists()
    try:
        tool(name, package)
    except LabError:
        return False
    return True


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("", "state", "what", "cure"):
        table.add_column(column, overflow="fold")
    colours = {"ok": "green", "missing": "red", "limited": "yellow"}
    for finding in findings:
        state = Text(finding.state, style=colours[finding.state])
        table.add_row(finding.subject, state, Text(finding.detail), Text(finding.cure))
    Console(highlight=False).print(table)
