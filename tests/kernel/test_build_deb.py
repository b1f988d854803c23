# SPDX-License-Identifier: GPL-2.0-only
"""Packages of our kernel: what they are configured with, and what is refused before anything is compiled."""

import subprocess
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.cli.main import main
from foliolab.files import digest_files
from foliolab.kernel import build_deb, config
from foliolab.kernel.make import unfinished_swept
from foliolab.kernel.name import parse_name
from foliolab.kernel.source import Source
from foliolab.process import Need
from tests.kernel.kept import kept

LOADED = Path(__file__).parent / "debian-in-qemu.lsmod"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--kernel", "image:debian:6.12"], "is a package of Debian's already; name a source, such as debian:6.12."),
        (["--kernel", "debian:6.12+nothing.mbox"], "There is no series nothing.mbox"),
        (["--modules", "{here}/nothing"], "--modules: {here}/nothing cannot be read: No such file or directory."),
        (["--modules", "{here}/empty"], "lists no module; it has to be what lsmod prints."),
        (["--config", "{here}/nothing"], "is no kernel configuration"),
        (["--config", "{here}/empty"], "is no kernel configuration"),
        (["--config", "~no-such-user/config"], "is no kernel configuration"),
    ],
)
def test_what_cannot_be_built_is_said(
    argv: list[str], sentence: str, source: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(build_deb, "require", lambda purpose: None)
    (tmp_path / "empty").touch()
    words = [word.format(here=tmp_path) for word in argv]
    assert main(["kernel", "deb", *words, str(tmp_path / "out")]) in (2, 24)
    assert sentence.format(here=tmp_path) in capsys.readouterr().err


def test_a_tool_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(process, "_listed", lambda: (Need("no-such-program", "some-package", "deb"),))
    assert main(["kernel", "deb", str(tmp_path / "out")]) == 30
    assert "'apt-get install some-package' brings it." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_our_options_are_set_where_the_distribution_has_them(source: Source) -> None:
    base = {
        "CONFIG_LOCALVERSION": '"-old"',
        "CONFIG_SYSTEM_TRUSTED_KEYS": '"theirs.pem"',
        "CONFIG_DEBUG_INFO_NONE": "n",
        "CONFIG_DEBUG_FS": "y",
        "CONFIG_RD_ZSTD": "n",
    }
    ours = build_deb._wanted(base, source, parse_name("patched"), ours=True)
    assert ours == {
        "CONFIG_LOCALVERSION": '"-foliolab"',
        "CONFIG_SYSTEM_TRUSTED_KEYS": '""',
        "CONFIG_DEBUG_INFO_NONE": "y",
        "CONFIG_RD_ZSTD": "y",
        "CONFIG_PAGE_TOUCH": "y",
    }
    assert "CONFIG_PAGE_TOUCH" not in build_deb._wanted(
        base | {"CONFIG_DEBUG_FS": "n"}, source, parse_name("patched"), ours=True
    )
    unpatched = build_deb._wanted(base, source, parse_name("unpatched"), ours=False)
    assert unpatched["CONFIG_LOCALVERSION"] == '"-foliolab-unpatched"'
    assert "CONFIG_PAGE_TOUCH" not in unpatched


def test_a_removed_kernel_leaves_nothing_behind(tmp_path: Path) -> None:
    """By the real dpkg, in a root directory of its own."""
    root, tree, package = tmp_path / "root", tmp_path / "tree", tmp_path / "linux-image-6.0-x_1_all.deb"
    control = "Package: linux-image-6.0-x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n"
    scripts = {"control": control, "postrm": '#!/bin/sh\nset -e\ntouch "$DPKG_ROOT/hooks-ran"\nexit 0\n'}
    for name, text in scripts.items():
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (tree / "DEBIAN" / name).write_text(text)
        (tree / "DEBIAN" / name).chmod(0o755)
    (tree / "lib/modules/6.0-x").mkdir(parents=True)
    (tree / "lib/modules/6.0-x/modules.dep").touch()
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, package], check=True)
    build_deb._complete(package)

    (root / "var/lib/dpkg/updates").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    there = root / "lib/modules/6.0-x"
    dpkg = ["dpkg", f"--root={root}", "--log=/dev/null", "--force-not-root,script-chrootless,bad-path"]
    subprocess.run([*dpkg, "--install", package], check=True)
    assert [file.name for file in there.iterdir()] == ["modules.dep"]
    (there / "modules.weakdep").touch()
    subprocess.run([*dpkg, "--remove", "linux-image-6.0-x"], check=True)
    assert not there.exists()
    assert (root / "hooks-ran").exists()


@pytest.mark.boot
def test_modules_that_are_not_listed_are_left_out(source: Source, tmp_path: Path) -> None:
    """Debian's configuration, on the pristine tree, which nothing is written to."""
    base = build_deb._base("", source)
    wanted = build_deb._wanted(base, source, parse_name("unpatched"), ours=False)

    def configured() -> list[str]:
        with unfinished_swept(tmp_path):
            build_deb._configure(tmp_path, source.tree, base | wanted, build_deb._listed(LOADED))
        return (tmp_path / ".config").read_text().splitlines()

    how = digest_files([Path(__file__), *Path(build_deb.__file__).parent.glob("*.py")])
    _, compiler = process.compiler(NATIVE)
    decides: list[bytes | str] = [source.identity, config.text(base | wanted), LOADED.read_text(), compiler, how]
    text = "\n".join(kept(decides, configured))
    final = config.parse(text)
    config.check(config.text(wanted), text)
    before, after = (sum(value == "m" for value in options.values()) for options in (base, final))
    assert before > 3000
    assert after < 30
    assert {final[f"CONFIG_{name}"] for name in ("EXT4_FS", "VIRTIO_BLK", "VIRTIO_CONSOLE")} <= {"m", "y"}
