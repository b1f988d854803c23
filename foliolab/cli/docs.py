# SPDX-License-Identifier: GPL-2.0-only
"""Build a site of README, docs and what they link to. It needs no network to be read; its search wants a server, such
as 'python3 -m http.server --directory site'.

example: ./lab docs --build /tmp/site
"""

import argparse
from pathlib import Path

from foliolab.cli.described import manual
from foliolab.cli.options import require_checkout
from foliolab.files import REPOSITORY
from foliolab.progress import say
from foliolab.site import build_site


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "the directory that the site replaces (default: site, in the checkout)"
    parser.add_argument("--build", metavar="DIR", type=Path, default=REPOSITORY / "site", help=text)


def handle(arguments: argparse.Namespace) -> int:
    require_checkout("This reads documents")
    build_site(arguments.build, manual())
    say(f"The site begins at {arguments.build / 'index.html'}.")
    return 0
