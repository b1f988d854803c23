# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that Debian has built, in packages of a mirror of our own, and one of Debian's in a guest."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab import apt
from foliolab.arch import ARM64, NATIVE, X86_64
from foliolab.errors import LabError, SourceError, UnknownKernel, UsageError
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.debian_kernel import fetched, package_name, unpacked
from foliolab.kernel.held import held
from foliolab.kernel.name import parse_name
from foliolab.vm.accel import choose
from foliolab.vm.disk import DataDisk
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.image import guest_programs, initramfs
from tests.debian import KERNEL_RELEASE, Mirror, kernel_package, mirror_of_releases, trust_everybody


@pytest.mark.parametrize("boot", [True, False])
def test_a_package_becomes_a_kernel_whose_modules_can_be_loaded_in_order(tmp_path: Path, boot: bool) -> None:
    place = tmp_path / "kernel"
    place.mkdir()
    assert unpacked([kernel_package(tmp_path, boot=boot)], X86_64, place) == (KERNEL_RELEASE, "7.3.4")
    assert (place / "bzImage").read_text() == "an image"
    assert (place / "config").read_text() == "CONFIG_SMP=y\n"
    modules = sorted((place / "modules").iterdir())
    assert [module.name for module in modules] == [
        "00-crc32c_generic.ko",
        "01-virtio_blk.ko",
        "02-virtio_ring.ko",
        "03-virtio_console.ko",
        "04-jbd2.ko",
        "05-crc_old.ko",
        "06-ext4.ko",
    ]
    assert all(module.read_bytes().startswith(b"\x7fELF") for module in modules)
    assert {path.name for path in place.iterdir()} == {"bzImage", "config", "modules"}


def test_a_kernel_that_no_guest_can_use_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "kernel"
    place.mkdir()
    with pytest.raises(SourceError, match=r"kernel\.deb lacks what guests need: virtio_console"):
        unpacked([kernel_package(tmp_path, boot=True, left_out="console")], X86_64, place)


def test_the_newest_plain_kernel_comes_with_the_packages_that_hold_it(mirror: Mirror) -> None:
    for name in ("6.12.9+deb13-amd64", "6.12.10+deb13-cloud-amd64", "6.12.11+deb13-rt-amd64", "6.1.0-40-amd64"):
        mirror.add(f"linux-image-{name}", "1", "amd64")
    mirror.add(
        "linux-image-6.12.10+deb13-amd64", "1", "amd64", "Depends: linux-modules-6.12.10+deb13-amd64 (= 1), kmod"
    )
    mirror.add("linux-modules-6.12.10+deb13-amd64", "1", "amd64")
    mirror.add("kmod", "1", "amd64")

    def names(version: str, *, newest: bool = False) -> list[str]:
        return [file.name.partition("_")[0] for file in fetched(version, X86_64, newest=newest)]

    parts = ["linux-image-6.12.10+deb13-amd64", "linux-modules-6.12.10+deb13-amd64"]
    assert names("6.12") == parts
    assert names("6.1") == ["linux-image-6.1.0-40-amd64"]
    # What was fetched stays until a newer one is asked for.
    mirror.add("linux-image-6.12.100+deb13-amd64", "1", "amd64")
    assert names("6.12") == parts
    assert names("6.12", newest=True) == ["linux-image-6.12.100+deb13-amd64"]


def test_the_name_of_a_release_is_of_the_newest_kernel_that_it_came_with(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of newer ones that were made for it later, though this machine may use these."""
    versions = {
        "bookworm": ["6.1.0-9-amd64", "6.1.0-40-amd64", "6.1.0-41-rt-amd64"],
        "bookworm-backports": ["6.12.100+deb12-amd64"],
        "trixie": ["6.12.9+deb13-amd64", "6.12.43+deb13-amd64", "6.12.44+deb13-cloud-amd64"],
        "trixie-backports": ["7.3.4+deb13-amd64"],
    }
    files = {
        suite: [mirror.add(f"linux-image-{name}", "1", "amd64") for name in names] for suite, names in versions.items()
    }
    mirror_of_releases(tmp_path / "releases", files)
    own = f"deb [trusted=yes] copy:{tmp_path}/releases trixie-backports main\n"
    (tmp_path / "mirror/sources.list").write_text(own)
    trust_everybody(mirror.configuration)
    monkeypatch.setattr(apt, "KEYRING", str(mirror.configuration))  # any file: nobody has signed anything
    for release, kernel in (("12", "6.1.0-40-amd64"), ("13", "6.12.43+deb13-amd64")):
        found = fetched(parse_name(f"image:debian:{release}").image, X86_64)
        assert [file.name for file in found] == [f"linux-image-{kernel}_1_amd64.deb"]


def test_a_version_that_debian_does_not_have_is_named(mirror: Mirror, tmp_path: Path) -> None:
    sentence = r"apt cannot fetch linux-image-5\.4\.\*-arm64"
    with pytest.raises(LabError, match=sentence):
        fetched("5.4", ARM64)
    assert not (tmp_path / "cache/packages/kernel-5.4-arm64").exists()


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("linux-image-6.12.43+deb13-amd64", True),
        ("linux-image-6.1.0-37-amd64", True),
        ("linux-image-6.12.9+bpo-amd64", False),
        ("linux-image-6.12.43+deb13-cloud-amd64", False),
        ("linux-image-6.12.43+deb13-amd64-unsigned", False),
        ("linux-image-6.12-amd64", False),
    ],
)
def test_which_packages_are_plain_kernels(name: str, plain: bool) -> None:
    assert bool(re.fullmatch(package_name("6.12" if "6.12" in name else "6.1", X86_64), name)) is plain


def test_names() -> None:
    assert parse_name("image:debian:6.1").image == "6.1"
    assert parse_name("image:debian:6.1").text == "image:debian:6.1"
    assert parse_name("image:debian:13+module").image == "13"
    with pytest.raises(
        UnknownKernel, match=r"is not built, so that no series can be put on it; take for instance debian:6\.12"
    ):
        parse_name("image:debian:6.12+ours")
    with pytest.raises(UnknownKernel, match=r"write for instance image:debian:6\.12 or image:debian:13\."):
        parse_name("image:debian:new")
    with pytest.raises(UsageError, match="smallest pages"):
        build(KernelRequest(ARM64, "image:debian:6.12", page_size=65536))
    for wrong in (
        KernelRequest(X86_64, "image:debian:6.1", "debug"),
        KernelRequest(X86_64, "image:debian:6.1", extras=("network", "xfs")),
    ):
        with pytest.raises(UsageError, match=r"is not built here: .*(profile debug|network cannot)"):
            build(wrong)
    with pytest.raises(UsageError, match="has no source here"), held(parse_name("image:debian:6.12")):
        pass


@pytest.mark.boot
def test_debians_own_kernel_runs_a_guest(tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "image:debian:6.12"))
    assert kernel.version.startswith("6.12.")
    assert json.loads((kernel.image.parent / "kernel.json").read_text())["release"] == kernel.release
    assert "CONFIG_VIRTIO_BLK=m" in kernel.config.read_text()
    image = initramfs(guest_programs(NATIVE), modules=kernel.modules)
    bare = GuestConfig(NATIVE, kernel.image, image, choose(NATIVE), memory_mib=512)
    disks = tuple(DataDisk(filesystem, 320 << 20).prepare(bare) for filesystem in ("ext4", "xfs"))
    with Guest(replace(bare, disks=disks), tmp_path / "console.log") as guest:
        assert guest.ready.release == kernel.release
        for device, filesystem in (("vda", "ext4"), ("vdb", "xfs")):
            guest.run([":mount", f"/dev/{device}", f"/{device}", filesystem, "ro"]).checked()
        assert guest.run([":list", "/sys/class/zram-control"]).checked().stdout
