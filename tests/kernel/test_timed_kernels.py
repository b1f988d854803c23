# SPDX-License-Identifier: GPL-2.0-only
"""Which kernels can have disks that take time, and how: the driver in their source, or as a module."""

from pathlib import Path

import pytest

from foliolab import apt
from foliolab.arch import ARM64, NATIVE, X86_64, Architecture
from foliolab.errors import SourceError, UsageError
from foliolab.files import DEVICE
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.source import Source
from foliolab.kernel.timed_disk import EXTRA, built, check_names, with_driver
from tests.debian import Mirror, kernel_package, mirror_of_releases, trust_everybody

only_x86_64 = pytest.mark.skipif(NATIVE is not X86_64, reason="the mirror has packages for amd64")

RELEASE = "6.12.43+deb13-amd64"


def tree_of(place: Path, version: str) -> Path:
    """As much of a kernel's source as the driver belongs into."""
    numbers = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True)
    (place / "drivers/block").mkdir(parents=True)
    (place / "Makefile").write_text("".join(f"{name} = {number}\n" for name, number in numbers))
    for name in ("Kconfig", "Makefile"):
        (place / "drivers/block" / name).write_text(f"# {name}\n")
    return place


def test_a_source_gets_the_driver_on_top_of_what_is_changed(tmp_path: Path) -> None:
    source = Source(tree_of(tmp_path, "6.11.0"), "6.11.0", "")
    changed = with_driver(source, {"drivers/block/Kconfig": b"# of a series\n", "mm/gone.c": None})
    assert changed.pop("mm/gone.c", b"") is None
    texts = {name: (content or b"").decode() for name, content in changed.items()}
    assert texts["drivers/block/Kconfig"].startswith("# of a series\n\nconfig TIMED_DISK\n")
    assert texts["drivers/block/Makefile"] == "# Makefile\n\nobj-$(CONFIG_TIMED_DISK) += timed_disk.o\n"
    for name in ("timed_disk.c", "device_time.h"):
        assert texts[f"drivers/block/{name}"] == (DEVICE / name).read_text()
    assert len(texts) == 4


def test_a_source_that_cannot_have_it_is_refused(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, "6.10.14")
    with pytest.raises(SourceError, match=r"^Timed disks take Linux 6\.11 or newer, not 6\.10\.14\.$"):
        with_driver(Source(tree, "6.10.14", ""), {})
    (tree / "drivers/block/Kconfig").unlink()
    with pytest.raises(SourceError, match=r"has no drivers/block/Kconfig, which the disk"):
        with_driver(Source(tree, "7.3.0", ""), {})


@pytest.mark.parametrize(
    "name", ["debian:6.1", "debian:6.10", "image:debian:6.1", "image:debian:6.1+module", "image:debian:5.10"]
)
def test_an_old_kernel_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(SourceError) as raised:
        check_names(["debian:6.12", name])
    version = name.removesuffix("+module").rpartition(":")[2]
    assert str(raised.value) == f"Timed disks take Linux 6.11 or newer, not {version} ({name})."


def test_names_of_kernels_that_can_have_it_pass() -> None:
    # That of a release does not say which kernel it is.
    check_names(["patched", "unpatched", "debian:6.11", "debian:7.3", "image:debian:6.12+module", "image:debian:12"])


@pytest.mark.parametrize("name", ["debian:6.1", "image:debian:6.1"])
def test_nothing_is_fetched_for_a_kernel_that_is_too_old(name: str, mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"not 6\.1 "):
        build(KernelRequest(X86_64, name, extras=(EXTRA,)))
    assert not (tmp_path / "cache").exists()


def test_a_release_with_an_old_kernel_is_refused_before_headers_are_fetched(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = kernel_package(tmp_path, boot=True, release="6.1.0-40-amd64")
    mirror_of_releases(tmp_path / "releases", {"bookworm": [old]})
    own = f"deb [trusted=yes] copy:{tmp_path}/releases bookworm main\n"
    (tmp_path / "mirror/sources.list").write_text(own)
    trust_everybody(mirror.configuration)
    monkeypatch.setattr(apt, "KEYRING", str(mirror.configuration))  # any file: nobody has signed anything
    kernel = build(KernelRequest(X86_64, "image:debian:12"))
    assert (kernel.version, kernel.disk_module) == ("6.1.0", None)
    with pytest.raises(SourceError, match=r"^Timed disks take Linux 6\.11 or newer, not 6\.1\.0-40-amd64\.$"):
        build(KernelRequest(X86_64, "image:debian:12", extras=(EXTRA,)))
    with pytest.raises(SourceError, match="Timed disks take"):
        built("6.10.11-amd64", X86_64)
    assert not list((tmp_path / "cache/packages").glob("headers-*"))


@pytest.fixture
def with_headers(mirror: Mirror, tmp_path: Path) -> Mirror:
    """A mirror with a kernel and its headers, whose make copies sources instead of compiling them."""
    common = RELEASE.replace("amd64", "common")
    headers = f"linux-headers-{RELEASE}"
    mirror.take(kernel_package(tmp_path, boot=True, release=RELEASE))
    needs = f"Depends: linux-headers-{common} (= 1)"
    mirror.add(headers, "1", "amd64", needs, file=f"usr/src/{headers}/.config", content=b"CONFIG_SMP=y\n")
    make = "modules:\n\tcp $(M)/device_time.h $(M)/timed_disk.ko || touch $(M)/mmap_readahead_window.ko\n"
    file = f"usr/src/linux-headers-{common}/Makefile"
    mirror.add(f"linux-headers-{common}", "1", "all", file=file, content=make.encode())
    return mirror


@only_x86_64
def test_a_kernel_of_debians_gets_the_driver_as_a_module(with_headers: Mirror) -> None:
    def kernel(name: str, *extras: str) -> BuiltKernel:
        return build(KernelRequest(X86_64, name, extras=extras))

    plain, timed = kernel("image:debian:6.12"), kernel("image:debian:6.12", EXTRA)
    assert (plain.disk_module, timed.release) == (None, RELEASE)
    assert timed.disk_module and timed.disk_module.name == "98-timed_disk.ko"
    assert timed.disk_module.read_bytes() == (DEVICE / "device_time.h").read_bytes()
    assert [file.name for file in timed.disk_module.parent.iterdir()] == ["98-timed_disk.ko"]
    assert timed.modules == (*plain.modules, timed.disk_module) and plain.modules
    assert kernel("image:debian:6.12", EXTRA, "xfs") == timed
    # It is loaded before the adaptive window, and each of them makes it another kernel.
    both, window = kernel("image:debian:6.12+module", EXTRA), kernel("image:debian:6.12+module")
    assert both.modules == (*plain.modules, timed.disk_module, window.module)
    assert len({each.hash for each in (plain, timed, both, window)}) == 4
    assert {each.image for each in (plain, timed, both, window)} == {plain.image}


def test_other_machines_have_no_module_for_it(tmp_path: Path) -> None:
    other = ARM64 if NATIVE is X86_64 else X86_64
    with pytest.raises(UsageError, match=f"tools for modules of {other.name} run on {other.name} only"):
        built(f"6.12.43+deb13-{other.debian}", other)


@pytest.mark.parametrize(
    ("arch", "packaged", "counting", "timed"),
    [
        (X86_64, "", "nolapic_timer", "nolapic_timer"),
        # Debian's keep the timer that they have by themselves, until disks take time.
        (X86_64, "6.12.43", "", "nolapic_timer init_on_alloc=0"),
        (ARM64, "", "", ""),
        (ARM64, "6.12.43", "", "init_on_alloc=0"),
    ],
)
def test_what_a_kernel_is_told(arch: Architecture, packaged: str, counting: str, timed: str, tmp_path: Path) -> None:
    kernel = BuiltKernel("0", tmp_path / arch.image, "k", "lab", arch, "6.12.43", 4096, ours=False, packaged=packaged)
    assert kernel.boot_arguments(counting=True, timed=False) == counting
    assert kernel.boot_arguments(counting=True, timed=True) == timed
    assert kernel.boot_arguments(counting=False, timed=False) == ""
