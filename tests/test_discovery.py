"""Groups compared by leave-one-out errors: the right one is found, and none where there is none."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import orbit
from orbit import (
    Cyclic,
    Digits,
    Dihedral,
    Exact,
    Gaussian,
    InputError,
    Orbit,
    Permutation,
    Reflection,
    RidgeClassifier,
    Rotation,
    Translation,
    discover,
)
from orbit.discovery import Discovery, candidates
from orbit.discovery.candidates import invariant_encoders
from orbit.discovery.points import sampled
from orbit.discovery.result import Trial, simplest
from orbit.encoders import BySize, Gradients, PrincipalComponents
from orbit.kernels.base import median_distance
from orbit.orbits import random_orbit_points
from orbit.solvers.left_out import encoded_targets, left_out


def digits(loader, n=150):
    data = loader.load(random_state=0)
    return data.X_train[:n], data.y_train[:n]


def waves(rng, n=60):
    """Sines and squares, each shifted cyclically, with noise, and which of them they are."""
    y, time = rng.integers(2, size=n), np.arange(32)
    shapes = np.where(y[:, None] == 1, np.sin(time), np.sign(np.sin(time / 2)))
    return np.stack([np.roll(each, rng.integers(32)) for each in shapes]) + rng.normal(size=(n, 32)), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loader", "expected"),
    [(orbit.RotatedDigits(), {"rotation"}), (orbit.Digits(), {"small_moves", "translation", "affine"})],
)
def test_the_group_of_digits_is_found(loader, expected):
    found = discover(*digits(loader, 300))
    assert found.best.orbit.group.name in expected
    assert found.table["group"][0].split()[0] in expected
    assert found.best.error < found.identity.error
    assert "helps: the unexplained share of the variance of y, by leave-one-out, is" in str(found)


def test_groups_of_series_with_many_channels_are_those_of_series(rng):
    X, y = rng.normal(size=(40, 32, 12)), np.arange(40) % 2
    groups = {row.split()[0] for row in discover(X, y, encoder=BySize(axes=1), refine=False).table["group"]}
    assert "time_warp" in groups
    assert not groups & {"rotation", "affine", "shear", "small_moves"}


def test_only_hopeful_orbits_of_encoded_points_take_all_elements():
    found = discover(*digits(orbit.RotatedDigits()), encoder=Gradients(), refine=False)
    sizes = {trial.group: trial.orbit.size for trial in found.trials}
    assert found.best.group == "rotation"
    assert sizes["rotation"] == 32
    assert sizes["shear"] == sizes["permutation mode=rows_columns"] == 8
    errors = {trial.group: trial.error for trial in found.trials}
    assert 1.2 * errors["rotation"] < min(errors["shear"], errors["permutation mode=rows_columns"])


def turned_patterns(rng, noise, most_shift=0):
    """Pictures of four patterns at quarter turns, shifted, and which of the four they are."""
    patterns = gaussian_filter(rng.standard_normal((4, 24, 24)), (0, 0.7, 0.7))
    y, shifts = rng.integers(4, size=100), rng.integers(-most_shift, most_shift + 1, (100, 2))
    moved = [np.rot90(np.roll(patterns[k], shift, (0, 1)), rng.integers(4)) for k, shift in zip(y, shifts, strict=True)]
    return np.stack(moved) / patterns.std() + noise * rng.standard_normal((100, 24, 24)), y


@pytest.mark.parametrize(("noise", "most_shift", "encoder"), [(0.1, 1, None), (2.0, 0, {"name": "pca"})])
def test_pictures_of_noise_have_the_principal_components_of_all_pixels(rng, noise, most_shift, encoder):
    X, y = turned_patterns(rng, noise, most_shift)
    groups = [Dihedral(mirror=False), Reflection()]
    found = discover(X, y, encoder=BySize(), groups=groups, refine=False)
    assert found.orbit.group.name == "dihedral"
    assert found.settings.get("encoder") == encoder
    assert ("encoder=pca, dihedral mirror=False helps" in found.sentence) == (encoder is not None)
    assert isinstance(found.model()[0].encoder, PrincipalComponents) == (encoder is not None)
    given = discover(X, y, encoder=BySize(textures=False), groups=groups, refine=False)
    assert not any(trial.encoder for trial in given.trials)


def test_bright_pictures_of_noise_are_also_filled_with_their_mean(rng):
    X, y = turned_patterns(rng, 2.0)
    found = discover(X + 5, y, encoder=BySize(), groups=[Rotation()], refine=False)
    assert {trial.orbit.group.fill for trial in found.trials if trial.encoder} == {"zero", "mean"}
    assert found.settings["encoder"] == {"name": "pca"}


def test_shuffled_labels_have_no_group(rng):
    X, y = digits(orbit.RotatedDigits())
    found = discover(X, rng.permutation(y), groups=[Rotation(), Reflection(axis=0)])
    assert found.orbit.group is None
    assert found.settings == {"group": {"name": "identity"}}
    assert found.sentence.startswith("No group helps: of 3 choices none")


def test_numbers_that_no_order_changes_have_the_permutations(rng):
    X = rng.standard_normal((100, 5))
    found = discover(X, np.sort(X, axis=1)[:, -2:], refine=False)
    assert found.best.label == "permutation"
    assert "accuracy" not in found.table
    assert "points are right" not in found.sentence


def test_rows_of_symmetric_matrices_are_in_any_order(rng):
    sizes = np.sort(rng.gamma(2.0, size=(120, 6)))
    order = rng.permuted(np.tile(np.arange(6), (120, 1)), axis=1)
    X = sizes[:, :, None] * sizes[:, None, :] + np.eye(6) * sizes[:, :, None]
    X = np.stack([matrix[np.ix_(rows, rows)] for matrix, rows in zip(X, order, strict=True)])
    found = discover(X, sizes[:, 5] * sizes[:, 4] - sizes[:, 0], refine=False)
    assert {trial.orbit.group.name for trial in found.trials if trial.orbit.group} == {"permutation"}
    assert found.best.label.startswith("permutation mode=rows_columns, noisy_sort sigma=")


def test_clouds_have_an_invariant_encoder():
    data = orbit.Shapes(n_points=20, per_class=25).load(0)
    found = discover(data.X_train, data.y_train, refine=False)
    assert found.settings == {"group": {"name": "identity"}, "encoder": {"name": "point_pairs", "normals": True}}
    assert found.sentence.startswith(
        "encoder=point_pairs normals=True helps: the unexplained share of the variance of y, by leave-one-out, is"
    )
    assert found.orbit.group is None
    labels = [label.get_text() for label in found.plot().axes[0].get_yticklabels()]
    assert labels[0] == "encoder=point_pairs normals=True"
    assert "identity" in labels


def test_filled_clouds_are_compared_without_normals(rng):
    X, y = rng.standard_normal((150, 30, 3)), np.arange(150) % 2
    X[y == 1] /= np.linalg.norm(X[y == 1], axis=2, keepdims=True) ** 0.3
    found = discover(X, y, refine=False)
    assert found.settings["encoder"] == {"name": "point_pairs", "normals": False}


def test_rows_with_features_are_clouds_if_in_any_order(rng):
    X = rng.standard_normal((40, 30, 5))
    assert [encoder.normals for encoder in invariant_encoders(X)] == [True, False]
    X *= np.linspace(0.1, 1, 30)[:, None]
    assert not invariant_encoders(X)
    X[0, 20:] = 0
    assert invariant_encoders(X)


def test_errors_are_those_of_the_exact_averaged_kernel(rng):
    X = rng.standard_normal((40, 6))
    y = X[:, 0] * X[:, 5] + 0.3 * rng.standard_normal(40)
    trial = next(one for one in discover(X, y, groups=[Reflection(axis=0)]).trials if not one.is_identity)
    mirrored = Orbit(Reflection(axis=0))
    some = random_orbit_points(mirrored.fit(X), X, 2000, 0)
    kernel = Gaussian(trial.multiple * median_distance(some))
    gram = Exact(kernel, mirrored, precomputed=True).fit(X).transform(X)
    targets, _ = encoded_targets(y)
    predicted, _ = left_out(gram, targets)
    np.testing.assert_allclose(trial.errors, np.square(predicted - targets).sum(1), rtol=1e-3, atol=1e-4)


def test_results_are_repeatable(rng):
    X, y = waves(rng)
    state = np.random.get_state()[1].copy()
    one, two = (
        discover(X, y, max_points=50, groups=[Cyclic(axis=0), Permutation()]).table.drop(columns="seconds")
        for _ in range(2)
    )
    assert one.equals(two)
    assert (np.random.get_state()[1] == state).all()


def test_points_of_a_cluster_are_left_out_together(rng):
    clusters = np.repeat(np.arange(20), 4)
    X = (rng.standard_normal((20, 6)).repeat(4, axis=0) + 0.01 * rng.standard_normal((80, 6))).astype(np.float32)
    y = rng.integers(2, size=20).repeat(4)
    alone, together = (discover(X, y, clusters=each, groups=[]).identity.error for each in (None, clusters))
    assert alone < 0.1
    assert together > 0.8


def test_equal_points_are_a_cluster(rng):
    X, y = rng.standard_normal((20, 3)).repeat(2, axis=0), rng.integers(2, size=20).repeat(2)
    assert discover(X, y, groups=[]).identity.error > 0.8


def test_too_few_points_are_refused(rng):
    with pytest.raises(InputError, match="X: expected at least 3 different clusters, found 2"):
        discover(rng.standard_normal((30, 4)), rng.random(30), clusters=np.arange(30) % 2)
    with pytest.raises(InputError, match="X: expected at least 10 points, found 9"):
        discover(rng.standard_normal((9, 4)), rng.random(9), clusters=np.arange(9) % 3)
    with pytest.raises(InputError, match="X: expected at least 10 different points, found 2"):
        discover(np.repeat(rng.standard_normal((2, 4)), 15, axis=0), rng.random(30))


def test_an_orbit_can_be_moved_further_or_less_far():
    orbits = candidates(np.zeros((1, 8, 8)), [orbit.SmallMoves(), Rotation(), orbit.Affine(), orbit.Dihedral()])
    labels = [repr(one.group) if one.distribution is None else repr(one.distribution) for one in orbits]
    assert labels[:5] == [
        "SmallMoves()",
        "SmallMoves(angle=7.5, shift=1.0, scale=0.05)",
        "SmallMoves(angle=30.0, shift=4.0, scale=0.2)",
        "Rotation()",
        "Uniform(low=-1.5707963267948966, high=1.5707963267948966, unit='native')",
    ]
    assert labels[-1] == "Dihedral()"


@pytest.mark.parametrize("shape", [(32,), (8, 8), (8, 8, 3), (8, 8, 8), (10, 3)])
def test_all_candidates_act_on_the_points(rng, shape):
    X = rng.standard_normal((2, *shape))
    for each in candidates(X):
        assert each.fit(X).weights_.sum() == pytest.approx(1)


def test_the_figure_has_a_bar_for_each_group_and_a_moved_point(rng):
    found = discover(*waves(rng), groups=[Cyclic(axis=0), Reflection(axis=0)])
    bars, moved = found.plot().axes[:2]
    assert bars.get_yticklabels()[0].get_text().split(",")[0] == "cyclic axis=0"
    assert len(bars.patches) == 3
    assert moved.get_title().startswith("cyclic")


def test_encoders_of_series_are_compared_before_groups(rng):
    y = rng.integers(2, size=40)
    level, time = 3 * rng.normal(size=(40, 1)), np.arange(80)
    X = level + np.sin(time / (4 + y[:, None]) + rng.uniform(0, 6, (40, 1))) + 0.3 * rng.normal(size=(40, 80))
    found = discover(X, y, encoder=BySize(axes=1), groups=[Reflection(axis=0)], refine=False)
    alone = [trial for trial in found.trials if trial.orbit.group is None]
    errors = {repr(trial.encoder or found.encoder): trial.error for trial in alone}
    # with and without differences, samples and slopes, and the better patches with quantiles
    assert len(errors) == len(alone) == 6
    assert found.identity.error == min(error for name, error in errors.items() if "values" not in name)
    averaged = Orbit(Reflection(axis=0))
    (trial,) = sampled(X, y, None, None, found.encoder, 500, 0).trials([(averaged, None)], found.identity.multiple)
    assert trial.error == next(each.error for each in found.trials if each.orbit.group is not None)


def test_the_model_has_the_best_orbit_and_the_encoder(rng):
    data = Digits(n_train=100).load(0)
    found = discover(
        data.X_train, data.y_train, encoder=orbit.encoders.Gradients(), groups=[Rotation(), Translation()], refine=False
    )
    features, learner = (part for _, part in found.model(n_components=50, random_state=3).steps)
    assert (features.n_components, features.random_state) == (50, 3)
    assert isinstance(features.encoder, orbit.encoders.Gradients)
    assert type(features.orbit.group) is type(found.best.orbit.group)
    assert isinstance(learner, RidgeClassifier)
    assert found.model(50).fit(data.X_train, data.y_train).score(data.X_test, data.y_test) > 0.8


@pytest.mark.parametrize(("of_values", "is_simple"), [(0.055, False), (0.08, True)])
def test_an_error_lower_by_a_third_needs_no_test(of_values, is_simple, rng):
    X, y = rng.standard_normal((12, 3)), np.arange(12) % 2
    points = sampled(X, y, None, None, None, 500, 0)
    noise = np.where(np.arange(12) % 2, 0.02, 1.98)  # pairs of opposite errors, so that no test finds a difference
    trials = [
        Trial(Orbit(), errors, None, 1.0, 0.0, encoder)
        for errors, encoder in (
            (0.2 * noise, None),
            (of_values * noise[::-1], BySize(values="beside")),
            (0.1 * noise, BySize()),
        )
    ]
    assert points.p_value(trials[1], trials[2]) > 0.05
    ranked = sorted(points.tested(trials), key=lambda trial: trial.error)
    assert (simplest(ranked).encoder is trials[2].encoder) == is_simple


def test_the_model_of_numbers_is_a_regression(rng):
    X = rng.normal(size=(40, 3))
    found = discover(X, X @ [1.0, 2.0, 3.0], groups=[], refine=False)
    assert found.model(30).fit(X, X @ [1.0, 2.0, 3.0]).score(X, X @ [1.0, 2.0, 3.0]) > 0.99


@pytest.mark.parametrize(
    ("of_simple", "of_values", "is_simple"), [(0.104, 0.1, True), (0.11, 0.1, False), (0.1, 0.11, True)], ids=str
)
def test_a_more_complex_encoder_must_be_clearly_better(of_simple, of_values, is_simple, rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    points = sampled(X, y, None, None, None, 500, 0)
    simple, other = BySize(), BySize(values="beside")
    noise = rng.uniform(0.99, 1.01, 60)
    trials = [
        Trial(Orbit(), error * noise, None, 1.0, 0.0, encoder)
        for error, encoder in ((0.2, None), (of_values, other), (of_simple, simple))
    ]
    ranked = sorted(points.tested(trials), key=lambda trial: trial.error)
    assert (simplest(ranked).encoder is simple) == is_simple
    assert (Discovery(ranked, X[:1], BySize()).best.encoder is simple) == is_simple


def test_the_error_of_another_encoder_stands_beside_that_of_the_best_group():
    def trial(error, group=None, encoder=None, p=1.0):
        return Trial(Orbit(group), np.full(20, error), None, 1.0, 0.0, encoder, p)

    trials = [trial(0.4, Rotation(), p=1e-6), trial(0.6, encoder=BySize(textures=True)), trial(0.9)]
    found = Discovery(trials, np.zeros((1, 48, 48)), BySize(textures=False), True)
    assert found.sentence.endswith("0.9 without (p 1e-06); 0.6 with encoder=by_size textures=True in its place.")
    assert Discovery(trials[::2], found.example, found.encoder).sentence.endswith("0.9 without (p 1e-06).")
