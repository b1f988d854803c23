# SPDX-License-Identifier: GPL-2.0-only
"""A guest like a server: two nodes, and a disk on NVMe."""

from pathlib import Path

import pytest

from foliolab.campaign.measure import Request, measure
from tests.machines import ALL_KERNELS
from tests.small import small_experiment

pytestmark = pytest.mark.boot


@pytest.mark.skipif(not ALL_KERNELS, reason="the driver of NVMe is in a kernel of its own; $FOLIOLAB_KERNELS")
def test_a_disk_on_nvme_is_read_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOLAB_RESULTS", str(tmp_path / "results"))
    file = small_experiment(tmp_path)
    file.write_text(file.read_text() + 'nodes = 2\ndisk_bus = "nvme"\n')
    request = Request(str(file), cells=["pattern=sequential"], accelerator="tcg", hardware_counters=True)
    (sample,) = measure(request).samples
    assert sample.outcome == "ok"
    assert sample.metrics["floor_bytes"] <= sample.metrics["read_bytes"] < 2 * sample.metrics["floor_bytes"]
    assert 0 <= sample.metrics["remote_share"] <= 1
    assert sample.sentence.startswith("not-counted: cpu_instructions, ")
    assert (sample.parameters["nodes"], sample.parameters["disk_bus"]) == ("1x128M 1x128M", "nvme")
