"""Names and signatures of components without their classes: equal to those of the classes, and never out of date."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from command_line import SMALL

import orbit
import runners.components  # noqa: F401  registers the runners
from orbit.core.errors import ParameterError, UnknownNameError
from orbit.core.models import read
from orbit.core.params import PositiveInt, check_value, describe
from runners.config import signatures
from runners.config.signatures import KINDS, names, signature

ROOT = Path(__file__).parents[2]

#: What help, information and refusals must not import; tracking and figures come after them.
HEAVY = {"torch", "numpy", "scipy", "sklearn", "pandas", "matplotlib", "mlflow", "sqlalchemy", "numba", "joblib"}


def everything() -> dict[tuple[str, str], signatures.Signature]:
    known = [(kind, name) for kind in KINDS for name in names(kind)]
    return {(kind, name): signature(kind, name) for kind, name in [*known, ("orbit", "orbit"), ("engine", "engine")]}


@pytest.fixture
def new_process(monkeypatch, tmp_path):
    """``new_process()``: from here on, as in a process that has imported no component; the cache folder is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    imported = sys.modules["runners.components"]

    def forget() -> None:
        monkeypatch.delitem(sys.modules, "runners.components", raising=False)
        signatures._read.cache_clear()

    yield forget
    signatures._read.cache_clear()
    sys.modules["runners.components"] = imported


def cached(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "cache" / "orbit").iterdir()
    return path


def test_a_value_is_allowed_if_one_of_two_classes_allows_it():
    class Number:
        """A number.

        Parameters
        ----------
        size : int >= 1
            How many.
        """

        def __init__(self, size: PositiveInt = 2) -> None: ...

    class Word:
        """A word."""

        def __init__(self, size: Literal["auto"] = "auto", short: bool = True) -> None: ...

    found = signatures.Signature.of(Number, Word)
    assert (found.summary, found.texts) == ("A number.", {"size": "How many."})
    assert list(found.parameters) == ["size", "short"]
    annotation = found.parameters["size"].annotation
    for value in (3, "auto"):
        check_value("size", value, annotation)
    with pytest.raises(ParameterError, match="size: expected an integer >= 1 or 'auto', found -1"):
        check_value("size", -1, annotation)


class TestOnDisk:
    def test_equal_those_of_the_classes(self, new_process, tmp_path):
        expected = everything()
        new_process()
        assert everything() == expected
        assert signatures.classes_are_imported(), "nothing was on disk"
        assert cached(tmp_path)
        new_process()
        found = everything()
        assert not signatures.classes_are_imported()
        assert found == expected
        for key, known in expected.items():
            assert list(found[key].parameters) == list(known.parameters), "in the order of the signature"
            for name, parameter in known.parameters.items():
                assert describe(found[key].parameters[name].annotation) == describe(parameter.annotation)

    def test_unknown_names_are_answered_as_by_the_registry(self, new_process):
        messages = []
        for _ in range(2):
            with pytest.raises(UnknownNameError) as error:
                signature("group", "rotaton")
            messages.append(str(error.value))
            names("group")
            new_process()
            names("group")
            new_process()
        assert not signatures.classes_are_imported()
        assert messages[0] == messages[1]

    @pytest.mark.parametrize("damage", [b"", b"cos\n_exit\n(I3\ntR.", None])
    def test_a_damaged_or_forged_file_is_replaced(self, new_process, tmp_path, damage):
        new_process()
        whole = names("kernel")
        file = cached(tmp_path) / "signatures.pkl"
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2] if damage is None else damage)
        new_process()
        assert names("kernel") == whole
        assert signatures.classes_are_imported()
        new_process()
        assert names("kernel") == whole
        assert not signatures.classes_are_imported()

    @pytest.mark.parametrize("change", ["time", "removed", "new file beside it", "during the import"])
    def test_a_source_that_changes_makes_it_out_of_date(self, new_process, monkeypatch, tmp_path, change):
        source = tmp_path / "package" / "module.py"
        source.parent.mkdir()
        source.write_text("one")
        os.utime(source, (1e9, 1e9))
        monkeypatch.setattr(signatures, "_sources", lambda known: {str(source), str(source.parent)})
        if change == "during the import":
            os.utime(source, (1e10, 1e10))
        new_process()
        whole = names("kernel")
        if change == "time":
            os.utime(source, (2e9, 2e9))
        elif change == "removed":
            source.unlink()
        elif change == "new file beside it":
            source.with_name("more.py").write_text("")
        new_process()
        assert names("kernel") == whole
        assert signatures.classes_are_imported()

    def test_without_a_folder_to_write_in(self, new_process, tmp_path):
        (tmp_path / "cache").write_text("a file")
        new_process()
        assert "gaussian" in names("kernel")

    def test_every_source_is_one_of_its_files(self, new_process, tmp_path):
        new_process()
        names("kernel")
        _, files, _ = read(cached(tmp_path), name="signatures.pkl")
        for module in (
            "orbit/groups/rotation.py",
            "orbit/core/params.py",
            "runners/experiments/fit.py",
            "orbit/groups",
        ):
            assert str(ROOT / module) in files

    def test_another_package_with_components_makes_it_out_of_date(self, new_process, monkeypatch):
        new_process()
        names("kernel")
        monkeypatch.setattr(signatures, "plugins", lambda: [orbit.registry.metadata.EntryPoint("x", "yaml", "")])
        new_process()
        names("kernel")
        assert signatures.classes_are_imported()


PLUGIN = '''
import orbit
from orbit.groups import Identity


@orbit.register("group", "still")
class Still(Identity):
    """{summary}"""
'''


@pytest.mark.slow
class TestProcesses:
    """run.py in processes of its own, with an empty cache folder."""

    @pytest.fixture
    def call(self, tmp_path):
        """``call(*arguments)`` -> (exit code, stdout, stderr, top-level modules that the process has imported)."""
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        environment = os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        code = (
            "import runpy, sys\n"
            "sys.argv = ['run.py', *sys.argv[1:]]\n"
            "try: runpy.run_path({run!r}, run_name='__main__')\n"
            "except SystemExit as end: code = end.code\n"
            "open('modules', 'w').write(' '.join({{name.partition('.')[0] for name in sys.modules}}))\n"
            "sys.exit(code)"
        ).format(run=str(ROOT / "run.py"))

        def execute(*arguments: str) -> tuple[int, str, str, set[str]]:
            command = [sys.executable, "-c", code, *arguments]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
            return done.returncode, done.stdout, done.stderr, set((tmp_path / "modules").read_text().split())

        return execute

    def test_help_and_refusals_import_nothing_heavy(self, call, tmp_path):
        assert "torch" in call("--info", "approx=rf")[3], "the first process fills the cache"
        (tmp_path / "run.csv").touch()
        for arguments, expected, part in [
            (("--help",), 0, "group: affine, amplitude, cyclic"),
            (("--info", "approx=rf"), 0, "approx.n_components=512"),
            (("--info", "engine"), 0, "engine.progress=true  (in Python: false)"),
            (("--cfg", "job"), 0, "approx:\n  name: auto"),
            (("dataset=arrays", "dataset.path=gone.npz"), 2, "error: dataset.path: expected a file at "),
            (("dataset=images", "dataset.path=run.csv"), 2, "found a .csv file; choose dataset=table"),
            (("dataset=arrays", "dataset.path=run.csv"), 2, "expected a file (.npz, .npy, .mat) at "),
            (("dataset=table", "dataset.path=."), 2, "found a folder; choose dataset=clouds or images or sounds"),
            (("grp=rotation",), 2, "error: grp: no such key; did you mean 'group'?"),
            (("group=rotaton",), 2, "error: group=rotaton: no such group; did you mean 'rotation'?"),
            (("approx.n_components=many",), 2, "approx.n_components: expected an integer >= 1 or null, found 'many'"),
            (("orbit.size=-1",), 2, "error: orbit.size: expected an integer >= 1 or null, found -1"),
        ]:
            code, out, err, imported = call(*arguments)
            assert code == expected, err
            assert part in out + err
            assert not imported & HEAVY, arguments
        assert not _records(tmp_path)

    def test_a_component_of_another_package_is_shown_as_it_is_now(self, call, tmp_path):
        assert "group=still" not in call("--info", "group")[1]
        (tmp_path / "plugin.py").write_text(PLUGIN.format(summary="Moves nothing."))
        about = tmp_path / "plugin-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[orbit.components]\nplugin = plugin\n")
        assert "Moves nothing." in call("--info", "group")[1]
        code, out, _, imported = call("--info", "group=still")
        assert (code, out) == (0, "group=still: Moves nothing.\n")
        assert "torch" not in imported
        (tmp_path / "plugin.py").write_text(PLUGIN.format(summary="Leaves all as it is."))
        assert call("--info", "group=still")[1] == "group=still: Leaves all as it is.\n"
        (about / "entry_points.txt").unlink()
        assert "group=still" not in call("--info", "group")[1]

    def test_a_run_imports_what_it_uses(self, call):
        code, _, err, imported = call(*SMALL, "tracking.enabled=false")
        assert code == 0, err
        assert {"torch", "sklearn", "matplotlib"} <= imported
        assert not imported & {"mlflow", "sqlalchemy", "numba"}

    def test_predictions_import_what_they_use(self, call, tmp_path):
        assert call(*SMALL, "tracking.enabled=false", "runner.save_model=true", "hydra.run.dir=mine")[0] == 0
        np.savez(tmp_path / "new.npz", X=np.zeros((3, 8, 8)))
        code, _, err, imported = call("runner=predict", "runner.model=mine", "runner.input=new.npz")
        assert code == 0, err
        assert not imported & {"matplotlib", "mlflow", "sqlalchemy", "numba"}

    def test_several_first_processes_at_once(self, call):
        with ThreadPoolExecutor(2) as pool:
            outputs = {out for code, out, *_ in pool.map(lambda _: call("--info", "learner"), range(2)) if code == 0}
        assert len(outputs) == 1
        _, out, _, imported = call("--info", "learner")
        assert {out} == outputs
        assert "torch" not in imported

    def test_the_library_imports_what_is_used(self, call):
        code = "import sys, orbit; print({'torch', 'numpy', 'sklearn'} & set(sys.modules), orbit.Engine())"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == "set() Engine()\n"


def _records(tmp_path: Path) -> list[str]:
    return [path.read_text() for path in (tmp_path / "outputs").rglob("run.json")]
