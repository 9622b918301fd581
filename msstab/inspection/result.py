"""The result of an inspection, as programs read it: the schema of `msstab inspect --json`."""

import math
import statistics

from pydantic import BaseModel, ConfigDict, Field

from msstab.inspection.measuring import LEVELS, Clean, Rounded, UnderNoise

_UNKNOWN = "null where it is not known or not finite"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Model(_Part):
    """The network that was read."""

    file: str = Field(description="the file's path as given")
    cell: str = Field(description="gru, lstm or rnn")
    hidden: int = Field(description="hidden units of a layer")
    layers: int = Field(description="recurrent layers")
    inputs: int = Field(description="inputs")
    outputs: int = Field(description="outputs of the readout")
    readout: str = Field(description="the readout's name in the file")
    notes: list[str] = Field(description="what had to be assumed, or was not read")


class Data(_Part):
    """The sequences that the network ran on."""

    file: str = Field(description="the file's path as given")
    sequences: int = Field(description="sequences that were measured")
    of: int = Field(description="sequences in the file")
    steps: int = Field(description="steps of a sequence")


class Structure(_Part):
    """What one noise structure does."""

    noise: str = Field(description="the structure: unit, gain, weight, quantisation, ...")
    radius: float | None = Field(
        description="median spectral radius of the second-moment operator over `radii`; below 1 "
        f"a deviation dies out in the mean square; {_UNKNOWN}"
    )
    radii: list[float] = Field(description="the radius at states along the data")
    growth_rate: float | None = Field(
        description=f"growth of a deviation's second moment, in nats a step; {_UNKNOWN}"
    )
    output_variance: float | None = Field(
        description="predicted variance that noise of level `sigma` adds to the last output, mean "
        f"over sequences and outputs; {_UNKNOWN}"
    )
    simulated_variance: float | None = Field(
        description=f"the same from a simulation, which errs by 2 to 3%; {_UNKNOWN}"
    )
    noisy_mse: float | None = Field(
        description=f"predicted error under noise, clean_mse + output_variance; {_UNKNOWN}"
    )
    variances: list[float | None] = Field(
        description=f"output_variance at each of `levels`; {_UNKNOWN}"
    )


class Rounding(_Part):
    """What rounding to few bits does, with a step for each row of weights, or for each unit."""

    rounded: str = Field(description="what is rounded: weights, once, or states, after every step")
    bits: int = Field(description="bits of a number")
    predicted_deviation: float | None = Field(
        description="predicted squared deviation of the last output, mean over sequences and "
        f"outputs; {_UNKNOWN}"
    )
    measured_deviation: float | None = Field(
        description=f"the same with everything rounded to nearest; {_UNKNOWN}"
    )
    rounded_mse: float | None = Field(
        description=f"predicted error, clean_mse + predicted_deviation; {_UNKNOWN}"
    )


class Inspection(_Part):
    """What second-moment theory says about a trained network."""

    msstab: str = Field(description="version of msstab")
    model: Model
    data: Data
    sigma: float = Field(description="noise level; for quantisation the rounding step")
    levels: list[float] = Field(description="noise levels of `variances`")
    clean_mse: float | None = Field(
        description="mean squared error of the last output without noise; null without targets"
    )
    clean_variance: float | None = Field(
        description="variance of the clean last output over sequences, mean over outputs; null for "
        "a single sequence"
    )
    structures: list[Structure]
    roundings: list[Rounding]


def to_structure(name: str, clean: Clean, found: UnderNoise) -> Structure:
    """Return a structure's part of the result."""
    variances = [finite(value) for value in found.variances.tolist()]
    variance, error = variances[LEVELS.index(1.0)], clean.squared_error
    radii = found.radii.tolist()
    return Structure(
        noise=name,
        radius=statistics.median(radii) if radii else None,
        radii=radii,
        growth_rate=finite(found.growth_rate),
        output_variance=variance,
        simulated_variance=finite(found.simulated),
        noisy_mse=None if variance is None or error is None else error + variance,
        variances=variances,
    )


def to_rounding(bits: int, part: str, clean: Clean, found: Rounded) -> Rounding:
    """Return the result's part on one kind of rounding."""
    predicted, error = finite(found.predicted), clean.squared_error
    return Rounding(
        rounded=part,
        bits=bits,
        predicted_deviation=predicted,
        measured_deviation=finite(found.measured),
        rounded_mse=None if predicted is None or error is None else error + predicted,
    )


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, None for others."""
    return value if value is not None and math.isfinite(value) else None
