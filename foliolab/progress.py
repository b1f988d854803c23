# SPDX-License-Identifier: GPL-2.0-only
"""What the user sees while work goes on. All of it goes to the standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_HEARTBEAT_SECONDS = 30


class Task:
    """One piece of work in progress: a line with a spinner, or a bar when its size is known."""

    def __init__(self, text: str, total: float | None, bar: Progress | None) -> None:
        self._text = text
        self._total = total
        self._done = 0.0
        self._bar = bar
        self._id = bar.add_task(text, total=total, note="") if bar else None
        self._last_word = time.monotonic()

    def advance(self, amount: float = 1) -> None:
        self._done += amount
        if self._bar and self._id is not None:
            self._bar.update(self._id, completed=self._done)

    def note(self, text: str) -> None:
        if self._bar and self._id is not None:
            self._bar.update(self._id, note=text)
        elif time.monotonic() - self._last_word > _HEARTBEAT_SECONDS:
            self._last_word = time.monotonic()
            share = f" {self._done / self._total:.0%}" if self._total else ""
            print(f"{self._text}{share}: {text}", file=sys.stderr, flush=True)


@cache
def _console() -> Console:
    """One for all: what is said while a bar is drawn stands above it."""
    return Console(stderr=True)


def say(text: str) -> None:
    _console().print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def working(text: str, total: float | None = None) -> Iterator[Task]:
    """Show that ``text`` is going on; with ``total``, how far it is and how long it may take."""
    start = time.monotonic()
    console = _console()
    if not console.is_terminal:
        print(f"{text} ...", file=sys.stderr, flush=True)
        yield Task(text, total, None)
    else:
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        if total is not None:
            columns += [BarColumn(bar_width=24), TextColumn("{task.completed:.0f}/{task.total:.0f}")]
        columns += [TextColumn("{task.fields[note]}", style="dim", markup=False), TimeElapsedColumn()]
        if total is not None:
            columns += [TextColumn("left"), TimeRemainingColumn()]
        # One step may take minutes: estimates from the last 30 s only, which is the default, would be none.
        period = 3600.0
        with Progress(*columns, console=console, transient=True, speed_estimate_period=period) as bar:
            yield Task(text, total, bar)
    say(f"{text}: {time.monotonic() - start:.0f} s")
