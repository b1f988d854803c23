# SPDX-License-Identifier: GPL-2.0-only
"""Tell in which folios programs of this machine have files mapped, and what their text takes of the TLB. With a
command, run it and look at each of its processes just before that ends; its output goes to the standard error. Takes
root.

example: ./lab folios --text -- make -j2
"""

import argparse
import os
import platform
import signal
import sys

from foliolab.arch import ARCHITECTURES, NATIVE
from foliolab.cli.options import add_json, add_words, words
from foliolab.errors import UsageError
from foliolab.vm.image import guest_programs


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pid", type=int, action="append", default=[], help="this process; can be repeated")
    parser.add_argument("--all", action="store_true", help="all processes; what two of them map counts twice")
    parser.add_argument("--text", action="store_true", help="only executable mappings")
    text = "count aligned blocks of this size (default: 64K; 2M where pages are 16K or 64K)"
    parser.add_argument("--cont", metavar="SIZE", action="append", default=[], help=text)
    add_json(parser)
    add_words(parser)


def handle(arguments: argparse.Namespace) -> int:
    command = words(arguments)
    if bool(arguments.pid) + arguments.all + bool(command) != 1:
        raise UsageError("Say whose folios: --pid, --all, or -- and a command.")
    argv = [_program(), *(f"--pid={pid}" for pid in arguments.pid), *(f"--cont={size}" for size in arguments.cont)]
    argv += [f"--{name}" for name in ("all", "text", "json") if getattr(arguments, name)]
    if command:
        argv += ["--run", "--", *command]
    sys.stdout.flush()
    # Python ignores it, and what is run now would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execv(argv[0], argv)


def _program() -> str:
    if not NATIVE.native:
        known = ", ".join(arch.machine for arch in ARCHITECTURES.values())
        raise UsageError(f"'folios' looks at machines of these kinds: {known}. This one is {platform.machine()}.")
    return str(guest_programs(NATIVE)["folios"])
