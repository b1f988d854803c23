# SPDX-License-Identifier: GPL-2.0-only
"""The binding: that it is what the C code is, and cases that can be counted by hand."""

import ctypes
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from foliolab import process
from foliolab.errors import BuildError, ModelError
from foliolab.files import MODEL, REPOSITORY
from foliolab.model import compiled as building
from foliolab.model.compiled import INCLUDES, POLICIES, compiled
from foliolab.model.library import (
    KINDS,
    MISS_KINDS,
    ORDERS,
    RECLAIM,
    RULES,
    Counts,
    CountsStruct,
    Machine,
    MachineStruct,
    Pattern,
    PatternStruct,
    simulate,
)

SEQUENTIAL = Pattern("sequential")


def fixed(file_pages: int, memory_pages: int, window: int = 1) -> Machine:
    return Machine("fixed", file_pages, memory_pages, window)


def layout(struct: type[ctypes.Structure], name: str) -> list[str]:
    """Assertions in C that a struct is what we take it for."""
    lines = [f"_Static_assert(sizeof(struct {name}) == {ctypes.sizeof(struct)}, "
             f'"size of {name}");']  # fmt: skip
    for field in struct._fields_:
        place = getattr(struct, field[0])
        lines.append(f'_Static_assert(offsetof(struct {name}, {field[0]}) == {place.offset}, "{name}.{field[0]}");')
        member = f"((struct {name} *)0)->{field[0]}"
        lines.append(f'_Static_assert(sizeof({member}) == {place.size}, "size of {name}.{field[0]}");')
    return lines


def members(enum: str, prefix: str, names: Sequence[str]) -> list[str]:
    """Assertions in C that an enum has these members in this order, and a switch that needs all there are."""
    spelled = [prefix + re.sub("[-.]", "_", name.upper()) for name in names]
    lines = [f'_Static_assert({name} == {number}, "{name}");' for number, name in enumerate(spelled)]
    cases = " ".join(f"case {name}:" for name in spelled)
    return [*lines, f"int of_{enum}(enum {enum} value);",
            f"int of_{enum}(enum {enum} value) {{ switch (value) {{ {cases} return 1; }} return 0; }}"]  # fmt: skip


def compile_checks(lines: Sequence[str], program: Path) -> None:
    source = program.with_suffix(".c")
    headers = ["<stddef.h>", "<stdio.h>", *(f'"{path}"' for path in (*POLICIES[1:], MODEL / "model.h"))]
    source.write_text("\n".join([*(f"#include {header}" for header in headers), *lines]))
    process.run(["cc", "-Wall", "-Wswitch", "-Werror", *INCLUDES, "-o", str(program), str(source)], BuildError)


def test_names_and_structs_are_those_of_c(tmp_path: Path) -> None:
    main = """
        int main(void)
        {
            for (int i = 0; pattern_names[i]; i++)
                printf("%s ", pattern_names[i]);
            for (int i = 0; pattern_orders[i]; i++)
                printf("%s ", pattern_orders[i]);
        }
    """
    lines = [
        *layout(MachineStruct, "model_machine"),
        *layout(PatternStruct, "pattern"),
        *layout(CountsStruct, "model_counts"),
        *members("model_rules", "MODEL_", RULES),
        *members("model_reclaim", "MODEL_", RECLAIM),
        *members("pattern_kind", "PATTERN_", KINDS),
        *members("pattern_order", "PATTERN_", ORDERS),
        *members("mmap_readahead_kind", "MMAP_READAHEAD_", MISS_KINDS),
        main,
    ]
    compile_checks(lines, tmp_path / "checks")
    assert process.run([str(tmp_path / "checks")], BuildError).decode().split() == [*KINDS, *ORDERS]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (RULES[:-1], "not handled in switch"),
        (RULES[::-1], "static assertion failed"),
        ((*RULES, "more"), ".MODEL_MORE. undeclared"),
    ],
)
def test_other_names_than_those_of_c_would_be_noticed(rules: tuple[str, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=words):
        compile_checks([*members("model_rules", "MODEL_", rules), "int main(void) {}"], tmp_path / "checks")


def test_a_file_of_one_page_is_read_once() -> None:
    expected = Counts(
        accesses=6, major_faults=1, minor_faults=0, pages_read=1, waits=1, requests=1, seeks=1, pages_skipped=0,
        evicted=0, evicted_unused=0, refaults=0, looks=0, most_looks=0, kinds=(0, 0, 0, 0),
    )  # fmt: skip
    for rules in ("off", "published", "random", "fixed"):
        assert simulate(Machine(rules, 1, 2, 1), SEQUENTIAL, 3, passes=2) == expected
    adaptive = simulate(Machine("adaptive", 1, 2, 1), SEQUENTIAL, 6)
    assert adaptive == replace(expected, kinds=(1, 0, 0, 0), looks=adaptive.looks, most_looks=adaptive.looks)
    assert adaptive.looks


@pytest.mark.parametrize("rules", ["random", "fixed"])
def test_a_window_of_one_page_reads_each_page_once(rules: str) -> None:
    counts = simulate(Machine(rules, 64, 64, 1), Pattern("random"), 5000)
    assert (counts.pages_read, counts.requests, counts.waits, counts.major_faults) == (64, 64, 64, 64)
    # The rest had been mapped by then: by its own fault, or by that of a neighbour.
    assert counts.accesses == 5000
    assert counts.minor_faults < 64


def test_sequential_with_a_fixed_window_waits_once() -> None:
    """The first read has a mark, and each access of a mark reads a window more."""
    counts = simulate(fixed(256, 256, window=32), SEQUENTIAL, 256)
    assert (counts.waits, counts.major_faults, counts.pages_read, counts.requests) == (1, 1, 256, 8)
    assert (counts.seeks, counts.pages_skipped) == (1, 0)


def test_strides_seek_or_skip() -> None:
    far = simulate(fixed(4096, 4096), Pattern("stride", stride=1024), 4)
    assert (far.requests, far.seeks, far.pages_skipped) == (4, 4, 0)
    near = simulate(fixed(4096, 4096), Pattern("stride", stride=32), 4)
    assert (near.requests, near.seeks, near.pages_skipped) == (4, 1, 3 * 31)


def test_memory_smaller_than_the_file_evicts() -> None:
    counts = simulate(fixed(64, 32), SEQUENTIAL, 64, passes=2)
    assert (counts.pages_read, counts.evicted, counts.refaults) == (128, 96, 64)
    whole = simulate(fixed(64, 64), SEQUENTIAL, 64, passes=2)
    assert (whole.pages_read, whole.evicted, whole.refaults) == (64, 0, 0)


def test_each_pass_goes_on_with_other_patterns() -> None:
    both = simulate(fixed(64, 64), SEQUENTIAL, 32, passes=3, then=(Pattern("reverse"),))
    assert (both.accesses, both.pages_read, both.refaults) == (6 * 32, 64, 0)
    again = simulate(fixed(64, 32), SEQUENTIAL, 32, passes=3, then=(Pattern("reverse"),))
    assert (again.pages_read, again.refaults) == (6 * 32, 4 * 32)


def test_more_memory_than_the_file_changes_nothing() -> None:
    for rules in RULES:
        machine = Machine(rules, 4096, 4096, 256)
        more = replace(machine, memory_pages=100000)
        assert simulate(machine, Pattern("zipf"), 2000) == simulate(more, Pattern("zipf"), 2000)


def test_settings_reach_the_model() -> None:
    machine = fixed(4096, 4096)

    def pages(pattern: Pattern) -> int:
        return simulate(machine, pattern, 4000).pages_read

    assert pages(Pattern("random", region=0.01)) == 40
    assert pages(Pattern("stride", stride=1024)) == 4
    assert pages(Pattern("drift", stride=1)) == 1
    assert pages(Pattern("random")) != pages(Pattern("random", seed=2))
    objects = Pattern("objects", object=8)
    runs = {order: simulate(machine, structs.replace(objects, order=order), 800) for order in ORDERS}
    assert runs["forward"].pages_read == runs["backward"].pages_read
    assert runs["forward"].seeks != runs["backward"].seeks
    wide = Machine("fixed", 65536, 65536, 1)
    streams = Pattern("streams", streams=4)
    assert simulate(wide, streams, 4).seeks == 4
    assert simulate(wide, structs.replace(streams, streams=1), 4).seeks == 1
    adaptive = Machine("adaptive", 65536, 65536, 1024)
    assert simulate(adaptive, Pattern("random"), 3000) != simulate(
        replace(adaptive, request_pages=256), Pattern("random"), 3000
    )


@pytest.mark.parametrize(
    ("machine", "pattern", "words"),
    [
        (Machine("none", 8, 8, 1), SEQUENTIAL, "no rules 'none'; known: off, published, adaptive, random, fixed, xnu"),
        (Machine("off", 0, 8, 1), SEQUENTIAL, "file_pages has to be at least 1 and below 2^32, not 0"),
        (Machine("off", 1 << 32, 8, 1), SEQUENTIAL, "file_pages has to be"),
        (Machine("off", 8, 8, 0), SEQUENTIAL, "read_ahead_pages has to be at least 1"),
        (Machine("off", 8, 8, 1, 0), SEQUENTIAL, "request_pages has to be at least 1"),
        (Machine("off", 8, 8, 1, reclaim="none"), SEQUENTIAL, "no reclaim 'none'; known: second-chance, lists"),
        (Machine("off", 8, 15, 8), SEQUENTIAL, "15 pages is too small: it has to hold two windows of 8 pages"),
        (Machine("off", 8, 8, 1), Pattern("no-such"), "no patterns 'no-such'; known: random, sequential"),
        (Machine("off", 8, 8, 1), Pattern("objects", order="odd"), "no orders 'odd'; known: forward"),
        (Machine("off", 8, 8, 1), Pattern("stride", stride=-1), "stride has to be at least 0"),
        (Machine("off", 8, 8, 1), Pattern("random", seed=1 << 64), "seed has to be at least 0 and below 2^64"),
        (Machine("off", 8, 8, 1), Pattern("random", region=float("nan")), "region has to be from 0 to 1, not nan"),
    ],
)
def test_what_the_model_cannot_do_is_a_sentence(machine: Machine, pattern: Pattern, words: str) -> None:
    with pytest.raises(ModelError) as error:
        simulate(machine, pattern, 4)
    assert words in str(error.value)


@pytest.mark.parametrize(("count", "passes"), [(-1, 1), (1 << 32, 1), (1, -1)])
def test_counts_that_cannot_be(count: int, passes: int) -> None:
    with pytest.raises(ModelError, match="has to be at least 0 and below"):
        simulate(fixed(8, 8), SEQUENTIAL, count, passes)


def test_nothing_is_accessed() -> None:
    assert simulate(fixed(8, 8), SEQUENTIAL, 0).pages_read == 0
    assert simulate(fixed(8, 8), SEQUENTIAL, 8, passes=0).pages_read == 0


def test_the_model_is_compiled_once_and_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path / "cache"))
    for original in building.sources():
        copy = tmp_path / original.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
    policies = [path.relative_to(REPOSITORY) for path in POLICIES]
    for place, name in (("REPOSITORY", "."), ("MODEL", "model"), ("GUEST", "guest"), ("DEVICE", "device")):
        monkeypatch.setattr(building, place, tmp_path / name)
    monkeypatch.setattr(building, "POLICIES", tuple(tmp_path / policy for policy in policies))
    monkeypatch.setattr(building, "WINDOW", tmp_path / policies[0])
    includes = tuple(f"-I{tmp_path / name}" for name in ("model/shim", "kernel/files/include", "kernel/files/mm"))
    monkeypatch.setattr(building, "INCLUDES", includes)
    monkeypatch.setattr(building, "identity", building.identity.__wrapped__)
    monkeypatch.setattr(building, "_FLAGS", ("-O0", "-fPIC", "-shared"))  # takes less long
    first = compiled()
    made = first.stat().st_mtime_ns
    assert compiled() == first
    assert first.stat().st_mtime_ns == made
    seen = {building.identity()}
    for source in (
        "model/model.c",
        "model/memory.c",
        "model/openers.c",
        "model/play.c",
        "model/policies/linux_6_12.c",
        "model/policies/linux.h",
        "model/model.h",
        "guest/patterns.h",
        "guest/cases.h",
        "guest/random.h",
        "device/device_time.h",
        *map(str, policies),
    ):
        with (tmp_path / source).open("a") as text:
            text.write("/* changed */\n")
        seen.add(building.identity())
    assert compiled() != first
    assert len(seen) == 12 + len(policies)
    (tmp_path / "model/model.c").write_text("int model_new(void) { return nothing; }\n")
    with pytest.raises(BuildError, match=r"model\.c"):
        compiled()
    assert len(list((tmp_path / "cache/model").glob("*/model.so"))) == 2


def test_a_library_of_changed_sources_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(building, "identity", lambda: "before")
    with pytest.raises(BuildError, match="changed while they were compiled"):
        compiled()
    assert not (tmp_path / "model/before").exists()
