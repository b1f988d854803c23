# SPDX-License-Identifier: GPL-2.0-only
from typing import Any

import pytest

from foliohost.doubts import doubts
from foliohost.probe import SIZES
from tests.host.probed import probed


def test_nothing_is_doubtful() -> None:
    assert doubts(probed()) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"again_us": 30.0}, "Reading the same places again took 30 us instead of 60 us: the host or the drive caches"),
        ({"data_bytes": 512 << 20}, "Of 1,024 MiB, 512 MiB were passed over: holes, extents that are not written"),
        ({"reached_bytes": 100 << 20}, "Only 10% of what was read came from a disk"),
        ({"others_read_bytes": 60 << 20}, "The disk was busy: others read 60 MiB of it and wrote 0 times."),
        ({"others_writes": 2000}, "The disk was busy: others read 0 MiB of it and wrote 2,000 times."),
        ({"waited_seconds": 1.0}, "The processors were busy: for 20% of the time, the reads had to wait for one."),
        ({"deepest_processor_seconds": 0.95}, "With 16 reads in flight, the probe itself took 95% of a processor"),
    ],
)
def test_one_sentence_each(facts: dict[str, Any], words: str) -> None:
    (told,) = doubts(probed(**facts))
    assert words in told
    assert told.endswith(".")


def test_the_second_read_may_be_somewhat_faster() -> None:
    assert doubts(probed(again_us=45.0)) == []


def test_file_systems_of_the_network_do_not_count_bytes() -> None:
    assert doubts(probed(reached_bytes=None)) == []
    assert doubts(probed(rotational=None, reached_bytes=0)) == []


def test_halves_that_disagree() -> None:
    slow = {pages: [50.0 + 8 * pages] * 4 + [100.0 + 8 * pages] * 4 for pages in SIZES}
    (told,) = doubts(probed(times=slow))
    assert told.startswith(
        "The result is uncertain: the halves of the run disagree by 100%, so request_kb is the upper"
    )


def test_halves_that_disagree_with_many_in_flight() -> None:
    (told,) = doubts(probed(deep=[30.0, 30.0, 60.0, 60.0]))
    assert told.startswith("With 16 reads in flight the result is uncertain: the halves of the run disagree by ")


def test_a_page_that_is_lost_in_the_noise_of_one_half_is_no_share_of_many_digits() -> None:
    lost = {pages: [50.0 + 8 * pages] * 4 + [50.0] * 4 for pages in SIZES}
    assert "the halves of the run disagree more than tenfold, so" in doubts(probed(times=lost))[0]
