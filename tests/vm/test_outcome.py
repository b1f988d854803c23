# SPDX-License-Identifier: GPL-2.0-only
"""Every way a boot can end, against console logs of it.

Most logs are from real boots, cut to their ends; those of sanitizers and lockdep, of a soft lockup
and of boot noise are composed in the kernel's format.
"""

from pathlib import Path

import pytest

from foliolab.vm.outcome import Ending, OutcomeKind, classify, complaints, short_of_time, splats

GOLDEN = Path(__file__).parent.parent / "golden/console"

CRASH, HANG, MEMORY, NOTHING, LOST = (
    OutcomeKind.GUEST_CRASH,
    OutcomeKind.HANG,
    OutcomeKind.OUT_OF_MEMORY,
    OutcomeKind.NO_RESULT,
    OutcomeKind.LOST_HOST,
)

Row = tuple[str, Ending, OutcomeKind, str]
"""What a log is called, how the boot ended, and what it is taken for."""


def crashed(log: str, words: str, ending: Ending = Ending.RESET) -> Row:
    return log, ending, CRASH, f"The guest crashed: {words}"


def hung(log: str, words: str = "") -> Row:
    said = f" Its console says: {words}" if words else ""
    return log, Ending.DEADLINE, HANG, f"The guest did not end its boot within 60 s.{said}"


NO_ROOT = "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"

ALIKE: list[Row] = [
    hung("hang-with-stacks"),
    (
        "out-of-memory-panic",
        Ending.RESET,
        MEMORY,
        "The guest ran out of memory: Out of memory: system-wide panic_on_oom is enabled",
    ),
    crashed("panic-by-sysrq", "Kernel panic - not syncing: sysrq triggered crash"),
    crashed("panic-no-root", NO_ROOT),
    ("reset-without-a-word", Ending.RESET, CRASH, "The guest reset itself without a word on its console."),
]
"""Which guests of both architectures come to; the logs of arm64 are called so."""

ENDINGS: list[Row] = [
    *ALIKE,
    *((f"arm64-{log}", ending, kind, sentence) for log, ending, kind, sentence in ALIKE),
    crashed("arm64-bug", "kernel BUG at mm/filemap.c:4256!"),
    hung("arm64-hang-soft-lockup", "rcu: INFO: rcu_sched self-detected stall on CPU"),
    crashed(
        "arm64-oops-null-pointer",
        "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010",
    ),
    crashed(
        "arm64-oops-undefined-instruction", "Internal error: Oops - Undefined instruction: 0000000002000000 [#1] SMP"
    ),
    ("boot-noise", Ending.OFF, NOTHING, "The guest switched itself off without an answer."),
    hung("clean-boot"),
    ("clean-boot", Ending.LOST, LOST, "QEMU went away: killed by SIGKILL."),
    hung("hang-hung-task", "INFO: task init:49 blocked for more than 2 seconds."),
    hung("hang-soft-lockup", "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [sparse-mmap:58]"),
    crashed("kasan-panic-on-warn", "BUG: KASAN: slab-use-after-free in filemap_map_pages+0x6f4/0xbd0"),
    ("lost-in-mid-line", Ending.LOST, LOST, "QEMU went away: killed by SIGKILL."),
    crashed("oops-null-pointer", "BUG: kernel NULL pointer dereference, address: 0000000000000010"),
    crashed("panic-init-died", "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300"),
    # A panic is one even if the guest then fails to reset itself.
    crashed("panic-no-root", NO_ROOT, Ending.DEADLINE),
    ("powered-off", Ending.OFF, NOTHING, "The guest switched itself off without an answer."),
    crashed("warning-before-crash", "kernel BUG at mm/filemap.c:3655!"),
]

SPLATS = {
    "arm64-bug": ["kernel BUG at mm/filemap.c:4256!"],
    "arm64-hang-soft-lockup": [
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [init:41]",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
    ],
    "arm64-hang-with-stacks": [],
    "arm64-oops-null-pointer": ["Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010"],
    "arm64-oops-undefined-instruction": ["Internal error: Oops - Undefined instruction: 0000000002000000 [#1] SMP"],
    "arm64-out-of-memory-panic": ["Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"],
    "arm64-panic-by-sysrq": ["Kernel panic - not syncing: sysrq triggered crash"],
    "arm64-panic-no-root": ["Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"],
    "arm64-reset-without-a-word": [],
    "boot-noise": [],
    "clean-boot": [],
    "hang-hung-task": [f"INFO: task init:49 blocked for more than {seconds} seconds." for seconds in (1, 2)],
    "hang-soft-lockup": ["watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [sparse-mmap:58]"],
    "hang-with-stacks": [],
    "kasan-panic-on-warn": ["BUG: KASAN: slab-use-after-free in filemap_map_pages+0x6f4/0xbd0"],
    "lockdep-circular": ["WARNING: possible circular locking dependency detected"],
    "lost-in-mid-line": ["BUG: kernel NULL pointer dereference, address: 0000000000000010"],
    "oops-null-pointer": ["BUG: kernel NULL pointer dereference, address: 0000000000000010"],
    "out-of-memory-job-killed": [],
    "out-of-memory-panic": ["Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"],
    "panic-by-sysrq": ["Kernel panic - not syncing: sysrq triggered crash"],
    "panic-init-died": ["Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300"],
    "panic-no-root": ["Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"],
    "powered-off": [],
    "rcu-usage-and-ubsan": ["WARNING: suspicious RCU usage", "UBSAN: shift-out-of-bounds in mm/readahead.c:512:31"],
    "reset-without-a-word": [],
    "warning-before-crash": [
        "WARNING: CPU: 0 PID: 58 at mm/readahead.c:473 page_cache_ra_order+0x2c1/0x390",
        "kernel BUG at mm/filemap.c:3655!",
    ],
}


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.log").read_text()


@pytest.mark.parametrize(("name", "ending", "kind", "sentence"), ENDINGS, ids=lambda value: str(value)[:24])
def test_classify(name: str, ending: Ending, kind: OutcomeKind, sentence: str) -> None:
    outcome = classify(golden(name), ending, waited="end its boot within 60 s", host_words="killed by SIGKILL")
    assert (outcome.kind, outcome.sentence) == (kind, sentence)


def test_every_log_has_its_splats_told() -> None:
    assert {path.stem: splats(path.read_text()) for path in GOLDEN.glob("*.log")} == SPLATS


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("hang-soft-lockup", f"The guest had too little time: {SPLATS['hang-soft-lockup'][0]}"),
        ("hang-hung-task", f"The guest had too little time: {SPLATS['hang-hung-task'][0]}"),
        ("rcu-usage-and-ubsan", ""),
        ("clean-boot", ""),
    ],
)
def test_where_time_is_not_real_a_lockup_is_no_complaint_and_is_said(name: str, sentence: str) -> None:
    titles = SPLATS[name]
    assert short_of_time(titles, real_time=False) == sentence
    assert short_of_time(titles, real_time=True) == ""
    assert complaints(titles, real_time=True) == titles
    assert complaints(titles, real_time=False) == ([] if sentence else titles)


def test_carriage_returns_of_a_serial_line_are_ignored() -> None:
    log = golden("oops-null-pointer")
    assert splats(log.replace("\n", "\r\n")) == splats(log)
    assert classify(log.replace("\n", "\r\n"), Ending.RESET) == classify(log, Ending.RESET)


def test_an_empty_log_is_a_guest_that_never_spoke() -> None:
    assert classify("", Ending.RESET).kind is CRASH
    assert classify("", Ending.OFF).kind is NOTHING
    assert classify("", Ending.DEADLINE, waited="end its boot").sentence == "The guest did not end its boot."
