# SPDX-License-Identifier: GPL-2.0-only
"""A bundle with one boot of three steps, and what comes of it on a machine."""

import base64
import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBootable
from foliolab.campaign.job import Job, Work
from foliolab.campaign.sample import KernelFacts, Sample
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.experiment.variants import choose, load_variants
from foliolab.kernel.built import BuiltKernel
from foliolab.metal.answers import BootRead
from foliolab.metal.bundle import make_bundle
from tests.samples import sample
from tests.small import small_experiment

FACTS = {"name": "bench1", "cpus": "64", "memory_kib": str(128 << 20), "processor": "Fast", "disk": "Disk nvme file"}
LINE = b'{"seconds": 0.5, "read_bytes": 4096, "floor_bytes": 4096}'


def bundled(place: Path, parameters: str = "") -> Path:
    """The directory of the only boot of a bundle; ``parameters`` are more lines for those of the experiment."""
    for name in ("bzImage", "init", "disk.img"):
        (place / name).write_bytes(name.encode() * 512)
    kernel = BuiltKernel("abc", place / "bzImage", "patched", "metal", NATIVE, "6.12", 4096, ours=True)
    file = small_experiment(place)
    file.write_text(file.read_text().replace("[parameters]\n", f"[parameters]\n{parameters}"))
    experiment = find_experiment(str(file))
    plan = make_plan(experiment, experiment.scale("quick"), variants=choose(["off"], load_variants()))
    (planned,) = plan.boots
    form = replace(sample(), outcome="", backend="host", kernel=KernelFacts.of(kernel), variant="off", metrics={})
    works = [Work(step, replace(form, cell=step.cell.as_dict())) for step in planned.steps]
    bootable = HostBootable(kernel, {"init": place / "init"}, (place / "disk.img",), plan)
    assert make_bundle(place / "metal", [Job(bootable, "patched", tuple(works))]) == 1
    (found,) = (place / "metal/run/boots").iterdir()
    return found


def jobs_in(boot: Path) -> list[tuple[int, int, list[str]]]:
    """The number, the step and the command line of each job."""
    lines = [json.loads(line) for line in (boot / "jobs").read_text().splitlines()]
    return [(line["id"], line["step"], line["argv"]) for line in lines]


def ended_job(number: int, step: int, out: bytes, *, err: bytes = b"", status: int = 0) -> list[str]:
    """What init says of a job from its start to its end."""
    outputs = [
        {"event": "output", "id": number, "fd": fd, "data": base64.b64encode(data).decode()}
        for fd, data in ((1, out), (2, err))
        if data
    ]
    numbers = {"status": status, "signal": 0, "oom_kills": 0, "cpu_us": 1}
    events = [{"event": "start", "id": number, "step": step}, *outputs, {"event": "exit", "id": number, **numbers}]
    return [json.dumps(event) for event in events]


def answer(
    boot: Path, *ends: str, outcome: str, line: bytes = LINE, counts: bytes = b"", facts: dict[str, str] = FACTS
) -> list[Sample]:
    """What comes of it if every job but those of the last step ends well, and that by these events.

    Jobs print a ``line``, and those that read a file, ``counts``.
    """
    lines = ['{"event": "ready", "page_size": 4096}']
    jobs = jobs_in(boot)
    for number, step, argv in jobs:
        if ends and step == jobs[-1][1]:
            lines.append(json.dumps({"event": "start", "id": number, "step": step}))
            break
        lines += ended_job(number, step, counts if argv[0] == ":read" else line)
    return answers(boot, [*lines, *filter(None, ends)], outcome, facts)


def answers(boot: Path, lines: Sequence[str], outcome: str, facts: dict[str, str] = FACTS) -> list[Sample]:
    """What comes of these lines."""
    (boot / "answers").write_text("".join(f"{line}\n" for line in lines))
    (boot / "outcome").write_text(outcome)
    return list(BootRead(boot, facts).samples())


def result_of(boot: Path, archive: Path, facts: dict[str, str] = FACTS) -> Path:
    """Pack a run as the runner does: all that ended, and what the machine says of itself."""
    run = boot.parents[1]
    (boot / "outcome.whole").touch()
    (run / "facts").write_text("".join(f"{name} {words}\n" for name, words in facts.items()))
    with tarfile.open(archive, "w:gz") as stream:
        for name in ("boots", "facts", "plan"):
            stream.add(run / name, name)
    return archive
