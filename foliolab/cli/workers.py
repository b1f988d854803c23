# SPDX-License-Identifier: GPL-2.0-only
"""The options that say who measures: this process, others, or other hosts."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from foliolab.campaign.runner import Here, Workers
from foliolab.errors import MissingTool, UsageError
from foliolab.table import Place, Text, read_toml

Shard = tuple[int, int]
"""Which, counted from 1, of how many."""


class _Scheduled(Struct, forbid_unknown_fields=True):
    scheduler: Text


def add_workers(parser: argparse.ArgumentParser) -> None:
    """``--workers``, ``--cluster`` and ``--shard``."""
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--workers", metavar="N", type=int, help="boot so many guests at a time")
    who.add_argument(
        "--cluster", metavar="FILE", type=Path, help="boot guests on the hosts, or by the scheduler, that a file names"
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        type=_shard,
        help="measure only the Ith of N parts; './lab merge' brings them together",
    )


def _shard(text: str) -> Shard:
    part, _, of = text.partition("/")
    if not (part.isdecimal() and of.isdecimal() and 1 <= int(part) <= int(of)):
        raise argparse.ArgumentTypeError(f"'{text}' is no part such as 1/3")
    return int(part), int(of)


@contextmanager
def workers(arguments: argparse.Namespace) -> Iterator[Workers]:
    """Whoever executes boots, as long as the block lasts."""
    if arguments.workers is None and arguments.cluster is None:
        yield Here()
        return
    if arguments.workers is not None and arguments.workers < 1:
        raise UsageError("At least one worker is needed.")
    try:
        from foliolab.campaign import cluster
        from foliolab.campaign.hosts import Hosts
    except ImportError as error:
        raise MissingTool(f"{error.name} is not installed; '.venv/bin/pip install distributed' brings it.") from None
    if arguments.workers:
        with cluster.local(arguments.workers) as found:
            yield found
        return
    table = read_toml(arguments.cluster)
    if ("scheduler" in table) == ("ssh" in table):
        raise UsageError(f"{arguments.cluster} has to name either a 'scheduler' or hosts for 'ssh'.")
    place = Place(arguments.cluster)
    if "scheduler" in table:
        made = cluster.scheduled(place.convert(table, _Scheduled).scheduler)
    else:
        made = cluster.ssh(place.convert(table, Hosts))
    with made as found:
        yield found
