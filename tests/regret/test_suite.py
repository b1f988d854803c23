# SPDX-License-Identifier: GPL-2.0-only
from foliolab.model.library import KINDS, ORDERS, PAGE_BYTES
from foliolab.regret.suite import SUITE, memory_pages


def test_names_are_unique_and_fit_on_a_command_line() -> None:
    for names in ([case.name for case in SUITE.cases], [device.name for device in SUITE.devices]):
        assert len(set(names)) == len(names)
        assert not [name for name in names if "," in name or " " in name]


def test_every_pattern_and_order_is_there() -> None:
    assert {case.pattern.kind for case in SUITE.cases} == set(KINDS)
    assert {case.pattern.order for case in SUITE.cases} == set(ORDERS)


def test_no_case_is_there_twice() -> None:
    assert len({(case.pattern, case.count, case.passes, case.then) for case in SUITE.cases}) == len(SUITE.cases)


def test_what_is_judged_only() -> None:
    assert {case.name for case in SUITE.cases if case.judged_only} == {
        "random-50%", "random-passes", "dense-third", "zipf-long", "stride-5", "stride-17", "stride-63", "stride-1025",
        "drift-40", "streams-4", "objects-12", "objects-3-backward", "objects-96-shuffled", "scan-random-long",
    }  # fmt: skip


def test_windows_are_those_that_devices_may_have() -> None:
    assert [window << 10 for window in SUITE.windows_kb] == [PAGE_BYTES << doubled for doubled in range(12)]
    assert set(SUITE.read_ahead_kb) <= set(SUITE.windows_kb)


def test_memory_holds_two_of_the_largest_windows() -> None:
    least = min(memory_pages(SUITE.file_pages, times) for times in SUITE.times_memory)
    assert least * PAGE_BYTES >= 2 * max(SUITE.windows_kb) << 10
