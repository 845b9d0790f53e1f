"""A sweep on PostgreSQL, whose password is in the environment, and artifacts are in the outputs.

Needs the server (Debian: ``apt-get install postgresql``) and its driver (``pip install 'orbit-kernels[postgres]'``).
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from command_line import SMALL

pytest.importorskip("psycopg", reason="needs pip install 'orbit-kernels[postgres]'")

ROOT = Path(__file__).parents[2]
SECRET = "pa55-w0rd-of-ann"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BINARIES, reason="needs PostgreSQL in /usr/lib/postgresql")]


@pytest.fixture
def server(monkeypatch) -> str:
    """The URI of a new database of a new server, which demands the password in ``PGPASSWORD``."""
    folder = Path(tempfile.mkdtemp())  # not one of pytest's, which are root's own
    (folder / "password").write_text(SECRET)
    as_postgres = []
    if os.getuid() == 0:  # the server refuses to run as root
        for path in (folder, folder / "password"):
            shutil.chown(path, "postgres")
        as_postgres = ["runuser", "-u", "postgres", "--"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def execute(program: str, *arguments: str) -> None:
        command = [*as_postgres, str(BINARIES[-1] / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)

    execute("initdb", "--username=ann", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    execute("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    monkeypatch.setenv("PGPASSWORD", SECRET)
    yield f"postgresql://ann@127.0.0.1:{port}/postgres"
    execute("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)


def test_sweep_leaves_no_byte_of_the_password(tmp_path, server):
    """Two workers, of whose jobs one fails; the database's own content is searched, too."""
    command = [sys.executable, str(ROOT / "run.py"), "-m", f"tracking.uri={server}", f"outputs={tmp_path / 'out'}"]
    jobs = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", *SMALL[:-1], "dataset.n_train=60,5000"]
    done = subprocess.run([*command, *jobs], cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 jobs finished" in done.stdout
    assert "pa55" not in done.stdout + done.stderr
    dump = subprocess.run(
        [BINARIES[-1] / "pg_dump", "--data-only", f"--dbname={server}"], capture_output=True, check=True
    )
    assert b"rotation-nystrom" in dump.stdout
    assert b"pa55" not in dump.stdout
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("artifacts" in path.parts and path.name == "metrics.json" for path in files)
    assert [path for path in files if b"pa55" in path.read_bytes()] == []
    assert not (tmp_path / "mlruns").exists()
