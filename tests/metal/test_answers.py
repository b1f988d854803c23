# SPDX-License-Identifier: GPL-2.0-only
"""What is made of a machine's answers."""

import json
from pathlib import Path

import pytest

from foliolab.campaign.sample import Sample
from foliolab.campaign.store import open_store, read_samples
from foliolab.errors import LabError
from foliolab.metal.answers import BootRead, facts_of
from foliolab.vm.counted import HARDWARE
from tests.metal.answered import FACTS, LINE, answer, answers, bundled, ended_job, jobs_in

READY = '{"event": "ready", "page_size": 4096}'


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
    second, third = (next(number for number, its, _ in jobs_in(boot) if its == step) for step in (2, 3))
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
    failed = ended_job(number, 0, b"", err=b"There is no disk.\n", status=3)
    samples = answers(boot, [READY, *failed, '{"event": "end"}'], "end")
    assert [(each.outcome, each.sentence) for each in samples] == [(outcome, sentence)] * 3


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5000, '"4096"', "true"])
def test_figures_that_are_none_are_no_result(boot: Path, tmp_path: Path, figure: str) -> None:
    """Neither of the time nor of what is asked for. They would be read from the store by nobody."""
    lines = (f'{{"seconds": {figure}, "read_bytes": 1}}', f'{{"seconds": 0.5, "read_bytes": {figure}}}')
    for number, line in enumerate(lines):
        samples = answer(boot, outcome="end", line=line.encode())
        assert [(each.outcome, each.metrics) for each in samples] == [("no-result", {})] * 3
        with open_store(tmp_path / f"{number}/samples.jsonl") as store:
            for each in samples:
                store.append(each)
        assert read_samples(tmp_path / f"{number}/samples.jsonl") == samples


def test_another_figure_that_is_none_is_left_out(boot: Path) -> None:
    line = b'{"seconds": 0.5, "read_bytes": 4096, "floor_bytes": NaN, "major_faults": 1e999}'
    samples = answer(boot, outcome="end", line=line)
    assert [each.metrics for each in samples] == [{"seconds": 0.5, "read_bytes": 4096}] * 3


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


COUNTS = {"cpu_instructions": 7, "cpu_cycles": 5, "dtlb_misses": 3, "itlb_misses": 2, "llc_misses": 1, "page_faults": 9}


@pytest.fixture
def counted_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of an experiment in which hardware is counted."""
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    return bundled(tmp_path, "hardware_counters = true\n")


def test_what_the_hardware_counted_is_in_samples(counted_boot: Path) -> None:
    samples = answer(counted_boot, outcome="end", counts=json.dumps({**COUNTS, "reason": ""}).encode())
    assert [(each.outcome, each.sentence) for each in samples] == [("ok", "")] * 3
    assert {tuple(each.metrics[name] for name in ("seconds", "read_bytes", *HARDWARE)) for each in samples} == {
        (0.5, 4096, 7, 5, 3, 2, 1)
    }


def test_what_hardware_cannot_count_is_said(counted_boot: Path) -> None:
    counts = {**COUNTS, "itlb_misses": None, "llc_misses": None, "reason": "No such file or directory"}
    samples = answer(counted_boot, outcome="end", counts=json.dumps(counts).encode())
    remark = "not-counted: itlb_misses, llc_misses: No such file or directory."
    assert [(each.outcome, each.sentence) for each in samples] == [("ok", remark)] * 3
    assert {frozenset(each.metrics) & set(HARDWARE) for each in samples} == {
        frozenset({"cpu_instructions", "cpu_cycles", "dtlb_misses"})
    }


@pytest.mark.parametrize("counts", [b"", b"7", b"[]", b"{", b'{"cpu_cycles": 1}'])
def test_counts_that_are_damaged_are_no_result_of_the_kernel(counted_boot: Path, counts: bytes) -> None:
    samples = answer(counted_boot, outcome="end", counts=counts)
    sentence = f"boots/{counted_boot.name}/answers has counts of hardware that are none."
    assert [(each.outcome, each.sentence, each.metrics) for each in samples] == [("lost-host", sentence, {})] * 3


@pytest.mark.parametrize(
    ("status", "outcome", "sentence"),
    [
        (3, "no-result", "sparse-mmap ended with status 3: It broke."),
        (77, "not-applicable", "sparse-mmap ended with status 77: It broke."),
    ],
)
def test_a_counted_program_that_fails_is_called_by_its_name(
    counted_boot: Path, status: int, outcome: str, sentence: str
) -> None:
    lines = [READY]
    for number, step, argv in jobs_in(counted_boot):
        if argv[0] == "count":
            lines += ended_job(number, step, b"", err=b"It broke.\n", status=status)
        elif argv[0] != ":read":  # which init leaves out then
            lines += ended_job(number, step, b"")
    samples = answers(counted_boot, [*lines, '{"event": "end"}'], "end")
    assert [(each.outcome, each.sentence) for each in samples] == [(outcome, sentence)] * 3


def test_a_file_of_counts_that_is_missing_is_named(counted_boot: Path) -> None:
    lines = [READY]
    for number, step, argv in jobs_in(counted_boot):
        if argv[0] == ":read":
            lines += ended_job(number, step, b"", err=b"No such file\n", status=1)
        else:
            lines += ended_job(number, step, LINE)
    samples = answers(counted_boot, [*lines, '{"event": "end"}'], "end")
    assert {(each.outcome, each.sentence) for each in samples} == {
        ("no-result", ":read ended with status 1: No such file")
    }
