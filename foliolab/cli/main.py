# SPDX-License-Identifier: GPL-2.0-only
"""Parse, dispatch, and turn what went wrong into one sentence and an exit status."""

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from foliolab.cli.options import add_module
from foliolab.errors import DiskFull, LabError

_COMMANDS = (
    *("demo", "run", "merge", "report", "regress", "bisect", "regret", "reproduce", "trace", "exec", "shell"),
    *("export-case", "diagnose", "probe", "cure", "folios", "kernel", "module", "kselftest", "ltp", "stress", "doctor"),
    "test",
)
"""Modules, each of which is a command."""
_OF_HOST = ("diagnose", "probe", "cure")
"""Those of these that are the host's tools."""
_RESUMED = ("demo", "run", "regress", "bisect", "regret", "reproduce", "kselftest", "ltp", "stress")
_KEPT = "Interrupted; what was measured is kept, and the same command goes on from there."


def command_line() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="./lab",
        description="Readahead of mapped files for Linux 6.12, and what it gains and loses on kernels that are booted.",
        epilog="'./lab demo' is the place to start; './lab COMMAND --help' tells more.",
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in _COMMANDS:
        package = "foliohost" if name in _OF_HOST else "foliolab"
        parser = add_module(commands, name, import_module(f"{package}.cli.{name.replace('-', '_')}"))
        if name in _RESUMED:
            parser.set_defaults(interrupted=_KEPT)
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
        arguments = command_line().parse_args(argv)
        status: int = arguments.handler(arguments)
        sys.stdout.flush()
        return status
    except LabError as error:
        if error.report:
            print(f"Last words:\n{error.report}", file=sys.stderr)
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
        return _complain(f"{error.filename}: {error.strerror}.", LabError.status)


def _complain(sentence: str, status: int) -> int:
    print(f"lab: {sentence}", file=sys.stderr)
    return status
