# SPDX-License-Identifier: GPL-2.0-only
"""A command line told by what it says of itself: a manual page, and what a shell completes."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from foliohost.errors import INTERRUPTED, FolioError


@dataclass(frozen=True)
class CommandLine:
    name: str
    summary: str
    """What it is, in a few words."""
    version: str
    description: str
    commands: Mapping[str, argparse.ArgumentParser]
    statuses: Mapping[int, str]
    """What an exit status means."""
    environment: Mapping[str, str]
    """What a variable is for."""


def statuses(kinds: Iterable[object], done: str) -> dict[int, str]:
    """What the exit statuses of these errors mean; other things among ``kinds`` are left out. 0 is ``done``."""
    told = {
        kind.status: " ".join(str(inspect.getdoc(kind)).split())
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, FolioError) and kind.__doc__
    }
    told[0] = done
    told[FolioError.status] = "Anything else that a sentence explains."
    told[INTERRUPTED] = "Interrupted by Ctrl-C or SIGTERM."
    return dict(sorted(told.items()))


def manual(program: CommandLine) -> str:
    """The page in the language of man(7)."""
    return "\n".join(
        [
            '.\\" SPDX-License-Identifier: GPL-2.0-only',
            f'.TH {program.name.upper()} 1 "" "foliolab {program.version}" "User Commands"',
            ".SH NAME",
            f"{_plain(program.name)} \\- {_plain(program.summary)}",
            ".SH SYNOPSIS",
            f".B {_plain(program.name)}",
            "\\fICOMMAND\\fR [\\fIOPTION\\fR]...",
            ".SH DESCRIPTION",
            _plain(program.description),
            ".SH COMMANDS",
            *(line for name, parser in program.commands.items() for line in _command(name, parser)),
            ".SH EXIT STATUS",
            *_listed({str(status): words for status, words in program.statuses.items()}),
            ".SH ENVIRONMENT",
            *_listed(program.environment),
            "",
        ]
    )


def completion(program: CommandLine) -> str:
    """A script for bash: what may follow a command and its verb. Elsewhere, as behind options, names of files do."""
    function = f"_{program.name.replace('-', '_')}"
    cases = [line for name, parser in program.commands.items() for line in _cases(name, parser)]
    valued = dict.fromkeys(option for parser in program.commands.values() for option in _valued(parser))
    return "\n".join(
        [
            "# SPDX-License-Identifier: GPL-2.0-only",
            f"{function}()",
            "{",
            "\tlocal words",
            '\tcase "${COMP_WORDS[COMP_CWORD - 1]}" in',
            f"\t{' | '.join(valued)}) COMPREPLY=(); return ;;",
            "\tesac",
            '\tcase "${COMP_WORDS[*]:1:COMP_CWORD-1} " in',
            '\t*" -- "*) words= ;;',
            *cases,
            f'\t" ") words="{" ".join([*program.commands, "--help", "--version"])}" ;;',
            "\tesac",
            '\tmapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")',
            "}",
            f"complete -o default -F {function} {program.name}",
            "",
        ]
    )


def _cases(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Those of verbs before those of their command, which match as well."""
    verbs = _choices(parser)
    for verb, its in verbs.items():
        yield from _cases(f"{name} {verb}", its)
    options = [option for action in _told(parser) for option in action.option_strings]
    yield f'\t"{name} "*) words="{" ".join([*verbs, *options, "--help"])}" ;;'


def _valued(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options that a value follows, also those of verbs."""
    for each in (parser, *_choices(parser).values()):
        yield from (option for action in _told(each) if action.nargs != 0 for option in action.option_strings)


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command with its options; where it has verbs, these with theirs."""
    verbs = _choices(parser)
    usage = " ".join(parser.format_usage().split()[2:])
    yield f".SS {_plain(usage if not verbs else name)}"
    yield _plain(parser.description)
    for action in _told(parser):
        yield ".TP"
        yield f".B {_plain(_written(action))}"
        yield _plain(action.help and parser._get_formatter()._expand_help(action))
    if parser.epilog:
        yield ".PP"
        yield _plain(parser.epilog)
    for verb, its in verbs.items():
        yield from _command(f"{name} {verb}", its)


def _told(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments that its help tells of, without the help and the verbs."""
    left_out = (argparse._HelpAction, argparse._SubParsersAction)
    return [
        action for action in parser._actions if not isinstance(action, left_out) and action.help != argparse.SUPPRESS
    ]


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands or verbs of a parser, by name."""
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0]) if found else {}


def chosen(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    return _choices(parser)[name]


def _written(action: argparse.Action) -> str:
    """An option with what follows it, or an argument."""
    value = action.metavar or action.dest.upper()
    if not action.option_strings:
        return str(action.metavar or f"-- {value}...")
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def _listed(words: Mapping[str, str]) -> Iterator[str]:
    for name, text in words.items():
        yield f".TP\n.B {_plain(name)}\n{_plain(text)}"


def _plain(text: str | None) -> str:
    """Text as it is, whatever is special in the language."""
    escaped = str(text or "").replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
