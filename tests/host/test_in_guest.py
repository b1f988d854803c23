# SPDX-License-Identifier: GPL-2.0-only
"""The tools in a guest with a kernel of Debian's: what recording costs, and what a trace predicts, end to end."""

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from foliohost.record import _DRAIN_SECONDS, _LOOK_SECONDS
from foliohost.trace import read_trace
from foliolab.arch import NATIVE
from foliolab.files import REPOSITORY
from foliolab.trace.replay import replays
from foliolab.vm.image import guest_programs
from tests.cli.command import lab
from tests.host import in_guest, toucher

KERNEL = "image:debian:6.12"
PACKAGES = "python3"
FAULTS = 10_000
"""A second."""
INSTRUCTIONS = 2e9
"""What a processor is taken to do in that second."""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a guest prints of each step, by its name."""
    data = tmp_path_factory.mktemp("data")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "host/foliohost", data / "foliohost", ignore=without)
    (data / "file").write_bytes(os.urandom(64 << 20))
    done = lab(
        "exec", "--kernel", KERNEL, "--variant", "unpatched", "--packages", PACKAGES, "--data", str(data),
        "--accelerator", "icount", "--read-ahead-kb", "128", "--env", "PYTHONPATH=/data", "--env", "HOME=/tmp",
        "--env", "PYTHONDONTWRITEBYTECODE=1", "--copy", str(guest_programs(NATIVE)["sparse-mmap"]),
        "--copy", in_guest.__file__, "--copy", toucher.__file__, "--",
        "python3", "/files/in_guest.py", "cost", "predict", "diagnose", "cure",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {found["step"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.boot
def test_recording_costs_at_most_a_twentieth(steps: dict[str, dict[str, Any]]) -> None:
    found = steps["cost"]
    print(found)
    a_second = found["fetch"] / _DRAIN_SECONDS + found["look"] / _LOOK_SECONDS
    for kind in ("found", "reading", "fine"):
        cost = found[kind]
        assert cost["lost"] == 0
        assert a_second + FAULTS * (cost["recorded"] + cost["reader"]) <= INSTRUCTIONS / 20
        assert cost["reader"] > 0
        # Where programs wait for reads, chance is larger than what recording takes of them.
        assert cost["recorded"] > (-cost["program"] / 20 if kind == "reading" else 0)
    assert found["fine"]["faults"] == 4096  # every page, in its own fault
    # Of what a program does that only waits for reads, too.
    assert found["reading"]["recorded"] + found["reading"]["reader"] <= found["reading"]["program"] / 20


@pytest.mark.boot
def test_a_trace_predicts_what_each_remedy_reads(steps: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    found = steps["predict"]
    (tmp_path / "trace").write_bytes(base64.b64decode(found["trace"]))
    trace = read_trace(tmp_path / "trace")
    for key, variant, window_kb in (
        ("normal 128", "off", 128),
        ("normal 16", "off", 16),
        ("random 128", "random", 128),
    ):
        (predicted,) = replays("look-ups", trace, [variant], [window_kb])
        print(key, predicted.predicted.read_bytes, found[key])
        assert predicted.predicted.read_bytes == pytest.approx(found[key], rel=0.1), key
    assert found["normal 16"] < found["normal 128"] / 2


@pytest.mark.boot
def test_a_diagnosis_in_the_guest(steps: dict[str, dict[str, Any]]) -> None:
    found = steps["diagnose"]
    assert found["verdict"] == "reads-too-much", found["sentence"]
    file = next(file for file in found["files"] if file["path"] == "/data/file")
    assert (found["untraced"], file["read_method"]) == (None, "tracepoints")
    assert file["major_faults"] == pytest.approx(found["major_faults"], abs=16)  # of the program's text
    assert file["read_bytes"] > 2 * file["used_bytes_least"] > 0
    assert file["remedies"][0]["bytes"] < file["read_bytes"]


@pytest.mark.boot
def test_a_cure_in_the_guest(steps: dict[str, dict[str, Any]]) -> None:
    found = steps["cure"]
    assert found["windows"] == [128, 16, 128]
    assert found["device_kb"] == 128
    assert found["given"]["opened"] == []
    assert 0 < found["given"]["moment_us"] < 10_000
    assert [cure["result"] for cure in found["undone"]["cures"]] == ["back to 128 KiB"]
