# SPDX-License-Identifier: GPL-2.0-only
"""What 'trace replay' does with --on and --scratch: seconds of a disk of this machine."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foliohost.devices import device_of, windows_adapt
from foliohost.trace import Trace
from foliolab.cli.options import print_rows
from foliolab.errors import UsageError
from foliolab.model.library import PAGE_BYTES
from foliolab.report.terminal import terminal
from foliolab.report.trace import print_timed
from foliolab.trace.disk_file import require_on_disk, scratch_file
from foliolab.trace.on_file import LEAST_REPETITIONS, ReadCosts, TimedReplay, bases, joined, time_replays
from foliolab.trace.replay import replays

_NEEDS_FILE = ("kernel_too", "repetitions", "request_us", "page_us")
_NOT_WITH_FILE = ("device", "table")
_NOT_WITH_KERNEL = ("read_ahead_kb", "memory")


def add_file_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("seconds of a disk of this machine")
    where = group.add_mutually_exclusive_group()
    where.add_argument("--on", metavar="FILE", type=Path, help="really read from this file what the model decides to")
    text = "the same, from a file that is made there for it"
    where.add_argument("--scratch", metavar="DIRECTORY", type=Path, help=text)
    text = f"that are counted (default, and least: {LEAST_REPETITIONS})"
    group.add_argument("--repetitions", metavar="N", type=int, help=text)
    group.add_argument("--request-us", metavar="US", type=float, help="what the disk takes for a request ...")
    group.add_argument("--page-us", metavar="US", type=float, help="... and for a page, to predict seconds from counts")
    text = "also let the running kernel read, with the disk's window and all free memory"
    group.add_argument("--kernel-too", action="store_true", default=None, help=text)


def on_file(arguments: argparse.Namespace) -> bool:
    """Whether a file is to be read; UsageError for options that do not go together."""
    wanted = arguments.on is not None or arguments.scratch is not None
    if not wanted:
        _require_absent(arguments, _NEEDS_FILE, "goes with --on or --scratch only")
        return False
    _require_absent(arguments, _NOT_WITH_FILE, "does not go with --on and --scratch")
    if arguments.kernel_too:
        _require_absent(arguments, _NOT_WITH_KERNEL, "does not go with --kernel-too")
    if (arguments.request_us is None) != (arguments.page_us is None):
        raise UsageError("--request-us and --page-us go together.")
    if arguments.request_us is not None and not (0 <= arguments.request_us < 1e9 and 0 <= arguments.page_us < 1e9):
        raise UsageError("--request-us and --page-us are times from 0 to less than 1,000,000,000.")
    if arguments.repetitions is not None and arguments.repetitions < LEAST_REPETITIONS:
        raise UsageError(f"--repetitions is at least {LEAST_REPETITIONS}: fewer do not tell what is noise.")
    return True


def _require_absent(arguments: argparse.Namespace, names: Sequence[str], words: str) -> None:
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value is not False:
            raise UsageError(f"--{name.replace('_', '-')} {words}.")


def replay_on_file(
    arguments: argparse.Namespace,
    traces: Sequence[tuple[str, Trace]],
    variants: Sequence[str],
    windows_kb: Sequence[int],
    memory_bytes: int | None,
) -> int:
    """Replay on a file, and print the times. What ordinary replays take too is passed by itself."""
    costs = None if arguments.request_us is None else ReadCosts(arguments.request_us, arguments.page_us)
    kernel = _kernel_variants(variants) if arguments.kernel_too else {}
    timed: list[TimedReplay] = []
    with _file(arguments, max(trace.pages for _, trace in traces) * PAGE_BYTES) as file:
        for name, trace in traces:
            replayed, windows, memory = trace, windows_kb, memory_bytes
            if kernel:
                # The kernel reads beyond what the trace has, and knows of one file only.
                replayed = joined(trace, -(-file.stat().st_size // PAGE_BYTES))
                windows = [device_of(file).read_ahead_kb]
                memory = max(replayed.pages * PAGE_BYTES, 2 * windows[0] << 10)
            found = list(replays(name, replayed, variants, windows, memory))
            timed += time_replays(replayed, found, file, arguments.repetitions or LEAST_REPETITIONS, kernel)
    if arguments.json:
        print_rows("replays", (each.to_json(base, costs) for each, base in zip(timed, bases(timed), strict=True)))
    else:
        print_timed(terminal(), timed, costs)
    return 0


@contextmanager
def _file(arguments: argparse.Namespace, size: int) -> Iterator[Path]:
    if arguments.scratch:
        with scratch_file(arguments.scratch, size) as file:
            yield file
    else:
        # All of the last page is not needed: that of the file that was traced may be shorter, too.
        require_on_disk(arguments.on, size - PAGE_BYTES + 1)
        if arguments.kernel_too:
            require_on_disk(arguments.on, arguments.on.stat().st_size)
        yield arguments.on


def _kernel_variants(asked: Sequence[str]) -> dict[str, bool]:
    """Those that the kernel which runs here can be, and whether by the hint for random access."""
    variants = {"adaptive" if windows_adapt() else "off": False, "random": True}
    if not variants.keys() & set(asked):
        raise UsageError(f"--kernel-too needs a --variant that the running kernel can be: {' or '.join(variants)}.")
    return variants
