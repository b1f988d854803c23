# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.arch import ARM64, X86_64, Architecture
from foliolab.errors import BadExperiment, ConfigError
from foliolab.kernel import config


def merged(arch: Architecture, size: int, profile: str, label: str, *extras: str, version: str = "6.12.1") -> str:
    return config.merge(arch, size, profile, extras, version=version, label=label, ours=label == "patched")


def test_later_fragments_win() -> None:
    assert config.parse(merged(X86_64, 4096, "lab", "patched"))["CONFIG_PREEMPT_NONE"] == "y"
    assert config.parse(merged(X86_64, 4096, "debug", "patched"))["CONFIG_PREEMPT_NONE"] == "n"


def test_release_tells_the_flavours_apart() -> None:
    assert 'CONFIG_LOCALVERSION="-foliolab-unpatched"' in merged(X86_64, 4096, "lab", "unpatched").splitlines()


def test_flavours_differ_in_nothing_else() -> None:
    patched = config.parse(merged(X86_64, 4096, "lab", "patched"))
    unpatched = config.parse(merged(X86_64, 4096, "lab", "unpatched"))
    differing = {name for name in patched if patched[name] != unpatched.get(name)}
    ours = {"CONFIG_PAGE_TOUCH", "CONFIG_MMAP_READAHEAD_DEBUG", "CONFIG_MPROTECT_DEBUG"}
    assert differing == {"CONFIG_LOCALVERSION"} | ours


@pytest.mark.parametrize("profile", config.PROFILES)
@pytest.mark.parametrize("size", ARM64.page_sizes)
def test_each_page_size_is_asked_for_in_one_way(size: int, profile: str) -> None:
    options = config.parse(merged(ARM64, size, profile, "patched"))
    asked = [name for name, value in options.items() if name.endswith("K_PAGES") and value == "y"]
    assert asked == [f"CONFIG_ARM64_{size >> 10}K_PAGES"]


def test_optional_fragments_are_left_out_unless_asked_for() -> None:
    assert set(config.OPTIONAL) >= {"xfs", "network"}
    assert "CONFIG_XFS_FS=y" not in merged(X86_64, 4096, "lab", "patched").splitlines()
    assert "CONFIG_XFS_FS=y" in merged(X86_64, 4096, "lab", "patched", "xfs").splitlines()


@pytest.mark.parametrize(
    ("version", "preemption", "gone"),
    [
        ("6.12.117", {"CONFIG_PREEMPT_NONE": "y"}, ()),
        ("6.15.2", {"CONFIG_PREEMPT_NONE": "y"}, ("CONFIG_SCHED_DEBUG",)),
        ("7.3.4", {"CONFIG_PREEMPT_LAZY": "y"}, ("CONFIG_SCHED_DEBUG", "CONFIG_SLUB_CPU_PARTIAL")),
    ],
)
def test_options_are_those_of_the_version(version: str, preemption: dict[str, str], gone: tuple[str, ...]) -> None:
    options = config.parse(merged(X86_64, 4096, "lab", "unpatched", version=version))
    assert {name: value for name, value in options.items() if name.startswith("CONFIG_PREEMPT")} == preemption
    assert options.keys().isdisjoint(gone)
    assert ("CONFIG_SCHED_DEBUG" in options) is not ("CONFIG_SCHED_DEBUG" in gone)
    assert options["CONFIG_NUMA_BALANCING"] == "y"
    arm64 = config.parse(merged(ARM64, 4096, "lab", "unpatched", version=version))
    assert ("CONFIG_ARM64_PAN" in arm64) is ("CONFIG_PREEMPT_NONE" in preemption)
    debug = config.parse(merged(X86_64, 4096, "debug", "unpatched", version=version))
    assert (debug["CONFIG_PREEMPT"], "CONFIG_PREEMPT_LAZY" in debug) == ("y", False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[CONFIG_A]\nsince = "7.0"\nours = \n', "options.toml is not valid TOML: .*line 3"),
        ('CONFIG_A = "7.0"', "'CONFIG_A' is wrong: expected `table`, got `str`"),
        ("[CONFIG_A]\nsince = 7.0", r"'CONFIG_A\.since' is wrong: expected `str"),
        ('[CONFIG_A]\nsince = "7"', r"'CONFIG_A\.since' is wrong: expected `str` matching regex"),
        ('[CONFIG_A]\nsinc = "7.0"', r"'CONFIG_A\.sinc' is not a key that is known here"),
        ('[CONFIG_A]\nours = "yes"', r"'CONFIG_A\.ours' is wrong: expected `bool`"),
        ('[CONFIG_A]\nsince = "7.0"\ninstead = { CONFIG_B = true }', r"'CONFIG_A\.instead.*' is wrong: expected `str`"),
    ],
)
def test_a_mistake_in_what_differs_between_versions_is_named_with_its_key(
    text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "options.toml").write_text(text)
    with pytest.raises(BadExperiment, match=words):
        config.read_special(tmp_path / "options.toml")


def test_what_differs_between_versions_is_in_some_fragment() -> None:
    texts = [file.read_text() for file in config.SPECIAL.parent.rglob("*.config")]
    named = set[str]().union(*map(config.parse, texts)) | set(
        config.SPECIAL.with_name("matrix.toml").read_text().split('"')
    )
    assert set() < config.read_special().keys() <= named


def test_check_names_what_is_missing() -> None:
    wanted = "CONFIG_A=y\nCONFIG_B=7\n# CONFIG_C is not set\nCONFIG_D=n\n"
    config.check(wanted, "CONFIG_A=y\nCONFIG_B=7\n")
    with pytest.raises(ConfigError, match=r"CONFIG_B=7, # CONFIG_C is not set\."):
        config.check(wanted, "CONFIG_A=y\nCONFIG_B=8\nCONFIG_C=y\n# CONFIG_D is not set\n")
