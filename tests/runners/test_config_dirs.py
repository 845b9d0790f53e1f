"""Components and configuration files of other packages, and folders of files added on the command line."""

from pathlib import Path

import pytest
from command_line import write_experiment

from runners.config import config_dirs
from runners.tracking.record import RunFolder

PLUGIN = Path(__file__).parents[1] / "extension" / "plugin"
FILES = {
    path.relative_to(PLUGIN).as_posix(): path.read_text()
    for path in PLUGIN.rglob("*")
    if path.suffix in (".py", ".yaml")
}
PRESET = FILES["conf/kernel/wide.yaml"]
BAD = {"conf/experiment/bad.yaml": "# @package _global_\nhydra: {x: {_target_: os.getcwd}}\n"}


def test_a_package_brings_components_a_preset_and_an_experiment(install, run):
    install("plugin", FILES)
    folder = run.finished(
        "experiment=pulses", "approx=nystrom", "kernel=wide", "learner=ridge", "tracking.enabled=false"
    )
    config = RunFolder(folder).read_config()
    assert (config["group"]["name"], config["kernel"]) == ("reversal", {"name": "multiquadric", "width": 4.0})


def test_they_are_documented_and_their_keys_are_checked(install, run):
    install("plugin", FILES)
    about = "distribution.backwards=0.4\n    expects a finite number > 0 and < 1\n    Probability of the second"
    assert about in run.ok("--info", "distribution=mostly_forwards")
    assert "kernel=wide" in run.ok("--info", "kernel")
    assert run.ok("--info", "kernel=wide") == PRESET
    assert "experiment=pulses" in run.ok("--info", "experiment")
    err = run.refused("experiment=pulses", "kernel.widht=1")
    assert err == "error: kernel.widht: no such key; did you mean 'width'? Choose from name, width.\n"


def test_files_of_a_package_that_name_code_are_refused(install, run):
    folder = install("plugin", FILES | BAD)
    err = run.refused("experiment=bad")
    assert err.startswith(f"error: {folder / 'conf/experiment/bad.yaml'}: the key '_target_' names code to run")


def test_a_module_outside_of_a_package_has_no_files(install, tmp_path):
    install(".", {"alone.py": "", "conf/kernel/wide.yaml": PRESET}, module=None)
    (about,) = tmp_path.rglob("entry_points.txt")
    about.write_text("[orbit.components]\nalone = alone\n")
    assert not [folder for folder in config_dirs.of_plugins() if folder.is_relative_to(tmp_path)]


def test_a_search_path_adds_folders(run, tmp_path):
    write_experiment(tmp_path / "mine", "approx: {n_components: 8}\n", "nystrom8")
    for given in ("hydra.searchpath=[mine]", f"hydra.searchpath=[file://{tmp_path / 'mine'}]"):
        assert "n_components: 8\n" in run.ok("--cfg", "job", "--package", "approx", given, "experiment=nystrom8")
    write_experiment(tmp_path / "mine", BAD["conf/experiment/bad.yaml"], "bad")
    assert "bad.yaml: the key '_target_' names code to run" in run.refused("hydra.searchpath=[mine]", "experiment=bad")
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
    assert run.refused("group=identity") == (
        "error: package failing: its components in failing cannot be imported (ModuleNotFoundError: No module named "
        "'no_such_module'): mend or uninstall it\n"
    )
