# SPDX-License-Identifier: GPL-2.0-only
"""Sets of small numbers as an int each: bit N is number N."""

from __future__ import annotations

from collections.abc import Callable

_IN_BYTE = bytes(bin(byte).count("1") for byte in range(256))


def pack(flags: bytes) -> int:
    """Bit N for byte N, each of which is 0 or 1."""
    flags += bytes(-len(flags) % 8)
    return sum(int.from_bytes(flags[bit::8], "little") << bit for bit in range(8))


def _count_ones(number: int) -> int:
    return sum(number.to_bytes((number.bit_length() + 7) // 8, "little").translate(_IN_BYTE))


count_ones: Callable[[int], int] = getattr(int, "bit_count", _count_ones)
"""How many bits of a number are 1; Python has that since 3.10."""
