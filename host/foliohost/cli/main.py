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
from pkgutil import get_data

from foliohost import VERSION
from foliohost.called import NAME, called
from foliohost.cli.options import add_command, add_module
from foliohost.errors import DiskFull, FolioError

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
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files can be any bytes; stderr escapes them
    # Whoever asks us to end gets the clean-up that Ctrl-C gets.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = None
    try:
        arguments = command_line(argv).parse_args(argv)
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
    print(f"{os.path.basename(called())}: {sentence}", file=sys.stderr)  # noqa: PTH119 see called.py
    return status
