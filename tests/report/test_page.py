# SPDX-License-Identifier: GPL-2.0-only
"""The page of pictures: whole by itself, with every picture at both widths, and nothing on top of anything else."""

import json
import re
from dataclasses import asdict
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from foliolab.analyse.differences import Change
from foliolab.analyse.losses import Matrix
from foliolab.errors import StoreError, UsageError
from foliolab.report.page.contents import make_contents
from foliolab.report.page.forest import forest_drawing, make_lines
from foliolab.report.page.reads import reads_drawing
from foliolab.report.page.style import NARROW, WIDE, to_file, to_svg
from foliolab.report.picture import read_picture
from tests.cli.command import lab, sentence
from tests.report.pages import LINES, PICTURE, difference, drawings, page, regrets


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_page_needs_nothing_else() -> None:
    text = page()
    elements = Elements(text).found
    names = {attributes["id"] for _, attributes in elements if "id" in attributes}
    for tag, attributes in elements:
        assert tag not in ("script", "link", "img", "image", "iframe", "object")
        assert "src" not in attributes
        if target := attributes.get("href"):
            assert target.startswith("#")
            assert target[1:] in names
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []


def test_a_page_has_every_picture_twice_with_its_command_and_kernel() -> None:
    text = page()
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    names = re.findall(r'<figure[^>]* id="(.+?)"', text)
    assert names == ["reads", "cost", "change", "heat", "forest-0-adaptive"]
    for each in figures:
        assert len(re.findall(r'<svg role="img" aria-label="[^"]+"', each)) == 2
        assert re.search(r"<code>\./lab \w+", each)
        assert re.search(r"kernel k1|policy p1", each)
    assert "One &lt;byte&gt; each" in text


def test_what_is_not_there_is_said() -> None:
    text = make_contents(None, regrets(), "p1", [], {})
    assert "./lab demo --picture" in text
    assert "./lab compare" in text
    assert text.count("<figure") == 3


def test_every_colour_is_one_of_both_styles() -> None:
    text = page()
    light, dark = re.findall(r":root\{(.*?)\}", text)[:2]
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    for style in (light, dark):
        assert used <= set(re.findall(r"(--[\w-]+):", style))
    assert set(re.findall(r"#[0-9a-f]{6}\b", text.replace(light, "").replace(dark, ""))) == set()


def test_titles_say_what_the_rows_come_to() -> None:
    cost, change, heat = drawings()[1:4]
    assert (
        cost.title
        == "In 75 % of 4 cells this kernel costs at most 5 % more than the best window, at worst 1.80 times as much"
    )
    assert ("this kernel", "1.164", "1.010", "1.80") in cost.rows
    assert change.title == "This kernel costs more than Linux 6.12 in 1 of 4 cells, and less in 2"
    assert change.rows[1][-1] == "1.80"
    assert heat.title.startswith("In 1 of 4 pairs of pattern and memory this kernel costs over 1.5 times")
    assert heat.title.endswith("and Linux 6.12 in 2")
    assert heat.rows[-1] == ("dense", "1.00, 1.00")


def test_a_forest_counts_and_spells_intervals() -> None:
    forest = drawings()[-1]
    assert forest.title == (
        "workloads: 1 of 19 workloads is shown to lose by some metric, and 17 to gain, against this kernel switched off"
    )
    assert forest.rows[1] == ("mmap-random-exceeds", "major faults", "+25.0 % (+20.0 to +31.0)", "6")
    assert "95 % intervals" in forest.remark


def test_of_many_lines_those_shown_and_the_ends_of_the_rest_are_drawn() -> None:
    little = [difference(f"little-{n}", "faults", 1000, 1000 + n, Change.SAME) for n in range(-50, 50, 2)]
    lines = sorted([*LINES, *little], key=lambda line: -line.loss)
    forest = forest_drawing("forest", "workloads", lines, "unpatched-mglru", "kernel k1", "./lab compare")
    assert "Of 69 marks 40 are drawn: what is shown, and the ends of the rest." in forest.remark
    assert len(forest.rows) == 1 + len(lines)
    svg = to_svg(forest.draw(WIDE), "forest", "forest")
    assert svg.count(">little-") + svg.count(">fault-cost") == 40 - len(LINES) + 1
    assert ">little-48:" in svg
    assert ">little--50:" in svg
    assert ">little-0:" not in svg
    assert "unpatched Linux with MGLRU" in svg
    assert all(line.workload in svg for line in LINES if line.change is not Change.SAME)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("number", range(5), ids=["reads", "cost", "change", "heat", "forest"])
def test_no_text_is_cut_or_on_top_of_another(number: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: dict[Text, Bbox] = {}
    draw = Text.draw

    def record(text: Text, renderer: RendererBase) -> None:
        if text.get_text().strip():
            boxes[text] = text.get_window_extent(renderer)
        draw(text, renderer)

    monkeypatch.setattr(Text, "draw", record)
    drawn = drawings()[number].draw(width)
    FigureCanvasAgg(drawn).draw()  # type: ignore[no-untyped-call]
    assert len(boxes) > 5
    for text, box in boxes.items():
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= drawn.bbox.height + 1
        assert inside, text.get_text()
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        over = min(first.x1, second.x1) - max(first.x0, second.x0), min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(over) <= 1, (one.get_text(), other.get_text())


def test_a_workload_has_what_loses_most_and_what_gains_most() -> None:
    matrix = Matrix(
        parts=(),
        baseline="off",
        variants=("adaptive", "published"),
        threshold=0.02,
        differences=(
            difference("one", "major_faults", 1000, 1250, Change.WORSE),
            difference("one", "faults", 1000, 1100, Change.WORSE),
            difference("one", "refaults_file", 5000, 0, Change.BETTER),
            difference("two", "major_faults", 1000, 1010, Change.SAME),
            difference("two", "faults", 10, 12, Change.SAME),
            difference("one", "faults", 1000, 9000, Change.WORSE, variant="published"),
        ),
        again=(),
        gaps=(),
    )
    assert [(line.workload, line.metric, line.loss) for line in make_lines(matrix, "adaptive")] == [
        ("one", "major_faults", 0.25),
        ("two", "faults", 0.2),
        ("one", "refaults_file", -1.0),
    ]
    assert make_lines(matrix, "adaptive")[0].interval == (-1.0, 0.3)


def test_a_drawing_is_the_same_each_time() -> None:
    first, second = (to_svg(drawings()[1].draw(WIDE), "cost", "cost") for _ in range(2))
    assert first == second


def test_a_file_brings_its_colours() -> None:
    text = to_file(reads_drawing(PICTURE))
    assert text.startswith("<svg")
    assert "prefers-color-scheme:dark" in text
    marks = [len(re.findall("M", path)) for path in re.findall(r'<path d="([^"]*)"', text)]
    assert sorted(marks)[-2:] == [100, 110]


def test_a_picture_is_kept_whole(tmp_path: Path) -> None:
    file = tmp_path / "reads.json"
    assert read_picture(file) is None
    file.write_text(json.dumps(asdict(PICTURE)))
    assert read_picture(file) == PICTURE
    file.write_text('{"panels": []}')
    with pytest.raises(StoreError, match="damaged"):
        read_picture(file)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["sparse-mmap", "--html", "{here}/page"], "--html is about everything"),
        (["--html", "{here}/no/page"], "--html: {here}/no is no directory."),
        (["--html", "{here}"], "--html: {here} cannot be written."),
    ],
    ids=["of one experiment", "nowhere", "a directory"],
)
def test_a_page_that_cannot_be_is_refused_before_it_is_made(argv: list[str], words: str, tmp_path: Path) -> None:
    done = lab("report", *(word.format(here=tmp_path) for word in argv))
    assert done.returncode == UsageError.status
    assert sentence(done).startswith(words.format(here=tmp_path))
    assert not list(tmp_path.iterdir())
