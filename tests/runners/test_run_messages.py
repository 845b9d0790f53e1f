"""The library's errors, which name parameters, translated to configuration keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import orbit
import runners.components  # noqa: F401  registers the runners
from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError
from runners.config.messages import ConfigError, config_keys

VON_MISES = {"name": "von_mises", "concentration": -1}


def in_keys(call: Any, *args: Any) -> str:
    with pytest.raises(ConfigError) as error, config_keys():
        call(*args)
    return str(error.value)


def test_a_parameter_of_a_factor_is_named_by_its_place():
    product = orbit.build("distribution", "product", factors=[VON_MISES])
    assert in_keys(product.check).startswith("distribution.factors[0].concentration: expected")


def test_a_part_of_a_component_is_named_by_its_own_section():
    kernel = orbit.build("kernel", "gaussian", lengthscale=-1)
    features = orbit.build("approx", "nystrom", kernel=kernel)
    assert in_keys(features.fit, np.ones((4, 3))).startswith("kernel.lengthscale: expected")


class TestSentences:
    """Errors at fit are sentences, with parameters written as in Python."""

    @staticmethod
    def of_engine(text: str) -> str:
        def fail(self: Any) -> None:
            raise InputError(text)

        return in_keys(fail.__get__(orbit.Engine()))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("path='spectral' needs x: choose path='auto'", "engine.path=spectral needs x: choose engine.path=auto"),
            ("workers=None takes all", "engine.workers=null takes all"),
            ("memory: too little", "engine.memory: too little"),
            ("engine.path=auto is right", "engine.path=auto is right"),
            ("the path is long, of memory", "the path is long, of memory"),
            ("/tmp/path=1/path=2/x and path=3", "/tmp/path=1/path=2/x and engine.path=3"),
        ],
    )
    def test_parameters_of_the_component_become_keys(self, text, expected):
        assert self.of_engine(text) == expected

    def test_runners_write_keys_themselves(self):
        def fail(self: Component) -> None:
            raise InputError("model=3 of dataset.path")

        assert in_keys(fail.__get__(orbit.build("runner", "predict"))) == "model=3 of dataset.path"


def test_errors_outside_components_stay_as_they_are():
    def fail() -> None:
        raise ParameterError("size", "an integer", "many")

    assert in_keys(fail) == "size: expected an integer, found 'many'"


def test_messages_with_keys_are_not_translated_again():
    def fail(self: Component) -> None:
        raise ConfigError("path=1")

    assert in_keys(fail.__get__(orbit.Engine())) == "path=1"


class TestWarnings:
    """Warnings name parameters in Python, and keys on the command line."""

    @pytest.fixture
    def shown(self, run, tmp_path):
        """The log of a run."""

        def shown(*overrides: str) -> str:
            code, _, err = run(*overrides, "tracking.enabled=false", "outputs=out", "runner.save_model=false")
            assert code == 0, err
            (log,) = tmp_path.glob("out/*/*/run.log")
            return log.read_text()

        return shown

    @pytest.fixture
    def series(self, tmp_path) -> str:
        X = np.random.default_rng(0).normal(size=(20, 64, 2))
        np.savez(tmp_path / "series.npz", X=X, y=np.arange(20) % 2)
        return f"dataset.path={tmp_path / 'series.npz'}"

    def test_of_a_group(self, shown, series):
        log = shown("dataset=arrays", series, "group=cyclic", "representation=raw")
        assert "set group.axis=0; group.axis=-1 confirms the last" in log

    def test_of_a_group_within_a_product(self, shown, series):
        factors = "group.factors=[{name: reflection},{name: cyclic}]"
        log = shown("dataset=arrays", series, "group=product", factors, "representation=raw")
        assert "group=product, factors[1]: group=cyclic shifts the last axis" in log
        assert "set axis=0; axis=-1 confirms the last" in log

    def test_of_a_solver(self, shown, series):
        log = shown(
            "dataset=arrays", series, "group=identity", "representation=raw", "learner=svm", "learner.max_iter=1"
        )
        assert "stopped after learner.max_iter=1 steps before it converged for learner.regularization=1e-06" in log

    @pytest.mark.parametrize("learner", ["ridge", "logistic"])
    def test_of_many_classes_is_shown_once(self, shown, tmp_path, learner):
        """scikit-learn gives it in each function that checks the targets."""
        X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 40
        np.savez(tmp_path / "many.npz", X=X, y=np.char.add("class ", y.astype(str)))
        log = shown("dataset=arrays", f"dataset.path={tmp_path / 'many.npz'}", "group=identity", f"learner={learner}")
        assert log.count("unique classes") == 1
