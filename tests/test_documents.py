# SPDX-License-Identifier: GPL-2.0-only
"""The documents for people: short enough to be read, and their links lead somewhere."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from foliolab.cli.main import main
from foliolab.experiment.load import find_experiment
from foliolab.files import RELEASE, REPOSITORY
from foliolab.reproduce.documents import FIGURES, load_figures
from foliolab.reproduce.plan import documents, load_plan
from foliolab.reproduce.released import RELEASED, read_released

README = REPOSITORY / "README.md"
_PLACES = (REPOSITORY, RELEASE, REPOSITORY / "host")
DOCUMENTS = sorted([*(file for place in _PLACES for file in place.glob("*.md")), *(REPOSITORY / "docs").rglob("*.md")])
NOTES = [file for file in DOCUMENTS if file.parent.name == "notes" and file.name != "README.md"]
GLOSSARY = REPOSITORY / "docs/glossary.md"
GUIDES = [
    README,
    *(REPOSITORY / f"docs/{name}.md" for name in ("user-guide", "diagnose", "module", "live-traces", "recipes")),
    *(REPOSITORY / f"docs/{name}.md" for name in ("tutorial-patch", "tutorial-database", "install-kernel")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
LIMITS = {
    "README.md": 600,
    "docs/README.md": 340,
    "CONTRIBUTING.md": 380,
    "host/README.md": 380,
}
"""Words of what people read first, also in tables that are typed."""
MOST_WORDS = 20_000
"""In docs/, commands and all, but for the table of predictions, which a script writes."""
LONGEST_NOTE = 300
"""Words: a page."""
REVIEWED = ["Mailbox", "Problem", "Change", "Figures", "Costs", "What it does not do"]
"""What reviewers want to know of a part of the series, in this order."""
LONGEST_SENTENCE = 25
"""Words."""
MOST_TERMS = 50
MOST_BOXES = 14
TYPED = {
    "README.md": 0,
    "docs/results.md": 0,
    "docs/window.md": 0,
    "docs/linux-7.3.md": 0,
    "docs/notes/text.md": 0,
    "docs/notes/reclaim.md": 0,
    "docs/notes/mprotect.md": 0,
    "docs/notes/hits.md": 0,
    "docs/stores.md": 0,
    "docs/module.md": 0,
    "docs/kselftests.md": 0,
    "docs/seconds.md": 0,
    "docs/data/results.md": 0,
    "docs/data/stores.md": 0,
    "docs/data/linux-7.3.md": 0,
    "docs/data/kselftests.md": 0,
    "docs/data/seconds.md": 0,
}
"""Figures that no command made: cells of tables, and what is marked. These numbers may only fall."""


def prose(text: str) -> str:
    """What is read: no targets of links, no comments."""
    return re.sub(r"<!--.*?-->", "", _LINK.sub("]", text), flags=re.DOTALL)


def count_words(text: str) -> int:
    """Also those in tables and of code, but no signs that stand by themselves."""
    return sum(any(character.isalnum() for character in word) for word in re.split(r"[\s|]+", prose(text)))


def sentences(text: str) -> list[str]:
    """Of paragraphs, items of lists, and cells of tables."""
    text = re.sub(r"^```.*?^```", "", prose(text), flags=re.MULTILINE | re.DOTALL)
    parts = re.split(r"\n\s*\n|^\s*[-*] |^#+ |\|", text, flags=re.MULTILINE)
    found = [sentence.strip("* \n") for part in parts for sentence in re.split(r"(?<=[.?!])[\s*)]+(?=\S)", part)]
    return [sentence for sentence in found if sentence]


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


def written(document: Path) -> str:
    """Without what commands print, which is looked up, not read."""
    return re.sub(r"<!-- foliolab: .*?<!-- foliolab: end -->", "", document.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("name", LIMITS)
def test_short_enough(name: str) -> None:
    assert count_words(written(REPOSITORY / name)) <= LIMITS[name]


def test_all_documents_are_short_enough() -> None:
    counted = [file for file in (REPOSITORY / "docs").rglob("*.md") if file.name != "predictions.md"]
    assert sum(count_words(written(file)) for file in counted) <= MOST_WORDS


@pytest.mark.parametrize("note", NOTES, ids=lambda path: path.name)
def test_a_note_is_a_page_for_reviewers_that_the_list_of_notes_has(note: Path) -> None:
    text = note.read_text()
    labels = re.findall(r"^\*\*([\w ]+)\.\*\*", text, re.MULTILINE)
    assert labels == ([] if note.name == "measuring.md" else REVIEWED)
    assert not labels or "](../../release/6.12.mbox)" in text
    assert count_words(written(note)) <= LONGEST_NOTE
    assert f"({note.name})" in (note.parent / "README.md").read_text()


@pytest.mark.parametrize("note", NOTES, ids=lambda path: path.name)
def test_commits_that_a_note_names_are_in_the_mailbox(note: Path) -> None:
    mails = (RELEASE / "6.12.mbox").read_text().replace("\n ", " ")
    subjects = re.findall(r"^Subject: \[PATCH [\d/]+\] (.+)$", mails, re.MULTILINE)
    named = re.findall(r"`((?:mm|arm64)[\w/]*: .+?)`", note.read_text())
    assert named or note.name == "measuring.md"
    assert [subject for subject in named if subject not in subjects] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_sentence_is_long(document: Path) -> None:
    long = [sentence for sentence in sentences(written(document)) if count_words(sentence) > LONGEST_SENTENCE]
    assert long == []


def test_sentences() -> None:
    text = (
        "# One title\n\nTwo of [it](x.md): a.b is\none. **Three.**\n- four\n- five; 1.5 is six\n\n| seven | eight |\n"
    )
    found = ["One title", "Two of [it]: a.b is\none.", "Three.", "four", "five; 1.5 is six", "seven", "eight"]
    assert sentences(text) == found


@pytest.fixture(scope="module")
def checked() -> dict[str, Any]:
    """What './lab reproduce --check' says."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        main(["reproduce", "--check", "--json"])
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


@pytest.mark.parametrize("name", TYPED)
def test_fewer_and_fewer_figures_are_typed(name: str, checked: dict[str, Any]) -> None:
    assert checked["typed"][name] <= TYPED[name]


def test_every_figure_is_shown() -> None:
    texts = "".join((REPOSITORY / name).read_text() for name in TYPED)
    assert set(load_figures(RELEASE / FIGURES)) == set(re.findall(r"<!--=(.*?)-->", texts))


def test_every_document_of_the_plan_is_counted() -> None:
    assert set(documents(load_plan())) == set(TYPED)


def test_figures_are_of_what_is_shipped_and_that_of_the_code_as_it_stands(checked: dict[str, Any]) -> None:
    """Who changes the kernel's text measures again what is shown of it: './lab reproduce --plan' tells the price.

    That takes a day. Until it is done '--check' fails, and lists what waits. What boots nothing is never late.
    """
    assert checked["differing"] == []
    at_once = {part.name for part in load_plan() if part.backend == "model" or part.command[:1] == ("simulate",)}
    assert at_once
    assert at_once.isdisjoint(checked["older"])


def test_what_is_shipped_is_small_and_says_what_made_it() -> None:
    assert RELEASED.stat().st_size <= 1 << 20
    samples = read_released()
    assert samples
    for sample in samples:
        assert sample.made_with
        assert sample.kernel.hash


def italics(text: str) -> list[str]:
    """Words that are set apart as terms or values, not the labels of paragraphs."""
    text = re.sub(r"^```.*?^```|`[^`]*`", "", prose(text), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(found.split()) for found in re.findall(r"(?<![\w*])\*([a-z][^*.:]*)\*(?![\w*])", text)]


def test_italics() -> None:
    text = "A *cell*, and *not shown*: *A label.* Then **bold**, *one: two* and `*code*`.\n```\n*block*\n```\n(*end*)"
    assert italics(text) == ["cell", "not shown", "end"]


def glossary_tables() -> list[list[str]]:
    """The terms of each table, in their order."""
    tables = GLOSSARY.read_text().split("| term | meaning |")[1:]
    return [[term.strip("*") for term in re.findall(r"^\| (.+?) \| ", table, re.MULTILINE)] for table in tables]


def glossary() -> list[str]:
    return [term for table in glossary_tables() for term in table]


def test_the_glossary_is_short_and_has_each_term_once_where_it_is_looked_for() -> None:
    terms = glossary()
    assert 40 < len(terms) <= MOST_TERMS
    assert len(set(terms)) == len(terms)
    assert len(glossary_tables()) == 2
    assert all(table == sorted(table) for table in glossary_tables())


def test_the_diagram_of_a_miss_is_small_and_in_terms_of_the_glossary() -> None:
    boxes = re.findall(r'class="term"[^>]*>([^<]+)<', (REPOSITORY / "docs/decision.svg").read_text())
    assert 1 < len(boxes) <= MOST_BOXES
    assert [box for box in boxes if box.lower() not in glossary()] == []


def test_every_term_of_the_glossary_is_used() -> None:
    others = "\n".join(file.read_text() for file in DOCUMENTS if file != GLOSSARY).lower()
    assert [term for term in glossary() if term not in others] == []


@pytest.mark.parametrize("document", GUIDES, ids=lambda path: path.name)
def test_what_guides_set_in_italics_is_in_the_glossary(document: Path) -> None:
    known = {*glossary(), *italics(GLOSSARY.read_text())}
    assert [term for term in italics(document.read_text()) if term not in known] == []


def test_the_guide_tells_once_what_each_workload_stands_for() -> None:
    table = (REPOSITORY / "docs/user-guide.md").read_text().partition("| workload | stands for |\n")[2]
    named = [row.split("|")[1] for row in table.partition("\n\n")[0].splitlines()[1:]]
    workloads = [str(cell.as_dict()["workload"]) for cell in find_experiment("workloads").scale("quick").cells]
    assert sorted(re.findall("`(.*?)`", " ".join(named))) == sorted(workloads)


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
