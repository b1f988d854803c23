# SPDX-License-Identifier: GPL-2.0-only
"""Traces as the lab reads them: as the host's tools have written them, and variants by their present names."""

from dataclasses import replace
from pathlib import Path

from foliohost import trace as written
from foliohost.trace import Measured as Measured
from foliohost.trace import Trace as Trace
from foliohost.trace import TraceFile as TraceFile
from foliohost.trace import write_trace as write_trace
from foliolab.renamed import present_name


def read_trace(path: Path) -> Trace:
    """The trace in a file. BadTrace if there is none that is whole and of this version."""
    trace = written.read_trace(path)
    return replace(trace, measured=tuple(replace(each, variant=present_name(each.variant)) for each in trace.measured))
