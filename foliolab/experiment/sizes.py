# SPDX-License-Identifier: GPL-2.0-only
"""Sizes as people write them."""

import re

_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """Bytes in ``"2560M"``: a whole number with K, M or G (binary) or nothing; ValueError otherwise."""
    found = re.fullmatch(r"([1-9][0-9]*)([KMG]?)", text)
    if not found:
        raise ValueError(f"'{text}' is not a size such as 512M or 20G")
    return int(found[1]) * _FACTORS[found[2]]
