"""Draws docs/images/architecture.png from the imports of the code.

    python docs/make_architecture.py

Boxes are the packages of orbit/ and runners/, and their modules beside these. A package stands above those it imports;
an arrow leads from a package to one that it imports, unless a longer path of arrows connects them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "images" / "architecture.png"

#: Half -> package -> centre and row of its box, and its contents.
BOXES = {
    "orbit": {
        "approx": (0.55, 4, "feature maps: rf, nystrom, cdf,\nskeleton, orff, exact"),
        "learners": (2.75, 4, "classifiers and regressors"),
        "engine": (0.0, 3, "Σ wᵢ φ(E(gᵢx)) in tiles: direct,\ntemplate or spectral"),
        "solvers": (2.2, 3, "regularised least squares:\nfactorise, select λ"),
        "data": (3.3, 3, "loaders, generators, splits,\nrows on disk"),
        "encoders": (1.1, 3, "maps of moved points\nbefore the kernel"),
        "orbits": (0.0, 2, "Orbit: elements gᵢ and weights\nwᵢ, frozen by fit"),
        "representations": (1.1, 1, "maps of points before\na group acts"),
        "distributions": (0.0, 1, "q on a group: samples,\nquadrature, density"),
        "kernels": (2.42, 1, "Gram matrices, spectra,\nskeletons, bounds"),
        "groups": (1.1, 0, "actions on images, signals,\nmatrices, point clouds"),
    },
    "runners": {
        "app": (1.1, 5, "command line,\nprocesses, launchers"),
        "search": (2.2, 5, "searches by Optuna"),
        "components": (1.65, 4, "imports all components,\nalso of other packages"),
        "experiments": (1.65, 3, "fit, table, compare,\nselection, prediction"),
        "job": (1.65, 2, "Runner, Job, refusal by memory,\nshared features"),
        "tracking": (1.65, 1, "run folder, sweep,\nMLflow"),
        "config": (1.1, 0, "names, schema, plan,\nmessages"),
        "measure": (2.2, 0, "metrics, results,\ntables, machine"),
    },
}
#: Half -> packages that import many others; their arrows are left out.
TOP = {
    "orbit": {
        "testing": "contract tests, also outside of orbit",
        "discovery": "groups compared by their errors",
        "plots": "figures",
    },
    "runners": {},
}
#: Half -> packages that most others import; arrows to them are left out.
BASE = {
    "orbit": {
        "core": "components, parameters, errors, random numbers, threads",
        "registry": "kind and name → class",
    },
    "runners": {},
}
#: Packages beside the two halves, which neither imports.
GUESTS = {"papers": "experiments and pages of four papers", "benchmarks": "times and memory, in a clone"}
#: Modules that have no box.
UNDRAWN = {"orbit.version", "runners.__main__"}
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
WIDTH, HEIGHT, ROW = 0.94, 0.6, 0.88
LEFT, RIGHT = -0.52, 3.82


@functools.cache
def module_imports(folder: str) -> dict[str, set[str]]:
    """Module of ``folder`` -> the modules of this project that it imports, anywhere in the file."""
    found = {_module(path): set(_imported(path)) for path in sorted((ROOT / folder).rglob("*.py"))}
    return {module: names - {module} for module, names in found.items()}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_module(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _is_module(node.module):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if _is_module(name) else node.module for name in names)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imports(folder: str) -> dict[str, set[str]]:
    """Package of ``folder`` -> the packages of this project that it imports, as ``orbit.kernels``."""
    found: dict[str, set[str]] = {}
    for module, names in module_imports(folder).items():
        package = _package(module)
        if package != folder:
            found.setdefault(package, set()).update({_package(name) for name in names} - {package})
    return found


def _package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def drawn_graph(half: str) -> dict[str, set[str]]:
    """Package with a box -> the packages with a box that it imports, without the name of the half."""
    boxes = BOXES[half]
    graph = imports(half)
    return {name: {below for below in boxes if f"{half}.{below}" in graph[f"{half}.{name}"]} for name in boxes}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """The packages that a package imports, directly or through others."""
    direct = graph[start]
    return direct.union(*(reachable(graph, below) for below in direct))


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The transitive reduction of an acyclic graph."""
    return [
        (package, below)
        for package, direct in sorted(graph.items())
        for below in sorted(direct)
        if not any(below in reachable(graph, other) for other in direct - {below})
    ]


def check(half: str) -> None:
    """Check that the picture has all packages, and that imports point down.

    Raises
    ------
    graphlib.CycleError
        If packages import each other.
    RuntimeError
        If a package has no place in the picture or no longer exists, or does not stand above one that it imports.
    """
    TopologicalSorter(imports(half)).prepare()
    packages = {name.removeprefix(f"{half}.") for name in imports(half).keys() - UNDRAWN}
    placed = {*BOXES[half], *TOP[half], *BASE[half]}
    if packages != placed:
        raise RuntimeError(f"packages of {half} that only the code or only the picture has: {packages ^ placed}")
    rows = {package: row for package, (_, row, _) in BOXES[half].items()}
    wrong = [(above, below) for above, below in arrows(drawn_graph(half)) if rows[above] <= rows[below]]
    if wrong:
        raise RuntimeError(f"packages of {half} that must stand above those they import: {wrong}")


def draw() -> Figure:
    """Draw the whole picture."""
    figure = Figure(figsize=(10.5, 15.5), layout="constrained")
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(LEFT - 0.06, RIGHT + 0.06)
    _strip(ax, 0.0, "From the command line to results", CONFIGURATION_STEPS, RUNNERS_COLOUR)
    _strip(ax, 1.15, "From X to predictions", DATA_STEPS, ORBIT_COLOUR)
    title = (
        "orbit: the library. Arrows lead from a package to one that it imports; core and registry are imported by all."
    )
    top = _half(ax, 1.85, "orbit", title, ORBIT_COLOUR)
    title = "runners: the command line. It builds components of orbit by name; orbit imports nothing from runners."
    top = _half(ax, top + 0.25, "runners", title, RUNNERS_COLOUR)
    title = "Packages like any user's: they import public names of orbit and runners, which import nothing from them."
    _bar(ax, top + 0.5, GUESTS)
    _frame(ax, top + 0.25, top + 0.95, title)
    ax.set_ylim(-0.5, top + 1.0)
    return figure


def _half(ax: Axes, low: float, half: str, title: str, colour: str) -> float:
    """The packages of one half in a frame; returns the height of its upper edge."""
    check(half)
    y = low + 0.1
    if BASE[half]:
        _bar(ax, y + 0.23, BASE[half])
        y += 0.5
    y += HEIGHT / 2 + 0.05
    boxes = BOXES[half]
    for package, (x, row, text) in boxes.items():
        _box(ax, x, y + row * ROW, WIDTH, HEIGHT, package, text, colour)
    for above, below in arrows(drawn_graph(half)):
        (x0, row0, _), (x1, row1, _) = boxes[above], boxes[below]
        _arrow(ax, (x0, y + row0 * ROW - HEIGHT / 2), (x1, y + row1 * ROW + HEIGHT / 2))
    top = y + max(row for _, row, _ in boxes.values()) * ROW + HEIGHT / 2
    if TOP[half]:
        _bar(ax, top + 0.35, TOP[half])
        top += 0.5
    _frame(ax, low, top + 0.35, title)
    return top + 0.35


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
