# SPDX-License-Identifier: GPL-2.0-only
"""``lab module``: the adaptive window as a module for kernels that Debian has built."""

import argparse
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.errors import UsageError
from foliolab.kernel import dkms, module
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.name import MODULE, parse_name
from foliolab.progress import Reporter


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("module", help="the adaptive window as a module for kernels that Debian has built")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    text = "build the module for a kernel, or find it in the cache, and print where it is"
    verb = verbs.add_parser("build", help=text, description=text)
    verb.add_argument("--kernel", metavar="NAME", default="image:debian:6.12", help="(default: image:debian:6.12)")
    verb.set_defaults(handler=_build)

    text = "write the module's sources, complete with the policy, where DKMS looks for them"
    verb = verbs.add_parser("export", help=text, description=text)
    verb.add_argument("directory", type=Path, help="where to; must not exist yet")
    verb.set_defaults(handler=_export)

    text = "write a Debian package with the sources, which has DKMS build them"
    verb = verbs.add_parser("package", help=text, description=text)
    verb.add_argument("directory", type=Path, nargs="?", default=Path(), help="where to (default: here)")
    verb.set_defaults(handler=_package)


def _build(arguments: argparse.Namespace) -> int:
    name = parse_name(arguments.kernel)
    if not name.image:
        raise UsageError(
            f"The module is for kernels that are not built here, such as image:debian:6.12: not {name.text}."
        )
    wanted = name.text if name.module else f"{name.text}+{MODULE}"
    print(build(KernelRequest(NATIVE, wanted), Reporter()).module)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    module.export(arguments.directory)
    print(arguments.directory)
    return 0


def _package(arguments: argparse.Namespace) -> int:
    print(dkms.package(arguments.directory))
    return 0
