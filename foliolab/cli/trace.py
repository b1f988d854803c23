# SPDX-License-Identifier: GPL-2.0-only
"""``lab trace``: the verbs about traces of what programs touch of mapped files."""

import argparse

from foliolab.cli import trace_heatmap, trace_record, trace_replay, trace_store

_VERBS = (trace_record, trace_store, trace_replay, trace_heatmap)


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "which pages of mapped files a program touches: record that, and replay it in a model"
    parser = commands.add_parser("trace", help=text, description=f"{text.capitalize()}.")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for verb in _VERBS:
        verb.add_parser(verbs)
