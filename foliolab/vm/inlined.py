# SPDX-License-Identifier: GPL-2.0-only
"""A program of guest/ as one C file: its headers inlined, without what of them it does not use."""

import re
from collections.abc import Iterator
from pathlib import Path

from foliolab.files import GUEST
from foliolab.vm.image import INCLUDE

_SYSTEM_INCLUDE = re.compile(r"^#include <.+>\n?", re.MULTILINE)
_LICENCE = re.compile(r"^(//|/\*) SPDX-License-Identifier: .*\n", re.MULTILINE)
_GUARD = re.compile(r"^#ifndef (FOLIOLAB_\w+_H)\n#define \1\n|^#endif /\* FOLIOLAB_\w+_H \*/\n", re.MULTILINE)
_BETWEEN = re.compile(r"\n\n+(?=[^\s}])")
"""Whatever stands at file scope: what belongs to it is indented."""
_NO_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
_ATTRIBUTE = re.compile(r"__attribute__\(\(.*\)\)")


def inlined(source: Path) -> str:
    """The text of a C file without its licence line, each header of guest/ in the place of its first #include.

    System headers come together, where the first one is. Static functions and variables that nothing names are left
    out, of which a compiler would complain.
    """
    text = "\n\n".join(_used(list(_parts(source, set()))))
    includes = sorted({line.strip() for line in _SYSTEM_INCLUDE.findall(text)})
    first = _SYSTEM_INCLUDE.search(text)
    start = first.start() if first else 0
    text = "\n".join([text[:start], *includes, "", _SYSTEM_INCLUDE.sub("", text[start:])])
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _parts(file: Path, seen: set[str]) -> Iterator[str]:
    """What stands at file scope, that of headers which were not ``seen`` where the first one is included.

    The comment that a header begins with comes behind the headers that it includes.
    """
    text = _GUARD.sub("", _LICENCE.sub("", file.read_text()))
    before, *_ = INCLUDE.split(text, maxsplit=1)
    if file.suffix == ".c":
        yield from _split(before)
    for name in INCLUDE.findall(text):
        if name not in seen:
            seen.add(name)
            yield from _parts(GUEST / name, seen)
    own = text if file.suffix == ".h" else text[len(before) :]
    yield from _split(re.sub(rf"{INCLUDE.pattern}\n", "", own, flags=re.MULTILINE))


def _split(text: str) -> list[str]:
    return [part for part in _BETWEEN.split(text.strip("\n")) if part]


def _used(parts: list[str]) -> list[str]:
    """Without static definitions that no other part names; what only these name goes, too."""
    while True:
        words = [set(re.findall(r"\w+", _NO_CODE.sub("", part))) for part in parts]
        names = [_defined(part) for part in parts]
        wanted = set().union(*(found - {name} for found, name in zip(words, names, strict=True)))
        kept = [part for part, name in zip(parts, names, strict=True) if not name or name in wanted]
        if len(kept) == len(parts):
            return kept
        parts = kept


def _defined(part: str) -> str:
    """The static function or variable that a part defines; empty if it is something else."""
    code = _ATTRIBUTE.sub("", _NO_CODE.sub("", part)).strip()
    if not code.startswith("static "):
        return ""
    unnamed = re.match(r"static (?:const )?struct \{.*?^\} (\w+)", code, re.DOTALL | re.MULTILINE)
    named = unnamed or re.match(r"[^={;(\[]*\b(\w+)", code)
    return named[1] if named else ""
