"""The base classes of feature maps: validation, seeds, fitting the orbit and the kernel, averaging.

To add an approximation, write two methods, ``_fit_map`` and ``_average``: see the example of
:class:`FeatureMap`. Those of this package are an :class:`AveragedMap`, with ``_embedding``
in place of ``_average``: the :class:`~orbit.engine.embedding.Embedding` that the engine
averages over the orbit.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor

from orbit.approx.column_lengthscales import choose_columns
from orbit.approx.evidence import MOST_COLUMNS, MOST_ROWS, EvidenceChoice, choose_by_evidence
from orbit.approx.scales import (
    ScaleChoice,
    choose_lengthscale,
    field_features,
    kernel_features,
    landmark_rows,
    sample_size,
)
from orbit.core.component import Estimator, check_with_parts, validated_points
from orbit.core.errors import InputError
from orbit.core.lru import Lru
from orbit.core.random import RandomState, generator, spawn
from orbit.core.tiled_matrix import TiledMatrix
from orbit.encoders import Encoder, NoEncoder
from orbit.engine import Engine, Route
from orbit.engine.embedding import Embedding, Encode, ProjectedEmbedding, flatten, nbytes
from orbit.engine.spectral import SpectralPlan
from orbit.engine.strategy import Task
from orbit.groups import Identity
from orbit.kernels import Gaussian, Kernel
from orbit.kernels.operator_valued import FieldKernel
from orbit.orbits import Orbit, random_orbit_points
from orbit.solvers.left_out import are_classes
from orbit.solvers.structure import GramStructure, Structure, StructuredFeatures

# Moved points to which an encoder, and the kernel of its vectors, are fitted; fewer large ones, of at most so many
# numbers together, 256 MiB in float32, but so many points at least. Few points are moved several times each.
_ENCODER_POINTS, _ENCODER_COPIES, _ENCODER_NUMBERS, _FEWEST_ENCODER_POINTS = 2000, 16, 2**26, 256


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base class of the feature maps psi with ``<psi(x), psi(z)>`` close to ``k_{q,G}(x, z)`` (Raj et al. 2017, eq. 3).

    To add one, write these two methods: ``_fit_map``, which draws frequencies, landmarks or templates once orbit and
    kernel are fitted, and ``_average``, which gives psi(x). The example holds all moved points in memory; in place of
    ``_average``, an :class:`AveragedMap` writes ``_embedding``, which the engine averages in tiles.

    Attributes that begin with ``_cached`` do not change features.

    Attributes
    ----------
    operator_valued : bool
        Whether the features include the structure of an operator-valued kernel.
    equivariant : bool
        Whether the group acts on outputs as it does on points.
    default_kernel : subclass of Kernel
        The kernel, with its defaults, if none is given.
    implied_kernel : method without arguments, or None
        The kernel that the features approximate, from the map's parameters; None where the kernel is a choice.
    encoder : Encoder or None
        Maps moved points to the vectors that the kernel takes; None, as in maps without encoders, takes the points
        themselves.
    chosen_scale_ : ScaleChoice, EvidenceChoice or None
        The choice of a lengthscale that is ``auto``; None if nothing was chosen.
    structure_ : Structure, GramStructure or None
        What :meth:`transform` attaches to the features; None for plain ones.

    Examples
    --------
    >>> import orbit
    >>> class Landmarks(FeatureMap):
    ...     kind, name = "approx", "my_landmarks"
    ...
    ...     def __init__(self, kernel=None, orbit=None, n_components=10, engine=None, random_state=None):
    ...         self.kernel, self.orbit, self.n_components = kernel, orbit, n_components
    ...         self.engine, self.random_state = engine, random_state
    ...
    ...     def _fit_map(self, X, random_state):
    ...         rows = np.random.default_rng(random_state).choice(len(X), self.n_components, replace=False)
    ...         self.landmarks_ = X[rows].reshape(self.n_components, -1)
    ...         values, vectors = np.linalg.eigh(self.kernel_.gram(self.landmarks_))
    ...         self.root_ = vectors / np.sqrt(values)
    ...         self._n_features_out = self.n_components
    ...
    ...     def _average(self, X):
    ...         orbit, d = self.orbit_, self.landmarks_.shape[1]
    ...         moved = orbit.group_.act(orbit.elements_, X).reshape(-1, d)  # (r n, d)
    ...         K = self.kernel_.gram(moved, self.landmarks_).reshape(-1, len(X), self.n_components)
    ...         return np.tensordot(orbit.weights_, K, axes=1) @ self.root_
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> orb = orbit.Orbit(orbit.Rotation(), size=16)
    >>> mine, nystrom = (cls(orbit=orb, n_components=20).fit_transform(X) for cls in (Landmarks, orbit.Nystrom))
    >>> bool(np.allclose(mine @ mine.T, nystrom @ nystrom.T))
    True
    """

    operator_valued: ClassVar[bool] = False
    equivariant: bool = False
    default_kernel: ClassVar[type[Kernel]] = Gaussian
    implied_kernel: ClassVar[Callable[[Any], Kernel] | None] = None
    kernel: Kernel | None
    encoder: Encoder | None = None
    chosen_scale_: ScaleChoice | EvidenceChoice | None = None
    structure_: Structure | GramStructure | None = None
    orbit: Orbit | None
    engine: Engine | None
    random_state: RandomState

    def check(self) -> None:
        """Raise ``InputError`` for invalid parameters or incompatible components. Needs no data."""
        check_with_parts(self)
        if self.kernel is not None:
            dtype = (self.engine or Engine()).dtype
            self.kernel.check_precision(self._working_dtype(np.dtype("float64" if dtype == "auto" else dtype)))

    def fit(self, X, y=None, clusters=None):
        """Fit the orbit and the kernel, and draw the map's frequencies or landmarks.

        Parameters
        ----------
        X : array, shape (n, *shape)
            Points in their natural shape, e.g. ``(n, 28, 28)`` images; the group
            acts on them before they are flattened.
        y : array, shape (n,) or (n, k), or None
            Targets, by which a lengthscale that is ``auto`` is chosen; without them it is the median. Strings,
            booleans and integers of at most 100 values are class labels.
        clusters : array, shape (n,), or None
            Points of equal entries belong together, and are left out together in that choice.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For wrong parameters, a q that is not defined on the group, or a group
            that does not act on points of this shape.
        """
        X, map_seed = self._fit_parts(X, y, clusters)
        self._fit_map(X, map_seed)
        return self

    def label(self) -> str:
        """Name of a fitted map in error messages, e.g. ``approx=nystrom, kernel=laplacian``."""
        parts = [self.kernel_] if self.implied_kernel is None else []
        parts += [] if self.encoder_.is_identity else [self.encoder_]
        return ", ".join([f"{self.kind}={self.name}", *(part.label() for part in parts)])

    def metrics(self) -> dict[str, float]:
        """Fitted values for the record of a run, by flat names such as ``kernel/lengthscale``."""
        check_is_fitted(self)
        metrics = self.orbit_.metrics() | self.kernel_.metrics() | self.encoder_.metrics()
        return metrics | (self.route_.metrics() if self.route_ is not None else {})

    @property
    def route_(self) -> Route | None:
        """How the latest average over the orbit was computed; None before the first."""
        return self._cached_routes[-1] if self._cached_routes else None

    @route_.setter
    def route_(self, route: Route | None) -> None:
        self._cached_routes.append(route)

    def part_of(self) -> tuple[FeatureMap, float] | None:
        """A fitted map of whose features the first columns, times a factor, are those of this one; None if none is."""
        return None

    def min_fit_points(self, n: int) -> int:
        """Minimum size of a sample of ``n`` points to which :meth:`fit` should be applied.

        0 for maps that only estimate scales from the sample.
        """
        return 0

    @property
    def gives_gram(self) -> bool:
        """Whether the features are kernel values with the training points."""
        return False

    def gives_tiles(self, n: int, dtype: np.dtype) -> bool:
        """Whether the features of the ``n`` training points are a matrix in tiles, which takes no memory."""
        return False

    @property
    def uses_targets(self) -> bool:
        """Whether :meth:`fit` depends on targets, because the lengthscale is ``auto``."""
        return self._parts()[1].lengthscale_rule is not None

    def n_columns(self, n: int, d: int) -> int:
        """Columns of the features of ``n`` training points of ``d`` numbers, from parameters alone.

        0 if they are known only after :meth:`fit`, as where the rank of a kernel matrix decides.
        """
        return 0

    def fit_bytes(self, n: int, d: int) -> int:
        """Bytes that :meth:`fit` takes at least, besides its points, as known from parameters alone."""
        return 0

    def features_dtype(self, n: int, dtype: np.dtype) -> np.dtype:
        """The precision of the features of a map fitted to ``n`` points, for an engine's ``dtype``."""
        return dtype

    def _working_dtype(self, dtype: np.dtype) -> np.dtype:
        """The precision in which features of points of ``dtype`` are computed."""
        return dtype

    def get_feature_names_out(self, input_features=None):
        """Names such as ``nystrom0``; the entries of points of several axes have none."""
        check_is_fitted(self)
        return super().get_feature_names_out(input_features if len(self.shape_in_) == 1 else None)

    def _fit_parts(self, X, y=None, clusters=None) -> tuple[np.ndarray, int]:
        """Validate the points and fit the orbit and the kernel. Returns the points, and a seed for the map."""
        self.check()
        X = self._validate(X, reset=True)
        check_consistent_length(X, y, clusters)
        orbit, kernel, self.engine_ = self._parts()
        orbit_seed, kernel_seed, map_seed, encoder_seed = spawn(self.random_state, 4)
        self.orbit_ = clone(orbit)
        if self.orbit_.random_state is None:
            self.orbit_.random_state = orbit_seed
        self.orbit_.fit(X)
        self.kernel_ = clone(kernel).fit(self._fit_encoder(X, encoder_seed), kernel_seed)
        self.shape_in_ = X.shape[1:]
        self.chosen_scale_ = None if y is None else self._choose_lengthscale(X, y, clusters, kernel_seed)
        self._cached_routes = deque[Route | None](maxlen=1)
        return X, map_seed

    def _choose_lengthscale(
        self, X: np.ndarray, y: Any, clusters: Any, seed: int
    ) -> ScaleChoice | EvidenceChoice | None:
        """Set the lengthscale of ``kernel_`` to that of the smallest leave-one-out error or the largest evidence.

        Each column of a table gets its own where that has clearly fewer errors. None for a lengthscale that is given,
        and the median for classes with most encoders.
        """
        rule, y = self.kernel_.lengthscale_rule, np.asarray(y)
        y = y[:, 0] if y.shape[1:] == (1,) else y  # a column is read as learners read it
        if rule is None or (rule == "auto" and not self.encoder_.is_linear and are_classes(y)):
            return None
        engine = clone(self.engine_).set_params(path="auto", progress=False)
        if rule != "auto" and self._has_simple_gram(rule):
            return self._choose_by_evidence(rule, engine, X, y, seed)
        sizes = (X[0].size,) if self.encoder_.is_identity else (self.encoder_.n_outputs_, X[0].size)
        orbit_size = len(self.orbit_.weights_)
        n = sample_size(len(X), orbit_size, *sizes)
        rows = np.sort(generator(seed).choice(len(X), n, replace=False))
        X, encode = self._encoded_points(X)
        points, targets = X[rows], y[rows]
        clusters = None if clusters is None else np.asarray(clusters)[rows]
        moved = engine.orbit_points(self.orbit_, points, encode), self.orbit_.weights_
        if isinstance(self.kernel_, FieldKernel):
            features = field_features(self.kernel_, *moved)
        else:
            landmarks = engine.encoded(points[landmark_rows(n, orbit_size, sizes[0])], encode)
            features = kernel_features(self.kernel_, landmarks, *moved)
        choice = choose_lengthscale(self.kernel_, features, targets, clusters, by_evidence=rule != "auto")
        median, self.kernel_ = self.kernel_, self.kernel_.rescaled(choice.multiple)
        is_compared = rule == "auto" and not isinstance(self.kernel_, FieldKernel) and self._has_simple_gram(rule)
        if not (is_compared and self._each(rule, X)):
            return choice
        self.kernel_, of_columns = choose_columns(median, self.kernel_, moved[0][0], targets, clusters, seed)
        return of_columns or choice

    def _choose_by_evidence(
        self, rule: str, engine: Engine, X: np.ndarray, y: np.ndarray, seed: int
    ) -> EvidenceChoice | None:
        n = min(len(X), MOST_ROWS // (X[0].size if isinstance(self.kernel_, FieldKernel) else 1))
        rows = np.sort(generator(seed).choice(len(X), n, replace=False))
        moved = X[rows][None] if self.equivariant else engine.orbit_points(self.orbit_, X[rows], self.encode)
        points = moved[0].reshape(n, -1)
        self.kernel_, choice = choose_by_evidence(self.kernel_, points, y[rows], self._each(rule, X))
        return choice

    def _has_simple_gram(self, rule: str) -> bool:
        """Whether the kernel matrix is a function of distances of points, each moved by one element or none.

        That of an equivariant map is taken without the group, which moves the outputs too.

        Raises
        ------
        InputError
            If it is not, and each column should get a lengthscale.
        """
        is_simple = (self.equivariant or len(self.orbit_.weights_) == 1) and self.kernel_.has_profile
        if rule == "ard" and not (is_simple and len(self.orbit_.weights_) == 1):
            raise InputError(
                f"kernel.lengthscale=ard needs group=identity and a kernel with a lengthscale and a derivative, found "
                f"{self.orbit_.group_.label()} and {self.kernel_.label()}: choose kernel.lengthscale=evidence"
            )
        return is_simple

    def _each(self, rule: str, X: np.ndarray) -> bool:
        """Whether each column gets a lengthscale."""
        is_table = self.encoder_.is_identity and X.ndim == 2 and X.shape[1] <= MOST_COLUMNS
        return rule == "ard" or (is_table and X.shape[1] > 1 and not self.equivariant)

    def _fit_encoder(self, X: np.ndarray, seed: int) -> np.ndarray:
        """Fit the encoder to moved points; returns the vectors to which the kernel is fitted.

        The elements are drawn from q, independent of the rule and size of the orbit, so
        that maps that differ only in those have the same kernel.
        """
        self.encoder_ = clone(self.encoder or NoEncoder()).for_shape(X.shape[1:])
        self._cached_vectors = Lru[str, np.ndarray](self.engine_.workspace().cached_bytes, most=1)
        if self.encoder_.is_identity:
            self.encoder_.fit(X[:1])
            return X
        if isinstance(self.orbit_.group_, Identity) and len(X) <= _ENCODER_POINTS:
            self.encoder_.fit(X, seed)
            return self._cached_vectors.get(joblib.hash(X), lambda: self.engine_.encoded(X, self.encode))
        size = min(_ENCODER_POINTS, max(_FEWEST_ENCODER_POINTS, _ENCODER_NUMBERS // X[0].size))
        affordable = min(size // len(X), _ENCODER_NUMBERS // X.size)
        copies = max(1, min(affordable, self.orbit_.group_.order or _ENCODER_COPIES, _ENCODER_COPIES))
        copies = 1 if self.encoder_.is_fitted else copies
        seeds = [seed, *spawn(seed, copies - 1)]
        moved = [random_orbit_points(self.orbit_, X, size, each) for each in seeds]
        points = np.concatenate(moved) if copies > 1 else moved[0]
        self.encoder_.fit(points, seed)
        return self.engine_.encoded(points, self.encode)

    def _encoded_points(self, X: np.ndarray) -> tuple[np.ndarray, Encode]:
        """Points and what encodes them: their vectors, and nothing, if :meth:`fit` has encoded all of them."""
        vectors = self._cached_vectors.find(joblib.hash(X)) if self._cached_vectors.nbytes else None
        return (X, self.encode) if vectors is None else (vectors, flatten)

    @property
    def encode(self) -> Encode:
        """The function from moved points, a tensor (n, *shape), to the vectors that the kernel takes, (n, d)."""
        return flatten if self.encoder_.is_identity else self.encoder_.encode

    def transform(self, X):
        """psi(x), averaged over the orbit.

        Parameters
        ----------
        X : array, shape (n, *shape)

        Returns
        -------
        array or StructuredFeatures, shape (n, n_outputs), float32 or float64 (see ``Engine.dtype``)
        """
        check_is_fitted(self)
        features = self._average(self._validate(X, reset=False))
        # no kernel value is larger than those of points with themselves
        examined = features.diagonal if isinstance(features, TiledMatrix) else features
        self.kernel_.check_finite(examined, "features")
        return features if self.structure_ is None else StructuredFeatures(features, self.structure_)

    def transform_on_device(self, X) -> Any:
        """:meth:`transform` with features on the engine's device, for a learner that computes there.

        Parameters
        ----------
        X : array, shape (n, *shape)

        Returns
        -------
        tensor, or StructuredFeatures of one, shape (n, n_outputs), float32 or float64

        Raises
        ------
        InputError
            If features are NaN or infinite.
        """
        check_is_fitted(self)
        features = self._average_on_device(self._validate(X, reset=False))
        if not bool(features.sum().isfinite()):
            self.kernel_.check_finite(features.cpu().numpy(), "features")
        return features if self.structure_ is None else StructuredFeatures(features, self.structure_)

    def _average_on_device(self, X: np.ndarray) -> Tensor:
        """:meth:`_average` as a tensor on the engine's device: a copy, unless a map can compute it there."""
        features = self._average(X)
        return self.engine_.tensor(features, features.dtype)

    @abstractmethod
    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        """Draw frequencies, landmarks or templates and set ``_n_features_out``, after fitting orbit and kernel."""

    @abstractmethod
    def _average(self, X: np.ndarray) -> Any:
        """psi(x) for validated points of the engine's dtype, an array of shape ``(n, n_outputs)``.

        A :class:`~orbit.core.tiled_matrix.TiledMatrix` where the map :meth:`gives_tiles`.
        """

    def _task(self, embedding: Embedding, X: np.ndarray, **options: Any) -> Task:
        """The average of ``embedding`` over the orbit of the map, for the engine."""
        X, encode = self._encoded_points(X)
        encoded_bytes = 0 if encode is flatten else self.encoder_.bytes_per_point(X.dtype.itemsize)
        label = self.label()
        return Task(embedding, self.orbit_, X, encode=encode, encoded_bytes=encoded_bytes, label=label, **options)

    def _parts(self) -> tuple[Orbit, Kernel, Engine]:
        default = self.implied_kernel or self.default_kernel
        return self.orbit or Orbit(), self.kernel or default(), self.engine or Engine()

    def _validate(self, X, reset: bool) -> np.ndarray:
        X, engine = validated_points(self, X, reset), self.engine or Engine()
        return engine.cast(X) if reset else X.astype(engine.result_dtype(X), copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.three_d_array = True
        return tags


class AveragedMap(FeatureMap):
    """A base map phi averaged over the orbit: psi(x) = sum_i w_i phi(g_i x) (Raj et al. 2017, eqs. 7 and 8).

    The spectral path uses the Fourier coefficients in which the points of ``fit`` have energy, so the features do not
    depend on how points are divided into batches.
    """

    _plan: SpectralPlan | None = None

    def _fit_parts(self, X, y=None, clusters=None) -> tuple[np.ndarray, int]:
        X, map_seed = super()._fit_parts(X, y, clusters)
        self._plan = self.engine_.spectral_plan(self.orbit_, X) if self.encoder_.is_identity else None
        self._cached_embeddings = Lru[Any, Embedding](most=1)
        return X, map_seed

    def _average_on_device(self, X: np.ndarray) -> Tensor:
        return self._average(X, on_device=True)

    def _average(self, X: np.ndarray, on_device: bool = False) -> Any:
        engine = self.engine_

        def size(made: Embedding) -> int:
            projected = isinstance(made, ProjectedEmbedding)  # its templates may be computed later, from factors
            return max(nbytes(made), made.units * math.prod(X.shape[1:]) * X.itemsize if projected else 0)

        self._cached_embeddings.limit_bytes = engine.workspace().cached_bytes
        embedding = self._cached_embeddings.get((X.dtype, engine.device), lambda: self._embedding(X.dtype), size)
        features, self.route_ = engine.average(self._task(embedding, X, on_device=on_device))
        return features

    def _task(self, embedding: Embedding, X: np.ndarray, **options: Any) -> Task:
        return super()._task(embedding, X, plan=self._plan, **options)

    @abstractmethod
    def _embedding(self, dtype: np.dtype) -> Embedding:
        """The fitted base map, ready for the engine in the given precision."""
