# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what there is, and what is run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import get_data

from foliohost import VERSION
from foliohost.called import NAME, called
from foliohost.cli.ending import run_command
from foliohost.cli.options import add_command, add_module

COMMANDS = ("diagnose", "cure", "probe", "record", "heatmap")
"""Modules beside this one, each of which is a command."""


def command_line(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line with these words; of commands that they do not name, it has the help alone."""
    top = argparse.ArgumentParser(
        prog=called(),
        description="What programs of this machine read of mapped files, and what helps. Nothing is installed,"
        " and nothing is changed that no command asks for.",
        epilog=f"'{called()} COMMAND --help' tells more.",
    )
    top.add_argument("--version", action="version", version=f"{NAME} {VERSION}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        if name in words[:1]:
            add_module(commands, name, import_module(f"foliohost.cli.{name}"))
        else:
            add_command(commands, name, _docstring(name), None)
    return top


def _docstring(name: str) -> str:
    """That of a command's module, which is not imported for it: that takes time."""
    return (get_data("foliohost.cli", f"{name}.py") or b"").decode().split('"""')[1]


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    if not argv:
        command_line(argv).print_help(sys.stderr)
        return 2
    name = os.path.basename(called())  # noqa: PTH119 see called.py
    return run_command(name, lambda: command_line(argv).parse_args(argv))
