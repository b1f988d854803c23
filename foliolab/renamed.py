# SPDX-License-Identifier: GPL-2.0-only
"""Variants by the names that samples and traces of before have for them. Nothing but their readers knows these."""

_PRESENT = {
    "stock": "off",
    "series": "published",
    "folio": "adaptive",
    "folio-mglru": "adaptive-mglru",
    "folio-mglru-old": "adaptive-mglru-old",
    "mglru": "off-mglru",
    "mglru-accessed": "off-mglru-accessed",
    "mglru-accessed-old": "off-mglru-accessed-old",
    "mglru-mapped": "off-mglru-mapped",
    "mglru-mapped-old": "off-mglru-mapped-old",
    "mglru-old": "off-mglru-old",
    "mglru-young": "off-mglru-young",
}


def present_name(name: str) -> str:
    """What a variant is called now, also one that is on another kernel, or is measured again."""
    variant, *rest = name.split(" ", 1)
    return " ".join([_PRESENT.get(variant, variant), *rest])
