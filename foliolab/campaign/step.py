# SPDX-License-Identifier: GPL-2.0-only
"""What a step takes of init, and what comes of it, wherever that runs: in a guest or on a machine."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from foliolab.experiment.metrics import METRICS
from foliolab.experiment.plan import Plan, Step
from foliolab.kernel.name import PATCHED
from foliolab.toml import Value
from foliolab.vm.counted import NOTHING_BESIDE, CountedAround
from foliolab.vm.disk import DATA_FILE
from foliolab.vm.outcome import JobResult, Outcome, OutcomeKind, failure
from foliolab.vm.switches import LACKING, lacking, switched

DATA = "/data"
"""Where the disk is mounted."""
PROGRAMS = "/programs"
"""Where the one with programs is, if it is another."""

_SETTING_SECONDS = 60
"""How long a job may take that only writes a file."""


def watermarks(plan: Plan) -> list[str]:
    """The job that sets how far apart the watermarks of memory are."""
    factor = plan.scale.parameters.watermark_scale_factor
    return [":write", "/proc/sys/vm/watermark_scale_factor", str(factor)]


def mounts(plan: Plan, disk: Callable[[int], str]) -> list[list[str]]:
    """The jobs that mount the data, and programs on another disk; ``disk`` says what the kernel calls each."""
    parameters = plan.scale.parameters
    access = [] if parameters.writable else ["ro"]
    jobs = [[":mount", f"/dev/{disk(0)}", DATA, parameters.filesystem, *access]]
    if parameters.programs:
        jobs.append([":mount", f"/dev/{disk(1)}", PROGRAMS, "xfs", "ro"])
    return jobs


def jobs_of(plan: Plan, step: Step, disk: str) -> list[tuple[list[str], float]]:
    """What a step takes, each with its deadline in seconds. The first that fails is the last to be run.

    ``disk`` is what the kernel calls the disk with the data.
    """
    parameters = plan.scale.parameters
    limit = [":write", f"/sys/block/{disk}/queue/read_ahead_kb", str(parameters.read_ahead_kb)]
    data = DATA_FILE if parameters.file_bytes else DATA
    command = plan.experiment.command(step.cell, parameters, step.repetition, data)
    settings = [switched(step.variant.switches), limit]
    return [*((argv, _SETTING_SECONDS) for argv in settings), (command, parameters.deadline_seconds)]


def metrics_of(
    results: Sequence[JobResult],
    wanted: str,
    kernel: str,
    variant: str,
    switches: Mapping[str, Value],
    beside: CountedAround = NOTHING_BESIDE,
    *,
    counting: bool = False,
) -> dict[str, int | float]:
    """By name, of what a step's jobs came to, among them the ``wanted`` one; raises GuestFailure if they came to none.

    With ``counting``, processor time is the number of instructions, in nanoseconds. ``beside`` was counted around the
    probe.
    """
    # Ours has all switches: there, one that is missing is a mistake in the variant.
    if kernel != PATCHED and (name := lacking(results[0], switches.items())):
        raise failure(Outcome(OutcomeKind.NOT_APPLICABLE, f"{kernel} has no switch {name}, which {variant} sets."))
    result = results[-1]
    if result.status == LACKING and not result.argv[0].startswith(":"):
        raise failure(replace(result.outcome, kind=OutcomeKind.NOT_APPLICABLE))
    metrics = _printed(result.checked()) | beside.metrics
    if counting:
        _count_instructions(metrics, result)
    if wanted not in metrics:
        printed = json.loads(result.stdout)
        if wanted in beside.not_counted or (wanted in printed and printed[wanted] is None):
            sentence = f"{result.argv[0]} cannot count {wanted} on this kernel."
            raise failure(Outcome(OutcomeKind.NOT_APPLICABLE, sentence))
        raise failure(Outcome(OutcomeKind.NO_RESULT, f"{result.argv[0]} printed no {wanted}."))
    return metrics


def _count_instructions(metrics: dict[str, int | float], result: JobResult) -> None:
    """Make instructions of the times that a probe took."""
    # CPU time, because the clock jumps ahead whenever the guest waits for its disk.
    metrics["instructions"] = round(result.cpu_seconds * 1e9)
    # Of these the probes say that nothing waits meanwhile.
    for name, metric in METRICS.items():
        time, count = metric.quotient or ("", "")
        if metrics.get(count) and time in metrics:
            metrics[name] = metrics[time] * 1e9 / metrics[count]


def _printed(result: JobResult) -> dict[str, int | float]:
    """The metrics in the probe's JSON line; what the guest could not count is left out."""
    try:
        line = json.loads(result.stdout)
        # True is an int, too, and NaN and infinities are floats.
        metrics = {
            name: value for name in METRICS if type(value := line.get(name)) in (int, float) and abs(value) < 1 << 64
        }
    except (ValueError, AttributeError):
        metrics = {}
    if "seconds" not in metrics:
        raise failure(Outcome(OutcomeKind.NO_RESULT, f"{result.argv[0]} printed no result."))
    return metrics
