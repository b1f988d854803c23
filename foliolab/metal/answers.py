# SPDX-License-Identifier: GPL-2.0-only
"""Samples of what came of a boot on a machine: its directory, as the runner has left it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import msgspec

from foliolab.campaign.job import ended
from foliolab.campaign.sample import Sample, with_key
from foliolab.campaign.step import metrics_of
from foliolab.errors import LabError
from foliolab.files import write_atomic
from foliolab.metal.bundle import unpack
from foliolab.vm.counted import NOTHING_BESIDE, READ_COUNTS, CountedAround, hardware_counts
from foliolab.vm.outcome import Ending, GuestFailure, JobResult, Outcome, OutcomeKind, classify, complaints, splats

_Kind = TypeVar("_Kind")

_MARK = re.compile(r"^\[ *[\d.]+\] foliolab init: job (-?\d+)$", re.MULTILINE)
"""With which init says in the kernel's log that a job begins."""

_LEVEL = re.compile(r"^<\d+>", re.MULTILINE)
"""With which each line of what firmware keeps begins."""
_SILENT = "The machine was reset without a word: its kernel hung, or nothing kept its last words."


def facts_of(text: str) -> dict[str, str]:
    """What a machine says of itself: a name and words in each line. LabError if what samples need is missing."""
    facts = {name: words for name, _, words in (line.partition(" ") for line in text.splitlines())}
    if not facts.get("name") or not facts.get("memory_kib", "0").isdecimal():
        raise LabError("The machine's facts are damaged: its name is missing, or its memory is not a number.")
    return facts


class _Ready(msgspec.Struct, tag_field="event", tag="ready"):
    page_size: int


class _Start(msgspec.Struct, tag_field="event", tag="start"):
    step: int


class _Output(msgspec.Struct, tag_field="event", tag="output"):
    id: int
    fd: Literal[1, 2]
    data: bytes


class _Exit(msgspec.Struct, tag_field="event", tag="exit"):
    id: int
    status: int
    signal: int
    oom_kills: int
    cpu_us: int


class _Deadline(msgspec.Struct, tag_field="event", tag="deadline"):
    pass


class _Error(msgspec.Struct, tag_field="event", tag="error"):
    pass


class _End(msgspec.Struct, tag_field="event", tag="end"):
    pass


_Event = _Ready | _Start | _Output | _Exit | _Deadline | _Error | _End
"""The events that guest/system/init.c writes."""


class _Request(msgspec.Struct):
    """A job, as init reads it."""

    id: int
    step: int
    argv: list[str]


class _Work(msgspec.Struct):
    jobs: dict[int, list[str]]
    form: dict[str, Any]


class _Described(msgspec.Struct):
    metric: str
    works: list[_Work]


@dataclass
class Answers:
    """What init has written."""

    results: dict[int, JobResult] = field(default_factory=dict)
    """By the job's number."""
    begun: int = 0
    """The step that began last; 0 if none did."""
    page_size: int = 0
    deadline: bool = False
    damaged: dict[int, str] = field(default_factory=dict)
    """The first damaged line of a step, and what is wrong with it, by the step that was running.

    A damaged line "start" counts to the step before it, which is lost then.
    """

    @classmethod
    def read(cls, text: str) -> "Answers":
        answers = cls()
        output: dict[tuple[int, int], bytes] = {}
        # What a reset leaves of a line at the end has no newline.
        for number, line in enumerate(text.split("\n")[:-1], start=1):
            try:
                answers._take(msgspec.json.decode(line, type=_Event), output)
            except (ValueError, RecursionError) as error:
                answers.damaged.setdefault(answers.begun, f"line {number}: {error}")
        return answers

    def _take(self, event: _Event, output: dict[tuple[int, int], bytes]) -> None:
        match event:
            case _Ready():
                self.page_size = event.page_size
            case _Start():
                self.begun = event.step
            case _Output():
                key = event.id, event.fd
                output[key] = output.get(key, b"") + event.data
            case _Exit():
                out, err = (output.get((event.id, fd), b"") for fd in (1, 2))
                self.results[event.id] = JobResult(
                    (), event.status, event.signal, out, err, event.oom_kills, event.cpu_us / 1e6
                )
            case _Deadline():
                self.deadline = True


class BootRead:
    """One boot on a machine, and what it says. LabError, which names the file, if the boot cannot be read at all."""

    def __init__(self, place: Path, facts: Mapping[str, str]) -> None:
        self._place = place
        self._facts = facts
        self.name = "-".join(filter(None, (place.name, facts.get("begun"))))
        """Of no other boot, also where a bundle is run twice, or on two machines."""
        described = self._decoded("works.json", self._text("works.json"), _Described)
        self._metric = described.metric
        self._works = described.works
        requests = [self._decoded("jobs", line, _Request) for line in self._text("jobs").splitlines()]
        self._asked = {request.step for request in requests}
        self._argv = {request.id: tuple(request.argv) for request in requests}
        self._ending = self._text("outcome").strip()
        if self._ending not in ("end", "reset", "deadline"):
            self._fail("outcome", ValueError(f"it says '{self._ending}'"))
        self._answers = Answers.read(self._text("answers"))
        self._log = self._text("console")
        self._last_words = _LEVEL.sub("", self._text("pstore"))
        self._forms = [self._form(work) for work in self._works]

    @property
    def console(self) -> str:
        """What its kernel said, and its last words if the machine has kept them."""
        return f"{self._log}{self._last_words}"

    def samples(self) -> Iterator[Sample]:
        """One for each step that has begun; for all steps if the kernel came to none.

        A step whose answers are damaged or missing is LOST_HOST: it says nothing of the kernel.
        """
        for step, (work, form) in enumerate(zip(self._works, self._forms, strict=True), start=1):
            # The other steps ran in an earlier boot, or will run in a later one.
            if step in self._asked and (step <= (self._answers.begun or step) or self._ending == "end"):
                yield self._sample(step, work, form)

    def _sample(self, step: int, work: _Work, form: Sample) -> Sample:
        answers = self._answers
        if damage := answers.damaged.get(step if answers.begun else 0):
            return ended(form, self._unreadable(f"is damaged in {damage}"))
        results = answers.results
        there = [replace(results[n], argv=tuple(argv)) for n, argv in work.jobs.items() if n in results]
        if len(there) == len(work.jobs) or (there and there[-1].outcome.kind is not OutcomeKind.OK):
            return self._measured(form, work.jobs, there)
        return ended(form, self._lost(step, form.kernel.name))

    def _unreadable(self, complaint: str) -> Outcome:
        return Outcome(OutcomeKind.LOST_HOST, f"{self._called('answers')} {complaint}.")

    def _measured(self, form: Sample, jobs: Mapping[int, list[str]], results: list[JobResult]) -> Sample:
        variant, switches = form.variant, form.switches
        try:
            results, beside = _hardware(results)
            found = metrics_of(results, self._metric, form.kernel.name, variant, switches, beside)
        except GuestFailure as error:
            return ended(form, error.outcome)
        except (LookupError, TypeError, ValueError):
            return ended(form, self._unreadable("has counts of hardware that are none"))
        if serious := complaints(splats(self._said_during(jobs)), real_time=True):
            sentence = f"The machine's kernel complained: {serious[0]}"
            return ended(form, Outcome(OutcomeKind.GUEST_CRASH, sentence))
        return ended(replace(form, metrics=found), Outcome(OutcomeKind.OK, beside.remark))

    def _said_during(self, jobs: Mapping[int, list[str]]) -> str:
        """The part of the kernel's log between the beginnings of these jobs and of the next one."""
        parts = _MARK.split(self._log)
        said = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
        return "".join(said.get(number, "") for number in jobs)

    def _lost(self, step: int, kernel: str) -> Outcome:
        """How a step ended that has no answer, or why there was none."""
        answers = self._answers
        if not answers.begun and (failed := self._failed_setting()):
            return failed
        if self._ending == "end" or step < answers.begun:
            return self._unreadable("has no result for this step")
        if answers.deadline:
            outcome = classify(self.console, Ending.DEADLINE, waited="end it by its deadline")
        else:
            outcome = classify(self.console, Ending.RESET)
            if outcome.sentence.startswith("The guest reset itself"):
                outcome = Outcome(OutcomeKind.HANG, _SILENT)
        sentence = outcome.sentence.replace("The guest", "The machine")
        if not answers.page_size:
            sentence = f"{kernel} does not boot: {sentence}"
        return replace(outcome, sentence=sentence)

    def _failed_setting(self) -> Outcome | None:
        """The failure of a job that all steps need, or None. The runner's own jobs find disks: theirs is LOST_HOST."""
        for number, result in self._answers.results.items():
            outcome = replace(result, argv=self._argv.get(number, ("The runner's job",))).outcome
            if outcome.kind is not OutcomeKind.OK:
                return outcome if number in self._argv else replace(outcome, kind=OutcomeKind.LOST_HOST)
        return None

    def _form(self, work: _Work) -> Sample:
        facts = self._facts
        memory = int(facts.get("memory_kib", 0)) >> 20
        machine = f"{facts.get('processor', '')} with {facts.get('cpus')} processors and {memory} GiB"
        try:
            form = msgspec.convert(work.form, Sample)
        except ValueError as error:
            self._fail("works.json", error)
        made_with = "; ".join(filter(None, (machine.strip(), f"disk {facts.get('disk', '')}", form.made_with)))
        page_size = self._answers.page_size or form.page_size
        return with_key(replace(form, host=facts["name"], made_with=made_with, page_size=page_size, boot=self.name))

    def _text(self, name: str) -> str:
        """What a file holds; nothing if there is none."""
        try:
            return (self._place / name).read_text(errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            self._fail(name, error)

    def _decoded(self, name: str, text: str, kind: type[_Kind]) -> _Kind:
        try:
            return msgspec.json.decode(text, type=kind)
        except ValueError as error:
            self._fail(name, error)

    def _called(self, name: str) -> str:
        """A file of this boot, as messages name it: its path inside the result."""
        return f"boots/{self._place.name}/{name}"

    def _fail(self, name: str, error: Exception) -> NoReturn:
        raise LabError(f"{self._called(name)} cannot be used: {error}.")


def _hardware(results: list[JobResult]) -> tuple[list[JobResult], CountedAround]:
    """Results without the reading of what the hardware counted, and what that came to."""
    *others, last = results
    return (others, hardware_counts(last)) if last.argv == READ_COUNTS else (results, NOTHING_BESIDE)


def result_samples(archive: Path, place: Path, complain: Callable[[str], None]) -> list[tuple[Sample, Path]]:
    """The samples in what ``runner result`` has packed, each with the directory of its console; ``place`` is empty.

    Calls ``complain`` with a sentence for each damaged boot.
    """
    with archive.open("rb") as stream:
        unpack(stream, place, str(archive))
    try:
        facts = facts_of((place / "facts").read_text(errors="replace"))
    except OSError:
        raise LabError(f"{archive} is no result of a bundle.") from None
    found = []
    for directory in sorted((place / "boots").glob("*")):
        if not (directory / "outcome.whole").exists():
            continue
        try:
            boot = BootRead(directory, facts)
        except LabError as error:
            complain(f"{archive}: {error}")
            continue
        write_atomic(place / f"{boot.name}.log", boot.console)
        found += [(sample, place) for sample in boot.samples()]
    return found
