"""Processes of a fit of parts, which print the bytes that each sends, as the kernel counts them: a JSON object a line.

Started by tests/core/test_sent_bytes.py with the folders of parts: ``python tests/sent_bytes.py FOLDER ...`` starts
``WORLD_SIZE`` processes, which share one import of the packages.
"""

import contextlib
import json
import os
import socket
import struct
import sys

import numpy as np

from orbit import Engine, RidgeRegressor, Shards
from orbit.core import distributed
from orbit.core.ranks import ShareDone, rank
from orbit.learners.streaming import FeatureStream, fit_stream, sample_rows

COLUMNS = (200, 400)

# Where struct tcp_info of Linux has tcpi_bytes_sent and, after it, tcpi_bytes_retrans, which is a part of it.
_BYTES_SENT = 200


def sent() -> int:
    """Bytes that all TCP connections of this process have sent, without retransmissions."""
    total = 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(descriptor))) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        except OSError:  # no TCP connection
            continue
        everything, retransmitted = struct.unpack_from("QQ", info, _BYTES_SENT)
        total += everything - retransmitted
    return total


def fit(folder: str, columns: int) -> int:
    """Fit a ridge to cosines of random projections; the number of rows in the parts."""
    data = Shards(folder, target="y", most_test=200).load(0, lazy=True)
    engine = Engine(progress=False)
    n, d = data.X_train.shape
    data = data.own(sample_rows(n, 0, engine)[:200])
    frequencies = np.random.default_rng(0).standard_normal((d, columns))
    stream = FeatureStream(lambda X: np.cos(X @ frequencies), data.X_train, columns, engine)
    with contextlib.suppress(ShareDone):
        fit_stream(RidgeRegressor(1e-3), stream, data.y_train, "regression")
    return n + len(data.X_test)


def work(folders: list[str]) -> None:
    with distributed.job():
        for folder in folders:
            for columns in COLUMNS:
                before = sent()
                rows = fit(folder, columns)
                found = {"rank": rank(), "rows": rows, "columns": columns, "sent": sent() - before}
                os.write(1, f"{json.dumps(found)}\n".encode())  # in one piece: all processes have one pipe


if __name__ == "__main__":  # pytest imports it, for its doctests
    processes = list[int]()
    for own in range(int(os.environ["WORLD_SIZE"])):
        if (process := os.fork()) == 0:
            os.environ["RANK"] = str(own)
            work(sys.argv[1:])
            os._exit(0)
        processes.append(process)
    ended = [os.waitpid(process, 0)[1] for process in processes]
    sys.exit(any(ended))
