# SPDX-License-Identifier: GPL-2.0-only
"""``lab kernel``: build, configure, export, list and clean kernels."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foliolab.arch import size_name
from foliolab.cli.machine import add_machine, machine
from foliolab.errors import UsageError
from foliolab.kernel.build import BuiltKernel, KernelRequest, build, built_kernels, clean, configure
from foliolab.kernel.config import OPTIONAL, PROFILES
from foliolab.kernel.export import export
from foliolab.kernel.name import HELP, PATCHED, UNPATCHED, parse_name
from foliolab.kernel.source import held
from foliolab.progress import Reporter
from foliolab.vm import scratch


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("kernel", help="build, configure, export, list and clean kernels")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    for name, handle, text in (
        ("build", _build, "build a kernel, or find it in the cache, and print where it is"),
        ("config", _config, "print the final .config of a kernel, checked against the fragments"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        _add_source(verb, PATCHED, "which")
        verb.add_argument("--profile", choices=PROFILES, default="lab", help="debug: KASAN, lockdep, DEBUG_VM, KUnit")
        verb.add_argument(
            "--with", dest="extras", choices=OPTIONAL, action="append", default=[], help="build this in too"
        )
        add_machine(verb)
        if name == "build":
            verb.add_argument("--json", action="store_true", help="print one JSON object")
        verb.set_defaults(handler=handle)

    text = "write the series as a git branch and as an mbox that 'git am' applies to the pristine tree"
    verb = verbs.add_parser("export", help=text, description=text)
    verb.add_argument("directory", type=Path, help="where to; must not exist yet")
    _add_source(verb, UNPATCHED, "the kernel that the series is put on")
    verb.set_defaults(handler=_export)

    verb = verbs.add_parser("list", help="list the kernels in the cache, newest first")
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    verb.set_defaults(handler=_list)

    verb = verbs.add_parser("clean", help="empty the cache: kernels, objects, sources, programs, packages, disks")
    verb.set_defaults(handler=_clean)


def _add_source(verb: argparse.ArgumentParser, default: str, text: str) -> None:
    verb.add_argument("--kernel", metavar="NAME", default=default, help=f"{text} (default: {default}). {HELP}")
    verb.add_argument("--newest", action="store_true", help="ask apt whether Debian has a newer one of that version")


def _request(arguments: argparse.Namespace) -> KernelRequest:
    arch, page_size = machine(arguments)
    return KernelRequest(
        arch=arch,
        page_size=page_size,
        kernel=arguments.kernel,
        profile=arguments.profile,
        extras=tuple(arguments.extras),
        newest=arguments.newest,
    )


def _facts(kernel: BuiltKernel) -> dict[str, Any]:
    return asdict(kernel) | {"arch": kernel.arch.name, "image": str(kernel.image)}


def _build(arguments: argparse.Namespace) -> int:
    kernel = build(_request(arguments), Reporter())
    print(json.dumps(_facts(kernel)) if arguments.json else kernel.image)
    return 0


def _config(arguments: argparse.Namespace) -> int:
    print(configure(_request(arguments), Reporter()), end="")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    report = Reporter()
    name = parse_name(arguments.kernel)
    if name.series:
        raise UsageError(f"Our series is exported on a kernel that has none: not on {name.text}.")
    with held(name, report, newest=arguments.newest) as source:
        exported = export(source, arguments.directory, report)
    print(f"branch {exported.branch} in {exported.repository}")
    print(f"mbox   {exported.mbox}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    kernels = built_kernels()
    if arguments.json:
        print(json.dumps({"kernels": [_facts(kernel) for kernel in kernels]}))
        return 0
    for kernel in kernels:
        columns = (f"{kernel.arch.name:6}", f"{size_name(kernel.page_size):3}", f"{kernel.profile:5}")
        print(kernel.hash, *columns, f"{kernel.name:9}", kernel.release, sep="  ")
    return 0


def _clean(arguments: argparse.Namespace) -> int:
    clean(Reporter())
    scratch.sweep()
    return 0
