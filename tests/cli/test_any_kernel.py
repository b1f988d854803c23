# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path

import pytest

from foliolab.kernel.built import BuiltKernel
from tests.cli.command import lab
from tests.small import small_experiment

ONE_MISS_ALLOWED = """\
diff --git a/mm/filemap.c b/mm/filemap.c
--- a/mm/filemap.c
+++ b/mm/filemap.c
@@ -3092,3 +3092,3 @@
 #ifdef CONFIG_MMU
-#define MMAP_LOTSAMISS  (100)
+#define MMAP_LOTSAMISS  (1)
 /*
"""


@pytest.mark.boot
def test_a_kernel_that_differs_in_a_line_is_compared_with_ours(tmp_path: Path, patched_kernel: BuiltKernel) -> None:
    """One object is compiled anew; the kernel then gives up reading around after a miss."""
    patch = tmp_path / "one-line.patch"
    patch.write_text(ONE_MISS_ALLOWED)
    other = f"debian:6.12+ours+{patch}"
    argv = ["measure", str(small_experiment(tmp_path)), "--kernel", "patched", "--kernel", other]
    argv += ["--variant", "published", "--cell", "pattern=random", "--json"]
    done = lab(*argv, FOLIOLAB_RESULTS=str(tmp_path / "results"))
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)["samples"]
    if ours["variant"] != "published":
        ours, theirs = theirs, ours
    assert (ours["variant"], theirs["variant"]) == ("published", f"published on {other}")
    assert ours["kernel"]["hash"] == patched_kernel.hash
    assert theirs["kernel"]["hash"] != patched_kernel.hash
    assert theirs["kernel"] | {"hash": ""} == {
        "name": other,
        "version": patched_kernel.version,
        "release": patched_kernel.release,
        "hash": "",
    }
    assert theirs["metrics"]["read_bytes"] < ours["metrics"]["read_bytes"] / 2
