# SPDX-License-Identifier: GPL-2.0-only
"""The guest that LTP's tests find, with a script in their place."""

from pathlib import Path

import pytest

from foliolab.ltp import suite
from foliolab.ltp.build import Ltp, LtpTree
from foliolab.ltp.run import guest_config, run_test
from foliolab.progress import Reporter
from foliolab.suites.ktap import End
from foliolab.vm.tree import make_ext4
from tests.machines import ARM64_4K

_SCRIPT = """\
#!/bin/sh
mkfs.ext4 -q "$LTP_DEV" && mkdir "$TMPDIR/place" && mount "$LTP_DEV" "$TMPDIR/place" && set -- "$@" mounted
grep -q ^CONFIG_XFS_FS=y "$KCONFIG_PATH" && set -- "$@" configured
id -u nobody > /dev/null && set -- "$@" users
echo "script.c:7: TPASS: found $*"
exit "$1"
"""


@pytest.mark.boot
def test_a_test_finds_what_it_needs_and_its_exit_status_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "script").write_text(_SCRIPT)
    (programs / "script").chmod(0o755)
    make_ext4(tmp_path / "disk", 8 << 20, programs)
    ltp = Ltp(LtpTree(tmp_path, "0", "of a script", ()), "of a script", tmp_path / "disk")
    kernel = ARM64_4K.kernel()
    config = guest_config(kernel, ltp, Reporter())
    for status, verdict in ((0, End.PASS), (32, End.SKIP), (34, End.FAIL)):
        result = run_test(suite.Test("mm", "script", f"script {status}"), kernel, config, ltp)
        assert result.subtests == {
            "found N mounted configured users": End.PASS,
            "exit status": verdict,
            "the kernel's log": End.PASS,
        }, result.log.read_text()
