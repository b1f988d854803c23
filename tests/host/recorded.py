# SPDX-License-Identifier: GPL-2.0-only
"""What two kernels have recorded of ``sparse-mmap --count 30`` on a file of 256 pages of which nothing was in memory.

Linux 6.18, and Debian's own 6.1, which has no tracepoints of files' faults.
"""

import base64
import json
import lzma
from dataclasses import dataclass
from heapq import merge
from pathlib import Path
from typing import Any

from foliohost.ringbuffer import Layout, events, layout
from foliohost.touches import FIELDS, File

_GOLDEN = Path(__file__).parents[1] / "golden/tracing"
KERNELS = ("6.18", "6.1")


@dataclass(frozen=True)
class Recorded:
    file: File
    maps: str
    """Of the task, as /proc has it."""
    layouts: dict[str, Layout]
    processors: list[list[bytes]]
    """The pages of the trace of each."""
    text: list[str]
    """The same events as the kernel prints them."""
    planned: list[int]
    """The pages that were touched."""

    def events(self) -> list[tuple[int, str, tuple[int, ...]]]:
        return list(merge(*([e for page in pages for e in events(page, self.layouts)] for pages in self.processors)))


def recorded(kernel: str) -> Recorded:
    content = (_GOLDEN / f"linux-{kernel}.json.xz").read_bytes()
    found: dict[str, Any] = json.loads(lzma.decompress(content))
    return Recorded(
        file=(found["file"][0], found["file"][1]),
        maps=found["maps"],
        layouts={name: layout(text, FIELDS[name]) for name, text in found["formats"].items()},
        processors=[[base64.b64decode(page) for page in pages] for pages in found["processors"]],
        text=found["text"],
        planned=found["planned"],
    )
