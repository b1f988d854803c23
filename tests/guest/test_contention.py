# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from tests.guest.program import failed

PROBE = "contention"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--disk is missing; see --help."),
        (["x"], "'x' is not an option; see --help."),
        (["--files", "two"], "--files has no value 'two'; see --help."),
        (["--disk", "x", "--threads", "65"], "--threads goes up to 64."),
        (["--own_pages", "15"], "--own_pages takes a number of at least 16, not '15'."),
    ],
)
def test_bad_arguments(probe: Path, arguments: list[str], sentence: str) -> None:
    assert failed(probe, *arguments) == (2, f"contention: {sentence}")


def test_a_disk_that_is_not_there(probe: Path) -> None:
    assert failed(probe, "--disk", "/no/disk") == (1, "contention: /no/disk: No such file or directory.")
