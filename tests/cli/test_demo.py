# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.campaign import measure
from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.kernel.build import KernelRequest
from foliolab.kernel.built import BuiltKernel
from tests.campaign.fake import FakeBackend, kernel_for


def test_a_kernel_is_measured_beside_the_model(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which kernel is built and measured, with fake guests."""
    built = set()

    def build(request: KernelRequest) -> BuiltKernel:
        built.add(request.kernel)
        return kernel_for(request.kernel)

    monkeypatch.setattr(measure, "identify", lambda request: kernel_for(request.kernel))
    monkeypatch.setattr(measure, "build", build)
    monkeypatch.setattr(measure, "QemuBackend", lambda *_: FakeBackend())
    assert main(["demo"]) == 0
    said = capsys.readouterr().out
    assert built == {"patched"}
    found = {sample.variant for sample in read_samples(store) if sample.backend == "fake"}
    assert found == {"off", "published", "adaptive"}
    assert all(name in said for name in found)
