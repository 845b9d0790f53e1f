"""Components and configuration files of other packages, and folders of files added on the command line."""

from __future__ import annotations

import pytest

from runners.config import config_dirs

GROUP = '''
import torch
import orbit
from orbit.groups import Group
from orbit.groups.domains import Finite


@orbit.register("group", "swap")
class Swap(Group):
    """Vectors, forwards or backwards.

    Parameters
    ----------
    broken : bool
        Whether the result has a wrong shape.
    """

    domain = Finite(2)
    default_size = 2

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def compose(self, left, right):
        return (left + right) % 2

    def inverse(self, elements):
        return elements

    def check_shape(self, shape):
        pass

    def _act(self, elements, X):
        moved = torch.stack([X.flip(1) if element else X for element in elements])
        return moved[:, :, :-1] if self.broken else moved

    _adjoint = _act
'''

EXPERIMENT = """\
# @package _global_
# Vectors in both directions
# orbit experiment=swapped
defaults:
  - override /dataset: xperm
  - override /group: swap
  - override /kernel: wide

dataset: {n_train: 60, n_test: 40}
approx: {n_components: 20}
runner: {save_model: false}
tracking: {enabled: false}
"""

PRESET = "# A Gaussian of a large width\ndefaults:\n  - /schema/kernel/gaussian@_here_\n\nlengthscale: 9.0\n"

FILES = {
    "__init__.py": "",
    "groups.py": GROUP,
    "conf/experiment/swapped.yaml": EXPERIMENT,
    "conf/kernel/wide.yaml": PRESET,
}


@pytest.fixture
def swapping(install):
    return install("swapping", FILES, module="groups")


def test_a_package_brings_a_group_a_preset_and_an_experiment(swapping, run, tmp_path):
    run.ok("experiment=swapped", "seed=1")
    (config,) = tmp_path.rglob("config.yaml")
    assert "name: swap" in config.read_text()
    assert "lengthscale: 9.0" in config.read_text()
    line = run.refused("experiment=swapped", "group.broken=true").strip().splitlines()[-1]
    assert line.startswith("error: Swap._act: expected a tensor of shape (2, ")
    assert ", 5, 8), (elements, points, *shape), found shape (2, " in line


def test_they_are_documented_and_their_keys_are_checked(swapping, run):
    assert "group.broken=false\n    expects true or false\n    Whether the result" in run("--info", "group=swap")[1]
    assert "kernel=wide" in run("--info", "kernel")[1]
    assert run("--info", "kernel=wide")[1] == PRESET
    assert "experiment=swapped" in run("--info", "experiment")[1]
    assert run("experiment=swapped", "group.broke=true")[::2] == (
        2,
        "error: group.broke: no such key; did you mean 'broken'? Choose from name, broken.\n",
    )


def test_files_of_a_package_that_name_code_are_refused(install, run):
    files = FILES | {"conf/experiment/bad.yaml": "# @package _global_\nhydra: {x: {_target_: os.getcwd}}\n"}
    folder = install("swapping", files, module="groups")
    err = run.refused("experiment=bad")
    assert err.startswith(f"error: {folder / 'conf/experiment/bad.yaml'}: the key '_target_' names code to run")


def test_a_module_outside_of_a_package_has_no_files(install, tmp_path):
    install(".", {"alone.py": "", "conf/kernel/wide.yaml": PRESET}, module=None)
    (about,) = tmp_path.rglob("entry_points.txt")
    about.write_text("[orbit.components]\nalone = alone\n")
    assert not [folder for folder in config_dirs.of_plugins() if folder.is_relative_to(tmp_path)]


def test_a_search_path_adds_folders(run, tmp_path):
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    (folder / "nystrom8.yaml").write_text("# @package _global_\napprox: {n_components: 8}\n")
    for given in ("hydra.searchpath=[mine]", f"hydra.searchpath=[file://{tmp_path / 'mine'}]"):
        assert "n_components: 8\n" in run.ok("--cfg", "job", "--package", "approx", given, "experiment=nystrom8")
    (folder / "bad.yaml").write_text("# @package _global_\nhydra: {x: {_target_: os.getcwd}}\n")
    code, out, err = run("hydra.searchpath=[mine]", "experiment=bad")
    assert (code, out) == (2, "")
    assert "bad.yaml: the key '_target_' names code to run" in err
    expected = "error: hydra.searchpath: expected folders of configuration files, found no folder other\n"
    assert run("hydra.searchpath=[other]") == (2, "", expected)


@pytest.fixture
def added(tmp_path):
    """A folder of experiments, one with a byte order mark and one in Latin-1, and one whose name ends in .yml."""
    folder = tmp_path / "conf"
    (folder / "experiment").mkdir(parents=True)
    text = "# @package _global_\n# Mélange\ndefaults:\n  - override /group: identity\n"
    for name, encoding in (("bom.yaml", "utf-8-sig"), ("latin.yaml", "latin-1"), ("other.yml", "utf-8")):
        (folder / "experiment" / name).write_text(text, encoding=encoding)
    return folder


def test_encodings_and_endings_of_files(added, run):
    where = "--config-dir", str(added)
    out = run.ok(*where, "--info", "experiment")
    assert [line.split(maxsplit=1)[1] for line in out.splitlines() if "lange" in line] == ["Mélange", "M\ufffdlange"]
    for name, message in (
        ("latin", "experiment/latin.yaml: 'utf-8' codec can't decode byte"),
        ("other", f"experiment=other: expected a file other.yaml, found {added / 'experiment' / 'other.yml'}"),
    ):
        assert message in run.refused(*where, f"experiment={name}")


def test_a_package_that_cannot_be_imported_is_one_line(install, run):
    install("failing", {"__init__.py": "import no_such_module"})
    code, out, err = run("group=identity")
    assert (code, out) == (2, "")
    assert err == (
        "error: package failing: its components in failing cannot be imported (ModuleNotFoundError: No module named "
        "'no_such_module'): mend or uninstall it\n"
    )
