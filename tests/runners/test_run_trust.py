"""Files from strangers run no code: configurations, checkpoints, models, folders of runs, arrays."""

import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import CONF, new_job, quickly_composed, write_experiment
from omegaconf import OmegaConf

from orbit import AdaGradClassifier, AdaGradRegressor, InputError, NetworkClassifier
from orbit.core import models
from runners.config.files import check_files
from runners.config.plan import plan
from runners.experiments.checkpoint import checkpoint_path, read_checkpoint, write_checkpoint
from runners.experiments.training import Training
from runners.tracking import upload
from runners.tracking.record import MODEL_KEYS


class Bomb:
    """A pickle of it creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def bomb(tmp_path) -> Bomb:
    return Bomb(tmp_path / "it ran")


@pytest.fixture(autouse=True)
def _nothing_ran(tmp_path):
    yield
    assert not (tmp_path / "it ran").exists()


class TestModels:
    def test_own_models_are_loaded_others_only_if_trusted(self, tmp_path):
        own, copied = tmp_path / "own", tmp_path / "copied"
        own.mkdir()
        models.write_model(own, {"a": 1})
        assert models.load_model(own) == {"a": 1}
        shutil.copytree(own, copied)
        assert models.load_model(copied) == {"a": 1}, "a folder may be moved"
        (copied / models.SIGNATURE).unlink()
        with pytest.raises(InputError, match=r"^runner.model: .*model.pkl was not written by you .* runner.trust=true"):
            models.load_model(copied, False, *MODEL_KEYS)
        assert models.load_model(copied, trust=True) == {"a": 1}

    @pytest.mark.parametrize("signature", ["", "0" * 64, "ü", "\x00", None])
    def test_a_signature_cannot_be_made_up(self, tmp_path, bomb, signature):
        models.write_model(tmp_path, {"a": 1})  # its signature is that of another content
        (tmp_path / models.MODEL).write_bytes(pickle.dumps(bomb))
        if signature is not None:
            (tmp_path / models.SIGNATURE).write_bytes(signature.encode())
        with pytest.raises(InputError, match="was not written by you"):
            models.load_model(tmp_path)

    def test_the_key_is_readable_by_its_user_only_and_lasts(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
        models.write_model(tmp_path, 1)
        key = tmp_path / "home/orbit/model_key"
        assert key.stat().st_mode & 0o077 == 0
        assert [path.name for path in key.parent.iterdir()] == ["model_key"]
        models._key_in.cache_clear()
        assert models.load_model(tmp_path) == 1
        key.write_bytes(bytes(32))  # another user
        models._key_in.cache_clear()
        with pytest.raises(InputError, match="was not written by you"):
            models.load_model(tmp_path)

    def test_without_a_place_for_the_key_a_process_still_loads_its_own(self, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
        models.write_model(tmp_path, 1)
        assert models.load_model(tmp_path) == 1

    def test_an_upload_leaves_a_foreign_model_out(self, tmp_path, bomb, log_messages):
        (tmp_path / models.MODEL).write_bytes(pickle.dumps(bomb))
        np.savez(tmp_path / "input_example.npz", X=np.ones(1), y=np.ones(1))
        run = type("Run", (), {"outputs": None})()
        upload._log_model(None, "", run, tmp_path)
        assert "the model is not uploaded: runner.model" in "\n".join(log_messages)


LEARNERS = {
    "classifier": (
        AdaGradClassifier(epochs=3, random_state=0),
        lambda X: np.array(["a", "b"])[(X[:, 0] > 0).astype(int)],
    ),
    "regressor": (AdaGradRegressor(learning_rate=0.1, epochs=3, random_state=0), lambda X: X[:, 0]),
    "outputs": (AdaGradRegressor(learning_rate=0.1, epochs=3, random_state=0), lambda X: X[:, :2]),
    **{
        f"network, {optimizer}": (
            NetworkClassifier(width=4, learning_rate=[0.01, 0.1], epochs=3, optimizer=optimizer, random_state=0),
            lambda X: (X[:, 0] > 0).astype(int),
        )
        for optimizer in ("adagrad", "adam")
    },
}


def _line_of(call):
    """What ``call`` returns, or the text of its InputError."""
    try:
        return call()
    except InputError as error:
        return str(error)


class TestCheckpoints:
    @pytest.fixture
    def path(self, tmp_path) -> Path:
        write_checkpoint(tmp_path / "a.npz", {"x": np.arange(30.0), "names": np.array(["a", "b"])})
        return tmp_path / "a.npz"

    def test_arrays_come_back(self, path):
        arrays = read_checkpoint(path)
        np.testing.assert_array_equal(arrays["x"], np.arange(30.0))
        assert arrays["names"].tolist() == ["a", "b"]
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    @pytest.mark.parametrize("name", LEARNERS)
    def test_every_learner_goes_on_from_the_file_to_the_same_result(self, tmp_path, rng, name):
        learner, target = LEARNERS[name]
        X = rng.standard_normal((60, 6))
        y = target(X)

        def epoch(model):
            model.partial_fit(X, y)
            model.end_epoch()

        whole, begun = (type(learner)(**learner.get_params()) for _ in range(2))
        for _ in range(3):
            epoch(whole)
        for _ in range(2):
            epoch(begun)
        write_checkpoint(tmp_path / "a.npz", begun.checkpoint())
        resumed = type(learner)(**learner.get_params())
        resumed.resume(read_checkpoint(tmp_path / "a.npz"))
        assert resumed.remaining_epochs() == 1
        epoch(resumed)
        np.testing.assert_array_equal(resumed.finalize().predict(X), whole.finalize().predict(X))
        assert resumed.history_ == whole.history_

    def test_damage_is_one_line(self, path):
        whole = path.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 60).astype(int):
            for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
                path.write_bytes(content)
                found = _line_of(lambda: read_checkpoint(path))
                if isinstance(found, dict):  # a byte that no reader uses, such as a time stamp
                    np.testing.assert_array_equal(found["x"], np.arange(30.0))
                else:
                    assert found.startswith(f"resume: the checkpoint {path} is damaged (")
                    assert "\n" not in found

    def test_another_version_is_refused(self, path):
        np.savez(path, version=np.array(99))
        with pytest.raises(InputError, match="it has version 99, this program reads version 4"):
            read_checkpoint(path)

    def test_objects_are_not_unpickled(self, path, bomb):
        for content in (np.array([bomb], dtype=object), pickle.dumps(bomb)):
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                np.savez(path, x=content)
            with pytest.raises(InputError, match="is damaged"):
                read_checkpoint(path)

    def test_the_checkpoint_of_other_data_is_another_file(self, tmp_path):
        settings = ("dataset=arrays", f"dataset.path={tmp_path / 'a.npz'}", "group=identity", f"outputs={tmp_path}")
        settings += ("dataset.task=classification",)  # so that a plan needs no look at the labels
        paths = []
        for labels in ([0, 1], [1, 0], [1, 0]):
            np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array(labels))
            paths.append(checkpoint_path(plan(quickly_composed(*settings)), ".npz"))
        assert paths[0] != paths[1] == paths[2]

    def test_the_checkpoint_of_another_training_is_one_line(self, tmp_path):
        job = new_job(tmp_path, "learner=adagrad", "engine.stream=true", "resume=true")
        training = Training(job, job.plan)
        for arrays in ({}, {"stream": np.array("{")}, {"stream": np.array("{}"), "path_": np.ones(1)}):
            write_checkpoint(training.path, arrays)
            stream = type("Stream", (), {"state": None})()
            with pytest.raises(InputError, match="is damaged .it is of another training"):
                training.resume(AdaGradClassifier(), stream)


CONFIGS = {
    "callback": "hydra:\n  callbacks:\n    x:\n      _target_: pathlib.Path.touch\n      self: FILE\n",
    "escaped": 'hydra:\n  callbacks:\n    x:\n      "\\u005ftarget_": pathlib.Path.touch\n      self: FILE\n',
    "logging": "hydra:\n  job_logging:\n    handlers:\n      x:\n        (): pathlib.Path\n",
    "component": "kernel:\n  _target_: pathlib.Path.touch\n  self: FILE\n",
    "class": "hydra:\n  job_logging:\n    handlers:\n      x:\n        class: subprocess.Popen\n",
    "flow": "hydra: {job_logging: {handlers: {x: {'class': subprocess.Popen, args: [touch, FILE]}}}}\n",
    "comment": "hydra: {job_logging: {handlers: {x: {? class # of a handler\n : subprocess.Popen}}}}\n",
    "alias": "a: &k class\nhydra: {job_logging: {handlers: {x: {*k : subprocess.Popen}}}}\n",
    "tag": "hydra: {job_logging: {handlers: {x: {!!str class: subprocess.Popen}}}}\n",
    "list": "selection:\n  grid:\n    - {_target_: pathlib.Path.touch}\n",
}


class TestConfigurations:
    @pytest.mark.parametrize("name", CONFIGS)
    def test_files_that_name_code_are_refused(self, run, tmp_path, name):
        path = write_experiment(tmp_path, CONFIGS[name].replace("FILE", str(tmp_path / "it ran")))
        err = run.refused("--config-dir", str(tmp_path), "experiment=mine")
        assert re.match(rf"error: {path}: the key '\S+' names code to run", err)
        assert not (tmp_path / "it ran").exists()

    @pytest.mark.parametrize(
        "way", ["../../elsewhere/experiment/evil", "/../elsewhere/experiment/evil", "/linked/evil"]
    )
    def test_files_of_other_folders_are_checked_when_hydra_reads_them(self, run, tmp_path, way):
        write_experiment(tmp_path / "elsewhere", CONFIGS["callback"].replace("FILE", str(tmp_path / "it ran")), "evil")
        write_experiment(tmp_path / "theirs", f"defaults: [{way}]\n")
        (tmp_path / "theirs" / "linked").symlink_to("../elsewhere/experiment")
        err = run.refused("--config-dir", str(tmp_path / "theirs"), "experiment=mine")
        assert "evil.yaml: the key '_target_' names code to run" in err

    def test_texts_in_a_file_become_no_sections(self, run, tmp_path):
        env = f"env: {{a: '{{_tar', b: 'get_: pathlib.Path.touch, self: {tmp_path / 'it ran'}}}'}}"
        write_experiment(
            tmp_path, f"hydra:\n  {env}\n  callbacks: {{x: '${{oc.decode:${{hydra.env.a}}${{hydra.env.b}}}}'}}\n"
        )
        err = run.refused("--config-dir", str(tmp_path), "experiment=mine")
        assert "oc.decode: expected a number, true, false, null or a text, found '{_target_: pathlib" in err

    def test_numbers_in_texts_are_decoded(self, monkeypatch):
        monkeypatch.setenv("ORBIT_TEST_SEED", "7")
        check_files(CONF)
        assert OmegaConf.create({"seed": "${oc.decode:${oc.env:ORBIT_TEST_SEED}}"}).seed == 7


LOADERS = re.compile(r"\b(np\.load|(?:torch|joblib|pickle|cloudpickle|dill|marshal)\.loads?|read_pickle|shelve)\(.*")


def test_no_other_code_unpickles():
    root = CONF.parent
    found = [
        (str(path.relative_to(root)), match[0])
        for folder in ("orbit", "runners", "papers", "benchmarks")
        for path in sorted((root / folder).rglob("*.py"))
        for match in LOADERS.finditer(path.read_text())
        if "orbit/testing" not in str(path) and "allow_pickle=False" not in match[0]
    ]
    assert found == [("orbit/core/models.py", "pickle.load(file)")]
