"""README's Python examples run as printed, and its picture files exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import orbit

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run_one_after_the_other(capsys):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    example, search = (block for block in blocks if "import" in block)
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert float(capsys.readouterr().out) > 0.9
    few = names["data"].take(np.arange(200))
    exec(compile(search, "README.md", "exec"), names | {"data": few})
    assert "'randomfourier__kernel__lengthscale': 0." in capsys.readouterr().out


def test_its_pictures_exist():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", TEXT)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_it_names_every_choice():
    table = TEXT[TEXT.index("| kind | names |") : TEXT.index("A group knows its usual")]
    for kind in (
        "group",
        "distribution",
        "kernel",
        "approx",
        "hyper",
        "frequencies",
        "landmarks",
        "representation",
        "learner",
        "selection",
        "augmentation",
        "dataset",
    ):
        for name in orbit.available(kind):
            assert f"`{name}`" in table, f"README's table of choices lacks {kind}={name}"
