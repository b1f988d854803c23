# SPDX-License-Identifier: GPL-2.0-only
"""Which tests a change touches, by where files lie: those beside a file's name, else those of its directory.

That is a quick look before a commit. What a change breaks elsewhere is found by all of the tests.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from foliolab.errors import LabError
from foliolab.files import REPOSITORY
from foliolab.process import git

QUICK = "not boot and not debug"
"""What pytest is to select: tests that neither build nor boot a kernel."""
_DOCUMENTS = ("tests/test_documents.py", "tests/test_commands.py")
_NEEDS = ("tests/test_needs.py",)
_ROOMS = {
    "device": "tests/test_device.py",
    "experiments": "tests/experiment",
    "guest": "tests/guest",
    "host": "tests/host",
    "model": "tests/model",
    "module": "tests/kernel",
    "traces": "tests/trace",
}
"""Where the tests of a directory are, if it is not in foliolab/."""
_LONG = {"tests/cli": "tests/cli/test_failures.py"}
"""What stands for a directory whose tests take minutes."""
_MORE = {
    "docs/": _DOCUMENTS,
    "foliolab/": ("tests/test_architecture.py",),
    "foliolab/cli/": ("tests/test_commands.py",),
    "host/": ("tests/test_architecture.py",),
    "kernel/": ("tests/kernel",),
    "kernel/files/include/linux/mmap_readahead": ("tests/model",),
    "kernel/files/mm/mmap_readahead_window": ("tests/model",),
    "lab": _NEEDS,
    "packages.txt": _NEEDS,
    "release/": (*_DOCUMENTS, "tests/kernel/test_release.py", "tests/reproduce"),
    "requirements/": _NEEDS,
}
"""What is tested as well if a path begins so."""


def changed_files(repository: Path = REPOSITORY) -> list[str]:
    """What differs from where the branch left main, or from the last commit on main, committed or not."""

    def listed(*arguments: str) -> list[str]:
        return git(LabError, *arguments, "-z", place=repository).decode(errors="surrogateescape").split("\0")

    try:
        base = git(LabError, "merge-base", "HEAD", "main", place=repository).decode().strip()
    except LabError:  # a clone of another branch
        base = "HEAD"
    new = listed("ls-files", "--others", "--exclude-standard")
    return sorted({*listed("diff", "--name-only", "--no-renames", base), *new} - {""})


def beside(files: list[str]) -> list[str]:
    """Test files and directories of tests that a change of ``files`` touches, each once."""
    found = {test for file in files for test in _tests_of(PurePosixPath(file))}
    return sorted(test for test in found if not any(str(place) in found for place in PurePosixPath(test).parents))


def _tests_of(file: PurePosixPath) -> Iterator[str]:
    top, *rest = file.parts
    if file.suffix == ".md":
        yield from _DOCUMENTS
    for prefix, tests in _MORE.items():
        if str(file).startswith(prefix):
            yield from tests
    if top == "tests":
        yield from _of_test_code(file)
    elif top != "foliolab":
        yield from _near(_ROOMS[top], file) if top in _ROOMS else ()
    elif len(rest) > 1:
        yield from _near(f"tests/{rest[0]}", file)
    else:
        yield from _named("tests", file.stem)


def _of_test_code(file: PurePosixPath) -> Iterator[str]:
    """A test file itself if it is still there; for what several share, all of their directory."""
    if file.name.startswith("test_"):
        if (REPOSITORY / file).exists():
            yield str(file)
    elif len(file.parts) > 2:
        yield from _all_of(f"tests/{file.parts[1]}")


def _near(room: str, file: PurePosixPath) -> Iterator[str]:
    """Tests in ``room`` with the name of the file or of a directory that it is in; all of ``room`` if there is none."""
    for name in (file.stem, *(place.name for place in file.parents)):
        if name and (tests := list(_named(room, name.replace("-", "_")))):
            yield from tests
            return
    yield from _all_of(room)


def _all_of(room: str) -> Iterator[str]:
    if (REPOSITORY / room).exists():
        yield _LONG.get(room, room)


def _named(room: str, name: str) -> Iterator[str]:
    for pattern in (f"test_{name}.py", f"test_{name}_*.py"):
        yield from (test.relative_to(REPOSITORY).as_posix() for test in (REPOSITORY / room).glob(pattern))
