# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a test's boot, of a guest whose kernel's log says something."""

from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.report.suites import markdown
from foliolab.suites.ktap import End
from foliolab.suites.result import boot_for, kept
from foliolab.vm.accel import choose
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from foliolab.vm.outcome import JobResult

LOCKUP = "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [test:77]"
WARNING = "WARNING: CPU: 0 PID: 1 at mm/none.c:1 something"


@pytest.mark.boot
@pytest.mark.parametrize(
    ("title", "verdict", "remark"),
    [(LOCKUP, End.PASS, f"The guest had too little time: {LOCKUP}"), (WARNING, End.FAIL, "")],
    ids=["slow", "at fault"],
)
def test_what_was_too_slow_is_no_failure_and_is_said(
    title: str, verdict: End, remark: str, patched_kernel: BuiltKernel, tmp_path: Path
) -> None:
    archive = initramfs(guest_programs(NATIVE, Reporter()))
    config = GuestConfig(NATIVE, patched_kernel.image, archive, choose(NATIVE, "tcg"), memory_mib=256)

    def perform(guest: Guest) -> JobResult:
        return guest.run([":write", "/dev/kmsg", f"{title}\n"])

    def boot(log: Path) -> dict[str, str]:
        return boot_for("test", config, log, perform, [bytearray(b"said")], 4)

    result = kept(tmp_path / "test.json", boot, lambda output: {output: End.PASS}, again=False)
    assert result.subtests == {
        "said": End.PASS,
        "exit status": End.PASS,
        "the kernel's log": verdict,
    }
    assert result.remark == remark
    assert title in result.log.read_text()
    lines = markdown("Title", {"test": {"patched": result}}, {}).splitlines()
    assert (f"- test (patched): {remark}" in lines) is bool(remark)
