# SPDX-License-Identifier: GPL-2.0-only
"""Check style and types, then run all tests, booting the kernels that they need.

example: ./lab test -- -m 'not boot'
"""

import argparse
import os
import subprocess
import sys

from foliolab.cli.changed import QUICK, beside, changed_files
from foliolab.cli.options import add_words, require_checkout, words
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
_PARALLEL = (f"--numprocesses={_PROCESSES}", "--dist=loadfile", "--no-loadscope-reorder")
_NONE_COLLECTED = 5
"""pytest's exit status if all that was chosen boots."""


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "only those beside what differs from main and boots nothing, in about a minute"
    parser.add_argument("--changed", action="store_true", help=text)
    add_words(parser, "arguments for pytest, which then runs in one process")


def handle(arguments: argparse.Namespace) -> int:
    require_checkout("This runs tests")
    chosen = words(arguments)
    if chosen and arguments.changed:
        raise UsageError("--changed chooses tests itself: it goes with no arguments for pytest.")
    failed = [check[0] for check in _CHECKS if _module(*check)]
    status = _changed() if arguments.changed else _module("pytest", *(chosen or (*_PARALLEL, "--durations=20")))
    if failed:
        print(f"lab: {', '.join(dict.fromkeys(failed))} found something to mend; see above.", file=sys.stderr)
    return status or bool(failed)


def _changed() -> int:
    tests = beside(changed_files())
    if not tests:
        print("No test lies beside what has changed.")
        return 0
    print("Testing", *tests)
    status = _module("pytest", *_PARALLEL, "-m", QUICK, *tests)
    return 0 if status == _NONE_COLLECTED else status


def _module(*argv: str) -> int:
    # Tests start the command line hundreds of times, and compiling it takes half of its start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = dying_with_parent([sys.executable, "-m", *argv])
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
