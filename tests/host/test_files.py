# SPDX-License-Identifier: GPL-2.0-only
import os
from pathlib import Path

import pytest

from foliohost.files import write_atomic


def test_who_owns_the_directory_cannot_have_another_file_made_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root writes metrics into a directory of another user's."""
    secret, place = tmp_path / "secret", tmp_path / "place"
    secret.write_text("secret")
    secret.chmod(0o600)
    place.mkdir()
    flush = os.fsync

    def swap(handle: int) -> None:
        flush(handle)
        (new,) = place.iterdir()
        new.unlink()
        new.symlink_to(secret)

    monkeypatch.setattr(os, "fsync", swap)
    write_atomic(place / "file", "content")
    assert secret.stat().st_mode & 0o777 == 0o600


def test_all_may_read_what_is_written(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", "content")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "file").read_text() == "content"
