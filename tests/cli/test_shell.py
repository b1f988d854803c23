# SPDX-License-Identifier: GPL-2.0-only
import pytest

from foliolab.arch import NATIVE
from foliolab.kernel.build import KernelRequest, build
from foliolab.progress import Reporter
from tests.cli.command import lab, sentence


@pytest.mark.boot
def test_a_command_runs_on_our_kernel_with_the_hosts_files() -> None:
    build(KernelRequest(NATIVE, "patched", "host"), Reporter())  # outside of the command's time limit
    command = "uname -r; cat /sys/kernel/mm/mmap_readahead/adaptive; ls README.md"
    done = lab("shell", "--variant", "retry", "--", "sh", "-c", command)
    release, adaptive, file = done.stdout.split()
    assert release.endswith("-foliolab-patched")
    assert (adaptive, file) == ("0", "README.md")
    assert done.returncode == 0


def test_a_variant_needs_a_command() -> None:
    done = lab("shell", "--variant", "off")
    assert "give a command" in sentence(done)
    assert done.returncode == 2
