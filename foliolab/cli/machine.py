# SPDX-License-Identifier: GPL-2.0-only
"""The options that say which machine and which kernels a command is about."""

import argparse

from foliolab.arch import ARCHITECTURES, NATIVE, Architecture, architecture, size_name
from foliolab.kernel.name import HELP

_PAGE_SIZES = {size_name(size): size for arch in ARCHITECTURES.values() for size in arch.page_sizes}


def add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", choices=ARCHITECTURES, default=NATIVE.name, help=f"(default: {NATIVE.name})")
    parser.add_argument("--page-size", choices=_PAGE_SIZES, help="of the kernel (default: the architecture's smallest)")


def machine(arguments: argparse.Namespace) -> tuple[Architecture, int]:
    """Architecture and page size in bytes; UsageError if they do not go together."""
    arch = architecture(arguments.arch)
    return arch, arch.page_size(_PAGE_SIZES.get(arguments.page_size))


def add_kernels(parser: argparse.ArgumentParser, text: str) -> None:
    """``--kernel``, which may be repeated."""
    parser.add_argument(
        "--kernel", dest="kernels", metavar="NAME", action="append", default=[], help=f"{text}; may be repeated. {HELP}"
    )
