"""The stores of every_store.py again, in a zip archive, on a web server and in a bucket of S3: each step of probe.c ends as it does in a folder."""
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from every_store import CASES
from test_hostile import BUILD, ENVIRONMENT, compare, compare_cost, probe, pytestmark, write_store  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import nginx  # noqa: E402
import s3_server  # noqa: E402

# Keys are not files: that of a chunk is missing, although a part of its path is a key. In a folder it is an error.
FILE_AMONG_FOLDERS = {"file_where_a_folder_of_chunks_belongs", "folder_of_chunks_is_file", "v2_folder_of_chunks_is_file"}
ONLY_LONG = {"chunk_very_long", "v2_chunk_very_long"}  # sparse files, which nginx serves as others


def make_case(name, served=()):
    if name in FILE_AMONG_FOLDERS:
        pytest.skip("a missing key below another key")
    made = CASES[name]()
    if made.prepare and name not in served:
        pytest.skip("a folder, link or device where a file belongs")
    return made


def compare_read_only(made, steps):
    """As compare(). A write fails by itself, or because the store cannot write."""
    status, text = steps.get("write", ("unsupported", ""))
    if status == "unsupported" and (not text or "stores of kind http cannot write" in text):
        steps.pop("write", None)
    elif status == "ok":
        return ["the http store took a write"]
    return compare(made, steps)


def compare_members(made, path):
    """Yields the keys that a write that failed has changed."""
    with zipfile.ZipFile(path) as archive:
        for key, value in made.files.items():
            if archive.read(key) != value:
                yield f"a write that failed changed {key}"


@pytest.fixture(scope="module")
def www(tmp_path_factory):
    """A folder, and the URL where nginx serves it."""
    if nginx.find_program() is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("www")
    with nginx.start(folder) as server:
        yield folder, server.url


@pytest.mark.parametrize("name", CASES)
def test_archive(name, tmp_path):
    made, path = make_case(name), tmp_path / "store.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in made.files.items():
            archive.writestr(key, value)
    steps, slowest, peak = probe(path, made)
    wrong = [*compare(made, steps), *compare_cost(made, slowest, peak)]
    if steps.get("write", ("ok",))[0] != "ok":
        wrong += compare_members(made, path)
    assert not wrong, "\n".join(wrong)
    path.unlink()


@pytest.mark.parametrize("name", CASES)
def test_server(name, www):
    folder, url = www
    made = make_case(name, ONLY_LONG)
    write_store(folder / name, made)
    steps, slowest, peak = probe(f"{url}/{name}", made)
    wrong = [*compare_read_only(made, steps), *compare_cost(made, slowest, peak)]
    assert not wrong, "\n".join(wrong)
    shutil.rmtree(folder / name)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """The folder that is a bucket; the programs that run meanwhile find its server and its credentials."""
    folder = tmp_path_factory.mktemp("s3") / s3_server.BUCKET
    folder.mkdir()
    with s3_server.start_service(folder) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.make_variables(server.url).items():
            patch.setitem(ENVIRONMENT, name, value)
        done = subprocess.run([BUILD / "tests/hostile_probe", f"s3://{s3_server.BUCKET}/none"], capture_output=True, env=ENVIRONMENT, text=True)
        if done.returncode and "S3: " in done.stderr:
            pytest.skip(done.stderr.strip())  # a library is missing
        yield folder


@pytest.mark.parametrize("name", CASES)
def test_bucket(name, bucket):
    made = make_case(name)
    write_store(bucket / name, made)
    steps, slowest, peak = probe(f"s3://{s3_server.BUCKET}/{name}", made)
    wrong = [*compare(made, steps), *compare_cost(made, slowest, peak)]
    if steps.get("write", ("ok",))[0] != "ok":
        wrong += [f"a write that failed changed {key}" for key, value in made.files.items() if (bucket / name / key).read_bytes() != value]
    assert not wrong, "\n".join(wrong)
    shutil.rmtree(bucket / name)
