# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of a machine: their text, how many there are, and a real look at a real process."""

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from foliohost import host as module
from foliohost.faults import FaultTrace, followed
from foliohost.host import HostLoad, host_load, watch_host
from foliohost.openmetrics import Gauge, escaped, metrics_text
from foliohost.processes import Counters
from foliohost.report.host import to_json, to_metrics
from foliohost.survey import Survey, control_group, maps_large_file, survey
from foliohost.verdict import DiagnosisKind
from foliohost.watch import Watch
from foliolab.files import REPOSITORY
from tests.host.command import host
from tests.host.conftest import Toucher, cold, large_file, start
from tests.host.seen import PAGE, file_seen, observation
from tests.host.toucher import drop
from tests.host.tracing import here
from tests.processes import started, wait_until

__all__ = ["cold", "large_file", "start"]

GROUP = "/system.slice/db.service"


def read(text: str) -> dict[tuple[str, str], float]:
    """Values by name and labels, of a text that has to be what both formats allow."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    found: dict[tuple[str, str], float] = {}
    announced: list[str] = []
    for line in lines[:-2]:
        if help_of := re.fullmatch(r"# HELP ([a-z_]+) [^\\\"]+\.", line):
            announced.append(help_of[1])
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {announced[-1]} gauge"
        else:
            sample = re.fullmatch(r'([a-z_]+)((?:\{(?:[a-z]+="(?:[^"\\]|\\["\\n])*",?)+\})?) (\S+)', line)
            assert sample, line
            assert sample[1] == announced[-1]
            assert (sample[1], sample[2]) not in found
            found[sample[1], sample[2]] = float(sample[3])
    assert len(set(announced)) == len(announced)
    return found


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("/srv/data.mdb", "/srv/data.mdb"),
        ('a\\b"c\nd', 'a\\\\b\\"c\\nd'),
        ("/größe/日本", "/größe/日本"),
        (os.fsdecode(b"/srv/\xff\xfe"), "/srv/\\\\xff\\\\xfe"),
        ("\t{},=", "\t{},="),
    ],
)
def test_labels_are_escaped(text: str, written: str) -> None:
    assert escaped(text) == written
    gauge = Gauge("name", "Words.")
    gauge.set({"file": text, "cgroup": ""}, 1.5)
    assert read(metrics_text([gauge])) == {("name", f'{{file="{written}",cgroup=""}}'): 1.5}


def test_labels_have_one_value_and_what_is_unknown_has_none() -> None:
    gauge, other = Gauge("name", "Words."), Gauge("other", "Words.")
    gauge.set({"file": "a"}, 1)
    gauge.set({"file": "a"}, 2)
    gauge.set({"file": "b"}, None)
    other.set({}, None)
    assert read(metrics_text([gauge, other])) == {("name", '{file="a"}'): 2.0}
    assert metrics_text([]) == "# EOF\n"


def loaded(files: int, **changes: object) -> HostLoad:
    """Ten seconds in which a process read windows of each file and used a page of each."""
    seen = [
        file_seen(
            **{"path": f"/srv/{number}", "mapped_pages": 110, "places": 100, "fault_pages": 3200 + number}
            | {"major_faults": 100, **changes}
        )
        for number in range(files)
    ]
    done = Counters(read_bytes=3300 * files * PAGE, major_faults=100 * files)
    observed = observation(*seen, read_bytes=3300 * files * PAGE, major_faults=100 * files)
    return host_load(observation(), {GROUP: observed}, Survey({7: GROUP}, hidden=2, left_out=3), {7: done})


def test_what_is_told_of_a_file() -> None:
    text = to_metrics(loaded(1), 20)
    labels = f'{{device="sda",file="/srv/0",cgroup="{GROUP}"}}'
    found = {name: value for (name, each), value in read(text).items() if each == labels}
    assert found == {
        "foliolab_file_read_bytes_per_second": 320 * PAGE,
        "foliolab_file_used_most_bytes_per_second": 11 * PAGE,
        "foliolab_file_used_least_bytes_per_second": 10 * PAGE,
        "foliolab_file_waits_per_second": 10,
        "foliolab_file_process_waits_per_second": 10,
        "foliolab_file_processes": 1,
        "foliolab_file_window_bytes": 128 << 10,
        "foliolab_file_reads_too_much": 1,
    }


def test_without_tracepoints_waits_of_a_file_are_not_told_but_those_of_its_processes() -> None:
    load = loaded(1, fault_pages=None, major_faults=None, cached_pages=3200)
    names = {name for name, _ in read(to_metrics(load, 20))}
    assert "foliolab_file_waits_per_second" not in names
    assert {"foliolab_file_process_waits_per_second", "foliolab_file_read_bytes_per_second"} <= names
    assert load.files[0].kind is DiagnosisKind.READS_TOO_MUCH


def test_whether_windows_adapt_is_told_as_the_look_has_seen_it() -> None:
    load = loaded(1)
    told = [
        read(to_metrics(each, 20))["foliolab_host_window_adapts", ""] for each in (load, replace(load, adaptive=True))
    ]
    assert told == [0, 1]


def test_the_number_of_series_is_bounded_and_the_worst_files_have_them() -> None:
    load = loaded(300)
    few, many = read(to_metrics(load, 5)), read(to_metrics(load, 20))
    assert len(many) - len(few) == 15 * 8
    assert len(few) == 5 * 8 + 10
    named = {re.sub(r'.*file="(.*?)".*', r"\1", labels) for _, labels in few if "file=" in labels}
    assert named == {f"/srv/{number}" for number in range(295, 300)}
    assert few["foliolab_host_files_left_out", ""] == 295
    assert [len(to_json(load, 5)["files"]), to_json(load, 5)["left_out_files"]] == [5, 295]
    assert {file["engine"] for file in to_json(load, 5)["files"]} == {None}


def test_the_file_that_most_is_wasted_of_comes_first() -> None:
    scan = file_seen(path="/scan", mapped_pages=9000, places=563, fault_pages=9000, major_faults=10)
    wasted = file_seen(path="/wasted", mapped_pages=110, places=100, fault_pages=3200, major_faults=100)
    text = file_seen(path="/text", text=True, mapped_pages=20, places=2, fault_pages=30, major_faults=1)
    cached = file_seen(path="/cached", mapped_pages=500, places=50, fault_pages=0, major_faults=0)
    observed = observation(scan, text, cached, wasted, read_bytes=12230 * PAGE)
    load = host_load(observation(), {GROUP: observed}, Survey({7: GROUP}), {})
    # Of /cached nothing was read.
    assert [(file.path, file.kind.value) for file in load.files] == [
        ("/wasted", "reads-too-much"),
        ("/text", "nothing-wrong"),
        ("/scan", "nothing-wrong"),
    ]


def test_holes_are_not_read() -> None:
    """They come into the cache by faults, and the disk has nothing of them."""
    sparse = file_seen(mapped_pages=110, places=100, fault_pages=32000, major_faults=1000)
    done = Counters(read_bytes=8 * PAGE, major_faults=1000)
    (file,) = host_load(observation(), {GROUP: observation(sparse)}, Survey({7: GROUP}), {7: done}).files
    assert (file.share.read_bytes, file.kind) == (8 * PAGE, DiagnosisKind.NOTHING_WRONG)


def test_a_file_in_a_container_has_the_name_that_it_has_there() -> None:
    """And once only in a group, however many containers have one there: readers refuse equal labels."""
    seen = [file_seen(path=f"/proc/{pid}/root/srv/x", fault_pages=2000 + pid, processes=(pid,)) for pid in (7, 8)]
    groups = {GROUP: observation(*seen), "/other": observation(seen[0])}
    load = host_load(observation(), groups, Survey({7: GROUP, 8: GROUP}), {})
    assert [file.path for file in load.files] == ["/srv/x"] * 3
    found = read(to_metrics(load, 20))
    rates = [value for (name, _), value in found.items() if name == "foliolab_file_read_bytes_per_second"]
    assert sorted(rates) == [2007 * PAGE / 10, 2008 * PAGE / 10]


def test_a_process_that_maps_a_large_file(cold: Path, tmp_path: Path, start: Callable[..., Toucher]) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(1 << 20))
    program, other = start(cold), start(small)
    assert (maps_large_file(program.pid), maps_large_file(other.pid)) == (True, False)
    assert control_group(program.pid) == control_group(os.getpid()) != ""
    program.end()
    assert (maps_large_file(program.pid), control_group(program.pid)) == (False, "")


def test_a_process_that_reads_is_found(cold: Path) -> None:
    busy = (
        "import mmap, os, sys, tests.host.toucher as toucher\n"
        "handle = os.open(sys.argv[1], os.O_RDONLY)\n"
        "place = mmap.mmap(handle, 0, prot=mmap.PROT_READ)\n"
        "while True: toucher.drop(sys.argv[1]); os.pread(handle, 4 << 20, 1 << 20)\n"
    )
    with started("-c", busy, str(cold)) as program:
        assert wait_until(lambda: maps_large_file(program.pid))
        found = survey(5.0)
        assert found.groups[program.pid] == control_group(program.pid)
        assert os.getpid() not in found.groups
        none = survey(1.0, most=0)
        assert (none.groups, none.left_out > 0) == ({}, True)


def test_a_real_look(large_file: Path, start: Callable[..., Toucher], tmp_path: Path) -> None:
    """Whoever reads meanwhile finds a whole file, old or new."""
    metrics = tmp_path / "foliolab.prom"
    metrics.write_text("# EOF\n")
    metrics.chmod(0o600)
    before = metrics.stat().st_ino
    program = start(large_file)
    with started("-m", "foliohost", "diagnose", "--host", "--seconds", "6", "--processes", "1", "--openmetrics",
                 str(metrics), environment={"PYTHONPATH": str(REPOSITORY / "host")}) as tool:  # fmt: skip
        while tool.poll() is None:
            drop(large_file)
            program.tell("random 5")
            assert metrics.read_text().endswith("# EOF\n")
    assert tool.returncode == 0
    found = read(metrics.read_text())
    (labels,) = {labels for _, labels in found if f'file="{large_file}"' in labels}
    assert found["foliolab_file_reads_too_much", labels] == 1
    read_bytes = found["foliolab_file_read_bytes_per_second", labels]
    assert 0 < 4 * found["foliolab_file_used_least_bytes_per_second", labels] < read_bytes
    assert found["foliolab_file_processes", labels] == 1
    assert metrics.stat().st_ino != before
    assert stat.S_IMODE(metrics.stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["foliolab.prom"]


@here
def test_what_is_read_until_the_first_look_is_over_is_not_told_of(
    cold: Path, start: Callable[..., Toucher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes of other groups may have been looked at for long before."""
    program = start(cold)

    class LateWatch(Watch):
        def __init__(self, pids: Callable[[], list[int]], **words: FaultTrace | str) -> None:
            for _ in pids():
                program.tell("random 60")
            super().__init__(pids, None, False, **words)

    monkeypatch.setattr(module, "Watch", LateWatch)
    with followed([program.pid]) as trace:
        load = watch_host(Survey({program.pid: GROUP}), 1.0, trace)
    assert load.traced.untraced == ""
    assert [file.path for file in load.files] == []


def test_the_table_and_json() -> None:
    found = json.loads(
        host("diagnose", "--host", "--seconds", "0.2", "--processes", "1", "--json", "--top", "1").stdout
    )
    assert len(found["files"]) <= 1
    assert found["watched_processes"] <= 1
    assert found["seconds"] > 0
    assert "the whole machine " in host("diagnose", "--host", "--seconds", "0.2", "--processes", "1").stdout


def test_dashboard_and_alerts_are_about_metrics_that_there_are() -> None:
    there = {name for name, _ in read(to_metrics(loaded(1), 20))}
    dashboard = json.loads((REPOSITORY / "host/grafana/dashboard.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = (REPOSITORY / "host/prometheus/alerts.yml").read_text()
    assert len(shown) > 3
    for text in (*shown, alerts):
        named = set(re.findall(r"\bfoliolab_\w+", text))
        assert named
        assert named <= there
