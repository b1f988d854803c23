# SPDX-License-Identifier: GPL-2.0-only
"""The trees that kernels are built in: a pristine one, and what is changed in it."""

import json
from collections.abc import Mapping
from pathlib import Path

from foliolab.errors import SourceError
from foliolab.files import full_disk_named, write_atomic
from foliolab.kernel.source import Source
from foliolab.process import run, tool


def working_tree(source: Source, label: str, changed: Mapping[str, bytes | None]) -> Path:
    """Bring the tree of this label to ``changed`` over the pristine files, and return it.

    A file whose content is None is not there. The caller holds the lock of all that use this label.

    Kernels are built from these trees, which are kept beside the pristine one: each label has its own, so that make
    never takes another one's files for new. They share unchanged files with the pristine
    tree by hard links. A file that a series changed once stays a file of its own: whenever its content changes, also
    back to the pristine one, it is written anew, with a new time stamp, so that make rebuilds what depends on it and
    nothing else.
    """
    tree = source.home / f"work-{label}"
    manifest = source.home / f"work-{label}.json"
    own = set(changed) | set(json.loads(manifest.read_text()) if manifest.exists() else [])
    # Recorded before the first write: a kill in between must not leave a change that nobody knows of.
    write_atomic(manifest, json.dumps(sorted(own)))
    with full_disk_named(tree):
        _share_all_but(own, source.tree, tree)
        for file in own:
            pristine, place = source.tree / file, tree / file
            content = changed.get(file, pristine.read_bytes() if pristine.exists() else None)
            if content is None:
                place.unlink(missing_ok=True)
            elif not place.exists() or place.read_bytes() != content:
                write_atomic(place, content)
                place.chmod(pristine.stat().st_mode & 0o777 if pristine.exists() else 0o644)
    return tree


def _share_all_but(own: set[str], pristine: Path, tree: Path) -> None:
    tree.mkdir(parents=True, exist_ok=True)
    run(
        [tool("rsync"), "-a", "--delete", "--exclude-from=-", f"--link-dest={pristine}",
         f"{pristine}/", f"{tree}/"],
        SourceError,
        stdin="".join(f"/{file}\n" for file in sorted(own)).encode(),
    )  # fmt: skip
