"""What MLflow's pages show: experiments in the classic view, the description of a sweep, and a saved view of its jobs.

A saved view is MLflow's own: a tag of the experiment, which the button "Saved views" of its page writes and reads.
"""

from __future__ import annotations

import json
from typing import Any

#: Experiments of models, not of prompts. Newer versions of MLflow ask the address of the page instead; see page().
EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}

NOTE_TAG = "mlflow.note.content"

_VIEW_TAG = "mlflow.sharedViewState."
_MOST_VIEWS = 20  # all tags of an experiment are sent with each request for it
_LONGEST_NOTE = 7500  # MLflow's limit for the value of a tag is 8000


def note(description: str, experiment_id: str, view: str | None) -> str:
    """The description of a run: its text, cut at a line, after a link to its saved view if it has one."""
    link = f"[Jobs of this sweep]({page(experiment_id, view)})\n\n" if view else ""
    if len(link + description) <= _LONGEST_NOTE:
        return link + description
    kept = description[: _LONGEST_NOTE - len(link) - 100].rpartition("\n")[0]
    return f"{link}{kept}\n\nThe rest is in summary.md among the artifacts."


def save(client: Any, experiment_id: str, key: str, name: str, time: float, state: dict[str, Any]) -> None:
    """Add a saved view to an experiment, and delete the oldest if there are too many."""
    content = {"name": name, "createdAt": int(time * 1000), "updatedAt": int(time * 1000), "state": json.dumps(state)}
    client.set_experiment_tag(experiment_id, _VIEW_TAG + key, json.dumps(content))
    tags = client.get_experiment(experiment_id).tags
    ours = sorted((found, tag) for tag, value in tags.items() if (found := _created(tag, value)) is not None)
    for _, tag in ours[:-_MOST_VIEWS]:
        client.delete_experiment_tag(experiment_id, tag)


def page(experiment_id: str, view: str | None = None) -> str:
    """The address of an experiment's runs, or of a saved view of them, within MLflow's pages."""
    shown = f"&viewStateShareKey={view}" if view else ""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning{shown}"  # the other type shows prompts


def jobs_of_a_sweep(
    sweep: str, metric: str, larger_is_better: bool, keys: list[str], numeric: list[str]
) -> dict[str, Any]:
    """The state of a view: the runs of a sweep, best first, with the metric and the swept parameters.

    Sorted by anything but time, MLflow shows the jobs themselves and not only their parent.
    """
    charts = [_scatter(key, metric) for key in keys if key in numeric] + [_parallel(keys, metric), _bars(metric)]
    order = {"orderByKey": _column("metrics", metric), "orderByAsc": not larger_is_better}
    return _state(f"tags.sweep = '{sweep}'", order, [metric], keys) | {
        "compareRunCharts": charts,
        "compareRunSections": [{"uuid": _SECTION, "name": metric, "display": True, "isReordered": False}],
        "isAccordionReordered": True,  # or MLflow adds a chart for every metric, before these
    }


def all_runs(metrics: list[str]) -> dict[str, Any]:
    """The state of a view: all runs, the latest first, with some metrics the data and the names of components."""
    keys = ["data", *(f"{kind}.name" for kind in ("group", "encoder", "approx", "kernel", "learner"))]
    return _state("", {"orderByKey": "attributes.start_time", "orderByAsc": False}, metrics, keys)


def _state(runs: str, order: dict[str, Any], metrics: list[str], keys: list[str]) -> dict[str, Any]:
    columns = [*(_column("metrics", metric) for metric in metrics), *(_column("params", key) for key in keys)]
    shown = {"selectedColumns": columns, "columnOrder": columns, "runsHiddenMode": "SHOW_ALL"}  # in charts
    return {"searchFilter": runs, **order, **shown}


_SECTION = "main"


def _created(tag: str, value: str) -> int | None:
    """When a saved view of a sweep was made; None for other tags, and for views that a person saved."""
    if not tag.startswith(_VIEW_TAG):
        return None
    try:
        content = json.loads(value)
        return int(content["createdAt"]) if "tags.sweep" in content["state"] else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{name}`"


def _chart(kind: str, name: str, **settings: Any) -> dict[str, Any]:
    chart = {"uuid": f"{kind}-{name}", "type": kind, "metricSectionId": _SECTION, "deleted": False}
    return {**chart, "isGenerated": False, "displayName": name, "runsCountToCompare": 100, **settings}


def _scatter(key: str, metric: str) -> dict[str, Any]:
    axes = {"xaxis": {"key": key, "type": "PARAM"}, "yaxis": {"key": metric, "type": "METRIC"}}
    return _chart("SCATTER", f"{metric} against {key}", **axes)


def _parallel(keys: list[str], metric: str) -> dict[str, Any]:
    return _chart(
        "PARALLEL", f"{metric} of all settings", selectedParams=keys, selectedMetrics=[metric], showAllRuns=False
    )


def _bars(metric: str) -> dict[str, Any]:
    return _chart("BAR", metric, metricKey=metric)
