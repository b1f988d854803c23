# SPDX-License-Identifier: GPL-2.0-only
"""Give a device, or open files, another readahead window, and put it back. Takes root."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foliohost import policy
from foliohost.called import called
from foliohost.cli.options import add_command, add_json, add_verbs
from foliohost.cures import Given, apply_to_device, apply_to_open_files, forget_ended, require_machine, state_of, undo
from foliohost.devices import device_of
from foliohost.errors import FolioError, NoCure, UsageError
from foliohost.sizes import count
from foliohost.state import Cure, applied, named, restore
from foliohost.terminal import Column, print_table, printable, terminal
from foliohost.windows import Descriptors, open_anywhere, open_in, require_heeded, require_window


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    verb = add_command(verbs, "apply", _apply.__doc__, _apply)
    _add_choice(verb)
    text = "the window; 0 reads single pages"
    verb.add_argument("--read-ahead-kb", type=int, metavar="KIB", required=True, help=text)
    add_json(verb)
    verb = add_command(verbs, "undo", _undo.__doc__, _undo)
    _add_choice(verb)
    add_json(verb)
    add_json(add_command(verbs, "show", _show.__doc__, _show))
    verb = add_command(verbs, "enforce", _enforce.__doc__, _enforce)
    text = f"default: {policy.DIRECTORY}"
    verb.add_argument("--policies", metavar="DIR", type=Path, default=policy.DIRECTORY, help=text)
    verb.add_argument("--dry-run", action="store_true", help="tell what would be set, and set nothing")
    add_json(verb)
    add_json(add_command(verbs, "restore", _restore.__doc__, _restore))


def _add_choice(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--device-of", metavar="FILE", type=Path, help="the device that holds FILE")
    verb.add_argument("--file", type=Path, help="this file, in all processes that have it open")
    verb.add_argument("--pid", type=int, help="the file in this process alone")


def _apply(arguments: argparse.Namespace) -> int:
    """Set a window, and remember what was there. With --device-of, files that are opened from then on have it; with
    --file, what processes have open now, until they close it. Other files keep theirs: the device has the window for a
    moment, and what others open in it gets the device's own again.

    example: sudo foliolab-host cure apply --file /srv/db/data.mdb --read-ahead-kb 16
    """
    _require_one(arguments)
    require_window(arguments.read_ahead_kb)
    require_machine()
    tell_restored()
    if arguments.device_of:
        cure = apply_to_device(arguments.device_of, arguments.read_ahead_kb)
        if arguments.json:
            return _print_json(cures=_with_states([cure]))
        print(
            f"{cure.device}: {cure.before_kb} -> {cure.read_ahead_kb} KiB, for files that are opened from now on."
            f" '{called()} cure undo' puts it back."
        )
        return 0
    file, pid = arguments.file, arguments.pid
    device = device_of(file)
    files = open_anywhere(file) if pid is None else [open_in(pid, file)]
    if not files:
        raise NoCure(
            f"No process has {file} open; those that have closed it after mapping it cannot be given a window."
        )
    require_heeded(files)
    given = apply_to_open_files(files, device, arguments.read_ahead_kb)
    if arguments.json:
        _print_json(**_given_json([given]))
    else:
        _print_given(file, given)
    return _status([(str(fault), fault) for fault in given.left_out])


def _print_given(file: Path, given: Given) -> None:
    for before_kb, after_kb in sorted({(cure.before_kb, cure.read_ahead_kb) for cure in given.cures}):
        pids = [str(cure.pid) for cure in given.cures if cure.before_kb == before_kb]
        where = f"process{'es' if len(pids) > 1 else ''} {', '.join(pids)}"
        print(f"{file} in {where}: {before_kb} -> {after_kb} KiB, until it is closed.")
    print(
        f"'{called()} cure undo' puts back the device's window before the cure: the kernel does not tell a file's own."
    )
    _tell_opened(given)


def _undo(arguments: argparse.Namespace) -> int:
    """Put back what was set: all, or what the options name, in whatever order. Each device gets the window that it had
    before any cure. An open file gets what its device had then, because its own cannot be read.
    """
    everything = not (arguments.device_of or arguments.pid is not None or arguments.file)
    if not everything:
        _require_one(arguments)
    tell_restored()
    undone: list[tuple[Cure, str]] = []
    try:
        # All of it before a word: whoever reads these may have gone.
        undone.extend(undo((lambda cure: True) if everything else _chosen(arguments)))
    finally:
        _print_undone(undone, arguments.json)
    if not (undone or arguments.json):
        print("Nothing is applied.")
    return 0


def _print_undone(undone: Iterable[tuple[Cure, str]], as_json: bool) -> None:
    if as_json:
        _print_json(cures=[{**asdict(cure), "result": words, "note": _note(cure, words)} for cure, words in undone])
        return
    for cure, words in undone:
        print(printable(f"{_what(cure)}: {words}. {_note(cure, words)}".rstrip()))


def _note(cure: Cure, words: str) -> str:
    """What else is to be known of a cure that was undone."""
    if cure.policy:
        return f"Policy '{cure.policy}' gives it {cure.read_ahead_kb} KiB again when it is enforced."
    if cure.pid is None and words.startswith("back"):
        return (
            f"Files that were opened meanwhile keep {cure.read_ahead_kb} KiB until they are closed, or until"
            f" '{called()} cure apply --file FILE --read-ahead-kb {cure.before_kb}'."
        )
    return ""


def _show(arguments: argparse.Namespace) -> int:
    """List what was set, and whether it still holds."""
    tell_restored()
    cures = applied()
    if arguments.json:
        return _print_json(cures=_with_states(cures))
    if cures:
        told = Descriptors()
        columns = [
            Column(("", "what"), tuple(map(_what, cures)), 0, left=True),
            Column(("window", "KiB"), tuple(count(cure.read_ahead_kb) for cure in cures), 0),
            Column(("before", "KiB"), tuple(count(cure.before_kb) for cure in cures), 0),
            Column(("", "policy"), tuple(cure.policy or "-" for cure in cures), 1, left=True),
            Column(("", "state"), tuple(state_of(cure, told) for cure in cures), 0, left=True),
        ]
        print_table(terminal(), columns)
    else:
        print("Nothing is applied.")
    return 0


def _enforce(arguments: argparse.Namespace) -> int:
    """Give the files that policies name, in all processes that have them open now, their windows. A policy is a section
    of a file DIR/NAME.conf with files = PATTERN and read_ahead_kb = KIB. Meant for a timer.

    example: sudo foliolab-host cure enforce --dry-run
    """
    found = policy.named_files(policy.read_policies(arguments.policies))
    if arguments.dry_run:
        return _print_found(found, arguments.json)
    require_machine()
    tell_restored()
    if found or applied():
        forget_ended()
    known = {cure.key: cure for cure in applied()}
    faults: list[tuple[policy.Policy, FolioError]] = []
    results = list(policy.enforced(found, known, faults))
    if arguments.json:
        _print_json(**_given_json(results))
    else:
        _print_enforced(results, known)
    return _status([(f"Policy '{asked.name}': {fault}", fault) for asked, fault in faults])


def _print_enforced(results: Iterable[Given], known: Collection[tuple[object, ...]]) -> None:
    """Tell of those that are new, and how many there are."""
    number = 0
    for given in results:
        number += len(given.cures)
        for cure in given.cures:
            if cure.key not in known:
                print(_asked(_what(cure), cure.read_ahead_kb, cure.policy))
        _tell_opened(given)
    print(f"{number} open file{' has' if number == 1 else 's have'} the window of a policy.")


def _status(faults: Collection[tuple[str, FolioError]]) -> int:
    """Tell what could not be set beside what was; the exit status is that of the first."""
    for sentence in dict.fromkeys(sentence for sentence, _ in faults):
        print(printable(sentence), file=sys.stderr)
    return next((fault.status for _, fault in faults), 0)


def _print_found(found: Iterable[policy.Named], as_json: bool) -> int:
    if as_json:
        return _print_json(files=[{**asdict(each.file), **asdict(each.policy)} for each in found])
    for each in found:
        print(_asked(named(each.file), each.policy.read_ahead_kb, each.policy.name))
    return 0


def _asked(what: str, read_ahead_kb: int, name: str) -> str:
    return printable(f"{what}: {read_ahead_kb} KiB (policy '{name}').")


def _restore(arguments: argparse.Namespace) -> int:
    """Put back what a command left that was killed; all other commands of 'cure', and 'diagnose', do that as well."""
    words: list[str] = []
    try:
        restore(words)
    finally:
        if arguments.json:
            _print_json(restored=words)
        else:
            print(*map(printable, words), sep="\n", end="\n" if words else "")
    return 0


def tell_restored() -> None:
    """Put back what a killed command left, and tell of it where it does not get into our output."""
    words: list[str] = []
    told: list[str] = []
    try:
        restore(words)
    except FolioError as error:
        told = [f"Of what a killed command left, this cannot be put back: {error}"]
    for sentence in [*(f"A command was killed: {each}" for each in words), *told]:
        print(printable(sentence), file=sys.stderr)


def _tell_opened(given: Given) -> None:
    if given.opened is None and given.moment_us:
        print(
            "The kernel does not tell what others opened in this moment: that has the same window, until it is closed."
        )
    for other in given.opened or ():
        became = (
            "has the device's own window again" if other.given_back else "keeps that window: its descriptor is closed"
        )
        print(printable(f"{other.path} was opened by process {other.pid} in this moment, and {became}."))


def _given_json(results: Iterable[Given]) -> dict[str, Any]:
    found = list(results)
    opened = [asdict(other) for given in found for other in given.opened or ()]
    return {
        "cures": _with_states(cure for given in found for cure in given.cures),
        "opened": opened if all(given.opened is not None for given in found) else None,
        "moment_us": max((given.moment_us for given in found), default=0),
    }


def _with_states(cures: Iterable[Cure]) -> list[dict[str, Any]]:
    told = Descriptors()
    return [{**asdict(cure), "state": state_of(cure, told)} for cure in cures]


def _print_json(**content: Any) -> int:
    print(json.dumps(content))
    return 0


def _require_one(arguments: argparse.Namespace) -> None:
    whole = arguments.device_of is not None
    if whole == (arguments.file is not None) or (arguments.pid is not None and arguments.file is None):
        raise UsageError("Say what to cure: --device-of FILE, or --file FILE, with --pid P in one process alone.")


def _chosen(arguments: argparse.Namespace) -> Callable[[Cure], bool]:
    if arguments.device_of:
        attribute = str(device_of(arguments.device_of).attribute)
        return lambda cure: cure.pid is None and cure.attribute == attribute
    place, pid = arguments.file.absolute(), arguments.pid
    try:
        status = place.stat()
        file = (status.st_dev, status.st_ino)
    except OSError:  # it was removed, and is open still
        file = (0, 0)
    return lambda cure: (
        cure.pid is not None
        and pid in (None, cure.pid)
        and (cure.file == str(place) or (cure.number, cure.inode) == file)
    )


def _what(cure: Cure) -> str:
    return cure.device if cure.pid is None else named(cure.open_file)
