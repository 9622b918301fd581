"""`msstab inspect`: what noise does to a trained network of one's own."""

import os
from pathlib import Path
from typing import Annotated

import typer

from msstab import targets, terminal
from msstab.cli import shared


def inspect(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="State dict of a GRU, LSTM or RNN: safetensors or torch.save."
        ),
    ],
    data: Annotated[
        Path, typer.Option(help="Sequences: .npz with inputs (N, T, D), targets (N, O); or .csv.")
    ],
    sigma: Annotated[
        float, typer.Option(help="Noise level; for quantisation the rounding step.")
    ] = 0.1,
    sequences: Annotated[
        int, typer.Option(min=1, help="Most sequences to measure, evenly spaced over the file.")
    ] = 64,
    cell: Annotated[
        str | None, typer.Option(help="gru, lstm or rnn, to confirm what the shapes say.")
    ] = None,
    nonlinearity: Annotated[str, typer.Option(help="Of a plain RNN: tanh is supported.")] = "tanh",
    readout: Annotated[
        str | None, typer.Option(metavar="NAME", help="The readout, where the file holds more.")
    ] = None,
    as_json: shared.AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a page that needs no other file."),
    ] = None,
) -> None:
    """Say what noise does to a trained network of your own; code in a file is never run.

    Exit codes: 0 the network was inspected, whatever was found, 2 a file or an option cannot be
    used.
    """
    if not 0 < sigma <= 100:
        shared.fail(f"--sigma {sigma}: it must lie between 0 and 100", 2)
    if html is not None:
        with shared.usable("--html"):
            targets.require_file(html, ".html")
    for name in shared.THREADS:
        os.environ.setdefault(name, "1")
    from rich.console import Console

    from msstab import inspection

    try:
        with Console(stderr=True).status("measuring"):
            found = inspection.inspect(
                model, data, sigma=sigma, most=sequences, cell=cell, nonlinearity=nonlinearity,
                readout=readout,
            )  # fmt: skip
    except inspection.InspectionError as error:
        shared.fail(str(error), 2)
    if html is not None:
        from msstab import store

        try:
            store.replace(html, inspection.to_html(found).encode())
        except OSError as error:
            shared.fail(f"{html}: {error.strerror or error}", 2)
    terminal.tolerate_encoding()
    if as_json:
        shared.print_json(found.model_dump(mode="json"))
    else:
        inspection.print_table(found)
