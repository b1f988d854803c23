# SPDX-License-Identifier: GPL-2.0-only
"""What page faults of one file read, drawn: place in the file over faults in their order, a panel for each kernel."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_MIB = 1 << 20
_EVENT = re.compile(
    r"mm_filemap_(?P<what>add_to_page_cache|fault|map_pages): dev[ =](?P<device>\d+:\d+) ino[ =](?P<inode>[0-9a-f]+) "
    r"(?:pfn=\S+ )?ofs=(?P<first>\d+)(?:-(?P<last>\d+))?(?: order=(?P<order>\d+))?"
)
EVENTS = ("add_to_page_cache", "fault", "map_pages")
"""Of filemap's tracepoints: those that a trace has to have, without mm_filemap_."""

_WIDTH, _HEIGHT = 800, 440
# The drawing, and where a panel stands in it.
_LEFT, _TOP, _PANEL, _ROOM, _GAP = 76, 62, 336, 280, 30
# What is smaller is drawn of this height.
_DOT = 1.6
_STYLE = """
.card{fill:#fff}.frame{fill:none;stroke:#8c959f}.read{stroke:#0550ae;stroke-width:2.2}
text{font:14px system-ui,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:16px}.small{font-size:13px;fill:#59636e}
@media(prefers-color-scheme:dark){.card{fill:#0d1117}.frame{stroke:#6e7681}.read{stroke:#79c0ff}
text{fill:#e6edf3}.small{fill:#9198a1}}
"""


@dataclass(frozen=True)
class Run:
    """Adjacent bytes of the file that one fault made the kernel read."""

    fault: int
    """Counted from 1; 0 for what was read before any."""
    offset: int
    size: int


@dataclass(frozen=True)
class Reads:
    """All that was read of one file."""

    faults: int
    """Also those that found their page cached."""
    runs: tuple[Run, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(run.size for run in self.runs)


@dataclass(frozen=True)
class Panel:
    title: str
    reads: Reads


def parse(trace: str, device: str, page_size: int) -> Reads:
    """What the text of a trace says of the file that was read most on ``device``, such as 254:0."""
    events = [found for found in _EVENT.finditer(trace) if found["device"] == device]
    added = [found["inode"] for found in events if found["what"] == "add_to_page_cache"]
    inode = max(set(added), key=added.count, default=None)
    faults, place = 0, range(0)  # what the latest fault was about
    runs: list[Run] = []
    for found in events:
        first = int(found["first"])
        if found["inode"] != inode:
            continue
        if found["what"] == "add_to_page_cache":
            size = page_size << int(found["order"] or 0)
            last = runs[-1] if runs else None
            if last and (last.fault, last.offset + last.size) == (faults, first):
                runs[-1] = Run(faults, last.offset, last.size + size)
            else:
                runs.append(Run(faults, first, size))
            continue
        # A fault first maps what is cached around its page, and again when it has read that, maybe in a second try.
        here = range(first, int(found["last"] or first) + 1)
        if not (here.start in place or place.start in here):
            faults += 1
            place = here
        elif len(here) == 1:
            place = here
    return Reads(faults, tuple(runs))


def draw(panels: Sequence[Panel], file_bytes: int, touched_bytes: int, remark: str) -> str:
    """An SVG, 800 wide, of two panels with the same axes; a read too small to be seen is drawn as a dot."""
    faults = max(panel.reads.faults for panel in panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape('; '.join(f'{panel.title}: {_mib(panel.reads.size)}' for panel in panels))}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="card" width="{_WIDTH}" height="{_HEIGHT}" rx="8"/>',
        f'<text class="small" x="{_LEFT}" y="24">{escape(remark)}</text>',
        f'<text class="small" transform="translate(20,{_TOP + _ROOM / 2:g}) rotate(-90)" text-anchor="middle">'
        "place in the file</text>",
        _label(_LEFT - 6, _TOP + 12, "0", "end"),
        _label(_LEFT - 6, _TOP + _ROOM, f"{file_bytes // _MIB} MiB", "end"),
    ]
    for number, panel in enumerate(panels):
        lines += _panel(panel, _LEFT + number * (_PANEL + _GAP), file_bytes, faults)
    needed = f"needed: {_mib(touched_bytes)}, the pages that were touched"
    lines += [_label(_LEFT, _HEIGHT - 16, needed, "start"), "</svg>"]
    return "\n".join(lines) + "\n"


def _panel(panel: Panel, left: int, file_bytes: int, faults: int) -> Iterator[str]:
    yield f'<g class="panel" transform="translate({left},{_TOP})">'
    yield f'<text class="title" y="-10">{escape(panel.title)}</text>'
    yield f'<rect class="frame" width="{_PANEL}" height="{_ROOM}"/>'
    marks = []
    for run in panel.reads.runs:
        height = run.size / file_bytes * _ROOM
        shown = max(height, _DOT)
        x = run.fault / faults * _PANEL
        y = min(run.offset / file_bytes * _ROOM - (shown - height) / 2, _ROOM - shown)
        marks.append(f"M{x:.1f} {max(y, 0):.1f}v{shown:.1f}")
    yield f'<path class="read" d="{"".join(marks)}"/>'
    yield _label(0, _ROOM + 18, "page faults, in order", "start")
    yield _label(_PANEL, _ROOM + 18, f"{faults:,}", "end")
    yield f'<text class="title" y="{_ROOM + 46}">{_mib(panel.reads.size)} read</text>'
    yield "</g>"


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _mib(size: int) -> str:
    return f"{size / _MIB:,.1f} MiB"
