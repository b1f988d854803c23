# SPDX-License-Identifier: GPL-2.0-only
"""How many files we may have open: a machine has a descriptor of ours for each processor, and a cure for each file."""

from __future__ import annotations

import resource

_BEFORE = resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_limit() -> None:
    """Have as many descriptors as we may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def limit_as_before() -> None:
    """Have as many as we might at our start, which is for programs that we start: some use select()."""
    resource.setrlimit(resource.RLIMIT_NOFILE, _BEFORE)
