"""Energies and forces of molecules, learned together: a kernel of the environments of atoms, and its derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbit.core.component import Estimator
from orbit.core.errors import InputError
from orbit.core.linalg import eigh, pivoted_root
from orbit.core.memory import check_fits
from orbit.core.params import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt, check_params
from orbit.core.progress import Progress
from orbit.core.random import RandomState, generator
from orbit.learners.distances import BondedMolecule, Distances
from orbit.representations.environments import Environments
from orbit.representations.neighbours import CELL

# Numbers of an array that is held at once, frames to which the environments are fitted, and environments of an element
# by which the median distance is estimated.
_NUMBERS, _SAMPLE, _MEDIAN = 2**23, 200, 500
# The lengthscale of distances, in multiples of the median distance of their vectors.
_OF_DISTANCES = 10.0
# Shares of the largest eigenvalue, of which one is chosen.
_PATH = 10.0 ** np.arange(-15, -3)


class _Moments:
    """X^T X and X^T y of rows."""

    def __init__(self, d: int) -> None:
        self.A, self.right = np.zeros((d, d)), np.zeros(d)

    def add(self, X: np.ndarray, y: np.ndarray) -> None:
        self.A += X.T @ X
        self.right += X.T @ y

    def solutions(self, path: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The coefficients for each share of the largest eigenvalue, in columns, of columns of X that are scaled."""
        values, vectors = eigh(scale[:, None] * self.A[: len(scale), : len(scale)] * scale)
        values = values.clip(0)[:, None]
        right = vectors.T @ (scale * self.right[: len(scale)])
        found = np.zeros((len(self.A), len(path)))
        found[: len(scale)] = scale[:, None] * (vectors @ (right[:, None] / (values + path * values[-1])))
        return found


@dataclass(eq=False, repr=False)
class ForceField(Estimator):
    """Energies of molecules and the forces on their atoms, which are minus the gradient of the predicted energy.

    The energy is a number for each atom of an element, plus the sum over all atoms a of f(x_a), for the vector x_a of
    the environment of a (:class:`~orbit.representations.environments.Environments`). f has the kernel
    exp(-|x - x'|^2 / (2 l^2)) between atoms of one element and 0 between others, in the span of landmarks among the
    environments of training. Where all frames of training are of one molecule, a function of all its distances is added
    (:class:`~orbit.learners.distances.Distances`). Regularised least squares fit values to energies, and gradients by
    positions to forces. The energy does not change when the molecule is moved, turned or reflected or when atoms of one
    element change places, and forces turn and change places with their atoms. The frames of other molecules are
    predicted without the function of distances, by a fit of its own.

    Parameters
    ----------
    n_components : int >= 1
        Landmarks: environments of atoms, drawn in proportion to the atoms of each element; the function of distances
        has a third as many.
    lengthscale : float > 0
        In multiples of the median distance of environments of one element.
    regularization : float > 0 or None
        lambda, as a share of the largest eigenvalue of X^T X, for rows X of energies and forces; None is the one of
        1e-15, 1e-14 ... 1e-4 with the smallest absolute errors of
        ``validation_fraction`` of the frames.
    energy_weight : float > 0
        Weight of an energy against one component of a force, in the unit of length: the loss of a molecule is
        energy_weight^2 (E - E')^2 + |F - F'|^2.
    distances : float >= 0
        Size of the function of all distances in one molecule, against that of environments, before they are fitted; 0
        leaves it out, and so does a larger error on the validation frames.
    validation_fraction : float in (0, 1)
    random_state : int, RandomState or None

    Attributes
    ----------
    regularization_ : float
    lengthscale_ : float
    elements_ : int array
        Charges of the training molecules.
    energies_ : array
        The number for an atom of each element.
    distances_ : Distances or None
        The function of distances, if there is one.

    References
    ----------
    Bartok, Payne, Kondor and Csanyi, "Gaussian Approximation Potentials", 2010, for sums over environments.
    Chmiela et al., "Machine learning of accurate energy-conserving molecular force fields", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positions = np.array([[0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]) + 0.05 * rng.standard_normal((60, 3, 3))
    >>> bonds = positions[:, 1:] - positions[:, :1]
    >>> lengths = np.linalg.norm(bonds, axis=2, keepdims=True)
    >>> energies = 20 * np.square(lengths - 0.96).sum((1, 2))  # two springs
    >>> pull = 40 * (lengths - 0.96) * bonds / lengths
    >>> forces = np.concatenate([pull.sum(1, keepdims=True), -pull], 1)
    >>> molecules = np.concatenate([np.tile([[8.0], [1.0], [1.0]], (60, 1, 1)), positions], 2)
    >>> model = ForceField(random_state=0).fit(molecules[:40], energies[:40], forces[:40])
    >>> bool(np.abs(model.predict(molecules[40:])[1] - forces[40:]).mean() < 0.06 * np.abs(forces).mean())
    True
    """

    n_components: PositiveInt = 3000
    lengthscale: PositiveFloat = 10.0
    regularization: PositiveFloat | None = None
    energy_weight: PositiveFloat = 5.0
    distances: NonNegativeFloat = 10.0
    validation_fraction: Fraction = 0.2
    random_state: RandomState = None

    def fit(self, X, energies, forces=None, progress: bool = False):
        """Fit to molecules.

        Parameters
        ----------
        X : array, shape (n, atoms, 4)
            Charge and position in angstrom of each atom, in crystals then -1 and a vector of the cell in each row;
            charges of 0 in further rows.
        energies : array, shape (n,)
        forces : array, shape (n, atoms, 3), or None
            In the unit of energies per angstrom; None fits energies alone.
        progress : bool
            Whether to show it.

        Raises
        ------
        InputError
            For arrays that are not finite or of other shapes.
        """
        check_params(self)
        charges, positions = molecules(X)
        if len(charges) < 2:
            raise InputError(f"X: expected at least 2 molecules to learn from, found {len(charges)}")
        energies = _checked("energies", energies, charges.shape[:1])
        numbers = 6 * charges.shape[1] ** 2 * self.n_components  # derivatives of kernel values in one molecule, twice
        check_fits("n_components", f"derivatives in a molecule of {charges.shape[1]:,} atoms", 8 * numbers)
        forces = None if forces is None else _checked("forces", forces, positions.shape)
        rng = generator(self.random_state)
        self.elements_ = np.unique(charges[charges > 0])
        counts = self._counts(charges)
        self.energies_ = np.linalg.lstsq(counts, energies, rcond=None)[0]
        self._fit_kernel(charges, positions, rng)
        rest = energies - counts @ self.energies_

        def equations(part: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
            blocks = [*self._blocks(charges, part)]
            with Progress(len(blocks), "equations", progress) as shown:
                for rows in blocks:
                    of_forces = None if forces is None else forces[rows]
                    yield self._equations(charges[rows], positions[rows], rest[rows], of_forces)
                    shown.step()

        order = rng.permutation(len(charges))
        self.distances_: Distances | None = None
        if self.distances and forces is not None:
            self._fit_distances(charges, positions.numpy(), rng)
        moments = _Moments(self._width + self._of_distances)
        held = max(1, round(self.validation_fraction * len(order))) if self.regularization is None else 0
        for X, y in equations(order[held:]):
            moments.add(X, y)
        scales = [np.ones(self._width)]
        if self._of_distances:
            environments, others = np.split(np.diagonal(moments.A), [self._width])
            share = self.distances * np.sqrt(environments.sum() / others.sum())
            scales.append(np.repeat([1.0, share], [self._width, self._of_distances]))
        path = _PATH if self.regularization is None else np.array([self.regularization])
        paths = [path for _ in scales]
        if held:
            W = np.concatenate([moments.solutions(path, scale) for scale in scales], 1)
            errors = np.zeros(W.shape[1])
            for X, y in equations(order[:held]):
                errors += np.abs(X @ W - y[:, None]).sum(0)
                moments.add(X, y)
            by_scale = errors.reshape(len(scales), -1)
            paths = [path[[int(each.argmin())]] for each in by_scale]
            if by_scale.min(1).argmin() == 0:  # environments alone are better
                scales, self.distances_ = scales[:1], None
        solved = [moments.solutions(path, scale)[:, 0] for path, scale in zip(paths, scales, strict=False)]
        self.regularization_ = float(paths[len(scales) - 1][0])
        self._coefficients = self._by_element(solved[0])
        if self.distances_ is not None:
            with_distances = self._by_element(solved[1]), solved[1][self._width :]
            self._coefficients_with_distances: tuple[list[Tensor], np.ndarray] = with_distances
        return self

    def predict(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Energies, shape (n,), and forces, shape (n, atoms, 3), of molecules of any number of atoms."""
        check_is_fitted(self, "regularization_")
        charges, positions = molecules(X)
        energies, forces = self._counts(charges) @ self.energies_, np.zeros(positions.shape)
        known = np.zeros(len(charges), bool)
        if self.distances_ is not None:
            orders = self.distances_.molecule.orders(charges, positions.numpy())
            known = orders[:, 0] >= 0
            of_environments, of_distances = self._coefficients_with_distances
            self._add_environments(charges, positions, np.flatnonzero(known), of_environments, energies, forces)
            for rows in self._blocks(charges, np.flatnonzero(known)):
                atoms = rows[:, None], orders[rows]
                values, slopes = self.distances_.predict(positions.numpy()[atoms], of_distances)
                energies[rows] += values
                forces[atoms] -= slopes
        self._add_environments(charges, positions, np.flatnonzero(~known), self._coefficients, energies, forces)
        return energies, forces

    def _add_environments(
        self,
        charges: np.ndarray,
        positions: Tensor,
        which: np.ndarray,
        coefficients: list[Tensor],
        energies: np.ndarray,
        forces: np.ndarray,
    ) -> None:
        """Add the sums over environments of some molecules to energies and forces of all."""
        for rows in self._blocks(charges, which):
            values, slopes = self._environments(charges[rows], positions[rows])
            for z, c in zip(self._landmarks, coefficients, strict=True):
                of_element = np.nonzero(charges[rows] == z)
                x, landmarks = values[of_element], self._landmarks[z]
                K = self._kernel(x, landmarks) * c
                gradient = (K @ landmarks - K.sum(1, keepdim=True) * x) / self.lengthscale_**2
                pull = -(slopes[of_element] @ gradient[:, :, None])[:, :, 0]
                np.add.at(energies, rows[of_element[0]], K.sum(1).numpy())
                np.add.at(forces, rows[of_element[0]], pull.view(len(x), charges.shape[1], 3).numpy())

    def _by_element(self, w: np.ndarray) -> list[Tensor]:
        """Coefficients of the landmarks of each element."""
        ends = np.cumsum([len(root) for root in self._roots.values()])
        parts = np.split(w[: self._width], ends[:-1])
        return [torch.from_numpy(root.T @ part) for root, part in zip(self._roots.values(), parts, strict=True)]

    def _fit_distances(self, charges: np.ndarray, positions: np.ndarray, rng: np.random.Generator) -> None:
        """Set ``distances_``, if all frames are of one molecule."""
        if (molecule := BondedMolecule.of(charges, positions)) is not None:
            columns = max(1, self.n_components // 3)
            self.distances_ = Distances(molecule, _OF_DISTANCES)
            self.distances_.fit(positions[:, : len(molecule.charges)], columns, rng)

    @property
    def _of_distances(self) -> int:
        return 0 if self.distances_ is None else len(self.distances_)

    def _fit_kernel(self, charges: np.ndarray, positions: Tensor, rng: np.random.Generator) -> None:
        """Landmarks of environments, and for each element the root of their kernel matrix."""
        some = np.sort(rng.choice(len(charges), min(_SAMPLE, len(charges)), replace=False))
        self._environments = Environments().fit([(charges[some], positions[some])])
        atoms = np.argwhere(charges > 0)
        chosen = atoms[np.sort(rng.choice(len(atoms), min(self.n_components, len(atoms)), replace=False))]
        found: dict[int, list[Tensor]] = {int(z): [] for z in self.elements_}
        for rows in self._blocks(charges, np.unique(chosen[:, 0])):
            values, _ = self._environments(charges[rows], positions[rows])
            for molecule, atom in chosen[np.isin(chosen[:, 0], rows)]:
                found[int(charges[molecule, atom])].append(values[np.searchsorted(rows, molecule), atom])
        points = {z: torch.stack(each) for z, each in found.items() if each}
        medians = [float(torch.pdist(each[:_MEDIAN]).median()) for each in points.values() if len(each) > 1]
        self.lengthscale_ = self.lengthscale * (float(np.mean(medians)) if medians else 1.0) or 1.0
        self._landmarks, self._roots = dict[int, Tensor](), dict[int, np.ndarray]()
        for z, each in points.items():
            pivots, self._roots[z] = pivoted_root(self._kernel(each, each).numpy())
            self._landmarks[z] = each[pivots]

    @property
    def _width(self) -> int:
        return sum(map(len, self._roots.values()))

    def _kernel(self, x: Tensor, landmarks: Tensor) -> Tensor:
        squares = torch.cdist(x, landmarks, compute_mode="donot_use_mm_for_euclid_dist").square_()
        return squares.mul_(-0.5 / self.lengthscale_**2).exp_()

    def _equations(
        self, charges: np.ndarray, positions: Tensor, energies: np.ndarray, forces: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows of weighted energies and, unless None, of the forces on all atoms, and their targets."""
        values, slopes = self._environments(charges, positions)
        n, d = len(charges), values.shape[2]
        of_energies, of_forces = [], []
        for z, landmarks in self._landmarks.items():
            which = np.nonzero(charges == z)
            molecule, x = torch.from_numpy(which[0]), values[which]
            K = self._kernel(x, landmarks)
            summed = torch.zeros(n, len(landmarks), dtype=x.dtype).index_add_(0, molecule, K)
            of_energies.append(summed.numpy() @ self._roots[z].T)
            if forces is None:
                continue
            J = slopes[which]
            # d K / d position, without 1 / lengthscale^2
            by_position = (J @ x[:, :, None] - (J.reshape(-1, d) @ landmarks.T).view(*J.shape[:2], len(landmarks))) * K[
                :, None
            ]
            total = torch.zeros(n, *by_position.shape[1:], dtype=x.dtype).index_add_(0, molecule, by_position)
            of_forces.append(total.numpy() @ (self._roots[z].T / -(self.lengthscale_**2)))
        if self.distances_ is not None:
            size = len(self.distances_.molecule.charges)
            values_of_all, slopes_of_all = self.distances_.rows(positions.numpy()[:, :size])
            of_energies.append(values_of_all)
            of_forces.append(np.pad(slopes_of_all, ((0, 0), (0, 3 * (charges.shape[1] - size)), (0, 0))))
        X, y = self.energy_weight * np.concatenate(of_energies, 1), self.energy_weight * energies
        if forces is None:
            return X, y
        is_atom = np.repeat(charges > 0, 3, axis=1)
        rows = np.concatenate(of_forces, 2)[is_atom]
        return np.concatenate([X, rows]), np.concatenate([y, -forces.reshape(n, -1)[is_atom]])

    def _blocks(self, charges: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Indices of molecules whose arrays are held at once."""
        columns = max(self._environments.n_columns, self.n_components)
        step = max(1, _NUMBERS // (3 * charges.shape[1] ** 2 * columns))
        return (rows[start : start + step] for start in range(0, len(rows), step))

    def _counts(self, charges: np.ndarray) -> np.ndarray:
        """Numbers of atoms of each element, shape (n, elements).

        Raises
        ------
        InputError
            If there are elements that no training molecule has.
        """
        if len(new := np.setdiff1d(charges, [CELL, 0, *self.elements_])):
            raise InputError(f"X: expected elements with the charges {self.elements_.tolist()}, found {new.tolist()}")
        return np.stack([(charges == z).sum(1) for z in self.elements_], 1).astype(np.float64)


def molecules(X) -> tuple[np.ndarray, Tensor]:
    """Charges, shape (n, atoms), and positions, shape (n, atoms, 3)."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 3 or X.shape[2] != 4 or not len(X) or not np.isfinite(X).all() or not X[:, :, 0].any():
        raise InputError(f"X: expected finite charges and positions of shape (n, atoms, 4), found shape {X.shape}")
    return X[:, :, 0].astype(np.int64), torch.from_numpy(X[:, :, 1:])


def _checked(name: str, values, shape) -> np.ndarray:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != tuple(shape) or not np.isfinite(found).all():
        raise InputError(f"{name}: expected finite numbers of shape {tuple(shape)}, found shape {found.shape}")
    return found
