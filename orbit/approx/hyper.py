"""The second layer: a kernel on top of orbit-averaged features (Raj et al. 2017, remark 3)."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from orbit.approx.base import FeatureMap
from orbit.approx.evidence import EvidenceChoice
from orbit.approx.frequencies import Frequencies
from orbit.approx.nystrom import Nystrom
from orbit.approx.rf import RandomFourier
from orbit.approx.scales import ScaleChoice
from orbit.core.component import Component
from orbit.core.errors import ParameterError
from orbit.core.params import Lengthscale, PositiveInt
from orbit.core.random import RandomState
from orbit.core.tiled_matrix import TiledMatrix
from orbit.engine import Engine
from orbit.kernels import Gaussian
from orbit.kernels.landmarks import Landmarks
from orbit.registry import available, build, register
from orbit.solvers.structure import StructuredFeatures, unpacked


class SecondLayer(TransformerMixin, Component):
    """Base class of second layers: transformers of features (n, d).

    Attributes
    ----------
    chosen_scale_ : ScaleChoice, EvidenceChoice or None
        The choice of a lengthscale that is ``auto``; None if nothing was chosen.
    """

    chosen_scale_: ScaleChoice | EvidenceChoice | None = None

    def min_fit_points(self, n: int) -> int:
        """Minimum size of a sample of ``n`` points to which :meth:`fit` should be applied."""
        return 0

    def n_columns(self, n: int, d: int) -> int:
        """Columns of the features of ``n`` training points of ``d`` features, from parameters alone."""
        return d

    def fit_bytes(self, n: int, d: int) -> int:
        """Bytes that :meth:`fit` takes at least, besides its points, as known from parameters alone."""
        return 0

    def _validate(self, X, reset: bool) -> Any:
        is_checked = isinstance(X, Tensor | TiledMatrix)  # by the map
        return validate_data(self, X, reset=reset, skip_check_array=is_checked, dtype=[np.float64, np.float32])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@register("hyper", "linear")
class LinearLayer(OneToOneFeatureMixin, SecondLayer):
    """No second layer: the inner product of the orbit-averaged features.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> orbit.build("hyper", "linear").fit_transform(np.ones((3, 2))).shape
    (3, 2)
    """

    def fit(self, X, y=None, clusters=None):
        """Store the number of features of ``X``, shape (n, d)."""
        self._validate(unpacked(X)[1], reset=True)
        return self

    def transform(self, X):
        """``X`` itself."""
        check_is_fitted(self)
        structure, X = unpacked(X)
        X = self._validate(X, reset=False)
        return X if structure is None else StructuredFeatures(X, structure)


@register("hyper", "gaussian")
@dataclass(eq=False, repr=False)
class GaussianLayer(ClassNamePrefixFeaturesOutMixin, SecondLayer):
    """Features of exp(-|psi(x) - psi(z)|^2 / (2 lengthscale^2)), a kernel on the embeddings of orbits.

    The distance of psi(x) and psi(z) is that of the orbits' mean embeddings (Raj et al. 2017,
    section 2.1), so this layer distinguishes orbit distributions that no linear
    function of the embeddings does. ``fit`` needs only the rows for the median and
    the landmarks; ``transform`` may be applied in batches.

    Parameters
    ----------
    lengthscale : float > 0, "auto", "evidence", "ard" or "median"
        In the units of the features; ``median`` is their median distance, and ``auto`` the multiple of it with the
        smallest leave-one-out error, see :class:`~orbit.kernels.base.LengthscaleKernel`.
    approx : {"rf", "nystrom"}
        Random Fourier features or Nyström features.
    n_components : int >= 1
        Frequencies (two columns each) or landmarks.
    frequencies : Frequencies or None
        How ``rf`` draws frequencies; None is ``auto``.
    landmarks : Landmarks or None
        How ``nystrom`` chooses landmarks; None is uniformly.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    map_ : FeatureMap
        The fitted feature map of the second layer.

    References
    ----------
    Raj et al., "Local Group Invariant Representations via Orbit Embeddings",
    2017, remark 3 of section 2.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> psi = np.random.default_rng(0).standard_normal((30, 8))
    >>> orbit.build("hyper", "gaussian", n_components=10, random_state=0).fit_transform(psi).shape
    (30, 20)
    """

    lengthscale: Lengthscale = "auto"
    approx: Literal["rf", "nystrom"] = "rf"
    n_components: PositiveInt = 1000
    frequencies: Frequencies | None = None
    landmarks: Landmarks | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    @classmethod
    def from_config(cls, frequencies: str = "auto", landmarks: str = "uniform", **others: Any) -> Self:
        """The layer whose rules are given by their names.

        Parameters
        ----------
        frequencies : str
            Name of the rule by which ``rf`` draws frequencies.
        landmarks : str
            Name of the rule by which ``nystrom`` chooses landmarks.
        """
        return cls(frequencies=_rule("frequencies", frequencies), landmarks=_rule("landmarks", landmarks), **others)

    def check(self) -> None:
        super().check()
        self._map().check()

    def min_fit_points(self, n: int) -> int:
        return self._map().min_fit_points(n)

    def n_columns(self, n: int, d: int) -> int:
        return self._map().n_columns(n, d)

    def fit_bytes(self, n: int, d: int) -> int:
        return self._map().fit_bytes(n, d)

    def fit(self, X, y=None, clusters=None):
        """Compute the lengthscale and draw frequencies or landmarks for features ``X``, shape (n, d).

        ``y`` and ``clusters`` are those of :meth:`orbit.approx.base.FeatureMap.fit`.
        """
        self.check()
        X = self._validate(X, reset=True)
        self.map_ = self._map().fit(X, y, clusters)
        self.chosen_scale_, self._n_features_out = self.map_.chosen_scale_, self.map_._n_features_out
        return self

    def transform(self, X):
        """Features of the second layer, shape (n, n_outputs), for features ``X``, shape (n, d)."""
        check_is_fitted(self)
        return self.map_.transform(self._validate(X, reset=False))

    def _map(self) -> FeatureMap:
        kernel = Gaussian(self.lengthscale)
        common: dict[str, Any] = {"engine": self.engine, "random_state": self.random_state}
        made: FeatureMap = (
            RandomFourier(kernel, n_components=self.n_components, frequencies=self.frequencies, **common)
            if self.approx == "rf"
            else Nystrom(kernel, n_components=self.n_components, landmarks=self.landmarks, **common)
        )
        kernel.section = made.section = self.section  # their parameters are those of the layer
        return made


def _rule(kind: str, name: str) -> Any:
    if name not in available(kind):
        raise ParameterError(kind, "one of " + ", ".join(available(kind)), name, "hyper")
    return build(kind, name)
