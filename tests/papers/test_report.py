"""``runner=report``: runs in MLflow and in run folders, and the experiments that they belong to."""

import json
import subprocess
from pathlib import Path

import matplotlib.figure
import pytest

import papers.versions as module
from orbit.core.errors import InputError
from papers.published import Experiment, experiments
from papers.records import Gathered, PublishedRun, read_records
from papers.report import publish
from runners.measure.results import Result
from runners.tracking.record import Record, RunFolder

SLOPE = "orff_error-small"


@pytest.fixture
def out(database) -> Path:
    """The outputs folder of the command line, with a database."""
    return database.parent


def stored(out: Path, day: int, slope: float, **known) -> RunFolder:
    """The folder of a run of experiment=orff_error, as the command line writes it without MLflow."""
    folder = RunFolder(out / "2026-01-01" / f"r{day}")
    folder.path.mkdir(parents=True)
    record = Record(f"r{day}", "h", status="FINISHED", start=1.7e9 + 60 * day, end=1.7e9 + 60 * day + 5, **known)
    record.tags |= {"experiment": "orff_error", "seed": "0"}
    folder.write_record(record)
    folder.write_metrics({"time/processor_s": 4.0})
    folder.write_results([Result("slope", "curl-free", "slope", [slope]).packed()])
    folder.draw("orff_error", matplotlib.figure.Figure, (1, 1))
    return folder


def values(docs: Path) -> list[float]:
    (kept,) = read_records(docs)[SLOPE].runs
    return kept.results[0].values


def test_without_runs_it_lists_the_commands_and_creates_no_database(run, tmp_path):
    out = run.ok("runner=report")
    folder = tmp_path / "out" / "report"
    assert str(folder / "index.md") in out
    text = "\n".join(path.read_text() for path in folder.glob("*.md"))
    for experiment in (experiments()[name] for name in ("qm7", "xperm", "orff_curl")):
        for size in experiment.sizes:
            assert f"\n{experiment.command(size)}\n" in text
    assert not (tmp_path / "out" / "mlflow.db").exists()


def test_an_experiment_beside_published_figures(run, out):
    small = ("dataset.n_train=60", "dataset.n_test=40", "runner.curves=null")
    run.ok("experiment=xperm", *small, "runner.published={Raw: 0.5}")
    assert run("runner=report")[0] == 0
    text = (out / "report" / "mroueh2015.md").read_text()
    section = text[text.index("## Figure 1\n") :][:3000]
    raw = json.loads(next(out.glob("*/*/results.json")).read_text())[0]
    ours = 100 * raw["values"][0]
    row = next(line for line in section.splitlines() if line.startswith("| Raw"))
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["50 %", f"{ours:.4g} %", f"{ours / 50:.3f}", "1"]
    assert "Departs from the paper: one repetition, 2,000 test sequences in the curves." in section
    assert "`python run.py experiment=xperm dataset.n_train=60" in section
    assert "python run.py experiment=xperm size=paper" in text


def test_a_broken_folder_is_left_out_and_a_folder_that_cannot_be_written_is_named(out, tmp_path, log_messages):
    docs = tmp_path / "docs"
    for day, slope in ((1, -0.4), (2, -0.6)):
        stored(out, day, slope)
    (out / "2026-01-01" / "cut").mkdir()
    (out / "2026-01-01" / "cut" / "run.json").write_text('{"name": "cu')
    assert publish(docs, out, only=["qm7"]) == []
    assert publish(docs, out) == [SLOPE]
    assert values(docs) == [-0.6]
    assert (docs / "figures" / SLOPE / "orff_error.png").is_file()
    assert "is left out: its run.json cannot be read" in "\n".join(log_messages)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^runner.folder: cannot write to \S+file \("):
        publish(tmp_path / "file", out)


def test_text_of_runs_is_escaped(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py"])
    hostile = "<script>alert('x')</script>|[a](javascript:b)\n`*_"
    folder = stored(tmp_path / "out", 1, -0.4, overrides=["experiment=orff_error", hostile], tags={"machine": hostile})
    folder.write_results([Result("slope", hostile, "slope", [0.5]).packed()])
    publish(tmp_path / "docs", tmp_path / "out")
    text = (tmp_path / "docs" / "brault2016.md").read_text()
    assert text.count(r"\<script\>alert('x')\</script\>\|\[a\](javascript:b) \`\*\_") == 2
    assert text.count("<script>") == 1
    assert "`` python run.py experiment=orff_error" in text


def test_experiments_have_the_commands_of_their_comments(tmp_path):
    (tmp_path / "mine").mkdir()
    for size in ("paper", "small"):
        (tmp_path / "mine" / f"{size}.yaml").touch()
    said = "# @package _global_\n# What it is,\n# and why:\n# python run.py experiment=mine a=1\n"
    (tmp_path / "mine.yaml").write_text(said + "runner:  # python run.py no=more\n")
    mine = Experiment.read(tmp_path / "mine.yaml")
    files = [tmp_path / name for name in ("mine.yaml", "mine/small.yaml", "mine/paper.yaml")]
    assert mine == Experiment("mine", ["orbit experiment=mine a=1"], ["small", "paper"], files)
    assert mine.command("paper") == "orbit experiment=mine a=1 size=paper"
    named = Experiment("it", ["python run.py experiment=it", "python run.py experiment=it size=paper x=2"], ["paper"])
    assert named.command("paper") == named.commands[1]


def test_results_older_than_the_code_they_depend_on_are_counted(tmp_path, monkeypatch):
    def commit(*names: str) -> str:
        for name in names:
            with (tmp_path / name).open("a") as file:
                file.write("# more\n")
        git("add", ".")
        git("commit", "-qm", "more")
        return git("rev-parse", "HEAD")[:10]

    def git(*words: str) -> str:
        named = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        return subprocess.run(
            ["git", "-C", tmp_path, *named, *words], check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    first = commit("exp.yaml", "versions.py", "other.py")
    commit("other.py")
    last = commit("exp.yaml")
    commits = (first, f"{last} with changes", "0123456789", "")
    runs = [PublishedRun("exp", "small", "", commit=each) for each in commits]
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "versions.py"))
    found = module.versions({"exp-small": Gathered(runs)}, {"exp": Experiment("exp", [], [], [tmp_path / "exp.yaml"])})
    counts = ("1", "0", "unknown", "unknown")
    assert found == [["exp-small", each, count] for each, count in zip(commits, counts, strict=True)]
