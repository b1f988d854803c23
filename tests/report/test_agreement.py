# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.analyse.agreement import Agreement
from foliolab.errors import ChecksFailed
from foliolab.report import agreement
from foliolab.report.expected import check
from foliolab.report.markdown import to_markdown
from foliolab.report.section import of_agreement
from foliolab.report.terminal import print_section
from tests.analyse.test_agreement import compared, modelled
from tests.printed import printed
from tests.samples import sample

MIB = 1 << 20


def one(model: int) -> Agreement:
    (comparison,) = compared(modelled(model * MIB), sample(100 * MIB))
    return comparison


def terminal(comparison: Agreement) -> list[str]:
    return printed(lambda console: print_section(console, of_agreement(comparison)))


def test_agreement_in_the_terminal() -> None:
    lines = terminal(one(102))
    assert lines[0] == ("Model against kernel: sparse-mmap, scale quick, x86_64 with 4 KiB pages, backend qemu-tcg")
    row = next(line for line in lines if line.startswith("random"))
    assert row.split() == ["random", "off", "102.0", "100.0", "+2.0", "%", "7", "7", "+0.0", "%", "1"]
    assert (
        "ok   None of 2 figures of the model differ from the kernel's by more than they may "
        "(read_bytes 3 %, major_faults 5 %)." in lines
    )


def test_disagreement_is_loud_everywhere() -> None:
    comparison = one(110)
    lines = terminal(comparison)
    assert "BEYOND +10.0 %" in next(line for line in lines if line.startswith("random"))
    assert any(line.startswith("FAIL 1 of 2 figures of the model differ") for line in lines)
    text = to_markdown(of_agreement(comparison))
    assert "| random | off | 110.0 | 100.0 | BEYOND +10.0 % | 7 | 7 | +0.0 % | 1 |" in text
    assert "1 of 2 figures of the model differ" in text
    with pytest.raises(
        ChecksFailed, match=r"1 of 2 figures .*; the first: random, off, read_bytes: \+10\.0 %, tolerance 3 %"
    ):
        check([], [comparison])


def test_agreement_passes_the_check_without_expectations() -> None:
    check([], [one(100)])
    with pytest.raises(ChecksFailed, match="No expectation could be checked"):
        check([], [])


def test_rows_for_programs() -> None:
    first, second = agreement.to_json(one(96))
    assert first == {
        "experiment": "sparse-mmap",
        "scale": "quick",
        "arch": "x86_64",
        "page_size": 4096,
        "backend": "qemu-tcg",
        "timed_on": "",
        "device": "",
        "cell": {"pattern": "random"},
        "variant": "off",
        "n": 1,
        "metric": "read_bytes",
        "model": 96 * MIB,
        "kernel": 100 * MIB,
        "difference": pytest.approx(-0.04),
        "tolerance": 0.03,
        "within": False,
    }
    assert (second["metric"], second["within"]) == ("major_faults", True)
