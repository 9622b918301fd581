"""An inspection as one page that needs no other file and asks no other place for anything."""

from html import escape
from pathlib import PurePath

from msstab.inspection.files import printable
from msstab.inspection.result import Inspection
from msstab.inspection.shown import conclusions, facts, rounding_table, table

MEANINGS = {
    "unit": "each unit's state is multiplied by 1 + σε, ε its own at every step",
    "gain": "the whole state is multiplied by 1 + σξ, one ξ at every step",
    "weight": "each recurrent weight is multiplied by 1 + σε, anew at every step",
    "quantisation": "each recurrent weight is off by a rounding error of step σ, anew at every "
    "step",
}
"""What the noises do, for those that a reader may meet here first."""

_STYLE = """
:root { color-scheme: light dark; --pst-color-background: #ffffff; --text: #1f2328;
  --faint: #59636e; --line: #d1d9e0; }
@media (prefers-color-scheme: dark) {
  :root { --pst-color-background: #14181e; --text: #ced6dd; --faint: #9198a1; --line: #3d444d; } }
body { background: var(--pst-color-background); color: var(--text); margin: 0 auto;
  max-width: 44rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
.facts, footer { color: var(--faint); overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right; }
th:first-child { text-align: left; padding-left: 0; white-space: nowrap; }
@media (max-width: 30rem) { table { font-size: .8rem; } th, td { padding: .25rem; } }
figure { margin: 1rem 0; } dt { font-weight: 600; } dd { margin: 0 0 .5rem; }
"""


def to_html(found: Inspection) -> str:
    """Return the page, the same bytes for the same result."""
    name = escape(printable(PurePath(found.model.file).name))
    lines = "<br>\n".join(map(escape, facts(found)))
    said = "\n".join(f"<p>{escape(line)}</p>" for line in conclusions(found))
    meanings = "\n".join(
        f"<dt>{escape(own.noise)}</dt><dd>{escape(MEANINGS[own.noise])}</dd>"
        for own in found.structures
        if own.noise in MEANINGS
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'">
<title>{name}: what noise does</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>What noise does to {name}</h1>
<p class="facts">{lines}</p>
{said}
{_table("Noise", *table(found))}
<figure>{_figure(found)}</figure>
{_table("Rounding to few bits", *rounding_table(found))}
<h2>What the columns are</h2>
<dl>
<dt>Radius</dt><dd>Spectral radius of the operator that carries a deviation's second moment through
one step, median over states along the data. Below 1, a deviation dies out in the mean square.</dd>
<dt>Growth a step</dt><dd>Mean log growth of the second moment along the sequences, in nats.</dd>
<dt>Output variance</dt><dd>What noise is predicted to add to the last output, mean over sequences
and outputs; exact to second order in the noise.</dd>
<dt>Simulated</dt><dd>The same from noisy runs of the network, which shows whether the noise is
small enough for the prediction.</dd>
<dt>Error under noise</dt><dd>The error without noise plus the output variance; only where the data
have targets.</dd>
<dt>Predicted deviation, measured</dt><dd>Expected squared deviation of the last output when weights
are rounded once, or states after every step, and the one found with everything rounded to nearest.
Each row of weights, and each unit, has a step of its own.</dd>
</dl>
<h2>What the noises are</h2>
<dl>
{meanings}
</dl>
</main>
<footer>Made by msstab {escape(found.msstab)}.</footer>
</body>
</html>
"""


def _table(name: str, headings: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in headings)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"""<div class="wide" role="region" aria-label="{name}" tabindex="0">
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>"""


def _figure(found: Inspection) -> str:
    from msstab import figures

    picture = figures.inspection(
        {own.noise: own.radii for own in found.structures},
        found.levels,
        {own.noise: own.variances for own in found.structures},
        found.sigma,
        found.clean_mse,
    )
    return picture.svg
