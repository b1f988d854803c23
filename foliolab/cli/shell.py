# SPDX-License-Identifier: GPL-2.0-only
"""A prompt on our kernel, with the host's files (changes to them are dropped). With a command, run that instead. The
switches are below /sys/kernel/mm. IP, also to 127.0.0.1, takes --with network.

example: ./lab shell --variant off -- python3 my-test.py
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

from foliolab.arch import NATIVE, machine_name
from foliolab.cli.options import add_extras, add_guest, add_words, words
from foliolab.errors import MissingTool, UsageError
from foliolab.experiment.variants import choose_one
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.name import HELP
from foliolab.process import tool
from foliolab.vm.accel import KVM, choose
from foliolab.vm.switches import SWITCHES, switch_path


def add_options(parser: argparse.ArgumentParser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    text = "settings of our kernel, or 'unpatched' (default: adaptive)"
    chosen.add_argument("--variant", default="adaptive", help=text)
    chosen.add_argument("--kernel", metavar="NAME", help=f"this kernel, as it boots. {HELP}")
    add_extras(parser)
    add_guest(parser)
    add_words(parser, "a command instead of a prompt")


def handle(arguments: argparse.Namespace) -> int:
    variant = choose_one(arguments.variant, machine_name(NATIVE.name, NATIVE.page_size(None)))
    command = words(arguments)
    if variant.switches and not command:
        raise UsageError(f"A prompt starts on the kernel's own settings; write to {SWITCHES} there, or give a command.")
    tool(NATIVE.qemu)
    vng = Path(sys.executable).with_name("vng")
    if not vng.exists():
        raise MissingTool("virtme-ng is not in the Python environment; './lab' installs it.")
    name = variant.kernel if arguments.kernel is None else arguments.kernel
    kernel = build(KernelRequest(NATIVE, name, "host", tuple(arguments.extras)))
    argv = [str(vng), "--run", str(kernel.image), "--memory", arguments.memory, "--cpus", str(arguments.cpus)]
    if choose(NATIVE).backend != KVM:
        argv.append("--disable-kvm")
    switch = "".join(f"echo {shlex.quote(str(value))} >{switch_path(name)} && " for name, value in variant.switches)
    if command:
        argv += ["--", f"{switch}{shlex.join(command)}"]
    sys.stdout.flush()
    # vng runs its other half, virtme-run, by name.
    os.execve(vng, argv, os.environ | {"PATH": f"{vng.parent}:{os.environ['PATH']}"})
