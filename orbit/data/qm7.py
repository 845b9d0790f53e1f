"""QM7: 7,165 small organic molecules and their atomisation energies, with the five folds that come with it."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbit.core.errors import DataFileError
from orbit.core.random import RandomState
from orbit.data.base import Dataset, FileLoader
from orbit.data.checks import real_numbers
from orbit.data.files import DataFile, readable
from orbit.registry import register

# Copies and rebuilt files differ in rounding, so the content is checked instead of the digest, which only serves to
# recognise the rebuilt file.
_REBUILT = "90de2cfc516c0e61a1dbbd76b3c0ef92d73bf16ecb3d89e647e3111150f1b9b0"
QM7_FILE = DataFile(
    "qm7.mat",
    None,
    "It is the QM7 data set of quantum-machine.org, of which DeepChem keeps a copy.",
    "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets/qm7.mat",
)
SHAPES = {"X": (7165, 23, 23), "T": (1, 7165), "P": (5, 1433)}


@register("dataset", "qm7")
@dataclass(eq=False, repr=False)
class QM7(FileLoader):
    """Coulomb matrices (23 x 23) and atomisation energies in kcal/mol (Rupp et al. 2012).

    The published five folds split the data: one is the test part, the other four
    are the training part, as in Raj et al. 2017, Table 1, and the folds of an inner
    cross-validation.

    Parameters
    ----------
    root : str or None
        Data folder; None is the variable ORBIT_DATA, else ``data``. ``qm7.mat`` is
        looked for in its subfolder ``qm7``, then in itself.
    fold : int, 0 to 4
        The test fold.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    download : bool
        Fetch the file into ``qm7`` of the data folder if it is missing. No
        digest of it is published; the content is checked as for any copy.
    """

    folder = "qm7"

    default_representation = {"name": "coulomb"}
    default_group = {"name": "identity"}
    fixed_task = "regression"
    shown_as = "molecule"

    fold: int = 0

    def check(self) -> None:
        super().check()
        if not 0 <= self.fold < 5:
            raise self.wrong("fold", "an integer from 0 to 4")

    def files(self) -> list[DataFile]:
        return [QM7_FILE]

    def _load(self, random_state: RandomState) -> Dataset:
        content = self._read()
        X, y = content["X"].astype(np.float64), content["T"][0].astype(np.float64)  # float64, which energies need
        test = content["P"][self.fold].astype(int)
        others = np.delete(content["P"], self.fold, axis=0).astype(int)
        train, folds = others.ravel(), np.repeat(np.arange(len(others)), others.shape[1])
        source = f"{self._source()}, test fold {self.fold}"
        return Dataset(self.name, "regression", X[train], y[train], X[test], y[test], source, folds)

    def _source(self) -> str:
        digest = hashlib.sha256(self.path(QM7_FILE).read_bytes()).hexdigest()
        return "QM7, rebuilt (Coulomb matrices recomputed from charges and positions)" if digest == _REBUILT else "QM7"

    def _read(self) -> dict[str, Any]:
        from scipy import io

        path = self.path(QM7_FILE)
        with readable(path.absolute(), "is corrupt", f". {QM7_FILE.how}"):
            content = io.loadmat(path)
        for key, shape in SHAPES.items():
            found = content[key].shape if key in content else None
            if found != shape:
                raise DataFileError(
                    f"{path.absolute()}: expected {key} of shape {shape}, found {found}. {QM7_FILE.how}"
                )
            real_numbers(content[key], f"{path.absolute()}, {key}")
        if not np.array_equal(np.sort(content["P"], axis=None), np.arange(len(content["X"]))):
            raise DataFileError(f"{path.absolute()}: expected each molecule in one of the folds P. {QM7_FILE.how}")
        return content
