# SPDX-License-Identifier: GPL-2.0-only
"""Pack an experiment with its kernels, programs and disks for a machine without network, which measures by itself.
Unpacked there below /var/lib/foliolab, 'sh metal/runner start' begins, and 'sh metal/runner result > FILE' gives what
'./lab merge FILE' takes. docs/metal.md tells the rest.

example: ./lab bundle sparse-mmap --kernel unpatched --kernel patched -o bundle.tar.gz
"""

import argparse
import tempfile
from pathlib import Path

from foliolab.campaign.measure import default_profile, prepared
from foliolab.campaign.runner import jobs_of
from foliolab.campaign.store import open_store, store_file
from foliolab.cli.measure import add_plan, request_of
from foliolab.cli.options import add_profile
from foliolab.errors import EmptyPart, UsageError
from foliolab.metal.bundle import make_bundle, pack
from foliolab.progress import say
from foliolab.vm.accel import HOST


def add_options(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    add_profile(parser, default_profile(HOST))
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="where it goes: a .tar.gz")


def handle(arguments: argparse.Namespace) -> int:
    if arguments.output.is_dir() or not arguments.output.resolve().parent.is_dir():
        raise UsageError(f"{arguments.output} can be no file.")
    plan, backend, kernels = prepared(request_of(arguments, HOST))
    with open_store(store_file()) as store:
        jobs = jobs_of(plan, store, backend, kernels)
    with tempfile.TemporaryDirectory(prefix="foliolab-bundle-") as scratch:
        place = Path(scratch, "metal")
        boots = make_bundle(place, jobs)
        if not boots:
            raise EmptyPart("Nothing is left to measure, so there is no bundle.")
        pack(place, arguments.output)
    say(f"{arguments.output} has {boots} boots; it is {arguments.output.stat().st_size >> 20} MiB.")
    return 0
