# SPDX-License-Identifier: GPL-2.0-only
"""Numbers and sizes in words, and back."""

from __future__ import annotations

import re

_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def count(number: float) -> str:
    """A whole number with commas: "12,345"."""
    return f"{number:,.0f}"


def size(number: float) -> str:
    """Bytes in words: "12 KiB", "1.5 GiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return f"{number / 1024:,.0f} KiB"


def parse_size(text: str) -> int:
    """Bytes in ``"2560M"``: a whole number with K, M or G (binary) or nothing; ValueError otherwise."""
    found = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if not found:
        raise ValueError(f"'{text}' is not a size such as 512M or 20G")
    return int(found[1]) * _FACTORS[found[2]]
