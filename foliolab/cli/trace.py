# SPDX-License-Identifier: GPL-2.0-only
"""Record which pages of mapped files a program touches, and replay that in a model."""

import argparse

from foliohost.cli import heatmap
from foliolab.cli import trace_record, trace_replay, trace_store
from foliolab.cli.options import add_module, add_verbs


def add_options(parser: argparse.ArgumentParser) -> None:
    verbs = add_verbs(parser)
    add_module(verbs, "record", trace_record)
    add_module(verbs, "store", trace_store)
    add_module(verbs, "replay", trace_replay)
    add_module(verbs, "heatmap", heatmap).epilog = "example: ./lab trace heatmap traces/lmdb-zipf.trace"
