"""Stores of S3: how a URL is opened, names of options of other packages, and other packages that read the same bucket."""
import asyncio
import collections
import concurrent.futures
import contextlib
import ctypes
import importlib.util
import itertools
import json
import logging
import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest
import s3_server
import zarr
from s3_large import start_large_service
from s3_server import BUCKET, ID, SECRET, start_service, start_versitygw

import zarrc

DATA = np.arange(64 * 64, dtype="int32").reshape(64, 64)
URL = f"s3://{BUCKET}/lab/x.zarr"
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
NATIVE = {"access_key_id": ID, "secret_access_key": SECRET, "region": "us-east-1"}


@pytest.fixture(autouse=True)
def no_secrets(caplog, capfd):
    """Neither logs nor outputs nor the errors that a test keeps show a key."""
    caplog.set_level(logging.DEBUG, "zarrc")
    yield
    out = capfd.readouterr()
    assert SECRET not in caplog.text + out.out + out.err
    print(out.out)


@pytest.fixture(autouse=True)
def native(monkeypatch):
    """No variable or file of the machine counts. Without the libraries, other packages open URLs."""
    for name, value in s3_server.WITHOUT.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    try:
        zarrc.open_store("s3://any", mode="r", storage_options={"anonymous": True})
    except (zarrc.errors.UnsupportedError, ImportError) as problem:
        pytest.skip(str(problem))


@pytest.fixture
def buckets(tmp_path):
    folder = tmp_path / "buckets"
    zarrc.create_array(folder / BUCKET / "lab/x.zarr", name="plain", data=DATA, chunks=(16, 16))
    zarrc.create_array(folder / BUCKET / "lab/x.zarr", name="in/shards", data=DATA, chunks=(16, 16), shards=(32, 32))
    return folder


@pytest.fixture
def server(buckets):
    with start_service(buckets / BUCKET, page=5) as found:
        yield found


def test_a_hierarchy(server, buckets):
    group = zarrc.open(URL, mode="r", storage_options={**NATIVE, "endpoint": server.url})
    assert sorted(group) == ["in", "plain"] and group.store.read_only
    np.testing.assert_array_equal(group["plain"][...], DATA)
    np.testing.assert_array_equal(group["in/shards"][3:40:3, 5:], DATA[3:40:3, 5:])
    store = group.store
    assert sorted(store.list()) == sorted(zarrc.open_store(buckets / BUCKET / "lab/x.zarr", mode="r").list())
    assert sorted(store.list_dir("in")) == ["shards", "zarr.json"] and list(store.list_prefix("nothing")) == []
    value = (buckets / BUCKET / "lab/x.zarr/plain/c/0/0").read_bytes()
    assert store.get("plain/c/0/0", 3, 5) == value[3:8] and store.get("plain/c/0/0", len(value) + 7, 5) == b""
    assert store.getsize("plain/c/0/0") == len(value) and "plain/c/9/9" not in store
    with pytest.raises(zarrc.errors.ReadOnlyError):
        store.set("k", b"")


def test_values_are_written(server, buckets):
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url})
    assert not store.read_only
    for key, value in (("new/s +%", b"value"), ("new/empty", b""), ("new/large", bytes(3 << 20)), ("new/s +%", b"other")):
        store.set(key, value)
        assert store.get(key) == value and (buckets / BUCKET / "lab/x.zarr" / key).read_bytes() == value
    store.delete("new/empty")
    store.delete("new/none")  # a bucket does not tell what was there
    assert sorted(store.list_prefix("new")) == ["new/large", "new/s +%"]
    store.delete_dir("new")
    assert list(store.list_prefix("new")) == []


def test_a_write_whose_answer_is_lost(server):
    """A HEAD tells by the id of the write whether the value is its own."""
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url, "tries": 2})

    def fault(request):
        if request.method == "PUT":
            server.service.put(request, "lab/x.zarr/key")
            return 500, {}, b""
        return None if "HEAD" in answered else (500, {}, b"") if request.method == "HEAD" else None

    answered = ["HEAD"]
    server.service.fault = fault
    server.log.clear()
    store.set("key", b"1")
    assert [row.split()[0] for row in server.log] == ["PUT", "PUT", "HEAD"]
    answered.clear()
    with pytest.raises(OSError, match="unknown whether this write succeeded"):
        store.set("key", b"2")


@pytest.mark.parametrize("status", [400, 401, 403, 301])
@pytest.mark.parametrize("written", [True, False])
def test_a_refusal_after_a_lost_answer(server, status, written):
    """It tells nothing of the first try: a HEAD does."""
    store, tries = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url}), []

    def fault(request):
        if request.method != "PUT":
            return None if written else s3_server.answer_error(403, "AccessDenied")
        tries.append(request)
        if len(tries) > 1:
            return s3_server.answer_error(status, "AccessDenied")
        server.service.put(request, "lab/x.zarr/key")
        return 500, {}, b""

    server.service.fault = fault
    server.log.clear()
    if written:
        store.set("key", b"1")
    else:
        with pytest.raises(OSError, match="unknown whether this write succeeded"):
            store.set("key", b"1")
    assert [row.split()[0] for row in server.log] == ["PUT", "PUT", "HEAD"]


def test_an_answer_to_a_write_that_is_too_long(server):
    """It is not read to its end; a HEAD tells that the value was written."""
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url})
    server.service.fault = lambda request: (*server.service.put(request, "lab/x.zarr/key")[:2], bytes((1 << 20) + 1)) if request.method == "PUT" else None
    server.log.clear()
    store.set("key", b"1")
    assert [row.split()[0] for row in server.log] == ["PUT", "HEAD"] and store.get("key") == b"1"


CUSTOMER_KEY = {f"x-amz-server-side-encryption-customer-{name}": value for name, value in
                (("algorithm", "AES256"), ("key", "a2V5"), ("key-md5", "bWQ1"))}  # which reads need, too


def test_checksums_and_headers_of_new_objects(server):
    seen = {}

    def fault(request):
        seen[request.method] = {name.lower(): value for name, value in request.headers.items()}

    server.service.fault = fault
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url, "checksums": True,
                                                   "headers": {"x-amz-storage-class": "STANDARD_IA", "x-amz-request-payer": "requester",
                                                               "x-amz-server-side-encryption": "aws:kms", **CUSTOMER_KEY}})
    store.set("key", b"1")
    assert store.get("key") == b"1"
    assert seen["PUT"]["x-amz-checksum-sha256"] == "a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=" and "x-amz-checksum-sha256" not in seen["GET"]
    assert seen["PUT"]["x-amz-storage-class"] == "STANDARD_IA" and "x-amz-storage-class" not in seen["GET"]
    assert seen["PUT"]["x-amz-request-payer"] == seen["GET"]["x-amz-request-payer"] == "requester"
    assert seen["PUT"]["x-amz-server-side-encryption"] == "aws:kms" and "x-amz-server-side-encryption" not in seen["GET"]
    assert all(seen[method][name] == value for method in ("PUT", "GET") for name, value in CUSTOMER_KEY.items())


# ---- writes under conditions ----


def open_array(server, name="plain", **options):
    return zarrc.open(f"{URL}/{name}", mode="r+", storage_options={**NATIVE, "endpoint": server.url, **options})


def list_writes(server, part=""):
    return [tuple(row.split()[::2]) for row in server.log if part in row and row.split()[0] in ("PUT", "DELETE")]


def test_a_probe_comes_once_and_takes_no_key_of_others(server, buckets):
    files = sorted(file for file in buckets.rglob("*") if file.is_file())
    server.log.clear()
    for _ in range(2):
        open_array(server)[1, 1] = 7
        open_array(server, "in/shards")[1, 1] = 7
    assert list_writes(server, "probe") == [("PUT", "200"), ("PUT", "412"), ("PUT", "412"), ("PUT", "200"), ("DELETE", "204")]
    assert all("/lab/x.zarr/.zarrc-probe-" in row for row in server.log if "probe" in row)
    assert sorted(file for file in buckets.rglob("*") if file.is_file()) == files
    assert open_array(server)[1, 1] == 7 and open_array(server)[1, 2] == DATA[1, 2]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_during_a_probe(server):
    """The child makes its own, and leaves that of its parent alone."""
    array, keys, came, goes_on = open_array(server), [], threading.Event(), threading.Event()

    def gate(request):
        if "probe" in request.path and request.method == "PUT":
            keys.append(request.path)
            if len(keys) == 1:
                came.set()
                goes_on.wait(60)

    server.gate = gate
    writer = threading.Thread(target=array.__setitem__, args=((1, 1), 7))
    writer.start()
    assert came.wait(60)
    child = os.fork()
    if child == 0:
        try:
            array[2, 2] = 8
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not any(row.startswith("DELETE") and keys[0] in row for row in server.log)
    goes_on.set()
    writer.join()
    assert len(set(keys)) == 2 and (array[1, 1], array[2, 2]) == (7, 8) and not list(server.service.folder.rglob("*probe*"))


@pytest.mark.parametrize("most", [2, 3])
@pytest.mark.parametrize("case", ["If-Match", "If-None-Match", "right"])
def test_a_doubtful_probe_is_made_again(server, case, most):
    """A probe shows nothing of the server if a `clean` erased its key, or if its right PUT was refused: a second try is where ETags are new each time.
    After the third one the doubt counts for a while."""
    keys = []

    def fault(request):
        if "probe" not in request.path or request.method != "PUT" or request.path in keys or len(keys) == most:
            return None
        if case in request.headers:
            keys.append(request.path)
            server.service.erase(server.service.find_key(request))
        elif case == "right" and request.headers.get("If-Match", "0" * 32).count("0") < 32:
            keys.append(request.path)
            return s3_server.answer_error(412, "PreconditionFailed")
        return None

    server.service.fault = fault
    array = open_array(server)
    if most == 2:
        array[1, 1] = 7
        assert array[1, 1] == 7
    else:
        for _ in range(2):
            with pytest.raises(zarrc.errors.UnsupportedError, match="3 probes did not show whether .*conditional=none.*conditional=etag"):
                open_array(server)[1, 1] = 7
    n_probes = len({row.split()[1] for row in server.log if "probe" in row})
    assert (len(keys), n_probes) == (most, 3) and not list(server.service.folder.rglob("*probe*"))


def test_threads_share_a_probe(server):
    array = open_array(server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: array.__setitem__((k, k), 7), range(64)))
    assert (array[...].diagonal() == 7).all() and len(list_writes(server, "probe")) == 5


def test_known_answers_need_no_probe(server):
    server.log.clear()
    open_array(server, conditional="etag")[1, 1] = 7
    assert not list_writes(server, "probe") and list_writes(server) == [("PUT", "200")]
    with pytest.raises(ValueError, match="conditional"):
        open_array(server, conditional="always")


NOT_IMPLEMENTED = s3_server.answer_error(501, "NotImplemented")


@pytest.mark.parametrize("ignored", [("PUT If-None-Match",), ("PUT If-Match",), ("PUT If-Match", "PUT If-None-Match", "DELETE If-Match"), "501"])
def test_a_server_without_conditions(server, ignored):
    """Partial writes and creations are refused, unless an option allows them. The text says what a probe saw."""
    seen = {("PUT If-None-Match",): "replaces a value although If-None-Match", "501": "no answer to a condition but HTTP"}.get(
        ignored, "a probe showed .*replaces a value although If-Match has another ETag")
    if ignored == "501":
        server.service.fault = lambda request: NOT_IMPLEMENTED if request.method != "GET" and (
            "If-Match" in request.headers or "If-None-Match" in request.headers) else None
    else:
        server.service.ignores = set(ignored)
    for _ in range(2):
        with pytest.raises(zarrc.errors.UnsupportedError, match=f"{seen}.*conditional=none"):
            open_array(server)[1, 1] = 7
    with pytest.raises(zarrc.errors.UnsupportedError, match="conditional=none"):
        zarrc.create_array(URL, name="new", shape=(3,), dtype="i1", storage_options={**NATIVE, "endpoint": server.url})
    assert not any(row.split()[0] == "PUT" and "probe" not in row for row in server.log)
    open_array(server)[:16, :16] = 5  # a whole chunk needs no condition
    open_array(server, conditional="none")[1, 1] = 7
    zarrc.create_array(URL, name="new", data=DATA, storage_options={**NATIVE, "endpoint": server.url, "conditional": "none"}).attrs["a"] = 1
    assert (open_array(server, "new")[...] == DATA).all() and open_array(server, "new").attrs["a"] == 1
    assert open_array(server)[1, 1] == 7 and open_array(server)[1, 2] == 5 and not list(server.service.folder.rglob("*probe*"))


def test_deletes_have_no_condition_but_on_aws(server):
    """Elsewhere chunks of fill values are stored, although the server keeps the condition when asked once."""
    for name in ("plain", "in/shards"):
        array = open_array(server, name)
        array[1, 1] = 7
        for row in range(32):
            array[row, :16] = 0
            array[row, 16:32] = 0
        assert (array[:32, :32] == 0).all() and (array[32:] == DATA[32:]).all()
    assert not any("DELETE" in row for row in server.log if "probe" not in row)
    open_array(server)[:16, :16] = 0  # no condition is needed
    assert list_writes(server, "plain/c/0/0")[-1] == ("DELETE", "204")


def test_deletes_have_a_condition_on_aws(server, monkeypatch):
    """The server is a proxy for its host."""
    conditions = []

    def fault(request):
        request.path = request.path.removeprefix("http://s3.us-east-1.amazonaws.com")
        if request.method == "DELETE":
            conditions.append(request.headers["If-Match"])

    server.service.fault = fault
    monkeypatch.setenv("http_proxy", server.url)
    array = open_array(server, endpoint="http://s3.us-east-1.amazonaws.com", style="path")
    for row in range(16):
        array[row, :16] = 0
    assert len(conditions) == 1 and conditions[0] and not list_writes(server, "probe")
    assert not (server.service.folder / "lab/x.zarr/plain/c/0/0").exists() and (array[:16, :16] == 0).all()


@pytest.mark.parametrize("status", [412, 409, 404, "erased"])
def test_a_write_is_repeated_after_a_conflict(server, status):
    """The other change is kept."""
    array, path = open_array(server), server.service.folder / "lab/x.zarr/plain/c/0/0"
    array[0, 0] = 1
    other = open_array(server)
    changes = []

    def fault(request):
        if request.method != "PUT" or "/c/0/0" not in request.path or changes:
            return None
        changes.append(request.headers["If-Match"])
        if status == "erased":
            path.unlink()
        elif status == 412:
            server.service.fault = None
            array_bytes = path.read_bytes()
            other_local[1, 1] = 77
            assert path.read_bytes() != array_bytes
            server.service.fault = fault
        return None if status in (412, "erased") else s3_server.answer_error(status, "NoSuchKey" if status == 404 else "ConditionalRequestConflict")

    other_local = zarrc.open(server.service.folder / "lab/x.zarr/plain", mode="r+")
    server.service.fault = fault
    array[2, 2] = 5
    assert changes and other[2, 2] == 5
    assert other[1, 1] == (77 if status == 412 else 0 if status == "erased" else DATA[1, 1])


def test_answers_that_are_lost(server):
    """No write is refused because of its own first try."""
    seen = set()

    def fault(request):
        ident = request.headers.get("x-amz-meta-zarrc-write")
        if request.method == "PUT" and ident and ident not in seen:
            seen.add(ident)
            server.service.fault = None
            server.service(request)
            server.service.fault = fault
            return server.service.LOST
        return None

    server.service.fault = fault
    options = {**NATIVE, "endpoint": server.url}
    array = zarrc.create_array(URL, name="new", shape=(8, 8), chunks=(4, 4), dtype="i4", storage_options=options)
    for k in range(8):
        array[k, k] = k + 1
    array.attrs["units"] = "m"
    array.append(np.full((4, 8), 9, "i4"))
    found = zarrc.open(f"{URL}/new", mode="r", storage_options=options)
    np.testing.assert_array_equal(found[:8].diagonal(), np.arange(1, 9))
    assert found.shape == (12, 8) and (found[8:] == 9).all() and found.attrs["units"] == "m" and len(seen) > 10


def test_writes_are_sent_again(server):
    """To the region that the service names, by its clock, and after it was busy; without a HEAD if the last answer tells all."""
    array = open_array(server)
    array[0, 0] = 1
    server.service.region = "eu-west-1"
    answers = [s3_server.answer_error(503, "SlowDown"), s3_server.answer_error(500, "InternalError"),
               s3_server.answer_error(400, "AuthorizationHeaderMalformed", region="eu-west-1")]
    server.service.fault = lambda request: answers.pop() if answers and request.method == "PUT" else s3_server.answer_error(
        400, "AuthorizationHeaderMalformed", region="eu-west-1") if "us-east-1" in request.headers["Authorization"] else None
    server.log.clear()
    array[2, 2] = 5
    assert array[2, 2] == 5 and array[0, 0] == 1 and array[0, 1] == DATA[0, 1] and not answers
    assert list_writes(server, "/c/0/0") == [("PUT", "400"), ("PUT", "500"), ("PUT", "503"), ("PUT", "200")]


def test_a_conflict_without_a_condition_passes(server):
    """So says AWS while a conditional write of the same key runs."""
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url})
    left = [s3_server.answer_error(409, "OperationAborted")] * 4
    server.service.fault = lambda request: left.pop() if left and request.method in ("PUT", "DELETE") else None
    store.set("key", b"1")
    left.extend([s3_server.answer_error(409, "OperationAborted")] * 2)
    store.delete("key")
    assert "key" not in store and not left


def test_an_outcome_that_is_unknown_is_no_conflict(server):
    array = open_array(server, tries=2)
    array[0, 0] = 1

    def fault(request):
        if request.method == "PUT":
            server.service.put(request, server.service.find_key(request))
            return server.service.LOST
        return (500, {}, b"") if request.method == "HEAD" and "/c/" in request.path else None

    server.service.fault = fault
    with pytest.raises(OSError, match="unknown whether this write succeeded") as found:
        array[2, 2] = 5
    assert not isinstance(found.value, zarrc.errors.ConflictError)
    assert {status for _, status in list_writes(server, "/c/0/0")[1:]} == {"None"}


def test_a_lost_write_of_another_is_a_conflict(server):
    """The HEAD finds another value: then the change is made anew on top of it."""
    array, other = open_array(server), zarrc.open(server.service.folder / "lab/x.zarr/plain", mode="r+")
    array[0, 0] = 1
    lost = []

    def fault(request):
        if request.method == "PUT" and "/c/0/0" in request.path and not lost:
            lost.append(request)
            other[1, 1] = 77
            return server.service.LOST
        return None

    server.service.fault = fault
    array[2, 2] = 5
    assert array[2, 2] == 5 and array[1, 1] == 77 and ("PUT", "412") in list_writes(server)


@pytest.mark.parametrize("first", ["another writer", "its repetition"])
@pytest.mark.parametrize("condition", ["If-Match", "If-None-Match"])
def test_a_condition_that_is_delayed(server, condition, first):
    """The service judges it after it has carried out what another writer sent, or what the client sent again after it stopped waiting."""
    folder, finished, held = server.service.folder / "lab/x.zarr", threading.Event(), []
    options = {**NATIVE, "endpoint": server.url, "conditional": "etag", "stall_s": 1 if first == "its repetition" else 60}
    key = "plain/c/0/0" if condition == "If-Match" else "new/zarr.json"

    def gate(request):
        if request.method != "PUT" or key not in request.path or held:
            return
        held.append(request.headers.get(condition))
        if first == "its repetition":
            finished.wait(60)
        elif condition == "If-Match":
            zarrc.open(folder / "plain", mode="r+")[1, 1] = 77
        else:
            zarrc.create_array(folder, name="new", shape=(3,), dtype="i1")

    server.gate = gate
    is_refused = (condition, first) == ("If-None-Match", "another writer")
    with pytest.raises(zarrc.errors.ExistsError) if is_refused else contextlib.nullcontext():
        if condition == "If-Match":
            zarrc.open(f"{URL}/plain", mode="r+", storage_options=options)[2, 2] = 5
        else:
            zarrc.create_array(URL, name="new", shape=(7,), dtype="i2", storage_options=options)
    finished.set()
    wanted = ["412"] if is_refused else ["412", "200"] if first == "another writer" else ["200", "412"]
    while len(found := [status for _, status in list_writes(server, key)]) < len(wanted):
        time.sleep(0.01)
    assert held[0] and found[:2] == wanted and set(found[2:]) <= {"412"}  # on a slow machine the client may repeat it once more
    found = zarrc.open(folder, mode="r")
    if condition == "If-Match":
        assert found["plain"][2, 2] == 5 and found["plain"][1, 1] == (77 if first == "another writer" else DATA[1, 1])
    else:
        assert found["new"].shape == ((3,) if is_refused else (7,))


def test_a_delete_whose_answer_is_lost_or_late(server, monkeypatch):
    """On AWS it has a condition. That the key is gone when it is sent again is no failure; a value that another writer put there stays."""
    path, seen = server.service.folder / "lab/x.zarr/plain/c/0/0", []

    def fault(request):  # the server is a proxy for the host
        request.path = request.path.removeprefix("http://s3.us-east-1.amazonaws.com")
        if request.method != "DELETE" or len(seen) > 1:
            return None
        seen.append(request.headers["If-Match"])
        if len(seen) == 1:
            other[5, 5] = 77
            return None
        server.service.fault = None
        server.service(request)
        server.service.fault = fault
        return server.service.LOST

    server.service.fault = fault
    monkeypatch.setenv("http_proxy", server.url)
    array, other = open_array(server, endpoint="http://s3.us-east-1.amazonaws.com", style="path"), zarrc.open(path.parents[2], mode="r+")
    array[:16, :8] = 0
    array[:16, 8:16] = 0
    assert array[5, 5] == 77 and path.exists() and len(seen) == 1
    array[5, 5] = 0
    assert len(seen) == 2 and all(seen) and not path.exists() and (array[:16, :16] == 0).all()


@pytest.fixture(params=["own", "versitygw"])
def endpoint(request, buckets, monkeypatch):
    """Servers that count in tests of lost updates, which spawned processes can reach."""
    program, why = s3_server.find_versitygw()
    if request.param == "versitygw" and not program:
        pytest.skip(why)
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent) + ":" + os.pathsep.join(sys.path))
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(start_versitygw(buckets)) if program and request.param == "versitygw" else \
            stack.enter_context(start_service(buckets / BUCKET)).url


def update_rows(endpoint, number, n_updates):
    """Changes elements of its own in shards of all writers; returns what failed."""
    failed = []
    array = zarrc.open(f"{URL}/in/updated", mode="r+", storage_options={**NATIVE, "endpoint": endpoint})
    for k in range(n_updates):
        try:
            array[k % 64, number::9] = k
        except Exception as problem:
            failed.append(f"{type(problem)}: {problem}")
    return failed


def update_until_killed(endpoint, first, told):
    """Changes elements of its own, too, and tells which updates are done."""
    array = zarrc.open(f"{URL}/in/updated", mode="r+", storage_options={**NATIVE, "endpoint": endpoint})
    for k in itertools.count(first):
        array[k % 64, 8::9] = k
        told.send(k)


def kill_writers(endpoint, is_done):
    """Kills one writer after the other, each during an update. Returns what may be in each row."""
    spawn, draw, k, found = multiprocessing.get_context("spawn"), random.Random(7), 0, {row: {0} for row in range(64)}
    while not is_done():
        ours, theirs = spawn.Pipe(duplex=False)
        writer = spawn.Process(target=update_until_killed, args=(endpoint, k, theirs))
        writer.start()
        theirs.close()
        n_left = draw.randrange(1, 9)
        with contextlib.suppress(EOFError), ours:
            while True:
                k = ours.recv()
                found[k % 64] = {k}
                n_left -= 1
                if n_left == 0:
                    writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
        found[(k + 1) % 64].add(k + 1)  # it may have succeeded
        k += 2
    return found


def test_no_update_is_lost(buckets, endpoint):
    """Eight processes, 1,000 updates of shards that all of them change (make test-long: 10,000), while a ninth one is killed again and again."""
    n_updates = 1250 if LONG else 125
    zarrc.create_array(URL, name="in/updated", shape=(64, 64), chunks=(16, 16), shards=(32, 32), dtype="int32", storage_options={**NATIVE, "endpoint": endpoint})
    with concurrent.futures.ProcessPoolExecutor(8, multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(update_rows, endpoint, i, n_updates) for i in range(8)]
        rows = kill_writers(endpoint, lambda: all(job.done() for job in jobs))
        assert [job.result() for job in jobs] == [[]] * 8
    array = zarrc.open(buckets / BUCKET / "lab/x.zarr/in/updated", mode="r")[...]
    for row in range(64):
        last = max(k for k in range(n_updates) if k % 64 == row)
        assert all(array[row, i] == last for i in range(64) if i % 9 < 8)
        assert set(array[row, 8::9]) <= rows[row] and all(len(set(array[row, 8 + h:32 + h:9])) == 1 for h in (0, 27)), (row, array[row, 8::9], rows[row])


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_without_a_lock(endpoint, scheduler, semaphores):
    """Blocks that match no shard, from four workers."""
    dask_array, edge = pytest.importorskip("dask.array"), 100 if LONG else 20
    data = np.arange(1, edge**3 + 1, dtype="f8").reshape((edge,) * 3)
    array = zarrc.create_array(f"{URL}/tasks", shape=data.shape, dtype=data.dtype, chunks=(edge // 4,) * 3, shards=(edge // 2,) * 3,
                               storage_options={**NATIVE, "endpoint": endpoint})
    dask_array.store(dask_array.from_array(data, chunks=edge * 3 // 10), array, lock=False, scheduler=scheduler, num_workers=4)
    np.testing.assert_array_equal(array[...], data)


# ---- many requests ----


class MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def count_held():
    """Memory, descriptors and threads of this process."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    found = mallinfo()
    return found.uordblks + found.hblkhd, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def soak(endpoint, n):
    """Runs some n operations in eight threads; returns what is wrong, and what was held after a quarter of them and at the end."""
    store, wrong = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": endpoint}), []

    def work(number, n_rounds):
        for k in range(n_rounds):
            key, value = f"soak/{number}", bytes([k % 256]) * (k * 7919 % 70000 + 1)
            store.set(key, value)
            found = store.get(key), store.get(key, 5, 9), store.getsize(key)
            store.delete(key)
            if found != (value, value[5:14], len(value)) or key in store:
                wrong.append(key)

    held = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for part in (n // 4, n - n // 4):
            list(pool.map(work, range(8), [part // 48 + 1] * 8))
            held.append(count_held())
    return wrong, held


@pytest.mark.timeout(1800)
def test_soak(server, monkeypatch):
    """Every eighth answer is a fault: nothing is wrong, and neither memory, descriptors nor threads grow. make test-long: 10^5 requests."""
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("no mallinfo2() here")
    draw, counts, n = random.Random(7), collections.Counter(), 100_000 if LONG else 1500
    faults = [s3_server.answer_error(503, "SlowDown"), s3_server.answer_error(500, "InternalError"), s3_server.answer_error(429, "TooManyRequests"),
              (502, {}, b"<html>"), (200, {"Content-Length": "70000", "Connection": "close"}, b"short"), server.service.LOST, "after"]

    def fault(request):
        name = draw.choice(faults) if draw.random() < 0.125 else None
        counts[str(name)] += 1
        if name != "after":
            return name if isinstance(name, tuple) and (name[0] != 200 or request.method == "GET") or name is server.service.LOST else None
        server.service.fault = None
        server.service(request)
        server.service.fault = fault
        return server.service.LOST

    server.service.fault = fault
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent) + ":" + os.pathsep.join(sys.path))
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        wrong, (first, last) = pool.submit(soak, server.url, n).result()
    print(f"{sum(counts.values())} requests, {counts[str(None)]} without a fault, (bytes, descriptors, threads): {first}, {last}")
    assert not wrong and sum(counts.values()) >= n and len(counts) == 1 + len(faults)
    assert last[0] < first[0] + (4 << 20) and last[1] < first[1] + 32 and last[2] < first[2] + 8, (first, last)


# ---- reading ----


def test_a_missing_key_after_head_costs_one_more_request_once(server):
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url}, mode="r")
    server.log.clear()
    for _ in range(2):
        with pytest.raises((KeyError, zarrc.errors.NotFoundError)):
            store.getsize("nothing")
    assert [row.split()[0] for row in server.log][:3].count("GET") == 1 and len(server.log) == 3
    lost = zarrc.open_store("s3://misspelt/x", storage_options={**NATIVE, "endpoint": server.url}, mode="r")
    with pytest.raises(OSError, match="NoSuchBucket"):
        lost.getsize("nothing")


@pytest.mark.parametrize("options", [
    {"key": ID, "secret": SECRET, "endpoint_url": "URL"}, {"aws_access_key_id": ID, "aws_secret_access_key": SECRET, "aws_endpoint": "URL", "aws_region": "us-east-1"},
    {**NATIVE, "endpoint": "URL", "virtual_hosted_style_request": False}, {"key": ID, "secret": SECRET, "client_kwargs": {"endpoint_url": "URL", "region_name": "us-east-1"}}])
def test_names_of_other_packages(server, options):
    told = json.loads(json.dumps(options).replace("URL", server.url))
    assert zarrc.open(URL, storage_options=told)["plain"][1, 1] == DATA[1, 1]


def test_anonymous_names(server):
    server.service.is_anonymous = True
    for name in ("anon", "anonymous", "skip_signature"):
        assert zarrc.open(URL, storage_options={name: True, "endpoint": server.url})["plain"][1, 1] == DATA[1, 1]


def test_all_options_are_known():
    from zarrc._remote import S3
    texts = ("access_key_id", "secret_access_key", "session_token", "region", "user", "password", "proxy", "no_proxy", "ca_file", "ca_folder", "netrc_file",
             "bearer_token")
    form = {"headers": {"a": "b"}, **dict.fromkeys(texts, "x"), "profile": "", "endpoint": "http://localhost", "style": "path", "conditional": "etag",
            **dict.fromkeys(("concurrency", "connect_ms", "stall_s", "tries"), 3),
            **dict.fromkeys(("allow_http", "anonymous", "checksums", "denied_is_missing", "netrc", "requester_pays", "untrusted"), True), "tls_unverified": False}
    assert form.keys() == S3
    refused = ("user", "password", "bearer_token", "netrc", "netrc_file")
    keys = ("access_key_id", "secret_access_key", "session_token")
    for left_out in ((*refused, "anonymous"), (*refused, *keys)):
        options = {name: value for name, value in form.items() if name not in left_out}
        assert zarrc.open_store("s3://any", mode="r", storage_options=options).kind == "s3"
    for name in refused:
        with pytest.raises(ValueError, match=name):
            zarrc.open_store("s3://any", mode="r", storage_options={**options, name: form[name]})


def test_wrong_options(server):
    with pytest.raises(ValueError, match="style"):
        zarrc.open(URL, storage_options={**NATIVE, "endpoint": server.url, "style": "odd"})
    with pytest.raises(Exception) as found:
        zarrc.open(URL, storage_options={**NATIVE, "endpoint": server.url, "secret_access_key": "wrong"})
    assert "SignatureDoesNotMatch" in str(found.value)


def test_pickles_and_texts(server):
    array = zarrc.open(URL, storage_options={**NATIVE, "endpoint": server.url})["plain"]
    assert SECRET not in repr(array) + repr(array.store) + str(array.store)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[...], DATA)


def make_process(folder, seconds):
    """A credential_process whose keys live so long; each run adds a line to `runs`."""
    (folder / "process.py").write_text(f"""
import datetime, json, time
with open({str(folder / 'runs')!r}, "a") as runs:
    runs.write("run\\n")
time.sleep(0.2)
end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds={seconds})
print(json.dumps(dict(Version=1, AccessKeyId={ID!r}, SecretAccessKey={SECRET!r}, SessionToken=str(time.time_ns()), Expiration=end.strftime("%Y-%m-%dT%H:%M:%SZ"))))
""")
    (folder / "config").write_text(f"[profile run]\ncredential_process = '{sys.executable}' '{folder}/process.py'\n")


def count_runs(folder):
    return len((folder / "runs").read_text().split())


def test_one_thread_renews_credentials(server, tmp_path, monkeypatch):
    make_process(tmp_path, 3)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    array = zarrc.open(URL, storage_options={"profile": "run", "endpoint": server.url})["plain"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            assert all((part == DATA).all() for part in pool.map(lambda _: array[...], range(8)))
            before = count_runs(tmp_path)
            time.sleep(3.2)
    assert before == 2


def test_an_expired_token_is_renewed(server, tmp_path, monkeypatch):
    make_process(tmp_path, 3600)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    array = zarrc.open(URL, storage_options={"profile": "run", "endpoint": server.url})["plain"]
    server.service.fault = lambda request: s3_server.answer_error(400, "ExpiredToken")
    with pytest.raises(OSError, match="the session token has expired"):
        array[...]
    server.service.fault = None
    np.testing.assert_array_equal(array[...], DATA)
    assert count_runs(tmp_path) >= 3


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"])
def test_an_expired_token_of_any_request_is_renewed(buckets, tmp_path, monkeypatch, code):
    """Once: with a key that the service refuses as well the request fails."""
    make_process(tmp_path, 3600)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    tokens, expired = [], set()

    def fault(request):
        tokens.append(request.headers["x-amz-security-token"])
        return s3_server.answer_error(400, code) if tokens[-1] in expired or refuses else None

    refuses = False
    with start_large_service(buckets / BUCKET) as server:
        server.service.fault = fault
        store = zarrc.open_store(URL, storage_options={"profile": "run", "endpoint": server.url, "conditional": "etag"})
        value = store.get("plain/c/0/0")
        calls = [lambda: store.get("plain/c/0/0") == value, lambda: store.get("plain/c/0/0", 2, 3) == value[2:5], lambda: store.get("plain/none") is None,
                 lambda: store.getsize("plain/c/0/0") == len(value), lambda: "plain/c/0/0" in store, lambda: len(list(store.list_prefix("plain"))) == 17,
                 lambda: list(store.list_dir("in")) != [], lambda: store.set("k", b"v") is None, lambda: store.delete("k") is None,
                 lambda: store.delete_dir("plain") is None]
        for n, call in enumerate(calls):
            expired.add(tokens[-1])
            assert call(), n
            assert count_runs(tmp_path) == n + 2
        refuses, n_before = True, len(tokens)
        with pytest.raises(OSError, match=code):
            store.get("in/shards/c/0/0")
        assert len(tokens) == n_before + 3  # HEAD, and GET of the first byte twice


@pytest.mark.parametrize(("verb", "code"), [("PUT small", "ExpiredToken"), ("PUT small", "RequestExpired"), ("DELETE small", "ExpiredToken"),
                                            ("PUT partNumber=2", "ExpiredToken"), ("POST uploads", "ExpiredToken"), ("POST uploadId", "ExpiredToken")])
def test_an_expired_token_of_a_write_is_renewed(buckets, tmp_path, monkeypatch, verb, code):
    """Each request is sent again once with a new key, those of large values, too."""
    make_process(tmp_path, 3600)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    seen, (method, part) = [], verb.split()

    def fault(request):
        if request.method == method and part in request.path and (len(seen) < most):
            seen.append(request.path)
            return s3_server.answer_error(400, code)
        return None

    most, is_small = 1, part == "small"
    with start_large_service(buckets / BUCKET) as server:
        server.service.fault = fault
        store = zarrc.open_store(URL, storage_options={"profile": "run", "endpoint": server.url})
        value = b"v" if is_small else bytes((64 << 20) + 1)
        key = "small" if is_small else "large"
        store.set(key, value)
        if method == "DELETE":
            store.delete(key)
        assert len(seen) == 1 and count_runs(tmp_path) == 2 and (method == "DELETE" or store.get(key) == value)
        if code == "ExpiredToken" and is_small:
            most = 3
            with pytest.raises(OSError, match="token has expired"):
                store.delete(key) if method == "DELETE" else store.set(key, value)
            assert len(seen) == 3


def test_many_writes_with_one_expired_token(buckets, tmp_path, monkeypatch):
    """A renewal needs no thread of the pool, where all wait for writes. A late answer does not expire the new key."""
    make_process(tmp_path, 3600)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    n, tokens = 300, []

    def fault(request):
        token = request.headers["x-amz-security-token"]
        tokens.append(token)
        return s3_server.answer_error(400, "ExpiredToken") if is_expired and request.method == "PUT" and token == tokens[0] else None

    async def write(server):
        nonlocal is_expired
        options = {"profile": "run", "endpoint": server.url, "concurrency": 256}
        array = await zarrc.open_async(URL, mode="w", shape=(n,), chunks=(1,), dtype="i4", storage_options=options)
        is_expired = True
        await asyncio.wait_for(asyncio.gather(*(array.setitem(i, i + 1) for i in range(n))), 300)
        return await array.getitem(...)

    is_expired = False
    with start_large_service(buckets / BUCKET) as server:
        server.service.fault = fault
        np.testing.assert_array_equal(asyncio.run(write(server)), np.arange(1, n + 1))
    assert count_runs(tmp_path) == 2 and tokens.count(tokens[0]) > 1


def test_a_change_during_a_read(server, buckets):
    """Two versions of a shard are not mixed."""
    array = zarrc.open(URL, storage_options={**NATIVE, "endpoint": server.url})["in/shards"]
    file = buckets / BUCKET / "lab/x.zarr/in/shards/c/0/0"
    old, new = file.read_bytes(), []
    zarrc.open(buckets / BUCKET / "lab/x.zarr/in/shards", mode="r+")[:32, :32] = -DATA[:32, :32]
    changed = file.read_bytes()
    file.write_bytes(old)

    def fault(request):
        if "/c/0/0" in request.path and request.headers.get("Range"):
            new.append(request.headers.get("If-Match"))
            if len(new) == 2:
                file.write_bytes(changed)

    server.service.fault = fault
    found = array[:16, :16]
    assert (found == DATA[:16, :16]).all() or (found == -DATA[:16, :16]).all()
    assert new[1]


def obstore_opens(name, endpoint):
    obstore = pytest.importorskip("obstore.store")
    return zarr.storage.ObjectStore(obstore.S3Store(BUCKET, prefix=name, endpoint=endpoint, client_options={"allow_http": True}, **NATIVE))


def s3fs_opens(name, endpoint):
    pytest.importorskip("s3fs", reason="s3fs is not installed: scripts/venv installs it")
    return zarr.storage.FsspecStore.from_url(f"s3://{BUCKET}/{name}", storage_options={
        "key": ID, "secret": SECRET, "client_kwargs": {"endpoint_url": endpoint, "region_name": "us-east-1"}})


@pytest.fixture
def versitygw(buckets):
    program, why = s3_server.find_versitygw()
    if not program:
        pytest.skip(why)
    with start_versitygw(buckets) as endpoint:
        yield endpoint


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("open_store", [obstore_opens, s3fs_opens])
def test_both_ways_with_zarr_python(versitygw, open_store, zarr_format):
    """zarrc reads what zarr-python wrote, and zarr-python what zarrc wrote, by itself and for zarr-python."""
    options, more = {**NATIVE, "endpoint": versitygw}, {"shards": (21, 27)} if zarr_format == 3 else {}
    theirs = zarr.create_array(open_store("new.zarr", versitygw), name="theirs", data=DATA, chunks=(7, 9), zarr_format=zarr_format, **more)
    np.testing.assert_array_equal(zarrc.open(f"s3://{BUCKET}/new.zarr/theirs", storage_options=options)[...], DATA)
    own = zarrc.create_array(f"s3://{BUCKET}/new.zarr", name="own", shape=DATA.shape, dtype=DATA.dtype, chunks=(7, 9), zarr_format=zarr_format,
                             storage_options=options, **more)
    own[5:60, 3:50] = DATA[5:60, 3:50]
    through = zarr.open_array(zarrc.ZarrcStore(f"s3://{BUCKET}/new.zarr", storage_options=options), path="own", mode="r+")
    through[0] = DATA[0]
    expected = np.zeros_like(DATA)
    expected[5:60, 3:50], expected[0] = DATA[5:60, 3:50], DATA[0]
    np.testing.assert_array_equal(own[...], expected)
    np.testing.assert_array_equal(zarr.open_array(open_store("new.zarr", versitygw), path="own", mode="r")[...], expected)
    theirs[3:9, 2] = -1
    assert (zarrc.open(f"s3://{BUCKET}/new.zarr/theirs", storage_options=options)[3:9, 2] == -1).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_ways_with_tensorstore(versitygw, monkeypatch, zarr_format):
    tensorstore = pytest.importorskip("tensorstore")
    for name, value in s3_server.make_variables(versitygw).items():
        monkeypatch.setenv(name, value)
    metadata = {"shape": [64, 64], "dtype": "<i4", "chunks": [16, 16]} if zarr_format == 2 else {
        "shape": [64, 64], "data_type": "int32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}}}

    def spec(name):
        return {"driver": "zarr" if zarr_format == 2 else "zarr3", "kvstore": {
            "driver": "s3", "bucket": BUCKET, "path": f"{name}/", "endpoint": versitygw, "aws_region": "us-east-1"}}

    tensorstore.open({**spec("theirs.zarr"), "metadata": metadata}, create=True).result().write(DATA).result()
    theirs, more = zarrc.open(f"s3://{BUCKET}/theirs.zarr", mode="r+"), {"shards": (32, 32)} if zarr_format == 3 else {}
    np.testing.assert_array_equal(theirs[...], DATA)
    theirs[5, 7] = -1
    zarrc.create_array(f"s3://{BUCKET}/own.zarr", data=DATA, chunks=(16, 16), zarr_format=zarr_format, **more)[5, 7] = -1
    expected = DATA.copy()
    expected[5, 7] = -1
    for name in ("own.zarr", "theirs.zarr"):
        np.testing.assert_array_equal(tensorstore.open(spec(name), open=True).result().read().result(), expected)


def test_who_opens_a_url(versitygw, caplog):
    """The setting, or an option that only another package has."""
    url = f"s3://{BUCKET}/lab/x.zarr/plain"
    s3fs_options = {"key": ID, "secret": SECRET, "client_kwargs": {"endpoint_url": versitygw, "region_name": "us-east-1"}}
    obstore_options = {**NATIVE, "endpoint": versitygw, "client_options": {"allow_http": True}}

    def open_with(remote, options):
        caplog.clear()
        with zarrc.config.set({"remote": remote}):
            array = zarrc.open(url, mode="r", storage_options=options)
            np.testing.assert_array_equal(array[...], DATA)
            return array.store.kind, "no equivalent" in caplog.text

    assert open_with("native", s3fs_options) == open_with("native", {**NATIVE, "endpoint": versitygw}) == ("s3", False)
    if importlib.util.find_spec("obstore"):
        assert open_with("native", obstore_options) == ("python", True) and open_with("obstore", obstore_options) == ("python", False)
    if importlib.util.find_spec("s3fs"):
        assert open_with("native", {**s3fs_options, "use_listings_cache": False}) == ("python", True) and open_with("fsspec", s3fs_options) == ("python", False)


def test_xarray_and_dask_through_a_store(versitygw):
    xarray, dask_array = pytest.importorskip("xarray"), pytest.importorskip("dask.array")

    def open_store(**more):
        return zarrc.ZarrcStore(f"s3://{BUCKET}/set.zarr", storage_options={**NATIVE, "endpoint": versitygw}, **more)

    data = xarray.Dataset({"t": (("x", "y"), DATA)}, {"x": np.arange(64) * 0.5})
    data.chunk({"x": 16}).to_zarr(open_store(), zarr_format=3, consolidated=False)
    data.isel(x=slice(0, 8)).drop_vars("x").to_zarr(open_store(), region={"x": slice(0, 8), "y": slice(None)}, consolidated=False)
    xarray.testing.assert_identical(xarray.open_zarr(open_store(), consolidated=False).compute(), data)
    found = dask_array.from_zarr(zarr.open_array(open_store(), path="t", mode="r"))
    assert found.numblocks == (4, 1) and (found.sum(axis=0).compute(num_workers=4) == DATA.sum(axis=0)).all()


def test_moto():
    """A second opinion of what a request and an answer are."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed: scripts/venv --large installs it")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://%s:%d" % server.get_host_and_port()
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        options = {**NATIVE, "endpoint": endpoint}
        array = zarrc.create_array(URL, name="a", data=DATA, chunks=(16, 16), shards=(32, 32), storage_options=options)
        array[3:40, 5] = -1
        array.append(DATA[:10])
        array.attrs["units"] = "m"
        expected = np.concatenate([DATA, DATA[:10]])
        expected[3:40, 5] = -1
        found = zarrc.open(URL, storage_options=options)
        assert list(found) == ["a"] and found["a"].attrs["units"] == "m"
        np.testing.assert_array_equal(found["a"][...], expected)
        store, large = zarrc.open_store(URL, storage_options=options), bytes(range(256)) * (257 << 10)  # more than 64 MiB
        store.set("large", large)
        assert store.get("large", len(large) - 300, 300) == large[-300:] and store.getsize("large") == len(large)
        with pytest.raises(zarrc.errors.ExistsError):
            zarrc.create_array(URL, name="a", shape=(3,), dtype="i1", storage_options=options)
        with pytest.raises(OSError, match="NoSuchBucket"):
            zarrc.open("s3://misspelt/x", storage_options=options)
        zarrc.copy(found["a"], zarrc.open(URL, mode="r+", storage_options=options), name="b")
        np.testing.assert_array_equal(zarrc.open(URL, storage_options=options)["b"][...], expected)
        del zarrc.open(URL, mode="r+", storage_options=options)["a"]
        assert list(zarrc.open(URL, storage_options=options)) == ["b"]
    finally:
        server.stop()


# ---- how many requests the cases of bench/micro/net --s3 take ----


@pytest.fixture
def bench_client(tmp_path, monkeypatch):
    """The zarrc client of the benchmark with small numbers, and its server."""
    spec = importlib.util.spec_from_file_location("s3_cases", pathlib.Path(__file__).parents[2] / "bench/micro/s3_cases.py")
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    sizes = {"large": 16 << 20, "range": 8 << 20, "reads": 2, "small": 8, "chunks": 20, "picked": 10, "arrays": 12, "upload": 65 << 20}
    cases.make_data(tmp_path / BUCKET, sizes)
    with start_large_service(tmp_path / BUCKET) as server:
        for name, value in s3_server.make_variables(server.url).items():
            monkeypatch.setenv(name, value)
        yield cases.CLIENTS["zarrc"](sizes), server


@pytest.mark.parametrize(("case", "found", "runs", "wanted"), [
    ("get", 32 << 20, 1, {"GetObject": 1 + 2 * 3}),  # the document; in each read the index and two ranges
    ("small", 8 * 16 << 10, 1, {"GetObject": 1 + 8}),
    ("list", 12, 1, {"ListObjects": 1}),
    ("open", 12, 1, {"ListObjects": 1, "GetObject": 1 + 12}),  # the document of each, from which it is opened
    ("chunks", 10 * 64 << 10, 1, {"GetObject": 1 + 10}),
    ("upload", 65 << 20, 2, {"CreateUpload": 1, "UploadPart": 9, "CompleteUpload": 1, "HeadObject": 2}),  # whether the array is still there: before and after
])
def test_requests_of_a_case_are_counted(bench_client, case, found, runs, wanted):
    client, server = bench_client
    for _ in range(runs):
        server.service.names.clear()
        assert getattr(client, case)() == found
    assert collections.Counter(server.service.names) == wanted


def test_documents_of_members_are_asked_for_together(bench_client):
    """Each waits until all others have come: when members are listed, opened, and read for consolidated metadata."""
    client, server = bench_client
    all_of_them = threading.Barrier(12)
    server.gate = lambda request: all_of_them.wait(60) if "/group/a" in request.path else None
    assert client.open() == 12
    zarrc.consolidate_metadata(f"s3://{BUCKET}/group")
