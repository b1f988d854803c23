# SPDX-License-Identifier: GPL-2.0-only
"""The guest that LTP's tests find, with a script in their place."""

from pathlib import Path

import pytest

from foliolab.suites.ktap import End
from foliolab.suites.ltp import SKIPPED, ltp_guest, parse
from foliolab.suites.suite import ForeignSuite
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
    guest = ltp_guest(tmp_path / "disk")
    kernel = ARM64_4K.kernel()
    for status, verdict in ((0, End.PASS), (32, End.SKIP), (34, End.FAIL)):
        calls = {"script": guest.call(f"script {status}", (f"script {status}",))}
        result = ForeignSuite("a script", "ltp", "1", calls, parse, SKIPPED).run("script", kernel)
        assert result.subtests == {
            "found N mounted configured users": End.PASS,
            "exit status": verdict,
            "the kernel's log": End.PASS,
        }, result.log.read_text()
