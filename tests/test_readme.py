"""README's examples run as printed, links lead to files, and every choice is named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import orbit
from orbit import registry

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_of(start: str, end: str) -> list[str]:
    """The Python blocks of a part of README."""
    return re.findall(r"```python\n(.*?)```", TEXT[TEXT.index(start) : TEXT.index(end)], re.DOTALL)


def test_the_python_examples_run_one_after_the_other(capsys):
    example, search = code_of("## From Python", "## Add a group")
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert float(capsys.readouterr().out) > 0.9
    few = names["data"].take(np.arange(200))
    exec(compile(search, "README.md", "exec"), names | {"data": few})
    assert "'randomfourier__kernel__lengthscale': 0." in capsys.readouterr().out


def test_the_group_passes_its_contract(monkeypatch, rng):
    known = {kind: dict(classes) for kind, classes in registry._classes.items()}
    monkeypatch.setattr(registry, "_classes", known)  # which the example adds to
    names: dict = {"__name__": "reversal"}
    for code in code_of("## Add a group", "## Structure of the code"):
        exec(compile(code, "README.md", "exec"), names)
    contract = names["TestReversal"]()
    contract.test_is_registered_under_its_name()
    contract.test_composition_is_associative()
    contract.test_is_unitary_if_and_only_if_inner_products_are_kept(rng)
    signals = rng.standard_normal((5, 12))
    assert "reversal" in orbit.available("group")
    features = orbit.build("approx", "rf", orbit=orbit.Orbit(orbit.build("group", "reversal")), random_state=0)
    psi = features.fit_transform(signals)
    np.testing.assert_allclose(features.transform(signals[:, ::-1].copy()), psi, atol=1e-12)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


def test_it_names_every_choice():
    table = TEXT[TEXT.index("| kind | names |") : TEXT.index("A group has a default")]
    for kind in (
        "group",
        "distribution",
        "kernel",
        "approx",
        "hyper",
        "frequencies",
        "landmarks",
        "representation",
        "encoder",
        "learner",
        "selection",
        "augmentation",
        "dataset",
    ):
        for name in orbit.available(kind):
            assert f"`{name}`" in table, f"README's table of choices lacks {kind}={name}"
    for path in (ROOT / "conf" / "experiment").glob("*.yaml"):
        assert f"`{path.stem}`" in table, f"README's table of choices lacks experiment={path.stem}"
