# SPDX-License-Identifier: GPL-2.0-only
"""What pictures have in common: matplotlib draws them, and each becomes an SVG file for documents.

A file has its own card behind it, and is light or dark as the reader prefers. Colours are named. matplotlib gets a
stand-in for each, which the file has as a variable.
"""

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from zlib import crc32

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, LogLocator, NullLocator

_WIDTH, _EDGE, _TITLE = 1080, 16, 48
"""Pixels of what matplotlib draws, around it, and above it."""
_ROW, _EDGES = 21, 86
"""Pixels of a row, and of all that is above and below."""

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
}

COLOURS = {name: f"#00{number:02x}fe" for number, name in enumerate(_LIGHT_AND_DARK)}
"""What matplotlib gets for each."""

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "figure.dpi": 72,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "path.simplify": False,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    **dict.fromkeys(("text.color", "axes.titlecolor"), COLOURS["ink"]),
    **dict.fromkeys(("axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), COLOURS["muted"]),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), COLOURS["line"]),
}
mpl.rcParams.update(_SETTINGS)


@dataclass(frozen=True)
class Picture:
    name: str
    """Of its file, without a suffix."""
    title: str
    """What it shows, as a sentence."""
    figure: Figure


def figure(height: int) -> Figure:
    """An empty figure of so many pixels, whose parts find their places by themselves."""
    made = Figure(figsize=(_WIDTH / 72, height / 72), layout="constrained", facecolor="none")
    made.get_layout_engine().set(w_pad=0.04, h_pad=0.06)  # type: ignore[union-attr, call-arg]
    return made


def rows_of(labels: Sequence[str]) -> tuple[Figure, Axes]:
    """A figure with a row for each label, the first on top."""
    drawn = figure(_ROW * len(labels) + _EDGES)
    axes = drawn.subplots()
    axes.grid(axis="x")
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return drawn, axes


def ratio_rows(labels: Sequence[str], values: Sequence[float], title: str) -> tuple[Figure, Axes]:
    """A figure of rows that has room for these ratios, by their logarithm."""
    drawn, axes = rows_of(labels)
    low, high = min([0.8, *values]) / 1.1, max([1.25, *values]) * 1.1
    axes.axvline(1, color=COLOURS["muted"], linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel(f"{title}; left of 1 is better")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high > 10 * low else AutoLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    return drawn, axes


def to_svg(picture: Picture) -> str:
    """An SVG that needs nothing else: the picture on its card, below its title."""
    drawn = _drawn(picture)
    height = round(picture.figure.bbox.height)
    place = f"{-_EDGE} {-_TITLE} {_WIDTH + 2 * _EDGE} {height + _TITLE + _EDGE}"
    title = escape(picture.title)
    light, dark = ("".join(f"--{name}:{pair[which]};" for name, pair in _LIGHT_AND_DARK.items()) for which in (0, 1))
    return (
        f'<svg role="img" aria-label="{title}" viewBox="{place}" xmlns="http://www.w3.org/2000/svg">\n'
        f"<style>:root{{color-scheme:light dark;{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f".title{{font:600 18px system-ui,sans-serif;fill:var(--ink)}}</style>\n"
        f'<rect x="{-_EDGE}" y="{-_TITLE}" width="100%" height="100%" rx="8" fill="var(--card)"/>\n'
        f'<text class="title" y="-18">{title}</text>\n{drawn}\n'
    )


def _drawn(picture: Picture) -> str:
    """What matplotlib draws, without its opening tag, in half as many bytes."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": picture.name}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        picture.figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    svg = re.sub(r".*?<svg.*?>\n", "", text.getvalue(), count=1, flags=re.DOTALL)
    svg = re.sub(r'(<g\b[^>]*?) id="[^"]*"', r"\1", svg)  # which nothing refers to
    svg = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: re.sub(r"-?\d+\.\d{2,}", _shorter, found[0]), svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href").replace("'DejaVu Sans'", "system-ui, sans-serif")
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    return _with_classes(svg).strip()


def _with_classes(svg: str) -> str:
    """Whatever is said of many elements said once."""
    styles = Counter(re.findall(r'style="([^"]*)"', svg))
    names = {style: f"c{crc32(style.encode()):x}" for style, times in styles.items() if times > 2}
    for style, name in names.items():
        svg = svg.replace(f'style="{style}"', f'class="{name}"')
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return f"<style>{rules}</style>\n{svg}"


def _shorter(number: re.Match[str]) -> str:
    """To a tenth of a pixel."""
    return f"{float(number[0]):.1f}"
