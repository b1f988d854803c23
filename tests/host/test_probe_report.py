# SPDX-License-Identifier: GPL-2.0-only
import json
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost.probe import DEEPEST, SIZES, Probe
from foliohost.processes import PAGE_BYTES
from foliohost.report.probe import print_probe, to_json
from tests.host.printed import printed
from tests.host.probed import probed

PATH = Path("/srv/data")
KB = PAGE_BYTES // 1024


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    """One of a device with a window of 128 KiB."""
    (tmp_path / "read_ahead_kb").write_text("128\n")
    usual = probed()
    return replace(usual, device=replace(usual.device, attribute=tmp_path / "read_ahead_kb"))


def test_figures_in_words_come_before_the_table(probe: Probe) -> None:
    lines = printed(lambda console: print_probe(console, PATH, probe), 100)
    assert lines[:5] == [
        "/srv/data: on sda (not rotating), window 128 KiB",
        "5.0 s: 20,000 reads, 1,000.0 MiB, at random places of 1.0 GiB.",
        f"A request costs 50 (50 to 50) us and each page of {KB} KiB 8.0 (8.0 to 8.0) us: as much as "
        f"reading {50 / 8 * KB:.0f} ({50 / 8 * KB:.0f} to {50 / 8 * KB:.0f}) KiB.",
        f"With 16 in flight it costs 20 (20 to 20) us and each page of {KB} KiB 2.0 (2.0 to 2.0) us: as much as "
        f"reading {10 * KB} ({10 * KB} to {10 * KB}) KiB.",
        f"request_kb: {50 / 8 * KB:.0f}",
    ]
    row = next(line for line in lines[6:] if line.split()[:1] == [str(KB)]).split()
    assert row == [str(KB), "58", "67" if KB == 4 else row[2], "17,241", *["45,455"] * 4]
    assert len(lines) == 6 + 3 + len(SIZES)


def test_several_files_are_counted_and_doubts_stand_at_the_end(probe: Probe) -> None:
    doubtful = replace(probe, files=[PATH, PATH], again_us=6.0)
    lines = printed(lambda console: print_probe(console, PATH, doubtful), 300)
    assert "at random places of 1.0 GiB of 2 files." in lines[1]
    assert lines[-1].startswith("Reading the same places again took 6 us instead of 60 us")


def test_json(probe: Probe) -> None:
    found = json.loads(json.dumps(to_json(PATH, probe)))
    assert (found["path"], found["device"], found["rotational"], found["window_kb"]) == ("/srv/data", "sda", False, 128)
    assert (found["request_us"], found["page_us"]) == (50, 8)
    assert (found["request_us_range"], found["page_us_range"]) == ([50, 50], [8, 8])
    assert found["request_kb"] == probe.cost.recommended_kb
    assert found["request_kb_range"] == [50 / 8 * KB] * 2
    assert (found["certain"], found["warnings"]) == (True, [])
    assert (found["deep"]["depth"], found["deep"]["request_us"], found["deep"]["request_kb"]) == (DEEPEST, 20, 10 * KB)
    assert {(each["depth"], each["size_kb"], each["us"]) for each in found["times"]} >= {(1, KB, 58), (16, KB, 22)}


def test_json_has_the_doubts(probe: Probe) -> None:
    (told,) = to_json(PATH, replace(probe, others_writes=5000))["warnings"]
    assert told.startswith("The disk was busy")
