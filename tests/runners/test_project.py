"""``orbit init`` writes a package whose experiment, test and notebook work; test_package.py installs one."""

import errno
import json
import sys

import pytest

from orbit.core.errors import InputError
from runners.app import project
from runners.app.project import init


def test_it_writes_a_package_named_by_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = init(["My-digits"])
    assert said.endswith("Run\n  pip install -e My-digits\n  orbit experiment=my_digits")
    folder = tmp_path / "My-digits"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {
        *("pyproject.toml", "my_digits/__init__.py", "my_digits/groups.py", "my_digits/conf/experiment/my_digits.yaml"),
        *("test_my_digits.py", "explore.ipynb"),
    }
    assert all(name in said for name in written)
    assert not any("my_orbit" in (folder / name).read_text() for name in written)


def test_without_a_folder_it_writes_into_the_working_directory(tmp_path, monkeypatch):
    folder = tmp_path / "digits9"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert init([]).endswith("Run\n  pip install -e .\n  orbit experiment=digits9")
    assert (folder / "digits9" / "groups.py").is_file()


def test_without_a_folder_it_does_not_write_among_other_files(tmp_path, monkeypatch):
    folder = tmp_path / "digits9"
    folder.mkdir()
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    (folder / "notes.txt").touch()
    with pytest.raises(InputError, match=r"^init: this folder has files \(notes.txt\): name a new"):
        init([])
    assert sorted(path.name for path in folder.iterdir()) == [".git", "notes.txt"]
    init(["."])
    assert (folder / "digits9" / "groups.py").is_file()


def test_the_command_line_runs_it(run, tmp_path, monkeypatch):
    import runners.app.cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["orbit", "init", "mine"])
    assert runners.app.cli.main() == 0
    assert (tmp_path / "mine" / "pyproject.toml").is_file()
    assert runners.app.cli.main() == 2, "the files exist now"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("mine", "init: .*/mine/pyproject.toml exists, choose another folder"),
        ("1st", "init: '1st' cannot be the name of a package"),
        (
            "_x",
            "init: '_x' cannot be the name of a package, which has letters a to z, digits and _, begins with a letter",
        ),
        ("x_", "init: 'x_' cannot be the name of a package"),
        ("ünï", "init: 'ünï' cannot be the name of a package"),
        ("lambda", "init: 'lambda' cannot be the name of a package"),
        ("true", "init: 'true' cannot be the name of a package"),
        ("null", "init: 'null' cannot be the name of a package"),
        ("", "init: expected the name of a folder, found ''"),
        ("xperm", "init: experiment=xperm exists, choose another folder"),
        ("numpy", "init: there is a Python package numpy at "),
        ("sys", "init: there is a Python package sys at built-in"),
        ("file/below", "init: cannot write .* .Not a directory."),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(tmp_path, monkeypatch, folder, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pyproject.toml").touch()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=expected):
        init([folder])


def test_a_full_disk_is_named_and_leaves_no_files(tmp_path, monkeypatch):
    write, written = project.write_whole, []

    def until_full(path, text):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        written.append(path)
        write(path, text)

    monkeypatch.setattr(project, "write_whole", until_full)
    with pytest.raises(InputError, match=r"^init: cannot write .*mine.yaml \(No space left on device\)$"):
        init([str(tmp_path / "mine")])
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_more_than_one_folder_is_refused():
    with pytest.raises(InputError, match="^init: unrecognized arguments: other; it takes one folder"):
        init(["mine", "other"])


def test_the_notebook_runs(tmp_path, monkeypatch, install):
    monkeypatch.chdir(tmp_path)
    init(["turning"])
    book = json.loads((tmp_path / "turning" / "explore.ipynb").read_text(encoding="utf-8"))
    package = {"__init__.py": "", "groups.py": (tmp_path / "turning" / "turning" / "groups.py").read_text()}
    install("turning", package, module="groups")
    names: dict = {}
    *before, accuracies, figure = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    for code in before:
        exec(code, names)
    definition, _, last = accuracies.rpartition("\n\n\n")
    exec(definition, names)
    found = eval(last, names)
    assert found["turning_turns"] > found["identity"] + 0.02
    *lines, last = figure.splitlines()
    exec("\n".join(lines), names)
    assert len(eval(last, names).axes[0].images) == 12
