# SPDX-License-Identifier: GPL-2.0-only
"""The site of the documents: it is built, has them all, needs no network, and its links lead somewhere."""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from foliolab import site
from foliolab.cli.described import manual
from foliolab.cli.main import COMMANDS
from foliolab.errors import LabError, UsageError
from foliolab.files import REPOSITORY
from tests.test_documents import DOCUMENTS

_TAKEN = {"link", "script", "img", "iframe", "source", "use"}
"""Elements whose targets a browser fetches by itself."""


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {values.get("id") or ""}
        targets = {target for name in ("href", "src", "xlink:href") if (target := values.get(name))}
        self.links |= targets
        if tag in _TAKEN:
            self.fetched |= targets


def _dead(place: Path, pages: dict[Path, _Page]) -> list[str]:
    """Links of the page ``place`` that lead to no file or anchor of the site."""
    dead = []
    for link in pages[place].links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        file = (place.parent / unquote(parts.path)).resolve() if parts.path else place
        there = file.is_file() and (file not in pages or unquote(parts.fragment) in pages[file].anchors)
        if not there:
            dead.append(f"{place.name}: {link}")
    return dead


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, _Page]:
    """The pages of the site, by their files."""
    target = tmp_path_factory.mktemp("built") / "site"
    target.mkdir()
    for name in (".foliolab-site", "older.html"):  # a site of before
        (target / name).touch()
    site.build_site(target, manual())
    assert not (target / "older.html").exists()
    # A server shows its 404 page under any address, so its links begin at the root.
    files = [file for file in target.rglob("*.html") if file.name != "404.html"]
    return {file: _Page(file.read_text()) for file in files}


def test_all_links_and_anchors_lead_somewhere(built: dict[Path, _Page]) -> None:
    assert [link for place in built for link in _dead(place, built)] == []
    assert sum(len(page.links) for page in built.values()) > 1000


def test_every_document_is_a_page(built: dict[Path, _Page]) -> None:
    (root,) = {file.parent for file in built if (file.parent / "search").is_dir()}
    names = {file.relative_to(root).as_posix() for file in built}
    documents = [file.relative_to(REPOSITORY).with_suffix(".html").as_posix() for file in DOCUMENTS]
    assert [name for name in documents if re.sub(r"\bREADME\.", "index.", name) not in names] == []


def test_commands_are_a_page(built: dict[Path, _Page]) -> None:
    (page,) = (page for file, page in built.items() if file.name == "commands.html")
    assert set(COMMANDS) <= page.anchors


def test_nothing_comes_from_elsewhere(built: dict[Path, _Page]) -> None:
    assert [link for page in built.values() for link in page.fetched if urlsplit(link).netloc] == []
    (root,) = {file.parent for file in built if (file.parent / "search").is_dir()}
    for style in root.rglob("*.css"):
        assert re.findall(r"@import|url\(['\"]?(?:https?:)?//", style.read_text()) == []


def test_marks_of_tables_and_markdown_do_not_show(built: dict[Path, _Page]) -> None:
    for file in built:
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", file.read_text(), flags=re.DOTALL)
        assert "!-- foliolab:" not in text
        assert re.findall(r"<p>\||\| ---|\*\*\w|\]\(", text) == [], file.name
    # GitHub nests a list that is indented by less, and the site would not.
    assert [file for file in DOCUMENTS if re.search(r"^ {1,3}(?:[-*]|\d+\.) ", file.read_text(), re.MULTILINE)] == []


def test_a_dead_link_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/site.css").touch()
    shutil.copy(REPOSITORY / "docs/site.yml", tmp_path / "docs/site.yml")
    (tmp_path / "README.md").write_text("# One\n\n[map](docs/README.md) [gone](gone.md)\n")
    (tmp_path / "docs/README.md").write_text("# Map\n\n[one](../README.md#two)\n")
    monkeypatch.setattr(site, "REPOSITORY", tmp_path)
    with pytest.raises(LabError, match=r"'gone\.md'.*'\.\./README\.md#two'"):
        site.build_site(tmp_path / "site", "")
    assert not (tmp_path / "site").exists()


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    (tmp_path / "theirs/search").mkdir(parents=True)
    (tmp_path / "theirs/search/search_index.json").touch()
    (tmp_path / "link").symlink_to("theirs")
    for target in (tmp_path, tmp_path / "mine", tmp_path / "theirs", tmp_path / "link"):
        with pytest.raises(UsageError, match="has something else in it"):
            site.build_site(target, "")
    assert (tmp_path / "mine").exists()
