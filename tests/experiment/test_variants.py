# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment, UnknownVariant
from foliolab.experiment.variants import choose, load_variants, on_kernels


def test_names_are_chosen_once_and_in_order() -> None:
    chosen = choose(["published", "off", "published"], load_variants())
    assert [variant.name for variant in chosen] == ["published", "off"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownVariant, match="no variant 'folio'; known: unpatched, off, published, adaptive"):
        choose(["off", "folio"], load_variants())


def test_the_module_has_a_variant_and_a_control() -> None:
    debian, module = choose(["debian", "module"], load_variants())
    assert (module.kernel, module.ours, module.switches) == (f"{debian.kernel}+module", False, ())
    other = on_kernels([debian, module], ["image:debian:6.1", "image:debian:6.1+module"], asked=True)
    assert [variant.kernel for variant in other] == ["image:debian:6.1", "image:debian:6.1+module"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[a]\nkernel = "odd"\ndescription = "x"', r"'a.kernel' has to be one of patched, unpatched"),
        ('[a]\nkernel = "patched"', r"'a.description' is missing"),
        (
            '[a]\nkernel = "patched"\ndescription = "x"\nswitches = { s = 0.5 }',
            r"'a.switches.s' is wrong: expected `int \| str`, got `float`",
        ),
        (
            '[a]\nkernel = "patched"\ndescription = "x"\nswitches = { "../s" = 1 }',
            r"s' is not the name of a file below",
        ),
        (
            '[a]\nkernel = "patched"\ndescription = "x"\nswitches = { "/proc/s" = 1 }',
            r"s' is not the name of a file below /sys/kernel/mm/, nor a path below /sys/kernel/debug/",
        ),
        (
            '[a]\nkernel = "patched"\ndescription = "x"\nswitches = { "/sys/kernel/debug/../s" = 1 }',
            r"s' is not the name of a file below",
        ),
        ('[a]\nkernel = "patched"\ndescription = "x"\nmachines = ["m68k"]', r"'a.machines' names 'm68k', .* x86_64-4k"),
        ('[a]\nlike = "b"\ndescription = "x"', r"'a.like' is 'b', which is no variant above it"),
        (
            '[a]\nkernel = "image:debian:6.12+module"\ndescription = "x"\nswitches = { s = 1 }',
            r"'a.switches' cannot be",
        ),
        ('[a]\ndescription = "x"', r"'a.kernel' is missing, and 'like' as well"),
        (
            '[a]\nkernel = "patched"\ndescription = "x"\n[b]\nkernel = "patched"\nlike = "a"\ndescription = "y"',
            r"'b.kernel' is that of 'like'",
        ),
        ('[a]\nkernel = "patched"\ndescription = "x"\nswitch = 1', r"'a.switch' is not a key that is known here"),
        ("a = 1", r"'a' is wrong: expected `table`, got `int`"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(text)
    with pytest.raises(BadExperiment, match=complaint):
        load_variants(file)


def test_a_variant_may_start_from_another(tmp_path: Path) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(
        '[a]\nkernel = "patched"\ndescription = "x"\nswitches = { "m/one" = 1, "m/two" = 2 }\n'
        '[b]\nlike = "a"\ndescription = "y"\nswitches = { "m/two" = "always+exec" }\nmachines = ["arm64-4k"]\n'
        '[c]\nlike = "b"\ndescription = "z"\n[d]\nlike = "b"\ndescription = "z"\nmachines = ["arm64-64k"]\n'
    )
    known = load_variants(file)
    b = known["b"]
    assert (b.kernel, dict(b.switches)) == ("patched", {"m/one": 1, "m/two": "always+exec"})
    assert (b.obstacle("arm64-4k"), b.obstacle("arm64-64k")) == ("", "'b' is for arm64-4k only.")
    assert (known["c"].machines, known["d"].machines) == (("arm64-4k",), ("arm64-64k",))


def test_a_switch_may_be_a_whole_path_in_debugfs(tmp_path: Path) -> None:
    file = tmp_path / "variants.toml"
    file.write_text('[a]\nkernel = "patched"\ndescription = "x"\nswitches = { "/sys/kernel/debug/m/one" = 1 }\n')
    assert load_variants(file)["a"].switches == (("/sys/kernel/debug/m/one", 1),)


@pytest.mark.parametrize(
    ("names", "asked", "kernels", "expected"),
    [
        # What an experiment names: each kernel has of it what it can have.
        (["unpatched", "off", "adaptive"], False, ["unpatched", "patched"], ["unpatched", "off", "adaptive"]),
        (["unpatched", "off"], False, ["patched", "debian:7.3"], ["off", "debian:7.3"]),
        (["off"], False, ["debian:7.3", "debian:7.3+ours"], ["debian:7.3", "off on debian:7.3+ours"]),
        (["unpatched-mglru"], False, ["unpatched", "debian:7.3"], ["unpatched-mglru", "unpatched-mglru on debian:7.3"]),
        # What the user names: a kernel's own source may have our code.
        (["off"], True, ["debian:7.3"], ["off on debian:7.3"]),
        ([], True, ["debian:7.3", "patched"], ["debian:7.3", "patched"]),
        (["published"], True, ["unpatched", "patched"], ["published on unpatched", "published"]),
    ],
)
def test_variants_on_kernels(names: list[str], asked: bool, kernels: list[str], expected: list[str]) -> None:
    found = on_kernels(choose(names, load_variants()), kernels, asked=asked)
    assert [variant.name for variant in found] == expected
    assert {variant.kernel for variant in found} == set(kernels)


def test_our_settings_take_our_code() -> None:
    (elsewhere,) = on_kernels(choose(["off"], load_variants()), ["debian:7.3"], asked=True)
    assert elsewhere.lacking(ours=False) == "'off on debian:7.3' takes our code, which that kernel has not."
    assert elsewhere.lacking(ours=True) == ""
