"""Downloads from a server in this process: complete and verified, or no file and an error of one line."""

import hashlib
import http.server
import threading
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from test_data import write_mnist

from orbit.core.errors import DataFileError
from orbit.data import CIFAR10, MNIST, QM7, SpokenDigits, cifar10, files, mnist, qm7, spoken_digits

CONTENT = bytes(range(256)) * 9000  # more than two chunks
ANSWERS = {"/good": (200, CONTENT, len(CONTENT)), "/short": (200, CONTENT[:-1], len(CONTENT)), "/gone": (404, b"", 0)}


class Handler(http.server.BaseHTTPRequestHandler):
    folder: Path

    def do_GET(self):
        path = self.folder / self.path.lstrip("/")
        known = (200, path.read_bytes(), path.stat().st_size) if path.is_file() else (404, b"", 0)
        status, content, length = ANSWERS.get(self.path, known)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """The address of a server of the files in ``tmp_path / "upstream"``."""
    handler = type("FolderHandler", (Handler,), {"folder": tmp_path / "upstream"})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()  # how late it ends
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def file_at(url: str, content: bytes | None = CONTENT) -> files.DataFile:
    digest = None if content is None else hashlib.sha256(content).hexdigest()
    return files.DataFile("thing.bin", digest, "It is a thing.", url)


@pytest.mark.parametrize("content", [CONTENT, None], ids=["verified", "without a digest"])
def test_a_valid_file_is_downloaded(tmp_path, server, content):
    path = files.find(str(tmp_path), "things", file_at(f"{server}/good", content), download=True)
    assert path == tmp_path / "things" / "thing.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["thing.bin"]


def test_an_existing_file_is_not_downloaded_again(tmp_path):
    (tmp_path / "thing.bin").write_bytes(b"mine")
    found = files.find(str(tmp_path), "things", file_at("http://127.0.0.1:1/none"), download=True)
    assert found.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("page", "content", "message"),
    [
        ("good", b"else", "is not the expected file: expected sha256"),
        ("short", CONTENT, f"ended after {len(CONTENT) - 1} of {len(CONTENT)} bytes"),
        ("gone", CONTENT, "Not Found"),
    ],
)
def test_a_failed_download_leaves_no_file(tmp_path, server, page, content, message):
    with pytest.raises(DataFileError) as error:
        files.find(str(tmp_path), "things", file_at(f"{server}/{page}", content), download=True)
    text = str(error.value)
    for part in (message, f"{server}/{page}", "download: ", "It is a thing."):
        assert part in text
    assert "\n" not in text
    assert not list((tmp_path / "things").glob("*"))


def test_no_network_is_one_line(tmp_path):
    with pytest.raises(DataFileError) as error:
        files.find(str(tmp_path), "things", file_at("http://127.0.0.1:1/thing.bin"), download=True)
    text = str(error.value)
    assert "refused" in text
    assert str(tmp_path / "things" / "thing.bin") in text
    assert "set dataset.root to the folder" in text
    assert "\n" not in text


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, server):
    (tmp_path / "things").write_text("in the way")
    with pytest.raises(DataFileError, match=r"cannot fetch .*\(File exists\)"):
        files.fetch(file_at(f"{server}/good"), tmp_path / "things" / "thing.bin")


def test_mnist_downloads_what_is_missing_and_only_on_request(tmp_path, server, monkeypatch):
    write_mnist(tmp_path / "upstream", monkeypatch)
    names = ("TRAIN_IMAGES", "TRAIN_LABELS", "TEST_IMAGES", "TEST_LABELS")
    for name in names:
        file = getattr(mnist, name)
        monkeypatch.setattr(mnist, name, replace(file, url=f"{server}/{file.name}"))
    root = tmp_path / "root"
    with pytest.raises(DataFileError, match="fetch it with dataset.download=true"):
        MNIST(root=str(root)).load(0)
    assert not root.exists()
    loader = MNIST(root=str(root), download=True)
    loader.check_files()
    assert not root.exists(), "checking fetches nothing"
    assert loader.load(0).X_train.shape == (40, 6, 6)
    assert sorted(p.name for p in (root / "mnist").iterdir()) == sorted(getattr(mnist, name).name for name in names)
    MNIST(root=str(root)).load(0)


@pytest.mark.parametrize(
    ("loader", "module", "constant", "folder"),
    [
        (CIFAR10, cifar10, "ARCHIVE", "cifar10"),
        (QM7, qm7, "QM7_FILE", "qm7"),
        (SpokenDigits, spoken_digits, "ARCHIVE", "spoken_digits"),
    ],
)
def test_every_loader_of_upstream_files_downloads(tmp_path, server, monkeypatch, loader, module, constant, folder):
    """The downloaded file is not the real one, so reading it raises, after the download."""
    file = replace(getattr(module, constant), sha256=None, url=f"{server}/good")
    monkeypatch.setattr(module, constant, file)
    with pytest.raises(DataFileError, match=file.name):
        loader(root=str(tmp_path), download=True).load(0)
    assert (tmp_path / folder / file.name).read_bytes() == CONTENT


def test_every_address_is_encrypted_and_fixed():
    modules = cifar10, mnist, qm7, spoken_digits
    found = [value for module in modules for value in vars(module).values() if isinstance(value, files.DataFile)]
    fetched = {file.name: file for file in found if file.url is not None}
    assert len(fetched) == 7
    assert all(file.url.startswith("https://") and "/heads/" not in file.url for file in fetched.values())
    hosts = {file.url.split("/")[2] for file in fetched.values()}
    deepchem = "deepchemdata.s3-us-west-1.amazonaws.com"
    assert hosts == {"ossci-datasets.s3.amazonaws.com", deepchem, "www.cs.toronto.edu", "github.com"}
    without = sorted(name for name, file in fetched.items() if file.sha256 is None)
    assert without == ["free-spoken-digit-dataset-1.0.10.zip", "qm7.mat"], "no digest of these is published"


def test_a_redirection_to_an_address_without_encryption_is_refused(tmp_path, server, monkeypatch):
    fetch = urllib.request.urlopen
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, **options: fetch(f"{server}/good", **options))
    with pytest.raises(DataFileError, match=r"redirected to http://127\.0\.0\.1:\d+/good, which is not encrypted"):
        files.find(str(tmp_path), "things", file_at("https://here.org/thing.bin"), download=True)
    assert not list(tmp_path.rglob("thing*"))


def test_the_digest_of_a_file_without_a_published_one_is_reported(tmp_path, server, log_messages):
    files.find(str(tmp_path), "things", file_at(f"{server}/good", None), download=True)
    assert f"sha256 of the file that was fetched: {hashlib.sha256(CONTENT).hexdigest()}" in "\n".join(log_messages)
