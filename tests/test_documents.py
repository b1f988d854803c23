# SPDX-License-Identifier: GPL-2.0-only
"""The documents for people: short enough to be read, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from foliolab.paths import REPOSITORY

README = REPOSITORY / "README.md"
DOCUMENTS = [README, *sorted((REPOSITORY / "docs").glob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
LIMITS = {"README.md": 700, "docs/results.md": 3000, "docs/findings.md": 2300, "docs/window.md": 2850}


def prose(text: str) -> str:
    """What is read: no targets of links, no comments."""
    return re.sub(r"<!--.*?-->", "", _LINK.sub("]", text), flags=re.DOTALL)


def count_words(text: str) -> int:
    """Also those in tables and of code, but no signs that stand by themselves."""
    return sum(any(character.isalnum() for character in word) for word in re.split(r"[\s|]+", prose(text)))


def anchors(file: Path) -> set[str]:
    """Those that GitHub gives to headings."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        kept = re.sub(r"[^\w\- ]", "", prose(title).lower()).replace(" ", "-")
        found.add(next(name for name in (kept, *(f"{kept}-{n}" for n in range(1, 99))) if name not in found))
    return found


def broken_links(document: Path) -> list[str]:
    broken = []
    for target in _LINK.findall(document.read_text()):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (document.parent / path).resolve() if path else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("name", LIMITS)
def test_short_enough(name: str) -> None:
    assert count_words((REPOSITORY / name).read_text()) <= LIMITS[name]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    assert broken_links(document) == []


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A *title*, with `code`\n```\n# no title\n```\n## Twice\n## Twice\n")
    good = ["there.md", "there.md#a-title-with-code", "there.md#twice-1", "https://example.org/x", "#mine"]
    bad = ["gone.md", "there.md#no-title", "#yours"]
    document = tmp_path / "links.md"
    document.write_text("# Mine\n" + " ".join(f"[text]({target})" for target in good + bad))
    assert broken_links(document) == bad


def test_words() -> None:
    assert count_words("<!-- not this -->\n| one | [two three](http://not/this) |\n| --- | ---: |\n→ `four five`") == 5
