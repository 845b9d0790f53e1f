"""The parts of a report: descriptions of experiments, files of runs, and the two formats."""

from __future__ import annotations

from test_run_report import Outline

from papers.content import Code, Content, Link, Picture, Section, Table
from papers.render import FILES, inline, render
from papers.runs import Experiment, Results, Run
from runners.tracking.record import Record


def test_experiments_are_described_by_their_comments(tmp_path):
    (tmp_path / "mine").mkdir()
    for size in ("paper", "small"):
        (tmp_path / "mine" / f"{size}.yaml").touch()
    said = "# @package _global_\n# What it is,\n# and why:\n# python run.py experiment=mine a=1\n"
    (tmp_path / "mine.yaml").write_text(said + "runner:  # python run.py no=more\n")
    mine = Experiment.read(tmp_path / "mine.yaml")
    assert mine == Experiment("mine", "What it is, and why.", ["orbit experiment=mine a=1"], ["small", "paper"])
    assert mine.command("paper") == "orbit experiment=mine a=1 size=paper"
    named = Experiment(
        "it", "", ["python run.py experiment=it", "python run.py experiment=it size=paper x=2"], ["paper"]
    )
    assert named.command("paper") == named.commands[1]


def test_files_of_a_remote_store_are_downloaded_once(tmp_path):
    class Remote:
        asked = 0

        def download(self, run_id, target, endings, folders):
            self.asked += 1
            (target / "table.md").touch()

    remote = Remote()
    results = Results(tmp_path, remote, [], tmp_path)
    (tmp_path / "2").mkdir()
    for _ in range(2):
        assert (results.files(Run(Record("a", run_id="1"), {})) / "table.md").is_file()
    assert remote.asked == 1


def test_both_formats_have_the_same_content():
    table = Table(["a", "b"], [["x", Code("y|z")], ["1.5 ± 0.1", ""]])
    facts = [("seed", "0"), ("page", Link("http://host/#/runs/1"))]
    section = Section("exp", "small", "exp", "About it.", Code("python run.py"), facts, [("t", table)])
    section.pictures, section.lost = [Picture("exp", "pic", "figures/exp/pic.png")], True
    section.failed = section.older = table
    content = Content(
        ["here"], table, [section], table, 3, table, [("s", Code("cmd"))], section.pictures, {"All": table}
    )
    texts = {name: render(content, template) for name, template in FILES.items()}
    outline = Outline(texts["index.html"])
    page = outline.text
    assert "http://host/#/runs/1" in outline.sources
    assert "<http://host/#/runs/1>" in texts["runs.md"]
    for words in (
        "exp, size=small",
        "About it.",
        "python run.py",
        "1.5 ± 0.1",
        "no longer exist",
        "3 older",
        "cmd",
        "Other experiments",
    ):
        assert words in page
        assert words in texts["runs.md"]
    assert texts["runs.md"].count("`y\\|z`") == page.count("y|z") == 7
    assert inline("a\nb") == "a b"
