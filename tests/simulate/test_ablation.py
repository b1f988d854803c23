# SPDX-License-Identifier: GPL-2.0-only
import subprocess
from pathlib import Path

import pytest

from foliolab.errors import ModelError
from foliolab.model.compiled import INCLUDES, WINDOW
from foliolab.simulate.ablation import (
    JUDGED,
    WHOLE,
    Ablation,
    Mechanism,
    ablate,
    ablation_of,
    count_lines,
    lines_of,
    read_mechanisms,
    without,
)
from foliolab.simulate.rows import RegretRow
from foliolab.simulate.suite import PATTERNS, REPORTS, TRACES
from tests.simulate.small import DEVICES, SMALL, row

_BY_NAME = {mechanism.name: mechanism for mechanism in read_mechanisms()}
_STREAMS = _BY_NAME["streams"]


@pytest.mark.parametrize("name", _BY_NAME)
def test_the_policy_without_a_mechanism_is_one_that_compiles(name: str, tmp_path: Path) -> None:
    policy = tmp_path / WINDOW.name
    policy.write_text(without(_BY_NAME[name], WINDOW.read_text()))
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-fsyntax-only", *INCLUDES]
    subprocess.run(["cc", *flags, str(policy)], check=True)


def test_each_mechanism_has_lines_of_its_own_and_none_has_most() -> None:
    policy = WINDOW.read_text()
    lines = {name: lines_of(mechanism, policy) for name, mechanism in _BY_NAME.items()}
    assert all(1 <= own < count_lines(policy) / 2 for own in lines.values()), lines


def test_functions_and_constants_that_nothing_else_needs_count_for_a_mechanism() -> None:
    policy = """
#define TWICE 2
/* A comment
 * of two lines. */
struct of_a_type {
	int member;
};
static int helper(int n)
{
	return TWICE * n;
}
int mmap_readahead_adapt(int n)
{
	n = helper(n);
	return n;
}
"""
    assert count_lines(policy) == 1 + 4 + 5
    assert lines_of(Mechanism("twice", "", (("n = helper(n);", ""),)), policy) == 1 + 4 + 1


@pytest.mark.parametrize("old", ["no such text", "return"])
def test_text_that_the_policy_lacks_or_has_twice_is_named(old: str) -> None:
    with pytest.raises(ModelError, match=rf"'some' cannot be switched off: .* '{old}', not one\."):
        without(Mechanism("some", "", ((old, ""),)), WINDOW.read_text())


@pytest.fixture(scope="module")
def found() -> list[Ablation]:
    nothing = Mechanism("nothing", "Nothing is off.", ())
    return ablate(SMALL, SMALL.cases, DEVICES, [nothing, _STREAMS])


def test_the_whole_policy_comes_first_and_what_changes_nothing_is_as_good(found: list[Ablation]) -> None:
    whole, nothing, _ = found
    assert [each.mechanism for each in found] == [WHOLE, "nothing", "streams"]
    assert whole.lines == count_lines(WINDOW.read_text())
    assert set(whole.spreads) == {PATTERNS, JUDGED}
    assert (nothing.spreads, nothing.hurt, nothing.needs) == (whole.spreads, {}, {})


def test_who_needs_a_mechanism_is_hurt_without_it(found: list[Ablation]) -> None:
    whole, _, streams = found
    assert streams.spreads[PATTERNS].mean > whole.spreads[PATTERNS].mean
    assert next(iter(streams.hurt)) == "forward" and streams.hurt["forward"] > 1.1


def test_the_store_or_report_that_needs_a_mechanism_most_is_named_with_its_disk() -> None:
    def rows(*times: float) -> list[RegretRow]:
        cells = [("trace:lmdb", "slow"), ("trace:lmdb", "fast"), ("report:writes", "fast"), ("some", "fast")]
        return [
            row("adaptive", 9, name, device=device, time=time)
            for (name, device), time in zip(cells, times, strict=True)
        ]

    found = ablation_of("streams", "", 1, rows(1.5, 1.0, 2.0, 8.0), rows(1.0, 1.0, 1.6, 1.0))
    assert found.needs == {"trace:lmdb, slow": 1.5}
    assert [*found.hurt] == ["some", "report:writes", "trace:lmdb"]
    assert (found.spreads[REPORTS].mean, found.spreads[TRACES].worst) == (2, 1.5)
