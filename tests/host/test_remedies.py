# SPDX-License-Identifier: GPL-2.0-only
import shlex
from dataclasses import replace

import pytest

from foliohost.observation import FileSeen
from foliohost.remedies import KERNEL, MODULE, Remedy, remedies
from foliohost.verdict import DiagnosisKind, judge
from foliolab.cli.main import command_line
from tests.host.seen import PAGE, file_seen, look_ups, observation


def found(**changes: object) -> list[Remedy]:
    """The remedies for look-ups in a file that differs so."""
    seen = look_ups()
    file: FileSeen = replace(seen.files[0], **changes)  # type: ignore[arg-type]
    verdict = judge(replace(seen, files=(file,)))
    return remedies(verdict, verdict.files[0], PAGE, True)


def test_each_has_its_command_and_its_figure() -> None:
    open_file, device, engine, kernel, module = found(engine="LMDB")
    assert open_file.command == "sudo foliolab-host cure apply --pid 7 --file /srv/data.mdb --read-ahead-kb 16"
    assert (open_file.reads_bytes, open_file.formula) == (1000 * 16384, "1,000 places x 16 KiB")
    assert device.command == "sudo foliolab-host cure apply --device-of /srv/data.mdb --read-ahead-kb 16"
    assert (engine.name, engine.reads_bytes) == ("LMDB's own switch", 1000 * PAGE)
    assert engine.formula == "1,000 places x 4 KiB"
    assert "MDB_NORDAHEAD" in engine.command
    assert (kernel.command, module.command) == (KERNEL, MODULE)
    # Without a hint, look-ups read with our window what they read with the hint.
    assert {(ours.reads_bytes, ours.formula) for ours in (kernel, module)} == {(engine.reads_bytes, engine.formula)}


def test_what_ours_gives_is_not_known_with_a_hint_or_where_pages_hide() -> None:
    pages = 32000
    dense = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages)
    verdict = judge(observation(dense, read_bytes=pages * PAGE, major_faults=1000, minor_faults=1000))
    assert verdict.kind is DiagnosisKind.UNCERTAIN
    for ours in (remedies(verdict, verdict.files[0], PAGE, True)[-2:], found(hint="random")[-2:]):
        assert [remedy.reads_bytes for remedy in ours] == [None, None]
        assert all("not known" in remedy.caveat for remedy in ours)


def test_what_ours_gives_is_not_known_where_the_file_fits_into_memory() -> None:
    """The window that adapts fills such a file, which the hint does not."""
    size = look_ups().files[0].size_bytes
    for part, known in ((0.5, True), (0.95, False)):
        *_, engine, kernel, module = found(engine="LMDB", resident_bytes=int(part * size))
        assert engine.reads_bytes == 1000 * PAGE
        for ours in (kernel, module):
            assert (ours.reads_bytes is not None) == known
            assert ("not known: the file fits into memory" in ours.caveat) != known


@pytest.mark.parametrize("command", [KERNEL, MODULE])
def test_the_lab_has_the_commands_that_install_ours(command: str) -> None:
    lab, *words = shlex.split(command.partition(" && ")[0])
    assert lab == "./lab"
    assert callable(command_line().parse_args(words).handler)


def test_places_are_the_waits_for_this_file_where_they_are_known() -> None:
    assert found(places=500, mapped_pages=600)[0].formula == "1,000 places x 16 KiB"
    assert found(places=500, mapped_pages=600, major_faults=700)[0].formula == "700 places x 16 KiB"


def test_a_closed_descriptor_and_a_program_that_has_ended() -> None:
    closed = found(open_in=())[0]
    assert (closed.command, closed.reads_bytes) == ("", None)
    assert "not possible" in closed.caveat
    ended = found(open_in=(), alive=False)[0]
    assert "--pid PID " in ended.command


def test_the_module_has_no_figure_on_a_kernel_that_it_was_not_tried_on() -> None:
    verdict = judge(look_ups())
    kernel, module = remedies(verdict, verdict.files[0], PAGE, False)[-2:]
    assert kernel.reads_bytes == 1000 * PAGE
    assert (module.command, module.reads_bytes, module.formula) == (MODULE, None, "")
    assert module.caveat.startswith("not tried on this kernel")


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
    verdict = judge(replace(seen, files=(*seen.files, other)))
    fewer = remedies(verdict, verdict.files[1], PAGE, True)
    assert [remedy.reads_bytes for remedy in fewer] == [verdict.files[1].read_bytes] * 5


def test_nothing_for_what_is_well() -> None:
    seen = observation(file_seen(mapped_pages=5, cached_pages=5), read_bytes=5 * PAGE)
    verdict = judge(seen)
    assert verdict.kind is DiagnosisKind.NOTHING_WRONG
    assert remedies(verdict, verdict.files[0], PAGE, True) == []
    assert found(text=True) == []


def test_the_hint_is_what_is_wrong() -> None:
    pages = 60000
    data = file_seen(hint="random", engine="Lucene", mapped_pages=pages, places=pages // 16, cached_pages=pages)
    verdict = judge(observation(data, read_bytes=pages * PAGE, major_faults=pages))
    (remedy,) = remedies(verdict, verdict.files[0], PAGE, True)
    assert remedy.name == "Lucene without the hint"
    assert remedy.command.endswith("defaultReadAdvice=NORMAL")


def test_a_scan_that_reads_single_pages_wants_a_hint() -> None:
    pages = 60000
    data = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages, fresh_pages=pages)
    other = file_seen(path="/srv/other", mapped_pages=20, places=10, cached_pages=10)
    verdict = judge(observation(data, other, read_bytes=pages * PAGE, major_faults=pages))
    assert [remedy.command for remedy in remedies(verdict, verdict.files[0], PAGE, True)] == [
        "madvise(address, length, MADV_SEQUENTIAL)"
    ]
    assert remedies(verdict, verdict.files[1], PAGE, True) == []
