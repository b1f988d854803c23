# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of a test's boot, of a guest whose kernel's log says something."""

from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.built import BuiltKernel
from foliolab.report.suites import markdown
from foliolab.suites.ktap import End
from foliolab.suites.suite import Call, ForeignSuite
from foliolab.vm.accel import choose
from foliolab.vm.guest import Guest, GuestConfig, OnOutput
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
    title: str, verdict: End, remark: str, patched_kernel: BuiltKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = initramfs(guest_programs(NATIVE))
    config = GuestConfig(NATIVE, patched_kernel.image, archive, choose(NATIVE, "tcg"), memory_mib=256)

    def perform(guest: Guest, on_output: OnOutput) -> JobResult:
        on_output(1, b"said")
        return guest.run([":write", "/dev/kmsg", f"{title}\n"])

    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path))
    call = Call("test", (), lambda *_: config, perform)
    suite = ForeignSuite("Title", "suite", "1", {"test": call}, lambda output: {output: End.PASS}, skipped=4)
    result = suite.run("test", patched_kernel)
    assert result.subtests == {"said": End.PASS, "exit status": End.PASS, "the kernel's log": verdict}
    assert result.remark == remark
    assert title in result.log.read_text()
    lines = markdown("Title", {"test": {"patched": result}}, {}).splitlines()
    assert (f"- test (patched): {remark}" in lines) is bool(remark)
