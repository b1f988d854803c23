# SPDX-License-Identifier: GPL-2.0-only
"""Workers on a host that ssh reaches, and by which it starts this there (``hosts.py``).

``python -m foliolab.campaign.hosted SCHEDULER WORKERS CODE`` prints that they are ready, and ends them, with their
guests, as soon as its standard input ends: that is when the connection does, whoever cut it.
"""

import asyncio
import logging
import os
import sys
from tempfile import TemporaryDirectory
from typing import Any

import distributed

from foliolab.campaign.worker import lab_code

READY = "foliolab: workers are ready"
_START_SECONDS = 60
_END_SECONDS = 2
"""How long a worker may take to end before it is killed."""


async def _work(scheduler: str, workers: int, directory: str) -> str:
    """Until the input, or all workers, end; what was wrong with these, if anything was."""
    cut = asyncio.ensure_future(_end_of_input())
    nannies = [
        distributed.Nanny(scheduler, nthreads=1, memory_limit=None, local_directory=directory) for _ in range(workers)
    ]
    try:
        started: asyncio.Future[Any] = asyncio.gather(*nannies)
        await asyncio.wait([started, cut], timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if cut.done():
            return ""
        if not started.done() or started.exception():
            return f"its workers do not get to the scheduler at {scheduler}"
        print(READY, flush=True)
        ended: asyncio.Future[Any] = asyncio.gather(*(nanny.finished() for nanny in nannies))
        await asyncio.wait([ended, cut], return_when=asyncio.FIRST_COMPLETED)
        return "" if cut.done() else "its workers have ended"
    finally:
        await asyncio.gather(*(nanny.close(timeout=_END_SECONDS) for nanny in nannies), return_exceptions=True)


async def _end_of_input() -> None:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()

    def read() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            end.set()

    loop.add_reader(0, read)
    await end.wait()


def main() -> int:
    """The exit status; 1 after a complaint."""
    scheduler, workers, code = sys.argv[1:]
    if code != lab_code():
        print("it has another foliolab", file=sys.stderr)
        return 1
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with TemporaryDirectory(prefix="foliolab-workers-") as directory:
        if complaint := asyncio.run(_work(scheduler, int(workers), directory)):
            print(complaint, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
