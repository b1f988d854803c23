# SPDX-License-Identifier: GPL-2.0-only
"""``lab demo``: the problem and the cure on a real kernel, in minutes."""

import argparse

from rich.console import Console

from foliolab.campaign.runner import failure_of
from foliolab.cli.run import RunRequest, measure
from foliolab.progress import Reporter
from foliolab.report.terminal import print_view


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "boot a real 6.12 kernel and show sparse mmap access before and after honest hit accounting"
    parser = commands.add_parser("demo", help="start here: " + text, description=text.capitalize() + ".")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    result = measure(RunRequest("sparse-mmap", scale="demo"), Reporter())
    print_view(Console(highlight=False), result.view)
    if error := failure_of(result.samples):
        raise error
    print("Next: './lab run sparse-mmap' for the full table, './lab exec -- ./program' for your own program.")
    return 0
