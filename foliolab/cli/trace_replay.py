# SPDX-License-Identifier: GPL-2.0-only
"""``lab trace replay`` and ``lab trace info``: what a trace comes to in the model, and what it is of."""

import argparse
import json
from pathlib import Path

from rich.console import Console

from foliolab.errors import UsageError
from foliolab.experiment.sizes import parse_size
from foliolab.model.compiled import compiled
from foliolab.model.library import DEFAULT_REQUEST_KB
from foliolab.progress import Reporter
from foliolab.regret.suite import SUITE
from foliolab.report.trace import print_replays, print_trace
from foliolab.trace.format import read_trace
from foliolab.trace.replay import RULES, read_replayable, replays


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    _add_replay(verbs)
    text = "tell what a trace is of, and what was measured with it"
    info = verbs.add_parser("info", help=text, description=f"{text.capitalize()}.")
    info.add_argument("file", metavar="FILE", nargs="+", type=Path)
    info.set_defaults(handler=handle_info)


def _add_replay(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "tell what a trace comes to with other windows, variants and memory, by a model"
    parser = verbs.add_parser(
        "replay",
        help=text,
        description="Replay traces in the model of the page cache, and put what it predicts beside what guests were"
        " measured to do with the same variant, window and memory. Boots nothing.",
        epilog="example: ./lab trace replay traces/lmdb.trace --variant off,adaptive --memory 64M",
    )
    parser.add_argument("file", metavar="FILE", nargs="+", type=Path)
    parser.add_argument(
        "--variant",
        metavar="NAME,...",
        default=",".join(RULES[:3]),
        help=f"of {', '.join(RULES)} (default: the first three)",
    )
    parser.add_argument("--read-ahead-kb", metavar="KIB,...", default="128,4096", help="default: 128,4096")
    parser.add_argument("--memory", metavar="SIZE", help="for the files (default: as the trace says)")
    parser.add_argument(
        "--device",
        choices=[device.name for device in SUITE.devices],
        help="tell seconds on this device, and take requests to cost what they do there",
    )
    parser.add_argument("--json", action="store_true", help='print {"replays": [...]} and nothing else')
    parser.set_defaults(handler=handle_replay)


def handle_replay(arguments: argparse.Namespace) -> int:
    variants, windows = _variants(arguments.variant), _windows(arguments.read_ahead_kb)
    memory = _size(arguments.memory) if arguments.memory is not None else None
    device = next((each for each in SUITE.devices if each.name == arguments.device), None)
    request_kb = device.request_kb if device else DEFAULT_REQUEST_KB
    traces = [(str(path), read_replayable(path)) for path in arguments.file]
    compiled(Reporter())
    found = [replay for name, trace in traces for replay in replays(name, trace, variants, windows, memory, request_kb)]
    if arguments.json:
        lines = ",\n".join(json.dumps(replay.to_json()) for replay in found)
        print(f'{{"replays": [\n{lines}\n]}}')
    else:
        print_replays(Console(highlight=False), found, device)
    return 0


def handle_info(arguments: argparse.Namespace) -> int:
    for name, trace in [(str(path), read_trace(path)) for path in arguments.file]:
        print_trace(Console(highlight=False), name, trace)
    return 0


def _variants(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in RULES:
            raise UsageError(f"The model has no variant '{name}'; known: {', '.join(RULES)}.")
    return names


def _windows(text: str) -> list[int]:
    numbers = text.split(",")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UsageError(f"--read-ahead-kb takes whole numbers such as 128,4096, not '{text}'.")
    return [int(number) for number in numbers]


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"--memory: {error}.") from error
