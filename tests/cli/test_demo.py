# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from foliolab.campaign import measure
from foliolab.campaign.store import read_samples
from foliolab.cli.main import main
from foliolab.kernel.build import KernelRequest
from foliolab.kernel.built import BuiltKernel
from tests.campaign.fake import FakeBackend, kernel_for


@pytest.mark.parametrize(
    ("options", "variants"),
    [
        ([], {"patched": {"off", "published", "adaptive"}}),
        (
            ["--kernel", "debian:7.3"],
            {"unpatched": {"unpatched"}, "patched": {"off", "published", "adaptive"}, "debian:7.3": {"debian:7.3"}},
        ),
    ],
)
def test_kernels_are_measured_beside_the_model(
    options: list[str],
    variants: dict[str, set[str]],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which are built and measured, with guests that are none."""
    built = set()

    def build(request: KernelRequest) -> BuiltKernel:
        built.add(request.kernel)
        return kernel_for(request.kernel)

    monkeypatch.setattr(measure, "build", build)
    monkeypatch.setattr(measure, "QemuBackend", lambda *_: FakeBackend())
    assert main(["demo", *options]) == 0
    said = capsys.readouterr().out
    assert built == variants.keys()
    found: dict[str, set[str]] = {}
    for sample in read_samples(store):
        if sample.backend == "fake":
            found.setdefault(sample.kernel.name, set()).add(sample.variant)
    assert found == variants
    assert all(name in said for names in variants.values() for name in names)
