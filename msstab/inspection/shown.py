"""An inspection in words and as a table in the terminal."""

import math

from msstab import terminal
from msstab.inspection.files import printable
from msstab.inspection.result import Inspection, Structure

TOLERANCE = 0.1
"""Largest share by which a simulation may differ from a prediction that it confirms."""

MISSING = "\N{EM DASH}"


def facts(found: Inspection) -> list[str]:
    """Return lines that say which network ran on which data, and what had to be assumed."""
    model, data = found.model, found.data
    layers = "1 layer" if model.layers == 1 else f"{model.layers} layers"
    part = f"{data.sequences} of {data.of}" if data.sequences < data.of else str(data.of)
    return [
        f"{model.cell}, {layers} of {model.hidden} hidden units, {_count(model.inputs, 'input')}, "
        f"{_count(model.outputs, 'output')} through {model.readout}",
        f"{part} sequence{'' if part == '1' else 's'} of {data.steps} steps, "
        f"noise level {found.sigma:g}",
        *(f"Note: {note}" for note in model.notes),
    ]


def table(found: Inspection) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row of texts for each noise structure."""
    headings = ["Noise", "Radius", "Growth a step", "Output variance", "Simulated"]
    if found.clean_mse is not None:
        headings.append("Error under noise")
    rows = []
    for own in found.structures:
        numbers = [own.radius, own.growth_rate, own.output_variance]
        numbers += [own.simulated_variance, own.noisy_mse]
        rows.append([own.noise, *map(_text, numbers[: len(headings) - 1])])
    return headings, rows


def rounding_table(found: Inspection) -> tuple[list[str], list[list[str]]]:
    """Return headings, and a row of texts for each kind of rounding."""
    headings = ["Rounded", "Predicted deviation", "Measured"]
    if found.clean_mse is not None:
        headings.append("Error predicted")
    rows = []
    for own in found.roundings:
        numbers = [own.predicted_deviation, own.measured_deviation, own.rounded_mse]
        rows.append([f"{own.rounded}, {own.bits} bits", *map(_text, numbers[: len(headings) - 1])])
    return headings, rows


def conclusions(found: Inspection) -> list[str]:
    """Return sentences on stability, on whether the theory holds, and on what noise costs."""
    sentences = [_stability(found.structures), *_agreement(found.structures)]
    known = [
        (s.output_variance, s.noise) for s in found.structures if s.output_variance is not None
    ]
    if not known:
        return [*sentences, "The predicted variances are not finite: the noise is too large."]
    (low, mildest), (high, harshest) = min(known), max(known)
    if found.clean_mse:
        low, high = (1 + value / found.clean_mse for value in (low, high))
        sentences.append(
            f"The error without noise is {_text(found.clean_mse)}; noise multiplies it by "
            f"{low:.3g} ({mildest}) to {high:.3g} ({harshest})."
        )
    elif found.clean_variance:
        low, high = (100 * value / found.clean_variance for value in (low, high))
        sentences.append(
            f"The outputs' own variance over the sequences is {_text(found.clean_variance)}; noise "
            f"adds {low:.3g}% ({mildest}) to {high:.3g}% ({harshest}) of it."
        )
    return sentences


def print_table(found: Inspection) -> None:
    """Print facts, tables and conclusions, as wide as the terminal."""
    from rich.text import Text

    console = terminal.make_console()
    for line in (printable(found.model.file), *facts(found)):
        console.print(Text(line))
    for headings, rows in (table(found), rounding_table(found)):
        terminal.print_table(headings, rows, numbers=range(1, len(headings)), console=console)
    for line in conclusions(found):
        console.print(Text(line))


def _stability(structures: list[Structure]) -> str:
    stable = [s.noise for s in structures if s.radius is not None and s.radius < 1]
    unstable = [s.noise for s in structures if s.radius is not None and s.radius >= 1]
    unknown = [s.noise for s in structures if s.radius is None]
    parts = [
        (stable, "deviations die out in the mean square (radius below 1)"),
        (unstable, "deviations do not die out in the mean square (radius 1 or more)"),
        (unknown, "no accurate radius was found"),
    ]
    said = [f"{what} under {_list(names)} noise" for names, what in parts if names]
    return f"At the median state, {'; '.join(said)}."


def _agreement(structures: list[Structure]) -> list[str]:
    ratios = {
        s.noise: s.simulated_variance / s.output_variance
        for s in structures
        if s.output_variance and s.simulated_variance is not None
    }
    holds = [noise for noise, ratio in ratios.items() if abs(ratio - 1) <= TOLERANCE]
    fails = [f"{noise} ({r:.2f} of it)" for noise, r in ratios.items() if noise not in holds]
    within = f"within {100 * TOLERANCE:g}%"
    sentences = []
    if holds:
        sentences.append(
            f"A simulation confirms the predicted variance {within} under {_list(holds)} noise."
        )
    if fails:
        sentences.append(
            f"A simulation does not confirm the predicted variance {within} under {_list(fails)} "
            "noise: there this level is too high for a theory of small noise."
        )
    return sentences


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _text(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.3g}"
