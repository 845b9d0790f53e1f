"""Bad input of every kind is answered by one line: what was expected, what was found, and what to change.

Whole runs take seconds; most cases compose and plan in this process, by the functions of the command line itself.
"""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pytest
from bad_command_lines import COMMAND_LINES, FILES
from bad_data import CSV, DATA, PICTURES, pictures, table
from bad_models import FOLDERS, POINTS
from command_line import CONF, SMALL, composed, folders, new_job, ran, refused, write_experiment

import orbit
from orbit.core.compiled import compiled
from orbit.core.errors import InputError
from orbit.core.params import Range, build_parameters, describe
from runners.config.files import check_files
from runners.config.messages import bad_input
from runners.config.plan import plan
from runners.config.signatures import config_fields
from runners.experiments.predict import Predict
from runners.job.job import Job


def brief(value: object) -> str:
    return value[:60] if isinstance(value, str) else " ".join(map(str, value))[:60] if isinstance(value, tuple) else ""


def check_line(line: str, expected: str) -> None:
    assert expected in line
    assert "\n" not in line
    assert len(line) < 700


@pytest.mark.parametrize("case", COMMAND_LINES, ids=brief)
def test_of_a_command_line(case, tmp_path, monkeypatch):
    *overrides, expected = case
    monkeypatch.chdir(tmp_path)
    Path("here.csv").touch()
    check_line(refused(*overrides), expected)


@pytest.mark.parametrize(("write", "overrides", "expected"), DATA, ids=brief)
def test_of_data(write, overrides, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write()
    line = refused(*overrides, load=True)
    check_line(line, expected)
    assert line.startswith(("dataset.", "learner=adagrad takes"))


@pytest.mark.parametrize(("content", "expected"), FILES, ids=brief)
def test_of_a_configuration_file(content, expected, tmp_path):
    file = tmp_path / "mine" / "experiment" / "mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)

    def read() -> None:
        check_files(CONF)
        plan(composed(f"hydra.searchpath=[file://{tmp_path}/mine]", "experiment=mine"))

    with pytest.raises(Exception) as error:  # noqa: PT011  of many kinds, which bad_input tells from defects
        read()
    line = bad_input(error.value)
    assert line is not None
    check_line(line, expected)


# ---- parameters ------------------------------------------------------------------------------------------------------


def outside(annotation: Any) -> Iterator[object]:
    """Values that a parameter does not allow: of no type that a file can hold, and beyond its bounds."""
    yield 1j
    options = get_args(annotation) if "|" in str(annotation) else (annotation,)
    bounds = [get_args(option)[1] for option in options if get_origin(option) is Annotated]
    for bound in bounds:
        assert isinstance(bound, Range)
        if bound.low > -np.inf:
            yield int(bound.low) - 1
        if bound.high < np.inf:
            yield int(bound.high) + 1
    if any(int in get_args(option) or float in get_args(option) or option is float for option in options):
        yield np.nan
        yield np.inf


PARAMETERS = [
    (kind, name, key, value)
    for kind in orbit.available()
    for name in orbit.available(kind)
    for key, parameter in config_fields(orbit.get(kind, name)).items()
    for value in outside(parameter.annotation)
]


@pytest.mark.parametrize(("kind", "name"), sorted({case[:2] for case in PARAMETERS}))
def test_of_a_parameter(kind, name):
    known = orbit.get(kind, name)
    for key, value in [case[2:] for case in PARAMETERS if case[:2] == (kind, name)]:
        with pytest.raises(InputError) as error:
            orbit.build(kind, name, **{key: value}).check()
        expected = describe(build_parameters(known)[key].annotation)
        assert str(error.value) == f"{known.section}.{key}: expected {expected}, found {value!r}"


# ---- models ----------------------------------------------------------------------------------------------------------


#: The data set of a model -> what writes its data, and its settings.
MODELS = {
    "digits": (lambda: None, ("dataset=digits", *SMALL[:-1])),
    "table": (table(c=["u", "v"] * 20), (*CSV, "dataset.missing=refuse", SMALL[2])),
    "images": (pictures(), (*PICTURES, SMALL[2])),
}


@pytest.fixture(scope="module")
def fit_to(tmp_path_factory) -> Callable[[str], Path]:
    """The run folder of a model, as ``runner=fit`` writes it."""

    @functools.cache
    def fit(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        with contextlib.chdir(folder):
            write, overrides = MODELS[name]
            write()
            ran(folder, *overrides, "runner.check_group=false", "runner.importance=false")
        return folder

    return fit


@pytest.fixture(scope="module")
def fitted(fit_to) -> Path:
    return fit_to("digits")


@pytest.fixture
def job(tmp_path) -> Job:
    return new_job(tmp_path / "job")


@pytest.fixture
def points(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    np.save("new.npy", np.ones((3, 8, 8)))
    return "new.npy"


@pytest.mark.parametrize(("damage", "expected"), FOLDERS, ids=brief)
def test_of_a_model_folder(damage, expected, fitted, points, tmp_path, job):
    shutil.copytree(fitted, tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(InputError) as error:
        Predict("model", points, trust=True).run(job)
    line = str(bad_input(error.value))
    check_line(line, expected)
    assert line.startswith(("runner.model: ", "runner.input: new.npy"))


@pytest.mark.parametrize(("model", "write", "file", "expected"), POINTS, ids=brief)
def test_of_new_points(model, write, file, expected, fit_to, tmp_path, monkeypatch, job):
    folder = fit_to(model)
    monkeypatch.chdir(tmp_path)
    write()
    with pytest.raises(InputError) as error:
        Predict(str(folder), file).run(job)
    line = str(bad_input(error.value))
    check_line(line, expected)
    assert line.startswith("runner.input: ")


def test_of_a_model_for_other_points_than_its_record_says(fitted, tmp_path, monkeypatch, job):
    monkeypatch.chdir(tmp_path)
    np.save("new.npy", np.ones((3, 7, 7)))
    shutil.copytree(fitted, "model")
    record = Path("model/run.json")
    record.write_text(record.read_text().replace('"shape": [\n        8,\n        8\n      ]', '"shape": [7, 7]'))
    with pytest.raises(
        InputError, match=r"^runner\.model: model: its model does not take points of shape \(7, 7\), wh"
    ):
        Predict("model", "new.npy").run(job)


# ---- whole runs ------------------------------------------------------------------------------------------------------


ONE_OF_EACH = "approx.n_components=0", "=3", f"run_name={'x' * 400}", "tracking=3", "engine=null"
VECTORS = "dataset=arrays", "dataset.path=vectors.npz", "group=rotation", "group=rotation acts on images"


@pytest.mark.parametrize("case", [VECTORS, *(case for case in COMMAND_LINES if case[0] in ONE_OF_EACH)], ids=brief)
def test_of_a_run_ends_it_with_exit_code_2_and_one_line(run, case, tmp_path):
    np.savez(tmp_path / "vectors.npz", X=np.ones((20, 5)), y=np.arange(20) % 2)
    *overrides, expected = case
    code, out, err = run("tracking.enabled=false", *overrides)
    assert code == 2
    lines = err.splitlines()
    assert [line for line in lines if "points of shape (5,)" not in line or "error" in line] == lines[-1:]
    assert lines[-1].startswith("error: ")
    assert expected in err
    assert "resolving" not in err  # the value of a key in which another is interpolated
    assert "accuracy" not in out


def test_of_a_section_in_the_name_of_the_run_folder_is_of_its_key(run, tmp_path):
    for kind in ("kernel", "runner"):
        write_experiment(tmp_path / "mine", f"{kind}: null\n")
        err = run.refused(f"hydra.searchpath=[file://{tmp_path}/mine]", "experiment=mine", "tracking.enabled=false")
        assert err.startswith(f"error: {kind}: expected {{name: NAME}} with a NAME of ")
        assert err.endswith(", found null\n")


def test_of_a_job_leaves_its_traceback_in_the_log(run, tmp_path):
    assert run("-m", "approx.n_components=0,-1", "tracking.enabled=false")[0] == 2
    logs = [path.read_text() for path in tmp_path.rglob("run.log")]
    assert len(logs) == 2
    assert all("Traceback" in text for text in logs)


@pytest.mark.parametrize("value", ["-1", "0", "x", "1.5", ""])
def test_of_a_variable_of_numba_is_one_line(value, run, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_NUM_THREADS", value)
    line = f"environment variable NUMBA_NUM_THREADS: expected an integer >= 1, or unset, found {value!r}"
    assert run("approx.n_components=20") == (2, "", f"error: {line}\n")
    assert not folders(tmp_path)
    with pytest.raises(InputError, match=line):  # from Python
        compiled()(len)


def test_of_a_sweep_without_a_job_is_an_error(run):
    code, _, err = run("-m", "group=glob(x*)", "tracking.enabled=false")
    assert code == 1
    assert err == "error: the sweep has no job: expected keys with values, or glob() of a name that exists\n"
