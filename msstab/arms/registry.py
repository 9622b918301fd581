"""What an arm is, and the arms by name."""

import hashlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from msstab import files, tracks
from msstab.cells import Parameters, Workspace
from msstab.noise import Noise
from msstab.study import Study, declare, declare_check, declare_opener, nearest

N_STRENGTHS = 3
"""Strengths of a default grid, the same for all arms, so that their tuning budgets are equal."""


class Step(NamedTuple):
    """What an arm sees at one optimiser step of M models.

    `inputs` (T, M, D, B), `targets` (M, KO, B) of the last K steps, and the `states` (T, M, S, B)
    and `outputs` (M, KO, B) of the clean run, both differentiable in `parameters`; the `noise`
    structure and its level `sigma` that the arm may assume; `target` where a hinge opens; a random
    stream for each model; and `memory`, which the arm may fill and finds again at the next step.
    """

    parameters: Parameters
    inputs: Tensor
    targets: Tensor
    states: Tensor
    outputs: Tensor
    noise: Noise
    sigma: float
    target: float
    streams: Sequence[np.random.Generator]
    memory: dict[str, Tensor]


class Penalty(NamedTuple):
    """A penalty (M,) at strength 1, and the share (M,) of its samples on which it is active.

    A model with an active share of 0 gets no gradient from the penalty.
    """

    value: Tensor
    active: Tensor


class Forward(NamedTuple):
    """What an arm that replaces the training run itself is given: see `Step`.

    `strengths` (M,); `space` is memory for whole sequences of these shapes, a workspace a layer;
    `steps` K, the last ones whose outputs count.
    """

    parameters: Parameters
    inputs: Tensor
    space: tuple[Workspace, ...]
    noise: Noise
    sigma: float
    strengths: Tensor
    streams: Sequence[np.random.Generator]
    steps: int = 1


Penalise = Callable[[Step], Penalty]


@dataclass(frozen=True)
class Arm:
    """One way to train: a penalty added to the loss, or a `run` to outputs (M, KO, B) of its own.

    `strengths` is the grid that tuning tries unless a Study names its own. `closed` says that
    forecasts are fed back as inputs, which not every track allows. `source` identifies the code of
    an arm that is not part of the package.
    """

    name: str
    strengths: tuple[float, ...]
    penalise: Penalise | None = None
    run: Callable[[Forward], Tensor] | None = None
    source: str = field(default="", repr=False)
    closed: bool = False

    def __post_init__(self) -> None:
        """Refuse a grid that would tune this arm more or less than the others."""
        grid = self.strengths
        rising = all(a < b for a, b in itertools.pairwise(grid))
        if len(grid) != N_STRENGTHS or grid[0] != 0 or not rising:
            raise ValueError(
                f"strengths {grid} of arm {self.name}: give {N_STRENGTHS} values that start with 0 "
                "and increase, so that every arm tries equally many"
            )

    @property
    def summary(self) -> str:
        """The first line of what the arm's function says of itself."""
        return (inspect.getdoc(self.penalise or self.run) or "").partition("\n")[0]

    def __call__(self, step: Step) -> Penalty:
        """Return the penalty of a step."""
        assert self.penalise is not None
        return self.penalise(step)


ARMS: dict[str, Arm | None] = {"baseline": None}
"""Arms by name; the baseline adds nothing."""

declare("arm", "baseline")


def arm(*, strengths: tuple[float, ...], closed: bool = False) -> Callable[[Penalise], Arm]:
    """Register a function from a Step to a Penalty as an arm of the same name (a decorator).

    `strengths` are those that tuning tries by default: 0, and two more; `closed` as in `Arm`.
    Raises ValueError for another number, or for the name of one of the package's own arms.
    """

    def register(function: Penalise) -> Arm:
        name, source = function.__name__, _source(function)
        made = Arm(name, strengths, penalise=function, source=source, closed=closed)
        # A file opened by `FILE.py:FUNCTION` is no module that other names could be looked up in.
        return add(made) if function.__module__ in sys.modules else made

    return register


def add(made: Arm) -> Arm:
    """Make an arm known by its name, here and in a Study; a reader's arm may be defined anew."""
    known = ARMS.get(made.name)
    if made.name in ARMS and not (known and known.source):
        raise ValueError(f"{made.name} is one of the package's own arms; take another name")
    ARMS[made.name] = made
    declare("arm", made.name)
    return made


def find(name: str) -> Arm | None:
    """Return an arm by its name, or by `FILE.py:FUNCTION`; None for the baseline.

    Raises ValueError for an unknown name, or a file that has no such arm.
    """
    if name not in ARMS and _open(name) is None:
        raise ValueError(f"no arm {name}; {nearest(name, ARMS)}")
    return ARMS[name]


def _open(name: str) -> str | None:
    """Read the arm `FILE.py:FUNCTION`; return None for a name of another form."""
    path, colon, function = name.rpartition(":")
    if not (colon and path.endswith(".py")):
        return None
    file = files.find(path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    # The module stays out of sys.modules, so that its functions travel to other processes whole.
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error
    found = {key: value for key, value in vars(module).items() if isinstance(value, Arm)}
    if function not in found:
        raise ValueError(f"no arm {function} in {path}; {nearest(function, found)}")
    source = hashlib.sha256(file.read_bytes()).hexdigest()
    own = found[function]
    ARMS[name] = replace(own, name=name, source=source)
    return name


declare_opener("arm", _open)


def _require_closed_loop(study: Study) -> None:
    """Refuse an arm that feeds forecasts back on a track whose forecasts are no next inputs."""
    for name in study.arms:
        own = ARMS.get(name)
        if own and own.closed and not tracks.of(study).closed:
            raise ValueError(
                f"arm {name} feeds forecasts back as the next inputs, but track {study.track} "
                "does not forecast its next input; leave the arm out, or take one of the tracks "
                f"{', '.join(known for known, made in tracks.TRACKS.items() if made.closed)}"
            )


declare_check(_require_closed_loop)


def _source(function: Penalise) -> str:
    if function.__module__.startswith("msstab."):
        return ""
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
