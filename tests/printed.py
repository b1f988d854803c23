# SPDX-License-Identifier: GPL-2.0-only
"""What is printed on a terminal."""

import io
from collections.abc import Callable

from rich.console import Console


def printed(show: Callable[[Console], object], width: int = 120, *, colour: bool = False) -> list[str]:
    """The lines of what ``show`` prints on a terminal so wide, without blanks at their ends."""
    stream = io.StringIO()
    show(Console(file=stream, width=width, highlight=False, force_terminal=colour))
    return [line.rstrip() for line in stream.getvalue().splitlines()]
