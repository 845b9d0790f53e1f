"""README's Python examples run as printed, and every choice is named; commands and links: test_documentation.py."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
from matplotlib import pyplot

import orbit

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def code_of(start: str, end: str) -> list[str]:
    """The Python blocks of a part of README."""
    return re.findall(r"```python\n(.*?)```", TEXT[TEXT.index(start) : TEXT.index(end)], re.DOTALL)


def files_of_the_package() -> dict[str, str]:
    """The files of the section "Add a group": a name, and the code block below it."""
    section = TEXT[TEXT.index("## Add a group") : TEXT.index("## Structure of the code")]
    files = dict(re.findall(r"`(\w+\.\w+)` .*?\n```\w+\n(.*?)```", section, re.DOTALL))
    assert files.keys() == {"pyproject.toml", "reversal.py", "test_reversal.py"}
    return files


def test_the_python_examples_run_one_after_the_other(capsys):
    example, search, frames, figures = code_of("## From Python", "## Add a group")
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert float(capsys.readouterr().out) > 0.9
    few = names["data"].take(np.arange(200))
    exec(compile(search, "README.md", "exec"), names | {"data": few})
    assert "'randomfourier__kernel__lengthscale': 0." in capsys.readouterr().out
    exec(compile(frames, "README.md", "exec"), names)
    assert capsys.readouterr().out == "nystrom0 alcohol\n"
    exec(compile(figures, "README.md", "exec"), names)
    assert [ax.get_xlabel() for ax in names["figure"].axes[1:]] == ["orbit size r", "regularisation $\\lambda$"]
    assert len(names["left"].images) == 2 * 6
    pyplot.close(names["figure"])


def test_the_group_passes_its_contract(own_registry, tmp_path, monkeypatch, rng):
    """Every test of it runs where the package is installed, in test_package.py."""
    monkeypatch.syspath_prepend(tmp_path)
    for file, content in files_of_the_package().items():
        (tmp_path / file).write_text(content)
    contract = importlib.import_module("test_reversal").TestReversal()
    contract.test_is_registered_under_its_name()
    contract.test_composition_is_associative()
    contract.test_is_unitary_if_and_only_if_inner_products_are_kept(rng)
    signals = rng.standard_normal((5, 12))
    assert "reversal" in orbit.available("group")
    features = orbit.build("approx", "rf", orbit=orbit.Orbit(orbit.build("group", "reversal")), random_state=0)
    psi = features.fit_transform(signals)
    np.testing.assert_allclose(features.transform(signals[:, ::-1].copy()), psi, atol=1e-12)


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
