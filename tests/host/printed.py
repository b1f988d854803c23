# SPDX-License-Identifier: GPL-2.0-only
"""What the host's tools print on a terminal."""

import io
from collections.abc import Callable

from foliohost.terminal import Terminal


def printed(show: Callable[[Terminal], object], width: int = 120) -> list[str]:
    """The lines of what ``show`` prints on a terminal so wide that shows no styles."""
    stream = io.StringIO()
    show(Terminal(stream, width))
    return stream.getvalue().splitlines()
