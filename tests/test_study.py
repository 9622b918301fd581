import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import papermill
import pytest
from conftest import PARAMETERS, write_notebook
from pydantic import ValidationError

from msstab import study
from msstab.study import Study, StudyError, parse

import_module("msstab.experiment")  # declares what a study may name

OTHER: dict[str, Any] = {
    "track": "elsewhere",
    "cell": "elsewhere",
    "hidden": 33,
    "layers": 2,
    "epochs": 13,
    "batch": 33,
    "n_train": 401,
    "n_validation": 401,
    "n_test": 401,
    "arms": ("baseline", "elsewhere"),
    "learning_rates": (0.001, 0.003),
    "strengths": (0.0, 0.1),
    "noise": "elsewhere",
    "sigma": 0.1,
    "target": 0.9,
    "sigma_test": 0.1,
    "sigma_grid": (0.1, 0.3),
    "draws": 65,
    "mechanism_sequences": 65,
    "tuning_seeds": 9,
    "seeds": 255,
    "max_seeds": 1023,
    "power": 0.8,
    "other_seeds": 65,
    "survey_seeds": 33,
    "survey_tuning_seeds": 5,
    "survey_arms": ("elsewhere",),
    "survey_tracks": ("dynamics", "elsewhere"),
    "survey_cells": ("gru",),
    "survey_sizes": (8, 16),
    "survey_structures": ("unit", "elsewhere"),
    "bits": (8, 4),
    "free_runs": (1, 2),
    "window": 33,
    "horizon": 2,
    "input_columns": ("elsewhere",),
    "target_columns": ("elsewhere",),
    "study_seed": 1,
    "alpha": 0.01,
    "sesoi": 0.1,
    "dtype": "float64",
    "device": "cuda:1",
}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second name of each kind."""
    for kind, names in list(study.KNOWN_NAMES.items()):
        monkeypatch.setitem(study.KNOWN_NAMES, kind, [*names, "elsewhere"])
    monkeypatch.setattr(study, "CHECKS", [])


# ---- what a study holds


@pytest.mark.parametrize("name", study.PROFILES)
def test_every_profile_is_valid(name: str) -> None:
    # Pydantic does not check defaults, so give them all.
    made = Study(**study.profile(name).model_dump())
    assert made == study.profile(name)
    for field, value in study.PROFILES[name].items():
        assert getattr(made, field) == value


def test_the_full_profile_is_the_default() -> None:
    assert study.profile("full") == Study()


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(StudyError, match="did you mean stage2"):
        study.profile("stage_two")


def test_a_study_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Study().hidden = 8  # type: ignore[misc]


@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_every_cell_can_be_named(cell: str) -> None:
    assert Study(cell=cell).cell == parse({"cell": cell}).cell == cell


def test_a_study_does_not_convert() -> None:
    for given in ({"hidden": "32"}, {"hidden": 32.0}, {"hidden": True}, {"sigma": "0.2"}):
        with pytest.raises(ValidationError):
            Study(**given)
    with pytest.raises(ValidationError, match="Extra inputs"):
        Study(hiden=32)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hiden": 64}, "hiden is not a parameter; did you mean hidden? Known: track, cell,"),
        ({"learning_rate": 0.1}, "did you mean learning_rates?"),
        ({"track": "dynamic"}, "track = 'dynamic': no such track; did you mean dynamics?"),
        ({"cell": "gur"}, "cell = 'gur': no such cell; did you mean gru?"),
        ({"cell": "ltsm"}, "cell = 'ltsm': no such cell; did you mean lstm?"),
        ({"cell": "rrn"}, "did you mean rnn? Known: gru, lstm, rnn."),
        ({"noise": "units"}, "noise = 'units': no such noise; did you mean unit?"),
        (
            {"arms": ["baseline", "spectral"]},
            "arms = ('baseline', 'spectral'): no such arm; did you mean spectral_proxy?",
        ),
        ({"arms": ["spectral_proxy", "baseline"]}, "name the baseline first"),
        ({"arms": ["baseline"]}, "name the baseline first and then at least one other arm"),
        ({"arms": ["baseline", "spectral_proxy", "spectral_proxy"]}, "each once"),
        ({"hidden": 1}, "hidden = 1: input should be greater than or equal to 2"),
        ({"hidden": 1000}, "less than or equal to 512"),
        ({"hidden": 32.0}, "hidden = 32.0: input should be a valid integer"),
        ({"hidden": True}, "hidden = True: input should be a valid integer"),
        ({"epochs": 0}, "epochs = 0: "),
        ({"batch": 401}, "batch = 401 exceeds n_train = 400"),
        ({"mechanism_sequences": 401}, "mechanism_sequences = 401 exceeds n_test = 400"),
        ({"learning_rates": [0.001]}, "give at least two values, in increasing order"),
        ({"learning_rates": [0.003, 0.001]}, "in increasing order"),
        ({"learning_rates": [0.001, 0.001]}, "in increasing order"),
        ({"learning_rates": [0.0, 0.001]}, "learning_rates = 0.0: input should be greater than 0"),
        ({"learning_rates": [0.1, float("inf")]}, "finite"),
        ({"learning_rates": 0.001}, "learning_rates = 0.001: input should be a valid tuple"),
        ({"strengths": [0.1, 1.0]}, "start with 0"),
        ({"strengths": [-1.0, 0.0]}, "strengths = -1.0: input should be greater than or equal"),
        ({"sigma": -0.1}, "sigma = -0.1: "),
        ({"sigma_test": float("nan")}, "sigma_test = nan: "),
        ({"sigma_grid": []}, "sigma_grid = (): give at least one level, in increasing order"),
        ({"sigma_grid": [0.2, 0.1]}, "give at least one level, in increasing order"),
        ({"sigma_grid": [0.0, 0.1]}, "sigma_grid = 0.0: input should be greater than 0"),
        ({"target": 0.0}, "target = 0.0: "),
        ({"alpha": 0.5}, "alpha = 0.5: "),
        ({"alpha": float("nan")}, "alpha = nan: "),
        ({"sesoi": 1.0}, "sesoi = 1.0: "),
        ({"seeds": 1}, "seeds = 1: "),
        ({"study_seed": -1}, "study_seed = -1: "),
        ({"dtype": "float16"}, "dtype = 'float16': input should be 'float32' or 'float64'"),
        ({"device": "gpu"}, "device = 'gpu': "),
        ({"track": 3}, "track = 3: input should be a valid string"),
    ],
)
def test_what_cannot_be_used_is_explained(given: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(given)
    assert message in str(caught.value)


def test_every_fault_gets_a_line() -> None:
    with pytest.raises(StudyError) as caught:
        parse({"hiden": 64, "sede": 1})
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["hiden", "sede"]
    with pytest.raises(StudyError) as caught:
        parse({"hidden": 0, "seeds": 1, "sigma": 0.3})
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["hidden", "seeds"]


# ---- text, as a command line gives it


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sigma", "3e-3", 0.003),
        ("sigma", "0", 0.0),
        ("sigma", " 0.25 ", 0.25),
        ("hidden", "64", 64),
        ("learning_rates", "[0.001,0.003]", (0.001, 0.003)),
        ("learning_rates", "0.001,0.003", (0.001, 0.003)),
        ("learning_rates", "(1e-3, 3e-3)", (0.001, 0.003)),
        ("strengths", "0,1", (0.0, 1.0)),
        ("sigma_grid", "0.2", (0.2,)),
        ("arms", "baseline,spectral_proxy", ("baseline", "spectral_proxy")),
        ("arms", '["baseline", "spectral_proxy"]', ("baseline", "spectral_proxy")),
        ("dtype", "float64", "float64"),
        ("device", "cuda:0", "cuda:0"),
    ],
)
def test_text_is_read_as_the_parameters_own_type(name: str, text: str, value: object) -> None:
    read = getattr(parse({name: text}), name)
    assert read == value
    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sigma", "no"),
        ("sigma", "true"),
        ("sigma", "nan"),
        ("sigma", "NaN"),
        ("sigma", "1e999"),
        ("sigma", "[0.2]"),
        ("sigma", '"0.2"'),
        ("sigma", ""),
        ("hidden", "007"),
        ("hidden", "64.0"),
        ("hidden", "1_000"),
        ("hidden", "0x40"),
        ("hidden", "sixty-four"),
        ("hidden", "null"),
        ("learning_rates", "0.001,no"),
        ("learning_rates", "0.001;0.003"),
        ("learning_rates", "[0.001,"),
        ("learning_rates", ""),
        ("strengths", "0,nan"),
    ],
)
def test_text_of_another_kind_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(StudyError, match=f"^{name} = "):
        parse({name: text})


def test_lists_of_whole_numbers_give_the_same_study_as_decimals() -> None:
    assert parse({"strengths": [0, 1]}).key == parse({"strengths": [0.0, 1.0]}).key


def test_what_is_given_lies_over_the_base() -> None:
    base = study.profile("quick")
    made = parse({"seeds": "9"}, base)
    assert made.seeds == 9
    assert made.model_copy(update={"seeds": base.seeds}) == base


# ---- the key


def test_the_key_is_the_same_in_every_process() -> None:
    code = "import msstab.experiment; from msstab.study import profile; print(profile('quick').key)"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert keys == {study.profile("quick").key}


@pytest.mark.usefixtures("elsewhere")
def test_every_parameter_changes_the_key() -> None:
    assert OTHER.keys() == Study.model_fields.keys()
    keys = [Study(**{name: value}).key for name, value in OTHER.items()]
    assert len({Study().key, *keys}) == len(OTHER) + 1
    assert all(len(key) == 12 and set(key) <= set("0123456789abcdef") for key in keys)


def test_the_key_does_not_depend_on_how_a_value_was_given() -> None:
    assert parse({"learning_rates": "0.001,0.003,0.01", "sigma": "2e-1"}).key == Study().key


# ---- chapters


def test_the_parameters_cell_gives_papermill_every_parameter(tmp_path: Path) -> None:
    write_notebook(tmp_path / "a.ipynb", [PARAMETERS])
    seen = papermill.inspect_notebook(str(tmp_path / "a.ipynb"))
    defaults = Study().model_dump(mode="json")
    assert {name: json.loads(p["default"]) for name, p in seen.items()} == defaults
    for name, parameter in seen.items():
        # Only what holds nothing needs a type, for those who check them.
        item = "str" if name.endswith("_columns") else "float"
        typed = f"list[{item}]" if defaults[name] == [] else "None"
        assert parameter["inferred_type_name"] == typed
        assert parameter["help"] == Study.model_fields[name].description


def test_the_parameters_cell_run_as_python_gives_the_defaults() -> None:
    namespace: dict[str, Any] = {}
    exec(study.parameters_cell(), namespace)
    assert study.notebook_study(namespace) == Study()


class Notebook:
    """The part of IPython that a chapter's parameters pass through."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"In": [""]}

    def run(self, source: str) -> None:
        self.namespace["In"].append(source)
        exec(source, self.namespace)

    def study(self) -> Study:
        self.run(
            "from msstab.study import notebook_study\nchapter_study = notebook_study(globals())"
        )
        made = self.namespace["chapter_study"]
        assert isinstance(made, Study)
        return made


@pytest.fixture
def notebook() -> Notebook:
    opened = Notebook()
    opened.run(study.parameters_cell())
    return opened


def test_a_chapter_opened_by_hand_has_the_defaults(notebook: Notebook) -> None:
    assert notebook.study() == Study()


def test_a_chapter_takes_what_papermill_injects(notebook: Notebook) -> None:
    notebook.run('# Parameters\nhidden = 64\nlearning_rates = "0.01,0.03"\n')
    assert notebook.study() == Study(hidden=64, learning_rates=(0.01, 0.03))


def test_a_misspelt_injected_parameter_is_refused(notebook: Notebook) -> None:
    notebook.run("# Parameters\nhiden = 64\n")
    with pytest.raises(StudyError, match="hiden is not a parameter; did you mean hidden"):
        notebook.study()


def test_a_misspelt_edit_of_the_parameters_cell_is_refused(notebook: Notebook) -> None:
    assert notebook.study() == Study()
    notebook.run(study.parameters_cell().replace("hidden", "hiden"))
    with pytest.raises(StudyError, match="hiden is not a parameter; did you mean hidden"):
        notebook.study()


def test_an_injected_value_of_the_wrong_type_is_refused(notebook: Notebook) -> None:
    notebook.run('# Parameters\nhidden = "many"\n')
    with pytest.raises(StudyError, match="hidden = 'many'"):
        notebook.study()


def test_an_edit_in_a_live_kernel_is_taken(notebook: Notebook) -> None:
    assert notebook.study() == Study()
    notebook.run("rows = 3\nprint_it = len('abc')")
    notebook.run(study.parameters_cell().replace("hidden = 32", "hidden = 48"))
    assert notebook.study() == Study(hidden=48)
    notebook.run(study.parameters_cell())
    assert notebook.study() == Study()


def test_an_edit_is_taken_whatever_ran_before_the_study(notebook: Notebook) -> None:
    notebook.run("hidden = 48")
    notebook.run("import math")
    assert notebook.study() == Study(hidden=48)


def test_cells_can_run_again_in_a_live_kernel(notebook: Notebook) -> None:
    for later in ("import math\nrows = math.pi", "arm, size = 'x', 3", "threshold = 0.1"):
        assert notebook.study() == Study()
        notebook.run(later)
    assert notebook.study() == Study()
