# SPDX-License-Identifier: GPL-2.0-only
"""How a command ends: what went wrong is one sentence, and an exit status."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import signal
import sys
from collections.abc import Callable

from foliohost.errors import INTERRUPTED, DiskFull, FolioError
from foliohost.files import FULL


def run_command(name: str, parse: Callable[[], argparse.Namespace]) -> int:
    """Parse a command line and run its command; returns the exit status. Complaints begin with ``name``."""

    def complain(sentence: str, status: int) -> int:
        print(f"{name}: {sentence}", file=sys.stderr)
        return status

    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("foliolab", _written)
        sys.stdout.reconfigure(errors="foliolab")  # stderr escapes what it cannot write
    # Whoever asks us to end gets the clean-up that Ctrl-C gets.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = None
    try:
        arguments = parse()
        status: int = arguments.handler(arguments)
        sys.stdout.flush()
        return status
    except FolioError as error:
        return complain(str(error), error.status)
    except KeyboardInterrupt:
        return complain(getattr(arguments, "interrupted", "Interrupted."), INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not try to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno in FULL:
            return complain(f"No space left on the disk that holds {error.filename or 'our files'}.", DiskFull.status)
        if error.filename is None:
            raise
        return complain(f"{error.filename}: {error.strerror}.", FolioError.status)


def _written(error: UnicodeError) -> tuple[str | bytes, int]:
    """How a character is written that an encoding has not, and the place of the next one.

    Names of files can be any bytes, which stay as they are.
    """
    assert isinstance(error, UnicodeEncodeError)
    error.end = error.start + 1
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeEncodeError:
        return codecs.lookup_error("backslashreplace")(error)
