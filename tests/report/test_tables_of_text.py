# SPDX-License-Identifier: GPL-2.0-only
"""Tables of an experiment that has a metric, columns and published figures of its own."""

from foliolab.report.markdown import to_markdown
from foliolab.report.section import of_view
from foliolab.report.view import View
from tests.report.shown import terminal, text_view


def table_of(shown: View) -> list[str]:
    return [line for line in to_markdown(of_view(shown)).splitlines() if line.startswith("|")]


def test_an_experiment_s_own_metric_and_columns_with_what_was_published() -> None:
    assert table_of(text_view()) == [
        "| cell | variant | contpte % | against off | published % | TLB entries | published entries x 1/8 "
        "| cached MiB | published MiB x 1/8 | thp aligned 16kB % | read MiB | read requests | major faults "
        "| emulated seconds | n |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| random | off | 6.2 |  | 5.0 | 15,500 | 1,000 | 66.0 | 64.0 | 46.0 | 65.0 | 32,768 | 4,000 | 12.500 | 1 |",
        "|  | published | 96.9 | 15.5x more |  | 1,024 |  | 66.0 |  | 0.0 | 65.0 | 32,768 | 4,000 | 12.500 | 1 |",
    ]
    assert "times floor" not in to_markdown(of_view(text_view()))


def test_what_was_published_for_another_machine_is_not_shown() -> None:
    assert "published" not in table_of(text_view(arch="x86_64"))[0]


def test_published_seconds_stand_beside_those_of_a_real_machine_at_full_scale_only() -> None:
    full = text_view(scale="full", backend="qemu-kvm")
    assert "| seconds | published seconds | n |" in table_of(full)[0]
    assert "| 12.500 | 0.083 | 1 |" in table_of(full)[2]
    assert "published seconds" not in table_of(text_view(scale="full"))[0]


def test_columns_of_an_experiment_go_one_by_one_from_the_last() -> None:
    head = " ".join(line for line in terminal(80, text_view()) if "entries" in line or "TLB" in line)
    assert "TLB" in head
    assert all(word not in head for word in ("cached", "16kB", "requests", "emulated"))
    assert "cached" in " ".join(terminal(100, text_view()))


def test_what_does_not_apply_is_said_once() -> None:
    shown = text_view(outcome="not-applicable", sentence="'published' is for arm64-64k only.", metrics={})
    text = "\n".join(terminal(120, shown))
    assert "not-applicable" in text
    assert text.count("'published' is for arm64-64k only.") == 1
    assert "repetition 1" not in text
