# SPDX-License-Identifier: GPL-2.0-only
"""A plugin of pytest that leaves out test files that passed, if nothing that they may use has changed since.

What a file may use is what it imports, and what that imports, which for a command is all of the lab; and what else is
in the repository, but documents only if it may make them. What is cached or installed elsewhere is taken for the same.
"""

import ast
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from foliolab.files import REPOSITORY, digest

_PASSED = "foliolab/passed"
"""Of pytest's cache: the digest with which each file passed last."""
_DOCUMENTS = ("docs/", "release/", "README.md")
_LAB = REPOSITORY / "foliolab"
_HOST = REPOSITORY / "host/foliohost"
_COMMANDS = {_LAB / "cli/main.py": _LAB, _HOST / "cli/main.py": _HOST}
"""They import each command of theirs by its name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--changed", action="store_true", help="leave out files of which nothing changed since they passed"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Before anything runs: what is edited meanwhile was not tested. A process of pytest-xdist's records nothing.
    tests = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    needed = config.getoption("changed") or not hasattr(config, "workerinput")
    digests = {_name(file): digest_of(file) for file in tests} if needed else {}
    config.pluginmanager.register(_Unchanged(config, digests))


class _Unchanged:
    def __init__(self, config: pytest.Config, digests: dict[str, str]) -> None:
        self._digests = digests
        self._passed: dict[str, str] = config.cache.get(_PASSED, {}) if config.cache else {}
        self._ran: set[str] = set()
        self._failed: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if not config.getoption("changed"):
            return
        same = {name for name, digest in self._digests.items() if self._passed.get(name) == digest}
        kept = [item for item in items if _name(item.path) not in same]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("::")[0]
        self._ran.add(name)
        if report.failed:
            self._failed.add(name)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not session.shouldfail
        if whole and session.config.cache and not hasattr(session.config, "workerinput"):
            ran = {name: self._digests[name] for name in self._ran - self._failed}
            kept = {name: digest for name, digest in self._passed.items() if name not in self._failed}
            session.config.cache.set(_PASSED, kept | ran)


def digest_of(test: Path) -> str:
    """Of all that the test file may use, the environment that chooses what runs included."""
    modules = _used(test)
    used = {*_tracked()}
    if "REPOSITORY" not in test.read_text():  # a test that names it may read anything there
        used = {file for file in used if file.suffix != ".py"} | modules
        if not any(_name(module).startswith("foliolab/reproduce/") for module in modules):
            used = {file for file in used if not _name(file).startswith(_DOCUMENTS)}
    chosen = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("FOLIOLAB_")]
    return digest([*chosen, *(part for file in sorted(used) for part in (_name(file), _content(file)))])


def _used(test: Path) -> set[Path]:
    """The modules that it imports, and those that they do, with the test's conftest.py."""
    waiting = [test, *(place / "conftest.py" for place in test.parents if (place / "conftest.py").is_file())]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += [*_imported(file), *(sorted(_COMMANDS[file].rglob("*.py")) if file in _COMMANDS else ())]
    return found


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    """Modules of the repository that a module imports anywhere, or runs as a command."""
    return tuple(path for name in _names(ast.parse(file.read_bytes())) for path in _files(name))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.List | ast.Tuple):
            words = [str(word.value) if isinstance(word, ast.Constant) else "" for word in node.elts]
            run = [name for option, name in pairwise(words) if option == "-m"]
            yield from (*run, *(f"{name}.__main__" for name in run))


def _files(name: str) -> Iterator[Path]:
    """Of a module or package of the repository, and of the packages that it is in."""
    top = name.partition(".")[0]
    if top not in ("foliolab", "foliohost", "tests"):
        return
    path = (_HOST.parent if top == "foliohost" else REPOSITORY).joinpath(*name.split("."))
    packages = [place for place in (path, *path.parents) if place.is_relative_to(REPOSITORY)]
    places = (path.with_suffix(".py"), *(place / "__init__.py" for place in packages))
    yield from (place for place in places if place.is_file())


@cache
def _tracked() -> tuple[Path, ...]:
    """What is in the repository, or is new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    return tuple(path for name in listed.split("\0") if name and (path := REPOSITORY / name).is_file())


@cache
def _content(file: Path) -> str:
    return digest([file.read_bytes()])


def _name(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()
