# SPDX-License-Identifier: GPL-2.0-only
"""How a test program ended in a guest, and on kernels, of which the first is what the others are compared with."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.errors import HostLost, NoResult
from foliolab.files import write_atomic
from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.suites.ktap import End, best, worse, worst
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.outcome import GuestFailure, JobResult, complaints, short_of_time, splats

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
    died: str = ""
    """How the guest crashed or hung, if it did; its log may be free of complaints all the same."""
    complaint: str = ""
    """The first thing that the kernel complained of in its log, if any."""
    lost: frozenset[str] = frozenset()
    """If it is of several boots: the subtests that did not run in all of them."""
    once: frozenset[str] = frozenset()
    """If it is the better of two boots: the subtests that ended worse in the other."""

    @property
    def accident(self) -> str:
        """How the guest crashed or hung, or else what its kernel complained of; empty if neither."""
        return self.died or self.complaint


def kept(
    place: Path, boot: Callable[[Path], dict[str, str]], parse: Callable[[str], dict[str, End]], *, again: bool
) -> Result:
    """What an earlier boot has left in ``place``, or else a ``boot`` leaves there; that is given where its log goes."""
    log = place.with_suffix(".log")
    if again or not place.exists():
        write_atomic(place, json.dumps(boot(log)))
    facts = json.loads(place.read_text())
    output = facts.pop("output")
    told = {name: facts.pop(name, "") for name in ("remark", "died", "complaint")}
    return Result(parse(output) | {name: End(value) for name, value in facts.items()}, log, **told)


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
    ``skipped`` is no failure, and the kernel's log; as "remark" what was odd and is no failure, as "died" how the
    guest did, if so, and as "complaint" the first one of the kernel's.
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
    bad = complaints(titles, real_time=real_time)
    output, *others = map(bytes, printed)
    write_atomic(log, b"\n".join([f"{command}: {how}".encode(), output, *others, words.encode()]))
    return {
        "output": output.decode(errors="replace"),
        EXIT_STATUS: ending,
        KERNEL_LOG: End.FAIL if bad else End.PASS,
        "remark": short_of_time(titles, real_time=real_time),
        "died": died,
        "complaint": bad[0] if bad else "",
    }


Results = Mapping[str, Mapping[str, Result]]
"""Of each test on each kernel: command -> the kernel's name -> result."""

_MORE_BOOTS = 5


def run_all(
    what: str,
    tests: Collection[str],
    kernels: Sequence[BuiltKernel],
    run: Callable[[str, BuiltKernel, int], Result],
    report: Reporter,
) -> Results:
    """Every test on every kernel; ``run`` is given a test, a kernel and the number of the boot."""
    results: dict[str, dict[str, Result]] = {}
    with report.task(f"running {what}", len(tests) * len(kernels)) as task:
        for test in tests:

            def one(kernel: BuiltKernel, boot: int, test: str = test) -> Result:
                task.note(f"{test}, {kernel.name}")
                return run(test, kernel, boot)

            results[test] = compared(kernels, one)
            task.advance(len(kernels))
    return results


def compared(kernels: Sequence[BuiltKernel], run: Callable[[BuiltKernel, int], Result]) -> dict[str, Result]:
    """The result of a test on each kernel.

    Some tests are a matter of luck. What others end worse counts if they do so in a second boot, too, and then the
    first kernel gets more boots to fail it as well. What a kernel complains of, or dies of, counts at once. A boot in
    which a subtest did not run excuses nothing but that it does not run on the others.
    """
    found = {kernel.name: run(kernel, 1) for kernel in kernels}
    first, *others = kernels
    for kernel in others:
        result = found[kernel.name]
        bad = regressions({first.name: found[first.name], kernel.name: result})
        if bad and not result.died and KERNEL_LOG not in bad and set(bad) <= result.subtests.keys():
            found[kernel.name] = _better(result, run(kernel, 2))
    for boot in range(2, 2 + _MORE_BOOTS):
        if not regressions(found):
            break
        more = run(first, boot)
        so_far = found[first.name]
        lost = so_far.lost | (so_far.subtests.keys() ^ more.subtests.keys())
        subtests, remark = worst(so_far.subtests, more.subtests), so_far.remark or more.remark
        told = so_far if so_far.accident else more
        found[first.name] = replace(told, subtests=subtests, remark=remark, lost=lost)
    return found


def _better(result: Result, again: Result) -> Result:
    """Two boots taken together, unless the second dies, or the kernel complains in it alone."""
    gone = result.subtests.keys() - again.subtests.keys()
    if again.died or gone or KERNEL_LOG in worse(result.subtests, again.subtests):
        return again
    subtests, remark = best(result.subtests, again.subtests), again.remark or result.remark
    once = frozenset(name for name in result.subtests if result.subtests[name] is not again.subtests[name])
    complaint = again.complaint or result.complaint
    return replace(again, subtests=subtests, remark=remark, once=once, complaint=complaint)


def regressions(found: Mapping[str, Result]) -> list[str]:
    """The subtests that end worse on any kernel than on the first, which the others are compared with."""
    first, *others = found.values()
    names = dict.fromkeys(name for other in others for name in worse(first.subtests, other.subtests, first.lost))
    return list(names)
