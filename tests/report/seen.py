# SPDX-License-Identifier: GPL-2.0-only
"""What a reader sees of a page in a browser, and what is wrong with that."""

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from foliolab.cli.main import command_line
from tests.browser import Browser

_SCRIPT = Path(__file__).with_name("seen.js").read_text()
LEAST_SIZE = 9
"""Pixels of a text, as it is shown."""
LEAST_CONTRAST = 4.5
"""As the Web Content Accessibility Guidelines ask of texts of this size."""

Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""
Colour = tuple[float, float, float]


class Text(Struct, frozen=True):
    """A line of it."""

    text: str
    picture: int
    """That it is in, or -1."""
    box: Box
    size: float
    ink: Colour
    background: Colour
    scrolls: bool
    """Whether it is in a part of the page that can be scrolled by itself."""


class Shown(Struct, frozen=True):
    """A picture."""

    figure: str
    form: str
    shown: bool
    box: Box


class Seen(Struct, frozen=True):
    width: float
    content: float
    """As wide as all that is there."""
    texts: list[Text]
    pictures: list[Shown]
    commands: dict[str, list[str]]
    """That are beside each figure."""


def faults(browser: Browser, page: Path, width: int, scheme: str, form: str) -> list[str]:
    """What is wrong with a page, each with a word for its kind first. ``form`` is that of pictures for this width."""
    browser.open(page, width, scheme)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.unroll(width)
    seen = convert(browser.evaluate(_SCRIPT), Seen)
    found = [*_said(browser.events, page), *_out(seen), *_over(seen), *_illegible(seen), *_figures(seen, form)]
    return list(dict.fromkeys(found))


def _said(events: list[dict[str, Any]], page: Path) -> Iterator[str]:
    for event in events:
        method, parameters = event["method"], event["params"]
        if method == "Network.requestWillBeSent" and parameters["request"]["url"] != page.as_uri():
            yield f"request: {parameters['request']['url']}"
        elif method == "Network.loadingFailed":
            yield f"load: {parameters['errorText']}"
        elif method == "Log.entryAdded":
            yield f"console: {parameters['entry']['text']}"
        elif method == "Runtime.exceptionThrown":
            yield f"console: {parameters['exceptionDetails']['text']}"
        elif method == "Runtime.consoleAPICalled":
            yield f"console: {parameters['args']}"


def _out(seen: Seen) -> Iterator[str]:
    if seen.content > seen.width:
        yield f"out: the page is {seen.content:g} pixels wide in a window of {seen.width:g}"
    for text in seen.texts:
        left, top, right, bottom = seen.pictures[text.picture].box if text.picture >= 0 else (0, 0, seen.width, 1e9)
        inside = (text.box[0] >= left - 1 and text.box[2] <= right + 1) or text.scrolls
        if not (inside and text.box[1] >= top - 1 and text.box[3] <= bottom + 1):
            yield f"out: {text.text}"


def _over(seen: Seen) -> Iterator[str]:
    """Lines of one picture, and lines and pictures of the page."""
    groups: dict[int, list[tuple[str, Box, float]]] = {}
    for text in seen.texts:
        groups.setdefault(text.picture, []).append((text.text, text.box, text.size))
    groups.setdefault(-1, []).extend(
        (f"the {each.form} picture of {each.figure}", each.box, LEAST_SIZE) for each in seen.pictures if each.shown
    )
    for picture, group in groups.items():
        group.sort(key=lambda each: each[1][1])
        for number, (one, first, size) in enumerate(group, 1):
            for other, second, other_size in islice(group, number, None):
                if second[1] >= first[3]:
                    break
                wide = min(first[2], second[2]) - max(first[0], second[0])
                high = min(first[3], second[3]) - second[1]
                # The box of a line has room above and below its letters. In a picture there is space between two texts.
                tight = min(size, other_size) / 4
                if high > tight and wide > (tight if picture < 0 else -tight):
                    yield f"over: {one} / {other}"


def _illegible(seen: Seen) -> Iterator[str]:
    for text in seen.texts:
        if text.size < LEAST_SIZE:
            yield f"small: {text.text}, {text.size:.1f} pixels"
        contrast = _contrast(text.ink, text.background)
        if contrast < LEAST_CONTRAST:
            yield f"faint: {text.text}, {contrast:.1f}:1"


def _contrast(one: Colour, other: Colour) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Colour) -> float:
    shares = (part / 255 for part in colour)
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _figures(seen: Seen, form: str) -> Iterator[str]:
    for figure, commands in seen.commands.items():
        forms = [each.form for each in seen.pictures if each.figure == figure and each.shown]
        if forms != [form]:
            yield f"picture: {figure} shows {' and '.join(forms) or 'none'}, not {form}"
        if len(commands) != 1 or not _understood(commands[0]):
            yield f"command: {figure} has {commands}"


def _understood(command: str) -> bool:
    """Whether the command line takes it."""
    program, *words = shlex.split(command)
    try:
        command_line().parse_args(words)
    except SystemExit:
        return False
    return program == "./lab"
