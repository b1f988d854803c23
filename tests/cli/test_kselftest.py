# SPDX-License-Identifier: GPL-2.0-only
import argparse

import pytest

from foliolab.arch import NATIVE
from foliolab.cli import kselftest


@pytest.mark.parametrize(
    ("options", "names"),
    [([], ["unpatched", "patched"]), (["--kernel", "patched", "--kernel", "debian:6.12"], ["patched", "unpatched"])],
)
def test_ours_is_compared_with_the_unpatched_kernel_unless_others_are_named(
    options: list[str], names: list[str]
) -> None:
    parser = argparse.ArgumentParser()
    kselftest.add_options(parser)
    requests = kselftest.requests_of(parser.parse_args([*options, "--arch", NATIVE.name]))
    assert [request.kernel for request in requests] == names


@pytest.mark.parametrize(("suite", "xfs"), [("mm", False), ("ltp", True), ("stress-ng", True), ("trinity", True)])
def test_profile_and_fragments_are_for_every_suite(suite: str, xfs: bool) -> None:
    parser = argparse.ArgumentParser()
    kselftest.add_options(parser)
    options = ["--suite", suite, "--profile", "debug", "--with", "kcsan", "--with", "preempt-rt"]
    for request in kselftest.requests_of(parser.parse_args(options)):
        assert request.profile == "debug"
        assert request.extras == ("kcsan", "preempt-rt", *(["xfs"] if xfs else []))
