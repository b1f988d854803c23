# SPDX-License-Identifier: GPL-2.0-only
import json
from dataclasses import replace

import pytest

from foliohost.circumstances import Circumstances
from foliohost.estimates import DiskCost
from foliohost.folios import TextFolios
from foliohost.groups import ControlGroup
from foliohost.observation import Observation
from foliohost.processes import Counters
from foliohost.report.diagnosis import print_diagnosis, print_file, to_json
from foliohost.verdict import judge
from tests.host.printed import printed
from tests.host.seen import MIB, PAGE, file_seen, look_ups, observation

NOTHING_ELSE = Circumstances()
HIDDEN = "Only root sees in which folios memory is."


def terminal(seen: Observation, folios: TextFolios | str = HIDDEN, around: Circumstances = NOTHING_ELSE) -> list[str]:
    return printed(lambda console: print_diagnosis(console, seen, judge(seen), folios, around), 100)


def test_the_verdict_comes_first_and_commands_are_whole() -> None:
    seen = look_ups()
    path = "/srv/" + "long/" * 30 + "data.mdb"
    lines = terminal(replace(seen, files=(replace(seen.files[0], path=path, engine="LMDB"),)))
    assert lines[0].startswith("Too much is read: ")
    assert lines[1] == "10.0 s: 125.0 MiB read, 1,000 major faults (128 KiB each); the whole machine 0 KiB, 0."
    assert f"      sudo foliolab-host cure apply --file {path} --read-ahead-kb 16" in lines
    words = " ".join(lines)
    assert "about 15.6 MiB instead of 125.0 MiB, 1,000 instead of 1,000 waits: 1.6 MiB a second" in words
    assert "(1,000 reads of 16 KiB)" in words


def test_nothing_wrong_is_short() -> None:
    text = file_seen(path="/bin/x", text=True, rss_bytes=4 * MIB, pmd_mapped_bytes=2 * MIB)
    assert terminal(observation(text, read_bytes=4096)) == [
        "Nothing wrong: 4 KiB were read in 10.0 s.",
        "10.0 s: 4 KiB read, 0 major faults; the whole machine 0 KiB, 0.",
        "Program text: 4.0 MiB mapped, 2.0 MiB of it by PMDs. Its folio sizes are not known: only root sees in which"
        " folios memory is.",
    ]


def test_program_text_has_a_line_only_if_much_was_read_of_it() -> None:
    for pages, told in ((100, False), (2000, True)):
        text = file_seen(path="/bin/x", text=True, mapped_pages=100, places=90, cached_pages=pages)
        seen = observation(text, read_bytes=pages * PAGE, major_faults=20)
        assert ("/bin/x" in " ".join(terminal(seen))) == told
        assert [file["path"] for file in to_json(seen, judge(seen), HIDDEN, NOTHING_ELSE)["files"]] == ["/bin/x"]


def test_a_small_file_has_no_line_if_nobody_knows_what_was_read_of_it() -> None:
    for kib, told in ((360, False), (8192, True)):
        file = file_seen(path="/lib/locale", size_bytes=kib << 10, mapped_pages=9, places=3, cached_pages=None)
        seen = observation(file, read_bytes=MIB, called_bytes=MIB)
        assert judge(seen).files[0].read_bytes is None
        assert ("/lib/locale" in " ".join(terminal(seen))) == told


def test_text_folios() -> None:
    text = file_seen(path="/bin/x", text=True, mapped_pages=9, rss_bytes=4 * MIB)
    seen = observation(text, read_bytes=4096)
    folios = TextFolios(4 * MIB, {4: MIB, 64: 2 * MIB}, MIB)
    assert "In folios of 4 KiB 25%, 64 KiB 50%, larger than what is mapped of them 25%." in terminal(seen, folios)[-1]
    found = to_json(seen, judge(seen), folios, NOTHING_ELSE)
    assert found["text_folios"]["by_size_kb"] == {4: MIB, 64: 2 * MIB}
    assert found["text_folios_missing"] is None
    assert to_json(seen, judge(seen), HIDDEN, NOTHING_ELSE)["text_folios_missing"] == HIDDEN


def test_what_was_read_before_is_told_where_nothing_is_read_now() -> None:
    before = "Before that, 250.0 MiB had been read: 'foliolab-host diagnose -- COMMAND' looks from the start."
    idle = replace(observation(read_bytes=4096), before=Counters(read_bytes=250 * MIB))
    assert before in terminal(idle)
    assert to_json(idle, judge(idle), HIDDEN, NOTHING_ELSE)["read_bytes_before"] == 250 * MIB
    busy = replace(look_ups(), before=Counters(read_bytes=250 * MIB))
    assert before not in terminal(busy)


def test_many_files_are_not_all_shown() -> None:
    files = [
        file_seen(path=f"/f{number}", mapped_pages=100, places=100, cached_pages=3200, engine="git")
        for number in range(20)
    ]
    text = " ".join(terminal(observation(*files, read_bytes=64000 * PAGE, major_faults=2000)))
    assert "and 12 more files; --json has all" in text
    assert "git's own switch" not in text


def test_the_counter_of_misses_is_told_where_it_is_known() -> None:
    stuck = "/srv/data.mdb: the kernel's counter of misses seems stuck: hits keep it below the limit"
    seen = look_ups()
    assert stuck in " ".join(terminal(seen))
    assert to_json(seen, judge(seen), HIDDEN, NOTHING_ELSE)["files"][0]["miss_counter"] == "held-down"
    ours = replace(seen, switches={"/module": True})
    assert "counter" not in " ".join(terminal(ours))
    assert to_json(ours, judge(ours), HIDDEN, NOTHING_ELSE)["files"][0]["miss_counter"] is None


def test_a_file_that_little_was_read_of_has_no_remedies_on_the_terminal() -> None:
    seen = look_ups()
    for pages, told in ((1000, False), (4000, True)):
        other = file_seen(path="/srv/other", mapped_pages=pages, places=10, cached_pages=pages)
        both = replace(
            seen,
            files=(*seen.files, other),
            counted=replace(seen.counted, read_bytes=(32000 + pages) * PAGE),
            untraced="This kernel has no tracepoint.",
        )
        lines = terminal(both)
        assert ("What helps with /srv/other:" in lines) == told
        assert "What helps with /srv/data.mdb:" in lines
        assert "What is read of a file is estimated. This kernel has no tracepoint." in lines
        assert to_json(both, judge(both), HIDDEN, NOTHING_ELSE)["untraced"] == "This kernel has no tracepoint."


def test_json() -> None:
    seen = look_ups()
    found = json.loads(json.dumps(to_json(seen, judge(seen), HIDDEN, NOTHING_ELSE)))
    assert (found["verdict"], found["read_bytes"], found["major_faults"]) == ("reads-too-much", 32000 * PAGE, 1000)
    (file,) = found["files"]
    assert (file["read_bytes"], file["read_method"], file["used_bytes"]) == (32000 * PAGE, "newly cached", 1100 * PAGE)
    assert (file["window_kb"], file["device"], file["rotational"], file["major_faults"]) == (128, "sda", False, None)
    first = file["remedies"][0]
    assert (found["schema"], file["waits"], file["disk_seconds"], file["fits"]) == (1, 1000, None, False)
    assert (first["bytes"], first["waits"], first["seconds"]) == (1000 * 16384, 1000, None)
    assert (first["bytes_per_wait"], first["bytes_per_second"]) == (16384, 1638400)


def test_json_has_seconds_where_the_disk_was_probed() -> None:
    seen = look_ups()
    around = Circumstances(costs={"sda": DiskCost(1000, 10, 200)})
    (file,) = to_json(seen, judge(seen), HIDDEN, around)["files"]
    assert (file["disk"], file["disk_unknown"]) == ({"request_us": 1000, "page_us": 10, "idle_us": 200}, None)
    assert file["disk_seconds"] == pytest.approx(1000 * 1200e-6 + 32000 * 10e-6)
    assert file["remedies"][0]["seconds"] == pytest.approx(1000 * 1200e-6 + 4000 * 10e-6)
    lines = " ".join(terminal(seen, around=around))
    assert "1,000 instead of 1,000 waits, 1.2 s instead of 1.5 s of waiting for the disk" in lines
    assert "1.6 MiB a second, 16 KiB for each wait" in lines
    took = "1,000 us for a request (200 us more after 4 ms of rest) and 10.0 us for each page just now."
    assert f"sda took {took}" in lines
    lines = " ".join(terminal(seen, around=Circumstances(costs={"sda": "It was not probed."})))
    assert "How long sda takes is not known. It was not probed." in lines


def test_the_window_of_a_cure_is_shown() -> None:
    seen = look_ups()
    around = Circumstances(cured_kb={"/srv/data.mdb": 64})
    (file,) = to_json(seen, judge(seen), HIDDEN, around)["files"]
    assert (file["window_kb"], file["cured_window_kb"]) == (128, 64)
    assert any(line.endswith(" 64 cured") for line in terminal(seen, around=around))


def test_groups_and_what_is_not_seen_are_told() -> None:
    seen = look_ups()
    groups = (
        ControlGroup("/system.slice/db.service", "unit db.service", (7, 8), 3 * MIB),
        ControlGroup("/", "", (9,), None),
    )
    lines = terminal(seen, around=Circumstances(groups=groups, blind=("This is a container.",)))
    assert "In unit db.service: 7, 8." in lines
    assert "This is a container." in lines
    assert any(line.startswith("3.0 MiB were taken from the control group /system.slice/db.service") for line in lines)


def test_a_file_of_others() -> None:
    facts = {
        "path": "/f",
        "device": "sda",
        "rotational": True,
        "window_kb": 128,
        "size_bytes": 2 * MIB,
        "resident_bytes": None,
        "processes": {},
        "hidden_processes": 3,
    }
    assert printed(lambda console: print_file(console, facts), 100) == [
        "/f: on sda (rotating), window 128 KiB",
        "cached: unknown; its owner may see it",
        "mapped by: no process; 3 more do not tell us what they map",
    ]
    seen = facts | {"rotational": False, "resident_bytes": MIB, "processes": {7: "engine"}, "hidden_processes": 0}
    assert printed(lambda console: print_file(console, seen), 100) == [
        "/f: on sda (not rotating), window 128 KiB",
        "cached: 1.0 MiB of 2.0 MiB",
        "mapped by: 7 (engine)",
    ]


def test_each_file_that_is_estimated_has_its_reason() -> None:
    traced, other = file_seen(fault_pages=3200, cached_pages=3200, mapped_pages=100), look_ups().files[0]
    seen = replace(look_ups(), files=(replace(traced, path="/srv/traced"), other))
    why = "Tracepoints and mappings number /srv/data.mdb differently, or not uniquely, as on overlayfs."
    assert terminal(seen).count(f"What is read of a file is estimated. {why}") == 1
    reasons = {file["path"]: file["untraced"] for file in to_json(seen, judge(seen), HIDDEN, NOTHING_ELSE)["files"]}
    assert reasons == {"/srv/traced": None, "/srv/data.mdb": why}
    nothing = replace(seen, untraced="Recording on this machine needs root.", files=(other,))
    assert terminal(nothing).count("What is read of a file is estimated. Recording on this machine needs root.") == 1
    assert to_json(nothing, judge(nothing), HIDDEN, NOTHING_ELSE)["files"][0]["untraced"] == nothing.untraced
