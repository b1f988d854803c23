# SPDX-License-Identifier: GPL-2.0-only
"""The adaptive window as a module: its sources, and what it does in guests of Debian's own kernels."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.devices import module_was_tried
from foliolab.apt import unpack
from foliolab.arch import ARM64, NATIVE, X86_64
from foliolab.cli.main import main
from foliolab.device import load_devices
from foliolab.errors import BuildError, NoResult, UnknownKernel, UsageError
from foliolab.files import KERNEL, MODULE, REPOSITORY, cache_directory, digest, digest_files, made_once
from foliolab.kernel import module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.kernel.debian_headers import built_module, compiled, copy_sources, headers
from foliolab.kernel.debian_kernel import content, fetched
from foliolab.kernel.name import BASE_VERSION, parse_name
from foliolab.vm.disk import DATA_FILE, DataDisk
from foliolab.vm.guest import Guest
from foliolab.vm.outcome import complaints, splats
from foliolab.vm.switches import require_module
from tests.guests import guest_on, guest_with
from tests.kernel.kept import kept, of_module

PARAMETERS = f"/sys/module/{module.NAME}/parameters"
PROGRAMS = Path(__file__).parent / "programs"
OTHER_FILE = DATA_FILE.replace("/data", "/other")
"""The same file on the other disk."""
BREAK_FTRACE = Path(__file__).parent / "modules/break_ftrace"
DOCUMENT = REPOSITORY / "docs/module.md"
VERSIONS = ["6.1", "6.12", "7.2", "7.3"]
TYPES_UNKNOWN = "This kernel does not tell its types"
"""Said where nothing can be compared."""
OWN_TAINT = 4096 + 8192
"""Of a module that is not the kernel's own, and not signed."""
ALWAYS_FTRACE = ("7.3",)
"""Where nothing switches it off."""
OTHER_KERNELS = {
    "argument": (
        "hooks.c",
        '{ "page_cache_ra_order", { "readahead_control", "file_ra_state" } }',
        '{ "page_cache_ra_order", { "readahead_control", "inode" } }',
        "This kernel's page_cache_ra_order() does not take a struct inode * as argument 2.",
    ),
    "function": (
        "hooks.c",
        '{ "__fput", { "file" } }',
        '{ "__fputs", { "file" } }',
        "This kernel does not tell what __fputs() takes.",
    ),
    "size": (
        "types.c",
        "KNOWN(file_ra_state)",
        '{ "file_ra_state", 1 }',
        "This kernel's struct file_ra_state has 32 bytes, not the 1 of its headers.",
    ),
}
"""Copies of the module that expect another kernel: the file, what stands there, what does in the copy, what it logs."""

only_x86_64 = pytest.mark.skipif(NATIVE is not X86_64, reason="the module was tried on x86_64 only")


def test_a_kernel_with_the_module_is_named_by_a_suffix() -> None:
    name = parse_name("image:debian:6.12+module")
    assert (name.image, name.module, name.series) == ("6.12", True, ())
    assert not parse_name("image:debian:6.12").module
    with pytest.raises(UnknownKernel, match="There is no series module"):
        parse_name("debian:6.12+module")
    with pytest.raises(UnknownKernel, match="no series can be put on it"):
        parse_name("image:debian:6.12+module+ours")


def test_all_name_the_kernels_on_which_it_was_tried() -> None:
    (admitted,) = re.findall(r'^BUILD_EXCLUSIVE_KERNEL="\^\((.*)\)', (MODULE / "dkms.conf").read_text(), re.MULTILINE)
    assert admitted.replace("\\", "").split("|") == VERSIONS
    rows = re.findall(r"^\| (\d+\.\d+)\.\S+ \(.*\| yes \| yes \|", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == VERSIONS
    assert all(module_was_tried(f"#1 SMP Debian {version}.1-1") for version in VERSIONS)


def test_a_copy_of_its_sources_has_the_policy(tmp_path: Path) -> None:
    copy_sources(module.sources(), tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(module.sources())
    for policy in ("mm/mmap_readahead_window.c", "mm/mmap_readahead_window.h"):
        assert (tmp_path / policy).read_text() == (KERNEL / "files" / policy).read_text()


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


def overlay_module(version: str) -> Path:
    """The module with overlayfs of Debian's kernel, which guests do not load by themselves."""
    packages = fetched(version, NATIVE)

    def make(place: Path) -> None:
        for package in packages:
            unpack(package, place / "package")
        (found,) = (place / "package").rglob("overlay.ko*")
        (place / "overlay.ko").write_bytes(content(found))
        shutil.rmtree(place / "package")

    key = digest([digest_files(packages), "overlay"])
    return made_once(cache_directory() / "modules", key, make) / "overlay.ko"


def made_for_another_kernel(what: str, release: str, place: Path) -> Path:
    """A copy of the module that expects one of OTHER_KERNELS, built for this one."""
    name, here, there, _ = OTHER_KERNELS[what]
    ours = module.sources()
    text = ours[name].read_text()
    assert text.count(here) == 1
    changed = place / f"{what}.c"
    changed.write_text(text.replace(here, there))
    code = digest([module.code_hash(), name, digest_files([changed])])
    return built_module(f"{what}-{module.NAME}.ko", ours | {name: changed}, code, release, NATIVE)


def read_bytes(running: Guest, *options: str, file: str = DATA_FILE) -> int:
    """What touching a page in a hundred reads."""
    done = running.run(["sparse-mmap", "--file", file, "--fraction", "0.01", "--seed", "1", "--drop-caches", *options])
    return int(json.loads(done.checked().stdout)["read_bytes"])


def parameter(running: Guest, name: str) -> str:
    return running.run([":read", f"{PARAMETERS}/{name}"]).checked().stdout.decode()


def statistics(running: Guest) -> dict[str, int]:
    words = parameter(running, "statistics").split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def device_number(running: Guest, disk: str) -> str:
    return running.run([":read", f"/sys/block/{disk}/dev"]).checked().stdout.decode().strip()


def events(running: Guest, device: str) -> dict[str, int]:
    """What is counted on one device."""
    lines = [line.split() for line in parameter(running, "device_statistics").splitlines()]
    (words,) = ([words for words in lines if words[0] == device] or [[device]])[:1]
    return {name: int(value) for name, value in zip(words[1::2], words[2::2], strict=True)}


def check_scope(running: Guest, sparse: float, stock: int) -> None:
    """Where some devices are named, the others read and count as without the module."""

    def told(text: str) -> int:
        return running.run([":write", f"{PARAMETERS}/devices", text]).status

    named, other = device_number(running, "vda"), device_number(running, "vdb")
    assert parameter(running, "devices") == "all\n"
    assert told(named) == 0
    assert parameter(running, "devices") == f"{named}\n"
    before = events(running, named), events(running, other)
    assert read_bytes(running, "--pattern", "random", file=OTHER_FILE) == stock
    assert events(running, other) == before[1]
    assert read_bytes(running, "--pattern", "random") < sparse
    assert events(running, named)["misses"] > before[0].get("misses", 0) + 700
    refused = (",", f"{named},", f"{named} {other}", "x" * 64, "x" * 200, "sdx", "../proc/cpuinfo", "/dev/null")
    assert [text for text in refused if not told(text)] == []
    assert f"{module.NAME}: devices: sdx is no block device in /dev, no name in /sys/class/bdi" in running.console()
    assert parameter(running, "devices") == f"{named}\n"
    # What users call a disk.
    for text in ("vdb", "/dev/vdb", "vda,vdb"):
        assert told(text) == 0
        assert other in parameter(running, "devices").strip().split(",")
        assert read_bytes(running, "--pattern", "random", file=OTHER_FILE) < sparse
    assert told(f"{other},{named}") == 0
    assert sorted(parameter(running, "devices").strip().split(",")) == sorted((named, other))
    assert told("all") == 0
    assert read_bytes(running, "--pattern", "random", file=OTHER_FILE) < sparse
    each = [events(running, device) for device in (named, other)]
    assert statistics(running)["misses"] == sum(counts["misses"] for counts in each)


def check_groups(running: Guest, sparse: float, stock: int) -> None:
    """Where control groups are named, all others read and count as without the module."""

    def told(text: str) -> int:
        return running.run([":write", f"{PARAMETERS}/groups", text]).status

    def read(group: str) -> int:
        """In a group that is made for that, and removed behind it."""
        probe = ["sparse-mmap", "--file", DATA_FILE, "--fraction", "0.01", "--seed", "1", "--drop-caches"]
        done = running.run(["in-group", group, *probe, "--pattern", "random"])
        return int(json.loads(done.checked().stdout)["read_bytes"])

    assert parameter(running, "groups") == "all\n"
    assert read("db") < sparse
    assert told("/sys/fs/cgroup/db,/slice/one/") == 0  # which are made later
    for name in ("db", "db/below", "slice/one", "db"):  # again, by the same name
        before = statistics(running)["misses"]
        assert read(name) < sparse, name
        assert statistics(running)["misses"] > before + 700
    before = statistics(running)["misses"]
    for name in ("db2", "slice", "slice/two", "other/db"):
        assert read(name) == stock, name
    assert read_bytes(running, "--pattern", "random") == stock  # in none
    assert statistics(running)["misses"] == before
    assert [text for text in (",", "a,", ",a", "a,,b", "a b") if not told(text)] == []
    assert parameter(running, "groups") == "/sys/fs/cgroup/db,/slice/one/\n"
    assert told("/") == 0
    assert read_bytes(running, "--pattern", "random") < sparse
    assert told("db2") == 0  # of which it is known that it did not adapt
    assert read("db2") < sparse
    assert read("db") == stock
    assert told("all") == 0
    assert read("db") < sparse


def check_text(running: Guest, overlay: Path) -> None:
    """Programs read as before, also where an overlay is above their file; other files there adapt."""
    running.run(["module-insert", f"/bin/{overlay.name}"]).checked()
    running.run([":mount", "overlay", "/overlay", "overlay", "lowerdir=/data:/other"]).checked()
    for file in (DATA_FILE, DATA_FILE.replace("/data", "/overlay")):
        told = running.run(["module-text", module.NAME, file]).checked().stdout
        assert (file, told) == (file, b"0 16\n")


def check_refused(running: Guest, others: Mapping[str, Path]) -> None:
    """A kernel that is not what a copy expects, by its BTF, does not take the copy, and says what differs."""
    for what, file in others.items():
        done = running.run(["module-insert", f"/bin/{file.name}"])
        assert done.status, what
        assert b"Operation not supported" in done.stderr
        assert f"{module.NAME}: {OTHER_KERNELS[what][-1]}" in running.console()


def check_prices(running: Guest, sparse: float) -> None:
    """A request costs what it does on the device, or else on all; then so many bytes are read of random pages."""

    def told(text: str) -> int:
        return running.run([":write", f"{PARAMETERS}/request_kb_of", text]).status

    def read(file: str = DATA_FILE) -> int:
        return read_bytes(running, "--pattern", "random", file=file)

    assert read(OTHER_FILE) < sparse
    device = device_number(running, "vdb")
    assert told(f"{device}=65536") == 0
    assert parameter(running, "request_kb_of") == f"{device}=65536\n"
    # Where requests cost more, fewer read more.
    assert read(OTHER_FILE) > 5 * sparse
    assert read() < sparse
    assert told(f"{device}=") == 0
    assert read(OTHER_FILE) < sparse
    # However a number is written, it is that of the device.
    assert told(f"0{device}=256") == 0
    assert parameter(running, "request_kb_of") == f"{device}=256\n"
    assert told(f"{device}=") == 0
    wrong = [
        "8:0",
        "=128",
        "8:0=0",
        "8:0=65537",
        "8:0=x",
        "8:0=",
        "8:1048576=128",
        "4104:0=128",
        ".=128",
        f"{'x' * 64}=128",
    ]
    assert [text for text in wrong if not told(text)] == []
    # There is room for some dozens.
    names = [f"8:{number}" for number in range(64)]
    refused = [name for name in names if told(f"{name}=256")]
    assert refused == names[-len(refused) :]
    assert [name for name in names if told(f"{name}=")] == refused
    assert parameter(running, "request_kb_of") == ""


@only_x86_64
@pytest.mark.boot
@pytest.mark.parametrize("version", VERSIONS)
def test_debians_kernels_read_what_is_touched(version: str, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, f"image:debian:{version}+module"))
    plain = build(KernelRequest(NATIVE, f"image:debian:{version}"))
    assert kernel.hash != plain.hash
    assert kernel.modules[:-1] == plain.modules
    assert kernel.module
    random = ["--pattern", "random"]
    touched = (320 << 20) // 100
    sparse = 1.5 * touched
    programs = [program(name, tmp_path) for name in ("module-load", "module-insert", "module-text", "in-group")]
    overlay = overlay_module(version)
    # module-load has each kernel tell other types. That copies expect others is the same on all.
    wrong = OTHER_KERNELS if version == BASE_VERSION else ()
    others = {what: made_for_another_kernel(what, kernel.release, tmp_path) for what in wrong}
    with guest(kernel, tmp_path, [*programs, overlay, *others.values()]) as running:
        require_module(running, module.NAME)
        assert TYPES_UNKNOWN not in running.console()
        assert read_bytes(running, *random) < sparse
        counts = statistics(running)
        assert counts["misses"] > 700
        assert counts["lost"] == counts["unknown"] == 0
        # Its inode stays when it is closed.
        assert counts["files"] == 1
        assert int(running.run([":read", "/proc/sys/kernel/tainted"]).checked().stdout) == OWN_TAINT
        # A scan is read ahead, at marks.
        assert read_bytes(running, "--pattern", "sequential") < 4 * touched
        assert statistics(running)["marks"] > counts["marks"]
        # What is switched off reads as the kernel does.
        running.run([":write", f"{PARAMETERS}/adaptive", "0"]).checked()
        stock = read_bytes(running, *random)
        assert stock > 20 * touched
        running.run([":write", f"{PARAMETERS}/adaptive", "1"]).checked()
        check_text(running, overlay)
        if version == BASE_VERSION:
            # No kernel has a part in what is known of devices.
            check_prices(running, sparse)
            check_scope(running, sparse, stock)
        check_groups(running, sparse, stock)
        # What a request costs has limits.
        assert running.run([":write", f"{PARAMETERS}/request_kb", "65537"]).status
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
        check_refused(running, others)
        assert read_bytes(running, *random) == pytest.approx(stock, rel=0.1)
        assert complaints(splats(running.console()), real_time=False) == []


@only_x86_64
@pytest.mark.boot
@pytest.mark.parametrize(("version", "name"), [(BASE_VERSION, "remote"), (VERSIONS[-1], "hdd")])
def test_it_measures_what_a_request_costs(version: str, name: str, tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, f"image:debian:{version}+module", extras=("timed-disk",)))
    disk = load_devices()[name]
    measured = []
    with guest_on(kernel, disk, tmp_path / "console.log", memory_mib=512) as running:
        running.run([":mount", f"/dev/{running.config.disk_name(0)}", "/data", "ext4", "ro"]).checked()
        device = device_number(running, running.config.disk_name(0))
        for _ in range(2):
            read_bytes(running, "--pattern", "random")
            measured.append(events(running, device)["request_kb"])
    # Some reads need no seek, and large ones tell little. Twice as much or little costs a few percent of the time.
    assert measured == [pytest.approx(disk.measured_request_kb, rel=0.5)] * 2
    assert complaints(splats((tmp_path / "console.log").read_text()), real_time=False) == []


def check_bypassed(running: Guest, broken: Path) -> None:
    """Where reads go by another function, the module leaves misses to the kernel, and says so once."""
    windows = 64 << 10
    running.run([":write", "/sys/block/vda/queue/read_ahead_kb", str(windows >> 10)]).checked()
    # What is mapped around a fault counts as hits, with which no file has a hundred misses more than hits.
    running.run([":mount", "debugfs", "/debug", "debugfs"]).checked()
    running.run([":write", "/debug/fault_around_bytes", "4096"]).checked()
    running.run([":write", f"{PARAMETERS}/adaptive", "0"]).checked()
    stock = read_bytes(running, "--pattern", "random")
    running.run([":write", f"{PARAMETERS}/adaptive", "1"]).checked()
    running.run(["module-insert", f"/bin/{broken.name}", "ops=entries", "function=page_cache_ra_order"]).checked()
    running.run(["module-load", broken.stem]).checked()
    misses = statistics(running)["misses"]
    # Each miss reads a window, until it is noticed.
    bypassed = read_bytes(running, "--pattern", "random")
    assert 2 * stock < bypassed < 500 * windows
    assert parameter(running, "adaptive") == "N\n"
    assert read_bytes(running, "--pattern", "random") == stock
    assert statistics(running)["misses"] == misses
    assert running.console().count(f"{module.NAME}: Switched off") == 1


def check_kept(running: Guest, broken: Path) -> None:
    """Where ftrace does not let go of functions, unloading never ends, and says why.

    The guest takes no job after that.
    """

    class StillUnloading(Exception):
        pass

    def listen(_: int, text: bytes) -> None:
        if text == b"still unloading\n":
            raise StillUnloading

    running.run(["module-insert", f"/bin/{broken.name}", "kill=ftrace_kill"]).checked()
    with pytest.raises(StillUnloading):
        running.run(["module-load", module.NAME, "in-the-background", DATA_FILE], on_output=listen)
    assert f"{module.NAME}: ftrace does not let go of the functions: error -19" in running.console()


@only_x86_64
@pytest.mark.boot
def test_what_goes_wrong_is_counted_or_said(tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    found = headers(stock_kernel.release, NATIVE)

    def make(place: Path) -> None:
        copy_sources(module.sources(), tmp_path / "module")
        compiled(tmp_path / "module", found, NATIVE.compiler, "KCFLAGS=-DSLOT_BITS=0")
        shutil.copyfile(tmp_path / f"module/{module.NAME}.ko", place / f"99-{module.NAME}.ko")
        breaking = shutil.copytree(BREAK_FTRACE, tmp_path / BREAK_FTRACE.name)
        compiled(breaking, found, NATIVE.compiler)
        shutil.copyfile(breaking / f"{BREAK_FTRACE.name}.ko", place / f"{BREAK_FTRACE.name}.ko")

    what = ["one slot", digest_files(BREAK_FTRACE.iterdir())]
    made = made_once(cache_directory() / "modules", digest([*of_module(__file__, found, what[0]), what[1]]), make)
    broken = made / f"{BREAK_FTRACE.name}.ko"
    sharing, *others = (program(name, tmp_path) for name in ("module-slots", "module-insert", "module-load"))
    kernel = replace(stock_kernel, module=made / f"99-{module.NAME}.ko")
    with guest(kernel, tmp_path, [sharing, *others, broken], "preempt=full") as running:
        require_module(running, module.NAME)
        told = running.run([sharing.name, module.NAME, DATA_FILE, "4096", "60"], 120).checked().stdout.decode()
        # Who reads by other means loses nothing.
        beside, misses = map(int, told.split())
        assert beside == 0
        assert misses > 0
        check_bypassed(running, broken)
        check_kept(running, broken)
        assert complaints(splats(running.console()), real_time=False) == []


@only_x86_64
@pytest.mark.boot
def test_a_guest_without_it_is_told(tmp_path: Path) -> None:
    kernel = build(KernelRequest(NATIVE, "image:debian:6.12+module"))
    with guest(kernel, tmp_path, [], "lockdown=integrity") as running:
        why = "Lockdown: init: unsigned module loading is restricted"
        with pytest.raises(NoResult, match=f"has not loaded the module {module.NAME}: {why}"):
            require_module(running, module.NAME)


@only_x86_64
@pytest.mark.boot
def test_a_kernel_with_another_prototype_is_named(tmp_path: Path, stock_kernel: BuiltKernel) -> None:
    found = headers(stock_kernel.release, NATIVE)
    declared = (found.source / "include/linux/perf_event.h").read_text()
    changed = tmp_path / "changed/linux/perf_event.h"
    changed.parent.mkdir(parents=True)
    changed.write_text(
        declared.replace(
            "perf_event_mmap(struct vm_area_struct *vma)", "perf_event_mmap(struct vm_area_struct *vma, int how)"
        )
    )

    def complaints_of_make() -> list[str]:
        copy_sources(module.sources(), tmp_path / "module")
        with pytest.raises(BuildError, match=r"this kernel has another perf_event_mmap\(\)") as raised:
            compiled(tmp_path / "module", found, NATIVE.compiler, f"NOSTDINC_FLAGS=-nostdinc -I{tmp_path}/changed")
        return [str(raised.value)]

    (complaint,) = kept(of_module(__file__, found, "another prototype"), complaints_of_make)
    assert "this kernel has another perf_event_mmap() than the module knows" in complaint


def test_headers_are_for_this_machine_only() -> None:
    other = ARM64 if NATIVE is X86_64 else X86_64
    with pytest.raises(UsageError, match=f"tools for modules of {other.name} run on {other.name} only"):
        headers("6.12.117+deb12-arm64", other)
