"""What the processes of a fit send to each other grows with the columns of the features, and not with the rows."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TESTS = Path(__file__).parents[1]
ROWS, COLUMNS = (4_000, 32_000), (200, 400)


def measured(n: int, *folders: Path) -> list[dict[str, int]]:
    """What each of ``n`` processes sends for the parts of each folder and each number of columns."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    shared["PYTHONPATH"] = str(TESTS.parent)
    command = [sys.executable, str(TESTS / "sent_bytes.py"), *map(str, folders)]
    lines = subprocess.check_output(command, env=os.environ | shared, text=True, timeout=900).splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="bytes are counted by Linux")
def test_what_is_sent_grows_with_columns_and_not_with_rows(tmp_path, rng):
    for rows in ROWS:
        (tmp_path / str(rows)).mkdir()
        for part in range(8):
            points = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(rows // 8 * 10)), 10)
            pq.write_table(
                pa.table({"x": points, "y": rng.standard_normal(rows // 8)}), tmp_path / str(rows) / f"{part}.parquet"
            )
    for n in (2, 4, 8):
        found = measured(n, *(tmp_path / str(rows) for rows in ROWS))
        assert len(found) == n * len(ROWS) * len(COLUMNS)
        most = {
            (rows, columns): max(f["sent"] for f in found if (f["rows"], f["columns"]) == (rows, columns))
            for rows in ROWS
            for columns in COLUMNS
        }
        print(f"{n} processes: most bytes sent by one, by (rows, columns): {most}")
        few, many = ROWS
        for columns in COLUMNS:
            assert most[many, columns] == pytest.approx(most[few, columns], rel=0.02)
            moments = 8 * columns**2
            assert moments < most[many, columns] < 2.2 * moments + 200_000
        assert most[many, COLUMNS[1]] > 3 * most[many, COLUMNS[0]] * 0.9
