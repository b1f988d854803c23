# SPDX-License-Identifier: GPL-2.0-only
"""The series without some of its commits, beside which others stand in lists of files, options and tests."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

from foliolab.errors import HookError


def without(contents: Sequence[dict[str, bytes]], pristine: dict[str, bytes], out: set[int]) -> list[dict[str, bytes]]:
    """Files after each commit that stays, if those with the numbers in ``out`` are left out.

    ``contents`` is what files are after each of all commits, and ``pristine`` what they are before the first. Raises
    HookError if a commit that stays changes what one that is left out has brought.
    """
    before, ours = dict(pristine), dict(pristine)
    result = []
    for number, after in enumerate(contents):
        if number not in out:
            result.append({file: _moved(file, before, text, ours) for file, text in after.items()})
            ours |= result[-1]
        before |= after
    return result


def _moved(file: str, before: dict[str, bytes], after: bytes, ours: dict[str, bytes]) -> bytes:
    """What the change from ``before`` to ``after`` makes of ``ours``, which lacks lines of ``before``."""
    if before.get(file) == ours.get(file):
        return after
    old, new, mine = (text.splitlines(keepends=True) for text in (before[file], after, ours.get(file, b"")))
    kept = [1] * len(old)
    for start, end, brought in _changes(old, mine):
        if brought:
            raise HookError(f"{file} has lines that no commit before has made.")
        kept[start:end] = [0] * (end - start)
    place = [0, *accumulate(kept)]
    """How many lines ours has of those before each of the old ones."""
    for start, end, brought in reversed(list(_changes(old, new))):
        # Lines that come between two, or to all lines of a file, belong to these.
        between = file not in ours or (0 < start < len(old) and not any(kept[start - 1 : start + 1]))
        if between or place[end] - place[start] != end - start:
            raise HookError(f"A commit that stays changes lines of {file} that are of one left out.")
        mine[place[start] : place[end]] = brought
    return b"".join(mine)


def _changes(old: list[bytes], new: list[bytes]) -> Iterator[tuple[int, int, list[bytes]]]:
    """Where lines of ``old`` begin and end, and what is in their place, in order."""
    # Most of a long file is the same, and takes long to compare.
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    rest = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
    inner = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for tag, start, end, first, last in inner.get_opcodes():
        if tag != "equal":
            yield start + head, end + head, new[first + head : last + head]
