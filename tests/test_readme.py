"""README's Python example runs as printed, and its picture files exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs(capsys):
    example = next(block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "import orbit" in block)
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) > 0.9


def test_its_pictures_exist():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", TEXT)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_it_names_every_choice():
    import orbit

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
        "classifier",
        "regressor",
        "selection",
        "augmentation",
        "dataset",
    ):
        for name in orbit.available(kind):
            assert f"`{name}`" in table, f"README's table of choices lacks {kind}={name}"
