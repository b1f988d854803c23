# SPDX-License-Identifier: GPL-2.0-only
import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foliolab.arch import machine_name
from foliolab.errors import NoResult
from foliolab.experiment.variants import load_variants
from foliolab.vm.guest import Guest, GuestConfig
from foliolab.vm.outcome import JobResult
from foliolab.vm.switches import LACKING, SWITCHES, lacking, require_module, switch_path, switched
from tests.guest.alone import Alone


def size(name: str) -> str:
    return f"/sizes/hugepages-{name}/file_enabled"


FILES = {"/one": "1", "/two": "1", "/words": "x [y] z", size("16kB"): "some", size("64kB"): "exec"}
"""Plain files: what is written over a word is as long as that."""


def switched_in_turn(alone: Alone, *asked: list[str]) -> list[dict[str, str]]:
    """What is in the files after each :switch, by the words of it."""
    jobs = []
    for words in asked:
        jobs += [[":switch", *words], *([":read", name] for name in FILES)]
    values = [result.stdout.decode() for result in alone.run(jobs, FILES) if result.argv[0] == ":read"]
    turns = [values[at : at + len(FILES)] for at in range(0, len(values), len(FILES))]
    return [dict(zip(FILES, turn, strict=True)) for turn in turns]


def test_what_the_next_variant_does_not_mention_is_put_back(alone: Alone) -> None:
    one, two, none = switched_in_turn(alone, ["/one=0", "/two=0", "/words=a"], ["/two=0"], [])
    assert (one["/one"], one["/two"], one["/words"]) == ("0", "0", "a [y] z")
    assert (two["/one"], two["/two"], two["/words"]) == ("1", "0", "y [y] z")
    assert (none["/one"], none["/two"]) == ("1", "1")


def test_a_folio_size_that_takes_exec_from_another_gives_it_back(alone: Alone) -> None:
    jobs = [[":switch", f"{size('16kB')}=exec"], [":write", size("64kB"), "none"], [":switch"], [":read", size("64kB")]]
    assert alone.run(jobs, FILES)[-1].stdout == b"exec"


def test_a_switch_that_the_kernel_lacks_is_an_error(alone: Alone) -> None:
    """Switching off what is not there, too: it may be a slip of the pen, and what was meant stay on."""
    switch, one = alone.run([[":switch", "/one=0", "/three=0"], [":read", "/one"]], FILES)
    assert switch.status == LACKING
    assert lacking(switch, [("/one", 0), ("/three", 0)]) == "/three"
    assert one.stdout == b"1"


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
        for variant in variants:
            if not variant.obstacle(machine):
                guest.run(switched(variant.switches)).checked()
                now = values(name for name, _ in variant.switches)
                changed = [name for name, value in now.items() if value != booted[name]]
                # arm64 boots with what text-64k is about, where pages are smaller.
                assert changed or variant.name in ("published", "text-64k")
                # Which parts of the multi-generational LRU "y" switches on depends on the machine.
                truths = {"Y": "1", "N": "0"} | {f"0x{parts:04x}": "y" for parts in range(1, 8)}
                found = {name: _chosen(now[name].decode()) for name, _ in variant.switches}
                assert {name: truths.get(value, value) for name, value in found.items()} == {
                    name: str(value) for name, value in variant.switches
                }
        guest.run(switched([])).checked()
        assert everything() == booted


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


def _chosen(text: str) -> str:
    """The value in a switch's file: the word in brackets if it lists all that it takes, else the whole."""
    found = re.search(r"\[(.+?)\]", text)
    return found[1] if found else text.strip()


def result(argv: list[str], output: str, status: int = 0) -> JobResult:
    return JobResult(tuple(argv), status, 0, output.encode(), b"", 0, 0.0)
