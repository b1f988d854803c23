# SPDX-License-Identifier: GPL-2.0-only
"""The packages of the lab import each other as docs/architecture.md says, and their modules are short."""

import ast
import re
from collections import Counter
from pathlib import Path

from foliolab import process
from foliolab.errors import LabError
from foliolab.files import REPOSITORY

DOCUMENT = REPOSITORY / "docs/architecture.md"
LAB = REPOSITORY / "foliolab"
HOST = REPOSITORY / "host/foliohost"
PACKAGES = {path.parent.name for path in LAB.glob("*/__init__.py")}
LONGEST_MODULE = 300
"""Lines."""


def arrows() -> dict[str, set[str]]:
    """What each package may import, the highest first."""
    _, _, section = DOCUMENT.read_text().partition("\n## Imports\n")
    block = section.split("```")[1]
    found = {name: set(re.findall(r"\w+", others)) for name, others in re.findall(r"(\w+) +──>(.*)", block)}
    return {name: set(found) - {name} if others == {"everything"} else others for name, others in found.items()}


def imported(file: Path) -> set[str]:
    """The packages that a module imports, also its own."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} imports relative to itself"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("foliolab.")} & PACKAGES


def test_imports_are_the_arrows() -> None:
    found = {name: set[str]().union(*map(imported, (LAB / name).rglob("*.py"))) - {name} for name in PACKAGES}
    assert found == arrows()


def test_every_arrow_leads_down() -> None:
    order = list(arrows())
    assert [(name, other) for name in order for other in arrows()[name] if order.index(other) < order.index(name)] == []


def test_modules_for_all_import_no_package() -> None:
    assert {file.name: names for file in LAB.glob("*.py") if (names := imported(file))} == {"__main__.py": {"cli"}}


def test_the_diagram_names_packages_and_places_that_are_there() -> None:
    diagram = DOCUMENT.read_text().split("```")[1]
    named = {name for names in re.findall(r"──> ([a-z][a-z, ]*[a-z])(?![:/])\b", diagram) for name in names.split(", ")}
    assert named - PACKAGES == {"store"}
    places = re.findall(r"[a-z]+/[\w.*]*", diagram)
    assert places
    assert [place for place in places if not list(REPOSITORY.glob(place))] == []


def test_every_directory_has_a_row() -> None:
    tracked = process.run(["git", "ls-files"], LabError, cwd=REPOSITORY).decode().splitlines()
    places = {file.partition("/")[0] for file in tracked if "/" in file} | {f"foliolab/{name}" for name in PACKAGES}
    _, _, section = DOCUMENT.read_text().partition("\n## Where things live\n")
    cells = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert [name for name in sorted(places) if not any(f"`{name}/" in cell for cell in cells)] == []


def test_modules_are_short() -> None:
    lines = {file: len(file.read_text().splitlines()) for place in (LAB, HOST) for file in place.rglob("*.py")}
    assert {file: count for file, count in lines.items() if count > LONGEST_MODULE} == {}


def test_every_type_has_a_name_of_its_own() -> None:
    named = re.compile(r"^ *class (\w+)|^([A-Z][a-z]\w*) = ", re.MULTILINE)
    files = [file for place in (LAB, HOST) for file in place.rglob("*.py")]
    times = Counter("".join(found) for file in files for found in named.findall(file.read_text()))
    assert [name for name, number in times.items() if number > 1] == []
