"""The pages of the papers: they are made from the results beside them, and nothing on them is written by hand."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbit.core.errors import InputError
from papers import overview
from papers.pages import pages
from papers.published import Experiment, Headline, Item, Paper, experiments, papers
from papers.records import Gathered, PublishedRun, read_records
from papers.report import publish, write_pages
from runners.measure.results import TABLE, Result, curve_results
from runners.tracking.record import Record, RunFolder

DOCS = Path(__file__).parents[2] / "docs" / "results"
KEPT = read_records(DOCS)


@pytest.fixture
def _as_run_py(monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py"])


@pytest.fixture
def _without_picture(monkeypatch):
    """The picture over all results takes a second; the pages in docs are made with it."""
    monkeypatch.setattr("papers.report.draw", lambda runs, file: None)


def write_run(path: Path, start: float, experiment: str, size: str, *results: Result, **known: Any) -> None:
    """Write the folder of a run of five seconds, from ``start`` seconds after 1.7e9 on; ``known`` is for its record."""
    record = Record(path.name, "h", **{"status": "FINISHED", **known}, start=1.7e9 + start, end=1.7e9 + start + 5)
    record.overrides, record.tags["experiment"] = [f"experiment={experiment}", *record.overrides], experiment
    record.params = {"runner.name": "table", "size": size}
    path.mkdir(parents=True)
    RunFolder(path).write_record(record)
    RunFolder(path).write_results([result.packed() for result in results])


@pytest.mark.usefixtures("_as_run_py")
def test_pages_in_docs_are_those_of_the_results_in_docs(tmp_path):
    for part in (part for part in ("records", "figures") if (DOCS / part).is_dir()):
        shutil.copytree(DOCS / part, tmp_path / part)
    write_pages(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    assert len(made) == len(papers()) + 1
    for name, text in made.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run runner=report runner.folder={DOCS}"


def test_the_overview_has_every_row_with_a_score_and_a_time(tmp_path, monkeypatch):
    results = [
        Result(TABLE, "RF", "test/accuracy", [0.5, 0.7], seconds=3.0, published=0.8),
        Result(TABLE, "untimed", "test/accuracy", [0.9]),
        Result("curve", "RF", "test/accuracy", [0.9], x=1.0, seconds=1.0),
    ]
    run = Gathered([PublishedRun("cifar10", "paper", "", results=results, memory_mb=2048.0)])
    drawn = []
    monkeypatch.setattr(overview, "_panel", lambda ax, rows: drawn.append(rows))
    overview.draw({"cifar10-paper": run}, tmp_path / overview.PICTURE)
    assert drawn[1:] == [[], [], []]
    [[label, *values]] = drawn[0]
    assert (label, values) == ("RF", pytest.approx([3.0, 40.0, 2.0, 20.0]))
    assert (tmp_path / overview.PICTURE).is_file()


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_every_row_says_on_which_data_its_settings_were_chosen(paper):
    for item in (item for item in paper.items if item.experiment):
        runs = [KEPT[name] for size in ("small", "middle", "paper") if (name := f"{item.experiment}-{size}") in KEPT]
        rows = {result.label for run in runs for results in item.shown(run.results).values() for result in results}
        assert item.chosen_on[""], item.name
        assert set(item.chosen_on) - {""} <= rows, item.name


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_items_of_papers_name_experiments_results_and_pictures_that_exist(paper):
    known = set(experiments())
    for item in paper.items:
        assert bool(item.reason) != bool(item.experiment), item.name
        assert item.experiment in (known | {""}), item.name
        for size in ("small", "middle", "paper"):
            run = KEPT.get(f"{item.experiment}-{size}")
            if run is None:
                continue
            if any(one.note for one in run.runs) or run.missing(item.parts):  # not all of the rows
                continue
            assert item.headline is None or item.headline.find(run.results) is not None, (item.name, size)
            missing = [s for s in item.pictures if not (DOCS / "figures" / run.name / f"{s}.png").is_file()]
            assert not missing, (item.name, size)


def test_results_in_docs_say_how_they_were_made_and_name_no_folder():
    for name, run in ((name, run) for name, gathered in KEPT.items() for run in gathered.runs):
        assert name == run.name
        assert run.command.startswith("python run.py "), name
        assert "/" not in run.command.replace("run.py", ""), name
        assert run.machine, name
        assert run.commit, name
        assert run.processor_s or run.note, name


def test_a_result_survives_its_file(tmp_path):
    results = [
        Result("table", "RF", "test/rmse", [14.0, 15.5], published=14.01, seconds=3.2, settings={"s": 100, "r": 7}),
        *curve_results("error", "mse", "D", {"rf": ([8, 16], np.array([[0.5, 0.25], [0.25, 0.125]]))}),
    ]
    run = PublishedRun(
        "qm7", "small", "python run.py experiment=qm7", "2026-01-01", "0", 12.0, 9.5, 300.0, "a loom", "0123", results
    )
    run.write(tmp_path)
    assert PublishedRun.read(tmp_path / "qm7-small.json") == run
    assert results[0].ratio == pytest.approx(14.75 / 14.01)
    assert results[2].values == [0.25, 0.125]


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"experiment": "a"}')
    with pytest.raises(InputError, match=r"a.json: expected a result with experiment, size, command"):
        PublishedRun.read(tmp_path / "a.json")


def test_a_page_has_published_values_ours_and_their_ratio(tmp_path):
    items = [
        Item(
            "Table 1",
            "errors",
            "exp",
            headline=Headline("RF"),
            pictures=["table"],
            departures={"small": "one fold"},
            quoted="others 0.7",
        ),
        Item("Figure 2", "a curve", "exp", parts=["error"], headline=Headline("rf", "error"), published="falls"),
        Item("Figure 3", "a drawing", reason="a drawing"),
        Item("Figure 4", "a picture", "exp", parts=[], pictures=["table"]),
    ]
    results = [
        Result("table", "RF", "test/accuracy", [0.5, 0.6], published=0.5, settings={"s": 9}),
        *curve_results("error", "mse", "x.D", {"rf": ([8, 16], np.array([[0.5, 0.25]]))}),
    ]
    run = PublishedRun("exp", "small", "python run.py experiment=exp", "2026-01-01", results=results)
    kept = {"exp-small": Gathered([run])}
    experiment = Experiment("exp", ["python run.py experiment=exp"], ["small", "paper"])
    (tmp_path / "figures" / "exp-small").mkdir(parents=True)
    (tmp_path / "figures" / "exp-small" / "table.png").touch()
    made = pages([Paper("p", "T", "A", items)], kept, {"exp": experiment}, tmp_path)
    index, page = (cells_of(made[name]) for name in ("index", "p"))
    assert "[Figure 2](p.md#figure-2)" in made["index"]
    assert index[1][2:] == ["size=small", "50 %", "55 ± 5 % (RF)", "1.100"]
    assert index[2][2:] == ["size=small", "falls", "0.25 (rf, D=16)", ""]
    assert index[3][2:] == ["not repeated", "", "", ""]
    assert ["RF", "50 %", "55 ± 5 %", "1.100", "2", "9"] in page
    at = page.index(["mse by D, size=small", "rf"])
    assert page[at + 1 : at + 3] == [["8", "0.5"], ["16", "0.25"]]
    made_by = "size=small: `python run.py experiment=exp`; 2026-01-01; `records/exp-small*.json`."
    for block in (
        f"{made_by} Departs from the paper: one fold.",
        "The paper quotes from others, not repeated here: others 0.7.",
        "![exp-small: table](figures/exp-small/table.png)",
        "```bash\npython run.py experiment=exp size=paper\n```",
    ):
        assert f"\n\n{block}\n" in made["p"]
    assert made["p"].count(made_by) == 3, "each item says how it was made"

    part = replace(run, size="middle", results=[replace(results[0], values=[0.4])])
    page = pages([Paper("p", "T", "A", items[:1])], kept | {"exp-middle": Gathered([part])}, {}, tmp_path)["p"]
    table = cells_of(page)[:2]
    assert table[0] == ["test/accuracy", "published", "size=middle", "size=small", "ratio", "repeats", "s"]
    assert table[1] == ["RF", "50 %", "40 %", "55 ± 5 %", "0.800", "1", "9"], "ratio and repeats are of the first"
    assert "![exp-small: table](figures/exp-small/table.png)" in page, "the larger run has none"


def cells_of(page: str) -> list[list[str]]:
    """The rows of all tables of a page."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    return [row for row in rows if set("".join(row)) != {"-"}]


@pytest.mark.usefixtures("_as_run_py", "_without_picture")
def test_runs_of_parts_of_an_experiment_are_put_together(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()

    def published(day: int, results: list[Result], some: bool = True, *more: str) -> list[str]:
        tags, overrides = {"git.commit": f"{day}123456789abcdef", "machine": "a loom"}, ["size=paper", *more]
        if some:
            tags |= {"rows": '["Raw spectrogram", "CDF, shifts"]', "curves": '["templates", "utterances"]'}
            overrides += ["runner.only=[templates]"]
        path = tmp_path / "out" / "2026-01-01" / f"r{day}"
        write_run(path, 60 * day, "spoken_digits", "paper", *results, overrides=overrides, tags=tags)
        assert publish(docs, tmp_path / "out") == ["spoken_digits-paper"]
        shutil.rmtree(tmp_path / "out")
        return sorted(path.name for path in (docs / "records").glob("*.json"))

    def of(item: str) -> tuple[str, str]:
        """The row of an item in the index, and its text."""
        lines = (docs / "index.md").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"| [{item}](mroueh2015"))
        return line, (docs / "mroueh2015.md").read_text().split(f"## {item}\n")[1].split("\n## ")[0]

    templates = curve_results("templates", "test/accuracy", "m", {"n=25": ([1, 10], np.array([[0.2, 0.4]]))})
    utterances = curve_results("utterances", "test/accuracy", "m", {"n=25": ([1, 10], np.array([[0.3, 0.9]]))})
    shifts, raw = (Result("table", name, "test/accuracy", [0.75]) for name in ("CDF, shifts", "Raw spectrogram"))

    published(1, [shifts, *templates])
    line, text = of("Figure 3")
    assert "size=paper, in part" in line
    assert "40 % (n=25, m=10)" in line
    assert "Not run yet: Raw spectrogram." in text
    assert "0 have a complete result at size=paper" in (docs / "index.md").read_text()
    published(2, [*utterances])
    assert "size=paper " in of("Figure 6")[0]
    assert "in part" not in of("Figure 6")[0], "it needs no other part"
    assert "2123456789" in of("Figure 6")[1]
    assert "1123456789" not in of("Figure 6")[1]
    files = published(3, [raw])
    assert len(files) == 3
    line, text = of("Figure 3")
    assert "size=paper " in line
    assert "in part" not in line
    assert text.index("Raw spectrogram") < text.index("CDF, shifts"), "in the order of the experiment"
    assert "2 runs; commits 1123456789, 3123456789; a loom" in text
    assert "2 have a complete result at size=paper" in (docs / "index.md").read_text()
    published(4, [Result("table", "Raw spectrogram", "test/accuracy", [0.5])], True, "engine.device=cuda")
    assert "| 50 %" in of("Figure 3")[1]
    published(5, [Result("table", "CDF, shifts", "test/accuracy", [0.1])], True, "orbit.size=2")
    assert "| 10 %" not in of("Figure 3")[1], "other settings"
    assert published(6, [raw, shifts, *templates, *utterances], some=False) == ["spoken_digits-paper.json"]
    assert "4123456789" not in of("Figure 3")[1]


def test_differences_of_columns_are_kept_of_each_row():
    def run(day: int, row: str) -> PublishedRun:
        results = [Result(TABLE, f"{row} {column}", "test/accuracy", [0.1 * day]) for column in ("one", "two")]
        results += [Result("two - one", row, "gap of test/accuracy", [0.01 * day])]
        rows = ["a one", "a two", "b one", "b two"]
        return PublishedRun("exp", "paper", "", f"2026-01-0{day}", rows=rows, results=results)

    both = Gathered([run(1, "a"), run(2, "b")])
    gaps = {result.label: result.mean for result in both.results if result.metric.startswith("gap")}
    assert gaps == {"a": 0.01, "b": 0.02}
    assert not both.missing(None)
    assert both.runs[0].stem == "exp-paper-a_one_a_two"


def test_values_of_several_seeds_are_put_together(tmp_path):
    """Of each seed the newest; rows of other sizes or with other settings are not, nor repeats over the same seeds."""
    command, whole = "python run.py experiment=exp", ["RF", "folds"]

    def run(
        day: int, seed: str, rf: list[float], *more: str, part: bool = True, s: int = 9, folds: bool = False
    ) -> PublishedRun:
        results = [Result("table", "RF", "test/accuracy", rf, seconds=float(day), settings={"s": s})]
        results += [Result("table", "folds", "test/rmse", [day, day + 1.0])] if folds else []
        results += curve_results("size", "mse", "n", {"rf": ([8, 16], np.array([[day, 2.0 * day]]))})
        words = " ".join([command, *more, *([f"seed={seed}"] if seed != "0" else [])])
        some = {"rows": whole, "curves": ["size"]} if part else {}
        return PublishedRun("exp", "paper", words, f"2026-01-0{day}", seed, results=results, commit=str(day), **some)

    def cells(*runs: PublishedRun) -> dict[tuple[str, object], list[float]]:
        for path in tmp_path.rglob("*.json"):
            path.unlink()
        (tmp_path / "records").mkdir(exist_ok=True)
        for one in runs:
            one.write(tmp_path / "records")
        found = read_records(tmp_path)["exp-paper"]
        assert {one.commit for one in found.used(["table"])} == {one.commit for one in runs} - {"9"}
        return {(result.label, result.x): result.values for result in found.results}

    first = run(1, "0", [0.5], part=False, folds=True)
    found = cells(first, run(2, "1", [0.7]), run(3, "2", [0.6], part=False, folds=True))
    assert found["RF", None] == [0.5, 0.7, 0.6]
    assert found["rf", 16] == [2.0, 4.0, 6.0]
    assert found["folds", None] == [1.0, 2.0, 3.0, 4.0]
    again = replace(run(3, "2", [0.6], part=False, folds=True), results=first.results)
    repeated = {result.label: result.values for result in Gathered([first, again]).results}
    assert repeated["folds"] == [1.0, 2.0], "repeats over seeds do not depend on the seed of the run"
    assert cells(first, replace(run(9, "1", [0.7]), command="x seed=1 engine=gpu"))["RF", None] == [0.5]
    gathered = Gathered([first, run(2, "1", [0.7])])
    assert next(result.seconds for result in gathered.results if result.label == "RF") == 1.5
    assert next(result for result in Gathered([first, run(2, "1", [0.7], s=5)]).results).values == [0.7]
    assert next(result for result in Gathered([first, run(2, "1", [0.7, 0.8])]).results).values == [0.7, 0.8]
    newer = run(4, "0", [0.1], "orbit.size=2", part=False)
    assert cells(newer) == {("RF", None): [0.1], ("rf", 8): [4.0], ("rf", 16): [8.0]}
    assert newer.replaces(first)
    assert newer.replaces(run(2, "1", [0.7])), "its settings are no longer those of the experiment"
    assert not run(4, "0", [0.1], part=False).replaces(run(2, "1", [0.7]))


@pytest.mark.usefixtures("_as_run_py", "_without_picture")
def test_a_sweep_over_seeds_is_shown_as_one_mean(tmp_path):
    for i, slope in enumerate((-0.4, -0.6)):
        path, result = tmp_path / "out/2026-01-01/sweep" / f"r{i}", Result("slope", "curl-free", "slope", [slope])
        tags = {"sweep": "1", "seed": str(i)}
        write_run(path, 60 + i, "orff_error", "small", result, overrides=[f"seed={i}"], tags=tags, job=i)
    publish(tmp_path / "report", tmp_path / "out")
    assert "-0.5 ± 0.1 (curl-free)" in (tmp_path / "report" / "index.md").read_text()


@pytest.mark.usefixtures("_as_run_py", "_without_picture")
def test_a_newer_run_replaces_what_is_kept_and_other_files_stay(tmp_path):
    def run(day: int, values: list[float]) -> None:
        tags = {"seed": "0", "git.commit": "0123456789abcdef", "machine": "a loom"}
        overrides = ["dataset.root=/home/me", "tracking.enabled=false", "resume=true"]
        path, result = tmp_path / "out" / "2026-01-01" / f"r{day}", Result("slope", "curl-free", "slope", values)
        write_run(path, 86400 * day, "orff_error", "small", result, overrides=overrides, tags=tags)

    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "notes.md").write_text("mine")
    run(1, [-0.4])
    assert publish(docs, tmp_path / "out") == ["orff_error-small"]
    run(2, [-0.6])
    publish(docs, tmp_path / "out")
    (kept,) = read_records(docs)["orff_error-small"].runs
    assert kept.results[0].values == [-0.6]
    assert kept.command == "python run.py experiment=orff_error dataset.root=FOLDER"
    assert "-0.6 (curl-free)" in (docs / "index.md").read_text()
    assert "1.200" in (docs / "index.md").read_text()
    assert "slope. Published: -0.5." in (docs / "brault2016.md").read_text()
    assert (docs / "notes.md").read_text() == "mine"
    shutil.rmtree(tmp_path / "out")
    assert publish(docs, tmp_path / "out") == []
    assert "-0.6 (curl-free)" in (docs / "index.md").read_text()  # what is kept needs no run folder


@pytest.mark.usefixtures("_as_run_py", "_without_picture")
def test_runs_that_have_not_finished_are_left_out(tmp_path):
    for i, status in enumerate(("KILLED", "FAILED", "RUNNING")):
        result = Result("slope", "curl-free", "slope", [-0.4])
        write_run(tmp_path / "out" / "2026-01-01" / f"r{i}", i, "orff_error", "paper", result, status=status)
    assert publish(tmp_path / "report", tmp_path / "out") == []


def test_every_experiment_of_a_paper_has_a_small_size_and_that_of_the_paper():
    for name in {item.experiment for paper in papers() for item in paper.items if item.experiment}:
        middle = ["middle"] if name == "skeleton_cifar10" else []
        assert experiments()[name].sizes == ["small", *middle, "paper"], name


def test_records_of_many_rows_have_names_of_their_own():
    common = [f"ORFF, noise {i}, noisy targets" for i in range(4)]
    last = "ORFF, zzz 100", "ORFF, zzz 1000"
    results = [[Result(TABLE, label, "m", [1.0]) for label in (*common, name)] for name in last]
    kept = [PublishedRun("exp", "paper", "", rows=["all"], results=some) for some in results]
    assert kept[0].stem != kept[1].stem
    assert max(len(each.stem) for each in kept) <= len("exp-paper-") + 80
