"""The files about the project agree with its code: version, Pythons, commands."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

import orbit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: str):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_version():
    assert read("CITATION.cff")["version"] == orbit.__version__
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert orbit.__version__ in headings


def test_every_python_of_the_classifiers_is_tested():
    named = [found[1] for line in PROJECT["classifiers"] if (found := re.fullmatch(r".*Python :: (3\.\d+)", line))]
    assert named == read(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert f">={named[0]}" == PROJECT["requires-python"]


def test_every_dependency_is_locked_and_its_licence_listed():
    wanted = [Requirement(line) for line in PROJECT["dependencies"]]
    extra = [Requirement(line) for lines in PROJECT["optional-dependencies"].values() for line in lines]
    lock = (ROOT / "requirements" / "ci.lock").read_text(encoding="utf-8")
    locked = [Requirement(line) for line in lock.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.]+", str(each.specifier)) and each.url is None for each in locked)
    for needed in wanted + extra:
        versions = [str(each.specifier).removeprefix("==") for each in locked if each.name == needed.name]
        assert versions, needed
        assert all(needed.specifier.contains(version) for version in versions), needed
    licences = dict(re.findall(r"^\| (\S+) \| (.+) \|$", (ROOT / "requirements/licences.md").read_text(), re.MULTILINE))
    assert {each.name for each in wanted} <= licences.keys()
    assert all(licences.values())
