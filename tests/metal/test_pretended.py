# SPDX-License-Identifier: GPL-2.0-only
"""The lab and the runner on a pretended machine: all but the kernels."""

import fcntl
import hashlib
import os
import re
import signal
from dataclasses import replace

import pytest

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBackend, HostBootable
from foliolab.campaign.store import consoles_of, read_samples
from foliolab.cli.main import main
from foliolab.errors import HostLost, LabError, UsageError
from foliolab.experiment.plan import Plan
from foliolab.kernel.build import KernelRequest
from foliolab.kernel.built import BuiltKernel
from foliolab.metal.machine import HOME, RemoteMachine, remote_machine
from tests.metal.lab import Lab
from tests.metal.pretended import PATIENCE_SECONDS, Pretended
from tests.processes import wait_until
from tests.small import small_experiment


def test_a_runner_that_was_killed_is_noticed_and_goes_on(lab: Lab, pretence: Pretended) -> None:
    pretence.write("state/log", "its last words\n")
    pretence.kill_after(10, signal.SIGKILL)
    with pytest.raises(HostLost) as caught:
        lab.measure()
    assert str(caught.value).endswith(
        "was killed before all was measured; its log ends with 'its last words'. Repeat the command to continue."
    )
    assert pretence.was_killed()
    assert [sample.outcome for sample in lab.measure()] == ["ok"] * len(lab.plan.steps)
    assert pretence.left() == []


def test_a_machine_that_nobody_asks_any_more_ends_its_run(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(pretence.home)
    load = (pretence.root / "stubs/kexec").read_text()
    pretence.stub("kexec", f"{load}\ntouch -d '2 hours ago' {HOME}/run/asked\n")
    pretence.runner("start", "--no-watchdog", "--pause", "0", "--lease", "3600")
    assert wait_until(lambda: pretence.ended, PATIENCE_SECONDS)
    journal = (pretence.run / "journal").read_text()
    assert journal.count(" ended ") == 1
    assert "nobody has asked for 72" in journal
    assert pretence.left() == []


@pytest.mark.parametrize("whole", [512, 1500, 5000, 9000])
def test_files_that_were_copied_in_part_are_copied_again(lab: Lab, pretence: Pretended, whole: int) -> None:
    bundle = lab.place / "bundle"
    lab.bundle(bundle)
    there = RemoteMachine("bench1", ("bench1",))
    pretence.stub("tar", f'head -c {whole} | /usr/bin/tar "$@"; exit 2\n')
    with pytest.raises(LabError):
        there.send(bundle)
    assert not (pretence.home / "new").exists()
    pretence.stub("tar", 'exec /usr/bin/tar "$@"\n')
    there.send(bundle)
    for file in (pretence.home / "files").iterdir():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name
    assert {file.name for file in pretence.home.iterdir()} == {"files", "run", "runner"}


def test_files_that_were_damaged_there_are_sent_again(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(lab.place / "bundle")
    there = RemoteMachine("bench1", ("bench1",))
    there.send(lab.place / "bundle")
    first, second, *others = sorted((pretence.home / "files").iterdir())
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    second.write_bytes(b"")
    whole = {file: file.stat().st_ino for file in others}
    there.send(lab.place / "bundle")
    for file in (pretence.home / "files").iterdir():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name
    # The others stayed there.
    assert {file: file.stat().st_ino for file in others} == whole


@pytest.mark.parametrize("name", ["localhost", "localhost.localdomain"])
def test_a_machine_without_a_name_is_refused(lab: Lab, pretence: Pretended, name: str) -> None:
    pretence.stub("uname", f'[ "$1" != -n ] || exec echo {name}\nexec /usr/bin/uname "$@"\n')
    sentence = rf"^bench1 calls itself {name}: give it a name by which its samples are known\.$"
    with pytest.raises(UsageError, match=sentence):
        lab.measure()
    assert not pretence.home.exists()


def test_what_a_run_before_has_measured_of_another_plan_is_kept(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(pretence.home)
    pretence.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: pretence.ended, PATIENCE_SECONDS)
    first, second = (replace(lab.plan, boots=(boot,)) for boot in lab.plan.boots)
    assert len(lab.measure(first)) == len(first.steps)
    ran = sorted((pretence.run / "boots").iterdir())
    assert len(read_samples(lab.store)) == len(lab.plan.steps)
    assert [sample.outcome for sample in lab.measure(second)] == ["ok"] * len(second.steps)
    assert sorted((pretence.run / "boots").iterdir()) == ran
    samples = read_samples(lab.store)
    assert len(samples) == len(lab.plan.steps)
    consoles = {file.name for file in consoles_of(lab.store).iterdir()}
    assert consoles == {f"{sample.boot}.log" for sample in samples}


@pytest.mark.parametrize("name", ["", "-p"])
def test_an_option_of_ssh_is_no_machine(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}' is no destination of ssh"):
        remote_machine(name)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("tar", '[ "$1" != -cf ] || { echo broken >&2 && exit 2; }\nexec /usr/bin/tar "$@"\n'),
        ("kexec", f"echo broken >{HOME}/runner\n"),
    ],
)
def test_a_machine_that_is_reached_and_fails_is_not_asked_for_hours(
    lab: Lab, pretence: Pretended, program: str, text: str
) -> None:
    pretence.stub(program, text)
    with pytest.raises(HostLost, match=r"^bench1 fails: .*(broken|not found)"):
        lab.measure()


def test_one_lab_sends_at_a_time(lab: Lab, pretence: Pretended) -> None:
    lab.bundle(lab.place / "bundle")
    there = RemoteMachine("bench1", ("bench1",))
    pretence.home.mkdir(parents=True)
    place = os.open(pretence.home, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match=r"^Another lab is copying to this machine\.$"):
        there.send(lab.place / "bundle")
    os.close(place)
    there.send(lab.place / "bundle")
    assert (pretence.home / "runner").exists()


def test_a_machine_that_does_not_answer_may_measure(lab: Lab, pretence: Pretended) -> None:
    pretence.write("state/down", "")
    with pytest.raises(HostLost, match=r"^bench1 cannot be used by ssh: .* It does not answer while it measures\.$"):
        lab.measure()


@pytest.mark.skipif(NATIVE.name != "x86_64", reason="there are kernels for machines of x86_64 only")
def test_a_bundle_from_its_making_to_its_merge(lab: Lab, pretence: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(request: KernelRequest) -> BuiltKernel:
        assert (request.kernel, request.profile) == ("patched", "metal")
        return lab.kernel

    def prepare(backend: HostBackend, kernel: BuiltKernel, plan: Plan) -> HostBootable:
        return lab.backend.prepare(kernel, plan)

    monkeypatch.setenv("FOLIOLAB_RESULTS", str(lab.place / "results"))
    for name in ("identify", "build"):
        monkeypatch.setattr(f"foliolab.campaign.measure.{name}", build)
    monkeypatch.setattr(HostBackend, "prepare", prepare)
    archive = pretence.root / "tmp/bundle.tar.gz"
    asked = [str(small_experiment(lab.place)), "--variant", "off"]
    assert main(["bundle", *asked, "-o", str(archive)]) == 0
    # As docs/metal.md has it.
    assert pretence.called("mkdir", "-p", "/var/lib/foliolab").returncode == 0
    assert pretence.called("tar", "-C", "/var/lib/foliolab", "-xzf", "/tmp/bundle.tar.gz").returncode == 0
    pretence.runner("check", "--no-watchdog")
    pretence.runner("start", "--no-watchdog", "--pause", "0")
    assert wait_until(lambda: pretence.ended, PATIENCE_SECONDS)
    assert pretence.left() == []
    result = lab.place / "result.tar.gz"
    result.write_bytes(pretence.runner("result"))
    assert main(["merge", str(result)]) == 0
    samples = read_samples(lab.place / "results/samples.jsonl")
    assert [sample.outcome for sample in samples] == ["ok"] * 3
    ((backend, made_with),) = {(sample.backend, sample.made_with) for sample in samples}
    assert backend == "host"
    assert re.match(r"Fast with \d+ processors and 4 GiB; disk Disk nvme file(; |$)", made_with)
    # By the same command over ssh, nothing is left to be measured.
    ran = sorted((pretence.run / "boots").iterdir())
    assert main(["measure", *asked, "--host", "bench1"]) == 0
    assert sorted((pretence.run / "boots").iterdir()) == ran
    assert len(read_samples(lab.place / "results/samples.jsonl")) == 3
    refused = pretence.called("sh", f"{HOME}/runner", "start", "--no-watchdog")
    assert refused.returncode == 3
    assert b"remove /var/lib/foliolab/metal/run and unpack it again" in refused.stderr
