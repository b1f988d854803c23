# SPDX-License-Identifier: GPL-2.0-only
"""What a worker of a Dask scheduler does: a job that came as an order."""

import platform
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import distributed

import foliohost
import foliolab
from foliolab.campaign.files import FileSource, fetch
from foliolab.campaign.job import Job, Watcher, execute
from foliolab.campaign.sample import NOT_APPLICABLE, OK, Sample
from foliolab.errors import ClusterError
from foliolab.files import EXPERIMENTS, digest, digest_files
from foliolab.vm.outcome import GuestFailure, Outcome


@dataclass(frozen=True)
class Order:
    """A job as it goes to a worker."""

    job: Job
    topic: str
    """Of the events that it sends."""
    source: FileSource
    code: str
    """Hash of the lab that is to execute it."""


@dataclass(frozen=True)
class Done:
    """What comes back."""

    consoles: dict[str, bytes]
    """By file name."""
    failed: Outcome | None = None
    """How a guest ended before it could run any cell."""


class _Unwanted(Exception):
    """Nobody waits for the job any more."""


def perform(order: Order) -> Done:
    """Execute it; ClusterError if this worker cannot."""
    worker = distributed.get_worker()
    key = worker.get_current_task()
    name = f"The worker at {worker.address} on {platform.node()}"
    if order.code != lab_code():
        raise ClusterError(f"{name} has another foliolab.")
    if obstacle := order.job.bootable.obstacle():
        raise ClusterError(f"{name} does not fit. {obstacle}")
    bootable = order.job.bootable.elsewhere(lambda path: fetch(path, order.source))

    def send(**event: Any) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state != "executing":
            raise _Unwanted
        worker.log_event(order.topic, event)

    failed = None
    with TemporaryDirectory(prefix="consoles-", dir=worker.local_directory) as place:

        def record(sample: Sample, last: bool) -> None:
            log = Path(place, f"{sample.boot}.log")
            if sample.outcome not in (OK, NOT_APPLICABLE) and log.exists():  # it will be wanted, whatever comes next
                send(name=log.name, console=log.read_text(errors="replace"))
            send(sample=sample.to_json(), last=last)

        watcher = Watcher(record, lambda note: send(note=note), lambda say: send(say=say))
        try:
            execute(replace(order.job, bootable=bootable), Path(place), watcher)
        except GuestFailure as error:
            failed = error.outcome
        return Done({log.name: log.read_bytes() for log in Path(place).iterdir()}, failed)


def lab_code() -> str:
    packages = [Path(str(package.__file__)).parent for package in (foliolab, foliohost)]
    parts = [digest_files(package.rglob("*.py"), package) for package in packages]
    return digest([*parts, (EXPERIMENTS / "metrics.toml").read_bytes()])
