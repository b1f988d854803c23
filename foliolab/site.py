# SPDX-License-Identifier: GPL-2.0-only
"""The documents as a site: the same files as pages, and nothing that comes from a network.

A document is a page of it if links lead there from README.md. What else they lead to is in the site as text.
"""

import io
import logging
import os
import re
import shutil
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from foliolab.errors import LabError, UsageError
from foliolab.files import REPOSITORY, emptied

_START = Path("README.md")
_MAP = Path("docs/README.md")
_COMMANDS = Path("docs/commands.md")
"""A page that only the site has."""
_STYLE = Path("docs/site.css")
_SETTINGS = Path("docs/site.yml")
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
"""The file that a link leads to, if it is one of ours."""
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ROW = re.compile(r"^\| \[(.+?)\]\((.+?)\) \|", re.MULTILINE)
_AS_THEY_ARE = (".md", ".svg", ".mbox")
"""Files that keep their names. Browsers show others only as .txt."""
_MARK = Path(".foliolab-site")
"""A file that each of our sites has, and no other."""


def build_site(target: Path, manual: str) -> None:
    """Build the site in the directory ``target``, which is new, empty, or a site of before; LabError for a dead link.

    What was there stays until the new site is whole. ``manual`` is the page for man, which the site has as well.
    """
    target = target.resolve()
    if target.exists() and not (target / _MARK).exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} has something else in it: give --build the name of a new directory.")
    with TemporaryDirectory() as staged, emptied(target.with_name(f".{target.name}.partial")) as half:
        for name, content in {**_contents(), _COMMANDS: _of_man(manual).encode()}.items():
            file = Path(staged, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _render(Path(staged), half)
        (half / _MARK).touch()
        shutil.rmtree(target, ignore_errors=True)
        half.rename(target)


def _contents() -> dict[Path, bytes]:
    """What the site is made of, by names in it."""
    contents = {_STYLE: (REPOSITORY / _STYLE).read_bytes()}
    waiting = [_START]
    while waiting:
        place = waiting.pop()
        name = _name(place)
        if name in contents or not (REPOSITORY / place).exists():
            continue
        if name.suffix != ".md":
            contents[name] = (REPOSITORY / place).read_bytes()
            continue
        text = _text(name)
        waiting += [_place(name, link) for link in _LINK.findall(text)]
        contents[name] = _LINK.sub(partial(_named, name), text).encode()
    return contents


def _text(document: Path) -> str:
    """A document without comments. That of a directory which has none lists its files."""
    file = REPOSITORY / document
    if file.exists():
        return _COMMENT.sub("", file.read_text())
    files = sorted(file.parent.iterdir())
    return f"# {document.parent}\n\n" + "".join(f"- [{each.name}]({each.name})\n" for each in files)


def _of_man(manual: str) -> str:
    """A page for man as a document: commands are headings, and options items of lists."""
    lines = ["# Commands"]
    for line in re.sub(r"\\f[IR]|\\&", "", manual).replace("\\-", "-").replace("\\e", "\\").splitlines():
        kind, _, words = line.partition(" ")
        if kind == ".SH":
            lines += ["", f"## {words.capitalize()}", ""]
        elif kind == ".SS":
            lines += ["", f"### {words.partition(' [')[0]}", "", f"`{words}`", ""]
        elif kind == ".B":
            lines += ["", f"- `{words}`:"]
        elif kind == ".PP":
            lines.append("")
        elif not line.startswith("."):
            lines.append(re.sub(r"([*_`\[\\])", r"\\\1", escape(line, quote=False)))
    return "\n".join(lines) + "\n"


def _place(document: Path, link: str) -> Path:
    return Path(os.path.normpath(document.parent / link))


def _name(place: Path) -> Path:
    """The name that a file of the repository has in the site; that of a directory is of the page about it."""
    if (REPOSITORY / place).is_dir():
        return place / "README.md"
    return place if place.suffix in _AS_THEY_ARE else place.with_name(f"{place.name}.txt")


def _named(document: Path, link: re.Match[str]) -> str:
    """The target of a link of a document, as it is called in the site."""
    return os.path.relpath(_name(_place(document, link[0])), document.parent)


def _pages() -> list[dict[str, object]]:
    """What the bar at the top leads to: README, map, commands, and by the map's sections what its rows begin with."""
    pages: list[dict[str, object]] = [{"Home": str(_START)}, {"Map": str(_MAP)}, {"Commands": str(_COMMANDS)}]
    for section in _text(_MAP).split("\n## ")[1:]:
        title, _, table = section.partition("\n")
        pages.append({title: [{name: str(_place(_MAP, link))} for name, link in _ROW.findall(table)]})
    return pages


def _render(documents: Path, target: Path) -> None:
    """Make pages of documents; LabError with all that is wrong."""
    from properdocs.commands.build import build
    from properdocs.config import load_config
    from properdocs.exceptions import ProperDocsException

    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("properdocs")
    logger.addHandler(handler)
    try:
        with (REPOSITORY / _SETTINGS).open("rb") as settings:
            # ProperDocs takes it to lie beside the documents.
            beside = str(documents.with_name("properdocs.yml"))
            places = {"docs_dir": str(documents), "site_dir": str(target)}
            build(load_config(settings, config_file_path=beside, nav=_pages(), **places))
    except ProperDocsException as error:
        raise LabError(f"The site was not built: {' '.join(said.getvalue().split()) or error}") from None
    finally:
        logger.removeHandler(handler)


def anchor(title: str, _separator: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
