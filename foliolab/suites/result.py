# SPDX-License-Identifier: GPL-2.0-only
"""How a test program ended in a guest."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import HostLost, NoResult
from foliolab.files import write_atomic
from foliolab.suites.ktap import End
from foliolab.vm.failure import GuestFailure, JobResult
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.outcome import complaints, short_of_time, splats

EXIT_STATUS = "exit status"
"""The subtest that a program's exit status is."""
KERNEL_LOG = "the kernel's log"
"""The subtest that passes if the kernel's log is free of complaints."""


@dataclass(frozen=True)
class Result:
    subtests: dict[str, End]
    """Its own, then its exit status, then whether the kernel's log is free of complaints."""
    log: Path
    """All that it printed, and the kernel's log."""
    remark: str = ""
    """That the guest had too little time, if so, which is no fault of the kernel where time is not real."""
    died: bool = False
    """Whether the guest crashed or hung; its log may be free of complaints all the same."""
    lost: frozenset[str] = frozenset()
    """If it is of several boots: the subtests that did not run in all of them."""
    once: frozenset[str] = frozenset()
    """If it is the better of two boots: the subtests that ended worse in the other."""


def kept(
    place: Path, boot: Callable[[Path], dict[str, str]], parse: Callable[[str], dict[str, End]], *, again: bool
) -> Result:
    """What an earlier boot has left in ``place``, or else a ``boot`` leaves there; that is given where its log goes."""
    log = place.with_suffix(".log")
    if again or not place.exists():
        write_atomic(place, json.dumps(boot(log)))
    facts = json.loads(place.read_text())
    output, remark, died = facts.pop("output"), facts.pop("remark", ""), bool(facts.pop("died", ""))
    return Result(parse(output) | {name: End(value) for name, value in facts.items()}, log, remark, died)


def boot_for(
    command: str,
    config: GuestConfig,
    log: Path,
    perform: Callable[[Guest], JobResult],
    printed: Iterable[bytearray],
    skipped: int,
) -> dict[str, str]:
    """Have a guest perform a test, and leave all that was said in ``log``.

    Returns the first of what the test has ``printed``, and what else there is to judge: its exit status, of which
    ``skipped`` is no failure, and the kernel's log; as "remark" what was odd and is no failure, and as "died" how the
    guest did, if so.
    """
    console, died = log.with_suffix(".console"), ""
    try:
        with Guest(config, console) as guest:
            done = perform(guest)
            how = f"signal {done.signal}" if done.signal else f"exit status {done.status}"
            ending = End.SKIP if done.status == skipped else End.FAIL
            ending = ending if done.status or done.signal else End.PASS
    except GuestFailure as failure:
        if isinstance(failure, HostLost | NoResult):  # nothing that the kernel is to blame for
            raise
        how = died = str(failure)
        ending = End.FAIL
    words = console.read_text(errors="replace")
    console.unlink()
    titles, real_time = splats(words), config.accelerator.real_time
    output, *others = map(bytes, printed)
    write_atomic(log, b"\n".join([f"{command}: {how}".encode(), output, *others, words.encode()]))
    return {
        "output": output.decode(errors="replace"),
        EXIT_STATUS: ending,
        KERNEL_LOG: End.FAIL if complaints(titles, real_time=real_time) else End.PASS,
        "remark": short_of_time(titles, real_time=real_time),
        "died": died,
    }
