# SPDX-License-Identifier: GPL-2.0-only
"""Give a device, or one open file of a process, another readahead window, and put it back. Takes root."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from foliohost.called import called
from foliohost.cli.options import add_command, add_json, add_verbs
from foliohost.cures import Cure, applied, apply_to_device, apply_to_open_file, state_of, undo
from foliohost.devices import device_of
from foliohost.errors import UsageError
from foliohost.sizes import count
from foliohost.terminal import Column, print_table, terminal


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    verb = add_command(verbs, "apply", _apply.__doc__, _apply)
    _add_choice(verb)
    verb.add_argument(
        "--read-ahead-kb", type=int, metavar="KIB", required=True, help="the window; 0 reads single pages"
    )
    _add_choice(add_command(verbs, "undo", _undo.__doc__, _undo))
    add_json(add_command(verbs, "show", _show.__doc__, _show))


def _add_choice(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--device-of", metavar="FILE", type=Path, help="the device that holds FILE")
    verb.add_argument("--pid", type=int, help="the process that has --file open")
    verb.add_argument("--file", type=Path, help="the file that --pid has open")


def _apply(arguments: argparse.Namespace) -> int:
    """Set a window, and remember what was there. With --device-of, files that are opened from then on have it; with
    --pid and --file, what the process has open. Other files of the device that are opened in the moment of the latter
    inherit the window.

    example: sudo foliolab-host cure apply --pid 4711 --file /srv/db/data.mdb --read-ahead-kb 16
    """
    _require_one(arguments)
    if arguments.device_of:
        cure = apply_to_device(arguments.device_of, arguments.read_ahead_kb)
        print(
            f"{cure.device}: {cure.before_kb} -> {cure.read_ahead_kb} KiB, for files that are opened from now on."
            f" '{called()} cure undo' puts it back."
        )
    else:
        cure = apply_to_open_file(arguments.pid, arguments.file, arguments.read_ahead_kb)
        print(
            f"{cure.file}, as process {cure.pid} has it open: {cure.read_ahead_kb} KiB, until it is closed."
            f" Files of {cure.device} that others opened in this moment have that window, too."
        )
    return 0


def _undo(arguments: argparse.Namespace) -> int:
    """Put back what was set: all, or what the options name."""
    everything = not (arguments.device_of or arguments.pid is not None or arguments.file)
    if not everything:
        _require_one(arguments)
    found = False
    for cure, words in undo((lambda cure: True) if everything else _chosen(arguments)):
        found = True
        print(f"{_what(cure)}: {words}.")
    if not found:
        print(_nothing())
    return 0


def _nothing() -> str:
    found = "Nothing is applied."
    return found if os.geteuid() == 0 else f"{found} What root applied, 'sudo {called()} cure show' tells."


def _show(arguments: argparse.Namespace) -> int:
    """List what was set, and whether it still holds."""
    cures = applied()
    if arguments.json:
        print(json.dumps({"cures": [{**asdict(cure), "state": state_of(cure)} for cure in cures]}))
    elif cures:
        columns = [
            Column(("", "what"), tuple(map(_what, cures)), 0, left=True),
            Column(("window", "KiB"), tuple(count(cure.read_ahead_kb) for cure in cures), 0),
            Column(("before", "KiB"), tuple(count(cure.before_kb) for cure in cures), 0),
            Column(("", "state"), tuple(map(state_of, cures)), 0, left=True),
        ]
        print_table(terminal(), columns)
    else:
        print(_nothing())
    return 0


def _require_one(arguments: argparse.Namespace) -> None:
    whole = arguments.device_of is not None
    if whole == (arguments.pid is not None) or (arguments.pid is None) != (arguments.file is None):
        raise UsageError("Say what to cure: --device-of FILE, or --pid P with --file FILE.")


def _chosen(arguments: argparse.Namespace) -> Callable[[Cure], bool]:
    if arguments.device_of:
        attribute = str(device_of(arguments.device_of).attribute)
        return lambda cure: cure.pid is None and cure.attribute == attribute
    place = str(arguments.file.absolute())
    return lambda cure: cure.pid == arguments.pid and cure.file == place


def _what(cure: Cure) -> str:
    return cure.device if cure.pid is None else f"{cure.file} in process {cure.pid}"
