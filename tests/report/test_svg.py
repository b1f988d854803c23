# SPDX-License-Identifier: GPL-2.0-only
"""Pictures as files that need nothing else."""

import re
from xml.etree import ElementTree

from foliolab.report.svg import COLOURS, Picture, figure, to_svg


def drawn() -> str:
    found = figure(100)
    axes = found.subplots()
    axes.plot([1, 2], [1, 2], color=COLOURS["loss"])
    axes.set_xlabel("time, s")
    return to_svg(Picture("one", "more <1> & less", found))


def test_a_picture_stands_on_its_card_below_its_title() -> None:
    svg = drawn()
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox") == "-16 -48 1112 164"
    assert {"more <1> & less", "time, s"} <= {(element.text or "").strip() for element in root.iter()}
    assert not re.search(r"https?://(?!www.w3.org)|@import|url\((?!#)|<script|<image", svg)


def test_every_colour_is_there_for_light_and_for_dark() -> None:
    svg = drawn()
    assert "var(--loss)" in svg
    light, dark = re.findall(r":root\{(.*?)\}", svg)
    for style in (light, dark):
        assert set(re.findall(r"var\((--[\w-]+)\)", svg)) <= set(re.findall(r"(--[\w-]+):", style))
    assert set(re.findall(r"#[0-9a-f]{6}\b", svg.replace(light, "").replace(dark, ""))) == set()


def test_a_picture_is_the_same_each_time() -> None:
    assert drawn() == drawn()
