"""Writes requirements/licences.md: the licences of all packages that a plain installation needs.

    python requirements/make_licences.py

reads the metadata of the packages in this environment, from the dependencies in pyproject.toml on.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
TARGET = Path(__file__).parent / "licences.md"

_HEADER = """# Licences of dependencies

All packages that `pip install orbit-kernels` installs on Linux, with the CPU build of torch, and the licences that
their metadata name. Written by `python requirements/make_licences.py`; versions are in [ci.lock](ci.lock).

| package | licence |
|---|---|
"""
_LONGEST = 60  # older packages have the whole text of their licence in this field


def needed(names: list[str]) -> dict[str, Distribution]:
    """Packages by their canonical names, with all that they need; those that are not installed are left out."""
    found: dict[str, Distribution] = {}
    while names:
        name = canonicalize_name(names.pop())
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another platform
            continue
        if name not in found:
            found[name] = package
            names += [one.name for one in map(Requirement, package.requires or []) if _applies(one)]
    return found


def licence(package: Distribution) -> str:
    """The licence as metadata name it: an SPDX expression, or classifiers, or a short text."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    if named := [line.rpartition(" :: ")[2] for line in classifiers if not line.endswith("OSI Approved")]:
        return ", ".join(named)
    text = (metadata.get("License") or "").strip().splitlines()
    return text[0][:_LONGEST] if text else "not stated"


def table() -> str:
    """The page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages = needed([re.split(r"[\s<>=!~\[;]", line)[0] for line in project["dependencies"]])
    return _HEADER + "".join(f"| {name} | {licence(packages[name])} |\n" for name in sorted(packages))


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")
