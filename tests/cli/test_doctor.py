# SPDX-License-Identifier: GPL-2.0-only
import json
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARCHITECTURES, ARM64, NATIVE
from foliolab.cli import doctor
from foliolab.cli.main import main
from tests.cli.command import lab

FOREIGN = next(arch for arch in ARCHITECTURES.values() if not arch.native)


def test_each_architecture_has_its_say() -> None:
    findings = {finding["subject"]: finding for finding in json.loads(lab("doctor", "--json").stdout)["findings"]}
    for name in ARCHITECTURES:
        assert findings[f"{name} kernels"]["state"] == "ok"
        assert findings[f"{name} guests"]["state"] in ("ok", "limited")
    for name in ARCHITECTURES.keys() - {NATIVE.name}:
        assert f"this machine is no {name} machine" in findings[f"{name} guests"]["detail"]


def test_what_disturbs_seconds_is_told_with_its_cure() -> None:
    done = lab("doctor", "--noise", "--json")
    findings = json.loads(done.stdout)["findings"]
    assert done.returncode == 0
    assert findings
    assert all(finding["state"] == "ok" or finding["cure"] for finding in findings)


def test_what_a_build_lacks_has_one_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find", lambda name: None)
    found = doctor._kernels(FOREIGN)
    headers = f"{FOREIGN.headers}/stdio.h"
    assert (found.state, found.detail) == ("missing", f"no {FOREIGN.compiler} and no {headers}")
    cross = f"gcc-{FOREIGN.machine.replace('_', '-')}-linux-gnu libc6-dev-{FOREIGN.debian}-cross"
    assert found.cure == f"apt-get install {cross}"
    assert doctor._kernels(NATIVE).cure == "apt-get install gcc libc6-dev"


def test_an_emulator_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = doctor._guests(ARM64)
    assert (found.state, found.cure) == ("missing", "apt-get install qemu-system-arm")


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("compiler", "m68k-linux-gnu-gcc"),
        ("qemu", "qemu-system-m68k"),
    ],
)
def test_a_new_architecture_takes_lines_in_the_list_of_packages(
    part: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = replace(FOREIGN, name="m68k", **{part: name})  # type: ignore[arg-type]
    monkeypatch.setattr(doctor, "ARCHITECTURES", {"m68k": new})
    assert main(["doctor"]) == 30
    words = f"lab: packages.txt does not say which package brings {name}; add a line for it there.\n"
    assert capsys.readouterr() == ("", words)


def test_what_some_stores_lack_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "cargo"
    old.write_text("#!/bin/sh\necho cargo 1.65.0\n")
    old.chmod(0o755)
    for name in ("go", "mvn", "java"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (finding,) = doctor._stores()
    assert (finding.subject, finding.state) == ("stores: mdbx", "limited")
    assert finding.detail == "cargo 1.65.0 cannot read the crate mdbx-sys"
    assert finding.cure == "cargo 1.85, of Debian 13, can"
    old.write_text("#!/bin/sh\necho cargo 1.90.0\n")
    assert [found.state for found in doctor._stores()] == ["ok"]
    monkeypatch.setenv("PATH", "/nowhere")
    cures = {found.subject: found.cure for found in doctor._stores()}
    assert cures["stores: bbolt"] == "'apt-get install golang-go' brings it"
    assert cures.keys() == {"stores: bbolt", "stores: mdbx", "stores: lucene and git"}
