# SPDX-License-Identifier: GPL-2.0-only
"""Parse, dispatch, and turn what went wrong into one sentence and an exit status."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from foliohost import VERSION
from foliohost.cli.options import add_module
from foliohost.errors import DiskFull, FolioError
from foliohost.program import NAME, called

COMMANDS = ("diagnose", "cure", "probe", "record", "heatmap")
"""Modules beside this one, each of which is a command."""


def command_line(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands."""
    top = argparse.ArgumentParser(
        prog=called(),
        description="What programs of this machine read of mapped files, and what helps. Nothing is installed,"
        " and nothing is changed that no command asks for.",
        epilog=f"'{called()} COMMAND --help' tells more.",
    )
    top.add_argument("--version", action="version", version=f"{NAME} {VERSION}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        add_module(commands, name, import_module(f"foliohost.cli.{name}"))
    return top


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    if not argv:
        command_line().print_help(sys.stderr)
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files can be any bytes; stderr escapes them
    # Whoever asks us to end gets the clean-up that Ctrl-C gets.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = None
    try:
        # Other commands need not be imported for one of them.
        arguments = command_line([argv[0]] if argv[0] in COMMANDS else COMMANDS).parse_args(argv)
        status: int = arguments.handler(arguments)
        sys.stdout.flush()
        return status
    except FolioError as error:
        return _complain(str(error), error.status)
    except KeyboardInterrupt:
        return _complain(getattr(arguments, "interrupted", "Interrupted."), 130)
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _complain(f"No space left on the disk that holds {error.filename or 'our files'}.", DiskFull.status)
        if error.filename is None:
            raise
        return _complain(f"{error.filename}: {error.strerror}.", FolioError.status)


def _complain(sentence: str, status: int) -> int:
    print(f"{Path(called()).name}: {sentence}", file=sys.stderr)
    return status
