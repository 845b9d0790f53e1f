"""Imports point one way, and docs/architecture.md describes the rooms that there are."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
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
            assert node.level == 0, f"{path}: imports are absolute"
            yield from ((node.module, alias.name) for alias in node.names)


def packages(folder: str) -> dict[Path, set[str]]:
    """File -> the top-level packages that it imports, wherever in the file."""
    return {path: {module.split(".")[0] for module, _ in imported(path)} for path in (ROOT / folder).rglob("*.py")}


def test_the_library_imports_no_runner_and_no_framework():
    for path, names in packages("orbit").items():
        assert not names & {"runners", "hydra", "omegaconf", "mlflow"}, path


def test_only_tracking_imports_mlflow():
    found = {path for path, names in packages("runners").items() if "mlflow" in names}
    assert found
    assert all(path.parent.name == "tracking" for path in found), found


@pytest.mark.parametrize("folder", ["orbit", "runners"])
def test_no_private_name_of_another_room_is_imported(folder):
    for path in (ROOT / folder).rglob("*.py"):
        room = path.relative_to(ROOT).with_suffix("").parts[:2]
        for module, name in imported(path):
            parts = [*module.split("."), *([name] if name else [])]
            if parts[0] in ("orbit", "runners") and tuple(parts[:2]) != room:
                assert not any(part.startswith("_") and not part.endswith("__") for part in parts), (path, parts)


def test_rooms_import_one_way(picture):
    picture.check(picture.room_graph())


def test_a_circle_and_a_new_room_are_found(picture, monkeypatch):
    with pytest.raises(RuntimeError, match="rooms that import each other"):
        picture.check(picture.room_graph() | {"groups": {"kernels"}})
    monkeypatch.delitem(picture.ROOMS, "kernels")
    with pytest.raises(RuntimeError, match="rooms without a place in the picture: {'kernels'}"):
        picture.check({})


def test_the_page_names_every_room(picture):
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for folder in ("orbit", "runners"):
        for room in picture.imports(folder):
            assert f"`{room.split('.')[1]}" in page or room == "orbit.version", f"docs/architecture.md lacks {room}"
