# SPDX-License-Identifier: GPL-2.0-only
"""What goes into a bundle, and what is made of what comes back."""

import base64
import errno
import json
import random
import shutil
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.campaign.host_backend import HostBootable
from foliolab.campaign.job import Job, Work
from foliolab.campaign.sample import KernelFacts, Sample
from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.errors import DiskFull, LabError
from foliolab.experiment.load import find_experiment
from foliolab.experiment.plan import make_plan
from foliolab.experiment.variants import choose, load_variants
from foliolab.kernel.built import BuiltKernel
from foliolab.metal.answers import BootRead, facts_of
from foliolab.metal.bundle import make_bundle, unpack
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
    assert make_bundle(tmp_path / "metal", [Job(bootable, "patched", tuple(works))]) == 1
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
    (boot / "answers").write_text("".join(f"{line}\n" for line in [*lines, *filter(None, ends)]))
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


def damage(boot: Path, number: int, line: str) -> list[Sample]:
    """What comes of a boot that ended well, if one line of its answers, from 0, is another one."""
    answer(boot, outcome="end")
    lines = (boot / "answers").read_text().splitlines()
    lines[number] = line
    (boot / "answers").write_text("".join(f"{each}\n" for each in lines))
    return list(BootRead(boot, FACTS).samples())


# A boot says that it is ready, and three lines for each of its jobs: two settings, and then three of each step.
FIRST_OF_STEP_2 = 1 + 3 * 2 + 3 * 3


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"event": "exit", "id": 6}', "missing required field `status`"),
        ('{"event": "exit", "id": "6", "status": 0, "signal": 0, "oom_kills": 0, "cpu_us": 1}', "Expected `int`"),
        ('{"event": "output", "id": 6, "fd": 3, "data": ""}', "Invalid enum value 3"),
        ('{"event": "output", "id": 6, "fd": 1, "data": "!"}', "Invalid base64"),
        ('{"event": "exit", "id": 6, "sta', "truncated"),
        ('{"id": 6}', "`event`"),
        ("[6]", "Expected `object`"),
        ("\ufffd\0", "malformed"),
    ],
)
def test_a_damaged_answer_is_lost_and_the_others_stay(boot: Path, line: str, complaint: str) -> None:
    samples = damage(boot, FIRST_OF_STEP_2 + 2, line)
    assert [each.outcome for each in samples] == ["ok", "lost-host", "ok"]
    assert samples[1].sentence.startswith(f"boots/{boot.name}/answers is damaged in line {FIRST_OF_STEP_2 + 3}: ")
    assert complaint in samples[1].sentence
    assert not samples[1].metrics


def test_answers_that_were_cut_off_are_no_result_of_the_kernel(boot: Path) -> None:
    answer(boot, outcome="end")
    lines = (boot / "answers").read_text().splitlines(keepends=True)
    (boot / "answers").write_text("".join(lines[: FIRST_OF_STEP_2 + 2]))
    samples = list(BootRead(boot, FACTS).samples())
    assert [each.outcome for each in samples] == ["ok", "lost-host", "lost-host"]
    assert samples[2].sentence == f"boots/{boot.name}/answers has no result for this step."
    (boot / "answers").write_text("".join(lines[:FIRST_OF_STEP_2]) + '{"event": "sta')
    (boot / "outcome").write_text("reset")
    # A reset leaves such a line. The step before has its answer, and those behind are of the next boot.
    assert [each.outcome for each in BootRead(boot, FACTS).samples()] == ["ok"]


@pytest.mark.parametrize(
    ("number", "outcome", "sentence"),
    [
        (1, "no-result", ":mount ended with status 3: There is no disk."),
        # The runner's own jobs find disks, and say nothing of the kernel.
        (0, "lost-host", "The runner's job ended with status 3: There is no disk."),
    ],
)
def test_a_setting_that_fails_is_named(boot: Path, number: int, outcome: str, sentence: str) -> None:
    lines = [
        {"event": "ready", "page_size": 4096},
        {"event": "start", "id": number, "step": 0},
        {"event": "output", "id": number, "fd": 2, "data": base64.b64encode(b"There is no disk.\n").decode()},
        {"event": "exit", "id": number, "status": 3, "signal": 0, "oom_kills": 0, "cpu_us": 1},
        {"event": "end"},
    ]
    (boot / "answers").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (boot / "outcome").write_text("end")
    samples = list(BootRead(boot, FACTS).samples())
    assert [(each.outcome, each.sentence) for each in samples] == [(outcome, sentence)] * 3


def test_figures_that_are_none_are_no_result(boot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.LINE", b'{"seconds": 0.5, "read_bytes": "4096"}')
    assert {(each.outcome, each.metrics == {}) for each in answer(boot, outcome="end")} == {("no-result", True)}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("works.json", "{", "truncated"),
        ("works.json", '{"metric": "read_bytes", "works": [{"jobs": {}, "form": {}}]}', "missing required field `key`"),
        ("jobs", '{"id": 1}\n', "required field"),
        ("outcome", "", "it says ''"),
    ],
)
def test_a_boot_of_which_nothing_can_be_told_is_named(boot: Path, name: str, text: str, complaint: str) -> None:
    answer(boot, outcome="end")
    (boot / name).write_text(text)
    with pytest.raises(LabError, match=rf"^boots/{boot.name}/{name} cannot be used: .*{complaint}"):
        BootRead(boot, FACTS)


def test_facts_that_are_damaged() -> None:
    for text in ("", "name\n", "name bench1\nmemory_kib x\n"):
        with pytest.raises(LabError, match=r"^The machine's facts are damaged: "):
            facts_of(text)


def packed(place: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> Path:
    archive = place / "result.tar.gz"
    with tarfile.open(archive, mode) as stream:  # type: ignore[call-overload]
        for member, content in members:
            member.size = len(content)
            stream.addfile(member, BytesIO(content))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = "facts"
    return info


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        ("/facts", tarfile.REGTYPE, "it contains an absolute path, '/facts'"),
        ("boots/../../facts", tarfile.REGTYPE, "it contains a path out of its directory, 'boots/../../facts'"),
        ("link", tarfile.SYMTYPE, "it contains a link, 'link'"),
        ("link", tarfile.LNKTYPE, "it contains a link, 'link'"),
        ("null", tarfile.CHRTYPE, "it contains a special file, 'null'"),
        ("disk", tarfile.BLKTYPE, "it contains a special file, 'disk'"),
        ("\x1b[2J", tarfile.SYMTYPE, r"it contains a link, '\x1b[2J'"),
        ("pipe", tarfile.FIFOTYPE, "it contains a special file, 'pipe'"),
        ("x" * 300, tarfile.REGTYPE, "File name too long"),
    ],
)
def test_what_no_result_has_is_not_unpacked(tmp_path: Path, name: str, kind: bytes, complaint: str) -> None:
    place = tmp_path / "unpacked"
    place.mkdir()
    archive = packed(tmp_path, (member(name, kind), b""))
    with archive.open("rb") as stream, pytest.raises(LabError) as caught:
        unpack(stream, place, "It")
    assert str(caught.value).startswith("It is no result of a bundle: ")
    assert complaint in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


def test_a_full_disk_here_is_no_fault_of_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    place = tmp_path / "unpacked"
    place.mkdir()
    archive = packed(tmp_path, (member("facts", tarfile.REGTYPE), b""))
    with archive.open("rb") as stream, pytest.raises(DiskFull, match=f"No space left on the disk that holds {place}"):
        unpack(stream, place, "It")


def test_what_is_too_large_or_not_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliolab.metal.bundle.RESULT_BYTES", 2 << 20)
    for mode in ("w:gz", "w:"):
        archive = packed(tmp_path, (member("facts"), bytes(3 << 20)), mode=mode)
        with archive.open("rb") as stream, pytest.raises(LabError, match=r"it takes more than 2 MiB\.$"):
            unpack(stream, tmp_path / "unpacked", "It")
    whole = packed(tmp_path, (member("facts"), random.Random(1).randbytes(4096))).read_bytes()
    flipped = bytes([*whole[:2000], whole[2000] ^ 1, *whole[2001:]])
    for content in (whole[:2000], flipped, b"", b"\x1f\x8b", b"no tar file" * 100):
        with pytest.raises(LabError, match=r"^It is no result of a bundle: "):
            unpack(BytesIO(content), tmp_path / "unpacked", "It")
    unpack(BytesIO(whole), tmp_path / "unpacked", "It")
    assert (tmp_path / "unpacked/facts").stat().st_size == 4096


def test_a_damaged_boot_leaves_the_others_to_merge(
    boot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    answer(boot, outcome="end")
    run = boot.parents[1]
    (boot / "outcome.whole").touch()
    (run / "facts").write_text("".join(f"{name} {words}\n" for name, words in FACTS.items()))
    shutil.copytree(boot, boot.with_name("other"))
    (boot.with_name("other") / "works.json").write_text("{}")
    archive = tmp_path / "result.tar.gz"
    with tarfile.open(archive, "w:gz") as stream:
        for name in ("boots", "facts", "plan"):
            stream.add(run / name, name)
    assert main(["merge", str(archive)]) == LabError.status
    error = capsys.readouterr().err
    assert "3 of 3 samples are new." in error
    assert f"{archive}: boots/other/works.json cannot be used: " in error
    assert [each.outcome for each in read_samples(tmp_path / "results/samples.jsonl")] == ["ok"] * 3
