# SPDX-License-Identifier: GPL-2.0-only
"""Cells of an experiment for who has no lab: a C file, and a script that shows the effect on any Linux."""

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foliolab.analyse.rows import Group, Row, make_rows
from foliolab.arch import X86_64, machine_name
from foliolab.campaign.sample import MODEL
from foliolab.errors import UsageError
from foliolab.experiment.cell import Cell
from foliolab.experiment.spec import Experiment, Scale
from foliolab.files import REPOSITORY
from foliolab.report.view import timeless
from foliolab.vm.image import program_sources
from foliolab.vm.inlined import inlined

_SCRIPT = Path(__file__).with_suffix(".sh")
"""The script, with @words@ for what differs."""
_WINDOW = "read_ahead_kb"
"""The axis, and the parameter, in whose place the script sets windows."""
_HINT = re.compile(r'^\t\{ "hint",', re.MULTILINE)
"""A program's option of that name, which takes "random"."""
_PAGE_BYTES = 4096
"""Of the pages that names of trees count."""
_WIDTH = 78
_TITLES = ("window", "setting", "MiB needed", "MiB read", "requests", "major faults", "seconds")
_DECIMALS = {"floor_bytes": 1, "read_bytes": 1, "read_requests": 0, "major_faults": 0, "seconds": 3}
_HINTED, _OFF = ", MADV_RANDOM", ", rules off"
"""How rows with this hint, and without our rules, are called besides."""
_SHOWN = ("unpatched", "off", "adaptive")
"""Variants whose figures a reader of the script can compare with."""
RULES = (
    "/sys/kernel/mm/mmap_readahead/adaptive",
    "/sys/kernel/debug/mmap_readahead/hit_*",
    "/sys/kernel/debug/mmap_readahead/text_*",
    "/sys/kernel/debug/mmap_readahead/huge_*",
    "/sys/kernel/debug/mprotect/alike_runs",
    "/sys/module/mmap_readahead_window/parameters/adaptive",
)
"""Our switches, of the kernel and of the module: with 0 in all of them, the rules are off."""


@dataclass(frozen=True)
class ExportedCase:
    name: str
    """Of its files, without a suffix."""
    experiment: Experiment
    scale: Scale
    cells: tuple[Cell, ...]
    """Without windows."""
    windows: tuple[int, ...]
    """KiB."""

    @property
    def source(self) -> Path:
        return program_sources()[self.experiment.argv[0]]

    @property
    def common(self) -> Cell:
        """What all cells have."""
        return Cell(tuple(axis for axis in self.cells[0].axes if all(axis in cell.axes for cell in self.cells)))

    def own(self, cell: Cell) -> Cell:
        """What a cell has besides."""
        return cell.without(dict(self.common.axes))

    def words(self, cell: Cell) -> str:
        """What tells rows of a cell from others."""
        return self.own(cell).label or self.common.label or self.experiment.name

    @property
    def form(self) -> str:
        """Of a row of the table, for printf."""
        width = max(len(self.words(cell)) for cell in self.cells) + len(_HINTED)
        return f"%6s  %-{width}s %10s %9s %9s %13s %9s"


def case_of(
    name: str, experiment: Experiment, scale: Scale, cells: Sequence[Cell], windows: Sequence[int]
) -> ExportedCase:
    """The case that ``cells`` make, of which some may differ by nothing but the window.

    ``windows`` are those of the cells, or of the scale, if none are given. Without a ``name``, experiment and cells
    make one. UsageError for what only a guest of the lab has.
    """
    _require_portable(experiment, scale)
    if not re.fullmatch(r"[\w.-]*", name):
        raise UsageError(f"'{name}' is no name for a program: it takes letters, digits, '-', '_' and '.'.")
    own = [int(value) for cell in cells for axis, value in cell.axes if axis == _WINDOW]
    chosen = tuple(dict.fromkeys(windows or own or [scale.parameters.read_ahead_kb]))
    without_windows = tuple(dict.fromkeys(cell.without((_WINDOW,)) for cell in cells))
    case = ExportedCase(name, experiment, scale, without_windows, chosen)
    words = re.findall(r"\w[\w.-]*", f"{experiment.name} {case.common.label}")
    return case if name else replace(case, name="-".join(words))


def _require_portable(experiment: Experiment, scale: Scale) -> None:
    parameters = scale.parameters
    disk = "programs" if parameters.programs else parameters.content
    if disk not in ("zeros", "trees"):
        raise UsageError(f"{experiment.name} works on a disk of '{disk}', which cannot be put into a C file.")
    if experiment.names_disks:
        raise UsageError(f"{experiment.name} works on a whole disk of a guest, which no other machine has to spare.")
    if experiment.argv[0] not in program_sources():
        raise UsageError(f"{experiment.name} runs '{experiment.argv[0]}', which is no program of guest/.")


def c_file(case: ExportedCase, commit: str) -> str:
    """The program with all its headers; ``commit`` says what it is made from."""
    place = case.source.relative_to(REPOSITORY)
    made = f"{place} of foliolab ({commit}) with its headers, for {case.name}.sh. To compile:"
    comment = [f" * {line}" for line in textwrap.wrap(made, _WIDTH - 1, break_on_hyphens=False)]
    comment = ["/*", *comment, " *", f" *\tcc -O2 -pthread -o {case.name} {case.name}.c", " */"]
    return "\n".join(["// SPDX-License-Identifier: GPL-2.0-only", *comment, inlined(case.source)])


def script(case: ExportedCase, groups: Iterable[Group]) -> str:
    """The lines of a shell that show the effect. What kernels of ``groups`` did in the same case is in a comment."""
    about = [f"# {line}".rstrip() for line in (*_about(case), *_measured(case, groups))]
    fields = {
        "about": "\n".join(about),
        "name": case.name,
        "memory": str(case.scale.parameters.memory_bytes),
        "windows": " ".join(map(str, case.windows)),
        "form": case.form,
        "options": " ".join(map(_spelled, (*_words(case), *_options(case.common)))),
        "cells": "\n".join(_cells(case)),
        "data": "\n".join(_data(case)),
        "titles": case.form % _TITLES,
        "hinted": f"cells {shlex.quote(_HINTED)} --hint random" if _has_hint(case) else "",
        "rules": " \\\n\t".join(RULES),
        "off": shlex.quote(_OFF),
    }
    text = re.sub(r"@(\w+)@", lambda field: fields[field[1]], _SCRIPT.read_text())
    return re.sub(r"\n\n+(\n|rules=)", r"\n\1", text)


def _cells(case: ExportedCase) -> Iterator[str]:
    """Commands that print the rows of each."""
    for cell in case.cells:
        yield "\t" + " ".join([f'rows "{case.words(cell)}$words"', *map(shlex.quote, _options(case.own(cell))), '"$@"'])


def _about(case: ExportedCase) -> Iterator[str]:
    parameters = case.scale.parameters
    written = f"{parameters.file_bytes >> 20} MiB" if parameters.file_bytes else f"files ({parameters.trees})"
    does = [
        f"Write {written} to the disk that DIRECTORY is on, run the program with each readahead window, and print what"
        f" the kernel read. PROGRAM is {case.name}.c, compiled; without it, this compiles it.",
        f"Only root can set the window, drop all caches, and limit memory to {parameters.memory_bytes >> 20} MiB. In"
        " the end, also after Ctrl-C, the data is removed, and settings are as they were before.",
    ]
    if parameters.boot_each:
        does.append("An adaptive window learns from each run; the first one after a boot is as in the lab.")
    what = ", ".join(filter(None, (case.experiment.name, case.common.label)))
    yield from ("", f"usage: sh {case.name}.sh DIRECTORY [PROGRAM]")
    values = {f"{value}" for _, value in case.common.axes}
    notes = [note for note in case.experiment.notes if note.partition(": ")[0] in values]
    for words in (f"{what}: {case.experiment.question}", *notes, " ".join(does)):
        yield from ("", *textwrap.wrap(words, _WIDTH, break_on_hyphens=False))
    yield ""


def _measured(case: ExportedCase, groups: Iterable[Group]) -> Iterator[str]:
    for group in groups:
        if rows := [row for row in _known(case, group) if row.n and row.variant in _SHOWN]:
            disk = f", device {group.device}" if group.device else ""
            yield f"Medians of {min(row.n for row in rows)} boots of guests with that memory, {group.backend}{disk}:"
            yield case.form % _TITLES
            yield from (_line(case, row, timed=not timeless(group)) for row in rows)
            yield ""


def _known(case: ExportedCase, group: Group) -> list[Row]:
    """Those of the case, of the machine that most have."""
    experiment = case.experiment
    usual = machine_name(X86_64.name, X86_64.page_sizes[0])
    if (group.experiment, group.scale, group.machine) != (experiment.name, case.scale.name, usual):
        return []
    rows = [] if group.backend == MODEL else make_rows(group, experiment)
    return [row for row in rows if row.cell.without((_WINDOW,)) in case.cells]


def _line(case: ExportedCase, row: Row, *, timed: bool) -> str:
    figures = [
        f"{row.metrics[name].median / (1 << 20 if name.endswith('_bytes') else 1):.{decimals}f}"
        if name in row.metrics and (timed or name != "seconds")
        else "-"
        for name, decimals in _DECIMALS.items()
    ]
    window = row.cell.as_dict().get(_WINDOW, case.scale.parameters.read_ahead_kb)
    return case.form % (window, f"{case.words(row.cell.without((_WINDOW,)))}, {row.variant}", *figures)


def _data(case: ExportedCase) -> Iterator[str]:
    """Random bytes, of which no disk stores less."""
    parameters = case.scale.parameters
    if not any("{data}" in word for word in case.experiment.argv):
        return
    if parameters.file_bytes:
        yield f'head -c {parameters.file_bytes} /dev/urandom >"$place/data"'
    for files, pages in (map(int, tree.split("x")) for tree in parameters.trees.split()):
        yield f'mkdir "$place/{files}x{pages}"'
        yield f"for file in $(seq 0 {files - 1}); do"
        yield f'\thead -c {pages * _PAGE_BYTES} /dev/urandom >"$place/{files}x{pages}/$file"'
        yield "done"


def _words(case: ExportedCase) -> list[str]:
    parameters = case.scale.parameters
    data = "$place/data" if parameters.file_bytes else "$place"
    values = {**parameters.recorded(), "data": data, "repetition": 1, _WINDOW: "$kb"}
    return [word.format(**values) for word in case.experiment.argv[1:]]


def _options(cell: Cell) -> list[str]:
    return [word for axis, value in cell.axes for word in (f"--{axis}", str(value))]


def _spelled(word: str) -> str:
    """For a shell, which replaces variables."""
    if word == "--drop-caches":
        return f"${{root:+{word}}}"
    return f'"{word}"' if "$" in word else shlex.quote(word)


def _has_hint(case: ExportedCase) -> bool:
    return not any("hint" in cell.as_dict() for cell in case.cells) and bool(_HINT.search(case.source.read_text()))
