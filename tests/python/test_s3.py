"""Stores of S3: how a URL is opened, names of options of other packages, and other packages that read the same bucket."""
import concurrent.futures
import json
import pickle
import sys
import time

import numpy as np
import pytest
import s3_server
import zarr
from s3_server import BUCKET, ID, SECRET, start_service, start_versitygw

import zarrc

DATA = np.arange(64 * 64, dtype="int32").reshape(64, 64)
URL = f"s3://{BUCKET}/lab/x.zarr"
NATIVE = {"access_key_id": ID, "secret_access_key": SECRET, "region": "us-east-1"}


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


def test_checksums_and_headers_of_new_objects(server):
    seen = {}

    def fault(request):
        seen[request.method] = {name.lower(): value for name, value in request.headers.items()}

    server.service.fault = fault
    store = zarrc.open_store(URL, storage_options={**NATIVE, "endpoint": server.url, "checksums": True,
                                                   "headers": {"x-amz-storage-class": "STANDARD_IA", "x-amz-request-payer": "requester"}})
    store.set("key", b"1")
    assert store.get("key") == b"1"
    assert seen["PUT"]["x-amz-checksum-sha256"] == "a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s=" and "x-amz-checksum-sha256" not in seen["GET"]
    assert seen["PUT"]["x-amz-storage-class"] == "STANDARD_IA" and "x-amz-storage-class" not in seen["GET"]
    assert seen["PUT"]["x-amz-request-payer"] == seen["GET"]["x-amz-request-payer"] == "requester"


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
    form = {"headers": {"a": "b"}, **dict.fromkeys(texts, "x"), "profile": "", "endpoint": "http://localhost", "style": "path",
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
print(json.dumps(dict(Version=1, AccessKeyId={ID!r}, SecretAccessKey={SECRET!r}, SessionToken="t", Expiration=end.strftime("%Y-%m-%dT%H:%M:%SZ"))))
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
    assert count_runs(tmp_path) in (2, 3)  # the read that failed may have asked once more


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


def test_other_packages_at_versitygw(buckets):
    obstore = pytest.importorskip("obstore.store")
    program, why = s3_server.find_versitygw()
    if not program:
        pytest.skip(why)
    with start_versitygw(buckets) as endpoint:
        source = obstore.S3Store(BUCKET, prefix="lab/x.zarr", endpoint=endpoint, client_options={"allow_http": True}, **NATIVE)
        theirs = zarr.open_group(zarr.storage.ObjectStore(source, read_only=True), mode="r")
        ours = zarrc.open(URL, storage_options={**NATIVE, "endpoint": endpoint})
        for name in ("plain", "in/shards"):
            np.testing.assert_array_equal(theirs[name][...], ours[name][...])
        written = zarr.create_array(zarr.storage.ObjectStore(obstore.S3Store(BUCKET, prefix="new.zarr", endpoint=endpoint,
                                                                            client_options={"allow_http": True}, **NATIVE)), name="a", data=DATA, chunks=(7, 9))
        np.testing.assert_array_equal(zarrc.open(f"s3://{BUCKET}/new.zarr/a", storage_options={**NATIVE, "endpoint": endpoint})[...], written[...])
