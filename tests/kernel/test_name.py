# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.errors import UnknownKernel
from foliolab.kernel.name import parse_name, stem


@pytest.mark.parametrize(
    ("text", "short", "series"),
    [
        ("patched", "patched", ("ours",)),
        ("debian:6.12+ours", "patched", ("ours",)),
        ("debian:6.12", "unpatched", ()),
        ("debian:7.3", "debian:7.3", ()),
    ],
)
def test_our_own_kernels_have_one_name_however_they_are_asked_for(
    text: str, short: str, series: tuple[str, ...]
) -> None:
    name = parse_name(text)
    assert (name.text, name.series) == (short, series)


def test_a_path_may_hold_what_separates_the_parts_of_a_name(tmp_path: Path) -> None:
    tree, patch = tmp_path / "linux+mine@home", tmp_path / "one.mbox"
    tree.mkdir()
    patch.touch()
    plain = parse_name(str(tree))
    assert (plain.path, plain.ref, plain.series) == (tree, "", ())
    full = parse_name(f"{tree}@v6.12~3+{patch}+ours")
    assert (full.path, full.ref, full.series) == (tree, "v6.12~3", (str(patch), "ours"))


def test_what_is_built_together() -> None:
    """A series of the user's is an incremental build after the kernel without it; ours is one after ours."""
    file = __file__
    found = {text: parse_name(text) for text in ("debian:6.12", f"debian:6.12+{file}", f"debian:6.12+ours+{file}")}
    assert [name.tree for name in found.values()] == ["unpatched", "unpatched", "patched"]
    assert [name.label for name in found.values()] == ["unpatched", "series", "patched"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("debian:six", "'debian:six' names no version of Debian's"),
        ("/nowhere/linux@v6.12", "There is no kernel tree or tarball at /nowhere/linux"),
        ("/tmp@", "'/tmp@' names no ref"),
        ("", "'' names no kernel; write for instance debian:6.12, or where a tree is"),
        ("+ours", "'\\+ours' names no kernel"),
        ("@HEAD", "'@HEAD' names no kernel"),
        ("debian:6.12+/nowhere.mbox", "There is no series /nowhere.mbox"),
        ("~no-such-user/linux", "There is no kernel tree or tarball at ~no-such-user/linux"),
        ("debian:6.12+~no-such-user/one.mbox", "There is no series ~no-such-user/one.mbox"),
    ],
)
def test_what_is_no_name(text: str, sentence: str) -> None:
    with pytest.raises(UnknownKernel, match=sentence):
        parse_name(text)


def test_names_for_files_have_no_directories() -> None:
    assert stem("../linux@v6.12+ours") == "..-linux-v6.12-ours"
