"""Every registered component inherits the contract of its kind, in some test file."""

import importlib
from pathlib import Path
from typing import get_args

import orbit_rules
import pytest
from selection_contract import SelectionContract

import orbit
from orbit import testing
from orbit.orbits import Rule

CONTRACTS = [
    testing.GroupContract,
    testing.DistributionContract,
    testing.KernelContract,
    testing.OperatorKernelContract,
    testing.EncoderContract,
    testing.FrequenciesContract,
    testing.LandmarksContract,
    testing.FeatureMapContract,
    testing.HyperContract,
    testing.RepresentationContract,
    testing.ClassifierContract,
    testing.RegressorContract,
    SelectionContract,
    testing.AugmentationContract,
    testing.DatasetContract,
]


@pytest.fixture(scope="module", autouse=True)
def _all_tests_are_imported():
    with pytest.MonkeyPatch.context() as patch:
        for path in Path(__file__).parent.rglob("test_*.py"):
            if "Contract" in path.read_text():
                patch.syspath_prepend(path.parent)
                importlib.import_module(path.stem)


def leaves(contract: type) -> list[type]:
    """The subclasses of a contract that have no subclass."""
    direct = contract.__subclasses__()
    return [leaf for cls in direct for leaf in leaves(cls)] if direct else [contract]


def created(contract: type) -> set[type]:
    """The classes of the components that are tested by a contract of the same kind."""
    tested = [leaf for leaf in leaves(testing.ComponentContract) if getattr(leaf, "kind", None) == contract.kind]
    return {type(leaf().create()) for leaf in tested if not leaf.__module__.startswith("orbit.testing")}


def test_every_kind_has_a_contract():
    """Of the library's own: other packages, such as the runners, may register theirs."""
    modules = {kind: [orbit.get(kind, name).__module__ for name in orbit.available(kind)] for kind in orbit.available()}
    kinds = {kind for kind, names in modules.items() if any(name.startswith("orbit.") for name in names)}
    assert {contract.kind for contract in CONTRACTS} == kinds | {SelectionContract.kind}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.kind)
def test_every_component_inherits_its_contract(contract):
    untested = set(orbit.available(contract.kind)) - {cls.name for cls in created(contract)}
    assert not untested, f"write a subclass of {contract.__name__} for {', '.join(sorted(untested))}"


def test_every_orbit_rule_inherits_its_contract():
    assert {leaf.rule for leaf in leaves(orbit_rules.OrbitRuleContract)} == set(get_args(Rule))


@pytest.mark.parametrize(
    ("contract", "method", "formula"),
    [
        (testing.KernelContract, "evaluate", r"k\(x, z\) by its formula"),
        (testing.OperatorKernelContract, "evaluate", r"K0\(delta\) by its formula"),
        (testing.FeatureMapContract, "evaluate", "the features by their formula"),
        (testing.FeatureMapContract, "expected_gram", "the kernel that inner products of features approximate"),
    ],
)
def test_formulas_that_a_contract_needs_are_asked_for(contract, method, formula):
    arguments = [None] * (getattr(contract, method).__code__.co_argcount - 1)
    with pytest.raises(
        NotImplementedError, match=f"^{contract.__name__}.{method}: expected a method that gives {formula}$"
    ):
        getattr(contract(), method)(*arguments)
