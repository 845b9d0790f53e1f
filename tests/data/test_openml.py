"""Tables of OpenML, from a copy on disk as scikit-learn keeps it; there is no network."""

import gzip
import hashlib
import json
from pathlib import Path
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest

from orbit import InputError, OpenML
from orbit.testing import DatasetContract

ROWS = [(i / 3, ("red", "blue", "green")[i % 3], "good" if i % 2 else "bad") for i in range(32)]
ARFF = (
    "@relation mine\n@attribute width numeric\n@attribute colour {red,blue,green}\n@attribute class {good,bad}\n@data\n"
)
ARFF += "".join(f"{width},{colour},{kind}\n" for width, colour, kind in ROWS)


def keep(root: Path) -> None:
    kinds = {"width": "numeric", "colour": "nominal", "class": "nominal"}
    features = [
        {"index": str(i), "name": name, "data_type": kind, "is_target": str(name == "class").lower()}
        | {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
        for i, (name, kind) in enumerate(kinds.items())
    ]
    about = {
        "id": "7",
        "name": "mine",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "made here",
    }
    about |= {"url": "https://api.openml.org/data/v1/download/7/mine.arff", "file_id": "7"}
    about |= {"md5_checksum": hashlib.md5(ARFF.encode()).hexdigest()}
    files = {
        "api/v1/json/data/7": json.dumps({"data_set_description": about}),
        "api/v1/json/data/features/7": json.dumps({"data_features": {"feature": features}}),
        "api/v1/json/data/qualities/7": json.dumps(
            {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "32"}]}}
        ),
        "data/v1/download/7/mine.arff": ARFF,
    }
    for name, content in files.items():
        path = root / "openml" / "openml.org" / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", Mock(side_effect=URLError("no network")))


class TestOpenML(DatasetContract):
    component, sizes = OpenML, (24, 8)

    @pytest.fixture(autouse=True)
    def _copy(self, tmp_path):
        keep(tmp_path)
        self.params = {"data_id": 7, "root": str(tmp_path)}

    def test_columns_are_numbers_and_categories_of_the_target_that_openml_names(self, tmp_path):
        data = self.create().load(0)
        assert data.targets == ["class"]
        assert data.columns == {"width": 1, "colour": 3}
        assert {*data.y_train} == {"good", "bad"}
        assert self.create(target="width").load(0).task == "regression"
        (tmp_path / "new.csv").write_text("width,colour\n1.5,red\n2.5,blue\n")
        points = self.create().read_points(str(tmp_path / "new.csv"), data.form, data.encoder)
        np.testing.assert_array_equal(points.X[:, 0], [1.5, 2.5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "data: expected a name, or a number as dataset.data_id, found none"),
        ({"data": "iris", "data_id": 61}, "data: expected a name.*found both"),
        ({"data": "iris"}, r"data: iris is not in .*openml, and cannot be fetched from openml\.org .*no network"),
    ],
)
def test_what_cannot_be_had_is_one_line(tmp_path, settings, message):
    with pytest.raises(InputError, match=message):
        OpenML(root=str(tmp_path), **settings).load(0)
