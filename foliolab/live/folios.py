# SPDX-License-Identifier: GPL-2.0-only
"""In which folios processes have program text mapped, of what ``guest/tools/folios.c`` tells."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_WHOLE = re.compile(r"file-thp-(?:aligned|unaligned)-(\d+)kB")


@dataclass(frozen=True)
class TextFolios:
    """Bytes of mapped text; what two processes map counts twice."""

    mapped_bytes: int
    by_size_kb: dict[int, int]
    """By size of folio, of those that are mapped as a whole; single pages are the smallest."""
    partial_bytes: int
    """Of larger folios of which not all is mapped, or not in order."""


def text_folios(table: Mapping[str, Any]) -> TextFolios:
    """Of the program's JSON with ``--text``."""
    sizes = Counter[int]()
    partial = 0
    for row in table["rows"]:
        if found := _WHOLE.fullmatch(row["name"]):
            sizes[int(found[1])] += row["bytes"]
        elif row["name"] == "file-thp-partial":
            partial = row["bytes"]
    mapped = table["mapped_bytes"]
    single = mapped - sizes.total() - partial
    known = {table["page_size"] >> 10: single, **sizes}
    return TextFolios(mapped, {size: known[size] for size in sorted(known) if known[size]}, partial)
