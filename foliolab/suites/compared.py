# SPDX-License-Identifier: GPL-2.0-only
"""The tests of a suite on kernels, of which the first is what the others are compared with."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from foliolab.kernel.built import BuiltKernel
from foliolab.progress import Reporter
from foliolab.suites.ktap import worse, worst
from foliolab.suites.result import Result

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

    Some tests are a matter of luck. What others fail counts, and then the first one gets more boots to fail it, too.
    One in which a subtest did not run excuses nothing but that it does not run on the others.
    """
    found = {kernel.name: run(kernel, 1) for kernel in kernels}
    for boot in range(2, 2 + _MORE_BOOTS):
        if not regressions(found):
            break
        more = run(kernels[0], boot)
        so_far = found[kernels[0].name]
        lost = so_far.lost | (so_far.subtests.keys() ^ more.subtests.keys())
        subtests, remark = worst(so_far.subtests, more.subtests), so_far.remark or more.remark
        found[kernels[0].name] = replace(more, subtests=subtests, remark=remark, lost=lost)
    return found


def regressions(found: Mapping[str, Result]) -> list[str]:
    """The subtests that end worse on any kernel than on the first, which the others are compared with."""
    first, *others = found.values()
    names = dict.fromkeys(name for other in others for name in worse(first.subtests, other.subtests, first.lost))
    return list(names)
