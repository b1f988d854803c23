# SPDX-License-Identifier: GPL-2.0-only
"""What on this machine makes seconds differ from one measurement to the next. Nothing is changed."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BUSY = 0.2
"""Load, in processes, above which somebody else is at work."""

_UNLIMITED = 1 << 60
"""Bytes from which on a limit of a control group of version 1 is none."""


@dataclass(frozen=True)
class Disturbance:
    subject: str
    state: str
    """What was found."""
    effect: str
    """On seconds."""
    cure: str
    """The command that changes it, or what helps otherwise."""


_SETTINGS = (
    (
        "governor",
        "sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        "(?!performance$).*",
        "the clock follows the load, so the first rounds are slower",
        "cpupower frequency-set -g performance",
    ),
    (
        "turbo",
        "sys/devices/system/cpu/intel_pstate/no_turbo",
        "0",
        "the clock depends on heat and on how many cores work",
        "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    (
        "turbo",
        "sys/devices/system/cpu/cpufreq/boost",
        "1",
        "the clock depends on heat and on how many cores work",
        "echo 0 > /sys/devices/system/cpu/cpufreq/boost",
    ),
    (
        "huge pages",
        "sys/kernel/mm/transparent_hugepage/enabled",
        r".*\[always\].*",
        "programs are faster where huge pages happen to be free, and khugepaged works meanwhile",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    ),
)
"""Each: subject, pattern of files below / with one word each, regular expression that matches all of a disturbing word,
effect, cure."""


def disturbances(root: Path = Path("/")) -> list[Disturbance]:
    """All that is found; files are read below ``root``."""
    return [*_settings(root), *_load(root), *_timers(), *_swap(root), *_limits(root), *_hypervisor(root)]


def _read(path: Path) -> str:
    """What a file holds; nothing if it is not there."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _settings(root: Path) -> Iterator[Disturbance]:
    for subject, files, disturbing, effect, cure in _SETTINGS:
        words = {_read(path) for path in root.glob(files)}
        if found := sorted(word for word in words if word and re.fullmatch(disturbing, word)):
            yield Disturbance(subject, ", ".join(found), effect, cure)


def _load(root: Path) -> Iterator[Disturbance]:
    load = _read(root / "proc/loadavg").partition(" ")[0]
    if load and float(load) > _BUSY:
        effect = "others take processors, caches and disks"
        yield Disturbance("load", f"{load} processes at work", effect, "ps -eo pid,ni,pcpu,args --sort=-pcpu | head")


def _timers() -> Iterator[Disturbance]:
    """Of systemd, where it runs."""
    try:
        argv = ["systemctl", "list-timers", "--no-legend", "--no-pager", "--plain"]
        listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    except OSError:
        return
    if timers := sorted(set(re.findall(r"\S+\.timer\b", listed))):
        effect = "each starts a job at its time, whatever is measured then"
        yield Disturbance("timers", ", ".join(timers), effect, f"systemctl stop {' '.join(timers)}")


def _swap(root: Path) -> Iterator[Disturbance]:
    if areas := [line.split()[0] for line in _read(root / "proc/swaps").splitlines()[1:]]:
        effect = "memory of programs waits for a disk where page cache would have gone"
        yield Disturbance("swap", ", ".join(areas), effect, "swapoff -a")


def _limits(root: Path) -> Iterator[Disturbance]:
    """Of the control groups that this process is in, up to the root, by their files of either version."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        mount = root / "sys/fs/cgroup" / controllers
        group = mount / path.lstrip("/")
        for place in (group, *group.parents):
            if not place.is_relative_to(mount):
                break
            yield from _limits_of(root, place)


def _limits_of(root: Path, group: Path) -> Iterator[Disturbance]:
    stops, small = "all stop once a period's share is used up", "page cache is reclaimed before memory is full"
    for name, unlimited, effect in (
        ("cpu.max", "max", stops),
        ("cpu.cfs_quota_us", "-1", stops),
        ("memory.max", "max", small),
        ("memory.high", "max", small),
        ("memory.limit_in_bytes", "-1", small),
    ):
        limit = _read(group / name).partition(" ")[0]
        if limit and limit != unlimited and int(limit) < _UNLIMITED:
            file = Path("/") / (group / name).relative_to(root)
            yield Disturbance("limit", f"{name} is {limit}", effect, f"echo {unlimited} > {file}")


def _hypervisor(root: Path) -> Iterator[Disturbance]:
    if re.search(r"^flags\s*:.*\bhypervisor\b", _read(root / "proc/cpuinfo"), re.MULTILINE):
        effect = "other guests of the host take processors, and the clock is the host's"
        yield Disturbance("hypervisor", "this is a virtual machine", effect, "measure seconds on a machine by itself")
