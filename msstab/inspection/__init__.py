"""A user's own trained network: what second-moment theory says about it, without simulating it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msstab import __version__
from msstab.cells import Parameters
from msstab.inspection import measuring
from msstab.inspection.files import InspectionError, Sequences, read_sequences, read_tensors
from msstab.inspection.page import to_html
from msstab.inspection.result import (
    Data,
    Inspection,
    Model,
    Rounding,
    Structure,
    finite,
    to_rounding,
    to_structure,
)
from msstab.inspection.shown import conclusions, print_table
from msstab.inspection.weights import Network, to_network
from msstab.noise import NOISES

BITS = (8, 6, 4, 3)
"""Numbers of bits to which weights and states are rounded."""

__all__ = [
    "Data",
    "Inspection",
    "InspectionError",
    "Model",
    "Network",
    "Rounding",
    "Sequences",
    "Structure",
    "conclusions",
    "inspect",
    "print_table",
    "read_sequences",
    "read_tensors",
    "to_html",
    "to_network",
]


def inspect(
    model: Path,
    data: Path,
    *,
    sigma: float = 0.1,
    most: int = 64,
    cell: str | None = None,
    nonlinearity: str = "tanh",
    readout: str | None = None,
) -> Inspection:
    """Return what noise of level sigma and rounding do to a saved network along its data.

    At most `most` of the sequences are measured; the other options are those of `to_network`.
    Raises InspectionError, a ValueError, in one line, for a file or an option that cannot be used.
    """
    with _about(model):
        network = to_network(
            read_tensors(model), cell=cell, nonlinearity=nonlinearity, readout=readout
        )
    with _about(data):
        every = read_sequences(data)
        sequences = measuring.choose(every, most)
        clean = measuring.run_clean(network.parameters, sequences)
    return Inspection(
        msstab=__version__,
        model=_model(model, network),
        data=Data(
            file=str(data),
            sequences=len(sequences.inputs),
            of=len(every.inputs),
            steps=sequences.inputs.shape[1],
        ),
        sigma=sigma,
        levels=[sigma * factor for factor in measuring.LEVELS],
        clean_mse=finite(clean.squared_error),
        clean_variance=finite(clean.variance),
        structures=[
            to_structure(
                name, clean, measuring.under_noise(network.parameters, clean, noise, sigma)
            )
            for name, noise in NOISES.items()
        ],
        roundings=[
            to_rounding(*case, clean, rounded)
            for case, rounded in measuring.under_rounding(network.parameters, clean, BITS).items()
        ],
    )


def _model(path: Path, network: Network) -> Model:
    own: Parameters = network.parameters
    return Model(
        file=str(path),
        cell=own.cell,
        hidden=own.hidden,
        layers=own.layers,
        inputs=own.weight_ih.shape[2],
        outputs=own.weight_out.shape[1],
        readout=network.readout,
        notes=list(network.notes),
    )


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Say which file an error is about."""
    try:
        yield
    except OSError as error:
        raise InspectionError(f"{path}: {error.strerror or error}") from None
    except InspectionError as error:
        raise InspectionError(f"{path}: {error}") from None
