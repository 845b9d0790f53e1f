"""Typed signatures: every kind of annotation, accepted and refused, and what a configuration file can set."""

import enum
import inspect
import math
import pickle
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import orbit
from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError, of_part, suggestion
from orbit.core.params import (
    Fraction,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Range,
    check_params,
    describe,
    parameters,
)
from orbit.core.random import RandomState
from orbit.kernels import Kernel
from runners.config.signatures import config_fields


class Example:
    def __init__(
        self,
        whole: int = 1,
        positive: PositiveInt = 1,
        number: float = 0.5,
        above: PositiveFloat = 1.0,
        not_below: NonNegativeFloat = 0.0,
        share: Fraction = 0.5,
        bounded: Annotated[int, Range(-2, 2)] = 0,
        text: str = "a",
        flag: bool = False,
        choice: Literal["one", "two"] = "one",
        optional: PositiveInt | None = None,
        either: PositiveFloat | str = "median",
        many: list[PositiveFloat] | None = None,
        mapping: dict[str, Any] | None = None,
        parts: list[dict[str, Any] | Kernel] | None = None,
        kernel: Kernel | None = None,
        random_state: RandomState = None,
    ) -> None:
        for name, value in locals().items():
            setattr(self, name, value)


ACCEPTED = {
    "whole": [0, -5, np.int64(3), 10**12],
    "positive": [1, 7, np.int32(7)],
    "number": [0.0, -1.5, 3, np.float32(0.5), np.int64(2)],
    "above": [1e-12, 5, np.float64(2)],
    "not_below": [0, 0.0, 3.5],
    "share": [0.1, 0.999],
    "bounded": [-2, 0, 2],
    "text": ["", "any"],
    "flag": [True, False],
    "choice": ["one", "two"],
    "optional": [None, 3],
    "either": ["median", "anything", 2.0],
    "many": [None, [], [1.0], (1e-3, 2), [1]],
    "mapping": [None, {}, {"a": 1}],
    "parts": [None, [], [{"a": 1}], [orbit.Gaussian(), {"a": 1}]],
}
REFUSED = {
    "whole": ([1.0, "1", None, True, math.nan], "an integer"),
    "positive": ([0, -1, 1.5, True, "two"], "an integer >= 1"),
    "number": ([math.nan, math.inf, "0.5", None, True, 1j], "a finite number"),
    "above": ([0, -1.0, math.inf, "x"], "a finite number > 0"),
    "not_below": ([-1e-12, math.nan], "a finite number >= 0"),
    "share": ([0, 1, 1.0, -0.1, 2], "a finite number > 0 and < 1"),
    "bounded": ([-3, 3, 0.5], "an integer >= -2 and <= 2"),
    "text": ([None, 1, b"a"], "a string"),
    "flag": ([0, 1, "true", None], "true or false"),
    "choice": (["three", None, 1, ["one"], np.array([1, 2])], "one of 'one', 'two'"),
    "optional": ([0, "none", 1.0], "an integer >= 1 or null"),
    "either": ([0.0, -1, None, True], "a finite number > 0 or a string"),
    "many": ([[0.0], [1.0, "x"], 1.0, "12", [[1.0]]], "a list, each item a finite number > 0 or null"),
    "mapping": ([[], "a", 1], "a mapping or null"),
    "parts": ([{}, [1], [orbit.Rotation()]], "a list, each item a mapping or a Kernel or null"),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in ACCEPTED.items() for v in values], ids=str)
def test_accepted(name, value):
    check_params(Example(**{name: value}))


class Choice(enum.Enum):
    TWO = "two"


class Size(enum.IntEnum):
    SEVEN = 7


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("whole", np.array(3), 3),
        ("positive", np.int64(7), 7),
        ("positive", Size.SEVEN, 7),
        ("number", np.array(0.5), 0.5),
        ("above", np.float32(0.5), 0.5),
        ("text", np.str_("any"), "any"),
        ("text", PurePosixPath("folder/file.csv"), "folder/file.csv"),
        ("flag", np.bool_(True), True),
        ("flag", np.array(False), False),
        ("choice", np.str_("two"), "two"),
        ("choice", Choice.TWO, "two"),
        ("choice", np.array("two"), "two"),
        ("optional", np.array(None), None),
        ("either", np.str_("median"), "median"),
        ("many", [np.array(1.0), np.float32(2)], [1.0, 2.0]),
        ("random_state", np.array(3), 3),
    ],
    ids=str,
)
def test_values_of_numpy_enumerations_and_paths_become_plain(name, value, expected):
    example = Example(**{name: value})
    check_params(example)
    found = getattr(example, name)
    assert found == expected
    assert type(found) is type(expected)


def test_a_search_takes_the_items_of_arrays(rng):
    X = rng.standard_normal((30, 2))
    grid = {
        "randomfourier__n_components": np.array([2, 3]),
        "randomfourier__variant": np.array(["pairs", "offset"]),
        "steinregressor__fit_intercept": np.array([True, False]),
    }
    model = make_pipeline(orbit.RandomFourier(), orbit.SteinRegressor())
    found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, X[:, 0])
    assert len(found.cv_results_["params"]) == 8


def test_a_name_of_digits_needs_quotes():
    with pytest.raises(InputError, match="with both quotes, found 200") as error:
        check_params(orbit.Table("mine.csv", target=200))
    assert "\"dataset.target='200'\"" in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "expected"), [(n, v, e) for n, (values, e) in REFUSED.items() for v in values], ids=str
)
def test_refused(name, value, expected):
    with pytest.raises(ParameterError) as error:
        check_params(Example(**{name: value}))
    assert str(error.value) == f"{name}: expected {expected}, found {value!r}"
    assert (error.value.name, error.value.expected) == (name, expected)


def test_examples_cover_every_plain_annotation():
    assert set(ACCEPTED) == set(REFUSED) == set(config_fields(Example))


@pytest.mark.parametrize("seed", ["seed", 1.5, [1], -1], ids=str)
def test_invalid_seeds_are_rejected(seed):
    with pytest.raises(InputError, match="random_state"):
        check_params(Example(random_state=seed))


@pytest.mark.parametrize("seed", [0, np.int64(3), None, np.random.RandomState(0)], ids=str)
def test_seeds(seed):
    check_params(Example(random_state=seed))


def test_parameters_are_the_signature_in_order():
    found = parameters(Example)
    assert list(found) == list(inspect.signature(Example).parameters)
    assert found["positive"].annotation == PositiveInt
    assert found["choice"].default == "one"


class Bare(Component):
    """A component without a constructor."""


def test_no_constructor_means_no_parameters():
    assert dict(parameters(Bare)) == {}
    Bare().check()


def test_configuration_fields_exclude_parts_and_seeds():
    assert {"kernel", "random_state"}.isdisjoint(config_fields(Example))
    from_library = config_fields(orbit.get("approx", "nystrom"))
    assert set(from_library) == {"n_components"}
    assert set(config_fields(orbit.get("distribution", "uniform"))) == {"low", "high", "unit"}
    assert describe(config_fields(Example)["parts"].annotation) == "a list, each item a mapping or null"
    for name, field in config_fields(Example).items():
        assert name == "parts" or field == parameters(Example)[name]


def test_configuration_fields_have_their_choices_in_the_order_of_the_class():
    class Other:
        def __init__(self, choice: Literal["two", "one"] = "one") -> None:
            self.choice = choice

    assert config_fields(Example)["choice"].annotation.__args__ == ("one", "two")
    assert config_fields(Other)["choice"].annotation.__args__ == ("two", "one")


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "text"),
    [
        (Range(), [-1e300, 1e300], [], ""),
        (Range(low=1), [1, 2], [0.999], ">= 1"),
        (Range(low=0, open_low=True), [1e-300], [0, -1], "> 0"),
        (Range(high=2, open_high=True), [1.99], [2], "< 2"),
        (Range(0, 1), [0, 1], [-0.1, 1.1], ">= 0 and <= 1"),
    ],
    ids=str,
)
def test_range(bounds, inside, outside, text):
    assert str(bounds) == text
    assert all(bounds.contains(v) for v in inside)
    assert not any(bounds.contains(v) for v in outside)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_parameter_error_pickles():
    error = ParameterError("size", "an integer >= 1", 0, "orbit")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.name, copied.expected, copied.found) == (str(error), "size", "an integer >= 1", 0)
    assert isinstance(copied, InputError)
    assert isinstance(copied, ValueError)


def test_parameter_error_names_the_section():
    error = ParameterError("size", "an integer >= 1", 0, "orbit")
    assert str(error) == "orbit.size: expected an integer >= 1, found 0"
    with pytest.raises(ParameterError, match=r"^group\.factors\[1\]\.size: expected"), of_part("group", "factors[1]"):
        raise error


def test_suggestion():
    assert suggestion("rotaton", ["identity", "rotation"]) == "; did you mean 'rotation'?"
    assert suggestion("xyz", ["identity", "rotation"]) == "."
    assert suggestion(7, ["seven"]) == "."  # type: ignore[arg-type]
