# SPDX-License-Identifier: GPL-2.0-only
"""The manual page of the tools, made from what their command line says of itself."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from foliohost import VERSION, errors
from foliohost.called import NAME
from foliohost.cli.main import COMMANDS, command_line

_REST = """\
.SH ENVIRONMENT
.TP
.B FOLIOLAB_STATE
The directory in which \\fBcure\\fR remembers what it has set; by default \\fI/run/foliolab-host\\fR.
.TP
.B COLUMNS
Characters of a line, for tables.
"""


def manual() -> str:
    """The page in the language of man(7)."""
    top = command_line([])
    return "\n".join(
        [
            '.\\" SPDX-License-Identifier: GPL-2.0-only',
            f'.TH {NAME.upper()} 1 "" "{NAME} {VERSION}" "User Commands"',
            ".SH NAME",
            f"{_plain(NAME)} \\- what programs read of mapped files, and what helps",
            ".SH SYNOPSIS",
            f".B {_plain(NAME)}",
            "\\fICOMMAND\\fR [\\fIOPTION\\fR]...",
            ".SH DESCRIPTION",
            _plain(top.description),
            ".SH COMMANDS",
            *(line for name in COMMANDS for line in _command(name, _choices(command_line([name]))[name])),
            ".SH EXIT STATUS",
            *_statuses(),
            _REST,
        ]
    )


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command with its options; where it has verbs, these with theirs."""
    verbs = _choices(parser)
    usage = " ".join(parser.format_usage().split()[2:])
    yield f".SS {_plain(usage if not verbs else name)}"
    yield _plain(parser.description)
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)) or action.help == argparse.SUPPRESS:
            continue
        yield ".TP"
        yield f".B {_plain(_written(action))}"
        yield _plain(action.help and parser._get_formatter()._expand_help(action))
    if parser.epilog:
        yield ".PP"
        yield _plain(parser.epilog)
    for verb, its in verbs.items():
        yield from _command(f"{name} {verb}", its)


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands or verbs of a parser, by name."""
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0]) if found else {}


def _written(action: argparse.Action) -> str:
    """An option with what follows it, or an argument."""
    value = action.metavar or action.dest.upper()
    if not action.option_strings:
        return str(action.metavar or f"-- {value}...")
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def _statuses() -> Iterator[str]:
    told = {
        kind.status: " ".join(str(inspect.getdoc(kind)).split())
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.FolioError)
    }
    told[0] = "All is well. Of diagnose and record with a command, its own status is told instead."
    told[errors.FolioError.status] = "Anything else that a sentence explains."
    for status, words in sorted(told.items()):
        yield f".TP\n.B {status}\n{_plain(words)}"


def _plain(text: str | None) -> str:
    """Text as it is, whatever is special in the language."""
    escaped = str(text or "").replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
