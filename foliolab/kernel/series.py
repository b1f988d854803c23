# SPDX-License-Identifier: GPL-2.0-only
"""Our changes: new files, and the hooks that call them from existing ones."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from foliolab.errors import HookError
from foliolab.kernel.source import Source
from foliolab.paths import KERNEL
from foliolab.process import tool


@dataclass(frozen=True)
class Feature:
    """One patch of the series, and the new files that come with it."""

    patch: Path
    files: tuple[str, ...]
    """Paths below kernel/files, which are their paths in the kernel tree."""


def read_series(kernel: Path = KERNEL) -> tuple[Feature, ...]:
    """The features in order. Every file of kernel/files belongs to exactly one of them."""
    series = kernel / "patches" / "series"
    features = []
    for line in series.read_text().splitlines():
        match line.partition("#")[0].split():
            case [patch, *files]:
                features.append(Feature(kernel / "patches" / patch, tuple(files)))
    claimed = [file for feature in features for file in feature.files]
    present = {str(path.relative_to(kernel / "files")) for path in (kernel / "files").rglob("*") if path.is_file()}
    for feature in features:
        if not feature.patch.is_file():
            raise HookError(f"{series} names {feature.patch.name}, which is not there.")
    for file in sorted(present.symmetric_difference(claimed)):
        where = "is in no line of" if file in present else "is not in kernel/files but in"
        raise HookError(f"{file} {where} {series}.")
    if doubles := {file for file in claimed if claimed.count(file) > 1}:
        raise HookError(f"{series} names {sorted(doubles)[0]} twice.")
    return tuple(features)


def changed_files(source: Source, features: tuple[Feature, ...], kernel: Path = KERNEL) -> dict[str, bytes]:
    """Path and content of every file in which the patched tree differs from the pristine one.

    Raises HookError, naming patch, file and hunk, for a hook that does not apply.
    """
    with tempfile.TemporaryDirectory(prefix="foliolab-hooks-") as name:
        scratch = Path(name)
        touched: set[str] = set()
        for feature in features:
            for file in sorted(patched_files(feature.patch) - touched):
                if not (source.tree / file).is_file():
                    raise HookError(f"{feature.patch.name} changes {file}, which Linux {source.version} has not.")
                (scratch / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source.tree / file, scratch / file)
                touched.add(file)
            apply_patch(feature.patch, scratch, source.version)
            for file in feature.files:
                (scratch / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(kernel / "files" / file, scratch / file)
                touched.add(file)
        return {file: (scratch / file).read_bytes() for file in sorted(touched)}


def patched_files(patch: Path) -> set[str]:
    """The existing files that a patch changes."""
    return set(re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE))


def apply_patch(patch: Path, tree: Path, version: str) -> None:
    """Apply a hook to ``tree``; HookError names the first hunk that fails."""
    done = subprocess.run(
        [tool("patch", "patch"), "--strip=1", "--force", "--no-backup-if-mismatch", "--input", str(patch)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    file = "?"
    for line in done.stdout.splitlines():
        if match := re.match(r"patching file (\S+)", line):
            file = match[1]
        if match := re.match(r"Hunk #(\d+) FAILED at (\d+)", line):
            raise HookError(
                f"{patch.name} does not apply to Linux {version}: hunk {match[1]} of {file} (near line {match[2]}) "
                "finds other code there."
            )
    words = (done.stdout + done.stderr).strip().splitlines()
    raise HookError(f"{patch.name} does not apply to Linux {version}: {words[-1] if words else 'patch gave no reason'}")
