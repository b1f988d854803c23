# SPDX-License-Identifier: GPL-2.0-only
"""Drawings by matplotlib as SVG that follows the page: its colours, light or dark, and its fonts.

A drawing is made for a width, since text that shrinks with a picture cannot be read on a phone. Colours are named.
matplotlib gets a stand-in for each, which becomes a variable of the page's style sheet.
"""

import io
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, Literal
from zlib import crc32

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDE, NARROW = 1080, 360
"""Pixels of a drawing on a desktop, and on a phone."""

_EDGE, _TITLE = 16, 48
"""Pixels around a drawing that is a file of its own, and above it."""

_LIGHT_AND_DARK = {
    "card": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "line": ("#d1d9e0", "#30363d"),
    "adaptive": ("#0550ae", "#79c0ff"),
    "off": ("#bc4c00", "#f0883e"),
    "published": ("#8250df", "#d2a8ff"),
    "rival": ("#6e7781", "#8b949e"),
    "loss": ("#cf222e", "#ff7b72"),
    "gain": ("#0969da", "#58a6ff"),
    "same": ("#8c959f", "#6e7681"),
    "heat0": ("#eef6ff", "#0f1f33"),
    "heat1": ("#cfe4fb", "#173a5e"),
    "heat2": ("#f7e3b5", "#5a4a16"),
    "heat3": ("#f3bd74", "#74500f"),
    "heat4": ("#e58a4b", "#9a4a12"),
    "heat5": ("#c9472f", "#d9542f"),
    "heat6": ("#8f1d2c", "#ff8a75"),
    "on_heat": ("#1f2328", "#e6edf3"),
    "on_hot": ("#ffffff", "#0d1117"),
}
HEAT = tuple(name for name in _LIGHT_AND_DARK if name.startswith("heat"))
"""From least to most."""

_STAND_IN = {name: f"#00{number:02x}fe" for number, name in enumerate(_LIGHT_AND_DARK)}

_DIGITS = re.compile(r"-?\d+\.\d{2,}")

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "figure.dpi": 72,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.linewidth": 0.8,
    "path.simplify": False,
    **dict.fromkeys(("text.color", "axes.titlecolor"), _STAND_IN["ink"]),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), _STAND_IN["muted"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), _STAND_IN["line"]),
}


@dataclass(frozen=True)
class Drawing:
    """A figure of the page with what is said about it."""

    name: str
    """Of its element, unique on a page."""
    title: str
    """What it shows, as a sentence."""
    remark: str
    """How to read it."""
    source: str
    """Which kernel, how often."""
    command: str
    """That makes its data."""
    draw: Callable[[int], Figure]
    """For so many pixels of width."""
    rows: tuple[tuple[str, ...], ...] = ()
    """A table of its figures, the head first."""


def colour(name: str) -> str:
    """What matplotlib gets for a colour of the page."""
    return _STAND_IN[name]


def figure(width: int, height: int) -> Figure:
    """An empty figure of so many pixels, whose parts find their places by themselves; for what is ``styled``."""
    made = Figure(figsize=(width / 72, height / 72), layout="constrained", facecolor="none")
    made.get_layout_engine().set(w_pad=0.04, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    return made


styled = mpl.rc_context(_SETTINGS)
"""A decorator: what a function draws follows the page's style."""


def plain(axes: Axes, *, grid: Literal["", "x", "y", "both"] = "") -> None:
    """Axes without a box behind, with lines at the ticks of these axes."""
    axes.set_facecolor("none")
    axes.tick_params(length=3)
    if grid:
        axes.grid(axis=grid, linewidth=0.8)
    axes.set_axisbelow(True)


def to_svg(drawn: Figure, name: str, label: str) -> str:
    """An element for a page. ``name`` has to be unique there, and ``label`` is read out."""
    text = io.StringIO()
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        drawn.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    # Only what is referred to needs a name, and those of matplotlib come again in each drawing.
    svg = re.sub(r'(<(?:g|svg)\b[^>]*?) id="[^"]*"', r"\1", svg)
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'\s(?:xmlns:xlink|version)="[^"]*"', "", svg, count=2)
    svg = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: _DIGITS.sub(_shorter, found[0]), svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href").replace("'DejaVu Sans'", "system-ui, sans-serif")
    for each, stand_in in _STAND_IN.items():
        svg = svg.replace(stand_in, f"var(--{each.replace('_', '-')})")
    svg = _with_classes(svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1).strip()


def _with_classes(svg: str) -> str:
    """Whatever is said of many elements said once. Classes are named for what they say, so drawings can share them."""
    styles = Counter(re.findall(r'style="([^"]*)"', svg))
    names = {style: f"c{crc32(style.encode()):x}" for style, times in styles.items() if times > 2}
    for style, name in names.items():
        svg = svg.replace(f'style="{style}"', f'class="{name}"')
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    head, rest = svg.split(">", 1)
    return f"{head}>\n<style>{rules}</style>{rest}"


def _shorter(number: re.Match[str]) -> str:
    """To a tenth of a pixel."""
    return f"{float(number[0]):.1f}"


def to_file(drawing: Drawing) -> str:
    """An SVG that needs no page, with its title, as wide as a desktop's."""
    drawn = drawing.draw(WIDE)
    height = round(drawn.bbox.height)
    head, rest = to_svg(drawn, drawing.name, drawing.title).split(">", 1)
    place = f"{-_EDGE} {-_TITLE} {WIDE + 2 * _EDGE} {height + _TITLE + _EDGE}"
    head = re.sub(r'viewBox="[^"]*"', f'viewBox="{place}"', head)
    style = f"{variables()}.title{{font:600 18px system-ui,sans-serif;fill:var(--ink)}}"
    card = f'<rect x="{-_EDGE}" y="{-_TITLE}" width="100%" height="100%" rx="8" fill="var(--card)"/>'
    title = f'<text class="title" y="-18">{escape(drawing.title)}</text>'
    return f"{head}>\n<style>{style}</style>\n{card}\n{title}{rest}\n"


def variables() -> str:
    """The colours as CSS, light unless the reader prefers dark."""
    light, dark = (
        "".join(f"--{name.replace('_', '-')}:{pair[which]};" for name, pair in _LIGHT_AND_DARK.items())
        for which in (0, 1)
    )
    return f":root{{color-scheme:light dark;{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
