# SPDX-License-Identifier: GPL-2.0-only
"""Samples of what came of a boot on a machine: its directory, as the runner has left it."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foliolab.campaign.job import ended
from foliolab.campaign.probe import metrics_of
from foliolab.campaign.sample import Sample, with_key
from foliolab.errors import LabError
from foliolab.files import write_atomic
from foliolab.metal.bundle import unpack
from foliolab.vm.outcome import Ending, GuestFailure, JobResult, Outcome, OutcomeKind, classify, complaints, splats

_MARK = re.compile(r"^\[ *[\d.]+\] foliolab init: job (-?\d+)$", re.MULTILINE)
"""With which init says in the kernel's log that a job begins."""

_LEVEL = re.compile(r"^<\d+>", re.MULTILINE)
"""With which each line of what firmware keeps begins."""
_SILENT = "The machine was reset without a word: its kernel hung, or nothing kept its last words."


def facts_of(text: str) -> dict[str, str]:
    """What a machine says of itself: a name and words in each line."""
    return {name: words for name, _, words in (line.partition(" ") for line in text.splitlines())}


@dataclass
class Answers:
    """What init has written."""

    results: dict[int, JobResult] = field(default_factory=dict)
    """By the job's number."""
    begun: int = 0
    """The step that began last."""
    page_size: int = 0
    deadline: bool = False

    @classmethod
    def read(cls, text: str) -> "Answers":
        answers = cls()
        output: dict[tuple[int, int], bytes] = {}
        # What a reset leaves of a line at the end has no newline.
        for line in text.split("\n")[:-1]:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            answers._take(event, output)
        return answers

    def _take(self, event: Mapping[str, Any], output: dict[tuple[int, int], bytes]) -> None:
        number = event.get("id", 0)
        match event["event"]:
            case "ready":
                self.page_size = event["page_size"]
            case "start":
                self.begun = event["step"]
            case "output":
                key = number, event["fd"]
                output[key] = output.get(key, b"") + base64.b64decode(event["data"])
            case "exit":
                out, err = (output.get((number, fd), b"") for fd in (1, 2))
                self.results[number] = JobResult(
                    (), event["status"], event["signal"], out, err, event["oom_kills"], event["cpu_us"] / 1e6
                )
            case "deadline":
                self.deadline = True


class BootRead:
    """One boot on a machine, and what it says."""

    def __init__(self, place: Path, facts: Mapping[str, str]) -> None:
        self._place = place
        self._facts = facts
        try:
            self._described = json.loads((place / "works.json").read_text())
            self.ending = (place / "outcome").read_text().strip()
        except (OSError, ValueError) as error:
            raise LabError(f"{place} has no boot that has ended: {error}.") from None
        self._answers = Answers.read(self._text("answers"))
        self._log = self._text("console")

    @property
    def console(self) -> str:
        """What its kernel said, and its last words if the machine has kept them."""
        return f"{self._log}{_LEVEL.sub('', self._text('pstore'))}"

    def samples(self) -> Iterator[Sample]:
        """One for each step that has begun; for all steps if the kernel came to none."""
        answers = self._answers
        asked = {json.loads(line)["step"] for line in self._text("jobs").splitlines()}
        for step, work in enumerate(self._described["works"], start=1):
            if step not in asked:
                continue  # that was in an earlier boot
            form = self._form(work["form"])
            jobs = {int(number): argv for number, argv in work["jobs"].items()}
            there = [replace(answers.results[n], argv=tuple(a)) for n, a in jobs.items() if n in answers.results]
            if len(there) == len(jobs) or (there and there[-1].outcome.kind is not OutcomeKind.OK):
                yield self._measured(form, jobs, there)
            elif answers.begun in (0, step):
                yield ended(form, self._lost(form.kernel.name))

    def _measured(self, form: Sample, jobs: Mapping[int, list[str]], results: list[JobResult]) -> Sample:
        variant, switches = form.variant, form.switches
        try:
            found = metrics_of(results, self._described["metric"], form.kernel.name, variant, switches)
        except GuestFailure as error:
            return ended(form, error.outcome)
        if serious := complaints(splats(self._said_during(jobs)), real_time=True):
            sentence = f"The machine's kernel complained: {serious[0]}"
            return ended(form, Outcome(OutcomeKind.GUEST_CRASH, sentence, "\n".join(serious)))
        return ended(replace(form, metrics=found), Outcome(OutcomeKind.OK, ""))

    def _said_during(self, jobs: Mapping[int, list[str]]) -> str:
        """The part of the kernel's log between the beginnings of these jobs and of the next one."""
        parts = _MARK.split(self._log)
        said = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
        return "".join(said.get(number, "") for number in jobs)

    def _lost(self, kernel: str) -> Outcome:
        """How a step ended that has no answer, or why there was none."""
        answers = self._answers
        failed = [each for each in answers.results.values() if each.outcome.kind is not OutcomeKind.OK]
        if failed and not answers.begun:
            return failed[0].outcome
        if answers.deadline:
            outcome = classify(self.console, Ending.DEADLINE, waited="end it by its deadline")
        else:
            outcome = classify(self.console, Ending.RESET)
            if outcome.sentence.startswith("The guest reset itself"):
                outcome = Outcome(OutcomeKind.HANG, _SILENT)
        sentence = outcome.sentence.replace("The guest", "The machine")
        if not self._text("answers"):
            sentence = f"{kernel} does not boot: {sentence}"
        return replace(outcome, sentence=sentence)

    def _form(self, data: Mapping[str, Any]) -> Sample:
        facts = self._facts
        memory = int(facts.get("memory_kib", 0)) >> 20
        machine = f"{facts.get('processor', '')} with {facts.get('cpus')} processors and {memory} GiB"
        form = Sample.from_json(data)
        made_with = "; ".join(filter(None, (machine.strip(), f"disk {facts.get('disk', '')}", form.made_with)))
        page_size = self._answers.page_size or form.page_size
        return with_key(
            replace(form, host=facts["name"], made_with=made_with, page_size=page_size, boot=self._place.name)
        )

    def _text(self, name: str) -> str:
        file = self._place / name
        return file.read_text(errors="replace") if file.exists() else ""


def result_samples(archive: Path, place: Path) -> list[tuple[Sample, Path]]:
    """The samples in what ``runner result`` has packed, each with the directory of its console; ``place`` is empty."""
    with archive.open("rb") as stream:
        unpack(stream, place)
    try:
        facts = facts_of((place / "facts").read_text())
    except OSError:
        raise LabError(f"{archive} is no result of a bundle.") from None
    found = []
    for directory in sorted((place / "boots").glob("*")):
        if (directory / "outcome.whole").exists():
            boot = BootRead(directory, facts)
            write_atomic(place / f"{directory.name}.log", boot.console)
            found += [(sample, place) for sample in boot.samples()]
    return found
