# SPDX-License-Identifier: GPL-2.0-only
"""Machines as experiment files name them: an architecture and a page size, such as arm64-64k."""

from collections.abc import Collection

from foliolab.arch import ARCHITECTURES, size_name


def machine_name(arch: str, page_size: int) -> str:
    """The name of ``arch`` with pages of ``page_size`` bytes."""
    return f"{arch}-{size_name(page_size)}"


MACHINES = tuple(machine_name(arch.name, size) for arch in ARCHITECTURES.values() for size in arch.page_sizes)


def applies(machines: Collection[str], machine: str) -> bool:
    """Whether what is restricted to ``machines``, or to none, is for ``machine``."""
    return not machines or machine in machines
