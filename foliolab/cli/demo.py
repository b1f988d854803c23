# SPDX-License-Identifier: GPL-2.0-only
"""``lab demo``: the problem and the cure, in a model at once and on a real kernel in minutes."""

import argparse

from rich.console import Console

from foliolab.campaign.runner import failure_of
from foliolab.cli.run import RunRequest, measure
from foliolab.progress import Reporter
from foliolab.report.terminal import print_view


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "show what sparse mmap access reads before and after, in a model at once and then on a real 6.12 kernel"
    parser = commands.add_parser("demo", help="start here: " + text, description=text.capitalize() + ".")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    console = Console(highlight=False)
    console.print("A model of the page cache says:\n")
    print_view(console, measure(RunRequest("sparse-mmap", scale="demo", backend="model"), Reporter()).view)
    console.print("\nNow the kernel itself, which may have to be built first.\n")
    result = measure(RunRequest("sparse-mmap", scale="demo"), Reporter())
    print_view(console, result.view)
    if error := failure_of(result.samples):
        raise error
    print("Next: './lab run sparse-mmap' for the full table, './lab exec -- ./program' for your own program.")
    return 0
