# SPDX-License-Identifier: GPL-2.0-only
"""Programs that fail, and what is said of them."""

from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError


def test_a_compiler_is_quoted_with_its_error_not_with_the_files_that_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("\nint number = word;\n")
    (tmp_path / "a.c").write_text('#include "a.h"\n')
    with pytest.raises(BuildError, match=r"' failed: \S+/a\.h:2:14: error: .word. undeclared"):
        process.run([process.tool(NATIVE.compiler), "-c", str(tmp_path / "a.c")], BuildError, cwd=tmp_path)


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo one >&2; echo two >&2; exit 1", "one"), ("echo output; exit 1", "output"), ("exit 7", "exit status 7")],
)
def test_others_are_quoted_with_their_first_words(script: str, reason: str) -> None:
    with pytest.raises(BuildError, match=rf"' failed: {reason}$"):
        process.run(["sh", "-c", script], BuildError)
