# SPDX-License-Identifier: GPL-2.0-only
"""Which workloads get worse: columns and sentences, for the terminal, for Markdown and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from foliolab.analyse.differences import Change, Difference, Gap
from foliolab.analyse.losses import Matrix, Pair, VariantSummary, by_chance, by_variant
from foliolab.analyse.paired import CHANCE
from foliolab.campaign.sample import OK
from foliolab.errors import ChecksFailed
from foliolab.experiment.metrics import METRICS
from foliolab.grouped import grouped
from foliolab.report.columns import UNITS, Column, with_unit
from foliolab.report.view import MadeBy, origin, time_remark


def title(matrix: Matrix) -> str:
    part = matrix.parts[0]  # the others are of the same scale and machine
    machine = f"{part.arch} with {part.page_size // 1024} KiB pages"
    return f"Workloads against {matrix.baseline}, scale {part.scale}, {machine}"


def loss_columns(matrix: Matrix, rows: Sequence[Pair]) -> list[Column]:
    found = [row.deciding for row in rows]
    columns = [
        Column(("", "workload"), tuple(each.workload for each in found), 0, left=True),
        Column(("", "variant"), tuple(each.variant for each in found), 0, left=True),
        Column(("", "metric"), tuple(_metric(each) for each in found), 0, left=True),
        Column(("", matrix.baseline), tuple(_spell(each, each.baseline) for each in found), 2),
        Column(("", "value"), tuple(_spell(each, each.value) for each in found), 3),
        Column(("", "loss"), tuple(_loss(each, matrix.threshold) for each in found), 0),
        Column(("", "95 %"), tuple(_interval(each) for each in found), 4),
        Column(("", "verdict"), tuple(_verdict(each) for each in found), 1),
    ]
    others = (row.gain if row.gain != row.deciding else None for row in rows)
    gains = tuple(f"{_metric(gain)} {_share(gain)}" if gain else "" for gain in others)
    if any(gains):
        columns.append(Column(("", "but gains"), gains, 5))
    columns.append(Column(("", "n"), tuple(str(each.n) for each in found), 6))
    return columns


def _metric(difference: Difference) -> str:
    return with_unit(METRICS[difference.metric])


def _spell(difference: Difference, figure: float) -> str:
    return UNITS[METRICS[difference.metric].kind].spell(figure)


def _loss(difference: Difference, threshold: float) -> str:
    """In parentheses if it is passed over."""
    text = _share(difference)
    return f"({text})" if passed_over(difference, threshold) else text


def passed_over(difference: Difference, threshold: float) -> bool:
    """Whether it is large, but was not shown, or does not count."""
    return difference.change not in (Change.WORSE, Change.BETTER) and abs(difference.loss) > threshold


def _share(difference: Difference) -> str:
    return "from 0" if not difference.baseline and difference.value else f"{_signed(difference.loss)} %"


def _signed(share: float) -> str:
    return f"{share * 100:+,.{0 if share >= 10 else 1}f}"


def _interval(difference: Difference) -> str:
    if difference.repeats:
        return "exact"
    return " to ".join(map(_signed, difference.interval)) if difference.interval else "-"


def _verdict(difference: Difference) -> str:
    """With how far from the loss the interval ends beside what is the same."""
    visible = difference.smallest_visible
    return f"same to {visible * 100:.1f} %" if difference.change is Change.SAME and visible else difference.change.value


def remarks(matrix: Matrix) -> list[str]:
    times = dict.fromkeys(time_remark(part.group) for part in matrix.parts if part.group)
    return [
        *filter(None, times),
        f"A loss is how much worse a metric is than {matrix.baseline}'s; gains are negative. Figures are medians of n"
        " boots, losses medians of what pairs of boots differ by.",
        *legend(matrix),
        f"In parentheses: over {_percent(matrix.threshold)}, but of no account, or not shown at this n;"
        f" {matrix.boots_needed} boots can show any one.",
        again_line(matrix),
    ]


def legend(matrix: Matrix) -> list[str]:
    """What the words of the table mean."""
    varying = sum(not each.repeats for each in matrix.differences)
    return [
        "95 %: interval of the loss, by itself (Wilcoxon); exact: it repeats exactly. Worse, better: false-discovery"
        f" rate {CHANCE * 100:g} % over the {varying} figures that do not (Benjamini-Hochberg).",
        "Same to x: the interval ends no farther than x from the loss.",
    ]


def origins(matrix: Matrix, made_by: MadeBy | None) -> list[str]:
    """For each part how often, of which kernels, and by which command it was measured."""
    sentences = []
    for part in matrix.parts:
        if part.group:
            mine = [each for each in matrix.differences if each.experiment == part.experiment.name]
            shown = [(each.cell, name) for each in mine for name in (each.variant, matrix.baseline)]
            command = made_by(part.group, shown) if made_by else ""
            sentences.append(origin(part.group, (each.n for each in mine), command))
    return sentences


def again_line(matrix: Matrix) -> str:
    """What chance does: how often the baseline differs from itself."""
    if not matrix.again:
        return f"A/A: there is no second arm of {matrix.baseline}: nothing says what chance does here."
    repeating = sum(each.repeats or (each.n == 1 and not each.loss) for each in matrix.again)
    line = f"A/A: {matrix.baseline} measured twice: of {len(matrix.again)} figures {repeating} repeat exactly"
    varying, alarms = by_chance(matrix.again)
    if varying:
        called = sum(each.p_corrected is not None and each.p_corrected <= CHANCE for each in matrix.again)
        share = f"{alarms} of {varying} others ({alarms / varying * 100:.1f} %)"
        line += f", {share} differ at {CHANCE * 100:g} % each, {called or 'none'} after correction"
    return f"{line}; too few boots to tell others." if repeating + varying < len(matrix.again) else f"{line}."


def gap_lines(matrix: Matrix) -> Iterator[tuple[Gap, str]]:
    """A line for all gaps of a variant that are alike, and of all variants that have the same; with the first gap."""
    of_variant = grouped(matrix.gaps, lambda gap: (gap.variant, gap.outcome, gap.sentence)).values()

    def places(gaps: Sequence[Gap]) -> str:
        return ", ".join(gap.workload for gap in gaps)

    for alike in grouped(of_variant, lambda gaps: (gaps[0].outcome, places(gaps), gaps[0].sentence)).values():
        first = alike[0][0]
        names = ", ".join(gaps[0].variant for gaps in alike)
        yield first, f"{names}: {first.outcome}: {places(alike[0])}. {first.sentence}".rstrip()


def summary_line(matrix: Matrix, summary: VariantSummary) -> str:
    """How many workloads lose and gain under a variant, the extremes, and how much is not known."""
    counts = [f"{summary.missing} lack{_s(summary.missing)} measurements"] if summary.missing else []
    if not summary.workloads:
        return f"{summary.variant}: {'; '.join(['nothing to compare', *counts])}."
    worse, suspected, better = len(summary.worse), len(summary.suspected), len(summary.better)
    places = f"{summary.workloads} workload{'' if summary.workloads == 1 else 's'}"
    are = "is" if worse < 2 else "are"
    lose = f"{worse or 'none'} of {places} {are} shown to lose more than {_percent(matrix.threshold)}"
    gain = f"{better or 'none'} gain{_s(better)} without a loss"
    if worse:
        lose += f", worst {_place(summary.worse[0].deciding)}"
    if better:
        gain += f", most {_place(summary.better[0].deciding)}"
    may = [f"{suspected} may, worst {_place(summary.suspected[0].deciding)}"] if suspected else []
    unknown = [_unknown(summary.unknown)] if summary.unknown else []
    return f"{summary.variant}: {'; '.join([lose, *may, gain, *unknown, *counts])}."


def _unknown(figures: int) -> str:
    return f"{figures} figure{' is' if figures == 1 else 's are'} not shown either way"


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
    changes = [difference.change for difference in matrix.differences]
    if Change.WORSE in changes or Change.SUSPECTED in changes:
        return ""
    unknown = changes.count(Change.NOT_SHOWN)
    if unknown:
        return f"Nothing that was compared is shown to get worse; {_unknown(unknown)}."
    return "Nothing that was compared gets worse."


def to_json(matrix: Matrix) -> dict[str, list[dict[str, Any]]]:
    """Rows: one for each figure, what loses most first, then one for each gap; and those of the baseline beside itself.

    Sizes are in bytes, losses and whatever bounds them are shares.
    """
    parts = {part.experiment.name: part for part in matrix.parts}
    blank = dict.fromkeys([*(field.name for field in fields(Difference)), "smallest_visible"])

    def row(thing: Difference | Gap) -> dict[str, Any]:
        part = parts[thing.experiment]
        figures: dict[str, Any] = {"outcome": OK, "sentence": ""}
        figures |= {"smallest_visible": thing.smallest_visible} if isinstance(thing, Difference) else {"n": 0}
        place = {"scale": part.scale, "arch": part.arch, "page_size": part.page_size, "cell": thing.cell.as_dict()}
        backend = part.group.backend if part.group else None
        return {**blank, **figures, **asdict(thing), **place, "backend": backend}

    rows = [*map(row, matrix.differences), *map(row, matrix.gaps)]
    return {"rows": rows, "again": [*map(row, matrix.again)]}


def check(matrix: Matrix, variants: Sequence[str]) -> None:
    """Raise ChecksFailed if one of ``variants`` loses what counts, or may at so few boots, or could not be compared."""
    judged = [summary for summary in by_variant(matrix) if summary.variant in variants]
    if idle := [name for name in variants if not any(each.variant == name and each.workloads for each in judged)]:
        raise ChecksFailed(f"{', '.join(idle)}: nothing could be compared with {matrix.baseline}.")
    failed = [summary for summary in judged if summary.worse or summary.suspected or summary.missing]
    if failed:
        lines = [summary_line(matrix, summary) for summary in failed]
        if boots := [pair.deciding.n for summary in failed for pair in summary.suspected]:
            more = f"--repetitions {matrix.boots_needed}" if min(boots) < matrix.boots_needed else "More --repetitions"
            lines.append(f"{more} can tell what may lose.")
        raise ChecksFailed(" ".join(lines))
