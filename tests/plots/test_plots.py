"""Content of figures."""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from matplotlib.text import Text

from orbit import Identity, Orbit, ProductGroup, Reflection, Rotation, VonMises, plots
from orbit.kernels.skeletons import stack
from orbit.learners.base import Curve
from orbit.plots.axes import Sample, draw_samples, plain
from orbit.testing.samples import smooth_images
from papers.measures.locality import locality
from runners.measure import figures


@pytest.fixture
def draw():
    """Draw a figure, which is when matplotlib raises errors and warnings; whole runs write files of figures."""

    def rendered(figure):
        FigureCanvasAgg(figure).draw()  # savefig lays out twice, and compresses
        return figure

    return rendered


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_orbit_examples(rng, draw):
    X = smooth_images(rng, 2, 12, 12)
    orb = Orbit(Rotation(), VonMises(0.5), size=6).fit(X)
    (ax,) = draw(plots.orbit_examples(orb, X, n_elements=4)).axes
    assert len(ax.images) == 2 * 4
    titles, weights = texts(ax)[:4], texts(ax)[4:]
    angle = np.radians(float(titles[0].removesuffix("°")))
    np.testing.assert_allclose(np.array(ax.images[0].get_array()), Rotation().act([angle], X)[0, 0], atol=0.02)
    assert len(set(titles)) == 4
    assert len(weights) == 4
    assert all(weight.startswith("w=0.") for weight in weights)


def test_equal_weights_stand_in_the_title_and_so_does_the_slice_of_volumes(rng, draw):
    X = rng.random((2, 9, 10, 11))
    (ax,) = draw(plots.orbit_examples(Orbit(Reflection()).fit(X), X)).axes
    assert ax.get_title().endswith("each w=0.5, slice 5 of 9 in depth")
    assert not [text for text in texts(ax) if "w=" in text]
    np.testing.assert_array_equal(ax.images[2].get_array(), X[1, 4])


@pytest.mark.parametrize("ink", [False, True])
def test_dark_is_dark_unless_the_data_are_ink(rng, draw, ink):
    y = np.array([f"smooth muscle, {'transversal' if i % 2 else 'haemorrhagic'} section {i}" for i in range(20)])
    figure = draw(plots.error_examples(rng.random((20, 8, 8)), y, np.roll(y, 1), "classification", ink))
    (ax,) = figure.axes
    assert {image.get_cmap().name for image in ax.images} == {"gray_r" if ink else "gray"}
    assert not overlap(ax.texts[:6])
    assert texts(ax)[0].splitlines() == ["smooth …ction 0", "→ smooth …tion 19"]


def test_errors_of_all_classes_are_shown_also_of_sorted_data(rng, draw):
    y = np.repeat(["ant", "bee", "cat"], [40, 20, 1])
    (ax,) = draw(plots.error_examples(rng.random((61, 8, 8)), y, np.full(61, "dog"), "classification")).axes
    assert [text.split()[0] for text in texts(ax)[:5]] == ["ant", "bee", "cat", "ant", "bee"]


def test_series_with_channels_are_lines(rng, draw):
    X = rng.random((1, 40, 3))
    (ax,) = draw(plots.orbit_examples(Orbit(Identity()).fit(X), X)).axes
    assert len(ax.child_axes[0].lines) == 3


def test_clouds_are_points_without_their_features_and_padding(rng, draw):
    X, y = rng.standard_normal((6, 40, 4)), np.array(["cat", "dog"] * 3)
    X[:, 30:] = 0
    for figure in (
        plots.error_examples(X, y, np.roll(y, 1), "classification", shown_as="cloud"),
        plots.orbit_examples(Orbit(Identity()).fit(X), X, shown_as="cloud"),
    ):
        (ax,) = draw(figure).axes
        for panel in ax.child_axes:
            (points,) = panel.collections
            assert len(points.get_offsets()) == 30
            assert not panel.lines
        (x, z) = np.sort(ax.child_axes[0].collections[0].get_offsets().data.T)
        i = next(i for i in range(6) if np.allclose(np.sort(X[i, :30, 0]), x))
        np.testing.assert_allclose(np.sort(X[i, :30, 1]), z)


def test_channels_of_a_series_are_lines(rng, draw):
    X, y = rng.random((6, 40, 9)), np.array(["cat", "dog"] * 3)
    for figure in (
        plots.error_examples(X, y, np.roll(y, 1), "classification", shown_as="series"),
        plots.orbit_examples(Orbit(Identity()).fit(X), X, shown_as="series"),
    ):
        (ax,) = draw(figure).axes
        assert not ax.images
        assert [len(panel.lines) for panel in ax.child_axes] == [9] * 6
    assert draw(plots.error_examples(X, y, np.roll(y, 1), "classification")).axes[0].images


def test_orbit_examples_without_a_group_name_neither_weights_nor_elements(rng, draw):
    (ax,) = draw(plots.orbit_examples(Orbit(Identity()).fit(X := rng.random((2, 8, 8))), X)).axes
    assert ax.get_title() == "identity"
    assert not [text.get_text() for text in ax.texts if text.get_text()]


@pytest.mark.parametrize(
    "group", [Rotation(vectors=True), ProductGroup([Rotation(vectors=True)])], ids=["one", "product"]
)
def test_vectors_that_turn_with_their_images_are_arrows(rng, draw, group):
    X = rng.random((1, 24, 16, 2))
    orb = Orbit(group, size=1).fit(X)
    (ax,) = draw(plots.orbit_examples(orb, X)).axes
    (arrows,) = [each for each in ax.child_axes[0].collections if isinstance(each, Quiver)]
    at = tuple(arrows.XY[:, ::-1].astype(int).T)  # row and column of each
    np.testing.assert_array_equal(np.stack([arrows.U, arrows.V], 1), group.act(orb.elements_, X)[0, 0][at])
    assert len(arrows.U) == 8 * 5


def test_orbit_examples_of_one_element(rng, draw):
    X = smooth_images(rng, 1, 8, 8)
    assert len(draw(plots.orbit_examples(Orbit(Rotation(), size=1).fit(X), X)).axes[0].images) == 1


def test_samples_and_their_texts_do_not_overlap(rng):
    samples = [Sample(rng.random((5, 5)), rng.random((5, 5)), "a\nb", "c") for _ in range(8)]
    ax = Figure(figsize=(6, 5), layout="constrained").subplots()
    draw_samples(ax, samples, 3)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    parts = [*ax.images, *ax.texts]
    boxes = [part.get_window_extent(canvas.get_renderer()).padded(-0.5) for part in parts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert all(ax.get_window_extent().padded(0.5).containsx(box.x0) for box in boxes)
    assert all(ax.get_window_extent().padded(0.5).containsy(edge) for box in boxes for edge in (box.y0, box.y1))


@pytest.mark.parametrize(
    ("shape", "aspect"), [((20, 28), 28 / 20), ((9, 4, 3), 4 / 9), ((10, 12, 18), 1.5), ((2, 60), 4)]
)
def test_images_keep_their_proportions(rng, shape, aspect):
    ax = Figure().subplots()
    draw_samples(ax, [Sample(x, x) for x in rng.random((2, *shape))], 2)
    for image in ax.images:
        left, right, bottom, top = image.get_extent()
        assert (right - left) / (top - bottom) == pytest.approx(aspect)


def test_the_first_coordinate_of_patches_is_drawn(rng, draw):
    X = rng.random((1, 6, 6, 10))
    figure = draw(plots.orbit_examples(Orbit(Reflection()).fit(X), X))
    shown = [np.array(image.get_array()) for image in figure.axes[0].images]
    np.testing.assert_array_equal(shown, [X[0, :, :, 0], X[0, :, ::-1, 0]])


@pytest.mark.parametrize("classes", [["a", "b"], list(range(10)), list(range(30))], ids=len)
def test_confusion(rng, draw, classes):
    y = rng.choice(classes, 200)
    predicted = np.where(rng.random(200) < 0.8, y, rng.choice(classes, 200))
    figure = draw(plots.confusion(y, predicted))
    shares = np.array(figure.axes[0].images[0].get_array())
    assert shares.shape == (len(classes), len(classes))
    np.testing.assert_allclose(shares.sum(1), 1)
    assert figure.axes[0].get_title() == f"accuracy {np.mean(y == predicted):.2%}"


def overlap(labels) -> bool:
    """Whether any two texts beside each other, or below each other, overlap."""
    boxes = [label.get_window_extent() for label in labels]
    return any(first.overlaps(second) for first, second in itertools.pairwise(boxes))


@pytest.mark.parametrize("n", [3, 8, 20, 45])
def test_long_names_of_classes_are_told_apart_and_do_not_overlap(draw, n):
    y = np.array([f"a species with a long name, number {i:02}" for i in range(n)])
    ax = draw(plots.confusion(y, np.roll(y, 1))).axes[0]
    for axis in (ax.xaxis, ax.yaxis):
        names = [label.get_text() for label in axis.get_ticklabels()]
        assert min(n, 15) <= len(set(names)) <= 20
        assert [name[-2:] for name in names] == [f"{i:02}" for i in axis.get_ticklocs()]
        assert not overlap(axis.get_ticklabels())


def test_long_names_of_columns_are_told_apart(draw):
    names = [f"a long name of a column with its unit [mm], number {i}" for i in range(9)]
    ax = draw(figures.importance(names, np.ones((9, 2)), "decrease of accuracy")).axes[0]
    assert len({label.get_text() for label in ax.get_yticklabels()}) == 9
    rows = {name: np.arange(5.0) for name in names[:8]}
    ax = draw(figures.error_rows(rows, np.arange(5.0), np.ones(5), "regression")).axes[0]
    (table,) = ax.tables
    assert len({cell.get_text().get_text() for (i, _), cell in table.get_celld().items() if i == 0}) == 8 + 2


def test_confusion_includes_classes_that_are_only_predicted(draw):
    figure = draw(plots.confusion(np.array([0, 0, 1]), np.array([0, 2, 1])))
    assert np.array(figure.axes[0].images[0].get_array()).shape == (3, 3)


def curve(scores: np.ndarray, chosen: float, criterion: str) -> Curve:
    return Curve("regularization", np.array([0.01, 0.1, 1.0]), scores, chosen, criterion)


@pytest.mark.parametrize("sign", [1, -1], ids=["accuracy", "error"])
def test_selection_curve(draw, sign):
    scores = sign * np.array([0.5, 0.9, 0.7])
    ax = draw(plots.selection_curve(curve(scores, 0.1, "hold_out"))).axes[0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.abs(scores))
    assert ax.get_ylabel() == f"hold-out {'accuracy' if sign > 0 else 'error'}"


def test_the_axis_of_a_selection_curve_names_its_score(draw):
    scores = np.array([-0.5, -0.7, -0.6])
    for criterion, label in (("k_fold_log_loss", "k-fold log loss"), ("gcv", "gcv error")):
        assert draw(plots.selection_curve(curve(scores, 0.1, criterion))).axes[0].get_ylabel() == label


def test_selection_curve_omits_values_without_a_score(draw):
    scores = np.array([-np.inf, -2.0, -1.0])
    ax = draw(plots.selection_curve(curve(scores, 1.0, "gcv"))).axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0.1, 1.0])


def test_predicted_against_true(rng, draw):
    y = rng.random((20, 2))
    axes = draw(plots.predicted_against_true(y, y + [0.1, 0.2], ["width", "height"])).axes
    assert [ax.get_title() for ax in axes] == ["width", "height"]
    for ax, difference in zip(axes, [0.1, 0.2], strict=True):
        np.testing.assert_allclose(ax.lines[0].get_ydata() - ax.lines[0].get_xdata(), difference)
    (single,) = draw(plots.predicted_against_true(y[:, 0], y[:, 0])).axes
    assert single.get_title() == ""


def test_labels_of_long_numbers_do_not_overlap(draw):
    y = np.linspace(-2200, -700, 50)
    (ax,) = draw(plots.predicted_against_true(y, y)).axes
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_predicted_against_true_of_many_targets_is_a_grid_of_the_first(rng):
    y = rng.random((4, 13))
    figure = plots.predicted_against_true(y, y)
    assert [ax.get_title() for ax in figure.axes] == [str(k) for k in range(12)]
    assert figure.get_suptitle() == "the first 12 of 13 targets"
    axes = plots.predicted_against_true(y[:, :5], y[:, :5]).axes
    assert (len(axes), axes[0].get_gridspec().get_geometry()) == (5, (2, 4)), "two rows, the last not full"


def test_reliability(draw):
    probabilities = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 10)
    y = np.array(["a"] * 9 + ["b"] + ["b"] * 4 + ["a"] * 6)
    ax = draw(plots.reliability(y, probabilities, np.array(["a", "b"]))).axes[0]
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[0.7, 0.4], [0.9, 0.9]])
    assert ax.get_title() == "expected calibration error 15.0%"


def rows_of(figure) -> list[list[str]]:
    cells = figure.axes[0].tables[0].get_celld()
    height, width = (1 + max(place) for place in zip(*cells, strict=True))
    return [[cells[i, j].get_text().get_text() for j in range(width)] for i in range(height)]


def test_error_rows_are_the_largest_residuals_with_their_columns(draw):
    columns = {"width": np.arange(40.0), "kind": np.array(["owl"] * 39 + ["cat"])}
    y = np.arange(40.0)
    predicted = y + np.where(y == 39, 5.0, np.where(y == 20, -3.0, 0.1))
    figure = draw(figures.error_rows(columns, y, predicted, "regression", ["price"], rows=100 + np.arange(40)))
    found = rows_of(figure)
    assert found[0] == ["row", "price\ntrue → predicted", "width", "kind"]
    assert found[1:3] == [["139", "39 → 44", "39", "cat"], ["120", "20 → 17", "20", "owl"]]
    assert len(found) == 16
    opacity = {place: cell.get_facecolor()[3] for place, cell in figure.axes[0].tables[0].get_celld().items()}
    assert opacity[1, 3] > 0.6, "the only cat"
    assert opacity[1, 2] > 0.6, "the largest width"
    assert opacity[2, 2] < 0.01, "a width in the middle"


def test_error_rows_of_several_targets_are_in_units_of_their_deviations(rng, draw):
    y = rng.standard_normal((30, 2)) * [1e6, 1.0]
    predicted = y + np.where(np.arange(30) == 7, 3.0, 0.0)[:, None]
    found = rows_of(draw(figures.error_rows({"a": rng.random(30)}, y, predicted, "regression", ["large", "small"])))
    assert found[0][:3] == ["row", "large\ntrue → predicted", "small\ntrue → predicted"]
    assert found[1][0] == "7"


def test_error_rows_of_classes_are_the_errors(rng, draw):
    y = np.array(["a", "b", "a", "b"])
    columns = {f"x{j}": rng.random(4) for j in range(12)} | {"rare": np.array(["n", "n", "n", "y"])}
    figure = draw(figures.error_rows(columns, y, np.array(["a", "a", "a", "a"]), "classification", ["kind"]))
    found = rows_of(figure)
    assert [row[:2] for row in found[1:]] == [["1", "b → a"], ["3", "b → a"]]
    assert len(found[0]) == 2 + 8
    assert figure.axes[0].get_title() == "2 of 2 errors; 8 of 13 columns; dark: unusual values"
    assert figures.error_rows(columns, y, y, "classification") is None


def test_error_rows_takes_a_data_frame(draw):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": pd.Categorical(["x", "y", "x"]), "c": [True, False, True]})
    found = rows_of(draw(figures.error_rows(frame, np.zeros(3), np.arange(3.0), "regression")))
    assert found[1] == ["2", "0 → 2", "3", "x", "True"]
    assert found[2] == ["1", "0 → 1", "nan", "y", "False"]


def test_importance_is_sorted_and_cut(draw):
    values = np.arange(25.0)[:, None] + [[-1.0, 1.0]]
    ax = draw(figures.importance([f"x{j}" for j in range(25)], values, "accuracy")).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"x{j}" for j in range(24, 4, -1)]
    assert [bar.get_width() for bar in ax.patches] == list(range(24, 4, -1))
    assert ax.get_title() == "the largest 20 of 25 columns"


def test_orbit_examples_take_the_place_of_given_axes(rng, draw):
    X = smooth_images(rng, 2, 12, 12)
    orb = Orbit(Rotation(), VonMises(0.5), size=6).fit(X)
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert draw(plots.orbit_examples(orb, X, 3, ax=right)) is figure
    (alone,) = plots.orbit_examples(orb, X, 3).axes
    assert texts(right) == texts(alone)
    for ours, theirs in zip(right.images, alone.images, strict=True):
        np.testing.assert_array_equal(ours.get_array(), theirs.get_array())
    assert not left.images


def test_compared(draw):
    figure = draw(figures.compared({"rf": [1.0, 3.0], "nystrom": [2.0]}, "rmse", {"rf": 2.5}))
    assert [bar.get_width() for bar in figure.axes[0].patches] == [2.0, 2.0]
    rows = {(text.get_text(), text.get_color(), text.xy[1]) for text in figure.axes[0].texts}
    numbers = {("2", "k", 0), ("2", "k", 1), ("2.5", "C3", 0)}  # the published one under its heading
    assert rows == numbers | {("here", "C0", -0.85), ("published ◆", "C3", -0.85)}
    columns = {text.get_text(): text.get_position()[0] for text in figure.axes[0].texts}
    assert columns["2"] == columns["here"] < columns["2.5"] == columns["published ◆"]
    (diamond,) = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    np.testing.assert_allclose(diamond.get_xdata(), [2.5])
    draw(figures.compared({"rf": [1.0]}, "rmse"))


@pytest.mark.parametrize("n", [1, 20])
def test_bars_fill_their_axes_from_top_to_bottom(draw, n):
    names = [f"row {i}" for i in range(n)]
    drawn = (
        figures.compared({name: [1.0] for name in names}, "seconds", median=True),
        figures.importance(names, np.ones((n, 2)), "decrease of accuracy"),
    )
    for figure in drawn:
        bottom, top = draw(figure).axes[0].get_ylim()
        assert -0.7 < top < -0.35
        assert n - 0.65 < bottom < n - 0.3


def test_compared_by_medians(draw):
    (ax,) = draw(figures.compared({"rf": [1.0, 2.0, 9.0], "nystrom": [2.0]}, "seconds", median=True)).axes
    assert [bar.get_width() for bar in ax.patches] == [2.0, 2.0]
    whiskers = [container.lines[2][0].get_segments()[0][:, 0].tolist() for container in ax.containers[1::2]]
    assert whiskers == [[1.0, 9.0], [2.0, 2.0]]
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [("2", 0), ("2", 1)]


def test_a_field_is_drawn_beside_its_prediction_and_error(rng, draw):
    points, truth = rng.uniform(-1, 1, (1000, 2)), rng.standard_normal((1000, 2))
    figure = plots.field(points, truth, truth + [0.3, 0.4], "test points")
    draw(figure)
    assert figure.get_suptitle() == "test points (324 of 1000)"
    arrows = [ax.collections[0] for ax in figure.axes]
    assert [ax.get_title().split()[0] for ax in figure.axes] == ["truth", "prediction", "error"]
    np.testing.assert_allclose(arrows[2].U, 0.3)
    np.testing.assert_allclose(arrows[1].V - arrows[0].V, 0.4)
    assert len({arrow.scale for arrow in arrows}) == 1, "one scale"
    assert "(" not in plots.field(points[:20], truth[:20], truth[:20], "a few").get_suptitle()


def test_agreement(draw):
    found = {"a": (0.1, 0.2), "b": (0.3, 0.4)}
    here, there = draw(figures.agreement(found, {"a": (0.5, 0.6)}, ("one", "two"), "title")).axes
    np.testing.assert_allclose(here.lines[0].get_xdata(), [0.1, 0.3])
    np.testing.assert_allclose(there.lines[0].get_ydata(), [0.6])
    assert [(text.get_text(), text.xy) for text in here.texts] == [("a", (0.1, 0.2)), ("b", (0.3, 0.4))]
    close = {f"conv{i}": (0.5, 0.5 + i / 1e4) for i in range(10)}
    ax, _ = draw(figures.agreement(close, close, ("one", "two"), "names side by side")).axes
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
    assert all(below.y1 < above.y0 for below, above in itertools.pairwise(boxes)), "names overlap"
    draw(figures.agreement(found, {}, ("one", "two"), "title"))


def test_epochs(draw):
    ax = draw(plots.epochs({"a": [0.1, 0.4, 0.5], "b": [0.2]})).axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3])
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_a_skeleton_has_all_its_arrows_or_those_along_one_path(draw):
    layers = [{"kind": "conv", "size": 2}, {"kind": "full"}]
    small, large = stack(layers, (3, 3, 1)), stack(layers, (20, 20, 1))
    arrows = lambda s: [t for t in draw(plots.skeleton(s, "numbers")).axes[0].texts if not t.get_text()]  # noqa: E731
    assert len(arrows(small)) == 4 * 4 + 4
    assert len(arrows(large)) == 4 + 19 * 19  # the output sees all patches, and one of them four inputs
    texts = [t.get_text() for t in draw(plots.skeleton(small, "numbers")).axes[0].texts if t.get_text()]
    assert texts == ["9 inputs: numbers", "conv 2×2, stride 1: relu, 2×2", "full: relu, 1×1"]


@pytest.mark.parametrize("n_curves", [1, 3, 9])
def test_convergence_shows_every_curve(draw, n_curves):
    x = np.array([8, 16, 32])
    curves = {f"method {i}": (x, np.array([1.0, 0.5, 0.25]) * (i + np.ones((3, 1)))) for i in range(n_curves)}
    figure = draw(plots.convergence(curves, "r", "error", "title", slopes=True))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"method {i} (slope -1.00)" for i in range(n_curves)]


def test_panels_give_slopes_or_one_legend(draw):
    n = np.array([1e3, 1e4, 1e5])
    curves = {"s": {"a": (n, n[None] / 1e3), "b": (n, n[None] ** 2)}, "MiB": {"a": (n, np.full((2, 3), 5.0))}}
    times, level = draw(plots.panels(curves, "points", linear=["MiB"], slopes=True)).axes
    assert [text.get_text() for text in times.get_legend().get_texts()] == ["a (slope 1.00)", "b (slope 2.00)"]
    assert (times.get_yscale(), level.get_yscale()) == ("log", "linear")
    figure = draw(plots.panels(curves, "points", "values"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert [[line.get_color() for line in ax.lines] for ax in figure.axes] == [["C0", "C1"], ["C0"]]


@pytest.mark.parametrize("x", [1000 * 2 ** np.arange(4), 100_000 * 2 ** np.arange(4), 2 ** np.arange(4, 20)], ids=str)
def test_labels_of_panels_do_not_touch(draw, x):
    figure = draw(plots.panels({"s": {"a": (x, x[None] / 1e3)}}, "points", n_columns=1))
    shown = [label for label in figure.axes[0].get_xticklabels(which="both") if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    assert len(boxes) >= 4
    assert all(left.x1 + 2 < right.x0 for left, right in itertools.pairwise(boxes))


def test_published_values_are_named_and_lie_where_they_belong(draw):
    line = {"a": (np.array([10, 100, 1000]), np.ones((2, 3)))}
    figure = draw(plots.curves(line, {}, "points", "accuracy", published={10: 0.9, 1000: 0.99}))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "published"]
    (mark,) = (drawn for drawn in figure.axes[0].lines if drawn.get_label() == "published")
    np.testing.assert_array_equal(np.stack(mark.get_data()), [[10, 1000], [0.9, 0.99]])
    assert figure.axes[0].get_xlabel() == "points"


def test_curves_of_unequal_lengths_share_all_their_ticks(draw):
    long, short = np.array([100, 300, 1000, 3000]), np.array([100, 300])
    ax = draw(plots.curves({"a": (long, np.ones((1, 4))), "b": (short, np.ones((1, 2)))}, {}, "n", "s")).axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["100", "300", "1000", "3000"]


#: What draws a figure with a text of the user wherever it may stand; the first ones take axes to draw into.
SINGLE_PANELS = {
    "confusion": lambda text, **ax: plots.confusion(np.array([text, "b"]), np.array([text, text]), **ax),
    "reliability": lambda text, **ax: plots.reliability(np.array([0]), np.array([[0.7, 0.3]]), np.arange(2), **ax),
    "predicted_against_true": lambda text, **ax: plots.predicted_against_true(*np.eye(2)[:, :, None], [text], **ax),
    "several targets": lambda text, **ax: plots.predicted_against_true(np.ones((2, 2)), np.eye(2), [text] * 2, **ax),
    "selection_curve": lambda text, **ax: plots.selection_curve(
        Curve(text, np.array([1.0, 2.0]), np.array([0.5, 0.6]), 1.0, text), **ax
    ),
    "orbit_error": lambda text, **ax: plots.orbit_error({text: np.ones((1, 2))}, [1, 2], text, **ax),
    "epochs": lambda text, **ax: plots.epochs({text: [0.1, 0.4]}, **ax),
    "convergence": lambda text, **ax: plots.convergence({text: (np.ones(1), np.ones((1, 1)))}, text, text, text, **ax),
    "curves": lambda text, **ax: plots.curves(
        {text: (np.array([text]), np.ones((1, 1)))}, {text: [1.0]}, text, text, **ax
    ),
    "skeleton": lambda text, **ax: plots.skeleton(stack([{"kind": "full"}], (2, 2, 1)), text, **ax),
}


@pytest.mark.parametrize("name", SINGLE_PANELS)
def test_single_panels_draw_into_given_axes(draw, name):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert draw(SINGLE_PANELS[name]("a", ax=right)) is figure
    assert right.has_data()
    assert not left.has_data()
    assert not figure.legends


WITH_TEXT = {
    name: draw for name, draw in SINGLE_PANELS.items() if name not in ("reliability", "predicted_against_true")
} | {
    "error_examples": lambda text: plots.error_examples(
        np.ones((2, 3, 3)), np.array([text, "b"]), np.array(["b", "b"]), "classification"
    ),
    "error_rows": lambda text: figures.error_rows({text: [text, "b"]}, np.ones(2), np.zeros(2), "regression", [text]),
    "importance": lambda text: figures.importance([text], np.ones((1, 2)), text),
    "compared": lambda text: figures.compared({text: [1.0]}, text, {text: 2.0}),
    "agreement": lambda text: figures.agreement({text: (0.1, 0.2)}, {}, (text, text), text),
    "field": lambda text: plots.field(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)), text),
    "locality": lambda text: locality({text: np.ones((1, 2, 2))}, [[0, 0]]),
    "grid of one": lambda text: figures.grid_scores([{text: text}], np.ones((1, 2)), text, 0),
    "grid of two": lambda text: figures.grid_scores([{text: text, "b": text}], np.ones((1, 2)), text, 0),
    "setting_effects": lambda text: figures.setting_effects({text: ([{text: text, "b": text}] * 2, [1.0, 2.0])}),
    "lines of settings": lambda text: figures.setting_effects(
        {text: ([{"a": "1", "b": b} for b in (text, "c")], [1.0, 2.0])}
    ),
    "search_progress": lambda text: figures.search_progress({0: 0.8}, {text: 0.9}, text),
    "panels": lambda text: plots.panels({text: {text: (np.ones(1), np.ones((1, 1)))}}, text, text),
    "panels with slopes": lambda text: plots.panels(
        {text: {text: (np.arange(1.0, 3.0), np.ones((1, 2)))}}, text, text, slopes=True
    ),
}


@pytest.mark.parametrize(
    ("name", "text"),
    [*((name, "$5 $x^$\udcff") for name in WITH_TEXT), *(("epochs", text) for text in ("$$", "cost_$_per_$"))],
)
def test_the_texts_of_a_user_are_no_formulas(draw, name, text):
    figure = draw(WITH_TEXT[name](text))
    cells = [cell.get_text() for ax in figure.axes for table in ax.tables for cell in table.get_celld().values()]
    drawn = [each.get_text() for each in (*figure.findobj(Text), *cells)]
    assert any(plain(text) in each for each in drawn)
    assert not any(is_math_text(each) for each in drawn if "mathdefault" not in each)  # ticks of logarithmic axes
