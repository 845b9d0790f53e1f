"""Makes the documentation site: ``python docs/make_site.py`` writes it to site/, ``... serve`` shows it.

Zensical renders pages; this script writes them to build/pages first: those in docs/, reference pages from the registry,
and notebooks.

A page takes a section of README, which is written once, in place of a line that only links to it,
``[README: Title of the section](../README.md#title-of-the-section)``. A link to a notebook leads to its page, and one
to a file outside docs/ leads to the repository if ``repo_url`` of zensical.toml is set, and is plain text otherwise.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orbit
import runners.components  # noqa: F401  imports every class
from orbit.core.params import Parameter, describe
from runners.config.schema import KINDS, OWN_DEFAULTS, SECTIONS, Root, config_parameters, section_signature
from runners.config.signatures import Signature

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
TARGET = ROOT / "build" / "pages"

_SECTION = re.compile(r"^\[README: (.+)\]\(.*\)$", re.MULTILINE)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]*)(#[^)\s]*)?(\))")
_PIPE = re.compile(r"(?<!\\)\|")
_MARKED = re.compile(r"(\[[^\]]*\]\([^)]*\))")  # a link
_NAME = re.compile(r"`(\w+)`")

KIND_TITLES = {
    "group": "Groups",
    "distribution": "Distributions on a group",
    "kernel": "Kernels",
    "frequencies": "Rules for frequencies",
    "landmarks": "Rules for landmarks",
    "approx": "Approximations",
    "hyper": "Second layers",
    "representation": "Representations",
    "encoder": "Encoders",
    "learner": "Learners",
    "selection": "Selection of settings",
    "augmentation": "Augmentation",
    "dataset": "Data sets",
    "runner": "Runners",
}


def main() -> None:
    """Write the pages, then run Zensical on them; without arguments it builds the site."""
    from zensical.main import cli

    write_pages(TARGET)
    os.chdir(ROOT)  # where Zensical looks for zensical.toml
    cli(sys.argv[1:] or ["build"])


def write_pages(target: Path) -> None:
    """Every page as Zensical gets it, under the folder ``target``, and the files beside them."""
    pages = {path.relative_to(DOCS).as_posix(): path.read_bytes() for path in files()}
    pages |= {f"reference/{kind}.md": kind_page(kind).encode() for kind in KINDS}
    pages |= {
        "reference/settings.md": settings_page().encode(),
        "reference/experiments.md": experiments_page().encode(),
    }
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        pages |= notebook_page(notebook)
    shutil.rmtree(target, ignore_errors=True)
    repository = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"].get("repo_url")
    for path, content in pages.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            content = page_text(content.decode(), path, repository).encode()
        (target / path).write_bytes(content)


def files() -> list[Path]:
    """The pages and pictures in docs/."""
    return [
        path for path in DOCS.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc", ".ipynb", ".json")
    ]


def page_text(markdown: str, path: str, repository: str | None) -> str:
    """A page with README's sections, links to components, and no link that leaves docs/."""
    markdown = linked_names(_SECTION.sub(lambda match: readme_section(match[1], path), markdown), path)
    return in_prose(markdown, lambda text: _LINK.sub(lambda link: _mended(link, path, repository), text))


def linked_names(markdown: str, page: str) -> str:
    """Names of components in tables as links to their reference: in rows that begin with their kind, or its column."""
    lines, heads = markdown.split("\n"), []
    for i, line in enumerate(lines):
        cells = _PIPE.split(line)
        if not line.startswith("|"):
            heads = []
        elif not heads:
            heads = [_kind(cell) for cell in cells]
        elif len(cells) == len(heads):
            row = _kind(cells[1])
            lines[i] = "|".join(_linked(cell, row or head, page) for cell, head in zip(cells, heads, strict=True))
    return "\n".join(lines)


def _kind(cell: str) -> str:
    found = _NAME.fullmatch(cell.strip())
    return found[1] if found and found[1] in KINDS else ""


def _linked(cell: str, kind: str, page: str) -> str:
    if not kind:
        return cell
    target = posixpath.relpath(f"reference/{kind}.md", posixpath.dirname(page) or ".")
    names = orbit.available(kind)

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({target}#{match[1]})" if match[1] in names else match[0]

    return "".join(part if part.startswith("[") else _NAME.sub(link, part) for part in _MARKED.split(cell))


def readme_section(title: str, page: str) -> str:
    """The text under a heading of README, with links as seen from ``page`` (``howto/sweep.md``)."""
    if title == "Introduction":
        text = README.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n## ")[0]
    else:
        _, found, text = README.read_text(encoding="utf-8").partition(f"\n## {title}\n")
        if not found:
            raise ValueError(f"{page}: README.md has no section {title!r}")
        text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]

    def moved(match: re.Match[str]) -> str:
        target = match[2]
        if "://" not in target:
            target = posixpath.relpath(target, posixpath.join("docs", posixpath.dirname(page)))
        return f"{match[1]}{target}{match[3] or ''}{match[4]}"

    return in_prose(text.strip("\n"), lambda prose: _LINK.sub(moved, prose))


@functools.cache
def sections() -> dict[str, str]:
    """Anchor of a section of README -> the page that shows it."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*.md")}
    return {
        title.lower().replace(" ", "-"): name
        for name, path in pages.items()
        for title in _SECTION.findall(path.read_text(encoding="utf-8"))
    }


def in_prose(markdown: str, change: Any) -> str:
    """Apply ``change`` to the parts of a page that are not fenced code."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def _mended(link: re.Match[str], page: str, repository: str | None) -> str:
    if "://" in link[2] or not link[2]:
        return link[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[2]))
    if not target.startswith(".."):
        return f"{link[1]}{re.sub('[.]ipynb$', '.md', link[2])}{link[3] or ''}{link[4]}"
    path = posixpath.normpath(posixpath.join("docs", target))
    if path == "README.md" and (link[3] or "").removeprefix("#") in sections():
        found = posixpath.relpath(sections()[link[3].removeprefix("#")], posixpath.dirname(page) or ".")
        return f"{link[1]}{found}{link[4]}"
    if repository:
        return f"{link[1]}{repository.rstrip('/')}/blob/main/{path}{link[3] or ''}{link[4]}"
    return link[1].lstrip("!")[1:-2]


def kind_page(kind: str) -> str:
    """The reference page of a kind: every registered component with its docstring and its keys."""
    lines = [f"# {KIND_TITLES[kind]}", "", f"`{kind}=NAME` on the command line.", ""]
    for name in orbit.available(kind):
        lines += [f"## {name}", ""]
        for cls in orbit.registry.classes(kind, name):
            lines += [
                f"::: {cls.__module__}.{cls.__qualname__}",
                "    options: {heading_level: 3, members: false, show_root_toc_entry: false}",
                "",
            ]
        lines += keys_table(kind, config_parameters(kind, name))
    return "\n".join(lines)


def settings_page() -> str:
    """The keys that belong to no component."""
    lines = ["# Settings of a run", "", "Keys without a section belong to the run as a whole.", "", "## run", ""]
    run = Signature.of(Root)
    lines += keys_table("", run.parameters, run.texts)
    for section in SECTIONS:
        known = section_signature(section)
        own = OWN_DEFAULTS.get(section, {})
        lines += [f"## {section}", "", *keys_table(section, known.parameters, known.texts, own)]
    return "\n".join(lines)


def keys_table(
    section: str,
    keys: Mapping[str, Parameter],
    texts: Mapping[str, str] | None = None,
    own: Mapping[str, Any] | None = None,
) -> list[str]:
    """A table of configuration keys with default, allowed values and, if ``texts`` are given, meaning."""
    if not keys:
        return []
    head = ["key", "default", "values"] + (["meaning"] if texts is not None else [])
    rows = [head, ["---"] * len(head)]
    for key, parameter in keys.items():
        default = (own or {}).get(key, parameter.default)
        cells = [f"`{section}.{key}`" if section else f"`{key}`", _code(default), _cell(describe(parameter.annotation))]
        rows.append([*cells, *([] if texts is None else [_cell(texts.get(key, ""))])])
    return [*("| " + " | ".join(row) + " |" for row in rows), ""]


def experiments_page() -> str:
    """Every experiment of the papers and of the benchmarks, with the comment at the top of its file."""
    lines = ["# Experiments", "", "Chosen by `experiment=NAME`; those of `benchmarks/` need a clone.", ""]
    folders = [ROOT / name / "conf" / "experiment" for name in ("papers", "benchmarks")]
    for path in [path for folder in folders for path in sorted(folder.glob("*.yaml"))]:
        comment = [line[1:].strip() for line in _leading_comments(path) if not line.startswith("# @package")]
        commands = [line for line in comment if line.startswith("python run.py")]
        text = " ".join(line for line in comment if line not in commands)
        lines += [f"## {path.stem}", "", text.replace("|", r"\|"), "", *(f"    {line}" for line in commands), ""]
    return "\n".join(lines)


def _leading_comments(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            return
        yield line


def notebook_page(path: Path) -> dict[str, bytes]:
    """A notebook, with the outputs stored in it, as a page and its images, by their paths in the site."""
    from nbconvert import MarkdownExporter
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    exporter = MarkdownExporter()
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)  # printed lines in one block
    text, resources = exporter.from_filename(str(path))
    images = resources["outputs"]
    for name in images:
        text = text.replace(f"]({name})", f"]({path.stem}_{name})")
    pages: dict[str, bytes] = {f"notebooks/{path.stem}_{name}": content for name, content in images.items()}
    text = re.sub(r"^!\[png\]", f"![Figure of {path.stem}]", text, flags=re.M)
    return pages | {f"notebooks/{path.stem}.md": text.encode()}


def _code(value: Any) -> str:
    return f"`{'null' if value is None else str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    main()
