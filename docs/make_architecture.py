"""Draws docs/images/architecture.png from the imports of the code.

    python docs/make_architecture.py

Boxes are the packages of orbit/ (and its modules) and of runners/. A package stands above the packages it imports;
an arrow leads from a package to one that it imports, unless a longer path of arrows connects them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "images" / "architecture.png"

#: Package of orbit -> contents.
PACKAGES = {
    "approx": "feature maps: rf, nystrom, cdf,\nskeleton, orff, exact",
    "learners": "classifiers and regressors",
    "solvers": "regularised least squares:\nfactorise, select λ",
    "engine": "Σ wᵢ φ(E(gᵢx)) in tiles: direct,\ntemplate or spectral",
    "encoders": "maps of moved points\nbefore the kernel",
    "orbits": "Orbit: elements gᵢ and weights\nwᵢ, frozen by fit",
    "kernels": "Gram matrices, spectra,\nskeletons, bounds",
    "distributions": "q on a group: samples,\nquadrature, density",
    "groups": "actions on images, signals,\nmatrices, point clouds",
    "representations": "maps of points before\na group acts",
    "data": "loaders, generators, splits,\nrows on disk",
}
#: Packages that import many others; their arrows are left out.
TOP = {"testing": "contract tests for every component, also outside of orbit", "plots": "figures"}
#: Packages that most others import; arrows to them are left out.
BASE = {"core": "components, parameters, errors, random numbers, threads", "registry": "kind and name → class"}
RUNNERS = {
    "app": "command line,\nprocesses, launchers",
    "experiments": "fit, table, errors,\nselection, prediction",
    "job": "runner, job,\nmemory",
    "tracking": "run folder, sweep,\nMLflow",
    "config": "schema, plan,\nmessages",
    "measure": "metrics, results,\ntables",
}
DATA_STEPS = [
    ("Dataset.load", "X: (n, *shape), y"),
    ("representation", "unit_norm, polar, ..."),
    ("feature map", "engine: Σ wᵢ φ(E(gᵢx))"),
    ("hyper layer", "optional second map"),
    ("learner", "fit, predict"),
    ("metrics", "test/accuracy, ..."),
]
CONFIGURATION_STEPS = [
    ("arguments", "group=rotation"),
    ("Hydra", "composes conf/"),
    ("schema", "checks keys, values"),
    ("plan", "builds components"),
    ("runner", "does the work"),
    ("record", "run folder"),
    ("MLflow", "uploaded"),
]
ORBIT_COLOUR, RUNNERS_COLOUR, BASE_COLOUR = "#dcebf7", "#fbe8d3", "#e6e6e6"


@functools.cache
def imports(folder: str) -> dict[str, set[str]]:
    """Package of ``folder`` -> the packages of orbit and runners that it imports, as ``orbit.kernels``."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
        if package == f"{folder}.__init__":
            continue
        names = {".".join(name.split(".")[:2]) for name in _imported(ast.parse(path.read_text(encoding="utf-8")))}
        found.setdefault(package, set()).update(names - {package})
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if "." in node.module else [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in ("orbit", "runners"))


def package_graph() -> dict[str, set[str]]:
    """Package of orbit -> the packages it imports, without those that most packages import."""
    graph = {
        package.removeprefix("orbit."): {name.removeprefix("orbit.") for name in names}
        for package, names in imports("orbit").items()
    }
    return {package: names & PACKAGES.keys() for package, names in graph.items() if package in PACKAGES}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """The packages that a package imports, directly or through others."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        package = waiting.pop()
        if package not in seen:
            seen.add(package)
            waiting += graph[package]
    return seen


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The transitive reduction of an acyclic graph."""
    return [
        (package, below)
        for package, direct in sorted(graph.items())
        for below in sorted(direct)
        if not any(below in reachable(graph, other) for other in direct - {below})
    ]


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """The length of the longest path down from each package."""
    found: dict[str, int] = {}

    def level(package: str) -> int:
        if package not in found:
            found[package] = 1 + max((level(below) for below in graph[package]), default=-1)
        return found[package]

    for package in graph:
        level(package)
    return found


# Centre and row of each package in the picture.
PLACES = {
    "approx": (1.47, 4),
    "learners": (2.9, 4),
    "engine": (1.1, 3),
    "solvers": (2.34, 3),
    "data": (3.33, 3),
    "encoders": (0.0, 3),
    "orbits": (1.1, 2),
    "representations": (0.0, 1),
    "distributions": (1.1, 1),
    "kernels": (2.34, 1),
    "groups": (1.1, 0),
}
WIDTH, HEIGHT, ROW = 0.94, 0.62, 0.95
LEFT, RIGHT = -0.52, 3.82


def check(graph: dict[str, set[str]]) -> None:
    """Check that the picture has all packages, and that imports point one way.

    Raises
    ------
    RuntimeError
        If a package has no place in the picture or no longer exists, packages import each other, orbit imports
        runners, or a package does not stand above one that it imports.
    """
    packages = {name.removeprefix("orbit.") for name in imports("orbit")} - {"version", *BASE, *TOP}
    if packages - PACKAGES.keys():
        raise RuntimeError(f"packages without a place in the picture: {packages - PACKAGES.keys()}")
    if PACKAGES.keys() - packages:
        raise RuntimeError(f"packages of the picture that do not exist: {PACKAGES.keys() - packages}")
    circular = [package for package in graph if package in reachable(graph, package)]
    if circular:
        raise RuntimeError(f"packages that import each other: {circular}")
    if any(name.startswith("runners") for names in imports("orbit").values() for name in names):
        raise RuntimeError("orbit imports runners")
    wrong = [(above, below) for above, below in arrows(graph) if PLACES[above][1] <= PLACES[below][1]]
    if wrong:
        raise RuntimeError(f"packages that must stand above those they import: {wrong}")


def draw() -> Figure:
    """Draw the whole picture."""
    graph = package_graph()
    check(graph)
    figure = Figure(figsize=(10.5, 11.5), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(LEFT - 0.06, RIGHT + 0.06)
    y = 0.0
    _strip(ax, y, "From the command line to results", CONFIGURATION_STEPS, RUNNERS_COLOUR)
    y += 1.15
    _strip(ax, y, "From X to predictions", DATA_STEPS, ORBIT_COLOUR)
    y += 1.2
    _bar(ax, y, BASE)
    y += 0.75
    for package, (x, row) in PLACES.items():
        _box(ax, x, y + row * ROW, WIDTH, HEIGHT, package, PACKAGES[package], ORBIT_COLOUR)
    for above, below in arrows(graph):
        (x0, row0), (x1, row1) = PLACES[above], PLACES[below]
        _arrow(ax, (x0, y + row0 * ROW - HEIGHT / 2), (x1, y + row1 * ROW + HEIGHT / 2))
    top = y + 4 * ROW + 0.72
    _bar(ax, top, TOP)
    _frame(
        ax,
        y - 1.08,
        top + 0.52,
        "orbit: the library. Arrows lead from a package to one that it imports; core and registry are imported by all.",
    )
    y = top + 1.2
    step = (RIGHT - LEFT) / len(RUNNERS)
    for i, (package, text) in enumerate(RUNNERS.items()):
        _box(ax, LEFT + step * (i + 0.5), y, step - 0.1, HEIGHT, package, text, RUNNERS_COLOUR)
    _frame(
        ax,
        y - 0.42,
        y + 0.62,
        "run.py → runners: the command line builds components of orbit by name; orbit imports nothing from runners.",
    )
    ax.set_ylim(-0.5, y + 0.7)
    return figure


def _box(ax: Axes, x: float, y: float, width: float, height: float, title: str, text: str, colour: str) -> None:
    corner = x - width / 2, y - height / 2
    ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.04", fc=colour, ec="0.35"))
    if text:
        ax.text(x, y + 0.3 * height, title, ha="center", va="center", fontsize=10.5, weight="bold")
        ax.text(x, y - 0.16 * height, text, ha="center", va="center", fontsize=8, linespacing=1.25)
    else:
        ax.text(x, y, title, ha="center", va="center", fontsize=9)


def _bar(ax: Axes, y: float, packages: dict[str, str]) -> None:
    """Packages whose arrows are left out, in one wide box."""
    text = "      ".join(f"{package}: {description}" for package, description in packages.items())
    _box(ax, (LEFT + RIGHT) / 2, y, RIGHT - LEFT - 0.12, 0.36, text, "", BASE_COLOUR)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color="0.35", lw=1.1, shrinkA=0, zorder=0.5)
    )


def _frame(ax: Axes, low: float, high: float, title: str) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (LEFT, low), RIGHT - LEFT, high - low, boxstyle="round,pad=0,rounding_size=0.05", fc="none", ec="0.6", lw=1
        )
    )
    ax.text(LEFT + 0.06, high - 0.13, title, ha="left", va="center", fontsize=9.5, color="0.2")


def _strip(ax: Axes, y: float, title: str, steps: list[tuple[str, str]], colour: str) -> None:
    width = (RIGHT - LEFT) / len(steps)
    for i, (name, text) in enumerate(steps):
        x = LEFT + width * (i + 0.5)
        _box(ax, x, y, width - 0.12, 0.5, name, text, colour)
        if i:
            _arrow(ax, (x - width / 2 - 0.06, y), (x - width / 2 + 0.06, y))
    ax.text(LEFT, y + 0.4, title, ha="left", va="center", fontsize=11, weight="bold")


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    draw().savefig(TARGET, dpi=110)
    print(TARGET.relative_to(ROOT))
