# SPDX-License-Identifier: GPL-2.0-only
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from foliolab.arch import NATIVE
from foliolab.cli import shell
from foliolab.cli.main import main
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.built import BuiltKernel
from foliolab.vm.switches import switch_path
from tests.campaign.fake import kernel_for
from tests.cli.command import lab, sentence

ADAPTIVE = switch_path("mmap_readahead/adaptive")


@pytest.mark.boot
def test_a_command_runs_on_our_kernel_with_the_hosts_files() -> None:
    """On that of test_ported.py; the command is like one with a variant's switches."""
    build(KernelRequest(NATIVE, "debian:7.3+ours", "host"))  # outside of the command's time limit
    command = f"uname -r; echo 0 >{ADAPTIVE}; cat {ADAPTIVE}; ls README.md"
    done = lab("shell", "--kernel", "debian:7.3+ours", "--", "sh", "-c", command)
    release, adaptive, file = done.stdout.split()
    assert release.endswith("-foliolab-patched")
    assert (adaptive, file) == ("0", "README.md")
    assert done.returncode == 0


class Started(Exception):
    """Another program takes our place."""


@pytest.mark.parametrize(
    ("options", "kernel", "extras", "adaptive"),
    [
        ([], "patched", (), set()),
        (["--variant", "retry"], "patched", (), {f"echo 0 >{ADAPTIVE}"}),
        (["--variant", "unpatched"], "unpatched", (), set()),
        (["--kernel", "debian:7.3+ours"], "debian:7.3+ours", (), set()),
        (["--with", "network"], "patched", ("network",), set()),
    ],
)
def test_the_kernel_that_was_asked_for_is_built_and_started_as_it_boots(
    options: list[str], kernel: str, extras: tuple[str, ...], adaptive: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []

    def built(request: KernelRequest) -> BuiltKernel:
        requests.append(request)
        return kernel_for(request.kernel)

    def start(program: Path, argv: list[str], environment: Mapping[str, str]) -> None:
        raise Started(*argv)

    monkeypatch.setattr(shell, "build", built)
    monkeypatch.setattr(os, "execve", start)
    with pytest.raises(Started) as started:
        main(["shell", *options, "--", "true"])
    assert requests == [KernelRequest(NATIVE, kernel, "host", extras)]
    argv = started.value.args
    assert argv[argv.index("--run") + 1] == str(kernel_for(kernel).image)
    (command,) = argv[argv.index("--") + 1 :]
    *switches, last = command.split(" && ")
    assert (last, {switch for switch in switches if ADAPTIVE in switch}) == ("true", adaptive)


def test_a_variant_needs_a_command() -> None:
    done = lab("shell", "--variant", "off")
    assert "give a command" in sentence(done)
    assert done.returncode == 2
