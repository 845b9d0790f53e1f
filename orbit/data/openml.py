"""A table of openml.org, by its name or number."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from orbit.core.errors import DataFileError, InputError
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.data.base import Dataset
from orbit.data.files import data_root
from orbit.data.table import Table
from orbit.registry import register

if TYPE_CHECKING:
    import pandas as pd


@register("dataset", "openml")
@dataclass(eq=False, repr=False)
class OpenML(Table):
    """A table of openml.org, by its name or number, fetched by scikit-learn, checked by MD5 and kept on disk.

    Parameters
    ----------
    data : str or None
        Name of the data set, such as ``credit-g``. One of ``data`` and ``data_id`` is required.
    data_id : int >= 1 or None
        Its number.
    version : int >= 1 or None
        Version of a named data set; None is the active one.
    root : str or None
        Data folder, whose subfolder ``openml`` keeps what was fetched; None is the variable ORBIT_DATA, else ``data``.
    target : str, list of str, or None
        Column to predict; None is the one that OpenML names.
    features, exclude, weight, missing, categories, group_column, task, test_fraction, n_train, n_test :
        See :class:`~orbit.data.table.Table`.

    Raises
    ------
    DataFileError
        If it is neither in ``root`` nor can be fetched.
    """

    reads = ()
    data: str | None = None
    data_id: PositiveInt | None = None
    version: PositiveInt | None = None
    root: str | None = None
    _: KW_ONLY
    target: str | list[str] | None = None
    features: list[str] | None = None
    # what files have is no parameter
    path: str | None = field(default=None, init=False)
    test_path: str | None = field(default=None, init=False)
    separator: str | None = field(default=None, init=False)
    decimal: Literal["auto", "point", "comma"] = field(default="auto", init=False)
    encoding: str | None = field(default=None, init=False)
    missing_texts: list[str] | None = field(default=None, init=False)
    _frame: Any = field(default=None, init=False)

    def input_files(self) -> list[Path]:
        return []

    def check_files(self) -> None:
        if (self.data is None) == (self.data_id is None):
            found = "none" if self.data is None else "both"
            raise InputError(f"dataset.data: expected a name, or a number as dataset.data_id, found {found}")

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        fetched = self._fetched()
        whole = copy.copy(self)
        whole.path, whole.target = f"openml.org/d/{fetched.details['id']}", list(fetched.target_names)
        whole._frame = fetched.frame
        return Table._load(whole, random_state)

    def _csv_options(self, path: str, fitted: Mapping[str, Any], names: Sequence[str] = ()) -> dict[str, Any]:
        return {} if path == self.path else super()._csv_options(path, fitted, names)

    def _read(
        self, path: str, texts: Iterable[str], options: dict[str, Any], labels: Sequence[str] = ()
    ) -> pd.DataFrame:
        from orbit.data.frames import plain

        if path != self.path:  # new points
            return super()._read(path, texts, options, labels)
        frame = self._frame
        return plain(frame.astype(dict.fromkeys(frame.select_dtypes("category"), object)))

    def _fetched(self) -> Any:
        from sklearn.datasets import fetch_openml

        folder = data_root(self.root).absolute()
        named = {"data_id": self.data_id} if self.data is None else {"name": self.data}
        how = named | {"target_column": self.target or "default-target", "data_home": str(folder)}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A network error occurred")
                return fetch_openml(**how, version=self.version or "active", as_frame=True, n_retries=1, delay=0.1)
        except (OSError, ValueError, KeyError) as error:  # no network, no such data set, a damaged copy
            reason = str(error).partition("\n")[0]
            raise DataFileError(
                f"dataset.data: {self.data or self.data_id} is not in {folder / 'openml'}, and cannot be fetched from "
                f"openml.org ({reason}); dataset.root names the folder that keeps it"
            ) from error
