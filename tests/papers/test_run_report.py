"""``runner=report``: the report of runs in MLflow and in run folders."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.figure
import pytest

from orbit.core.errors import InputError
from papers.published import papers
from papers.report import write_report
from papers.runs import experiments
from runners.job.job import slug
from runners.tracking.mlflow import Tracker
from runners.tracking.record import Record, RunFolder

CONF = Path(__file__).parents[2] / "papers" / "conf"
SMALL = ("dataset=digits", "dataset.n_train=60", "dataset.n_test=40", "approx.n_components=10", "orbit.size=2")
PAGES = ("index", *(paper.name for paper in papers()), "runs")
HOSTILE = "<script>alert('x')</script>|[a](javascript:b)\n`*_"


def stored(out: Path, record: Record, metrics: dict | None = None, texts: dict | None = None, picture: bool = False):
    """The run folder of a run without MLflow, as the command line writes it."""
    folder = RunFolder(out / "2026-01-01" / slug(f"{record.name}-{record.start}"))
    folder.path.mkdir(parents=True)
    record.params |= {"runner.name": "fit"}
    record.end = record.start + 83
    folder.write_record(record)
    folder.write_metrics(metrics or {})
    for name, text in (texts or {}).items():
        folder.write_text(name, text)
    if picture:
        folder.write_figure("table", matplotlib.figure.Figure((1, 1)))
    return folder


def logged(out: Path, record: Record, *parts, **files) -> Record:
    """Create a run in MLflow as the command line does; returns its record, with its id."""
    folder = stored(out, record, *parts, **files)
    assert Tracker(out, None, "orbit").upload(folder)
    return folder.read_record()


def made(name: str, day: int, experiment: str = "", status: str = "FINISHED", **changes) -> Record:
    tags = {"experiment": experiment, "seed": "0", "git.commit": "0123456789abcdef", "machine": "a loom, 2 cores"}
    parts = {"config_hash": f"hash{day}", "start": 1.7e9 + 86400.0 * day, "overrides": [f"seed={day}"]} | changes
    parts["params"] = {"size": "small", "seed": str(day)} | parts.get("params", {})
    return Record(name, status=status, **parts, tags=tags | changes.get("tags", {}))


@pytest.fixture
def out(database) -> Path:
    """The outputs folder of the command line, with a database."""
    return database.parent


class Outline(HTMLParser):
    """The tags of a page, its text and the files that it shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self.text = ""
        self.anchors: set[str] = set()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.anchors |= {value for key, value in attrs if key == "id"}
        self.sources += [value for key, value in attrs if key in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read_report(folder: Path) -> tuple[str, Outline]:
    """The Markdown of all pages and the outline of the HTML page, after a check that its links exist."""
    page = Outline((folder / "index.html").read_text())
    assert not page.open
    for source in page.sources:
        assert source[1:] in page.anchors if source.startswith("#") else (folder / source).is_file(), source
    return markdown_of(folder), page


def markdown_of(folder: Path) -> str:
    """All pages, with a blank line after each."""
    return "\n".join(path.read_text() for name in PAGES if (path := folder / f"{name}.md").is_file())


@pytest.fixture
def report(tmp_path, monkeypatch):
    """``report(only=["a"])`` -> Markdown and outline, written in this process; ``tracked=False`` without MLflow."""
    monkeypatch.setattr("sys.argv", ["run.py"])

    def execute(tracked: bool = True, **options) -> tuple[str, Outline]:
        out = tmp_path / "out"
        write_report(out / "report", out, Tracker(out, None, "orbit") if tracked else None, [CONF], **options)
        return read_report(out / "report")

    return execute


def row_of(markdown: str, start: str) -> list[str]:
    line = next(line for line in markdown.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_without_runs_it_lists_the_commands_and_creates_no_database(run, tmp_path):
    code, out, err = run("runner=report")
    assert code == 0, err
    assert str(tmp_path / "out" / "report" / "index.html") in out
    text, page = read_report(tmp_path / "out" / "report")
    assert "Nothing has run yet" in text
    assert "Nothing has run yet" in page.text
    for experiment in experiments(CONF):
        for size in experiment.sizes or ["small"]:
            assert re.search(rf"^(\| .*`)?{re.escape(experiment.command(size))}($|` )", text, re.MULTILINE)
            assert experiment.command(size) in page.text
    assert not (tmp_path / "out" / "mlflow.db").exists()


@pytest.mark.parametrize("tracked", [True, False], ids=["mlflow", "folders"])
def test_settings_are_as_on_the_command_line(report, out, tracked):
    write = logged if tracked else stored
    write(out, made("few", 0, overrides=["dataset.n_train=60"], params={"dataset.n_train": 60}))
    write(out, made("all", 1, params={"dataset.n_train": None}))
    text, _ = report(tracked)
    column = row_of(text, "run ").index("dataset.n_train")
    assert [row_of(text, name)[column] for name in ("few", "all")] == ["60", "null"]


def test_real_runs_a_sweep_with_a_failed_job_and_a_run_without_mlflow(run, report, out):
    quick = (*SMALL, "runner.save_model=false")
    params = {"dataset.n_train": "60", "approx.name": "nystrom", "kernel.name": "gaussian", "seed": "0"}
    logged(out, made("first", 0, overrides=["dataset.n_train=60"], params=params), {"test/accuracy": 0.5})
    sweep = ("-m", *quick, "approx=rf", "dataset.n_train=50,5000", "kernel=gaussian,polynomial")
    assert run(*sweep)[0] == 1  # too many points, and twice a kernel that is refused before the run is in MLflow
    assert run(*quick, "run_name=untracked", "tracking.enabled=false", "seed=7")[0] == 0
    assert run("seed=-1")[0] == 2  # a refused command line is no run
    text, page = report()
    rows = text[text.index("| run ") : text.index("Runs that did not finish")].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row]
    assert cells[0][2:6] == ["dataset.n_train", "approx", "kernel", "seed"]
    assert cells[0][6:] == ["test/accuracy", "duration", "status", "id"]
    assert [row[0].partition("-")[0] for row in cells[2:]] == ["untracked", "sweep", *["↳ digits"] * 4, "first"]
    assert "1 of 4 jobs finished" in cells[3]
    assert [(*row[2:6], row[8]) for row in cells if row[0][0] in "u↳f"] == [
        ("60", "nystrom", "gaussian", "7", "FINISHED"),
        ("50", "rf", "gaussian", "0", "FINISHED"),
        *(("50", "rf", "polynomial", "", "FAILED"), ("5000", "rf", "gaussian", "0", "FAILED")),
        ("5000", "rf", "polynomial", "", "FAILED"),
        ("60", "nystrom", "gaussian", "0", "FINISHED"),
    ]
    failed = text[text.index("Runs that did not finish") :]
    assert failed.count("| FAILED | ") == 3
    assert "dataset.n_train: expected at most 1" in failed
    assert failed.count("kernel=polynomial is not shift invariant") == 2
    assert re.search(r"python run.py -m dataset=digits .*dataset.n_train=50,5000", text)
    assert {"summary.png"} == {path.name for path in (out / "report" / "figures").rglob("*.png")}
    assert re.search(r"↳ digits-rotation-rf-polynomial-\S+-s0", page.text)
    refused = r"digits-rotation-rf-polynomial-\S+-s0"
    assert re.search(rf"read from their folders: 3 \(untracked, {refused}, {refused}\)", text)

    local, _ = report(tracked=False)
    assert "(tracking.enabled=false): 6" in local
    assert row_of(local, "first")[2:7] == row_of(text, "first")[2:7]
    assert local.count("| FAILED | ") == 3


def test_an_experiment_beside_published_figures(run, report, out):
    small = ("dataset.n_train=60", "dataset.n_test=40", "runner.curves=null")
    code, _, err = run("experiment=xperm", *small, "runner.published={Raw: 0.5}")
    assert code == 0, err
    text, page = report()
    section = text[text.index("### Figure 1 at size=small") : text.index("### Figure 1 at size=small") + 3000]
    raw = json.loads(next(out.rglob("results.json")).read_text())[0]
    ours = 100 * raw["values"][0]
    assert row_of(section, "Raw")[1:5] == ["50 %", f"{ours:.4g} %", f"{ours / 50:.3f}", "1"]
    assert "Departs from the paper: one repetition, 2,000 test sequences in the curves." in section
    assert "`python run.py experiment=xperm dataset.n_train=60" in section
    assert "size=small" in row_of(text, "[Figure 1](mroueh2015.md#figure-1)")
    assert "### xperm" not in text  # its page is that of the paper
    assert "python run.py experiment=xperm size=paper" in text
    assert f"{ours:.4g} %" in page.text


def test_the_newest_finished_run_is_shown_and_others_are_listed(report, out):
    table = {"table.md": "| | error |\n| --- | --- |\n| ours | 0.25 |\n\nPublished: 1999.\n"}
    logged(out, made("old-but-same", 1, "xperm", config_hash="same"), texts={"table.md": "| a |\n| - |\n| gone |\n"})
    logged(out, made("different", 2, "xperm", config_hash="other"), {"test/accuracy": 0.5})
    logged(out, made("newest", 3, "xperm", config_hash="same"), texts=table)
    failed = made("broken", 4, "xperm", status="FAILED", error="dataset.root: no file at all")
    logged(out, failed)
    logged(out, made("bad", 5, "qm7", status="FAILED", error="out of luck"))
    text, page = report()
    section = text[text.index("### xperm, size=small") : text.index("## Other experiments")]
    assert row_of(section, "ours") == ["ours", "0.25"]
    assert "Published: 1999." in section
    assert "- run: newest" in section
    assert "python run.py seed=3" in section
    assert "- duration: 1 min 23 s" in section
    assert "- code: 0123456789\n" in section
    assert "gone" not in section
    older = section[section.index("Older runs") :]
    assert "`python run.py seed=2`" in older
    assert "seed=1" not in older
    unfinished = section[section.index("Later runs that did not finish") : section.index("Older runs")]
    assert row_of(unfinished, "broken")[2:4] == ["FAILED", "dataset.root: no file at all"]
    assert row_of(text, "xperm")[-2:] == ["3", "1"]
    missing = text[text.index("### Started and not finished") :]
    assert row_of(missing, "qm7 ")[-1].endswith("FAILED: out of luck")
    assert "out of luck" in page.text


def test_the_same_runs_give_the_same_text_and_only_files_of_the_report(report, out):
    for day in (1, 2):
        logged(out, made("a", day, "xperm"), {"test/accuracy": 0.5}, picture=True)
        stored(out, made("b", day), {"test/accuracy": 0.25 * day})
    first, _ = report()
    page = (out / "report" / "index.html").read_bytes()
    assert report()[0] == first
    assert (out / "report" / "index.html").read_bytes() == page
    assert sorted(path.name for path in (out / "report").iterdir()) == sorted(
        ["figures", "index.html", *(f"{name}.md" for name in PAGES)]
    )
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_text_of_runs_is_escaped(report, out):
    kept = made("xperm-like", 1, HOSTILE, overrides=["kernel={a: 1}", HOSTILE, "tracking.uri=http://me:secret@host"])
    table = f"| a |\n| - |\n| {HOSTILE.split('|')[0]} |\n\n![x](http://evil/x.png)\n"
    logged(out, kept, {"x": 1.0}, {"table.md": table}, picture=True)
    stored(out, made(HOSTILE, 2, params={"seed": HOSTILE}))
    stored(out, made("..", 3, "..", status="FAILED", error=HOSTILE))
    text, page = report()
    assert not {"script", "i"} & page.tags
    assert "<script>alert('x')</script>" in page.text
    assert all(source.startswith(("#", "figures/")) for source in page.sources)
    assert "secret" not in text + page.text
    outside_code = re.sub(r"(`+).*?\1", "", text, flags=re.DOTALL)
    for bad in (r"(?<!\\)<script", r"(?<!\\)\[a\]\(javascript", r"(?<!\\)!\[x\]\(http"):
        assert not re.search(bad, outside_code)
    assert "\\<script\\>" in text
    assert len(list((out / "report" / "figures").iterdir())) == 1  # of what has a section; in a folder with a safe name


def test_a_run_without_its_files_is_named_and_the_others_are_shown(report, out):
    gone = logged(out, made("gone", 1, "xperm"))
    logged(out, made("there", 2, "qm7"), {"test/rmse": 3.5}, picture=True)
    shutil.rmtree(out / "artifacts" / "orbit" / gone.run_id)
    text, page = report()
    section = text[text.index("### xperm") : text.index("## Other experiments")]
    assert "files of this run no longer exist" in section
    assert gone.run_id in section
    assert "files of this run no longer exist" in page.text
    assert "![qm7-small: table]" in text
    assert row_of(text, "test/rmse") == ["test/rmse", "3.5"]  # without a table, the metrics


def test_only_and_latest_choose(report, tmp_path):
    for i, name in enumerate(("xperm", "qm7", "removed")):
        stored(tmp_path / "out", made(name, i, name))
    for day in range(3):
        stored(tmp_path / "out", made(f"plain{day}", 10 + day))
    text, _ = report(tracked=False, only=["qm7", "removed"], latest=2)
    assert "### qm7, size=small" in text
    assert "### removed" in text  # an experiment that conf no longer has
    assert "xperm" not in text
    assert "plain2" in text
    assert "plain0" not in text
    assert "1 older runs and sweeps are left out" in text
    with pytest.raises(InputError, match=r"runner.only: no such experiment 'xprem'; did you mean 'xperm'\?"):
        report(tracked=False, only=["xprem"])


def test_experiments_of_runs_without_the_tag_follow_from_overrides_or_names(report, tmp_path):
    for i, (name, overrides) in enumerate(
        [("orbit_error-rotation-rf-s0", ["experiment=orbit_rules"]), ("qm7_kernel_error-rf-small-s0", [])]
    ):
        record = made(name, i, overrides=overrides)
        del record.tags["experiment"]
        stored(tmp_path / "out", record)
    text, _ = report(tracked=False)
    assert "### orbit_rules\n" in text
    assert "### qm7_kernel_error, size=small\n" in text
    assert "### qm7, size=small" not in text


def test_pending_run_folders_are_read_and_broken_ones_left_out(report, out, log_messages):
    record = made("waiting", 1)
    folder = stored(out, record, {"test/accuracy": 0.5})
    tracker = Tracker(out, None, "orbit")
    assert tracker.upload(folder)
    record = folder.read_record()
    (folder.path / "run.json").unlink()
    assert not tracker.upload(folder)  # fails, and stays pending
    folder.write_record(record)
    folder.write_metrics({"test/accuracy": 0.75})
    for name, content in (("cut", '{"name": "cu'), ("foreign", '{"what": 1}')):
        (out / "2026-01-01" / name).mkdir()
        (out / "2026-01-01" / name / "run.json").write_text(content)
    text, _ = report()
    assert "\n".join(log_messages).count("is left out: its run.json cannot be read") == 2
    assert "read from their folders: 1 (waiting)" in text
    assert row_of(text, "waiting")[2] == "0.75"
    assert text.count(record.run_id) == 1


def test_the_old_report_stays_when_no_store_answers_and_on_an_interrupt(report, tmp_path, monkeypatch):
    before, _ = report()
    folder = tmp_path / "out" / "report"
    nobody = Tracker(tmp_path / "out", "http://127.0.0.1:9", "orbit")
    with pytest.raises(InputError, match=r"^tracking.uri: no tracking server answers at http://127.0.0.1:9 [^\n]*$"):
        write_report(folder, tmp_path / "out", nobody, [CONF])

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("papers.report.render", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report()
    assert markdown_of(folder) == before
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]


def test_a_folder_with_other_files_is_not_replaced(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years")
    message = "runner.folder: expected a new folder or that of an earlier report, found chapter.tex"
    with pytest.raises(InputError, match=message):
        write_report(tmp_path / "thesis", tmp_path / "out", None, [CONF])
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years"
    assert run("runner=report", f"runner.folder={tmp_path / 'new' / 'page'}")[0] == 0
    assert (tmp_path / "new" / "page" / "index.html").is_file()
