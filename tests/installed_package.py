"""What installing a package leaves on disk: its modules, and the entry point that Python finds it by."""

import sys
from collections.abc import Mapping
from pathlib import Path

from orbit import registry


def write_package(site: Path, name: str, files: Mapping[str, str], module: str | None = None) -> None:
    """Write a package whose module registers components into a folder of the search path.

    Parameters
    ----------
    site : Path
    name : str
        Of the package.
    files : mapping of str to str
        Path in the package -> content.
    module : str or None
        The module in the package; None is the package itself.
    """
    for file, content in files.items():
        path = site / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    full_name = name if module is None else f"{name}.{module}"
    (about / "entry_points.txt").write_text(f"[orbit.components]\n{name} = {full_name}\n")


def remove_components_of(site: Path) -> list[tuple[str, str]]:
    """Forget the modules of a folder, and the components that they have registered; kind and name of each."""
    modules = [name for name, m in sys.modules.items() if Path(str(getattr(m, "__file__", ""))).is_relative_to(site)]
    found = [
        (kind, name)
        for kind, known in registry._classes.items()
        for name, cls in known.items()
        if cls.__module__ in modules
    ]
    for kind, name in found:
        del registry._classes[kind][name]
    for name in modules:
        del sys.modules[name]
    return found


def remove_from_store(group: str, name: str) -> None:
    """Remove a configuration from Hydra's store, if there is one."""
    if "hydra" in sys.modules:
        import composition
        from hydra.core.config_store import ConfigStore

        folder = ConfigStore.instance().repo
        for part in group.split("/"):
            folder = folder.get(part, {})
        folder.pop(f"{name}.yaml", None)
        composition.forget()
