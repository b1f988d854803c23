# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what there is, and what is run."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from foliohost.cli.ending import run_command

_GROUPS = {
    "Start": {
        "demo": "what sparse access reads before and after, modelled and measured",
        "doctor": "what this machine can do, and the cure for what is missing",
        "test": "check style and types, then run all tests",
    },
    "Measure kernels": {
        "measure": "measure an experiment",
        "compare": "which workloads a kernel or a variant makes worse, the worst first",
        "kselftest": "run the kernel's mm selftests, LTP, stress-ng or trinity",
        "exec": "run a program of your own in a guest",
        "shell": "a prompt on our kernel, with the host's files",
    },
    "Look at results": {
        "report": "tables of what was measured, beside what was published",
        "bundle": "pack an experiment for a machine that measures by itself",
        "merge": "add what was measured elsewhere",
        "reproduce": "measure all that is behind the figures of README and docs",
        "export-case": "write one case as C and shell, for any Linux",
        "docs": "make a site of the documents, to read in a browser",
    },
    "Simulate": {
        "simulate": "compare ways to read with the best fixed window",
        "trace": "record which pages a program touches, and replay that",
    },
    "Build": {
        "kernel": "build, package, compile, import and release kernels",
        "module": "the adaptive window as a module for Debian's kernels",
    },
    "On this machine": {
        "diagnose": "how much of mapped files is read per byte used, and what helps",
        "cure": "set another readahead window, and put it back",
        "probe": "what a request and a page cost on the disk under a file",
        "record": "which pages of files a program touches, by tracepoints",
        "folios": "in which folios programs have files mapped",
    },
}
"""What people want to do, and the commands for it; each is a module."""
COMMANDS = tuple(name for group in _GROUPS.values() for name in group)
_OF_HOST = ("diagnose", "cure", "probe", "record")
"""Those of these that are the host's tools."""
_RESUMED = ("demo", "measure", "compare", "simulate", "reproduce", "kselftest")
_RENAMED = {
    "run": "'measure'",
    "regress": "'compare'",
    "regret": "'simulate'",
    "ltp": "'kselftest --suite ltp'",
    "stress": "'kselftest --suite stress-ng'",
    "bisect": "'git bisect run' with 'compare', as docs/user-guide.md shows",
    "kernel export": "'git am' with a mailbox of release/",
    "kernel config": "the file 'config' in the kernel's directory below ~/.cache/foliolab/kernels",
    "trace record --live": "'record'",
    "trace info": "'head --lines=2' of the trace, which begins with JSON",
    "kernel list": "the files 'kernel.json' below ~/.cache/foliolab/kernels",
}
"""How commands of earlier versions begin, and what does their work."""
_OF_ITSELF = ("--version", "--manual", "--completion")
"""What it tells of itself: its version, a manual page for man, and a script for bash."""
_KEPT = "Interrupted; what was measured is kept, and the same command goes on from there."


def command_line(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands. Their modules are imported, which takes time."""
    from foliolab.cli.options import add_module

    top = argparse.ArgumentParser(prog="./lab", epilog="'./lab --help' tells what they are for.")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        package = "foliohost" if name in _OF_HOST else "foliolab"
        parser = add_module(commands, name, import_module(f"{package}.cli.{name.replace('-', '_')}"))
        if name in _RESUMED:
            parser.set_defaults(interrupted=_KEPT)
    return top


def overview() -> str:
    """All commands, grouped by task, as a screen has room for them."""
    lines = ["usage: ./lab COMMAND ..."]
    for title, commands in _GROUPS.items():
        lines += [f"{title}:", *(f"  {name:12}{words}" for name, words in commands.items())]
    return "\n".join([*lines, "./lab COMMAND --help tells more, and ./lab --version what this is."])


def main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(overview(), file=sys.stdout if argv else sys.stderr)
        return 0 if argv else 2
    if argv[0] in _OF_ITSELF:
        from foliolab.cli import described

        print(getattr(described, argv[0].lstrip("-"))(), end="")
        return 0
    for called in (" ".join(argv[:words]) for words in (1, 2, 3)):
        if called in _RENAMED:
            print(f"lab: '{called}' is now {_RENAMED[called]}.", file=sys.stderr)
            return 2
    return run_command("lab", lambda: command_line([argv[0]] if argv[0] in COMMANDS else COMMANDS).parse_args(argv))
