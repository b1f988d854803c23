# SPDX-License-Identifier: GPL-2.0-only
import json
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARCHITECTURES, ARM64, NATIVE
from foliolab.cli import doctor
from foliolab.paths import REPOSITORY
from tests.cli.command import lab


def test_each_architecture_has_its_say() -> None:
    findings = {finding["subject"]: finding for finding in json.loads(lab("doctor", "--json").stdout)["findings"]}
    for name in ARCHITECTURES:
        assert findings[f"{name} kernels"]["state"] == "ok"
        assert findings[f"{name} guests"]["state"] in ("ok", "limited")
    for name in ARCHITECTURES.keys() - {NATIVE.name}:
        assert f"this machine is no {name} machine" in findings[f"{name} guests"]["detail"]


def test_the_list_of_packages_has_what_architectures_say() -> None:
    text = (REPOSITORY / "packages.txt").read_text()
    listed = {tuple(line.split()) for line in text.splitlines() if line and line[0] != "#"}
    machines = {arch.machine for arch in ARCHITECTURES.values()}
    for arch in ARCHITECTURES.values():
        assert (arch.qemu, arch.qemu_package) in listed
        for other in machines - {arch.machine}:
            assert (arch.compiler, arch.cross_compiler_package, other) in listed
            assert (f"{arch.cross_headers}/stdio.h", arch.cross_headers_package, other) in listed


def test_what_a_build_lacks_has_one_cure() -> None:
    foreign = replace(ARM64, machine="elsewhere", compiler="no-such-gcc", cross_headers="/no/such/include")
    found = doctor._kernels(foreign)
    assert (found.state, found.detail) == ("missing", "no no-such-gcc and no /no/such/include/stdio.h")
    assert found.cure == "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"


def test_an_emulator_that_is_not_there_is_named() -> None:
    found = doctor._guests(replace(ARM64, qemu="qemu-system-none"))
    assert (found.state, found.cure) == ("missing", "apt-get install qemu-system-arm")


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
