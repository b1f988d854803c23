# SPDX-License-Identifier: GPL-2.0-only
"""The tests of a suite on kernels, of which the first is what the others are compared with."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.suites.ktap import best, worse, worst
from foliolab.suites.result import KERNEL_LOG, Result

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
        found[first.name] = replace(more, subtests=subtests, remark=remark, lost=lost)
    return found


def _better(result: Result, again: Result) -> Result:
    """Two boots taken together, unless the second dies, or the kernel complains in it alone."""
    gone = result.subtests.keys() - again.subtests.keys()
    if again.died or gone or KERNEL_LOG in worse(result.subtests, again.subtests):
        return again
    subtests, remark = best(result.subtests, again.subtests), again.remark or result.remark
    once = frozenset(name for name in result.subtests if result.subtests[name] is not again.subtests[name])
    return replace(again, subtests=subtests, remark=remark, once=once)


def regressions(found: Mapping[str, Result]) -> list[str]:
    """The subtests that end worse on any kernel than on the first, which the others are compared with."""
    first, *others = found.values()
    names = dict.fromkeys(name for other in others for name in worse(first.subtests, other.subtests, first.lost))
    return list(names)
