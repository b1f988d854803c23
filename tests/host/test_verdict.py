# SPDX-License-Identifier: GPL-2.0-only
import re
from dataclasses import replace

import pytest

from foliohost.processes import Counters
from foliohost.sizes import size
from foliohost.verdict import DiagnosisKind, judge
from tests.host.seen import MIB, PAGE, file_seen, look_ups, observation


def test_look_ups_that_read_windows() -> None:
    verdict = judge(look_ups())
    assert verdict.kind is DiagnosisKind.READS_TOO_MUCH
    assert verdict.read_bytes == 1000 * 32 * PAGE
    assert verdict.least == pytest.approx(32000 / 1100)
    assert verdict.most == 32
    assert verdict.sentence.startswith("Too much is read: 29 to 32 bytes of mapped files for each byte used")
    (file,) = verdict.files
    assert (file.read_bytes, file.method, file.used_most) == (32000 * PAGE, "newly cached", 1100 * PAGE)


def test_idle() -> None:
    verdict = judge(observation(read_bytes=12 << 10, major_faults=3))
    assert (verdict.kind, verdict.sentence) == (
        DiagnosisKind.NOTHING_WRONG,
        "Nothing wrong: 12 KiB were read in 10.0 s.",
    )
    assert (verdict.least, verdict.most) == (1, 1)
    assert judge(observation()).sentence == "Nothing wrong: nothing was read in 10.0 s."
    # Of a program that may read badly, but has hardly begun.
    assert judge(observation(read_bytes=3 * MIB, major_faults=24)).sentence == (
        "Nothing wrong so far: 3.0 MiB were read in 10.0 s, too little to judge by; --seconds N looks longer."
    )


def test_what_others_read_of_a_file_is_not_of_the_processes() -> None:
    verdict = judge(observation(file_seen(cached_pages=100)))
    assert (verdict.kind, verdict.files) == (DiagnosisKind.NOTHING_WRONG, ())
    assert [file.read_bytes for file in judge(observation(file_seen(mapped_pages=1, cached_pages=100))).files] == [0]
    # But what the processes read is, also if they have not mapped it by the end.
    read = judge(observation(file_seen(cached_pages=3000), read_bytes=3000 * PAGE, major_faults=100)).files
    assert [file.read_bytes for file in read] == [3000 * PAGE]


def test_a_scan() -> None:
    """Read ahead of the program, which waits for nothing, and maps 16 pages with each fault."""
    pages = 64 * 256
    data = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages + 64)
    counted = Counters(read_bytes=(pages + 64) * PAGE, major_faults=16, minor_faults=pages // 16)
    verdict = judge(replace(observation(data), counted=counted))
    assert verdict.kind is DiagnosisKind.NOTHING_WRONG
    assert "ahead of streams" in verdict.sentence
    verdict = judge(replace(observation(data), counted=replace(counted, major_faults=1)))
    assert verdict.sentence == "Nothing wrong: for 64.2 MiB of mapped files, the program had to wait 1 times."


def test_what_read_calls_bring_in_is_not_of_mapped_files() -> None:
    data = file_seen(mapped_pages=20, places=20, cached_pages=40)
    counted = Counters(read_bytes=700 * MIB, called_bytes=700 * MIB, major_faults=20)
    verdict = judge(replace(observation(data), counted=counted))
    assert (verdict.kind, verdict.read_bytes) == (DiagnosisKind.NOTHING_WRONG, 40 * PAGE)
    assert "Nothing wrong with mapped data" in verdict.sentence


def test_calls_that_return_a_part_of_each_page_read_nothing_of_mapped_files() -> None:
    """A program that maps no data and calls pread() for half a page each time."""
    verdict = judge(observation(read_bytes=8 * MIB, called_bytes=4 * MIB, minor_faults=3))
    assert verdict.sentence == "Nothing wrong with mapped data: of 8.0 MiB that were read, 0 KiB were for it."
    # Who waited for a page had mapped something, if only between two looks.
    assert judge(observation(read_bytes=8 * MIB, called_bytes=4 * MIB, major_faults=3)).read_bytes == 4 * MIB


def test_calls_of_a_server_do_not_hide_what_its_faults_read() -> None:
    """They may be on sockets: waits explain all reads, and pages came and went between two looks."""
    data = file_seen(size_bytes=256 * MIB, window_kb=128, mapped_pages=4000, places=4000, cached_pages=20000)
    for calls in (8000, 240_000):
        seen = observation(data, read_bytes=1000 * MIB, called_bytes=10 * MIB, major_faults=8000, calls=calls)
        verdict = judge(seen)
        assert (verdict.kind, verdict.read_bytes) == (DiagnosisKind.READS_TOO_MUCH, 990 * MIB)


def test_small_calls_are_not_charged_to_a_file_whose_cache_is_seen() -> None:
    """An index of 8 MiB that is mapped, and 16,000 records of 100 bytes that are read by pread()."""
    index = file_seen(size_bytes=8 * MIB, mapped_pages=600, places=40, cached_pages=1280)
    seen = observation(index, read_bytes=64 * MIB, called_bytes=1600000, calls=16000, major_faults=40)
    verdict = judge(seen)
    assert (verdict.kind, verdict.read_bytes) == (DiagnosisKind.NOTHING_WRONG, 5 * MIB)
    assert verdict.sentence == "Nothing wrong with mapped data: of 64.0 MiB that were read, 5.0 MiB were for it."
    # Of another user's file only the rest tells what was read.
    hidden = judge(replace(seen, files=(replace(index, cached_pages=None),)))
    assert hidden.kind is DiagnosisKind.READS_TOO_MUCH
    assert hidden.read_bytes == 64 * MIB - 1600000


def test_program_text_is_not_judged() -> None:
    text = file_seen(path="/usr/bin/x", text=True, mapped_pages=1000, places=900, cached_pages=30000)
    verdict = judge(observation(text, read_bytes=30000 * PAGE, major_faults=900))
    assert (verdict.kind, verdict.read_bytes) == (DiagnosisKind.NOTHING_WRONG, 0)


def test_mapping_around_can_hide_what_was_touched() -> None:
    """A file that fits, read at random until all of it is there: each fault mapped 16 pages."""
    pages = 32000
    data = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages)
    verdict = judge(observation(data, read_bytes=pages * PAGE, major_faults=1000, minor_faults=1000))
    assert verdict.kind is DiagnosisKind.UNCERTAIN
    assert "1.0 to 16 bytes" in verdict.sentence


def test_a_file_that_fits_is_not_to_be_cured() -> None:
    """It is cached as a whole after few waits, and with a small window there are eight times as many at most."""
    size_bytes, waits = 24 * MIB, 183
    data = file_seen(
        size_bytes=size_bytes,
        resident_bytes=int(0.98 * size_bytes),
        mapped_pages=6000,
        places=380,
        crowds=((380, 3.9),),
        cached_pages=waits * 32,
    )
    seen = observation(data, read_bytes=waits * 32 * PAGE, major_faults=waits)
    verdict = judge(seen)
    assert verdict.kind is DiagnosisKind.FITS
    words = "Nothing to cure: /srv/data.mdb is 98% cached by now, so these reads end by themselves. A window of 16 KiB"
    found = re.fullmatch(r"(.*) would wait about ([\d,]+) times instead of (\d+)\.", verdict.sentence)
    assert found
    assert (found[1], int(found[3])) == (words, waits)
    assert 5 * waits < int(found[2].replace(",", "")) <= 8.4 * waits
    # Not if pages leave memory again, or if the program reads another file as badly.
    evicting = replace(data, evicted_pages=waits * 16)
    assert judge(replace(seen, files=(evicting,))).kind is not DiagnosisKind.FITS
    both = replace(look_ups(), files=(data, look_ups().files[0]))
    assert judge(replace(both, counted=Counters(38000 * PAGE, 0, 1183))).kind is DiagnosisKind.READS_TOO_MUCH


def test_a_scan_with_the_random_hint() -> None:
    pages = 60000
    data = file_seen(hint="random", mapped_pages=pages, places=pages // 16, cached_pages=pages)
    seen = observation(data, read_bytes=pages * PAGE, major_faults=pages)
    assert judge(seen).kind is DiagnosisKind.READS_TOO_LITTLE
    scattered = replace(data, mapped_pages=6000, places=5500, cached_pages=6000)
    assert judge(observation(scattered, read_bytes=6000 * PAGE, major_faults=6000)).kind is DiagnosisKind.NOTHING_WRONG
    # Eight pages for each wait are not little.
    much = judge(observation(data, read_bytes=pages * PAGE, major_faults=pages // 8))
    assert much.kind is not DiagnosisKind.READS_TOO_LITTLE


def test_a_scan_that_reads_single_pages_without_a_hint() -> None:
    pages = 60000
    data = file_seen(mapped_pages=pages, places=pages // 16, cached_pages=pages, fresh_pages=pages)
    verdict = judge(observation(data, read_bytes=pages * PAGE, major_faults=pages))
    assert verdict.kind is DiagnosisKind.READS_TOO_LITTLE
    assert "a page for each miss, without a hint, and 60,000 waits" in verdict.sentence
    # Pages that are missing between others may be read by any window.
    holes = replace(data, fresh_pages=0)
    assert judge(observation(holes, read_bytes=pages * PAGE, major_faults=pages)).kind is DiagnosisKind.NOTHING_WRONG


def test_faults_after_the_last_look_count_as_used() -> None:
    data = file_seen(mapped_pages=100, places=100, cached_pages=None)
    counted = Counters(read_bytes=32000 * PAGE, major_faults=1000, minor_faults=2000)
    seen = replace(observation(data), counted=counted, unseen=Counters(0, 0, 900, 2000))
    verdict = judge(seen)
    assert verdict.used_most == (100 + 900 + 2000 * 16) * PAGE
    assert (verdict.places, verdict.kind) == (1000, DiagnosisKind.UNCERTAIN)


def test_shares_where_the_cache_may_not_be_seen() -> None:
    one = file_seen(path="/a", mapped_pages=300, places=300, cached_pages=None)
    two = file_seen(path="/b", mapped_pages=100, places=100, cached_pages=None)
    same = file_seen(path="/c", mapped_pages=100, places=100, cached_pages=0)
    verdict = judge(observation(one, two, same, read_bytes=400 * 32 * PAGE, major_faults=400))
    found = [(file.seen.path, file.read_bytes, file.method) for file in verdict.files]
    assert found == [
        ("/a", 300 * 32 * PAGE, "share of places"),
        ("/b", 100 * 32 * PAGE, "share of places"),
        ("/c", 0, "share of places"),
    ]


def test_a_file_that_was_met_when_all_of_it_had_been_read() -> None:
    late = file_seen(mapped_pages=150, places=150, cached_pages=0, read_before=240 * MIB)
    early = file_seen(path="/b", mapped_pages=900, places=800, cached_pages=0, read_before=MIB)
    verdict = judge(observation(late, early, read_bytes=250 * MIB, major_faults=150))
    assert [file.read_bytes for file in verdict.files] == [240 * MIB, MIB]


def test_no_text_has_a_share_larger_than_itself() -> None:
    """Of the C library an ordinary user may not know whether it was cached before."""
    data = file_seen(mapped_pages=150, places=150, cached_pages=4000)
    text = file_seen(path="/lib/c.so", text=True, size_bytes=MIB, mapped_pages=900, places=450, cached_pages=None)
    verdict = judge(observation(data, text, read_bytes=31 * MIB, major_faults=150))
    assert [file.read_bytes for file in verdict.files] == [30 * MIB, MIB]
    assert (verdict.kind, verdict.read_bytes) == (DiagnosisKind.READS_TOO_MUCH, 30 * MIB)


def test_no_small_file_has_a_share_larger_than_itself() -> None:
    data = file_seen(mapped_pages=150, places=150, cached_pages=None)
    small = file_seen(path="/lib/locale", size_bytes=360 << 10, mapped_pages=30, places=6, cached_pages=None)
    verdict = judge(observation(data, small, read_bytes=100 * MIB, major_faults=150))
    assert [file.read_bytes for file in verdict.files] == [100 * MIB - (360 << 10), 360 << 10]


def test_what_others_read_or_wrote_is_not_charged() -> None:
    data = file_seen(mapped_pages=1000, places=1000, cached_pages=64000)
    verdict = judge(observation(data, read_bytes=32000 * PAGE, major_faults=1000))
    assert verdict.files[0].read_bytes == verdict.read_bytes == 32000 * PAGE


def test_what_tracepoints_tell_is_taken_as_it_is() -> None:
    seen = look_ups()
    followed = replace(seen.files[0], fault_pages=31000, major_faults=970)
    verdict = judge(replace(seen, files=(followed,)))
    (file,) = verdict.files
    assert (file.read_bytes, file.method, verdict.read_bytes) == (31000 * PAGE, "tracepoints", 31000 * PAGE)
    # What is left is of the files that no event was about.
    one = file_seen(path="/a", mapped_pages=300, places=300, cached_pages=None)
    two = replace(one, path="/b", mapped_pages=100, places=100)
    found = judge(replace(seen, files=(followed, one, two))).files
    assert [(file.read_bytes, file.method) for file in found[1:]] == [
        (750 * PAGE, "share of places"),
        (250 * PAGE, "share of places"),
    ]
    # Calls may have read all the rest.
    alone = judge(replace(seen, files=(replace(followed, fault_pages=0, major_faults=0),)))
    assert (alone.kind, alone.read_bytes) == (DiagnosisKind.NOTHING_WRONG, 0)


def test_nobody_says_more_was_read_than_was() -> None:
    for called in (0, 5 * MIB, 500 * MIB):
        seen = look_ups()
        verdict = judge(replace(seen, counted=replace(seen.counted, called_bytes=called)))
        assert verdict.read_bytes <= seen.counted.read_bytes
        assert verdict.used_least <= verdict.used_most


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 KiB"), (5000, "5 KiB"), (3 * MIB, "3.0 MiB"), (1 << 31, "2.0 GiB")]
)
def test_sizes(number: int, words: str) -> None:
    assert size(number) == words
