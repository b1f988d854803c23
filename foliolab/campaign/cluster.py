# SPDX-License-Identifier: GPL-2.0-only
"""Jobs in other processes, and on other hosts, by Dask.

Workers are Python processes with foliolab and QEMU. What a job takes of the cache, they fetch from here if they
do not have the very same. Every attempt at a measurement is sent as it ends, so that nothing that was measured is lost
with a worker. Dask gives its job to another one, whose answers to what is known already are dropped. Only this process
writes to the store.
"""

import json
import logging
import platform
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import dask
import distributed
import msgspec
from distributed.comm.addressing import get_address_host

from foliolab.campaign.files import FileSource, resolved, serving
from foliolab.campaign.job import Job, Watcher
from foliolab.campaign.sample import Sample
from foliolab.campaign.worker import Done, Order, lab_code, perform
from foliolab.errors import ClusterError, HostLost, LabError
from foliolab.files import write_atomic
from foliolab.vm.outcome import failure

_LOST_WORKERS = 20
"""How many workers of ours a job may lose before it is taken for what ends them."""
_GONE = "The scheduler is gone. What was measured is kept, and the same command goes on from there."
_PATIENCE_SECONDS = 300
"""How long there may be no worker at all."""
_NO_WORKER = f"The scheduler has had no worker for {_PATIENCE_SECONDS} seconds."

_AGAIN = ("pending", "lost")
"""What a job is that is being done again, as the worker is gone that had its end."""
_ANSWER_SECONDS = 10
_FETCH_SECONDS = 5
"""How long the end of a job may take to be fetched from its worker, before it is taken for lost."""
_IDLE = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "5s",
    "distributed.admin.system-monitor.interval": "10s",
}
"""What Dask watches itself by takes 7 % of a processor beside each guest as it comes, and 1 % with these."""


@contextmanager
def local(workers: int) -> Iterator["Cluster"]:
    """So many processes of this host, one job each."""
    _be_quiet()
    with (
        dask.config.set(_IDLE),
        TemporaryDirectory(prefix="foliolab-workers-") as place,
        distributed.LocalCluster(
            host="127.0.0.1",
            n_workers=0,
            memory_limit=None,
            local_directory=place,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"allowed_failures": _LOST_WORKERS},
        ) as scheduler,
        distributed.Client(scheduler) as client,
    ):
        # A worker that ends while it starts is started again by this, and by nothing else.
        scheduler.adapt(minimum=workers, maximum=workers)
        yield Cluster(client)


@contextmanager
def scheduled(address: str) -> Iterator["Cluster"]:
    """The workers of a scheduler that is there already."""
    _be_quiet()
    try:
        client = distributed.Client(address, timeout=_ANSWER_SECONDS)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(f"No scheduler answers at {address}: {error}") from None
    with client:
        yield Cluster(client)


def _be_quiet() -> None:
    """What becomes of workers is told here."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Dask's pages of its own are not wanted.
    for words in ("Port .* is already in use", "Couldn't detect a suitable IP address"):
        warnings.filterwarnings("ignore", words)


class Cluster:
    def __init__(self, client: Any) -> None:
        self.client = client

    def run(self, jobs: Iterable[Job], consoles: Path, watcher: Watcher) -> None:
        """Execute all; ClusterError when the scheduler is gone, or workers do not fit."""
        # What others call it, for whom a loopback address means themselves.
        address = self.client.scheduler_info(n_workers=0).get("address") or self.client.scheduler.address
        host = address.split("://")[1].rpartition(":")[0].strip("[]")
        with serving(distributed.utils.get_ip(host)) as source:
            _Execution(self, source, consoles, watcher).run(jobs)

    def timed_on(self) -> str:
        return self.timed_at[1]

    @cached_property
    def timed_at(self) -> tuple[str, str]:
        """Address and name of the host that seconds are of, also when workers of others come later.

        ClusterError if they are of several already, or none comes.
        """
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
            names = self.client.run(platform.node, on_error="ignore")
        except TimeoutError:
            names = {}
        except OSError:
            raise ClusterError(_GONE) from None
        hosts = {(get_address_host(address), name) for address, name in names.items()}
        if len(hosts) > 1:
            raise ClusterError("Under KVM, seconds are measured, which are not the same on all hosts: use one host.")
        if not hosts:
            raise ClusterError(_NO_WORKER)
        return hosts.pop()


class _Execution:
    def __init__(self, cluster: "Cluster", source: FileSource, consoles: Path, watcher: Watcher) -> None:
        self._cluster, self._client = cluster, cluster.client
        self._source, self._consoles, self._watcher = source, consoles, watcher
        self._topic = f"foliolab-{token_hex(8)}"
        self._code = lab_code()
        self._events: SimpleQueue[Any] = SimpleQueue()
        self._orders: dict[Any, Order] = {}
        """What is under way, by its future."""
        self._final: set[str] = set()
        self._seen: set[str] = set()

    def run(self, jobs: Iterable[Job]) -> None:
        self._client.subscribe_topic(self._topic, lambda event: self._events.put(event[1]))
        try:
            for job in jobs:
                self._source.offer(job.bootable.files)
                job = replace(job, bootable=job.bootable.elsewhere(resolved))
                offered = replace(self._source, offered=dict(self._source.offered))
                self._submit(Order(job, self._topic, offered, self._code))
                self._hear_all()
            waited = 0
            while self._orders:
                try:
                    event = self._events.get(timeout=1)
                except Empty:
                    waited = self._look_after(waited)
                    continue
                waited = 0
                if isinstance(event, distributed.Future):
                    self._take(event)
                else:
                    self._hear(event)
        finally:
            self._hear_all()
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(list(self._orders), force=True)
                self._client.unsubscribe_topic(self._topic)

    def _submit(self, order: Order) -> None:
        future = self._client.submit(perform, order, pure=False, workers=self._hosts(order))
        self._orders[future] = order
        future.add_done_callback(self._events.put)

    def _look_after(self, waited: int) -> int:
        """Nothing was heard for another second."""
        for future in list(self._orders):
            if future.done():  # nobody says it a second time of what another worker has done again
                self._take(future)
        if not self._orders:
            return 0
        if self._client.status != "running":
            raise ClusterError(_GONE)
        hosts = self._hosts(next(iter(self._orders.values())))
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if any(not hosts or worker["host"] in hosts for worker in workers):
            return 0
        if waited == _PATIENCE_SECONDS:
            raise ClusterError(_NO_WORKER)
        return waited + 1

    def _hosts(self, order: Order) -> list[str] | None:
        """The addresses of those that may execute it; None if all may."""
        return [self._cluster.timed_at[0]] if order.job.works[0].form.timed_on else None

    def _hear_all(self) -> None:
        """What has arrived, without waiting; the end of jobs is left for later."""
        for _ in range(self._events.qsize()):
            event = self._events.get_nowait()
            if isinstance(event, distributed.Future):
                self._events.put(event)
            else:
                self._hear(event)

    def _hear(self, event: dict[str, Any]) -> None:
        if "console" in event:
            write_atomic(self._consoles / event["name"], event["console"].encode())
        elif "note" in event:
            self._watcher.note(event["note"])
        elif "say" in event:
            self._watcher.say(event["say"])
        else:
            words, sample = json.dumps(event["sample"]), msgspec.convert(event["sample"], Sample)
            # A job that another worker has begun again sends once more what was there.
            if words not in self._seen and sample.key not in self._final:
                self._seen.add(words)
                if event["last"]:
                    self._final.add(sample.key)
                self._watcher.record(sample, event["last"])

    def _take(self, future: Any) -> None:
        """A job came to its end. All that it sent was heard before."""
        if future not in self._orders or future.status in _AGAIN:
            return
        if future.status == "finished":
            try:
                done: Done = future.result(timeout=_FETCH_SECONDS)
            except TimeoutError:  # its worker was lost in between
                return
            del self._orders[future]
            for name, content in done.consoles.items():
                write_atomic(self._consoles / name, content)
            if done.failed:
                raise failure(done.failed)
            return
        error = future.exception() if future.status == "error" else None
        if isinstance(error, distributed.scheduler.KilledWorker):
            raise HostLost(f"More and more workers ended while they measured with {self._orders[future].job.kernel}.")
        if isinstance(error, LabError | OSError):
            raise error
        if error:
            raise ClusterError(f"A worker failed: {str(error) or type(error).__name__}")
        raise ClusterError(_GONE)  # what a scheduler takes along is cancelled
