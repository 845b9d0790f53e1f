"""Python examples of README and of the pages that continue it run as printed, and every choice is named."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
from command_line import EXPERIMENTS
from matplotlib import pyplot

import orbit

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


PYTHON_PAGE = (ROOT / "docs" / "howto" / "python.md").read_text(encoding="utf-8")
EXTEND_PAGE = (ROOT / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
COMPONENTS = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def files_of_the_package() -> dict[str, str]:
    """The class under "Add a group", and the files of the page about extensions by their names."""
    files = dict(re.findall(r"`(\w+\.\w+)` .*?\n```\w+\n(.*?)```", EXTEND_PAGE, re.DOTALL))
    files["reversal.py"] = python_blocks(TEXT[TEXT.index("## Add a group") :])[0]
    assert files.keys() == {"pyproject.toml", "reversal.py", "test_reversal.py"}
    return files


def test_the_python_examples_run_one_after_the_other(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example, *_ = python_blocks(TEXT)
    discovery, search, frames, figures, save, *others = python_blocks(PYTHON_PAGE)
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert float(capsys.readouterr().out) > 0.9
    exec(compile(discovery, "python.md", "exec"), names)
    sentence, accuracy = capsys.readouterr().out.splitlines()
    assert sentence.startswith("Averaging over rotation helps")
    assert float(accuracy) > 0.95
    exec(compile(search, "python.md", "exec"), names)
    assert "'randomfourier__kernel__lengthscale': 0." in capsys.readouterr().out
    exec(compile(frames, "python.md", "exec"), names)
    assert capsys.readouterr().out == "nystrom0 alcohol\n"
    exec(compile(figures, "python.md", "exec"), names)
    assert [ax.get_xlabel() for ax in names["figure"].axes[1:]] == ["orbit size r", "regularisation λ"]
    assert len(names["left"].images) == 2 * 6
    pyplot.close(names["figure"])
    exec(compile(save, "python.md", "exec"), names)
    assert capsys.readouterr().out == "True (100, 10)\n"
    for code in others:
        exec(compile(code, "python.md", "exec"), names)


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
    table = COMPONENTS[COMPONENTS.index("| kind | names |") : COMPONENTS.index("A group has a default")]
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
            assert f"`{name}`" in table, f"the table of docs/reference/index.md lacks {kind}={name}"
    for name in EXPERIMENTS:
        assert f"`{name}`" in table, f"the table of docs/reference/index.md lacks experiment={name}"
