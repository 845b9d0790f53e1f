"""Warnings about combinations of components without the property that they are chosen for."""

from __future__ import annotations

import warnings

import pytest
from command_line import composed

from runners.app.plan import plan
from runners.experiments.advice import warn_about_combinations

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein", "kernel=curl_free")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((*FIELD, "representation=standardize"), "kernel=curl_free has its property in the coordinates"),
        (("dataset=xperm", "group=permutation", "representation=standardize"), "group=permutation moves columns"),
        (("dataset=vector_field", "group=identity", "learner=gp"), "vanish far from the landmarks"),
        (FIELD, None),
        (("dataset=xperm", "group=permutation"), None),
        (("dataset=vector_field", "group=identity", "learner=gp", "approx=exact"), None),
        ((), None),
    ],
)
def test_a_combination_without_its_property_is_warned_of(settings, message):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_about_combinations(plan(composed(*settings)), 1)
    assert [message in str(each.message) for each in found] == ([] if message is None else [True])
