# SPDX-License-Identifier: GPL-2.0-only
"""How a test program ended in a guest, and on kernels, of which the first is what the others are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.kernel.built import BuiltKernel
from foliolab.suites.ktap import End, together, worse

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


Results = Mapping[str, Mapping[str, Result]]
"""Of each test on each kernel: command -> the kernel's name -> result."""

_MORE_BOOTS = 5


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
        subtests, remark = together(so_far.subtests, more.subtests, min), so_far.remark or more.remark
        told = so_far if so_far.accident else more
        found[first.name] = replace(told, subtests=subtests, remark=remark, lost=lost)
    return found


def _better(result: Result, again: Result) -> Result:
    """Two boots taken together, unless the second dies, or the kernel complains in it alone."""
    gone = result.subtests.keys() - again.subtests.keys()
    if again.died or gone or KERNEL_LOG in worse(result.subtests, again.subtests):
        return again
    subtests, remark = together(result.subtests, again.subtests, max), again.remark or result.remark
    once = frozenset(name for name in result.subtests if result.subtests[name] is not again.subtests[name])
    complaint = again.complaint or result.complaint
    return replace(again, subtests=subtests, remark=remark, once=once, complaint=complaint)


def regressions(found: Mapping[str, Result]) -> list[str]:
    """The subtests that end worse on any kernel than on the first, which the others are compared with."""
    first, *others = found.values()
    names = dict.fromkeys(name for other in others for name in worse(first.subtests, other.subtests, first.lost))
    return list(names)
