# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.errors import BadExperiment, UnknownVariant
from foliolab.experiment.variants import choose, load_variants


def test_names_are_chosen_once_and_in_order() -> None:
    chosen = choose(["series", "stock", "series"], load_variants())
    assert [variant.name for variant in chosen] == ["series", "stock"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownVariant, match="no variant 'folios'; known: unpatched, stock, series, folio"):
        choose(["stock", "folios"], load_variants())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[a]\nkernel = "odd"\ndescription = "x"', r"'a.kernel' has to be one of patched, unpatched"),
        ('[a]\nkernel = "patched"', r"'a.description' is missing"),
        ('[a]\nkernel = "patched"\ndescription = "x"\nswitches = { s = "on" }', r"'a.switches.s' has to be a whole"),
        ('[a]\nkernel = "unpatched"\ndescription = "x"\nswitches = { s = 1 }', r"'a.switches' cannot be"),
        ("a = 1", r"'a' has to be a table"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(text)
    with pytest.raises(BadExperiment, match=complaint):
        load_variants(file)
