# SPDX-License-Identifier: GPL-2.0-only
import argparse

import pytest

from foliolab.arch import NATIVE
from foliolab.cli import suite
from foliolab.progress import Reporter
from tests.campaign.fake import kernel_for


@pytest.mark.parametrize(
    ("options", "names"),
    [([], ["unpatched", "patched"]), (["--kernel", "patched", "--kernel", "debian:6.12"], ["patched", "unpatched"])],
)
def test_ours_is_compared_with_the_unpatched_kernel_unless_others_are_named(
    options: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "build", lambda request, report: kernel_for(request.kernel))
    parser = argparse.ArgumentParser()
    suite.add_suite(parser)
    kernels = suite.kernels_of(parser.parse_args([*options, "--arch", NATIVE.name]), Reporter())
    assert [kernel.name for kernel in kernels] == names
