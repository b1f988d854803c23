# SPDX-License-Identifier: GPL-2.0-only
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest

from foliolab.arch import machine_name
from foliolab.errors import NoResult
from foliolab.experiment.variants import load_variants
from foliolab.table import Value
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.outcome import JobResult
from foliolab.vm.switches import SWITCHES, Switches, chosen, require_module, switch_path

ONE, TWO = "mmap_readahead/one", "mmap_readahead/two"
DEBUG = "/sys/kernel/debug/mprotect"
SIZES = ("16kB", "64kB", "2048kB")


def size(name: str) -> str:
    return f"transparent_hugepage/hugepages-{name}/file_enabled"


class FakeGuest:
    """A kernel's switches: numbers, a truth in debugfs, and a word for each folio size; at most one has exec."""

    def __init__(self) -> None:
        self.files = {ONE: "1", TWO: "1", f"{DEBUG}/three": "Y", **{size(name): "always" for name in SIZES}}
        self.files[size("64kB")] = "always+exec"
        self.read: list[str] = []

    def run(self, argv: list[str]) -> JobResult:
        verb, path, *values = argv
        place = PurePosixPath(path)
        name = str(place.relative_to(SWITCHES) if place.is_relative_to(SWITCHES) else place)
        if verb == ":list":
            names = "hugepages-1024kB hugepages-16kB enabled hugepages-2048kB hugepages-64kB"
            return result(argv, names.replace(" ", "\n"))
        if name not in self.files:
            return result(argv, "", status=1)
        if verb == ":read":
            self.read.append(name)
            return result(argv, self._spelled(name))
        if "exec" in values[0]:
            self.files |= {other: "always" for other, value in self.files.items() if "exec" in value}
        self.files[name] = values[0]
        return result(argv, "")

    def _spelled(self, name: str) -> str:
        words = ["never", "always", "exec", "always+exec"]
        value = self.files[name]
        return " ".join(f"[{word}]" if word == value else word for word in words) if value in words else f"{value}\n"


def result(argv: list[str], output: str, status: int = 0) -> JobResult:
    return JobResult(tuple(argv), status, 0, output.encode(), b"", 0, 0.0)


def switches_of(guest: FakeGuest) -> Switches:
    return Switches(cast(Guest, guest))


def test_what_the_next_variant_does_not_mention_is_put_back() -> None:
    guest = FakeGuest()
    booted = dict(guest.files)
    switches = switches_of(guest)
    switches.set([(ONE, 0), (TWO, 0)])
    assert (guest.files[ONE], guest.files[TWO]) == ("0", "0")
    switches.set([(TWO, 0)])
    assert (guest.files[ONE], guest.files[TWO]) == ("1", "0")
    switches.set([])
    assert guest.files == booted
    assert guest.read == [ONE, TWO]


@pytest.mark.parametrize("exec_size", SIZES)
def test_exec_that_moved_to_another_size_moves_back(exec_size: str) -> None:
    guest = FakeGuest()
    booted = dict(guest.files)
    switches = switches_of(guest)
    variants: list[list[tuple[str, Value]]] = [[(size(exec_size), "always+exec")], [(size("16kB"), "never")]]
    for variant in (*variants, *reversed(variants)):
        switches.set(variant)
        assert {name: value for name, value in guest.files.items() if name == variant[0][0]} == dict(variant)
        if variant == variants[0]:
            assert [name for name, value in guest.files.items() if "exec" in value] == [size(exec_size)]
        else:
            assert guest.files[size("64kB")] == "always+exec"
    switches.set([])
    assert guest.files == booted


@pytest.mark.boot
def test_a_real_kernel_stands_as_it_booted_after_all_variants(config: GuestConfig, tmp_path: Path) -> None:
    variants = [variant for variant in load_variants().values() if variant.switches]
    with Guest(config, tmp_path / "console.log") as guest:
        machine = machine_name(config.arch.name, guest.ready.page_size)

        def values(names: Iterable[str]) -> dict[str, bytes]:
            return {name: guest.run([":read", switch_path(name)]).stdout for name in names}

        def everything() -> dict[str, bytes]:
            sizes = guest.run([":list", f"{SWITCHES}/transparent_hugepage"]).checked().stdout.decode().split()
            names = {f"transparent_hugepage/{size}/file_enabled" for size in sizes if size.startswith("hugepages-")}
            names |= {name for variant in variants for name, _ in variant.switches if "/hugepages-" not in name}
            return values(names)

        booted = everything()
        assert sum(value.startswith(b"never") for value in booted.values()) > 4
        switches = Switches(guest)
        for variant in variants:
            if not variant.obstacle(machine):
                switches.set(variant.switches)
                now = values(name for name, _ in variant.switches)
                changed = [name for name, value in now.items() if value != booted[name]]
                # arm64 boots with what text-64k is about, where pages are smaller.
                assert changed or variant.name in ("published", "text-64k")
                # Which parts of the multi-generational LRU "y" switches on depends on the machine.
                truths = {"Y": "1", "N": "0"} | {f"0x{parts:04x}": "y" for parts in range(1, 8)}
                found = {name: chosen(now[name].decode()) for name, _ in variant.switches}
                assert {name: truths.get(value, value) for name, value in found.items()} == {
                    name: str(value) for name, value in variant.switches
                }
        switches.set([])
        assert everything() == booted


def test_a_whole_path_is_one() -> None:
    guest = FakeGuest()
    switches = switches_of(guest)
    switches.set([(f"{DEBUG}/three", 0)])
    assert guest.files[f"{DEBUG}/three"] == "0"
    switches.set([])
    assert guest.files[f"{DEBUG}/three"] == "Y"


@pytest.mark.parametrize("name", ["mmap_readahead/three", "mine/one", "/sys/kernel/debug/mprotct/three"])
@pytest.mark.parametrize("value", [0, 1])
def test_a_switch_that_the_kernel_lacks_is_an_error(name: str, value: int) -> None:
    """Switching off what is not there, too: it may be a slip of the pen, and what was meant stay on."""
    guest = FakeGuest()
    booted = dict(guest.files)
    with pytest.raises(NoResult, match=":read ended with status 1"):
        switches_of(guest).set([(ONE, 0), (name, value)])
    assert guest.files == booted


def test_the_first_switch_that_a_kernel_does_not_have() -> None:
    switches = switches_of(FakeGuest())
    assert switches.lacking([(ONE, 0), ("mine/one", 1), ("mine/two", 1)]) == "mine/one"
    assert switches.lacking([(ONE, 0), (TWO, 1)]) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [("1\n", "1"), ("never [always] exec always+exec\n", "always"), ("never always [always+exec]", "always+exec")],
)
def test_the_chosen_value(text: str, value: str) -> None:
    assert chosen(text) == value


@pytest.mark.parametrize(
    ("console", "sentence"),
    [
        ("[    1.0] other: words\n", "The guest has not loaded the module mine."),
        ("[    1.0] mine: too early\r\n[    1.1] mine: ftrace is off\r\n", "the module mine: mine: ftrace is off"),
        ("[    1.0] Lockdown: unsigned module loading is restricted\n", "mine: Lockdown: unsigned module loading is"),
    ],
)
def test_a_module_that_is_not_loaded_is_told_with_the_kernel_s_reason(console: str, sentence: str) -> None:
    guest = SimpleNamespace(run=lambda argv: result(argv, "", status=1), console=lambda: console)
    with pytest.raises(NoResult, match=sentence):
        require_module(cast(Guest, guest), "mine")
    guest.run = lambda argv: result(argv, "parameters\n")
    require_module(cast(Guest, guest), "mine")
