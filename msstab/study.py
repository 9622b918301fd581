"""The immutable, validated parameters of a run; its profiles and its stable key."""

import ast
import difflib
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationError

KNOWN_NAMES: dict[str, list[str]] = {"track": [], "cell": [], "noise": [], "arm": []}
"""What a Study may name, by kind; each room that defines such a thing declares it on import."""

OPENERS: dict[str, Callable[[str], str | None]] = {}
"""By kind, what opens a name that stands for something of the reader's own, such as a file.

Returns the name to be used, or None for a name of another form; raises ValueError for one that
cannot be used.
"""

CHECKS: list[Callable[["Study"], None]] = []
"""What else must hold of a Study whose names are known; raises ValueError where it does not."""

_KINDS = {
    "survey_arms": "arm",
    "survey_tracks": "track",
    "survey_cells": "cell",
    "survey_structures": "noise",
}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=2, le=512)]
Bits = Annotated[int, Field(ge=2, le=16)]
Horizons = Annotated[int, Field(ge=1, le=64)]

MOST = 1_000_000
"""Most sequences, seeds or draws: more could be typed, but not held."""


class StudyError(ValueError):
    """A parameter that cannot be used, described for the person who gave it."""

    def _render_traceback_(self) -> list[str]:
        # A notebook shows this, and not the code that read the parameter.
        return [f"StudyError: {self}"]


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name a wrong one probably meant, as a clause to append to an error."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}Known: {', '.join(names) or 'none'}."


class Study(BaseModel):
    """Everything that decides a run's numbers; the defaults are the `full` profile.

    The description of each field is the comment beside it in every chapter's parameters cell.
    Raises `pydantic.ValidationError`; `parse` turns that into a `StudyError` a person can read.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    track: str = Field("dynamics", description="data the networks learn")
    cell: str = Field("gru", description="recurrent cell")
    hidden: int = Field(32, ge=2, le=512, description="hidden units")
    layers: int = Field(1, ge=1, le=8, description="recurrent layers on top of each other")
    epochs: int = Field(12, ge=1, le=10_000, description="passes over the training sequences")
    batch: int = Field(32, ge=1, le=MOST, description="sequences per optimiser step")
    n_train: int = Field(400, ge=8, le=MOST, description="training sequences")
    n_validation: int = Field(
        400, ge=8, le=MOST, description="validation sequences, for selection only"
    )
    n_test: int = Field(400, ge=8, le=MOST, description="test sequences")
    arms: tuple[str, ...] = Field(
        (
            *("baseline", "spectral_proxy", "lifted_radius", "moment_growth"),
            *("output_variance", "noise_injection", "weight_decay"),
            *("jacobian_norm", "gradient_flossing", "delta_iss", "pascanu_omega"),
        ),
        description="arms compared: the baseline, the one that is judged, others",
    )
    learning_rates: tuple[Positive, ...] = Field(
        (0.001, 0.003, 0.01), description="ladder of Adam's learning rate, extended if need be"
    )
    strengths: tuple[NonNegative, ...] = Field(
        (), description="penalty strengths tried, 0 among them; empty: each arm's own"
    )
    noise: str = Field("unit", description="structure of the multiplicative noise")
    sigma: NonNegative = Field(0.2, description="noise level the penalty assumes in training")
    target: Positive = Field(1.0, description="second-moment radius at which the hinge opens")
    sigma_test: NonNegative = Field(
        0.2, description="noise level of the noisy test; the step of quantisation"
    )
    sigma_grid: tuple[Positive, ...] = Field(
        (0.05, 0.1, 0.2, 0.4), description="noise levels at which errors under noise are compared"
    )
    draws: int = Field(64, ge=2, le=MOST, description="noise draws per sequence in the noisy test")
    mechanism_sequences: int = Field(
        64, ge=2, le=MOST, description="test sequences on which the mechanism is measured"
    )
    tuning_seeds: int = Field(
        8, ge=2, le=MOST, description="seeds that choose each arm's configuration"
    )
    seeds: int = Field(
        0,
        ge=0,
        le=MOST,
        description="paired seeds that confirm, other than tuning's; 0: as planned",
    )
    max_seeds: int = Field(1024, ge=2, le=MOST, description="most seeds that the plan may ask for")
    power: float = Field(
        0.9, gt=0.5, lt=1, description="power with which the plan detects the effect of interest"
    )
    other_seeds: int = Field(
        64, ge=2, le=MOST, description="paired seeds for the arms beside the one that is judged"
    )
    survey_seeds: int = Field(
        32, ge=2, le=MOST, description="paired seeds of each comparison in part II"
    )
    survey_tuning_seeds: int = Field(
        4, ge=2, le=MOST, description="seeds that choose each arm's configuration in part II"
    )
    survey_arms: tuple[str, ...] = Field(
        ("output_variance",), description="arms that part II compares beside the judged one"
    )
    survey_tracks: tuple[str, ...] = Field(
        (
            *("dynamics", "lorenz_state", "van_der_pol", "henon", "fitzhugh_nagumo", "duffing"),
            *("two_tank", "ricker", "ecg", "sunspots", "el_nino"),
        ),
        description="tracks that are compared",
    )
    survey_cells: tuple[str, ...] = Field(
        ("gru", "lstm", "rnn"), description="cells that are compared"
    )
    survey_sizes: tuple[Size, ...] = Field(
        (8, 16, 32, 64, 128), description="numbers of hidden units that are compared"
    )
    survey_structures: tuple[str, ...] = Field(
        ("unit", "gain", "weight", "quantisation"), description="noises that are compared"
    )
    bits: tuple[Bits, ...] = Field((8, 6, 4, 3), description="bits of quantised weights and states")
    free_runs: tuple[Horizons, ...] = Field(
        (1, 4, 16), description="lengths of free runs, in lengths of the input window"
    )
    window: int = Field(
        32, ge=1, le=4096, description="for a series of your own: rows that go into a forecast"
    )
    horizon: int = Field(
        1, ge=0, le=4096, description="for a series of your own: rows from the last input to it"
    )
    input_columns: tuple[str, ...] = Field(
        (), description="for a series of your own: columns that go in; empty: all"
    )
    target_columns: tuple[str, ...] = Field(
        (), description="for a series of your own: columns to be forecast; empty: as go in"
    )
    study_seed: int = Field(0, ge=0, lt=2**63, description="root of every random number")
    alpha: float = Field(0.05, gt=0, lt=0.5, description="two-sided level of every test")
    sesoi: float = Field(
        0.05, gt=0, lt=1, description="smallest effect of interest, as a share of the error"
    )
    dtype: Literal["float32", "float64"] = Field("float32", description="training precision")
    device: str = Field("cpu", description="where networks train")

    @pydantic.field_validator("track", "cell", "noise")
    @classmethod
    def _known(cls, value: str, info: pydantic.ValidationInfo) -> str:
        return _known_name(str(info.field_name), value)

    @pydantic.field_validator("arms")
    @classmethod
    def _known_arms(cls, arms: tuple[str, ...]) -> tuple[str, ...]:
        arms = tuple(_known_name("arm", arm) for arm in arms)
        if len(arms) < 2 or arms[0] != "baseline" or len(set(arms)) != len(arms):
            raise ValueError("name the baseline first and then at least one other arm, each once")
        return arms

    @pydantic.field_validator("survey_arms", "survey_tracks", "survey_cells", "survey_structures")
    @classmethod
    def _each_known(cls, values: tuple[str, ...], info: pydantic.ValidationInfo) -> tuple[str, ...]:
        return tuple(_known_name(_KINDS[str(info.field_name)], value) for value in values)

    @pydantic.field_validator(
        "survey_tracks", "survey_cells", "survey_sizes", "survey_structures", "bits", "free_runs"
    )
    @classmethod
    def _some_and_each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if not values or len(set(values)) != len(values):
            raise ValueError("give at least one, each once")
        return values

    @pydantic.field_validator("learning_rates", "strengths")
    @classmethod
    def _increasing(
        cls, values: tuple[float, ...], info: pydantic.ValidationInfo
    ) -> tuple[float, ...]:
        if info.field_name == "strengths" and not values:
            return values
        if len(values) < 2 or any(b <= a for a, b in itertools.pairwise(values)):
            raise ValueError("give at least two values, in increasing order")
        if info.field_name == "strengths" and values[0] != 0:
            raise ValueError("start with 0, so that tuning may decide against the penalty")
        return values

    @pydantic.field_validator("sigma_grid")
    @classmethod
    def _rising(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        if not levels or any(b <= a for a, b in itertools.pairwise(levels)):
            raise ValueError("give at least one level, in increasing order")
        return levels

    @pydantic.field_validator("seeds")
    @classmethod
    def _some_or_planned(cls, seeds: int) -> int:
        if seeds == 1:
            raise ValueError("give at least 2, or 0 for as many as the plan asks for")
        return seeds

    @pydantic.field_validator("device")
    @classmethod
    def _of_torch(cls, device: str) -> str:
        if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", device):
            raise ValueError("give cpu, cuda, or one of several, such as cuda:1")
        return device

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "Study":
        if self.batch > self.n_train:
            raise ValueError(f"batch = {self.batch} exceeds n_train = {self.n_train}")
        if self.mechanism_sequences > self.n_test:
            raise ValueError(
                f"mechanism_sequences = {self.mechanism_sequences} exceeds n_test = {self.n_test}"
            )
        for check in CHECKS:
            check(self)
        return self

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits that name these parameters, the same on every machine."""
        return digest(self.model_dump(mode="json"))[:12]


PROFILES: dict[str, dict[str, Any]] = {
    "quick": {
        "arms": ("baseline", "spectral_proxy", "output_variance", "noise_injection"),
        "hidden": 16,
        "epochs": 10,
        "n_validation": 128,
        "n_test": 128,
        "learning_rates": (0.01, 0.03),
        "sigma_grid": (0.1, 0.2, 0.4),
        "draws": 32,
        "mechanism_sequences": 32,
        "tuning_seeds": 4,
        "seeds": 8,
        "other_seeds": 8,
        "survey_seeds": 6,
        "survey_tuning_seeds": 2,
        "survey_arms": (),
        "survey_tracks": ("henon", "el_nino"),
        "survey_cells": ("gru",),
        "survey_sizes": (8, 16),
        "survey_structures": ("unit", "weight"),
        "bits": (8, 4),
        "free_runs": (1, 4),
    },
    "stage2": {"seeds": 8, "other_seeds": 8},
    "full": {},
}
"""What each profile changes in the defaults: `stage2` has the original report's scale."""


_INJECTED = "# Parameters"  # how papermill begins the cell it injects


def profile(name: str) -> Study:
    """Return the Study of a named profile; raise StudyError for an unknown name."""
    if name not in PROFILES:
        raise StudyError(f"profile {name} is not known; {nearest(name, PROFILES)}")
    return Study(**PROFILES[name])


def parse(parameters: Mapping[str, object], base: Study | None = None) -> Study:
    """Build a Study from parameters given by a person, over `base` (default: the defaults).

    Values may be typed (from a notebook or YAML) or text (from a command line); text is read
    as the parameter's own type, and a sequence may also be written `a,b`. Raises StudyError
    that names each unknown parameter with the nearest valid one, and each value that is not
    allowed with what is.
    """
    unknown = [name for name in parameters if name not in Study.model_fields]
    if unknown:
        lines = [f"{n} is not a parameter; {nearest(n, Study.model_fields)}" for n in unknown]
        raise StudyError("\n".join(lines))
    given = {name: _typed(name, value) for name, value in parameters.items()}
    values = {**(base.model_dump() if base else {}), **given}
    try:
        return Study(**values)
    except ValidationError as error:
        raise StudyError("\n".join(_explain(e) for e in error.errors())) from None


def notebook_study(namespace: Mapping[str, Any]) -> Study:
    """Build the Study of a chapter from its parameters cell and the cell papermill injected.

    `namespace` is the notebook's `globals()`. In the run of pure assignment cells right before
    the caller, those that papermill injected or that assign a parameter must assign nothing but
    parameters, so that a misspelt `-p hiden 64`, which papermill injects without complaint, stops
    here. Raises StudyError.
    """
    names = [name for name in Study.model_fields if name in namespace]
    for source in reversed(namespace.get("In", [])[:-1]):
        assigned = _assigned_names(source)
        if assigned is None:
            break
        if source.startswith(_INJECTED) or any(name in Study.model_fields for name in assigned):
            names += [name for name in assigned if name not in names]
    return parse({name: namespace[name] for name in names if name in namespace})


def parameters_cell() -> str:
    """Return the source of the parameters cell that every chapter carries."""
    # Papermill reads a parameter from one line, however long.
    lines = ["# fmt: off"]
    for name, value in Study().model_dump(mode="json").items():
        literal = json.dumps(value) if isinstance(value, str | list) else repr(value)
        # A type checker cannot tell what an empty list holds.
        item = "str" if _holds_text(name) else "float"
        hint = f": list[{item}]" if value == [] else ""
        lines.append(f"{name}{hint} = {literal}  # {Study.model_fields[name].description}")
    return "\n".join(lines)


def digest(content: object) -> str:
    """Return the SHA-256 of anything JSON can hold, in a canonical form."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def declare(kind: str, name: str) -> None:
    """Make a name valid in a Study: called by the room that defines the track, cell or arm."""
    if name not in KNOWN_NAMES[kind]:
        KNOWN_NAMES[kind].append(name)


def declare_opener(kind: str, opener: Callable[[str], str | None]) -> None:
    """Let a Study name things of the reader's own; see `OPENERS`."""
    OPENERS[kind] = opener


def declare_check(check: Callable[[Study], None]) -> None:
    """Let a room refuse parameters that do not go together; see `CHECKS`."""
    CHECKS.append(check)


def _known_name(kind: str, name: str) -> str:
    """Return the name to be used; raise ValueError for one that is not known."""
    if not KNOWN_NAMES[kind]:
        raise RuntimeError(f"no {kind} is declared yet: import msstab.experiment first")
    if name in KNOWN_NAMES[kind]:
        return name
    try:
        opened = OPENERS[kind](name) if kind in OPENERS else None
    except SystemExit:
        raise ValueError(f"{name} ends the program when its file is read") from None
    if opened is None:
        raise ValueError(f"no such {kind}; {nearest(name, KNOWN_NAMES[kind])}")
    return opened


def _typed(name: str, value: object) -> object:
    """Read text as the field's type; leave it as text where that fails, for strict validation."""
    annotation = Study.model_fields[name].annotation
    if annotation is str:
        return value
    if get_origin(annotation) is tuple:
        if isinstance(value, str):
            text = value.strip().strip("[]()")
            value = text.split(",") if text else []
        if not isinstance(value, list | tuple):
            return value
        items = map(_literal, value)
        return tuple(map(_text, items, value)) if _holds_text(name) else tuple(items)
    return _literal(value)


def _holds_text(name: str) -> bool:
    """Say whether a parameter is a sequence of names."""
    return get_args(Study.model_fields[name].annotation)[:1] == (str,)


def _text(read: object, given: object) -> object:
    """Keep a name that looks like a number as it was given."""
    return given.strip() if isinstance(given, str) and not isinstance(read, str) else read


def _literal(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value.strip()


def _explain(error: Any) -> str:
    """One line for one pydantic error: the parameter, what was given, what is allowed."""
    message = " ".join(error["msg"].removeprefix("Value error, ").split())
    if not error["loc"]:
        return str(message)
    return f"{error['loc'][0]} = {error['input']!r}: {message[0].lower()}{message[1:]}"


def _assigned_names(source: str) -> list[str] | None:
    """Return the names a cell assigns, or None unless it holds nothing but assignments."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    names = []
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            return None
        if not all(isinstance(target, ast.Name) for target in targets):
            return None
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names or None
