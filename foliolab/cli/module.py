# SPDX-License-Identifier: GPL-2.0-only
"""Build and package the adaptive window as a module for kernels that Debian has built."""

import argparse
from pathlib import Path

from foliolab.arch import NATIVE
from foliolab.cli.options import add_command, add_verbs
from foliolab.errors import UsageError
from foliolab.kernel import module_package
from foliolab.kernel.build import KernelRequest, build
from foliolab.kernel.name import MODULE, parse_name


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    verb = add_command(verbs, "build", _build.__doc__, _build)
    verb.add_argument("--kernel", metavar="NAME", default="image:debian:6.12", help="(default: image:debian:6.12)")
    verb = add_command(verbs, "package", _package.__doc__, _package)
    verb.add_argument("directory", type=Path, nargs="?", default=Path(), help="where to (default: here)")
    verb.add_argument("--rpm", action="store_true", help="a package of RPM's, with the same files")


def _build(arguments: argparse.Namespace) -> int:
    """Build the module for a kernel, or find it in the cache, and print where it is."""
    name = parse_name(arguments.kernel)
    if not name.image:
        raise UsageError(
            f"The module is for kernels that are not built here, such as image:debian:6.12: not {name.text}."
        )
    wanted = name.text if name.module else f"{name.text}+{MODULE}"
    print(build(KernelRequest(NATIVE, wanted)).module)
    return 0


def _package(arguments: argparse.Namespace) -> int:
    """Write a Debian package with the sources, which has DKMS build them."""
    print((module_package.build_rpm if arguments.rpm else module_package.build_deb)(arguments.directory))
    return 0
