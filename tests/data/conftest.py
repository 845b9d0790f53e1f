"""Fixtures of tests of data."""

import pandas as pd
import pytest


@pytest.fixture
def save(tmp_path):
    """``save(frame, "mine.csv")`` -> its path."""

    def write(table: pd.DataFrame, name: str = "mine.csv", **how) -> str:
        path = tmp_path / name
        table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False, **how)
        return str(path)

    return write
