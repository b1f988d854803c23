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

    def __init__(self, text: str, total: float | None, bar: Progress) -> None:
        self._bar = bar
        self._id = bar.add_task(text, total=total, note="")
        self._last_word = time.monotonic()

    def advance(self, amount: float = 1) -> None:
        self._bar.advance(self._id, amount)

    def note(self, text: str) -> None:
        self._bar.update(self._id, note=text)
        if self._bar.disable and time.monotonic() - self._last_word > _HEARTBEAT_SECONDS:
            self._last_word = time.monotonic()
            (task,) = self._bar.tasks
            share = f" {task.percentage:.0f}%" if task.total else ""
            print(f"{task.description}{share}: {text}", file=sys.stderr, flush=True)


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
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if total is not None:
        columns += [BarColumn(bar_width=24), TextColumn("{task.completed:.0f}/{task.total:.0f}")]
    columns += [TextColumn("{task.fields[note]}", style="dim", markup=False), TimeElapsedColumn()]
    if total is not None:
        columns += [TextColumn("left"), TimeRemainingColumn()]
    # One step may take minutes: estimates from the last 30 s only, which is the default, would be none.
    period, silent = 3600.0, not console.is_terminal
    with Progress(*columns, console=console, transient=True, speed_estimate_period=period, disable=silent) as bar:
        if bar.disable:
            print(f"{text} ...", file=sys.stderr, flush=True)
        yield Task(text, total, bar)
    say(f"{text}: {time.monotonic() - start:.0f} s")
