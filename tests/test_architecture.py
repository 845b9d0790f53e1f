"""Imports point one way, and docs/architecture.md describes the packages of the code."""

import ast
import importlib.util
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def picture():
    """docs/make_architecture.py as a module."""
    spec = importlib.util.spec_from_file_location("make_architecture", ROOT / "docs" / "make_architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Modules and names of the import statements of a file; the name is empty for a whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: expected an absolute import"
            yield from ((node.module, alias.name) for alias in node.names)


def imported_packages(folder: str) -> dict[Path, set[str]]:
    """File -> the top-level packages that it imports, anywhere in the file."""
    return {path: {module.split(".")[0] for module, _ in imported(path)} for path in (ROOT / folder).rglob("*.py")}


def test_library_imports_no_runner_and_no_framework():
    for path, names in imported_packages("orbit").items():
        assert not names & {"runners", "hydra", "omegaconf", "mlflow"}, path


@pytest.mark.parametrize(
    ("folder", "guests"),
    [
        ("orbit", "papers benchmarks"),
        ("runners", "papers benchmarks"),
        ("papers", "benchmarks"),
        ("benchmarks", "papers"),
    ],
)
def test_nothing_imports_the_papers_or_the_benchmarks(folder, guests):
    for path, names in imported_packages(folder).items():
        assert not names & set(guests.split()), path


def test_only_tracking_imports_mlflow():
    folders = "runners", "papers", "benchmarks"
    found = {path for folder in folders for path, names in imported_packages(folder).items() if "mlflow" in names}
    assert found
    assert all(path.parent.name == "tracking" for path in found), found


@pytest.mark.parametrize("folder", ["orbit", "runners", "papers", "benchmarks"])
def test_no_private_name_of_another_package_is_imported(folder):
    for path in (ROOT / folder).rglob("*.py"):
        package = path.relative_to(ROOT).with_suffix("").parts[:2]
        for module, name in imported(path):
            parts = [*module.split("."), *([name] if name else [])]
            if parts[0] in ("orbit", "runners") and tuple(parts[:2]) != package:
                assert not any(part.startswith("_") and not part.endswith("__") for part in parts), (path, parts)


@pytest.mark.parametrize("half", ["orbit", "runners"])
def test_imports_point_down(picture, half):
    picture.check(half)


def test_no_modules_import_each_other(picture):
    folders = "orbit", "runners", "papers", "benchmarks"
    graph = {module: names for folder in folders for module, names in picture.module_imports(folder).items()}
    TopologicalSorter(graph).prepare()


def test_page_names_every_package(picture):
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for half in ("orbit", "runners"):
        for package in picture.imports(half).keys() - {"orbit.version"}:
            assert f"`{package.split('.')[1]}" in page, f"docs/architecture.md lacks {package}"
