# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads get worse: columns and sentences, for the terminal, for Markdown and for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from foliolab.analyse.losses import Change, Difference, Gap, Matrix, Part, VariantSummary, by_variant, make_pairs
from foliolab.campaign.sample import OK
from foliolab.errors import ChecksFailed
from foliolab.experiment.metrics import METRICS
from foliolab.report.columns import Column
from foliolab.report.figures import UNITS
from foliolab.report.view import EMULATED

Row = tuple[Difference, Difference | None]
"""What a row is about, and what the same workload gains most under the same variant."""


def title(matrix: Matrix) -> str:
    part = matrix.parts[0]  # the others are of the same scale and machine
    machine = f"{part.arch} with {part.page_size // 1024} KiB pages"
    return f"Workloads against {matrix.baseline}, scale {part.scale}, {machine}"


def make_rows(matrix: Matrix, *, everything: bool) -> list[Row]:
    """Every figure, or the one that decides for each workload and variant."""
    if everything:
        return [(difference, None) for difference in matrix.differences]
    return [(pair.deciding, pair.gain) for pair in make_pairs(matrix)]


def loss_columns(matrix: Matrix, rows: Sequence[Row]) -> list[Column]:
    found = [difference for difference, _ in rows]
    columns = [
        Column(("", "workload"), tuple(each.workload for each in found), 0, left=True),
        Column(("", "variant"), tuple(each.variant for each in found), 0, left=True),
        Column(("", "metric"), tuple(_metric(each) for each in found), 0, left=True),
        Column(("", matrix.baseline), tuple(_spell(each, each.baseline) for each in found), 1),
        Column(("", "value"), tuple(_spell(each, each.value) for each in found), 2),
        Column(("", "loss"), tuple(_loss(each, matrix.threshold) for each in found), 0),
    ]
    gains = tuple(f"{_metric(gain)} {_share(gain)}" if gain and gain != each else "" for each, gain in rows)
    if any(gains):
        columns.append(Column(("", "but gains"), gains, 3))
    columns.append(Column(("", "n"), tuple(str(each.n) for each in found), 4))
    return columns


def _metric(difference: Difference) -> str:
    metric = METRICS[difference.metric]
    return " ".join(part for part in (*metric.title, UNITS[metric.kind].name) if part)


def _spell(difference: Difference, figure: float) -> str:
    return UNITS[METRICS[difference.metric].kind].spell(figure)


def _loss(difference: Difference, threshold: float) -> str:
    """In parentheses if it is large and does not count."""
    text = _share(difference)
    passed_over = difference.change is Change.SAME and abs(difference.loss) > threshold
    return f"({text})" if passed_over else text


def _share(difference: Difference) -> str:
    if not difference.baseline and difference.value:
        return "from 0"
    return f"{difference.loss * 100:+,.{0 if difference.loss >= 10 else 1}f} %"


def remarks(matrix: Matrix) -> list[str]:
    """The sentences below the table."""
    backends = dict.fromkeys(part.group.backend for part in matrix.parts if part.group)
    return [
        *(EMULATED[backend] for backend in backends if backend in EMULATED),
        f"A loss is how much worse a metric is than {matrix.baseline}'s; gains are negative. Medians of n boots.",
        f"In parentheses: over {_percent(matrix.threshold)}, but of no account, or boots do not agree.",
    ]


def gap_lines(matrix: Matrix) -> Iterator[tuple[Gap, str]]:
    """A line for all gaps of a variant that are alike, and of all variants that have the same; with the first gap."""
    of_variant: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in matrix.gaps:
        of_variant.setdefault((gap.variant, gap.outcome, gap.sentence), []).append(gap)
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for (_, outcome, sentence), gaps in of_variant.items():
        places = ", ".join(gap.workload for gap in gaps)
        alike.setdefault((outcome, places, sentence), []).append(gaps[0])
    for (outcome, places, sentence), gaps in alike.items():
        names = ", ".join(gap.variant for gap in gaps)
        yield gaps[0], f"{names}: {outcome}: {places}. {sentence}".rstrip()


def summary_line(matrix: Matrix, summary: VariantSummary) -> str:
    """How many workloads lose and gain under a variant, and the extremes."""
    counts = [f"{summary.missing} lack{_s(summary.missing)} measurements"] if summary.missing else []
    if not summary.workloads:
        return f"{summary.variant}: {'; '.join(['nothing to compare', *counts])}."
    worse, better = len(summary.worse), len(summary.better)
    places = f"{summary.workloads} workload{'' if summary.workloads == 1 else 's'}"
    lose = f"{worse or 'none'} of {places} lose{_s(worse)} more than {_percent(matrix.threshold)}"
    gain = f"{better or 'none'} gain{_s(better)} without a loss"
    if worse:
        lose += f", worst {_place(summary.worse[0].deciding)}"
    if better:
        gain += f", most {_place(summary.better[0].deciding)}"
    return f"{summary.variant}: {'; '.join([lose, gain, *counts])}."


def _s(number: int) -> str:
    """The ending of a verb: none gains, one gains, two gain."""
    return "s" if number < 2 else ""


def _place(difference: Difference) -> str:
    return f"{difference.workload} ({_metric(difference)} {_share(difference)})"


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


def conclusion(matrix: Matrix) -> str:
    """What it comes to where there is nothing to see; else empty."""
    if not matrix.differences:
        return f"There is nothing to compare with {matrix.baseline}."
    if any(difference.change is Change.WORSE for difference in matrix.differences):
        return ""
    return "Nothing that was compared gets worse."


def to_json(matrix: Matrix) -> list[dict[str, Any]]:
    """A row for each figure, what loses most first, then one for each gap; sizes in bytes, losses as shares."""
    parts = {part.experiment.name: part for part in matrix.parts}
    return [
        *(
            {
                **_place_to_json(parts[each.experiment], each),
                "metric": each.metric,
                "baseline": each.baseline,
                "value": each.value,
                "loss": each.loss,
                "change": each.change,
                "n": each.n,
                "agreeing": each.agreeing,
                "outcome": OK,
                "sentence": "",
            }
            for each in matrix.differences
        ),
        *(
            {
                **_place_to_json(parts[gap.experiment], gap),
                **dict.fromkeys(("metric", "baseline", "value", "loss", "change")),
                "n": 0,
                "agreeing": 0,
                "outcome": gap.outcome,
                "sentence": gap.sentence,
            }
            for gap in matrix.gaps
        ),
    ]


def _place_to_json(part: Part, thing: Difference | Gap) -> dict[str, Any]:
    return {
        "workload": thing.workload,
        "variant": thing.variant,
        "experiment": thing.experiment,
        "cell": thing.cell.as_dict(),
        "scale": part.scale,
        "arch": part.arch,
        "page_size": part.page_size,
        "backend": part.group.backend if part.group else None,
    }


def check(matrix: Matrix, variants: Sequence[str]) -> None:
    """Raise ChecksFailed if one of ``variants`` loses what counts, or if a workload could not be compared."""
    judged = [summary for summary in by_variant(matrix) if summary.variant in variants]
    if not any(summary.workloads for summary in judged):
        raise ChecksFailed(f"{', '.join(variants)}: nothing could be compared with {matrix.baseline}.")
    failed = [summary for summary in judged if summary.worse or summary.missing]
    if failed:
        raise ChecksFailed(" ".join(summary_line(matrix, summary) for summary in failed))
