"""runner=discover, and the group of data that name none."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, fitted, folders, quickly_composed
from samples import npy_files, npy_shards
from scipy import ndimage

import orbit
from runners.config.plan import Plan, plan
from runners.experiments import discover as module
from runners.experiments.discover import with_discovered_settings
from runners.tracking.record import RunFolder

DISCOVER = ("runner=discover", *SMALL[:2], "runner.refine=false", "tracking.enabled=false")


def decided(*overrides: str, sweep: Path | None = None) -> tuple[Plan, tuple[str, str] | None]:
    """The plan with what its training points decide, and a sentence."""
    return with_discovered_settings(plan(quickly_composed(*overrides)), sweep)


@pytest.mark.slow
def test_the_discovered_group_is_an_experiment(run, tmp_path):
    out = run.ok(*DISCOVER)
    assert "Averaging over rotation helps" in out
    (folder,) = folders(tmp_path)
    metrics = RunFolder(folder).read_metrics()
    assert metrics["discover/error"] < metrics["discover/error_without"]
    assert (folder / "figures" / "discover.png").exists()
    assert "group=rotation\n" in out
    settings = (f"--config-dir={folder / 'conf'}", "experiment=discovered", "dataset=digits", "approx.n_components=20")
    out = run.ok(*settings, "dataset.n_train=60", "dataset.n_test=40", "tracking.enabled=false", "run_name=b")
    assert "orbit of 32" in out


@pytest.fixture
def own(tmp_path):
    """Settings of a small fit to rotated digits in a file, which names no group."""
    data = orbit.RotatedDigits().load(0)
    np.savez(tmp_path / "own.npz", X=data.X_train[:80], y=data.y_train[:80])
    return "dataset=arrays", f"dataset.path={tmp_path / 'own.npz'}", "approx.n_components=20", "tracking.enabled=false"


def test_data_that_name_no_group_get_the_discovered_one(run, own):
    discovered = run.metrics(*own)
    assert "Averaging over rotation helps" in run.out
    assert discovered["test/accuracy"] == fitted(*own, "group=rotation").metrics["test/accuracy"]


def test_a_wrong_row_of_a_table_is_refused_before_groups_are_compared(own, monkeypatch):
    monkeypatch.setattr(module, "discover", None)
    with pytest.raises(orbit.InputError, match="kernel=gaussian has no parameter 'lengthscal'"):
        decided(*own, "runner=table", "runner.rows={plain: {}, wide: {kernel.lengthscal: 2}}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrays", "shards"])
def test_group_and_lengthscale_of_a_stream_are_found_and_resumed(run, tmp_path, kind):
    data = orbit.RotatedDigits().load(0)
    if kind == "arrays":
        files = npy_files(tmp_path, data.X_train[:160], data.y_train[:160])
    else:  # whose default group is the identity
        files = npy_shards(tmp_path / "parts", data.X_train, data.y_train, (70, 50, 40))
    settings = (*files, "kernel.lengthscale=auto", "approx.n_components=60", "engine.stream=true")
    out = run.ok(*settings, "resume=true", "run_name=a")
    assert ("Averaging over rotation helps" in out) == (kind == "arrays")
    assert "times the median, by leave-one-out error" in out
    run.ok(*settings, "resume=true", "run_name=b")
    first, second = map(RunFolder, folders(tmp_path))
    assert first.read_metrics()["test/accuracy"] > (0.6 if kind == "arrays" else 0.4)
    assert second.read_record().status == "SKIPPED"


def test_a_sweep_discovers_a_group_once_for_each_split(monkeypatch, tmp_path, own):
    found = []
    monkeypatch.setattr(module, "_finding", lambda made: found.append(1) or ({"group": {"name": "dihedral"}}, "why"))
    expected = {"": "dihedral", "learner=svm": "dihedral", "group=rotation": "rotation", "seed=1": "dihedral"}
    for setting, name in {**expected, "runner=sync": "identity"}.items():
        made, why = decided(*own, *[setting][: len(setting)], sweep=tmp_path)
        assert (made.config["group"]["name"], why) == (name, ("group", "why") if name == "dihedral" else None)
    assert len(found) == 2


def test_few_points_have_no_group(tmp_path):
    np.savez(tmp_path / "own.npz", X=np.random.default_rng(0).random((9, 4, 4)), y=np.arange(9) % 2)
    made, why = decided("dataset=arrays", f"dataset.path={tmp_path / 'own.npz'}")
    assert made.config["group"]["name"] == "identity"
    assert why[1].startswith("no group is compared: X: expected at least 10 different points")


@pytest.mark.usefixtures("few_groups")
@pytest.mark.parametrize("given", [(), ("group=rotation",), ("group=identity",)])
def test_large_images_are_textures_or_objects_by_their_errors(tmp_path, rng, given):
    y, x = np.mgrid[-23.5:24, -23.5:24]
    noise = rng.normal(size=(40, 48, 48))
    labels = np.arange(40) % 2
    # a blob, inside or outside: the same patches at other places
    radius = np.where(labels, 4.0, 14.0)[:, None, None]
    angle = rng.uniform(0, 2 * np.pi, 40)[:, None, None]
    blobs = np.exp(-((y - radius * np.sin(angle)) ** 2 + (x - radius * np.cos(angle)) ** 2) / 18)
    # grain, finer or coarser, in pictures of any contrast: the same means and spreads at all places
    grain = np.stack([ndimage.gaussian_filter(each, 1.5 + 0.5 * one) for each, one in zip(noise, labels, strict=True)])
    grain *= 4 ** rng.uniform(-1, 1, (40, 1, 1)) / grain.std((1, 2), keepdims=True)
    for name, signal in {"objects": 3 * blobs + 0.1 * noise, "textures": grain}.items():
        path = tmp_path / f"{name}.npz"
        np.savez(path, X=signal.astype(np.float32), y=labels)
        base = ("dataset=arrays", f"dataset.path={path}", "encoder=by_size", "encoder.values=none", *given)
        made, (kind, why) = decided(*base)
        expected = {"name": "by_size", "axes": None, "textures": name == "textures", "channels": None}
        others = {"values": "none", "contrast": None, "differences": None, "series": None}
        assert made.config["encoder"] == expected | others
        assert kind == ("encoder" if given else "group")
        if given:
            assert "the unexplained share of the variance of y, by leave-one-out, is" in why
            assert made.config["group"]["name"] == given[0].removeprefix("group=")


@pytest.mark.usefixtures("few_groups")
@pytest.mark.parametrize(("expected", "given"), [("apart", ()), ("together", ("group=identity",))])
def test_channels_of_textures_are_apart_or_together_by_their_errors(tmp_path, rng, expected, given):
    labels = np.arange(40) % 2
    one, two, *others = (ndimage.gaussian_filter(rng.normal(size=(40, 48, 48)), (0, 1, 1)) for _ in range(4))
    others = [each * 5 ** rng.normal(size=(40, 1, 1)) for each in others]  # stains that are brighter or darker
    finer = np.stack(
        [ndimage.gaussian_filter(each, 0.3 + 0.2 * label) for each, label in zip(one, labels, strict=True)]
    )
    coloured = np.where(labels[:, None, None] == 1, 0.8 * one + 0.6 * two, two)  # what differs is a correlation
    stains = {"apart": [finer / finer.std((1, 2), keepdims=True), *others], "together": [one, coloured]}
    path = tmp_path / "stains.npz"
    np.savez(path, X=np.stack(stains[expected], -1).astype(np.float32), y=labels)
    encoder = "encoder=by_size", "encoder.textures=true", "encoder.values=none"
    made, (_, why) = decided("dataset=arrays", f"dataset.path={path}", *encoder, *given)
    assert made.config["group"]["name"] == "identity"
    assert made.config["encoder"]["textures"] is True
    assert made.config["encoder"]["channels"] in (expected, "both"), why
    assert "the unexplained share of the variance of y, by leave-one-out, is" in why


@pytest.mark.parametrize("given", [(), ("group=identity",)])
def test_a_run_of_series_says_that_groups_can_be_compared(tmp_path, rng, given):
    pd.DataFrame(rng.normal(size=(24, 64))).assign(label=["a", "b"] * 12).to_csv(tmp_path / "a.csv", index=False)
    _, (kind, why) = decided("dataset=series", f"dataset.path={tmp_path}/a.csv", *given)
    assert kind == "encoder"
    assert why.endswith("Groups are not compared; runner=discover does.") == (not given)


def test_patches_keep_contrast_where_it_differs(tmp_path, rng):
    y, x = np.mgrid[:48, :48]
    labels, light = np.arange(60) % 2, np.exp(rng.normal(0, 0.5, (60, 1, 1)))
    place = rng.uniform(8, 40, (2, 60, 1, 1))
    lesion = np.exp(-(np.square(y - place[0]) + np.square(x - place[1])) / 8) * np.where(labels, 12, 4)[:, None, None]
    noise = rng.normal(size=(60, 48, 48))
    finer = np.stack([ndimage.gaussian_filter(each, 0.8 + 0.1 * one) for each, one in zip(noise, labels, strict=True)])
    for contrast, X in {True: lesion + noise, None: light * finer / finer.std((1, 2), keepdims=True)}.items():
        np.savez(tmp_path / f"{contrast}.npz", X=X.astype(np.float32), y=labels)
        settings = "encoder=by_size", "encoder.textures=true", "encoder.values=none", "group=identity"
        made, (_, why) = decided("dataset=arrays", f"dataset.path={tmp_path}/{contrast}.npz", *settings)
        assert made.config["encoder"]["contrast"] is bool(contrast), why


def test_series_have_patches_or_places_by_their_errors(tmp_path, rng):
    labels, time = np.arange(40) % 2, np.arange(40)
    noise, start = 0.1 * rng.normal(size=(40, 40)), rng.uniform(5, 25, (40, 1))
    anywhere = np.exp(-((time - start - 5) ** 2) / 18) * np.sin((time - start) * (0.9 + 0.5 * labels[:, None]))
    wave = np.sin(time / 3 + 0.3 * labels[:, None])
    baseline = rng.normal(0, 30, (40, 1)) + rng.uniform(0.2, 5, (40, 1)) * (wave + 0.3 * noise)
    halves = np.where((time < 20) == labels[:, None], 0.6, -0.6)
    for series, X in {"patches": anywhere + noise, "samples": halves + 10 * noise, "slopes": baseline}.items():
        pd.DataFrame(X).assign(label=np.where(labels, "a", "b")).to_csv(tmp_path / f"{series}.csv", index=False)
        made, (_, why) = decided("dataset=series", f"dataset.path={tmp_path}/{series}.csv")
        assert made.config["encoder"]["series"] == series, why


def test_groups_are_compared_with_samples_at_their_places(tmp_path, rng):
    labels, time = np.arange(40) % 2, np.arange(80)
    halves = np.where((time < 40) == labels[:, None], 0.6, -0.6)
    np.savez(tmp_path / "a.npz", X=halves + rng.normal(size=(40, 80)), y=labels)
    made, (kind, why) = decided("dataset=arrays", f"dataset.path={tmp_path}/a.npz", "encoder=by_size")
    assert (kind, made.config["encoder"]["series"]) == ("group", "samples")
    assert "no group is compared" not in why


def test_quantiles_count_where_levels_differ(tmp_path, rng):
    labels = np.arange(40) % 2
    noise, waves = rng.normal(size=(40, 64)), np.sin(np.arange(64) * np.where(labels, 0.5, 1.0)[:, None])
    for values, X in {"alone": noise + labels[:, None], None: 3 * waves + noise + rng.normal(size=(40, 1))}.items():
        np.savez(tmp_path / f"{values}.npz", X=X, y=labels)
        base = ("dataset=arrays", f"dataset.path={tmp_path}/{values}.npz", "encoder=by_size", "group=identity")
        made, (kind, why) = decided(*base)
        assert (kind, made.config["encoder"]["values"]) == ("encoder", values), why


@pytest.mark.parametrize("clusters", [2, 4])
def test_the_encoder_of_series_is_chosen_with_few_clusters(tmp_path, clusters):
    rng = np.random.default_rng(0)  # bands of two substances in spectra with a baseline, measured on a few days
    at, amounts = np.linspace(0, 1, 80), rng.uniform(0.5, 1.5, (60, 2))
    bands = np.exp(-0.5 * ((at - np.array([[0.4], [0.6]])) / 0.1) ** 2)
    X = (
        amounts @ bands
        + rng.normal(0, 1, (60, 2)) @ np.stack([np.ones(80), at])
        + 0.001 * rng.standard_normal((60, 80))
    )
    np.savez(tmp_path / "a.npz", X=X, y=amounts[:, 0], groups=np.arange(60) % (clusters + 1))
    made = plan(quickly_composed("dataset=series", f"dataset.path={tmp_path / 'a.npz'}"))
    chosen, why = with_discovered_settings(made, None)
    assert chosen.config["encoder"].get("series") == ("samples" if clusters > 2 else None)
    expected = (
        "series=samples" if clusters > 2 else "kept, because its settings are not compared: X: expected at least 3"
    )
    assert expected in why[1]
