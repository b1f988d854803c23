# SPDX-License-Identifier: GPL-2.0-only
import shlex
from dataclasses import replace

import pytest

from foliohost.circumstances import Circumstances
from foliohost.estimates import DiskCost
from foliohost.observation import FileSeen, Observation
from foliohost.remedies import KERNEL, KERNEL_PACKAGES, MODULE, MODULE_PACKAGE, Forecast, Remedy, remedies, summary
from foliohost.runs import RunDirection, RunShare, RunsSeen
from foliohost.verdict import DiagnosisKind, judge
from foliolab.cli.main import command_line
from tests.host.seen import PAGE, file_seen, look_ups, observation


def found(around: Circumstances = Circumstances(), **changes: object) -> list[Remedy]:  # noqa: B008 nothing changes it
    """The remedies for look-ups in a file that differs so."""
    seen = look_ups()
    file: FileSeen = replace(seen.files[0], **changes)  # type: ignore[arg-type]
    return told(replace(seen, files=(file,), module_tried=True), around=around)


def told(seen: Observation, at: int = 0, around: Circumstances = Circumstances()) -> list[Remedy]:  # noqa: B008
    verdict = judge(seen)
    return remedies(seen, verdict, verdict.files[at], around)


def test_each_has_its_command_and_its_figure() -> None:
    open_file, device, engine, kernel, module = found(engine="LMDB")
    assert open_file.command == "sudo foliolab-host cure apply --file /srv/data.mdb --read-ahead-kb 16"
    assert open_file.figures == Forecast(1000 * 16384, 1000, None, "1,000 reads of 16 KiB")
    assert device.command == "sudo foliolab-host cure apply --device-of /srv/data.mdb --read-ahead-kb 16"
    assert engine.name == "LMDB's own switch"
    assert engine.figures == Forecast(1000 * PAGE, 1000, None, "1,000 reads of 4 KiB")
    assert "MDB_NORDAHEAD" in engine.command
    assert (kernel.command, module.command) == (KERNEL, MODULE)
    # Without a hint, look-ups read with our window what they read with the hint.
    assert kernel.figures == module.figures == engine.figures


def test_what_ours_gives_is_not_known_with_a_hint_or_where_pages_hide() -> None:
    pages = 32000
    dense = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages)
    seen = observation(dense, read_bytes=pages * PAGE, major_faults=1000, minor_faults=1000)
    assert judge(seen).kind is DiagnosisKind.UNCERTAIN
    for ours in (told(seen)[-2:], found(hint="random")[-2:]):
        assert [remedy.figures for remedy in ours] == [Forecast(), Forecast()]
    assert "not known" in told(seen)[-2].caveat


def test_what_neighbours_hide_is_told_as_bounds() -> None:
    """Of runs that began at multiples of four pages and never left their block."""
    began = tuple(250 if distance % 4 == 3 else 0 for distance in range(16))
    way = RunDirection(began, (0,) * 16, RunShare(0, 1000), RunShare(), RunShare())
    runs = RunsSeen(way, replace(way, began=began[::-1]), 1000, 1000)
    small, _, hint, *_ = found(runs=runs)
    assert (small.figures.reads_bytes, small.figures.waits, small.figures.seconds) == (None, 1000, None)
    assert (hint.figures.reads_bytes, hint.figures.waits, hint.figures.seconds) == (None, None, None)
    assert hint.figures.bounds
    least, most = hint.figures.bounds
    assert least == 1000 * PAGE
    assert most == pytest.approx(4000 * PAGE, rel=0.05)
    words = summary(hint, Forecast(32000 * PAGE, 1000), 10.0)
    hidden = "neighbours hide whether pages are touched alone"
    assert words == f"3.9 MiB to 15.9 MiB instead of 125.0 MiB ({hidden}); scans get slower"
    assert ", 1,000 instead of 1,000 waits (neigh" in summary(small, Forecast(32000 * PAGE, 1000), 10.0)


def test_a_file_that_is_cached_as_a_whole_has_no_remedies() -> None:
    size = look_ups().files[0].size_bytes
    assert found(resident_bytes=size // 2)
    assert found(resident_bytes=int(0.95 * size)) == []
    # Unless what is read leaves memory again.
    assert found(resident_bytes=int(0.95 * size), evicted_pages=30000)


def test_one_cure_is_for_all_processes_that_have_the_file_open() -> None:
    cures = [remedy for remedy in found(open_in=(7, 8, 9), processes=(7, 8, 9)) if "--file" in remedy.command]
    assert [remedy.command for remedy in cures] == [
        "sudo foliolab-host cure apply --file /srv/data.mdb --read-ahead-kb 16"
    ]
    assert cures[0].caveat == "for the 3 processes that have it open, until they close it"


def test_seconds_are_known_where_the_disk_was_probed() -> None:
    window, *_, hint, _, _ = found(Circumstances(costs={"sda": DiskCost(1000, 50)}))
    assert window.figures.seconds == pytest.approx(1000 * 1e-3 + 4000 * 50e-6)
    assert hint.figures.seconds == pytest.approx(1000 * 1e-3 + 1000 * 50e-6)
    assert found(Circumstances(costs={"sda": "Too small."}))[0].figures.seconds is None


def test_a_remedy_that_takes_longer_says_so() -> None:
    remedy = found()[0]
    for seconds, longer in ((0.5, False), (1.05, False), (2.0, True)):
        then = replace(remedy, figures=replace(remedy.figures, seconds=seconds))
        assert ("it takes longer than now" in summary(then, Forecast(1 << 20, 10, 1.0), 10.0)) == longer
    assert "longer" not in summary(remedy, Forecast(1 << 20, 10), 10.0)


def test_a_cured_window_is_the_present_one() -> None:
    cured = found(Circumstances(cured_kb={"/srv/data.mdb": 16}))
    assert not any("cure apply" in remedy.command for remedy in cured)


def test_a_cure_that_cuts_hints_says_so() -> None:
    words = "; each call of MADV_WILLNEED or readahead() then reads 16 KiB at most, without a word"
    for most_kb, warns in ((0, True), (1280, False)):
        cures = found(Circumstances(hints_kb={"sda": most_kb}))[:2]
        assert [remedy.caveat.endswith(words) for remedy in cures] == [warns, warns]


@pytest.mark.parametrize("command", [KERNEL_PACKAGES, MODULE_PACKAGE])
def test_the_lab_has_the_commands_that_make_ours(command: str) -> None:
    assert sum(command in remedy.caveat for remedy in found()) == 1
    lab, *words = shlex.split(command)
    assert lab == "./lab"
    assert callable(command_line().parse_args(words).handler)


def test_no_fewer_waits_than_there_are_now() -> None:
    assert found(places=500, mapped_pages=600)[0].figures.waits == 1000
    assert found(places=500, mapped_pages=600, major_faults=700)[0].figures.waits == 700


def test_a_closed_descriptor_and_a_program_that_has_ended() -> None:
    closed = found(open_in=())[0]
    assert (closed.command, closed.figures) == ("", Forecast())
    assert "not possible" in closed.caveat
    ended = found(open_in=(), alive=False)[0]
    assert "cure apply --file /srv/data.mdb " in ended.command
    assert "while the program runs" in ended.caveat


def test_the_module_has_no_figure_on_a_kernel_that_it_was_not_tried_on() -> None:
    kernel, module = told(look_ups())[-2:]
    assert kernel.figures.reads_bytes == 1000 * PAGE
    assert (module.command, module.figures) == (MODULE, Forecast())
    assert module.caveat.startswith("not tried on this kernel")


def test_what_adapts_already_is_not_offered_again() -> None:
    """On a machine where the module is limited to other files, say."""
    seen = look_ups()
    verdict = judge(seen)
    *_, ours = remedies(
        replace(seen, switches={"/module": True}, module_tried=True), verdict, verdict.files[0], Circumstances()
    )
    assert (ours.command, ours.figures) == ("", Forecast())
    assert "on here" in ours.name


def test_what_is_there_and_off_is_switched_on_and_not_installed_again() -> None:
    seen = replace(look_ups(), switches={"/sys/module/m/parameters/adaptive": False}, module_tried=True)
    verdict = judge(seen)
    *others, ours = remedies(seen, verdict, verdict.files[0], Circumstances())
    assert ours.command == "echo 1 | sudo tee /sys/module/m/parameters/adaptive"
    kernel, _ = found()[-2:]
    assert ours.figures == kernel.figures
    *_, untried = remedies(replace(seen, module_tried=False), verdict, verdict.files[0], Circumstances())
    assert untried.figures == Forecast(), "where the module was not tried, it may have switched itself off"
    assert not any("our module" in other.name for other in others)


def test_names_are_quoted_for_the_shell() -> None:
    assert "--file '/srv/my db' " in found(path="/srv/my db")[0].command


def test_a_window_that_is_small_already() -> None:
    assert [remedy.name for remedy in found(window_kb=16)] == [
        "a hint of the program's own",
        "our kernel, whose window adapts",
        "our module, whose window adapts",
    ]


def test_no_more_than_is_read_now() -> None:
    """Of a file that was hardly read, beside one that all the program's waits were for."""
    seen = look_ups()
    other = file_seen(path="/srv/other", mapped_pages=20, places=10, cached_pages=500)
    both = replace(seen, files=(*seen.files, other), module_tried=True)
    read = judge(both).files[1].read_bytes
    assert read
    assert all(
        remedy.figures.reads_bytes is not None and remedy.figures.reads_bytes <= read for remedy in told(both, 1)
    )


def test_nothing_for_what_is_well() -> None:
    seen = observation(file_seen(mapped_pages=5, cached_pages=5), read_bytes=5 * PAGE)
    assert judge(seen).kind is DiagnosisKind.NOTHING_WRONG
    assert told(seen) == []
    assert found(text=True) == []


def test_the_hint_is_what_is_wrong() -> None:
    pages = 60000
    data = file_seen(hint="random", engine="Lucene", mapped_pages=pages, places=pages // 16, cached_pages=pages)
    seen = observation(data, read_bytes=pages * PAGE, major_faults=pages)
    (remedy,) = told(seen)
    # As many waits as there are windows, at most.
    assert (remedy.figures.reads_bytes, remedy.figures.waits) == (pages * PAGE, pages // 32)
    assert remedy.name == "Lucene without the hint"
    (remedy,) = told(seen, around=Circumstances(costs={"sda": DiskCost(1000, 10)}))
    assert remedy.figures.seconds == 0.001, "what is read ahead comes while the program works"
    assert remedy.command.endswith("defaultReadAdvice=NORMAL")


def test_a_scan_that_reads_single_pages_wants_a_hint() -> None:
    pages = 60000
    data = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages, fresh_pages=pages)
    other = file_seen(path="/srv/other", mapped_pages=20, places=10, cached_pages=10)
    seen = observation(data, other, read_bytes=pages * PAGE, major_faults=pages)
    assert [remedy.command for remedy in told(seen)] == ["madvise(address, length, MADV_SEQUENTIAL)"]
    assert told(seen, 1) == []
