# SPDX-License-Identifier: GPL-2.0-only
"""Check style and types, then run all tests, booting the kernels that they need.

example: ./lab test -- -m 'not boot'
"""

import argparse
import os
import subprocess
import sys

from foliolab.cli.options import add_words, words
from foliolab.errors import UsageError
from foliolab.files import REPOSITORY
from foliolab.process import dying_with_parent

_CHECKS = (
    ["ruff", "check", "--quiet"],
    ["ruff", "format", "--quiet", "--check"],
    ["mypy", "--no-error-summary"],
)


# Guests keep a core busy or two, and some tests wait. Tests of a file stay in one process: they share guests.
_PROCESSES = min(4, (os.cpu_count() or 1) + 1)
_ALL_TESTS = (f"--numprocesses={_PROCESSES}", "--dist=loadfile", "--no-loadscope-reorder", "--durations=20")
_UNCHANGED = ("-p", "tests.unchanged")


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "leave out test files that passed, and of which nothing that they may use has changed since"
    parser.add_argument("--changed", action="store_true", help=text)
    add_words(parser, "arguments for pytest, which then runs in one process")


def handle(arguments: argparse.Namespace) -> int:
    chosen = words(arguments)
    if chosen and arguments.changed:
        raise UsageError("--changed is about all tests: it goes with no arguments for pytest.")
    failed = [check[0] for check in _CHECKS if _module(*check)]
    unchanged = [*_UNCHANGED, "--changed"] if arguments.changed else _UNCHANGED
    status = _module("pytest", *(chosen or (*_ALL_TESTS, *unchanged)))
    if failed:
        print(f"lab: {', '.join(dict.fromkeys(failed))} found something to mend; see above.", file=sys.stderr)
    return status or bool(failed)


def _module(*argv: str) -> int:
    # Tests start the command line hundreds of times, and compiling it takes half of its start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = dying_with_parent([sys.executable, "-m", *argv])
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
