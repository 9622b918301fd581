"""The decision tree as a picture, drawn from the structure that decides."""

import textwrap

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from msstab.evidence import Judged
from msstab.svg import BLUE, GREY, INK, Picture, style
from msstab.verdict import TREE, branch_taken

# In inches: a column of questions and, to the right, one of outcomes.
_WIDTH, _STEP, _HEIGHT = 5.2, 1.12, 0.74
_QUESTION, _OUTCOME = (0.1, 3.3), (4.0, 1.15)


def decision_tree(judged: Judged | None = None) -> Picture:
    """Draw the questions of `verdict.TREE` and their ends.

    With the evidence of a comparison, the path it takes is in colour and the figures that answer
    each question stand below it.
    """
    questions, taken = TREE[:-1], -1 if judged is None else branch_taken(judged)
    last = len(questions)
    with style():
        figure, axes = plt.subplots(figsize=(_WIDTH, _STEP * last + 0.95))
        figure.set_layout_engine("none")
        axes.set_position((0, 0, 1, 1))
        axes.set_xlim(0, _WIDTH + 0.05)
        axes.set_ylim(_STEP * last + 0.5, -0.45)
        axes.set_axis_off()
        said, rows = [], []
        for row, branch in enumerate(questions):
            y, asked = _STEP * row, row <= taken
            lines = textwrap.wrap(branch.question, 32)
            reading, answer = "", ""
            if judged is not None and asked:
                reading, answer = branch.reading(judged), "yes" if row == taken else "no"
                lines.append(reading)
            _box(axes, _QUESTION, y, "\n".join(lines), asked)
            _box(axes, _OUTCOME, y, branch.outcome.value, row == taken)
            edges = (sum(_QUESTION), y), (_OUTCOME[0], y)
            _arrow(axes, *edges, "yes", row == taken)
            middle = _QUESTION[0] + 0.5
            below = (middle, y + _STEP - _HEIGHT / 2)
            _arrow(axes, (middle, y + _HEIGHT / 2), below, "no", asked and row != taken)
            shown = f" ({reading}: {answer})" if reading else ""
            said.append(f"{branch.question}{shown} If yes, {branch.outcome.value}.")
            rows.append((branch.question, reading, answer, branch.outcome.value))
        _box(axes, (_QUESTION[0], 1.15), _STEP * last, TREE[-1].outcome.value, taken == last)
        lead = "The decision tree, the first yes ending it."
        end = f"Else {TREE[-1].outcome.value}."
        path = "" if judged is None else f" Here: {TREE[taken].outcome.value}."
        data = pd.DataFrame(rows, columns=["question", "reading", "answer", "outcome_if_yes"])
        return Picture(figure, f"{lead} {' '.join(said)} {end}{path}", data)


def _box(axes: Axes, place: tuple[float, float], y: float, text: str, taken: bool) -> None:
    """Draw a box from `place`, its left end and width, around the height y."""
    left, width = place
    colour = BLUE if taken else GREY
    box = FancyBboxPatch(
        (left, y - _HEIGHT / 2), width, _HEIGHT, boxstyle="round,pad=0,rounding_size=0.08",
        fc="none", ec=colour, lw=2.5 if taken else 1,
    )  # fmt: skip
    axes.add_patch(box)
    axes.text(
        left + width / 2, y, text, ha="center", va="center", color=INK, linespacing=1.25,
        fontweight="bold" if taken and width < 2 else "normal",
    )  # fmt: skip


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], label: str, taken: bool
) -> None:
    colour = BLUE if taken else GREY
    axes.annotate(
        "", end, start,
        arrowprops={
            "arrowstyle": "-|>", "color": colour, "lw": 2.5 if taken else 1, "shrinkA": 0,
            "shrinkB": 0, "mutation_scale": 14,
        },
    )  # fmt: skip
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if start[1] == end[1]:
        axes.text(x - 0.04, y - 0.06, label, ha="center", va="bottom", fontsize=10)
    else:
        axes.text(x + 0.1, y, label, ha="left", va="center", fontsize=10)
