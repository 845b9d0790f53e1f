"""Every registered component inherits the contract of its kind, in whichever test file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import get_args

import contracts
import pytest

import orbit
from orbit.orbits import Rule

CONTRACTS = [
    contracts.GroupContract,
    contracts.DistributionContract,
    contracts.KernelContract,
    contracts.OperatorKernelContract,
    contracts.FrequenciesContract,
    contracts.LandmarksContract,
    contracts.FeatureMapContract,
    contracts.HyperContract,
    contracts.RepresentationContract,
    contracts.ClassifierContract,
    contracts.RegressorContract,
    contracts.SelectionContract,
    contracts.AugmentationContract,
    contracts.LoaderContract,
]


@pytest.fixture(scope="module", autouse=True)
def _all_contracts_are_known():
    for path in Path(__file__).parent.glob("test_*.py"):
        if "from contracts import" in path.read_text():
            importlib.import_module(path.stem)


def created(contract: type) -> set[type]:
    """The classes of the components that the subclasses of a contract, or of a lighter one of its kind, create."""
    tested = [leaf for leaf in contracts.leaves(contracts.ComponentContract) if leaf.kind == contract.kind]
    return {type(leaf().create()) for leaf in tested if leaf is not contract}


def test_every_kind_has_a_contract():
    """Of the library's own: other packages, such as the runners, may register theirs."""
    modules = {kind: [orbit.get(kind, name).__module__ for name in orbit.available(kind)] for kind in orbit.available()}
    kinds = {kind for kind, names in modules.items() if any(name.startswith("orbit.") for name in names)}
    assert {contract.kind for contract in CONTRACTS} == kinds


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.kind)
def test_every_component_inherits_its_contract(contract):
    untested = set(orbit.available(contract.kind)) - {cls.name for cls in created(contract)}
    assert not untested, f"write a subclass of {contract.__name__} for {', '.join(sorted(untested))}"


def test_every_orbit_rule_inherits_its_contract():
    assert {leaf.rule for leaf in contracts.leaves(contracts.OrbitRuleContract)} == set(get_args(Rule))
