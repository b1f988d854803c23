# SPDX-License-Identifier: GPL-2.0-only
"""What diagnose predicts of remedies, and what these give: the table of docs/diagnose.md. Started by hand, as root.

``PYTHONPATH=host python -m tests.host.predictions --write`` makes docs/data/predictions.md. Each program of
``touch_cases.py`` is looked at while it reads a file on a loop device. Then it does the same after ``cure apply``, and
with a hint.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from foliohost.devices import device_of
from foliohost.windows import set_device
from foliolab.files import REPOSITORY
from tests.host import touch_cases
from tests.host.command import ARGV, ENVIRONMENT
from tests.host.test_large import ahead_of_others
from tests.host.touch_cases import CASES, PAGE, PAGES
from tests.host.toucher import drop

RESULT = REPOSITORY / "docs/data/predictions.md"
WINDOWS = (128, 1024)
CURE_KB = "16"
CURE, HINT = "a smaller window for this open file", "a hint of the program's own"
FIGURES = {"bytes": (1 << 20, 1), "waits": (1, 0), "seconds": (1, 2)}
"""By what each is divided for a table, and its digits then."""
LIMITED, LIMIT_MIB = "9,000 at random, memory for 96 MiB", 96
GROUP = Path("/sys/fs/cgroup/memory/foliolab-predictions")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What was predicted and what came of it, by remedy; without a remedy, the verdict says why there is none."""

    case: str
    window_kb: int
    verdict: str
    now: tuple[Figures, Figures]
    """As diagnose saw it, and as the program counted it; its seconds are of an unobserved run."""
    remedies: dict[str, tuple[Figures, Figures]]


@contextmanager
def disk() -> Iterator[Path]:
    """A file on a loop device that reads past the page cache, so that the disk below is what is waited for."""
    with tempfile.TemporaryDirectory() as scratch:
        image, place = Path(scratch) / "image", Path(scratch) / "disk"
        place.mkdir()
        with image.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, (PAGES * PAGE) + (64 << 20))
        subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", str(image)], check=True)
        loop = subprocess.check_output(["losetup", "--find", "--show", "--direct-io=on", str(image)], text=True).strip()
        try:
            subprocess.run(["mount", loop, str(place)], check=True)
            piece = os.urandom(1 << 20)
            with (place / "file").open("wb") as stream:
                for _ in range(PAGES * PAGE >> 20):
                    stream.write(piece)
                os.fsync(stream.fileno())
            yield place / "file"
        finally:
            subprocess.run(["umount", "--lazy", str(place)])
            subprocess.run(["losetup", "--detach", loop], check=True)


@contextmanager
def memory_group() -> Iterator[None]:
    """A control group (of version 1) whose processes have little memory."""
    GROUP.mkdir()
    (GROUP / "memory.limit_in_bytes").write_text(str(LIMIT_MIB << 20))
    try:
        yield
    finally:
        GROUP.rmdir()


def program(path: Path, case: str, *options: str) -> list[str]:
    """The command that does it, where there is little memory if the case says so."""
    argv = [sys.executable, touch_cases.__file__, str(path), case, *options]
    return ["sh", "-c", f'echo 0 >{GROUP}/cgroup.procs; exec "$@"', "sh", *argv] if case == LIMITED else argv


def diagnosed(path: Path, case: str) -> tuple[Figures, Figures]:
    """What diagnose says of the file and of all, and what the program says of itself."""
    drop(path)
    argv = [*ARGV, "diagnose", "--json", "--", *program(path, case)]
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=True, preexec_fn=ahead_of_others)
    found = json.loads(done.stdout)
    (file,) = (each for each in found["files"] if each["path"] == str(path))
    return {**file, "verdict": found["verdict"]}, json.loads(done.stderr.splitlines()[0])


def done_with(path: Path, case: str, remedy: str) -> Figures:
    """What the program says of itself with a remedy, or without one."""
    drop(path)
    argv = program(path, case, "wait", *(["hint"] if remedy == HINT else []))
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, preexec_fn=ahead_of_others) as running:
        assert running.stdout
        assert running.stdout.readline() == "ready\n"
        if remedy == CURE:
            cure(path, "apply", "--file", str(path), "--read-ahead-kb", CURE_KB)
        out, _ = running.communicate("\n")
    if remedy == CURE:
        cure(path, "undo")
    found: Figures = json.loads(out)
    return found


def cure(path: Path, *words: str) -> None:
    settings = ENVIRONMENT | {"FOLIOLAB_STATE": str(path.parents[1] / "state")}
    subprocess.run([*ARGV, "cure", *words], env=settings, check=True, stdout=sys.stderr)


def measured(path: Path, case: str, window_kb: int) -> Row:
    set_device(device_of(path).attribute, window_kb)
    file, itself = diagnosed(path, case)
    told = {each["name"]: each for each in file["remedies"] if _is_told(each)}
    remedies = {name: (told[name], done_with(path, case, name)) for name in (CURE, HINT) if name in told}
    now = {"bytes": file["read_bytes"], "waits": file["waits"], "seconds": file["disk_seconds"]}
    unseen = {
        **itself,
        "seconds": done_with(path, case, "")["seconds"],
    }  # while observed, it shares its processors with diagnose
    return Row(case, window_kb, file["verdict"], (now, unseen), remedies)


def typical(rows: Sequence[Row]) -> Row:
    """Medians of predictions and results, for remedies told in every round."""

    def medians(figures: Sequence[Figures]) -> Figures:
        known = {name: [each[name] for each in figures if each[name] is not None] for name in FIGURES}
        return {**figures[0], **{name: median(each) if each else None for name, each in known.items()}}

    def pair(pairs: Sequence[tuple[Figures, Figures]]) -> tuple[Figures, Figures]:
        return medians([told for told, _ in pairs]), medians([real for _, real in pairs])

    always = [name for name in rows[0].remedies if all(name in row.remedies for row in rows)]
    remedies = {name: pair([row.remedies[name] for row in rows]) for name in always}
    return replace(rows[0], now=pair([row.now for row in rows]), remedies=remedies)


def _is_told(remedy: Figures) -> bool:
    """Whether anything was predicted of it."""
    return remedy["bytes"] is not None or bool(remedy["bytes_bounds"])


def off(told: Figures, real: Figures, name: str) -> str:
    """How much too high a prediction was, or whether what came lay between two bounds."""
    if name == "bytes" and (bounds := told.get("bytes_bounds")):
        return "between" if bounds[0] <= real[name] <= bounds[1] else "outside"
    if told[name] is None or not real[name]:
        return ""
    return f"{100 * (told[name] / real[name] - 1):+.0f} %".replace("+0 ", "0 ").replace("-0 ", "0 ")


def table(rows: Sequence[Row]) -> Iterator[str]:
    heads = [f"{name}, {kind}" for kind in ("now", "16 KiB", "hint") for name in FIGURES]
    yield f"| touches | window | verdict | {' | '.join(heads)} |"
    yield f"|---|---|---|{'---|' * len(heads)}"
    for row in rows:
        pairs = [row.now, row.remedies.get(CURE), row.remedies.get(HINT)]
        cells = [off(*pair, name) if pair else "" for pair in pairs for name in FIGURES]
        yield f"| {row.case} | {row.window_kb} | `{row.verdict}` | {' | '.join(cells)} |"


def raw(rows: Sequence[Row]) -> Iterator[str]:
    yield "| touches | window | remedy | MiB predicted | MiB | waits predicted | waits | s predicted | s |"
    yield f"|---|---|---|{'---:|' * 6}"
    for row in rows:
        for name, (told, real) in {"as it is": row.now, **row.remedies}.items():
            pairs = [(each[figure], *how) for figure, how in FIGURES.items() for each in (told, real)]
            cells = ["" if each is None else f"{each / scale:,.{digits}f}" for each, scale, digits in pairs]
            if bounds := told.get("bytes_bounds"):
                cells[0] = " to ".join(f"{each / (1 << 20):,.1f}" for each in bounds)
            yield f"| {row.case} | {row.window_kb} | {name} | {' | '.join(cells)} |"


def text(rows: Sequence[Row], number: int) -> str:
    return "\n".join([
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        "# Tables behind the predictions",
        "",
        f"What `diagnose` predicted on Linux {platform.release().partition('-')[0]}, and what came of it (medians of"
        f" {number}): `PYTHONPATH=host python -m tests.host.predictions --write`.",
        "[How good predictions are](../diagnose.md#how-good-predictions-are) explains them. The first table tells by"
        " how much each prediction was too high, or whether what came lay between two bounds. A remedy that was not"
        f" told each time is left out, and touches under {touch_cases.CACHED_SECONDS * 1e6:.0f} us count as no wait.",
        "*Now* compares what `diagnose` saw with what the program counted, and seconds with those of an unobserved"
        " run.",
        "",
        *table(rows),
        "",
        *raw(rows),
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name} rather than print it")
    parser.add_argument("--rounds", type=int, default=3, help="how often all is measured, one round after the other")
    arguments = parser.parse_args()
    measurements: dict[tuple[str, int], list[Row]] = {}
    with disk() as path, memory_group():
        for _ in range(arguments.rounds):
            for case, window_kb in product(arguments.case or CASES, WINDOWS):
                row = measured(path, case, window_kb)
                measurements.setdefault((case, window_kb), []).append(row)
                print(*raw([row]), sep="\n", file=sys.stderr, flush=True)
    found = text([typical(rows) for rows in measurements.values()], arguments.rounds)
    if arguments.write:
        RESULT.write_text(found)
    else:
        print(found)


if __name__ == "__main__":
    main()
