# SPDX-License-Identifier: GPL-2.0-only
"""Add samples of other stores, which were measured elsewhere, to this one, with the consoles of their boots. What it
has already is not added again. The result of a bundle is taken as well. After release/samples.jsonl.xz,
'./lab reproduce' measures only what is not shipped of the same kernels and probes.

example: ./lab merge /net/node7/results/samples.jsonl /net/node8/results/samples.jsonl
"""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from foliolab.campaign.sample import Sample
from foliolab.campaign.store import consoles_of, open_store, read_samples, store_file
from foliolab.errors import LabError, UsageError
from foliolab.files import write_atomic
from foliolab.metal.answers import result_samples
from foliolab.metal.bundle import is_packed
from foliolab.progress import say
from foliolab.vm.accel import HOST


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "a samples.jsonl or its directory, or a compressed samples.jsonl.xz"
    parser.add_argument("store", nargs="+", type=Path, help=text)


def handle(arguments: argparse.Namespace) -> int:
    damaged: list[str] = []
    with ExitStack() as stack:
        found = [each for place in arguments.store for each in _found(place, stack, damaged.append)]
        found.sort(key=lambda each: bool(each[0].host))  # of copies, the one that says more stays
        new = _add(found)
    say(f"{new} of {len(found)} samples are new.")
    if damaged:
        raise LabError(" ".join(damaged))
    return 0


_Found = tuple[Sample, Path]
"""A sample, and the directory of its store's consoles."""


def _found(place: Path, stack: ExitStack, complain: Callable[[str], None]) -> list[_Found]:
    file = place / "samples.jsonl" if place.is_dir() else place
    if not file.is_file():
        raise UsageError(f"There is no store at {place}.")
    if is_packed(file):
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="foliolab-merge-")))
        return result_samples(file, scratch, complain)
    samples = read_samples(file)
    if not samples:
        raise UsageError(f"There is no sample in {place}: was it copied whole?")
    return [(sample, consoles_of(file)) for sample in samples]


def _add(found: list[_Found]) -> int:
    """Returns how many were not there yet."""
    with open_store(store_file()) as store:
        new = {_identity(sample): (sample, consoles) for sample, consoles in found}
        for sample in store.samples:
            new.pop(_identity(sample), None)
        for console in {consoles / f"{sample.boot}.log" for sample, consoles in new.values()}:
            if console.exists():
                write_atomic(store.consoles / console.name, console.read_bytes())
        for sample, _ in new.values():
            store.append(sample)
    return len(new)


def _identity(sample: Sample) -> str:
    """Equal for copies of one measurement: what is shipped names hosts only where these matter."""
    recorded = "" if sample.backend == HOST else sample.recorded  # that is when it came here
    return repr(replace(sample, host=sample.timed_on, recorded=recorded))
