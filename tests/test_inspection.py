"""A user's own network: read from its file alone, and predicted as an independent simulation is."""

import math
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from msstab import inspection
from msstab.inspection import Inspection, InspectionError
from msstab.inspection.shown import conclusions
from msstab.noise import NOISES

Arrays = dict[str, Any]
WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
KINDS: dict[str, type[nn.GRU | nn.LSTM | nn.RNN]] = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the weights and data of a network that a script in plain torch trained."""
    folder = tmp_path_factory.mktemp("trained")
    script = Path(__file__).with_name("train_plain_gru.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True)
    return folder


def simulated_variance(folder: Path, noise: str, sigma: float, draws: int = 250) -> float:
    """The variance that noise adds to the output, in torch alone: h is multiplied by 1 + s xi."""
    weights = load_file(folder / "model.safetensors")
    cell, readout = nn.GRUCell(1, 12), nn.Linear(12, 1)
    cell.load_state_dict({k[4:-3]: v for k, v in weights.items() if k.startswith("rnn.")})
    readout.load_state_dict({k[3:]: v for k, v in weights.items() if k.startswith("fc.")})
    with np.load(folder / "data.npz") as file:
        inputs = torch.as_tensor(file["inputs"]).repeat_interleave(draws, 0)
    generator = torch.Generator().manual_seed(1)
    noisy = clean = torch.zeros(len(inputs), 12)
    with torch.no_grad():
        for x in inputs.unbind(1):
            xi = torch.randn(len(inputs), 12 if noise == "unit" else 1, generator=generator)
            noisy, clean = cell(x, noisy * (1 + sigma * xi)), cell(x, clean)
        return float((readout(noisy) - readout(clean)).square().mean())


@pytest.mark.parametrize(("noise", "sigma"), [("unit", 0.1), ("gain", 0.05)])
def test_the_predicted_variance_is_that_of_an_independent_simulation(
    trained: Path, noise: str, sigma: float
) -> None:
    found = inspection.inspect(trained / "model.safetensors", trained / "data.npz", sigma=sigma)
    own = {s.noise: s for s in found.structures}[noise]
    observed = simulated_variance(trained, noise, sigma)
    assert own.output_variance == pytest.approx(observed, rel=0.1)
    assert own.simulated_variance == pytest.approx(observed, rel=0.1)
    weaker = simulated_variance(trained, noise, sigma / 2)
    assert own.variances[found.levels.index(sigma / 2)] == pytest.approx(weaker, rel=0.05)


def test_a_torch_file_says_the_same_as_safetensors(trained: Path) -> None:
    first, second = (
        inspection.inspect(trained / name, trained / "data.npz")
        for name in ("model.safetensors", "model.pt")
    )
    assert first.model_copy(update={"model": second.model}) == second
    assert [structure.noise for structure in first.structures] == list(NOISES)
    assert first.clean_mse is not None
    for own in first.structures:
        assert own.noisy_mse == first.clean_mse + (own.output_variance or math.nan)


def test_rounding_is_predicted_and_measured(trained: Path) -> None:
    found = inspection.inspect(trained / "model.safetensors", trained / "data.npz")
    by_case = {(own.rounded, own.bits): own for own in found.roundings}
    bits_in_turn = (8, 6, 4, 3)
    assert list(by_case) == [(part, b) for part in ("weights", "states") for b in bits_in_turn]
    weights = load_file(trained / "model.safetensors")
    exact = recurrent_and_readout(weights)
    for bits in bits_in_turn:
        rounded = {
            name: rounded_rows(t, 2 ** (bits - 1) - 1) if t.dim() == 2 else t
            for name, t in weights.items()
        }
        with np.load(trained / "data.npz") as file, torch.no_grad():
            inputs = torch.as_tensor(file["inputs"])
            first, second = (forecast(m, inputs) for m in (exact, recurrent_and_readout(rounded)))
        own = by_case["weights", bits]
        deviation = float((first - second).square().mean())
        assert own.measured_deviation == pytest.approx(deviation, rel=1e-3)
        assert found.clean_mse is not None
        assert own.rounded_mse == found.clean_mse + (own.predicted_deviation or math.nan)
    # A single rounding scatters around what is expected of it; states average over many.
    for part, factor in (("weights", 4), ("states", 2)):
        for bits in (8, 6):
            own = by_case[part, bits]
            ratio = (own.measured_deviation or math.nan) / (own.predicted_deviation or math.nan)
            assert 1 / factor < ratio < factor


def rounded_rows(weight: Tensor, largest: int) -> Tensor:
    """A matrix whose rows are rounded to multiples of their largest values' share."""
    step = weight.abs().amax(1, keepdim=True) / largest
    return (weight / step).round() * step


def recurrent_and_readout(weights: dict[str, Tensor]) -> tuple[nn.GRU, nn.Linear]:
    recurrent, readout = nn.GRU(1, 12, batch_first=True), nn.Linear(12, 1)
    recurrent.load_state_dict({k[4:]: v for k, v in weights.items() if k.startswith("rnn.")})
    readout.load_state_dict({k[3:]: v for k, v in weights.items() if k.startswith("fc.")})
    return recurrent, readout


def forecast(model: tuple[nn.GRU, nn.Linear], inputs: Tensor) -> Tensor:
    found: Tensor = model[1](model[0](inputs)[0][:, -1])
    return found


# ---- reading networks


def saved(folder: Path, tensors: object) -> Path:
    torch.save(tensors, folder / "model.pt")
    return folder / "model.pt"


def data(folder: Path, inputs: Any, targets: Any = None) -> Path:
    arrays: Arrays = {"inputs": np.asarray(inputs)}
    if targets is not None:
        arrays["targets"] = np.asarray(targets)
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def modules(kind: str, layers: int = 1, *, bias: bool = True) -> nn.ModuleDict:
    torch.manual_seed(0)
    recurrent = KINDS[kind](3, 5, layers, batch_first=True, bias=bias)
    return nn.ModuleDict({kind: recurrent, "head": nn.Linear(5, 2, bias=bias)})


def outputs(own: nn.ModuleDict, inputs: Tensor) -> Tensor:
    recurrent, head = own.values()
    with torch.no_grad():
        found: Tensor = head(recurrent(inputs)[0][:, -1])
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_a_network_read_from_its_file_computes_what_torch_does(
    tmp_path: Path, kind: str, layers: int, bias: bool
) -> None:
    own, inputs = modules(kind, layers, bias=bias), torch.randn(6, 7, 3)
    tensors = {f"module.{name}": tensor for name, tensor in own.state_dict().items()}
    file = data(tmp_path, inputs, outputs(own, inputs))
    found = inspection.inspect(saved(tmp_path, tensors), file)
    model = found.model
    assert (model.cell, model.layers, model.hidden) == (kind, layers, 5)
    assert (model.inputs, model.outputs, model.readout) == (3, 2, "module.head")
    assert any("no bias" in note for note in model.notes) is not bias
    assert any("tanh" in note for note in model.notes) is (kind == "rnn")
    assert found.clean_mse is not None
    assert found.clean_mse < 1e-12
    assert all(s.output_variance and s.radius and s.growth_rate for s in found.structures)


def test_the_weights_of_a_cell_in_a_checkpoint_are_found(tmp_path: Path) -> None:
    own, inputs = modules("lstm"), torch.randn(4, 6, 3)
    state = {name.removesuffix("_l0"): t for name, t in own.state_dict().items()}
    moments = {0: {"exp_avg": torch.zeros(20, 5), "step": torch.tensor(1.0)}}
    content = {"epoch": 3, "model": {"state_dict": state}, "optimizer": {"state": moments}}
    file = data(tmp_path, inputs, outputs(own, inputs))
    found = inspection.inspect(saved(tmp_path, content), file)
    assert found.model.cell == "lstm"
    assert found.clean_mse is not None
    assert found.clean_mse < 1e-12


def test_half_precision_is_read(tmp_path: Path) -> None:
    own = modules("gru").bfloat16()
    save_file(own.state_dict(), tmp_path / "model")
    found = inspection.inspect(tmp_path / "model", data(tmp_path, torch.randn(2, 5, 3)))
    assert found.model.readout == "head"
    assert found.clean_mse is None
    assert all(structure.noisy_mse is None for structure in found.structures)


def test_the_readout_is_chosen_where_a_file_holds_more(tmp_path: Path) -> None:
    own, inputs = modules("gru"), torch.randn(4, 6, 3)
    more = {"other.weight": torch.ones(2, 5), "scale": torch.ones(1)}
    model = saved(tmp_path, own.state_dict() | more)
    file = data(tmp_path, inputs, outputs(own, inputs))
    with pytest.raises(InspectionError, match=r"head, other: choose one with --readout"):
        inspection.inspect(model, file)
    for name in ("head", "head.weight"):
        found = inspection.inspect(model, file, readout=name)
        assert found.model.readout == "head"
        assert found.model.notes == ["not read: other.weight, scale"]
        assert found.clean_mse is not None
        assert found.clean_mse < 1e-12
    with pytest.raises(InspectionError, match=r"--readout heat: .*5 columns.*did you mean head"):
        inspection.inspect(model, file, readout="heat")


def gru(**changes: Tensor | None) -> Arrays:
    """A GRU's state dict with some tensors changed, added or, where None, left out."""
    tensors: Arrays = modules("gru").state_dict()
    changed = {name.replace("__", "."): tensor for name, tensor in changes.items()}
    return {name: t for name, t in (tensors | changed).items() if t is not None}


def prefixed(*prefixes: str) -> Arrays:
    return {
        f"{prefix}.{k}": v for prefix in prefixes for k, v in modules("gru").state_dict().items()
    }


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        ({"conv.weight": torch.ones(2, 2)}, {}, "no recurrent weights: .* found conv.weight"),
        ({}, {}, "no recurrent weights: .* found no tensor"),
        (gru(head__weight=None, head__bias=None), {}, "shape O x 5 is needed; found no other"),
        (gru(head__weight=torch.ones(2, 4)), {}, r"O x 5 is needed; found head.weight \(2 x 4\)"),
        (gru(embed__weight=torch.ones(9, 3)), {}, "also holds embed.weight: .*--readout head"),
        (gru(head__bias=torch.ones(3)), {}, "head.bias is 3: 2 is needed"),
        (gru(gru__weight_hh_l0=torch.ones(10, 5)), {}, r"10 x 5: 1 \(rnn\), 3 \(gru\), 4 \(lstm\)"),
        (gru(gru__weight_hh_l0=torch.ones(15)), {}, "weight_hh_l0: a matrix is needed; found 15"),
        (gru(gru__weight_ih_l0=None), {}, "weight_ih_l0: a matrix is needed; found none"),
        (gru(gru__weight_ih_l0=torch.ones(12, 3)), {}, "weight_ih_l0 is 12 x 3: 15 x 3 is needed"),
        (gru(gru__bias_hh_l0=torch.ones(5)), {}, "bias_hh_l0 is 5: 15 is needed"),
        (gru(gru__weight_hh_l0=torch.ones(15, 5).int()), {}, "torch.int32: dense real numbers"),
        (gru(gru__bias_hh_l0=torch.full((15,), torch.inf)), {}, "bias_hh_l0 holds .* not finite"),
        (gru(gru__weight_hh_l2=torch.ones(15, 5)), {}, "layers 0, 2: some are missing"),
        (gru(gru__weight_hh_l1=torch.ones(15, 5)), {}, "weight_ih_l1 is missing: 15 x 5 is needed"),
        (prefixed("encoder", "decoder"), {}, r"2 recurrent networks \(decoder.gru, encoder.gru\)"),
        ({"a": gru(), "b": gru()}, {}, "2 state dicts of recurrent networks: save one"),
        (
            nn.ModuleDict({"gru": nn.GRU(3, 5, bidirectional=True)}).state_dict(),
            {},
            r"bidirectional \(gru.weight_ih_l0_reverse\): one direction is needed",
        ),
        (
            nn.ModuleDict({"lstm": nn.LSTM(3, 5, proj_size=2)}).state_dict(),
            {},
            r"projections \(lstm.weight_hr_l0, 2 x 5\): proj_size 0 is needed",
        ),
        (gru(), {"cell": "lstm"}, "--cell lstm: 4 x 5 rows are needed, and .* 3 x 5.* gru"),
        (gru(), {"cell": "lstn"}, "--cell lstn: did you mean lstm"),
        (
            modules("rnn").state_dict(),
            {"nonlinearity": "relu"},
            "--nonlinearity relu: tanh is need",
        ),
        (modules("rnn").state_dict(), {"nonlinearity": "tan"}, "--nonlinearity tan: did you mean"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(
    tmp_path: Path, tensors: Arrays, options: Arrays, message: str
) -> None:
    file = data(tmp_path, torch.zeros(2, 4, 3))
    with pytest.raises(InspectionError, match=message) as error:
        inspection.inspect(saved(tmp_path, tensors), file, **options)
    assert str(error.value).startswith(f"{tmp_path / 'model.pt'}: ")
    assert len(str(error.value).splitlines()) == 1


# ---- no code from a file is run


class Malicious:
    """What a hostile file would do on loading: run a command that leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.trace}",)


def test_code_in_a_file_is_refused_and_not_run(tmp_path: Path) -> None:
    trace, file = tmp_path / "trace", data(tmp_path, torch.zeros(2, 4, 3))
    hostile = gru() | {"extra": Malicious(trace)}
    for own in (saved(tmp_path, hostile), tmp_path / "old.pt", tmp_path / "plain.pkl"):
        if own.name == "old.pt":
            torch.save(hostile, own, _use_new_zipfile_serialization=False)
        elif own.name == "plain.pkl":
            own.write_bytes(pickle.dumps(hostile, protocol=2))
        with pytest.raises(InspectionError, match=r"code .*is never run: save the tensors alone"):
            inspection.inspect(own, file)
    np.save(tmp_path / "inputs.npy", np.array([Malicious(trace)], dtype=object))
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        archive.write(tmp_path / "inputs.npy", "inputs.npy")
    with pytest.raises(InspectionError, match=r"not an .npz of plain arrays"):
        inspection.inspect(saved(tmp_path, gru()), tmp_path / "bad.npz")
    assert not trace.exists()
    # The trap itself works: the same bytes do leave the trace where code is allowed to run.
    torch.load(tmp_path / "old.pt", weights_only=False)
    assert trace.exists()


def test_a_whole_model_is_refused_with_what_to_save_instead(tmp_path: Path) -> None:
    file = data(tmp_path, torch.zeros(2, 4, 3))
    with pytest.raises(InspectionError, match=r"asks for torch.nn.modules.*model.state_dict\(\)"):
        inspection.inspect(saved(tmp_path, modules("gru")), file)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\0\0\0\0\0\0\0{broken}", b"PK\3\4"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(InspectionError, match=r"model: this is (not a|neither a) safetensors"):
        inspection.inspect(tmp_path / "model", data(tmp_path, torch.zeros(2, 4, 3)))


# ---- reading data


def test_a_csv_is_one_sequence_with_or_without_names(tmp_path: Path) -> None:
    model, inputs = saved(tmp_path, gru()), np.random.default_rng(0).normal(size=(9, 3))
    expected = inspection.inspect(model, data(tmp_path, inputs[None]))
    assert expected.clean_variance is None
    for header in ("", "a,b,c"):
        np.savetxt(
            tmp_path / "x.csv", inputs, delimiter=",", header=header, comments="", fmt="%.17g"
        )
        found = inspection.inspect(model, tmp_path / "x.csv")
        assert found.model_copy(update={"data": expected.data}) == expected
        assert (found.data.sequences, found.data.of, found.data.steps) == (1, 1, 9)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "", "no steps"),
        ("x.csv", "a,b,c\n", "no steps"),
        ("x.csv", "1,2,3\n1,b,3\n", "could not convert string 'b'"),
        ("x.csv", "1,2,3\n1,2\n", "number of columns changed"),
        ("x.csv", "1,2,3\n1,nan,3\n", r"inputs\[0, 1, 1\] is not a finite number"),
        ("x.csv", "1,2,3\n", "inputs are 1 x 1 x 3: at least 1 sequence of 2 steps"),
        ("x.csv", "1,2\n3,4\n", "the data have 2 inputs: the network takes 3"),
        ("x.csv", b"\xff\xfe", "not a text in UTF-8"),
        ("x.txt", "1", "must be in a file that ends in .npz or .csv"),
        ("x.npz", "junk", "not an .npz of plain arrays"),
        ("x.npz", {"x": np.zeros((2, 4, 3))}, r"inputs \(N, T, D\) is needed; found x"),
        ("x.npz", {"inputs": np.zeros((4, 3))}, r"inputs have shape \(4, 3\): \(N, T, D\)"),
        ("x.npz", {"inputs": np.zeros((0, 4, 3))}, "at least 1 sequence"),
        ("x.npz", {"inputs": np.full((2, 4, 3), "a")}, "real numbers are needed"),
        (
            "x.npz",
            {"inputs": np.zeros((2, 4, 3)), "targets": np.zeros(2)},
            r"targets have shape \(2\): \(N, O\)",
        ),
        (
            "x.npz",
            {"inputs": np.zeros((2, 4, 3)), "targets": np.zeros((3, 2))},
            "3 targets for 2 sequences",
        ),
        (
            "x.npz",
            {"inputs": np.zeros((2, 4, 3)), "targets": np.zeros((2, 1))},
            "targets have 1 columns: the network has 2",
        ),
        ("missing.csv", None, "No such file"),
    ],
)
def test_data_that_do_not_fit_are_named_in_one_line(
    tmp_path: Path, name: str, content: Any, message: str
) -> None:
    if isinstance(content, dict):
        np.savez(tmp_path / name, **content)
    elif content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InspectionError, match=message) as error:
        inspection.inspect(saved(tmp_path, gru()), tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: ")
    assert len(str(error.value).splitlines()) == 1


# ---- what is measured


def resting(folder: Path, size: float, **options: Any) -> Inspection:
    """A plain network that stays at rest, where the Jacobian is its weights: a scaled rotation."""
    turn = size * torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    tensors = {"weight_ih_l0": torch.zeros(2, 1), "weight_hh_l0": turn}
    model = saved(folder, tensors | {"fc.weight": torch.ones(1, 2)})
    return inspection.inspect(model, data(folder, torch.zeros(3, 12, 1)), **options)


def test_radius_and_growth_are_those_of_a_rotation(tmp_path: Path) -> None:
    by_noise = {s.noise: s for s in resting(tmp_path, 0.9, sigma=0.5).structures}
    # It keeps P = I, and all its rows are as long: each noise adds the share s^2.
    expected = 1.25 * 0.81
    for name in ("unit", "gain", "weight"):
        assert by_noise[name].radius == pytest.approx(expected, rel=1e-6)
        assert by_noise[name].growth_rate == pytest.approx(math.log(expected), abs=1e-6)
        assert len(by_noise[name].radii) == 16
        assert by_noise[name].output_variance == 0


def test_radii_are_those_of_the_jacobians_along_the_data(tmp_path: Path) -> None:
    own, inputs = modules("gru"), torch.randn(1, 6, 3)
    recurrent, _ = own.values()
    weights = [getattr(recurrent, f"{kind}_l0").detach() for kind in WEIGHTS]
    state, expected = torch.zeros(1, 5), []
    for t, x in enumerate(inputs.unbind(1)):

        def advance(h: Tensor, x: Tensor = x) -> Tensor:
            return torch.gru_cell(x, h, *weights)

        if t:
            jacobian = torch.func.jacrev(advance)(state)[0, :, 0].double().numpy()
            # Of P -> J (P + s^2 diag P) J^T, as a matrix on vec P.
            lifted = np.kron(jacobian, jacobian) @ np.diag(1 + 0.25 * np.eye(5).ravel())
            expected.append(np.abs(np.linalg.eigvals(lifted)).max())
        state = advance(state)
    file = data(tmp_path, inputs)
    found = inspection.inspect(saved(tmp_path, own.state_dict()), file, sigma=0.5)
    (unit,) = (s for s in found.structures if s.noise == "unit")
    assert unit.radii == pytest.approx(expected, rel=1e-5)
    assert unit.radius == pytest.approx(np.median(expected), rel=1e-5)


def test_conclusions_follow_the_radius_and_the_error(tmp_path: Path) -> None:
    calm, wild = resting(tmp_path, 0.9), resting(tmp_path, 1.1)
    assert "deviations die out" in conclusions(calm)[0]
    assert "do not die out" not in conclusions(calm)[0]
    assert "deviations do not die out" in conclusions(wild)[0]
    mixed = [
        s.model_copy(
            update={"radius": r, "output_variance": v, "simulated_variance": v, "noise": n}
        )
        for s, r, v, n in zip(
            calm.structures, (0.5, 1.5, None), (1.0, 3.0, None), "abc", strict=False
        )
    ]
    found = calm.model_copy(update={"structures": mixed, "clean_mse": 2.0})
    first, _, second = conclusions(found)
    assert "die out in the mean square (radius below 1) under a noise" in first
    assert "do not die out in the mean square (radius 1 or more) under b noise" in first
    assert "no accurate radius was found under c noise" in first
    assert second == "The error without noise is 2; noise multiplies it by 1.5 (a) to 2.5 (b)."
    without = found.model_copy(update={"clean_mse": None, "clean_variance": 10.0})
    assert "adds 10% (a) to 30% (b) of it" in conclusions(without)[2]
    lost = found.model_copy(update={"structures": mixed[2:]})
    assert "not finite" in conclusions(lost)[1]


def test_conclusions_say_where_a_simulation_confirms_the_theory(tmp_path: Path) -> None:
    calm = resting(tmp_path, 0.9)

    def said(*pairs: tuple[float, float]) -> list[str]:
        parts = [
            s.model_copy(update={"noise": n, "output_variance": p, "simulated_variance": o})
            for s, n, (p, o) in zip(calm.structures, "ab", pairs, strict=False)
        ]
        found = calm.model_copy(update={"structures": parts})
        return [line for line in conclusions(found) if "simulation" in line]

    assert said((1, 1.09), (1, 0.91)) == [
        "A simulation confirms the predicted variance within 10% under a and b noise."
    ]
    first, second = said((1, 1.09), (2, 1.7))
    assert "confirms the predicted variance within 10% under a noise." in first
    assert "does not confirm the predicted variance within 10% under b (0.85 of it) noise" in second


def test_errors_and_variances_are_means_over_the_outputs(tmp_path: Path) -> None:
    inputs = torch.randn(5, 6, 3)
    first, second = (
        inspection.inspect(
            saved(tmp_path, gru(head__weight=torch.ones(rows, 5), head__bias=torch.zeros(rows))),
            data(tmp_path, inputs, torch.zeros(5, rows)),
        )
        for rows in (1, 3)
    )
    assert first.clean_mse == pytest.approx(second.clean_mse)
    assert first.clean_variance == pytest.approx(second.clean_variance)
    for one, more in zip(first.structures, second.structures, strict=True):
        assert one.output_variance == pytest.approx(more.output_variance)
        assert one.simulated_variance == pytest.approx(more.simulated_variance)


def test_noise_too_large_for_numbers_is_null(tmp_path: Path) -> None:
    inputs = torch.randn(2, 100, 3)
    found = inspection.inspect(saved(tmp_path, gru()), data(tmp_path, inputs), sigma=100)
    by_noise = {s.noise: s for s in found.structures}
    assert by_noise["gain"].output_variance is None
    assert Inspection.model_validate_json(found.model_dump_json()) == found


def test_sequences_are_chosen_evenly_and_counted(tmp_path: Path) -> None:
    own, inputs = modules("gru"), torch.randn(10, 5, 3)
    model, targets = saved(tmp_path, own.state_dict()), outputs(own, inputs)
    # Wrong everywhere but at the sequences that are to be measured.
    wrong = targets + 1
    wrong[[0, 2, 5, 7]] = targets[[0, 2, 5, 7]]
    found = inspection.inspect(model, data(tmp_path, inputs, wrong), most=4)
    assert (found.data.sequences, found.data.of) == (4, 10)
    assert found.clean_mse is not None
    assert found.clean_mse < 1e-12


def test_the_script_that_trains_knows_nothing_of_this_package() -> None:
    text = Path(__file__).with_name("train_plain_gru.py").read_text("utf-8")
    assert not re.search(r"import\s+msstab|from\s+msstab", text)
