# SPDX-License-Identifier: GPL-2.0-only
"""The page of this checkout, which needs nothing else: every drawing whose data is there, or a sentence."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from foliolab.analyse.differences import MatrixPart
from foliolab.analyse.losses import make_matrix
from foliolab.analyse.rows import BASES, Group
from foliolab.campaign.sample import MODEL
from foliolab.experiment.spec import Experiment
from foliolab.report.page.cost import change_drawing, cost_drawing
from foliolab.report.page.forest import forest_drawing, make_lines
from foliolab.report.page.heat import heat_drawing
from foliolab.report.page.reads import reads_drawing
from foliolab.report.page.style import NARROW, WIDE, Drawing, to_svg, variables
from foliolab.report.picture import Picture
from foliolab.simulate.rows import RegretRow

_TITLE = "foliolab: what Linux reads of mapped files, and what this kernel reads"
_LEAD = (
    "A program touches single pages of a mapped file that is larger than memory; for each of them Linux reads a "
    "window. This kernel reads what has paid in that file. Where that loses, it is shown as well."
)
_JUDGED = {"adaptive": BASES, "adaptive-mglru": ("unpatched-mglru", "off-mglru")}
"""Variants with workloads, and the first of these that was measured beside them."""
_THRESHOLD = 0.02

_PHONE = 980
"""Pixels of a window up to which drawings are the narrow ones: the text of wide ones would be too small to read."""

_STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--card);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1128px;margin:0 auto;padding:24px}
h1{font-size:26px;line-height:1.2;margin:8px 0}
h2{font-size:20px;line-height:1.3;margin:0 0 12px;text-wrap:balance}
figure{margin:40px 0;padding-top:24px;border-top:1px solid var(--line)}
figcaption,.lead{max-width:80ch}
figcaption,summary,table{color:var(--muted);font-size:14px}
figcaption p{margin:8px 0}
svg{display:block;width:100%;height:auto}
.narrow{display:none;max-width:540px}
code{font:13px ui-monospace,monospace;color:var(--ink);overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;margin:8px 0}
th,td{padding:4px 16px 4px 0;text-align:left;font-variant-numeric:tabular-nums;vertical-align:top}
tr{border-bottom:1px solid var(--line)}
nav a{color:var(--adaptive);display:block;padding:2px 0}
@media(max-width:PHONEpx){main{padding:12px}.wide{display:none}.narrow{display:block}h1{font-size:22px}h2{font-size:18px}}
"""


def make_page(title: str, lead: str, drawings: Sequence[Drawing], missing: Sequence[str]) -> str:
    """HTML with every drawing for desktops and phones; ``missing`` are sentences about what is not there."""
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<!-- SPDX-License-Identifier: GPL-2.0-only -->",
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{variables()}{_STYLE.replace('PHONE', str(_PHONE))}</style>",
        "<main>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">{escape(lead)}</p>',
        "<nav>",
        *(f'<a href="#{each.name}">{_unbroken(each.title)}</a>' for each in drawings),
        "</nav>",
        *(line for each in drawings for line in _figure(each)),
        *(f"<p>{escape(sentence)}</p>" for sentence in missing),
        "</main>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _figure(drawing: Drawing) -> Iterator[str]:
    yield f'<figure id="{drawing.name}">'
    yield f"<h2>{_unbroken(drawing.title)}</h2>"
    for form, width in (("wide", WIDE), ("narrow", NARROW)):
        yield f'<div class="{form}">'
        yield to_svg(drawing.draw(width), f"{drawing.name}-{form}", drawing.title)
        yield "</div>"
    yield f"<figcaption><p>{_unbroken(drawing.remark)}</p>"
    yield f"<p><code>{escape(drawing.command)}</code> &middot; {escape(drawing.source)}</p>"
    if drawing.rows:
        yield "<details><summary>The figures</summary>"
        yield from _table(drawing.rows)
        yield "</details>"
    yield "</figcaption></figure>"


def _unbroken(text: str) -> str:
    """With figures that stay beside their per cent."""
    return escape(text).replace(" %", "&nbsp;%")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *others = rows
    yield '<div class="scroll"><table>'
    yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    for row in others:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
    yield "</table></div>"


def make_contents(
    picture: Picture | None,
    rows: Sequence[RegretRow],
    policy: str,
    groups: Sequence[Group],
    experiments: Mapping[str, Experiment],
) -> str:
    """The page. ``policy`` is the hash of what the rows were made by."""
    drawings: list[Drawing] = []
    missing: list[str] = []
    if picture:
        drawings.append(reads_drawing(picture))
    else:
        missing.append("What a kernel reads of a file was not recorded here: ./lab demo --picture FILE does.")
    source = f"the model of the page cache, policy {policy}; it repeats exactly"
    drawings += [cost_drawing(rows, source), change_drawing(rows, source), heat_drawing(rows, source)]
    forests = _forests(groups, experiments)
    if not forests:
        missing.append("Workloads were not measured here: ./lab compare does.")
    return make_page(_TITLE, _LEAD, [*drawings, *forests], missing)


def _forests(groups: Sequence[Group], experiments: Mapping[str, Experiment]) -> list[Drawing]:
    """One for each machine and experiment with workloads."""
    drawings = []
    for number, group in enumerate(groups):
        experiment = experiments.get(group.experiment)
        if not experiment or not experiment.compared or group.backend == MODEL or group.scale not in experiment.scales:
            continue
        measured = {sample.variant: sample.kernel.hash for sample in group.samples}
        scale = experiment.scale(group.scale)
        for judged, bases in _JUDGED.items():
            baseline = next((name for name in bases if name in measured), None)
            if baseline is None or judged not in measured:
                continue
            part = MatrixPart(experiment, scale.name, group.arch, group.page_size, scale.cells, (judged,), group)
            if lines := make_lines(make_matrix([part], baseline=baseline, threshold=_THRESHOLD), judged):
                what = f"{experiment.name} on {group.machine}"
                source = f"{group.backend}, scale {group.scale}, {judged}, kernel {measured[judged]}"
                words = ["./lab compare", experiment.name, f"--variant {judged} --baseline {baseline}", *group.options]
                name = f"forest-{number}-{judged}"
                drawings.append(forest_drawing(name, what, lines, baseline, source, " ".join(words)))
    return drawings
