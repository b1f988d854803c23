# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.arch import ARM64, X86_64
from foliolab.errors import ConfigError
from foliolab.kernel import config


def test_later_fragments_win() -> None:
    assert config.parse(config.merge(X86_64, 4096, "lab", "patched", ()))["CONFIG_PREEMPT_NONE"] == "y"
    assert config.parse(config.merge(X86_64, 4096, "debug", "patched", ()))["CONFIG_PREEMPT_NONE"] == "n"


def test_release_tells_the_flavours_apart() -> None:
    assert (
        'CONFIG_LOCALVERSION="-foliolab-unpatched"' in config.merge(X86_64, 4096, "lab", "unpatched", ()).splitlines()
    )


def test_flavours_differ_in_nothing_else() -> None:
    patched = config.parse(config.merge(X86_64, 4096, "lab", "patched", ()))
    unpatched = config.parse(config.merge(X86_64, 4096, "lab", "unpatched", ()))
    differing = {name for name in patched if patched[name] != unpatched.get(name)}
    assert differing == {"CONFIG_LOCALVERSION", "CONFIG_PAGE_TOUCH"}


@pytest.mark.parametrize("profile", config.PROFILES)
@pytest.mark.parametrize("size", ARM64.page_sizes)
def test_each_page_size_is_asked_for_in_one_way(size: int, profile: str) -> None:
    options = config.parse(config.merge(ARM64, size, profile, "patched", ()))
    asked = [name for name, value in options.items() if name.endswith("K_PAGES") and value == "y"]
    assert asked == [f"CONFIG_ARM64_{size >> 10}K_PAGES"]


def test_optional_fragments_are_left_out_unless_asked_for() -> None:
    assert set(config.OPTIONAL) >= {"xfs", "network"}
    assert "CONFIG_XFS_FS=y" not in config.merge(X86_64, 4096, "lab", "patched", ()).splitlines()
    assert "CONFIG_XFS_FS=y" in config.merge(X86_64, 4096, "lab", "patched", ("xfs",)).splitlines()


def test_check_names_what_is_missing() -> None:
    wanted = "CONFIG_A=y\nCONFIG_B=7\n# CONFIG_C is not set\nCONFIG_D=n\n"
    config.check(wanted, "CONFIG_A=y\nCONFIG_B=7\n")
    with pytest.raises(ConfigError, match=r"CONFIG_B=7, # CONFIG_C is not set\."):
        config.check(wanted, "CONFIG_A=y\nCONFIG_B=8\nCONFIG_C=y\n# CONFIG_D is not set\n")
