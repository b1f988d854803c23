# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module: its sources, and what it does in guests of Debian's own kernels."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from foliolab.arch import ARM64, NATIVE, X86_64
from foliolab.cli.main import main
from foliolab.errors import BuildError, NoResult, UnknownKernel, UsageError
from foliolab.files import KERNEL, MODULE, cache_directory, digest, made_once
from foliolab.kernel import module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.module import headers
from foliolab.kernel.name import parse_name
from foliolab.progress import Reporter
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import complaints, splats
from foliolab.vm.switches import require_module
from tests.guests import guest_with
from tests.kernel.kept import kept, of_module

PARAMETERS = f"/sys/module/{module.NAME}/parameters"
PROGRAMS = Path(__file__).parent / "programs"
VERSIONS = ["6.1", "6.12", "7.3"]
ALWAYS_FTRACE = ("7.3",)
"""Where nothing switches it off."""

only_x86_64 = pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")


def test_a_kernel_with_the_module_is_named_by_a_suffix() -> None:
    name = parse_name("image:debian:6.12+module")
    assert (name.image, name.module, name.series) == ("6.12", True, ())
    assert not parse_name("image:debian:6.12").module
    with pytest.raises(UnknownKernel, match="There is no series module"):
        parse_name("debian:6.12+module")
    with pytest.raises(UnknownKernel, match="no series can be put on it"):
        parse_name("image:debian:6.12+module+ours")


def test_exported_sources_are_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "mmap-readahead-window-1"
    assert main(["module", "export", str(place)]) == 0
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == set(module.sources())
    for policy in ("mm/mmap_readahead_window.c", "mm/mmap_readahead_window.h"):
        assert (place / policy).read_text() == (KERNEL / "files" / policy).read_text()
    assert 'PACKAGE_VERSION="1"' in (place / "dkms.conf").read_text()
    assert main(["module", "export", str(place)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_its_code_is_what_is_compiled(tmp_path: Path) -> None:
    place = shutil.copytree(MODULE, tmp_path / "module")
    before = module.code_hash(place)
    assert before == module.code_hash()
    for name, other in (("Makefile", False), ("dkms.conf", False), ("faults.c", True), ("Kbuild", True)):
        with (place / name).open("a") as stream:
            stream.write("\n")
        after = module.code_hash(place)
        assert (after != before) == other, name
        before = after


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--kernel", "debian:6.12"], "for kernels that are not built here"),
        (["--kernel", "image:debian:six"], "names no version of Debian's"),
    ],
)
def test_what_has_no_module(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["module", "build", *argv]) in (2, 24)
    assert sentence in capsys.readouterr().err


def program(name: str, place: Path) -> Path:
    """One of programs/, static."""
    source = PROGRAMS / f"{name}.c"
    subprocess.run([NATIVE.compiler, "-O2", "-Wall", "-Werror", "-static", "-o", place / name, source], check=True)
    return place / name


@contextmanager
def guest(kernel: BuiltKernel, place: Path, programs: Iterable[Path], boot_arguments: str = "") -> Iterator[Guest]:
    """With the data on two disks, mounted on /data and /other, and windows of 4 MiB."""
    files = {f"/bin/{path.name}": path for path in programs}
    data, console = DataDisk("ext4", 320 << 20), place / "console.log"
    with guest_with(
        data, kernel, console, "ro", files=files, cpus=2, boot_arguments=boot_arguments, disks=2
    ) as running:
        running.run([":mount", "/dev/vdb", "/other", "ext4", "ro"]).checked()
        for disk in ("vda", "vdb"):
            running.run([":write", f"/sys/block/{disk}/queue/read_ahead_kb", "4096"]).checked()
        yield running


def read_bytes(running: Guest, *options: str, file: str = DATA_FILE) -> int:
    """What touching a page in a hundred reads."""
    done = running.run(["sparse-mmap", "--file", file, "--fraction", "0.01", "--seed", "1", "--drop-caches", *options])
    return int(json.loads(done.checked().stdout)["read_bytes"])


def parameter(running: Guest, name: str) -> str:
    return running.run([":read", f"{PARAMETERS}/{name}"]).checked().stdout.decode()


def statistics(running: Guest) -> dict[str, int]:
    words = parameter(running, "statistics").split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def check_prices(running: Guest, sparse: float) -> None:
    """A request costs what it does on the device, or else on all; then so many bytes are read of random pages."""

    def told(text: str) -> int:
        return running.run([":write", f"{PARAMETERS}/request_kb_of", text]).status

    def read(file: str = DATA_FILE) -> int:
        return read_bytes(running, "--pattern", "random", file=file)

    other = DATA_FILE.replace("/data", "/other")
    assert read(other) < sparse
    device = running.run([":read", "/sys/block/vdb/dev"]).checked().stdout.decode().strip()
    assert told(f"{device}=65536") == 0
    assert parameter(running, "request_kb_of") == f"{device}=65536\n"
    # Where requests cost more, fewer read more.
    assert read(other) > 5 * sparse
    assert read() < sparse
    assert told(f"{device}=") == 0
    assert read(other) < sparse
    wrong = ["8:0", "=128", "8:0=0", "8:0=65537", "8:0=x", "8:0=", f"{'x' * 64}=128"]
    assert [text for text in wrong if not told(text)] == []
    # There is room for some dozens.
    names = [f"8:{number}" for number in range(33)]
    assert [name for name in names if told(f"{name}=256")] == names[32:]
    assert [told(f"{name}=1024") for name in names[:32]] == [0] * 32
    assert [name for name in names if told(f"{name}=")] == names[32:]
    assert parameter(running, "request_kb_of") == ""


@only_x86_64
@pytest.mark.boot
@pytest.mark.parametrize("version", VERSIONS)
def test_debians_kernels_read_what_is_touched(version: str, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, f"image:debian:{version}+module"), Reporter())
    plain = build(KernelRequest(NATIVE, f"image:debian:{version}"), Reporter())
    assert kernel.hash != plain.hash
    assert kernel.modules[:-1] == plain.modules
    assert kernel.module
    random = ["--pattern", "random"]
    touched = (320 << 20) // 100
    sparse = 1.5 * touched
    with guest(kernel, tmp_path, [program("module-load", tmp_path)]) as running:
        require_module(running, module.NAME)
        assert read_bytes(running, *random) < sparse
        counts = statistics(running)
        assert counts["misses"] > 700
        assert counts["lost"] == counts["unknown"] == 0
        # Its inode stays when it is closed.
        assert counts["files"] == 1
        # A scan is read ahead, at marks.
        assert read_bytes(running, "--pattern", "sequential") < 4 * touched
        assert statistics(running)["marks"] > counts["marks"]
        check_prices(running, sparse)
        # What is switched off reads as the kernel does.
        running.run([":write", f"{PARAMETERS}/adaptive", "0"]).checked()
        stock = read_bytes(running, *random)
        assert stock > 20 * touched
        # What a request costs has limits.
        assert running.run([":write", f"{PARAMETERS}/request_kb", "0"]).status
        running.run([":write", f"{PARAMETERS}/request_kb", "1024"]).checked()
        # It is loaded and unloaded while others read, and then without ftrace.
        command = ["module-load", module.NAME, f"/modules/{kernel.module.name}", DATA_FILE, "1"]
        told = running.run(command, 300).checked().stdout.decode()
        assert told.endswith("rounds: 1\n")
        assert parameter(running, "request_kb_of") == "8:0=1024\n8:16=64\n"
        assert ("does not load without ftrace" in told) == (version not in ALWAYS_FTRACE)
        assert ("mmap_readahead_window: ftrace is off" in running.console()) == (version not in ALWAYS_FTRACE)
        read_bytes(running, *random)
        assert statistics(running)["misses"] > 700
        # Without it, the kernel reads as before.
        running.run(["module-load", module.NAME], 60).checked()
        with pytest.raises(NoResult, match="has not loaded the module"):
            require_module(running, module.NAME)
        assert read_bytes(running, *random) == pytest.approx(stock, rel=0.1)
        assert complaints(splats(running.console()), real_time=False) == []


@only_x86_64
@pytest.mark.boot
def test_misses_that_lose_their_slot_are_counted(tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    found = headers(stock_kernel.release, NATIVE, Reporter())

    def make(place: Path) -> None:
        module.export(tmp_path / "module")
        module.compiled(tmp_path / "module", found, NATIVE.compiler, "KCFLAGS=-DSLOT_BITS=0")
        shutil.copyfile(tmp_path / f"module/{module.NAME}.ko", place / f"99-{module.NAME}.ko")

    made = made_once(cache_directory() / "modules", digest(of_module(__file__, found, "one slot")), make)
    sharing = program("module-slots", tmp_path)
    kernel = replace(stock_kernel, module=made / f"99-{module.NAME}.ko")
    with guest(kernel, tmp_path, [sharing], "preempt=full") as running:
        require_module(running, module.NAME)
        told = running.run([sharing.name, module.NAME, DATA_FILE, "4096", "60"], 120).checked().stdout.decode()
        # Who reads by other means loses nothing.
        beside, misses = map(int, told.split())
        assert beside == 0
        assert misses > 0
        assert complaints(splats(running.console()), real_time=False) == []


@only_x86_64
@pytest.mark.boot
def test_a_guest_without_it_is_told(tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "image:debian:6.12+module"), Reporter())
    with guest(kernel, tmp_path, [], "lockdown=integrity") as running:
        why = "Lockdown: init: unsigned module loading is restricted"
        with pytest.raises(NoResult, match=f"has not loaded the module {module.NAME}: {why}"):
            require_module(running, module.NAME)


@only_x86_64
@pytest.mark.boot
def test_a_kernel_with_another_prototype_is_named(tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    found = headers(stock_kernel.release, NATIVE, Reporter())
    declared = (found.source / "include/linux/security.h").read_text()
    changed = tmp_path / "changed/linux/security.h"
    changed.parent.mkdir(parents=True)
    changed.write_text(
        declared.replace(
            "security_mmap_file(struct file *file, unsigned long prot", "security_mmap_file(struct file *file, int prot"
        )
    )

    def complaints_of_make() -> list[str]:
        module.export(tmp_path / "module")
        with pytest.raises(BuildError, match=r"this kernel has another security_mmap_file\(\)") as raised:
            module.compiled(
                tmp_path / "module", found, NATIVE.compiler, f"NOSTDINC_FLAGS=-nostdinc -I{tmp_path}/changed"
            )
        return [str(raised.value)]

    (complaint,) = kept(of_module(__file__, found, "another prototype"), complaints_of_make)
    assert "this kernel has another security_mmap_file() than the module knows" in complaint


def test_headers_are_for_this_machine_only() -> None:
    other = ARM64 if NATIVE is X86_64 else X86_64
    with pytest.raises(UsageError, match=f"tools for modules of {other.name} run on {other.name} only"):
        headers("6.12.117+deb12-arm64", other, Reporter())
