# SPDX-License-Identifier: GPL-2.0-only
"""What goes into a bundle, and what is made of what comes back."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

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
from foliolab.progress import Reporter
from tests.samples import sample
from tests.small import small_experiment

FACTS = {"name": "bench1", "cpus": "64", "memory_kib": str(128 << 20), "processor": "Fast", "disk": "Disk nvme file"}
LINE = b'{"seconds": 0.5, "read_bytes": 4096, "floor_bytes": 4096}'


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the only boot of a bundle, with three steps."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    for name in ("bzImage", "init", "disk.img"):
        (tmp_path / name).write_bytes(name.encode() * 512)
    kernel = BuiltKernel("abc", tmp_path / "bzImage", "patched", "metal", NATIVE, "6.12", 4096, ours=True)
    experiment = find_experiment(str(small_experiment(tmp_path)))
    plan = make_plan(experiment, experiment.scale("quick"), variants=choose(["off"], load_variants()))
    (planned,) = plan.boots
    form = replace(sample(), outcome="", backend="host", kernel=KernelFacts.of(kernel), variant="off", metrics={})
    works = [Work(step, replace(form, cell=step.cell.as_dict())) for step in planned.steps]
    bootable = HostBootable(kernel, {"init": tmp_path / "init"}, (tmp_path / "disk.img",), plan)
    assert make_bundle(tmp_path / "metal", [Job(bootable, "patched", tuple(works))], Reporter()) == 1
    (found,) = (tmp_path / "metal/run/boots").iterdir()
    return found


def answer(boot: Path, *ends: str, outcome: str, status: int = 0) -> list[Sample]:
    """What comes of it if every job but those of the last step ends well, and that by these events."""
    lines = [json.dumps({"event": "ready", "page_size": 4096})]
    jobs = [json.loads(line) for line in (boot / "jobs").read_text().splitlines()]
    for job in jobs:
        number, step = job["id"], job["step"]
        lines.append(json.dumps({"event": "start", "id": number, "step": step}))
        if ends and step == jobs[-1]["step"]:
            break
        data = base64.b64encode(LINE).decode()
        lines.append(json.dumps({"event": "output", "id": number, "fd": 1, "data": data}))
        numbers = {"status": status, "signal": 0, "oom_kills": 0, "cpu_us": 1}
        lines.append(json.dumps({"event": "exit", "id": number, **numbers}))
    (boot / "answers").write_text("".join(f"{line}\n" for line in [*lines, *ends]))
    (boot / "outcome").write_text(outcome)
    return list(BootRead(boot, FACTS).samples())


def test_a_bundle_says_what_a_machine_takes(boot: Path) -> None:
    place = boot.parents[2]
    plan = (place / "run/plan").read_text().split("\n")
    assert plan[0] == f"machine {NATIVE.name}"
    _, number, disk, size = plan[2].split()
    assert (number, size) == ("0", str((boot.parents[3] / "disk.img").stat().st_size))
    kernel, *words = (boot / "kernel").read_text().split()
    assert words == ["mem=256M", "nr_cpus=2"]
    assert {kernel, disk} < {file.name for file in (place / "files").iterdir()}
    first = json.loads((boot / "jobs").read_text().splitlines()[0])
    assert first["argv"] == [":mount", "/dev/@disk0@", "/data", "ext4", "ro"]


def test_answers_become_samples_of_that_machine(boot: Path) -> None:
    samples = answer(boot, outcome="end")
    assert [each.outcome for each in samples] == ["ok"] * 3
    assert {each.metrics["read_bytes"] for each in samples} == {4096}
    assert {(each.host, each.timed_on, each.boot) for each in samples} == {("bench1", "bench1", boot.name)}
    assert samples[0].made_with.startswith("Fast with 64 processors and 128 GiB; disk Disk nvme file")


def test_the_step_that_a_reset_has_ended_is_a_hang(boot: Path) -> None:
    *others, lost = answer(boot, "", outcome="reset")
    assert [each.outcome for each in others] == ["ok", "ok"]
    assert (lost.outcome, lost.metrics) == ("hang", {})
    assert "reset without a word" in lost.sentence


def test_last_words_tell_a_panic_from_a_hang(boot: Path) -> None:
    (boot / "pstore").write_text("<6>[    3.1] x\n<0>[    3.2] Kernel panic - not syncing: sysrq triggered crash\n")
    assert answer(boot, "", outcome="reset")[-1].outcome == "guest-crash"


def test_a_deadline_is_a_hang(boot: Path) -> None:
    lost = answer(boot, '{"event": "deadline", "id": 9}', outcome="deadline")[-1]
    assert (lost.outcome, "by its deadline" in lost.sentence) == ("hang", True)


def test_a_kernel_that_never_came_up_is_a_result_of_all_steps(boot: Path) -> None:
    (boot / "outcome").write_text("reset")
    samples = list(BootRead(boot, FACTS).samples())
    assert [each.outcome for each in samples] == ["hang"] * 3
    assert samples[0].sentence.startswith("patched does not boot: ")


def test_what_the_kernel_complains_of_belongs_to_the_step(boot: Path) -> None:
    jobs = [json.loads(line) for line in (boot / "jobs").read_text().splitlines()]
    second = next(job["id"] for job in jobs if job["step"] == 2)
    third = next(job["id"] for job in jobs if job["step"] == 3)
    mark = "[    1.000000] foliolab init: job {}\n"
    bug = "[    1.000001] BUG: unable to handle page fault\n"
    (boot / "console").write_text(mark.format(second) + bug + mark.format(third))
    assert [each.outcome for each in answer(boot, outcome="end")] == ["ok", "guest-crash", "ok"]
