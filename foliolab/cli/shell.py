# SPDX-License-Identifier: GPL-2.0-only
"""``lab shell``: the host's own files and programs on our kernel, through virtme-ng."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import MissingTool, UsageError
from foliolab.experiment.machine import machine_name
from foliolab.experiment.variants import choose_one
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.name import HELP
from foliolab.process import tool
from foliolab.progress import Reporter
from foliolab.vm.accel import choose
from foliolab.vm.switches import SWITCHES, switch_path


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "a prompt on our kernel, with the host's files (changes to them are dropped)"
    parser = commands.add_parser(
        "shell",
        help=text,
        description=f"{text.capitalize()}. With a command, run that instead. The switches are below {SWITCHES}.",
        epilog="example: ./lab shell --variant off -- python3 my-test.py",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--variant", default="adaptive", help="settings of our kernel, or 'unpatched' (default: adaptive)"
    )
    chosen.add_argument("--kernel", metavar="NAME", help=f"this kernel, as it boots. {HELP}")
    parser.add_argument("--memory", default="1G", help="of the guest (default: 1G)")
    parser.add_argument("--cpus", type=int, default=1, help="of the guest (default: 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a command instead of a prompt")
    parser.set_defaults(handler=handle)


def handle(arguments: argparse.Namespace) -> int:
    variant = choose_one(arguments.variant, machine_name(NATIVE.name, NATIVE.page_size(None)))
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if variant.switches and not command:
        raise UsageError(f"A prompt starts on the kernel's own settings; write to {SWITCHES} there, or give a command.")
    tool(NATIVE.qemu, NATIVE.qemu_package)
    vng = Path(sys.executable).with_name("vng")
    if not vng.exists():
        raise MissingTool("virtme-ng is not in the Python environment; './lab' installs it.")
    kernel = build(KernelRequest(NATIVE, arguments.kernel or variant.kernel, "host"), Reporter())
    argv = [str(vng), "--run", str(kernel.image), "--memory", arguments.memory, "--cpus", str(arguments.cpus)]
    if choose(NATIVE).backend != "qemu-kvm":
        argv.append("--disable-kvm")
    switch = "".join(f"echo {shlex.quote(str(value))} >{switch_path(name)} && " for name, value in variant.switches)
    if command:
        argv += ["--", f"{switch}{shlex.join(command)}"]
    sys.stdout.flush()
    # vng runs its other half, virtme-run, by name.
    os.execve(vng, argv, os.environ | {"PATH": f"{vng.parent}:{os.environ['PATH']}"})
