# SPDX-License-Identifier: GPL-2.0-only
"""Windows that files are to have whoever opens them, as files in a directory say: who has these open gets them.

A section is a policy: ``files`` has patterns of paths, a line each, and ``read_ahead_kb`` the window. ``*`` stays in a
directory, ``**`` does not. Of several policies that name a file the first counts.
"""

from __future__ import annotations

import configparser
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from foliohost.cures import Given, apply_to_open_files, still_given
from foliohost.devices import HostDevice, device_under
from foliohost.errors import FolioError, UsageError
from foliohost.processes import all_processes, start_time
from foliohost.state import Cure
from foliohost.taken import TooMany
from foliohost.windows import Closed, Descriptors, OpenFile, require_window

DIRECTORY = Path("/etc/foliolab-host.d")


@dataclass(frozen=True)
class Policy:
    name: str
    patterns: tuple[str, ...]
    read_ahead_kb: int

    def names(self, path: str) -> bool:
        return any(_matches(path.split("/"), pattern.split("/")) for pattern in self.patterns)


@dataclass(frozen=True)
class Named:
    """An open file that a policy names."""

    policy: Policy
    file: OpenFile
    device: HostDevice


def read_policies(directory: Path) -> list[Policy]:
    """Those of all files ``*.conf``, in their order; UsageError for what is none.

    Names that begin with a dot are left out: an editor has them beside what it edits.
    """
    found: list[Policy] = []
    for path in sorted(directory.glob("[!.]*.conf")):
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="")
        try:
            parser.read_string(path.read_text(), str(path))
            found += [_policy(name, parser[name]) for name in parser.sections()]
        except configparser.Error as error:
            raise UsageError(f"{path}: {_wrong(error)}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path} is no text.") from error
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
    return found


def _wrong(error: configparser.Error) -> str:
    """What is wrong with a file, in a sentence of ours."""
    if isinstance(error, configparser.DuplicateOptionError):
        return f"Line {error.lineno} gives '{error.option}' of [{error.section}] again."
    if isinstance(error, configparser.DuplicateSectionError):
        return f"Line {error.lineno} begins [{error.section}] again."
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"Line {error.lineno} is in no section; one such as [lmdb] has to come first."
    if isinstance(error, configparser.ParsingError) and error.errors:
        return f"Line {error.errors[0][0]} is no 'NAME = VALUE'."
    return " ".join(str(error).split())


def _policy(name: str, section: configparser.SectionProxy) -> Policy:
    if set(section) != {"files", "read_ahead_kb"}:
        raise UsageError(f"[{name}] has to have 'files' and 'read_ahead_kb', and nothing else.")
    patterns = tuple(filter(None, map(str.strip, section["files"].splitlines())))
    if not patterns or not all(pattern.startswith("/") for pattern in patterns):
        raise UsageError(f"[{name}] 'files' are patterns of whole paths, a line each.")
    text = section["read_ahead_kb"]
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"[{name}] 'read_ahead_kb' is a number, not '{text}'.")
    try:
        require_window(int(text))
    except UsageError as error:
        raise UsageError(f"[{name}] {str(error).replace('--read-ahead-kb', 'read_ahead_kb')}") from error
    return Policy(name, patterns, int(text))


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern names a path, both cut at their slashes. Paths can have thousands of parts."""
    places = _with_skipped({0}, pattern)
    for part in path:
        found = set()
        for place in places - {len(pattern)}:
            if pattern[place] == "**":
                found |= {place, place + 1}
            elif fnmatchcase(part, pattern[place]):
                found.add(place + 1)
        places = _with_skipped(found, pattern)
    return len(pattern) in places


def _with_skipped(places: set[int], pattern: Sequence[str]) -> set[int]:
    """Places in a pattern, and those behind each ``**`` that stands for nothing, as the last part cannot."""
    for place, part in enumerate(pattern[:-1]):
        if place in places and part == "**":
            places.add(place + 1)
    return places


def named_files(policies: Sequence[Policy]) -> list[Named]:
    """The files that processes have open and that a policy names, by the paths that the processes have for them.

    Those of file systems without a window are left out.
    """
    found: list[Named] = []
    for pid in all_processes() if policies else ():
        found += {each.file: each for each in _of_process(pid, policies)}.values()
    return found


def _of_process(pid: int, policies: Sequence[Policy]) -> Iterator[Named]:
    with suppress(FolioError, OSError):
        started = start_time(pid)
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                path = str(link.readlink())
                policy = next((policy for policy in policies if policy.names(path)), None)
                status = link.stat() if policy else None
                if not policy or not status or not stat.S_ISREG(status.st_mode):
                    continue
                if device := device_under(link, status):
                    yield Named(policy, OpenFile(path, pid, started, status.st_dev, status.st_ino), device)


def enforced(
    found: Iterable[Named], known: Mapping[tuple[object, ...], Cure], faults: list[tuple[Policy, FolioError]]
) -> Iterator[Given]:
    """Give open files the windows of their policies; those that have them already, of the cures ``known``, come first.

    A device has a window once for as many files as can be held at a time. What a policy cannot do keeps no other, and
    is added to ``faults``.
    """
    kept, told = [], Descriptors()
    groups: dict[tuple[Policy, Path], list[Named]] = {}
    for each in found:
        cure = known.get(each.file.key)
        if cure and still_given(cure, each.policy.read_ahead_kb, each.policy.name, told):
            kept.append(cure)
        else:
            groups.setdefault((each.policy, each.device.attribute), []).append(each)
    yield Given(tuple(kept), (), 0)
    waiting = list(groups.values())
    while waiting:
        some = waiting.pop(0)
        asked, half = some[0].policy, len(some) // 2
        try:
            given = apply_to_open_files([each.file for each in some], some[0].device, asked.read_ahead_kb, asked.name)
            faults += [(asked, fault) for fault in given.left_out]
            yield given
        except (Closed, UsageError):  # all of them were, meanwhile
            continue
        except FolioError as error:
            if isinstance(error, TooMany) and half:
                waiting[:0] = some[:half], some[half:]
            else:
                faults.append((asked, error))
