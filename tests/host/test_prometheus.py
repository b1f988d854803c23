# SPDX-License-Identifier: GPL-2.0-only
"""Debian's node_exporter and Prometheus with our metrics: an alert fires while a program wastes reads.

It clears once the program's file is cured.
"""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from foliolab.apt import fetch, unpack
from foliolab.arch import NATIVE
from foliolab.files import REPOSITORY
from tests.host.command import ARGV, ENVIRONMENT, host
from tests.host.conftest import Toucher, quiet_disk, start
from tests.host.test_large import ahead_of_others
from tests.processes import wait_until

__all__ = ["quiet_disk", "start"]

pytestmark = pytest.mark.boot

PACKAGES = ("prometheus", "prometheus-node-exporter")
RULES = REPOSITORY / "host/prometheus/alerts.yml"
ALERT = "MappedFileReadsTooMuch"
_LOOK_SECONDS = 6
_SECONDS = 180
"""In which an alert changes. A busy machine takes several looks for that."""
CONFIGURATION = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: node, static_configs: [{{targets: ["{target}"]}}]}}]
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs of both packages are."""
    tree = tmp_path_factory.mktemp("programs")
    for package in fetch(NATIVE, PACKAGES):
        if package.file.name.partition("_")[0] in PACKAGES:
            unpack(package.file, tree)
    return tree / "usr/bin"


def test_a_window_that_no_longer_adapts_is_told_once_it_did(programs: Path, tmp_path: Path) -> None:
    lost, never = ('foliolab_host_window_adapts{instance="lost"}', 'foliolab_host_window_adapts{instance="never"}')
    told = {"exp_labels": {"severity": "info", "instance": "lost"}, "exp_annotations": annotations("lost")}
    case = {
        "interval": "1m",
        "input_series": [{"series": lost, "values": "1+0x30 0+0x30"}, {"series": never, "values": "0+0x61"}],
        "alert_rule_test": [
            {"eval_time": "35m", "alertname": "MappedFileWindowLost", "exp_alerts": []},
            {"eval_time": "50m", "alertname": "MappedFileWindowLost", "exp_alerts": [told]},
        ],
    }
    check_rules(programs, tmp_path, case)


def test_metrics_that_are_old_or_gone_or_never_came_are_told(programs: Path, tmp_path: Path) -> None:
    """Not those of machines that have no timer."""
    file, timer = "/var/lib/prometheus/node-exporter/foliolab.prom", "foliolab-host-metrics.timer"
    written = {"well": "0+60x60", "old": "0+60x30 1800+0x30", "gone": "0+60x30 stale", "removed": "0+60x30 stale"}
    series = [
        {"series": f'node_textfile_mtime_seconds{{instance="{name}", file="{file}"}}', "values": values}
        for name, values in written.items()
    ]
    for name in ("well", "old", "gone"):
        series.append({"series": f'node_textfile_scrape_error{{instance="{name}"}}', "values": "0x60"})
    state = 'node_systemd_unit_state{{instance="{}", name="{}", state="active"}}'
    for name, unit in (("well", timer), ("gone", timer), ("never", timer), ("other", "cron.service")):
        series.append({"series": state.format(name, unit), "values": "1+0x60"})
    of_file, of_unit = {"file": file}, {"name": timer, "state": "active"}

    def stale(minutes: int, **labels: dict[str, str]) -> dict[str, Any]:
        alerts = [
            {
                "exp_labels": {"severity": "info", **more, **({"instance": name} if more else {})},
                "exp_annotations": annotations(name if more else "any machine", "MappedFileMetricsStale"),
            }
            for name, more in labels.items()
        ]
        return {"eval_time": f"{minutes}m", "alertname": "MappedFileMetricsStale", "exp_alerts": alerts}

    some = {"interval": "1m", "input_series": series}
    some["alert_rule_test"] = [stale(38, never=of_unit), stale(45, old=of_file, gone=of_file, never=of_unit)]
    none = {"interval": "1m", "input_series": [], "alert_rule_test": [stale(4), stale(6, none={})]}
    check_rules(programs, tmp_path, some, none)


def check_rules(programs: Path, place: Path, *cases: dict[str, Any]) -> None:
    """Have promtool try our rules; ``place`` is for a file of its own."""
    file = place / "tests.yml"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    done = subprocess.run([programs / "promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def annotations(instance: str, alert: str = "MappedFileWindowLost") -> dict[str, str]:
    """Those of an alert, as promtool fills them."""
    text = RULES.read_text().partition(f"- alert: {alert}")[2].partition("- alert:")[0]
    found = re.findall(r'^ +(summary|description): "(.*)"$', text, re.MULTILINE)
    return {name: re.sub(r"{{.* \$labels.instance .*}}", instance, words) for name, words in found}


@dataclass(frozen=True)
class Monitoring:
    """Both programs, while they run."""

    metrics: Path
    """What the collector of text files reads."""
    exporter: str
    prometheus: str

    def alerts(self) -> dict[str, str]:
        """The state of each alert that is pending or firing, by the file that it is about."""
        found = fetched(f"{self.prometheus}/api/v1/alerts")
        return {
            alert["labels"].get("file", ""): alert["state"]
            for alert in json.loads(found)["data"]["alerts"]
            if alert["labels"]["alertname"] == ALERT
        }


def fetched(url: str) -> str:
    """What is there; nothing while nobody answers."""
    try:
        with urlopen(url, timeout=10) as answer:
            text: str = answer.read().decode()
            return text
    except URLError:
        return ""


@pytest.fixture
def monitoring(programs: Path, tmp_path: Path) -> Iterator[Monitoring]:
    places = [free_address() for _ in PACKAGES]
    collected = tmp_path / "collected"
    collected.mkdir()
    (tmp_path / "alerts.yml").write_text(RULES.read_text().replace("for: 3m", "for: 2s"))
    text = CONFIGURATION.format(rules=tmp_path / "alerts.yml", target=places[0])
    (tmp_path / "prometheus.yml").write_text(text)
    exporter = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={collected}"]
    server = [f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    with ExitStack() as block:
        for name, options, place in (
            ("prometheus-node-exporter", exporter, places[0]),
            ("prometheus", server, places[1]),
        ):
            argv = [str(programs / name), *options, f"--web.listen-address={place}"]
            log = block.enter_context((tmp_path / f"{name}.log").open("wb"))
            running = block.enter_context(subprocess.Popen(argv, stdout=log, stderr=log, cwd=tmp_path))
            block.callback(running.kill)
        both = Monitoring(collected / "foliolab.prom", *(f"http://{place}" for place in places))
        assert wait_until(
            lambda: fetched(f"{both.exporter}/metrics") and fetched(f"{both.prometheus}/-/ready"), _SECONDS
        )
        yield both


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def look(metrics: Path, program: Toucher) -> None:
    """Have the tool look at the machine while a program wastes reads."""
    seconds = str(_LOOK_SECONDS)
    argv = [*ARGV, "diagnose", "--host", "--seconds", seconds, "--processes", "1", "--openmetrics", str(metrics)]
    with subprocess.Popen(argv, env=ENVIRONMENT, preexec_fn=ahead_of_others) as running:
        program.tell(f"waste {_LOOK_SECONDS + 2}")
    assert running.returncode == 0


def test_an_alert_fires_and_a_cure_clears_it(
    programs: Path, monitoring: Monitoring, quiet_disk: Path, start: Callable[..., Toucher], tmp_path: Path
) -> None:
    path = quiet_disk / "file"
    program = start(path)
    os.sched_setscheduler(program.pid, os.SCHED_FIFO, os.sched_param(1))  # a busy machine has it waste too little

    def state() -> str | None:
        look(monitoring.metrics, program)
        time.sleep(2)
        return monitoring.alerts().get(str(path))

    assert wait_until(lambda: state() == "firing", _SECONDS), monitoring.metrics.read_text()
    shown = fetched(f"{monitoring.exporter}/metrics")
    assert "node_textfile_scrape_error 0" in shown
    assert f'file="{path}"' in shown
    with monitoring.metrics.open("rb") as text:
        checked = subprocess.run([programs / "promtool", "check", "metrics"], stdin=text, capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
    kept = {"FOLIOLAB_STATE": str(tmp_path / "state")}
    done = host("cure", "apply", "--file", str(path), "--read-ahead-kb", "16", **kept)
    assert "128 -> 16 KiB" in done.stdout, done.stderr
    # It is still read. Looks at one process may be at another one, on a busy machine.
    cleared = wait_until(lambda: state() is None and f'file="{path}"' in monitoring.metrics.read_text(), _SECONDS)
    assert cleared, monitoring.metrics.read_text()
    assert "back to 128 KiB" in host("cure", "undo", **kept).stdout


def test_the_alerts_are_rules(programs: Path) -> None:
    checked = subprocess.run([programs / "promtool", "check", "rules", RULES], capture_output=True, text=True)
    assert (checked.returncode, "SUCCESS: 3 rules found" in checked.stdout) == (0, True), checked.stderr
