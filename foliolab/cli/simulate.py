# SPDX-License-Identifier: GPL-2.0-only
"""Compare ways to read with the best fixed window, by a model. Access patterns, traces and what users have reported
are simulated on a model of the page cache. What each way to read costs is told in multiples of an oracle: the fixed
window that is cheapest for this very cell. The oracle stays within read_ahead_kb, which is the administrator's limit
for the device. The same is told of the time that the program takes, where what is read ahead goes on while the program
does. Boots nothing.

example: ./lab simulate --pattern zipf,btree --device nvme
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from foliolab.cli.options import add_json, names_of, print_rows
from foliolab.device import Device, device_of, help_text, load_devices
from foliolab.errors import UsageError, require_known
from foliolab.files import TRACES
from foliolab.report.expected import check
from foliolab.report.markdown import document_table, regret_to_table
from foliolab.report.simulate import ablation_columns, does_column, print_ablations, print_regret
from foliolab.report.terminal import terminal
from foliolab.simulate.ablation import ablate, read_mechanisms
from foliolab.simulate.rows import make_rows
from foliolab.simulate.suite import AnyCase, Suite, load_suite, trace_cases
from foliolab.simulate.summary import summary_to_json, verdicts


def add_options(parser: argparse.ArgumentParser) -> None:
    text = "only these, also traces and reports; may be repeated"
    parser.add_argument("--pattern", metavar="NAME,...", action="append", help=text)
    text = "a trace as well; may be repeated"
    parser.add_argument("--trace", metavar="FILE", action="append", default=[], type=Path, help=text)
    text = f"only these (default: all with a name): {help_text()}"
    parser.add_argument("--device", metavar="NAME,...", action="append", help=text)
    text = "print the means, or the --ablation, in Markdown for a document; with --json the means; of all cells"
    parser.add_argument("--table", action="store_true", help=text)
    add_json(parser, '{"rows": [...]}')
    text = "switch each mechanism of the adaptive window off in turn, and tell how much longer programs take; this"
    text += " lasts ten minutes"
    parser.add_argument("--ablation", action="store_true", help=text)
    text = "exit with 1 if the regrets of adaptive are over their bounds, or a rival has as good a mean or worst one;"
    text += " of the whole suite"
    parser.add_argument("--check", action="store_true", help=text)


def handle(arguments: argparse.Namespace) -> int:
    suite = load_suite()
    cases = _cases(suite, arguments.pattern, arguments.trace)
    devices = _devices(arguments.device)
    if arguments.ablation and (arguments.check or arguments.json):
        raise UsageError("--ablation has no bounds, and is a table: it goes with neither --check nor --json.")
    if arguments.check and (arguments.pattern or arguments.trace or arguments.device):
        raise UsageError("--check is about the whole suite: it goes with none of --pattern, --trace and --device.")
    if arguments.table and (arguments.pattern or arguments.trace or arguments.device):
        raise UsageError("--table is about all cells: it goes with none of --pattern, --trace and --device.")
    if arguments.ablation:
        found = ablate(suite, cases, devices, read_mechanisms())
        if arguments.table:
            print(document_table([*ablation_columns(found), does_column(found)]), end="")
        else:
            print_ablations(terminal(), found)
        return 0
    rows = make_rows(suite, cases, devices)
    if arguments.json:
        print_rows("rows", summary_to_json(rows) if arguments.table else [row.to_json() for row in rows])
    elif arguments.table:
        print(regret_to_table(suite, rows), end="")
    else:
        print_regret(terminal(), rows)
    if arguments.check:
        check(verdicts(suite, rows))
    return 0


def _cases(suite: Suite, names: Iterable[str] | None, paths: Sequence[Path]) -> list[AnyCase]:
    """All patterns, traces and reports, or those with these names; in any case the traces of these files."""
    ours = sorted(TRACES.glob("*.trace"))
    traces = trace_cases([*ours, *paths])
    for case in traces:
        if not suite.places(case):
            raise UsageError(f"The files of {case.name} have {case.file_pages} pages, too few for any cell.")
    known: list[AnyCase] = [*suite.cases, *traces, *suite.reports]
    if names is None:
        return known
    wanted = [name for some in names for name in names_of("--pattern", some)]
    require_known("There is no pattern", wanted, (each.name for each in known))
    return [case for case in known if case.name in wanted or case in traces[len(ours) :]]


def _devices(wanted: Sequence[str] | None) -> list[Device]:
    """Those that are meant, all that have a name if none are; several names may stand in one word."""
    if wanted is None:
        return [*load_devices().values()]
    words = [word for some in wanted for word in ([some] if some[:1].isdecimal() else names_of("--device", some))]
    return list(dict.fromkeys(map(device_of, words)))
