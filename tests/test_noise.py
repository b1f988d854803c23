# SPDX-License-Identifier: GPL-2.0-only
"""What disturbs seconds, on a made machine and on this one."""

from pathlib import Path

import pytest

from foliolab.noise import disturbances

CPU = "sys/devices/system/cpu"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
GROUP = "sys/fs/cgroup/user.slice/mine"

QUIET = {
    f"{CPU}/cpufreq/policy0/scaling_governor": "performance",
    f"{CPU}/cpufreq/policy1/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    THP: "always [madvise] never",
    "proc/loadavg": "0.03 0.50 0.90 1/200 4711",
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
    "proc/self/cgroup": "0::/user.slice/mine\n",
    f"{GROUP}/cpu.max": "max 100000",
    f"{GROUP}/memory.max": "max",
    "proc/cpuinfo": "flags\t: fpu vme",
}


@pytest.fixture(autouse=True)
def no_timers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def machine(place: Path, **changed: str) -> Path:
    """A quiet machine, but for some files; returns its root directory."""
    for name, content in {**QUIET, **changed}.items():
        path = place / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return place / "root"


def test_nothing_disturbs_a_quiet_machine(tmp_path: Path) -> None:
    assert disturbances(machine(tmp_path)) == []


def test_a_machine_that_shows_nothing_is_no_error(tmp_path: Path) -> None:
    assert disturbances(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "content", "subject", "state", "cure"),
    [
        (
            f"{CPU}/cpufreq/policy1/scaling_governor",
            "schedutil",
            "governor",
            "schedutil",
            "cpupower frequency-set -g performance",
        ),
        (f"{CPU}/intel_pstate/no_turbo", "0", "turbo", "0", f"echo 1 > /{CPU}/intel_pstate/no_turbo"),
        (f"{CPU}/cpufreq/boost", "1", "turbo", "1", f"echo 0 > /{CPU}/cpufreq/boost"),
        (THP, "[always] madvise never", "huge pages", "[always] madvise never", f"echo madvise > /{THP}"),
        (
            "proc/loadavg",
            "3.10 0.50 0.90 1/200 4711",
            "load",
            "3.10 processes at work",
            "ps -eo pid,ni,pcpu,args --sort=-pcpu | head",
        ),
        ("proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2", "swap", "/dev/sda2", "swapoff -a"),
        (f"{GROUP}/cpu.max", "50000 100000", "limit", "cpu.max is 50000", f"echo max > /{GROUP}/cpu.max"),
        (
            "sys/fs/cgroup/user.slice/memory.high",
            "1048576",
            "limit",
            "memory.high is 1048576",
            "echo max > /sys/fs/cgroup/user.slice/memory.high",
        ),
        (
            "proc/cpuinfo",
            "flags\t: fpu hypervisor lahf_lm",
            "hypervisor",
            "this is a virtual machine",
            "measure seconds on a machine by itself",
        ),
    ],
)
def test_each_disturbance_is_one_finding(
    tmp_path: Path, file: str, content: str, subject: str, state: str, cure: str
) -> None:
    (found,) = disturbances(machine(tmp_path, **{file: content}))
    assert (found.subject, found.state, found.cure) == (subject, state, cure)
    assert found.effect


def test_limits_of_control_groups_of_version_1(tmp_path: Path) -> None:
    place = "sys/fs/cgroup/memory"
    files = {
        "proc/self/cgroup": "4:memory:/a/b\n0::/\n",
        f"{place}/a/b/memory.limit_in_bytes": "9223372036854771712",
        f"{place}/a/memory.limit_in_bytes": "1073741824",
    }
    (found,) = disturbances(machine(tmp_path, **files))
    assert found.state == "memory.limit_in_bytes is 1073741824"
    assert found.cure == f"echo -1 > /{place}/a/memory.limit_in_bytes"


def test_timers_of_systemd(tmp_path: Path) -> None:
    program = tmp_path / "bin/systemctl"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\necho "Mon 06:00 5h left - - apt-daily.timer apt-daily.service"\n'
        'echo "- - - - fstrim.timer fstrim.service"\n'
    )
    program.chmod(0o755)
    (found,) = disturbances(machine(tmp_path))
    assert (found.subject, found.state) == ("timers", "apt-daily.timer, fstrim.timer")
    assert found.cure == "systemctl stop apt-daily.timer fstrim.timer"
    program.write_text("#!/bin/sh\necho no systemd here >&2\nexit 1\n")
    assert disturbances(machine(tmp_path)) == []


def test_this_machine_can_be_looked_at() -> None:
    assert all(found.subject and found.state and found.effect and found.cure for found in disturbances())
