# SPDX-License-Identifier: GPL-2.0-only
"""Commands of the command line, the options that several of them have, and what these mean."""

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, get_args

from foliohost.cli.options import add_command as add_command
from foliohost.cli.options import add_json as add_json
from foliohost.cli.options import add_module as add_module
from foliohost.cli.options import add_verbs as add_verbs
from foliohost.cli.options import add_words as add_words
from foliohost.cli.options import require_room_for as require_room_for
from foliohost.cli.options import require_seconds as require_seconds
from foliohost.cli.options import size_of as size_of
from foliohost.cli.options import words as words
from foliolab.arch import ARCHITECTURES, NATIVE, Architecture, architecture, size_name
from foliolab.campaign.runner import Here, Workers
from foliolab.device import device_of, help_text
from foliolab.errors import UsageError
from foliolab.files import INSTALLED
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.kernel.name import HELP
from foliolab.metal.machine import OnMachine, remote_machine
from foliolab.vm.accel import Wanted

_PAGE_SIZES = {size_name(size): size for arch in ARCHITECTURES.values() for size in arch.page_sizes}


def add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", choices=ARCHITECTURES, default=NATIVE.name, help=f"(default: {NATIVE.name})")
    parser.add_argument("--page-size", choices=_PAGE_SIZES, help="of the kernel (default: the architecture's smallest)")


def machine(arguments: argparse.Namespace) -> tuple[Architecture, int]:
    """Architecture and page size in bytes; UsageError if they do not go together."""
    arch = architecture(arguments.arch)
    return arch, arch.page_size(_PAGE_SIZES.get(arguments.page_size))


def add_kernels(parser: argparse.ArgumentParser, text: str) -> None:
    text = f"{text}; may be repeated. {HELP}"
    parser.add_argument("--kernel", dest="kernels", metavar="NAME", action="append", default=[], help=text)


def add_profile(parser: argparse.ArgumentParser, default: str | None = "lab") -> None:
    text = "of the kernel; debug has KASAN, lockdep and DEBUG_VM; metal is for machines that are no guests"
    named = default or "lab, or metal on a machine"
    parser.add_argument("--profile", choices=PROFILES, default=default, help=f"{text} (default: {named})")


def add_host(parser: argparse.ArgumentParser) -> None:
    text = "measure on this machine, a destination of ssh; it is restarted with each kernel (docs/metal.md)"
    parser.add_argument("--host", metavar="NAME", help=text)
    text = "have the data on this device of the machine, which is empty; else it is in a file"
    parser.add_argument("--spare", metavar="DEVICE", help=text)
    text = "use a machine that has none, where somebody has to reset a kernel that hangs"
    parser.add_argument("--no-watchdog", action="store_true", help=text)
    text = "have the boot loader start each kernel for one boot, also where kexec is allowed"
    parser.add_argument("--no-kexec", action="store_true", help=text)
    parser.add_argument("--though-in-use", action="store_true", help="use a machine on which somebody is logged in")


def _on_host(arguments: argparse.Namespace) -> Workers:
    if arguments.workers is not None or arguments.cluster is not None:
        raise UsageError("--host takes neither --workers nor --cluster: one machine runs one kernel at a time.")
    if arguments.spare == "":
        raise UsageError("--spare takes a device, such as /dev/nvme1n1.")
    options = ["--spare", arguments.spare] if arguments.spare else []
    asked = {
        "--no-watchdog": arguments.no_watchdog,
        "--no-kexec": arguments.no_kexec,
        "--though-in-use": arguments.though_in_use,
    }
    options += [name for name, wanted in asked.items() if wanted]
    return OnMachine(remote_machine(arguments.host, options))


def add_extras(parser: argparse.ArgumentParser) -> None:
    text = "build this in too"
    parser.add_argument("--with", dest="extras", choices=OPTIONAL, action="append", default=[], help=text)


def add_accelerator(parser: argparse.ArgumentParser, default: Wanted | None = None) -> None:
    text = "auto: KVM where it works, else emulation (tcg); icount: emulation that counts instructions"
    text += f" (default: {default or 'what the experiment wants, or auto'})"
    parser.add_argument("--accelerator", choices=get_args(Wanted), default=default, help=text)


def add_device(parser: argparse.ArgumentParser, text: str = "give guests timed disks, and count seconds") -> None:
    """``--device``, the name of a disk that takes time; parsing raises UsageError for one that cannot be."""
    parser.add_argument(
        "--device", metavar="PROFILE", type=lambda given: device_of(given).name, help=f"{text}: {help_text()}"
    )
    # Numbers of which the first is negative are a wrong value, and not the name of another option.
    parser._negative_number_matcher = re.compile(r"-(\d+(,-?\d+)*|\d*\.\d+)$")


def add_guest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", default="1G", help="of the guest (default: 1G)")
    parser.add_argument("--cpus", type=int, default=1, help="of the guest (default: 1)")


def print_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON with a line for each row."""
    lines = ",\n".join(map(json.dumps, rows))
    print(f'{{"{name}": [\n{lines}\n]}}')


def add_tables(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    text = "print Markdown for a document: the table, and what made it"
    parser.add_argument("--table", action="store_true", help=text)


def add_cells(parser: argparse.ArgumentParser) -> None:
    text = "only these cells; may be repeated"
    parser.add_argument("--cell", metavar="AXIS=VALUE,...", action="append", default=[], help=text)


def add_sizes(parser: argparse.ArgumentParser) -> None:
    text = "quick: an eighth of the published sizes; full; or what else the experiment has (default: quick)"
    parser.add_argument("--scale", default="quick", help=text)
    parser.add_argument("--repetitions", metavar="N", type=int, help="boots of each kernel (default: the experiment's)")


Shard = tuple[int, int]
"""Which, counted from 1, of how many."""


def add_workers(parser: argparse.ArgumentParser) -> None:
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--workers", metavar="N", type=int, help="boot so many guests at a time")
    who.add_argument("--cluster", metavar="ADDRESS", help="boot guests by the workers of a Dask scheduler")
    text = "measure only the Ith of N parts; './lab merge' brings them together"
    parser.add_argument("--shard", metavar="I/N", type=_shard, help=text)


def _shard(text: str) -> Shard:
    part, _, of = text.partition("/")
    if not (re.fullmatch("[0-9]{1,9}/[0-9]{1,9}", text) and 1 <= int(part) <= int(of)):
        raise argparse.ArgumentTypeError(f"'{text}' is no part such as 1/3")
    return int(part), int(of)


def workers(arguments: argparse.Namespace) -> AbstractContextManager[Workers]:
    """Whoever executes boots, as long as the block lasts."""
    if getattr(arguments, "host", None) is not None:
        return nullcontext(_on_host(arguments))
    if arguments.workers is None and arguments.cluster is None:
        return nullcontext(Here())
    if arguments.workers is not None and arguments.workers < 1:
        raise UsageError("At least one worker is needed.")
    if arguments.cluster == "":
        raise UsageError("--cluster takes the address of a Dask scheduler, such as tcp://node7:8786.")
    from foliolab.campaign import cluster

    return cluster.local(arguments.workers) if arguments.workers else cluster.scheduled(arguments.cluster)


def require_checkout(what: str) -> None:
    """Raise UsageError outside of a checkout."""
    if INSTALLED:
        raise UsageError(f"{what}, so it needs a checkout of foliolab. This is what pip has installed.")


def names_of(option: str, text: str | None) -> list[str]:
    """Names with commas between them, as an option has them; none without it. UsageError for an empty one."""
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"{option} takes names with commas between them, and no empty one, not '{text}'.")
    return names


def limits_of(text: str | None) -> list[int | None]:
    """Readahead limits in KiB, each once; [None] without the option."""
    if text is None:
        return [None]
    found = list(dict.fromkeys(text.split(",")))
    if not all(re.fullmatch("[0-9]{1,10}", word) for word in found):
        raise UsageError(f"--read-ahead-kb takes numbers of KiB, such as 128,4096, not '{text}'.")
    return [int(word) for word in found]


def pairs_of(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of ``--env``."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--env takes NAME=VALUE, not '{text}'.")
        pairs[name] = value
    return pairs
