# SPDX-License-Identifier: GPL-2.0-only
"""Jobs by several processes: as one process does them, whatever becomes of the others."""

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, get_worker

from foliolab.campaign import cluster
from foliolab.campaign.sample import Sample
from foliolab.campaign.store import read_samples
from foliolab.errors import BootFailed, ClusterError, HostLost
from foliolab.experiment.plan import Step
from foliolab.files import cache_directory
from foliolab.vm.accel import KVM
from foliolab.vm.outcome import OutcomeKind
from tests.campaign.fake import FakeBackend, ending, fake_plan, once, run_fake, slow
from tests.processes import started, wait_until

KILLS = 10


def content(samples: list[Sample]) -> list[tuple[str, str, str]]:
    """What does not depend on who measured it, or when."""
    return sorted((sample.key, sample.outcome, str(sample.metrics)) for sample in samples)


@contextmanager
def killing(client: Client, kills: int, seed: int) -> Iterator[list[int]]:
    """End so many workers meanwhile, each in the middle of something; yields who was."""
    killed: list[int] = []
    stop = threading.Event()

    def kill() -> None:
        chance = random.Random(seed)
        while len(killed) < kills and not stop.wait(chance.uniform(0.1, 0.6)):
            alive = [int(each["name"]) for each in client.scheduler_info(n_workers=-1)["workers"].values()]
            if alive:
                pids = client.run(os.getpid, on_error="ignore")
                if pids:
                    pid = chance.choice(list(pids.values()))
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def very_slow(until: Path, step: Step, tried: int) -> dict[str, int | float]:
    """Until there is a file: what has to happen meanwhile has happened then."""
    time.sleep(0 if until.exists() else 0.3)
    return slow(step, tried)


def by_whom(until: Path, step: Step, tried: int) -> dict[str, int | float]:
    return {**very_slow(until, step, tried), "worker": int(get_worker().name)}


def workers_of(samples: list[Sample]) -> set[int | float]:
    return {sample.metrics["worker"] for sample in samples}


def crashing(step: Step, tried: int) -> dict[str, int | float]:
    if step.cell.label == "random" and step.variant.name == "published" and step.repetition == 1:
        raise ending(OutcomeKind.GUEST_CRASH)
    return slow(step, tried)


def test_workers_that_are_killed_lose_nothing_and_measure_nothing_twice(tmp_path: Path) -> None:
    plan = fake_plan(repetitions=4)
    alone = run_fake(tmp_path / "alone.jsonl", FakeBackend(), plan)
    store, enough = tmp_path / "together.jsonl", tmp_path / "enough"
    with (
        cluster.local(3) as found,
        killing(found.client, KILLS, seed=1) as killed,
        once(lambda: len(killed) == KILLS, enough.touch),
    ):
        samples = run_fake(store, FakeBackend(partial(very_slow, enough)), plan, found)
    assert len(killed) == KILLS
    assert content(samples) == content(alone)
    assert content(read_samples(store)) == content(alone)
    assert [(sample.cell, sample.variant) for sample in samples] == [(sample.cell, sample.variant) for sample in alone]
    assert all(sample.host for sample in samples)
    for pid in killed:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_that_dies_when_its_job_has_ended_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the news of the end and the fetching of what came of it."""
    plan = fake_plan(repetitions=1)
    killed: list[int] = []
    take = cluster._Execution._take

    def late(self: Any, future: Any) -> None:
        if not killed:
            killed.extend(self._client.run(os.getpid).values())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            assert wait_until(lambda: future.status != "finished")
        take(self, future)

    monkeypatch.setattr(cluster._Execution, "_take", late)
    with cluster.local(1) as found:
        samples = run_fake(tmp_path / "together.jsonl", FakeBackend(slow), plan, found)
    assert len(killed) == 1
    assert content(samples) == content(run_fake(tmp_path / "alone.jsonl", FakeBackend(slow), plan))
    assert content(read_samples(tmp_path / "together.jsonl")) == content(samples)


def deadly(step: Step, tried: int) -> dict[str, int | float]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def test_a_job_that_ends_its_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOST_WORKERS", 1)
    with cluster.local(1) as found, pytest.raises(HostLost, match="workers ended while they measured"):
        run_fake(tmp_path / "samples.jsonl", FakeBackend(deadly), fake_plan(repetitions=1), found)


def test_a_worker_with_another_lab_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "lab_code", lambda: "another")
    with cluster.local(1) as found, pytest.raises(ClusterError, match=r"^The worker at .* has another foliolab\.$"):
        run_fake(tmp_path / "samples.jsonl", FakeBackend(), fake_plan(repetitions=1), found)
    assert read_samples(tmp_path / "samples.jsonl") == []


def test_a_crash_of_a_guest_is_a_result_there_too(tmp_path: Path) -> None:
    plan = fake_plan(repetitions=1)
    with cluster.local(2) as found:
        samples = run_fake(tmp_path / "samples.jsonl", FakeBackend(crashing), plan, found)
        assert [sample.outcome for sample in samples].count("guest-crash") == 1
        assert len(read_samples(tmp_path / "samples.jsonl")) == len(samples)
        with pytest.raises(BootFailed, match="ended with guest-crash"):
            run_fake(tmp_path / "other.jsonl", FakeBackend(failing_boots=[OutcomeKind.GUEST_CRASH]), plan, found)


@contextmanager
def scheduler(place: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A scheduler of the user's: its process and its address."""
    file = place / "scheduler.json"
    argv = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with started(*argv, "--scheduler-file", str(file)) as process:
        assert wait_until(lambda: file.exists() and file.read_text())
        yield process, json.loads(file.read_text())["address"]


def worker(
    address: str, name: str, host: str = "127.0.0.1", **environment: str
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """One that is had at ``host``, by which hosts are told apart."""
    argv = ["-m", "distributed.cli.dask_worker", address, "--name", name, "--nthreads", "1", "--no-nanny"]
    return started(*argv, "--no-dashboard", "--host", host, environment=environment)


def test_late_workers_help_and_a_command_goes_on_after_its_scheduler(tmp_path: Path) -> None:
    plan = fake_plan(repetitions=4)
    store, both = tmp_path / "samples.jsonl", tmp_path / "both"
    with scheduler(tmp_path) as (process, address), worker(address, "1"), cluster.scheduled(address) as found:
        killing_it = once(lambda: len(read_samples(store)) > 2, process.kill)
        with killing_it, pytest.raises(ClusterError, match="scheduler is gone"):
            run_fake(store, FakeBackend(partial(very_slow, both)), plan, found)
    before = read_samples(store)
    assert 0 < len(before) < len(plan.steps)
    (tmp_path / "scheduler.json").unlink()
    with (
        ExitStack() as stack,
        scheduler(tmp_path) as (_, address),
        cluster.scheduled(address) as found,
        worker(address, "1"),
        once(lambda: len(read_samples(store)) > len(before), lambda: stack.enter_context(worker(address, "2"))),
        once(lambda: workers_of(read_samples(store)[len(before) :]) == {1, 2}, both.touch),
    ):
        run_fake(store, FakeBackend(partial(by_whom, both)), plan, found)
    assert workers_of(read_samples(store)[len(before) :]) == {1, 2}
    alone = run_fake(tmp_path / "alone.jsonl", FakeBackend(), plan)
    assert sorted(sample.key for sample in read_samples(store)) == sorted(sample.key for sample in alone)


def test_late_workers_of_another_host_measure_no_seconds(tmp_path: Path) -> None:
    store, late, both = (tmp_path / name for name in ("samples.jsonl", "late", "both"))
    timed = partial(by_whom, late)

    def counts() -> list[Sample]:
        return [sample for sample in read_samples(store) if sample.backend != KVM]

    with ExitStack() as stack, scheduler(tmp_path) as (_, address), worker(address, "1"):
        found = stack.enter_context(cluster.scheduled(address))
        with (
            once(
                lambda: len(read_samples(store)) > 2,
                lambda: stack.enter_context(worker(address, "2", host="127.0.0.2")),
            ),
            once(lambda: len(found.client.scheduler_info(n_workers=-1)["workers"]) == 2, late.touch),
        ):
            run_fake(store, FakeBackend(timed, name=KVM), fake_plan(repetitions=4), found)
        found.client.wait_for_workers(2, timeout=60)
        assert late.exists()
        assert workers_of(read_samples(store)) == {1}
        # What was measured counts, and the other worker may emulate.
        run_fake(store, FakeBackend(timed, name=KVM), fake_plan(repetitions=4), found)
        with once(lambda: workers_of(counts()) == {1, 2}, both.touch):
            run_fake(store, FakeBackend(partial(by_whom, both)), fake_plan(repetitions=1), found)
    assert len(read_samples(store)) - len(counts()) == len(fake_plan(repetitions=4).steps)
    assert workers_of(counts()) == {1, 2}


def test_seconds_of_two_hosts_are_refused(tmp_path: Path) -> None:
    with (
        scheduler(tmp_path) as (_, address),
        worker(address, "1"),
        worker(address, "2", host="127.0.0.2"),
        cluster.scheduled(address) as found,
    ):
        found.client.wait_for_workers(2, timeout=60)
        with pytest.raises(ClusterError, match="use one host"):
            run_fake(tmp_path / "samples.jsonl", FakeBackend(reading, name=KVM), fake_plan(1), found)


def reading(step: Step, tried: int) -> dict[str, int | float]:
    return {"read_bytes": 7, "seconds": 0.5}


def test_a_host_with_a_cache_of_its_own_fetches_what_it_lacks(tmp_path: Path) -> None:
    image = cache_directory().resolve() / "images" / "of-a-test"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_bytes(b"image" * 1000)
    try:
        with (
            scheduler(tmp_path) as (_, address),
            worker(address, "other", FOLIOLAB_CACHE=str(tmp_path / "cache")),
            cluster.scheduled(address) as found,
        ):
            run_fake(tmp_path / "samples.jsonl", FakeBackend(reading, files=(image,)), fake_plan(1), found)
    finally:
        image.unlink()
    (fetched,) = (tmp_path / "cache/fetched").rglob("of-a-test")
    assert fetched.read_bytes() == b"image" * 1000
    assert not list((tmp_path / "cache/fetched").rglob("*.partial"))
