# SPDX-License-Identifier: GPL-2.0-only
"""Commands of a command line, the options that several of them have, and what these mean."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from foliohost.called import NAME, called
from foliohost.errors import UsageError
from foliohost.sizes import parse_size

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(
    commands: Commands, name: str, words: str | None, handler: Callable[[argparse.Namespace], int] | None
) -> argparse.ArgumentParser:
    """A command that ``words`` tell of: a sentence that says what it does, others, and as a last paragraph an example.

    They are the docstring of its handler or module. Without a handler it has verbs, which ``add_verbs`` returns.
    """
    told, *examples = (" ".join(part.split()) for part in str(words).split("\n\n"))
    first = told.partition(". ")[0].rstrip(".")
    text, epilog = first[0].lower() + first[1:], " ".join(examples).replace(NAME, called())
    # The launcher looks for whole options: an abbreviation would bring none of what it needs.
    parser = commands.add_parser(name, help=text, description=told, epilog=epilog, allow_abbrev=False)
    if handler:
        parser.set_defaults(handler=handler)
    return parser


def add_module(commands: Commands, name: str, module: ModuleType) -> argparse.ArgumentParser:
    """A command that is a module, whose docstring tells of it. It has ``add_options``, and ``handle`` or verbs."""
    parser = add_command(commands, name, module.__doc__, getattr(module, "handle", None))
    module.add_options(parser)
    return parser


def add_verbs(parser: argparse.ArgumentParser) -> Commands:
    """What the verbs of a command are added to."""
    return parser.add_subparsers(metavar="VERB", required=True)


def add_json(parser: argparse._ActionsContainer, what: str = "one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} and nothing else")


def add_words(parser: argparse.ArgumentParser, text: str = "a command to run") -> None:
    """Words behind ``--``, which ``words`` returns."""
    parser.add_argument("command", nargs=argparse.REMAINDER, help=text)


def words(arguments: argparse.Namespace) -> list[str]:
    found: list[str] = arguments.command
    return found[1:] if found[:1] == ["--"] else found


def size_of(text: str) -> int:
    """Bytes; UsageError for what is no size."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def require_seconds(option: str, seconds: float | None) -> None:
    """UsageError for a time that an option cannot mean."""
    if seconds is not None and not 0 < seconds < 1e6:
        raise UsageError(f"{option} is a time of more than nothing and less than 1,000,000.")


def require_room_for(option: str, file: Path | None) -> None:
    """UsageError for a file that cannot be written; that is better known before a program has run for an hour."""
    if not file:
        return
    if not file.parent.is_dir():
        raise UsageError(f"{option}: {file.parent} is no directory.")
    # Files are replaced whole, which would take a device such as /dev/null away.
    if (file.exists() and not file.is_file()) or not os.access(file.parent, os.W_OK):
        raise UsageError(f"{option}: {file} cannot be written.")
