"""Every file of the table is read as the table says, and the page has this table."""

import warnings

import numpy as np
import pytest
from file_table import FILES, PAGE, File, page, tone

import orbit
from orbit.core.errors import InputError

#: Largest errors of the samples of recordings that are compressed with loss; of others 1e-6.
LOSSES = {"8 bits": 0.01, "mu-law": 0.03, "Ogg Vorbis": 0.05, "MP3": 0.05, "Opus": 0.18}

#: Of the smallest and the largest value; of clouds, points are drawn.
TOLERANCES = {"sounds": 0.05, "series": 0.05, "clouds": 0.15}


def load(file: File, folder, **more) -> orbit.data.Dataset:
    file.write(folder)
    key = "manifest" if file.kind == "images" and file.path else "path"
    settings = {name: str(folder / value) if name == "y_path" else value for name, value in file.settings.items()}
    return orbit.build("dataset", file.kind, **{key: str(folder / file.path)}, **settings, **more).load(0)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.kind}: {file.what}")
def test_a_file_is_read_as_the_table_says(file, tmp_path):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if file.error:
            with pytest.raises(InputError) as error:
                load(file, tmp_path)
            assert file.error in str(error.value)
            assert "\n" not in str(error.value)
            return
        data = load(file, tmp_path)
    said = [str(each.message) for each in warned if each.category is UserWarning]
    assert any(file.warning in text for text in said) if file.warning else True
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    assert X.shape[1:] == file.shape
    assert X.dtype.kind == "f"
    if file.values is not None:
        np.testing.assert_allclose(X, np.broadcast_to(file.values, X.shape), rtol=1e-6, atol=2e-7)
    for expected, found in ((file.low, X.min()), (file.high, X.max())):
        if expected is not None:
            assert found == pytest.approx(expected, abs=TOLERANCES.get(file.kind, 1e-3))
    if file.kind == "sounds" and not (file.settings or file.warning):
        waves = load(file, tmp_path, form="waveform", duration=0.5).X_train
        assert np.abs(waves - tone())[:, 200:-200].max() < LOSSES.get(file.what.removeprefix("WAV, "), 1e-6)
    if data.task == "classification":
        assert {*map(str, y)} == {*map(str, file.labels)}
    else:
        assert (y.min(), y.max()) == pytest.approx(file.labels)


def test_the_page_has_the_table():
    assert len(FILES) >= 60
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/file_table.py writes it"
