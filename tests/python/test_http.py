"""Stores of http: what servers answer, the requests that reads cost, and other packages at the same server."""
import importlib.util
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
import zipfile

import nginx
import numpy as np
import pytest
import zarr
from http_answers import answer_propfind, answer_range, answer_whole, answer_xml, start_server
from scripted_server import run_server
from test_process import run

import zarrc

DATA = np.arange(64 * 64, dtype="int32").reshape(64, 64)
needs_nginx = pytest.mark.skipif(nginx.find_program() is None, reason="nginx is not installed")


@pytest.fixture(autouse=True)
def native():
    """Without libcurl, other packages open URLs."""
    try:
        zarrc.open_store("http://localhost/", mode="r")
    except (zarrc.errors.UnsupportedError, ImportError) as problem:
        pytest.skip(str(problem))


@pytest.fixture
def www(tmp_path):
    folder = tmp_path / "www"
    zarrc.create_array(folder / "x.zarr", name="plain", data=DATA, chunks=(16, 16))
    zarrc.create_array(folder / "x.zarr", name="in/shards", data=DATA, chunks=(16, 16), shards=(32, 32))
    return folder


@pytest.fixture
def server(www):
    with nginx.start(www) as found:
        yield found


def files(root, **headers):
    """Answers with the files of a folder."""
    def answer(request):
        file = root / request.path.split("?")[0].strip("/")
        return answer_range(request, file.read_bytes(), **headers) if file.is_file() else (404, {}, b"none")
    return answer


def answer_key(data, **headers):
    return lambda request: answer_range(request, data, **headers) if request.path.split("?")[0] == "/key" else (404, {}, b"")


# ---- a server as it should be ----


@needs_nginx
def test_a_hierarchy(server, www):
    group = zarrc.open(f"{server.url}/x.zarr")
    assert sorted(group) == ["in", "plain"] and group.store.read_only
    np.testing.assert_array_equal(group["plain"][...], DATA)
    np.testing.assert_array_equal(group["in/shards"][3:40:3, 5:], DATA[3:40:3, 5:])
    np.testing.assert_array_equal(zarrc.open_array(f"{server.url}/x.zarr/in/shards")[...], DATA)
    store = zarrc.open_store(f"{server.url}/x.zarr")
    assert sorted(store.list()) == sorted(zarrc.open_store(www / "x.zarr", mode="r").list())
    assert sorted(store.list_dir("in")) == ["shards", "zarr.json"]
    assert list(store.list_prefix("nothing")) == []
    value = (www / "x.zarr/plain/c/0/0").read_bytes()
    assert store.get("plain/c/0/0", 3, 5) == value[3:8] and store.get("plain/c/0/0", len(value) + 7, 5) == b""
    assert store.getsize("plain/c/0/0") == len(value) and "plain/c/9/9" not in store
    with pytest.raises(zarrc.errors.ReadOnlyError):
        store.set("k", b"")


def test_blocks_without_a_listing(www):
    """The server is asked for each block that the selection touches."""
    for name in ("plain", "in/shards"):
        local = zarrc.open_array(www / "x.zarr", path=name)
        (www / "x.zarr" / local.block_key([1, 0])).unlink()
        with start_server(files(www)) as server:
            z = zarrc.open_array(f"{server.url}/x.zarr/{name}")
            for key in (..., np.s_[30:40, 3]):
                for method in ("iter_blocks", "iter_chunks"):
                    found, wanted = list(getattr(z, method)(key)), list(getattr(local, method)(key))
                    assert [one.coordinates for one in found] == [one.coordinates for one in wanted]
                    assert [one.nbytes for one in found] == [one.nbytes for one in wanted] and not all(one.is_stored for one in found)
            assert z.block_read_encoded([0, 0]) == local.block_read_encoded([0, 0])


@needs_nginx
def test_names_that_need_escapes(server, www):
    name = "a b%41 #?&ü"
    zarrc.create_array(www / "x.zarr", name=name, data=DATA[0])
    np.testing.assert_array_equal(zarrc.open(f"{server.url}/x.zarr")[name][...], DATA[0])


@needs_nginx
def test_how_many_requests(server, www):
    def count(function):
        server.requests()
        function()
        return server.requests()

    plain = count(lambda: zarrc.open_array(f"{server.url}/x.zarr", path="plain", mode="r")[:16, :16])
    assert plain == ["GET /x.zarr/plain/zarr.json 200", "GET /x.zarr/plain/c/0/0 200"]
    shard = count(lambda: zarrc.open_array(f"{server.url}/x.zarr", path="in/shards", mode="r")[:16, :16])
    assert [row.split()[2] for row in shard] == ["200", "206", "206"]
    for opener in (zarrc.open, zarrc.open_group):
        assert count(lambda: opener(f"{server.url}/x.zarr", mode="r")) == ["GET /x.zarr/zarr.json 200"]  # noqa: B023
    group = zarrc.open(f"{server.url}/x.zarr")
    assert count(lambda: group["in"]["shards"]) == ["GET /x.zarr/in/zarr.json 200", "GET /x.zarr/in/shards/zarr.json 200"]
    assert count(lambda: zarrc.open(f"{server.url}/x.zarr/plain")) == ["GET /x.zarr/plain/zarr.json 200"]
    zarrc.consolidate_metadata(www / "x.zarr")
    rows = count(lambda: list(zarrc.open_group(f"{server.url}/x.zarr", mode="r").arrays()))
    assert rows == ["GET /x.zarr/zarr.json 200"]


@needs_nginx
def test_a_v2_group_costs_three_requests_that_are_sent_together(server, www):
    """And one before, for zarr.json, if neither an option nor a group above tells the format. `open`, which opens arrays, too, also
    asks for .zarray. tests/unit/tree/test_open_node.c shows that they are sent together."""
    names = [".zattrs", ".zgroup", ".zmetadata"]
    group = zarrc.create_group(www / "2.zarr", zarr_format=2, attributes={"a": 1})
    zarrc.create_array(group, name="x", data=DATA, zarr_format=2)

    def count(function):
        server.requests()
        function()
        return [row.split()[1].rpartition("/")[2] for row in server.requests()]

    for is_consolidated in (False, True):
        if is_consolidated:
            zarrc.consolidate_metadata(www / "2.zarr")
        assert sorted(count(lambda: zarrc.open_group(f"{server.url}/2.zarr", mode="r", zarr_format=2))) == names
        rows = count(lambda: zarrc.open_group(f"{server.url}/2.zarr", mode="r"))
        assert rows[0] == "zarr.json" and sorted(rows[1:]) == names
        rows = count(lambda: zarrc.open(f"{server.url}/2.zarr"))
        assert rows[0] == "zarr.json" and sorted(rows[1:]) == [".zarray", *names]
        rows = count(lambda: zarrc.open(f"{server.url}/2.zarr", path="x"))
        assert rows[0] == "zarr.json" and sorted(rows[1:]) == [".zarray", *names]
        assert sorted(count(lambda: zarrc.open(f"{server.url}/2.zarr", path="x", zarr_format=2))) == [".zarray", *names]
        rows = count(lambda: zarrc.open_array(f"{server.url}/2.zarr", path="x"))
        assert rows[0] == "zarr.json" and sorted(rows[1:]) == [".zarray", ".zattrs"]
        opened = zarrc.open_group(f"{server.url}/2.zarr", mode="r")
        assert sorted(count(lambda: opened["x"])) == ([] if is_consolidated else [".zarray", *names])
        assert sorted(count(lambda: opened.get_array("x"))) == ([] if is_consolidated else [".zarray", ".zattrs"])
        assert opened.attrs["a"] == 1 and opened["x"][1, 1] == DATA[1, 1]
    assert len(zarrc.open_group(f"{server.url}/2.zarr", mode="r", use_consolidated=False)) == 1


@needs_nginx
def test_a_long_document_costs_one_request(server, www):
    group = zarrc.create_group(www / "long.zarr", attributes={"text": "x" * (1 << 20)})
    zarrc.create_array(group, name="a", data=DATA, zarr_format=group.metadata.zarr_format)
    zarrc.consolidate_metadata(www / "long.zarr")
    server.requests()
    assert [name for name, _ in zarrc.open_group(f"{server.url}/long.zarr", mode="r").arrays()] == ["a"]
    assert server.requests() == ["GET /long.zarr/zarr.json 200"]


@needs_nginx
def test_servers_without_an_index(server, www):
    group = zarrc.open_group(f"{server.url}/plain/x.zarr", mode="r")
    assert group["plain"][0, 5] == 5
    with pytest.raises(zarrc.errors.UnsupportedError, match="does not list.*consolidated metadata.*autoindex_format json"):
        list(group)
    with pytest.raises(zarrc.errors.UnsupportedError, match="does not list"):
        list(zarrc.open_store(f"{server.url}/html/x.zarr").list())
    zarrc.consolidate_metadata(www / "x.zarr")
    assert sorted(zarrc.open_group(f"{server.url}/plain/x.zarr", mode="r")) == ["in", "plain"]


def pack(folder):
    """An archive beside the folder."""
    with zipfile.ZipFile(f"{folder}.zip", "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))


def obstore_reads(url):
    from obstore.store import HTTPStore

    return zarr.storage.ObjectStore(HTTPStore(url, client_options={"allow_http": True}), read_only=True)


def fsspec_reads(url):
    pytest.importorskip("aiohttp", reason="fsspec opens http with aiohttp")
    return zarr.storage.FsspecStore.from_url(url, read_only=True)


@needs_nginx
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("open_store", [obstore_reads, fsspec_reads])
def test_both_ways_with_zarr_python(server, www, zarr_format, open_store):
    """zarrc reads what zarr-python wrote, and zarr-python, over the same server, what zarrc wrote."""
    zarr.save_array(www / "theirs.zarr", DATA, zarr_format=zarr_format)
    with zarr.storage.ZipStore(www / "theirs.zip", mode="w") as store:
        zarr.save_array(store, DATA, zarr_format=zarr_format)
    zarrc.create_array(www / "ours.zarr", data=DATA, chunks=(16, 16), zarr_format=zarr_format)
    for name in ("theirs.zarr", "theirs.zip"):
        np.testing.assert_array_equal(zarrc.open_array(f"{server.url}/{name}", mode="r")[...], DATA)
    np.testing.assert_array_equal(zarr.open_array(open_store(f"{server.url}/ours.zarr"), mode="r")[...], DATA)


@needs_nginx
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_ways_with_tensorstore(server, www, zarr_format):
    tensorstore = pytest.importorskip("tensorstore")

    driver = "zarr" if zarr_format == 2 else "zarr3"
    metadata = {"shape": [64, 64], "dtype": "<i4", "chunks": [16, 16]} if zarr_format == 2 else {
        "shape": [64, 64], "data_type": "int32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}}}
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{www}/theirs.zarr/"}, "metadata": metadata}
    tensorstore.open(spec, create=True).result().write(DATA).result()
    pack(www / "theirs.zarr")
    more = {"shards": (32, 32)} if zarr_format == 3 else {}
    zarrc.create_array(www / "ours.zarr", data=DATA, chunks=(16, 16), zarr_format=zarr_format, **more)
    pack(www / "ours.zarr")
    for name in ("theirs.zarr", "theirs.zarr.zip"):
        np.testing.assert_array_equal(zarrc.open_array(f"{server.url}/{name}", mode="r")[...], DATA)
    served = {"driver": "http", "base_url": server.url, "path": "/ours.zarr"}
    for kvstore in ({**served, "path": "/ours.zarr/"}, {"driver": "zip", "base": {**served, "path": "/ours.zarr.zip"}}):
        ours = tensorstore.open({"driver": driver, "kvstore": kvstore}, open=True, read=True).result()
        np.testing.assert_array_equal(ours.read().result(), DATA)


@needs_nginx
def test_zip_archives(server, www):
    pack(www / "x.zarr")
    server.requests()
    array = zarrc.open_array(f"{server.url}/x.zarr.zip/plain", mode="r")
    assert array[17, 3] == DATA[17, 3]
    assert len(server.requests()) <= 3
    np.testing.assert_array_equal(array[...], DATA)


@pytest.mark.parametrize("shards", [None, (496, 496)], ids=["chunks", "shards"])
def test_requests_and_bytes_of_an_archive(tmp_path, shards):
    """324 chunks that do not compress, 1.27 MB."""
    import zipfile

    from scripted_server import run_server
    data = np.random.default_rng(1).integers(0, 256, (18 * 62, 18 * 62), "uint8")
    zarrc.create_array(tmp_path / "x.zarr", name="a", data=data, chunks=(62, 62), shards=shards)
    with zipfile.ZipFile(tmp_path / "x.zarr.zip", "w") as archive:
        for file in sorted((tmp_path / "x.zarr").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(tmp_path / "x.zarr"))
        names = sum(46 + 2 * len(member.filename) for member in archive.infolist())  # bytes of the directory, at most
    size = (tmp_path / "x.zarr.zip").stat().st_size
    with run_server(root=tmp_path) as server:
        def count(read):
            requests, sent = server.requests, server.bytes
            array = zarrc.open_array(f"{server.environment['ZR_SERVER']}/x.zarr.zip/a", mode="r")
            read(array)
            return server.requests - requests, server.bytes - sent

        requests, sent = count(lambda array: np.testing.assert_array_equal(array[62:124, 62:124], data[62:124, 62:124]))
        index = 4096 if shards else 0
        assert requests <= (4 if shards else 3) and sent <= (1 << 16) + names + 62 * 62 + index
        requests, sent = count(lambda array: np.testing.assert_array_equal(array[...], data))
        most, share = (3 + 9, 1.3) if shards else (5, 1.06)  # the indexes of nine shards are far from each other
        assert requests <= most and sent <= share * size


def test_bytes_of_parts_of_raw_chunks(tmp_path):
    """Of 16 uncompressed chunks of 256 KiB, only the ranges are fetched that are needed."""
    from scripted_server import run_server
    data = np.arange(1024 * 1024, dtype="i4").reshape(256, 4096)
    zarrc.create_array(tmp_path / "x.zarr", name="a", data=data, chunks=(16, 4096), compressors=None)
    with run_server(root=tmp_path) as server:
        array = zarrc.open_array(f"{server.environment['ZR_SERVER']}/x.zarr/a", mode="r")
        for part, most in (np.s_[15:17, :4], 2 * 16), (np.s_[::16, 0], 16 * 4):
            requests, sent = server.requests, server.bytes
            np.testing.assert_array_equal(array[part], data[part])
            assert server.requests - requests == len(data[part]) and server.bytes - sent == most


# ---- answers ----


def test_what_a_missing_chunk_is(www):
    answers = {}

    def answer(request):
        status = answers.get(request.path.rpartition("plain/")[2])
        return (status, {}, b"no") if status else files(www)(request)

    with start_server(answer) as server:
        def read(**options):
            return zarrc.open_array(f"{server.url}/x.zarr/plain", mode="r", storage_options=options)[:16, :16]

        for status in (404, 410):
            answers["c/0/0"] = status
            assert not read().any()
        answers["c/0/0"] = 403
        with pytest.raises(zarrc.errors.DeniedError, match=r"plain/c/0/0.*HTTP 403"):
            read()
        assert not read(denied_is_missing=True).any()
        for status in (401, 407):
            answers["c/0/0"] = status
            with pytest.raises(zarrc.errors.DeniedError):
                read(denied_is_missing=True)
        for status in (400, 418, 500, 204, 206):
            answers["c/0/0"] = status
            with pytest.raises(zarrc.errors.StoreError):
                read(tries=1)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_that_are_refused(tmp_path, zarr_format):
    """Buckets that are public answer 403 for what they lack."""
    group = zarrc.create_group(tmp_path / "x.zarr", zarr_format=zarr_format)
    zarrc.create_array(group, name="a", data=DATA, zarr_format=group.metadata.zarr_format)

    def answer(request):
        status, headers, body = files(tmp_path)(request)
        return (403, {}, b"") if status == 404 else (status, headers, body)

    with start_server(answer) as server:
        opened = zarrc.open_group(f"{server.url}/x.zarr", mode="r")
        assert opened.metadata.zarr_format == zarr_format and opened["a"][3, 3] == DATA[3, 3]
        with pytest.raises(zarrc.errors.DeniedError, match=r"zarr.json.*HTTP 403"):
            zarrc.open_group(f"{server.url}/y.zarr", mode="r")


def test_a_server_without_ranges(www):
    """Such as Python's own."""
    def answer(request):
        status, headers, body = files(www)(request)
        return (status, headers, body) if status == 404 else answer_whole((www / request.path.strip("/")).read_bytes())

    with start_server(answer) as server, pytest.warns(zarrc.errors.ZarrcWarning, match="ignores ranges"):
        np.testing.assert_array_equal(zarrc.open_array(f"{server.url}/x.zarr/in/shards", mode="r")[...], DATA)
        with zarrc.config.set({"log_level": "error"}):
            store = zarrc.open_store(server.url)
            assert store.get("x.zarr/zarr.json", 2, 3) == (www / "x.zarr/zarr.json").read_bytes()[2:5]


@pytest.mark.parametrize("refusal", [403, 405, 501])
def test_a_server_without_head(refusal):
    def answer(request):
        return (refusal, {}, b"") if request.method == "HEAD" else answer_key(b"0123456789")(request)

    with start_server(answer) as server:
        store = zarrc.open_store(server.url)
        assert store.getsize("key") == 10 and store.getsize("key") == 10
        assert "none" not in store
        heads = sum(row.startswith("HEAD") for row in server.log)
        assert heads == (3 if refusal == 403 else 1)


@pytest.mark.parametrize("body", [b"0123456789" * 10, b"0123", b""])
@pytest.mark.parametrize("refusal", ["bad", "ignored", "unsatisfiable"])
def test_a_server_without_suffixes(tmp_path, refusal, body):
    """A shard whose index is at its end is asked for by a suffix."""
    def answer(request):
        if request.headers.get("Range", "").startswith("bytes=-"):
            return {"bad": (400, {}, b"no"), "unsatisfiable": (416, {}, b"no"),
                    "ignored": (200, {"Transfer-Encoding": "chunked", "Content-Length": None},
                                b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n")}[refusal]
        return answer_key(body, ETag='"1"')(request)

    with start_server(answer) as server:
        assert suffix(zarrc.open_store(server.url), "key", 7) == body[-7:]


def suffix(store, key, n):
    from zarrc import _core
    return _core.Store._get(store, key, _core.ZARR_STORE_SUFFIX, n) if hasattr(_core, "ZARR_STORE_SUFFIX") else pytest.skip("no suffix")


@pytest.mark.parametrize("lie", [
    {"Content_Range": "bytes 3-6/10"}, {"Content_Range": "bytes 2-4/10"}, {"Content_Range": "bytes 2-5/4"},
    {"Content_Range": "bytes 2-5"}, {"Content_Range": None}, {"Content_Range": "bytes 2-18446744073709551617/10"},
    {"Content_Range": "lines 2-5/10"}, {"Content_Length": "3"}, {"Content_Length": "5"}, {"Content_Encoding": "gzip"}],
    ids=lambda lie: " ".join(map(str, lie.items())))
def test_answers_that_are_not_those_of_the_request(lie):
    def answer(request):
        status, headers, body = answer_key(b"0123456789")(request)
        return status, {**{k.replace("-", "_"): v for k, v in headers.items()}, "Connection": "close", **lie}, body

    with start_server(answer) as server:
        store = zarrc.open_store(server.url, storage_options={"tries": 1})
        with pytest.raises(zarrc.errors.StoreError):
            store.get("key", 2, 4)


@pytest.mark.parametrize("obeys", [True, False], ids=["conditions", "no conditions"])
@pytest.mark.parametrize("pad", ["", "x" * 300], ids=["short", "long"])
def test_a_shard_that_changes_between_two_requests(tmp_path, obeys, pad):
    """Elements are those of one version."""
    roots = [tmp_path / "0", tmp_path / "1"]
    for i, root in enumerate(roots):
        zarrc.create_array(root / "x.zarr", data=np.full((64, 64), i + 1, "int32"), chunks=(16, 16), shards=(64, 64))
    n, conditions = 0, []

    def answer(request):
        nonlocal n
        status, headers, body = files(roots[n % 2], ETag=f'"{pad}{n % 2}"')(request)
        if "/c/" in request.path:
            wanted = request.headers.get("If-Match")
            conditions.append(wanted)
            if obeys and wanted and wanted != headers["ETag"]:
                status, headers, body = 412, {}, b""
            n += 1
        return status, headers, body

    with start_server(answer) as server:
        array = zarrc.open_array(f"{server.url}/x.zarr", mode="r")
        try:
            assert len(np.unique(array[...])) == 1
        except zarrc.errors.ConflictError as problem:
            assert "c/0/0" in str(problem)
        assert conditions[0] is None and conditions[1] == f'"{pad}0"' and server.log


def test_more_long_etags_than_the_store_keeps(tmp_path):
    """What it does not keep it cannot send as a condition, but it compares the answers."""
    data = np.arange(1, 1201, dtype="int32")
    for i, sign in enumerate((1, -1)):
        zarrc.create_array(tmp_path / str(i) / "x.zarr", data=sign * data, chunks=(1,), shards=(2,))
    conditions, n, is_stable = set(), 0, True

    def answer(request):
        nonlocal n
        n += not is_stable
        conditions.add(request.headers.get("If-Match"))
        return files(tmp_path / str(n % 2), ETag=f'"{request.path:x>300}{n % 2}"')(request)

    with start_server(answer) as server:
        array = zarrc.open_array(f"{server.url}/x.zarr", mode="r")
        np.testing.assert_array_equal(array[...], data)
        assert 200 < len(conditions) <= 257
        is_stable = False
        for i in range(0, 1200, 14):
            try:
                assert abs(array[i:i + 2].sum()) == data[i:i + 2].sum()
            except zarrc.errors.ConflictError as problem:
                assert f"c/{i // 2}" in str(problem)


def test_without_etags_a_change_of_the_length_is_noticed(tmp_path):
    """The index of the first shard with the bytes of the second would be damaged chunks, or elements of both."""
    roots = [tmp_path / "0", tmp_path / "1"]
    for root, data in zip(roots, (np.zeros((64, 64), "int32"), DATA)):
        zarrc.create_array(root / "x.zarr", data=data, chunks=(16, 16), shards=(64, 64), config={"write_empty_chunks": True})
    n = 0

    def answer(request):
        nonlocal n
        n += "/c/" in request.path
        return files(roots[n % 2])(request)

    with start_server(answer) as server:
        array = zarrc.open_array(f"{server.url}/x.zarr", mode="r")
        with pytest.raises(zarrc.errors.ConflictError, match="c/0/0"):
            array[...]


@pytest.mark.parametrize("then", [404, 403, 416, 503])
def test_an_answer_that_was_cut_off_is_void(then):
    """Also if it did not tell its length, and what follows is no value."""
    answers = iter([(200, {"Transfer-Encoding": "chunked", "Content-Length": None, "Connection": "close", "ETag": '"1"'}, b"8\r\nhalf"),
                    *[(then, {}, b"")] * 9])
    with start_server(lambda request: next(answers)) as server:
        store = zarrc.open_store(server.url, storage_options={"tries": 3})
        if then == 404:
            assert store.get("key") is None
        else:
            with pytest.raises(zarrc.errors.StoreError, match=str(then)):
                store.get("key")
        assert len(server.log) > 1


def test_weak_etags_are_no_versions(www):
    """They change where the bytes do not."""
    n = 0

    def answer(request):
        nonlocal n
        n += 1
        return files(www, ETag=f'W/"{n}"')(request)

    with start_server(answer) as server:
        np.testing.assert_array_equal(zarrc.open_array(f"{server.url}/x.zarr/in/shards", mode="r")[...], DATA)


# ---- listings ----


@pytest.mark.parametrize("page", ["{}", '[{"name": ".."}]', '[{"name": "a/b"}]', '[{"name": ""}]', '[{"name": 7}]', '["a"]', "[", "[{}]",
                                  '[{"name": "a\\u0000b"}]', "\xff"])
def test_indexes_that_lie(page):
    with start_server(lambda request: answer_whole(page.encode("latin-1"), Content_Type="application/json")) as server:
        with pytest.raises((zarrc.errors.CorruptError, zarrc.errors.UnsupportedError)):
            list(zarrc.open_store(server.url).list())


def test_folders_without_end():
    page = json.dumps([{"name": "again", "type": "directory"}, {"name": "and", "type": "directory"}]).encode()
    with start_server(lambda request: answer_whole(page, Content_Type="application/json")) as server:
        with zarrc.config.set({"limits": {"listing_keys": 50}}), pytest.raises(zarrc.errors.LimitError, match="listing_keys"):
            list(zarrc.open_store(server.url).list())
        assert len(server.log) <= 60


# ---- WebDAV ----


def webdav(root, base=""):
    """A server of the files of a folder whose GET lists none."""
    def answer(request):
        if request.method == "PROPFIND":
            return answer_propfind(request, root, base)
        if (root / request.path.strip("/")).is_dir():
            return 200, {"Content-Type": "text/html"}, b"<html>"
        return files(root)(request)
    return answer


def test_webdav_lists(www):
    (www / "x.zarr" / "a b%41 #?&ü<").mkdir()
    (www / "x.zarr" / "a b%41 #?&ü<" / "key &").write_bytes(b"value")
    with start_server(webdav(www)) as server:
        store = zarrc.open_store(f"{server.url}/x.zarr")
        local = zarrc.open_store(www / "x.zarr", mode="r")
        assert sorted(store.list()) == sorted(local.list())
        assert server.log[:2] == ["GET /x.zarr/ 200", "PROPFIND /x.zarr/ 207"]
        assert all(row.startswith("PROPFIND") for row in server.log[2:])  # the first listing has found out
        assert sorted(store.list_dir("in")) == ["shards", "zarr.json"] and list(store.list_prefix("nothing")) == []
        assert sorted(zarrc.open(f"{server.url}/x.zarr")) == ["in", "plain"]
    with start_server(lambda request: webdav(www, f"http://{request.headers['Host']}")(request)) as server:
        assert sorted(zarrc.open_store(f"{server.url}/x.zarr").list()) == sorted(local.list())


def row(href, props="<D:resourcetype/>", status="HTTP/1.1 200 OK"):
    return (f"<D:response><D:href>{href}</D:href><D:propstat><D:prop>{props}</D:prop><D:status>{status}</D:status></D:propstat>"
            "</D:response>")


def propfind(rows):
    return f'<D:multistatus xmlns:D="DAV:">{rows}</D:multistatus>'


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("text", [
    "", "<", "<a/>", propfind(row("/x/a"))[:-3], propfind(row("/x/a")) + "x", propfind(row("/y/a")), propfind(row("/x/../y")),
    propfind(row("/x/%2e%2e")), propfind(row("/x/a/b")), propfind(row("/x/a%2Fb")), propfind(row("/x/a%00")), propfind(row("/x/%")),
    propfind(row("/x/%FF")), propfind(row("/x//")), propfind(row("a")), propfind(row("")), propfind(row("//elsewhere/x/a")),
    propfind(row("http://elsewhere/x/a")), propfind(row("https://127.0.0.1/x/a")), propfind(row("file:///x/a")), propfind(row("/x/a\\b")),
    propfind("<D:response/>"), propfind(row("/x/a").replace("<D:propstat>", "<D:href>/x/b</D:href><D:propstat>")),
    propfind(row("/x/a", "<D:getcontentlength>-1</D:getcontentlength>")), propfind(row("/x/a", status="OK")),
    propfind(row("/x/a", "<D:getcontentlength>99999999999999999999999</D:getcontentlength>")),
    BOMB + propfind(row("/x/&b;")), BOMB + propfind(""), '<!DOCTYPE x SYSTEM "file:///etc/passwd">' + propfind(""), propfind("&unknown;"),
    propfind("<a>" * 100 + "</a>" * 100), propfind(row("/x/" + "a" * (300 << 10))), propfind(row("/x/" + "a" * (70 << 10))),
    propfind("<D:response><D:href>/x/a</D:href><D:status>HTTP/1.1 403 Forbidden</D:status></D:response>")], ids=range(34))
def test_webdav_servers_that_lie(text):
    with start_server(lambda request: answer_xml(text) if request.method == "PROPFIND" else (404, {}, b"")) as server:
        with pytest.raises((zarrc.errors.CorruptError, zarrc.errors.StoreError), match="x"):
            list(zarrc.open_store(f"{server.url}/x").list())


def test_webdav_rows_that_are_no_keys():
    """The folder itself in two spellings, and what was deleted meanwhile."""
    rows = row("/x") + row("/x/") + row("/x/a") + '<D:response><D:href>/x/b</D:href><D:status>HTTP/1.1 404 Gone</D:status></D:response>'
    with start_server(lambda request: answer_xml(propfind(rows)) if request.method == "PROPFIND" else (404, {}, b"")) as server:
        assert list(zarrc.open_store(f"{server.url}/x").list()) == ["a"]


@pytest.mark.parametrize("answer", [(200, {"Content-Type": "text/html"}, b"<html>"), (405, {}, b""), (501, {}, b""), (403, {}, b""), (404, {}, b""),
                                    answer_xml(propfind(""), 200), (207, {"Content-Type": "text/plain"}, b"")],
                         ids=["html", "405", "501", "403", "404", "200", "text"])
def test_no_webdav(answer):
    with start_server(lambda request: answer if request.method == "PROPFIND" else (404, {}, b"")) as server:
        with pytest.raises(zarrc.errors.UnsupportedError, match="does not list.*WebDAV"):
            list(zarrc.open_store(server.url).list())


# ---- options ----


def test_other_packages_do_not_open_untrusted_urls():
    with zarrc.config.set(untrusted=True), pytest.raises(zarrc.errors.UnsupportedError, match="untrusted"):
        zarrc.open("http://127.0.0.1:9/x.zarr", storage_options={"unknown": 1})


def test_options_reach_the_server():
    seen = []

    def answer(request):
        seen.append(dict(request.headers))
        return answer_key(b"value")(request)

    with start_server(answer) as server:
        assert zarrc.open_store(server.url, storage_options={"headers": {"X-One": "1"}, "bearer_token": "abc"}).get("key") == b"value"
        assert seen[-1]["X-One"] == "1" and seen[-1]["Authorization"] == "Bearer abc" and seen[-1]["Accept-Encoding"] == "identity"
        assert zarrc.open_store(server.url, storage_options={"user": "u", "password": "p:w"}).get("key") == b"value"
        assert seen[-1]["Authorization"] == "Basic dTpwOnc="
        assert zarrc.open_store(server.url.replace("//", "//u:p%3Aw@")).get("key") == b"value"
        assert seen[-1]["Authorization"] == "Basic dTpwOnc="
        assert zarrc.open_store(f"{server.url}?sig=1%2F2").get("key") == b"value"
        assert server.log[-1] == "GET /key?sig=1%2F2 200"


@pytest.mark.parametrize("options", [{"headers": "x"}, {"headers": {"a b": "1"}}, {"headers": {"a": "1\r\nb: 2"}}, {"headers": {"a": 1}},
                                     {"tries": 0}, {"tries": "x"}, {"tries": 1 << 40}, {"netrc": 3}, {"user": ["secret"]}, {"password": "secret"},
                                     {"proxy": "secret\n"}, {"bearer_token": 3}, {"bearer_token": "secret\n"}],
                         ids=str)
def test_options_that_are_wrong(options):
    with pytest.raises(zarrc.errors.InvalidError, match=next(iter(options))) as caught:
        zarrc.open_store("http://localhost/x", storage_options=options)
    assert "secret" not in str(caught.value)


def test_all_options_are_known():
    from zarrc._remote import HTTP
    form = {"headers": {"a": "b"}, "bearer_token": "t", **dict.fromkeys(("user", "password", "proxy", "no_proxy", "ca_file", "ca_folder", "netrc_file"), "x"),
            **dict.fromkeys(("concurrency", "connect_ms", "stall_s", "tries"), 3), **dict.fromkeys(("denied_is_missing", "netrc", "untrusted"), True),
            "tls_unverified": False}
    assert form.keys() == HTTP
    zarrc.open_store("http://localhost/x", storage_options=form)
    as_texts = {name: value if name == "headers" else str(value).lower() for name, value in form.items()}  # as the program gives them
    zarrc.open_store("http://localhost/x", storage_options=as_texts)


def test_certificates(tmp_path):
    """A file of certificates, or a folder in which their names are hashes."""
    (tmp_path / "value").write_bytes(b"value")
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    with run_server(tmp_path, tls=True) as server:
        url, file = server.environment["ZR_SERVER_TLS"], server.environment["ZR_SERVER_CA"]
        name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", file], check=True, capture_output=True, text=True).stdout.strip()
        (tmp_path / "certificates").mkdir()
        shutil.copy(file, tmp_path / f"certificates/{name}.0")
        for options in ({"ca_file": file}, {"ca_folder": str(tmp_path / "certificates")}, {"tls_unverified": True}):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                assert zarrc.open_store(url, storage_options=options).get("value") == b"value"
            assert ["not verified" in str(row.message) for row in said] == [True] * ("tls_unverified" in options)
        for options in ({}, {"tls_unverified": False}):
            with pytest.raises(zarrc.errors.StoreError):
                zarrc.open_store(url, storage_options=options).get("value")


def test_who_opens_a_url(www, caplog):
    with start_server(files(www)) as server:
        obstore = {"client_options": {"allow_http": True}}
        options = {"client_kwargs": {}} if importlib.util.find_spec("aiohttp") else obstore  # with it, fsspec opens URLs
        with caplog.at_level(logging.INFO, "zarrc"):
            array = zarrc.open_array(f"{server.url}/x.zarr/plain", mode="r", storage_options=options)
        assert array.store.kind == "python" and array[1, 2] == DATA[1, 2]
        assert [row for row in caplog.messages if "no equivalent" in row] and next(iter(options)) in caplog.text
        assert zarrc.open_array(f"{server.url}/x.zarr/plain").store.kind == "http"
        with zarrc.config.set({"remote": "obstore"}):
            assert zarrc.open_array(f"{server.url}/x.zarr/plain")[1, 2] == DATA[1, 2]  # that it is not https needs no option
            assert zarrc.open_array(f"{server.url}/x.zarr/plain", mode="r", storage_options=obstore).store.kind == "python"
        assert zarrc.open_array(f"{server.url}/x.zarr/plain", mode="a", storage_options=options).store.kind == "python"
        if importlib.util.find_spec("aiohttp"):
            with zarrc.config.set({"remote": "fsspec"}):
                array = zarrc.open_array(f"{server.url}/x.zarr/plain", mode="r")
                assert array.store.kind == "python" and array[1, 2] == DATA[1, 2]
        with pytest.raises(ValueError, match="remote"):
            zarrc.config.set({"remote": "curl"})


# ---- Ctrl-C, while a request is not answered ----


@pytest.mark.parametrize(("call", "end"), [
    ("zarrc.open(url)", "/zarr.json"),
    ("zarrc.open_group(url, mode='r')", "/zarr.json"),
    ("zarrc.open_array(url, path='plain')", "/plain/zarr.json"),
    ("zarrc.open(url)['in/shards']", "/in/shards/zarr.json"),
    ("list(zarrc.open(url))", "/x.zarr/"),
    ("list(zarrc.open(url).arrays())", "/x.zarr/"),
    ("list(zarrc.open_store(url).list())", "/x.zarr/"),
    ("zarrc.open_store(url).get('plain/zarr.json')", "/plain/zarr.json"),
    ("'plain/zarr.json' in zarrc.open_store(url)", "/plain/zarr.json"),
    ("zarrc.open_array(url, path='plain')[0, 0]", "/plain/c/0/0"),
    ("zarrc.open_array(url, path='plain', mode='r').refresh()", "/plain/zarr.json+"),
    ("zarrc.open(url.replace('x.zarr', 'x.zip'))", "/x.zip")])
def test_an_interrupt(www, call, end):
    """The server sends the signal when the request arrives that it does not answer: the first one whose path ends so, or
    with + the second."""
    with zipfile.ZipFile(www / "x.zip", "w") as archive:
        archive.write(www / "x.zarr/zarr.json", "zarr.json")
    seen = []

    def hang(request):
        seen.append(request.path)
        if not request.path.endswith(end.rstrip("+")) or len(seen) <= end.count("+"):
            return {}
        os.kill(int(request.query["pid"]), signal.SIGINT)
        return {"latency": 1000 * 3600}

    with run_server(www) as server:
        server.choose_faults = hang
        done = run("""
            import os, signal, sys
            signal.signal(signal.SIGINT, signal.default_int_handler)
            import zarrc
            url = f"{sys.argv[1]}/x.zarr?pid={os.getpid()}"
            try:
                eval(sys.argv[2])
            except KeyboardInterrupt:
                print("stopped")
        """, server.environment["ZR_SERVER"], call)
    assert done.stdout == "stopped\n", (seen, done.stdout, done.stderr)


# ---- forks and the end of the process, while requests are sent ----


def slow_chunks(**faults):
    return lambda request: faults if "/c/" in request.path else {}


def test_forks_while_threads_read(www):
    """A child reads through arrays of the parent, whose threads were waiting for answers, and through its own."""
    with run_server(www) as server:
        server.choose_faults = slow_chunks(latency=20)
        done = run("""
            import os, signal, sys, threading, time, warnings
            warnings.simplefilter("ignore")
            import numpy as np, zarrc
            url, wrong, stop = sys.argv[1], [], threading.Event()
            arrays = [zarrc.open_array(url + name) for name in ("/x.zarr/plain", "/x.zarr/in/shards")]
            def is_right(array):
                return (array[...] == np.arange(64 * 64).reshape(64, 64)).all()
            def work(array):
                while not stop.is_set():
                    if not is_right(array):
                        wrong.append(array)
            threads = [threading.Thread(target=work, args=(array,)) for array in arrays * 2]
            for thread in threads:
                thread.start()
            codes = []
            for _ in range(6):
                time.sleep(0.05)
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    os._exit(7 if all(map(is_right, arrays)) and is_right(zarrc.open_array(url + "/x.zarr/plain")) else 1)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            stop.set()
            for thread in threads:
                thread.join()
            print(codes, len(wrong))
        """, server.environment["ZR_SERVER"])
        assert done.stdout == "[7, 7, 7, 7, 7, 7] 0\n", done.stdout + done.stderr


@pytest.mark.parametrize("how", ["sys.exit(0)", "os.kill(os.getpid(), signal.SIGTERM)"])
@pytest.mark.parametrize("who", ["task", "daemon"])
def test_the_interpreter_ends_while_a_server_stalls(www, how, who):
    with run_server(www) as server:
        server.choose_faults = slow_chunks(stall=5)
        done = run("""
            import asyncio, os, signal, sys, threading, time
            import zarrc
            array = zarrc.open_array(sys.argv[1] + "/x.zarr/plain")
            began = time.monotonic()
            def tell():
                print(began)
                sys.stdout.flush()
                exec(sys.argv[2])
            async def main():
                task = asyncio.create_task(array.async_array.getitem(...))
                await asyncio.sleep(0.2)
                if "exit" not in sys.argv[2].lower():
                    tell()
            if sys.argv[3] == "task":
                asyncio.run(main())
            else:
                threading.Thread(target=lambda: array[...], daemon=True).start()
                time.sleep(0.2)
            tell()
        """, server.environment["ZR_SERVER"], how, who, timeout=20)
        assert done.returncode == (-15 if "kill" in how else 0) and not done.stderr, done.stderr
        assert time.monotonic() - float(done.stdout) < 5


SLOW_NAMES = """
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    (void)node; (void)service; (void)hints; (void)found;
    (void)write(1, "looks up\\n", 9);
    sleep(600);
    return EAI_FAIL;
}
"""


def test_exit_does_not_wait_for_names(tmp_path):
    """A name server that does not answer: libcurl looks up names in a thread of its own."""
    library = compile_library(tmp_path / "slow_names.so", SLOW_NAMES)
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        import sys, threading, zarrc
        threading.Thread(target=lambda: zarrc.open_array("http://host.invalid/x.zarr", mode="r"), daemon=True).start()
        sys.stdin.read()
        sys.exit(0)
    """)], env={**os.environ, "LD_PRELOAD": library}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "looks up\n"
    process.communicate(timeout=60)
    assert process.returncode == 0


# ---- libraries ----


def compile_library(path, source):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    path.with_suffix(".c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", path, path.with_suffix(".c")], check=True)
    return str(path)


NAMES_OF_LIBCURL = """global_init easy_init easy_cleanup easy_reset easy_setopt easy_getinfo easy_strerror multi_init multi_cleanup multi_setopt
    multi_add_handle multi_remove_handle multi_perform multi_info_read multi_poll multi_wakeup slist_append slist_free_all""".split()


@pytest.mark.parametrize("number, features, missing, why", [
    (0x074B00, 128, "", "need libcurl 7.76 or newer, this is 9.9"), (0x080000, 0, "", "it lacks AsynchDNS"),
    (0x080000, 128, "multi_poll", "the loaded one lacks curl_multi_poll()")], ids=["old", "no threads", "incomplete"])
def test_libcurls_that_do_not_fit(tmp_path, number, features, missing, why):
    names = [name for name in NAMES_OF_LIBCURL if name != missing]
    compile_library(tmp_path / "libcurl.so.4", "\n".join(f"int curl_{name}(void) {{ return 0; }}" for name in names) + f"""
        static struct {{ int age; const char *version; unsigned number; const char *host; int features; }} info = {{0, "9.9", {number}, "", {features}}};
        void *curl_version_info(int which) {{ return &info; }}
    """)
    done = run("""
        import zarrc
        try:
            zarrc.open_store("http://127.0.0.1:9/x.zarr", mode="r", storage_options={"tries": 1})
        except zarrc.errors.UnsupportedError as problem:
            print(problem)
    """, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert why in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout + done.stderr


def find_libcurl():
    """The path of the file that the linker finds."""
    done = run("""
        import ctypes
        try:
            ctypes.CDLL("libcurl.so.4")
        except OSError:
            raise SystemExit
        print(*{row.split()[-1] for row in open("/proc/self/maps") if "/libcurl" in row})
    """)
    return done.stdout.strip() or pytest.skip("this machine has no libcurl.so.4")


@pytest.mark.parametrize("number", [0x074C00, 0])
def test_newer_options_only_where_the_library_has_them(www, tmp_path, number):
    """A libcurl that calls itself 7.76 lacks the options of later ones. 0: the machine's own."""
    forwards = "\n".join(f'''long curl_{name}(long a, long b, long c, long d, long e)
        {{ return ((long (*)(long, long, long, long, long))find("curl_{name}"))(a, b, c, d, e); }}'''
                         for name in NAMES_OF_LIBCURL if name not in ("easy_setopt", "easy_getinfo"))
    compile_library(tmp_path / "libcurl.so.4", f'''
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <unistd.h>
        static void *find(const char *name) {{ return dlsym(dlopen("{find_libcurl()}", RTLD_NOW | RTLD_LOCAL), name); }}
        {forwards}
        long curl_easy_getinfo(long a, long b, long c) {{ return ((int (*)(long, long, ...))find("curl_easy_getinfo"))(a, b, c); }}
        long curl_easy_setopt(long a, long b, long c)
        {{
            if (b % 10000 > 308) /* CURLOPT_DOH_SSL_VERIFYSTATUS, the last of 7.76 */
                write(2, "newer\\n", 6);
            return {number} && b % 10000 > 308 ? 48 : ((int (*)(long, long, ...))find("curl_easy_setopt"))(a, b, c);
        }}
        struct info {{ int age; const char *version; unsigned number; const char *host; int features; }};
        void *curl_version_info(int which)
        {{
            static struct info own;
            own = *((struct info *(*)(int))find("curl_version_info"))(which);
            if (own.number >= 0x075000)
                write(2, "has some\\n", 9);
            own.number = {number} ? {number} : own.number;
            return &own;
        }}
    ''')
    with start_server(files(www)) as server:
        done = run("""
            import sys, zarrc
            print(zarrc.open_array(sys.argv[1], mode="r")[...].sum())
        """, f"{server.url}/x.zarr/plain", env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.stdout == f"{DATA.sum()}\n", done.stdout + done.stderr
    assert ("newer" in done.stderr) == (number == 0 and "has some" in done.stderr), done.stderr


def test_local_paths_load_no_library_of_remote_stores(tmp_path):
    """Python itself may load some of them for its own modules."""
    code = """
        import sys, zarrc
        for place in sys.argv[1], sys.argv[1] + ".zip":
            zarrc.create_array(place, name="a", shape=4, dtype="i4")[...] = 1
            assert zarrc.open_array(place, path="a", mode="r")[2] == 1
        if sys.argv[2:]:
            zarrc.open_store(sys.argv[2], mode="r")
    """

    def find_libraries(*arguments):
        done = run(code, tmp_path / "x.zarr", *arguments, env={**os.environ, "LD_DEBUG": "files"})
        assert done.returncode == 0 and "libzstd" in done.stderr, done.stderr[-500:]
        rows = re.findall(r"file=(libcurl|libssl|libcrypto|libexpat)\S* .*(?:loaded|needed) by (\S+)", done.stderr)
        return {name for name, by in rows if name == "libcurl" or os.path.basename(by).startswith(("_core", "libzarrc"))}

    assert find_libraries() == set()
    shutil.rmtree(tmp_path / "x.zarr")
    (tmp_path / "x.zarr.zip").unlink()
    assert "libcurl" in find_libraries("http://127.0.0.1:9/x.zarr")



def test_other_packages_open_urls_if_there_is_no_libcurl(www, tmp_path):
    """As from a wheel on a system without it: the names of the library find files that are none."""
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).touch()
    code = """
        import logging, sys
        import numpy as np, zarrc
        logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
        array = zarrc.open_array(sys.argv[1] + "/x.zarr/plain")
        print(array.store.kind, (array[...] == np.arange(64 * 64).reshape(64, 64)).all())
        try:
            zarrc.open_array(sys.argv[1] + "/x.zarr/plain", storage_options={"bearer_token": "SECRET"})
            print("opened")
        except zarrc.errors.UnsupportedError as problem:
            print(problem)
    """
    with start_server(files(www)) as server:
        done = run(code, server.url, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
        why = "http and https need libcurl: cannot load libcurl.so.4"
        log, values, refusal = done.stdout.splitlines()
        assert log.endswith(f"is not opened by the library: {why}") and values == "python True"
        assert refusal.endswith(f"{why}, and other packages lack the storage options bearer_token") and "SECRET" not in refusal
        assert run(code, server.url).stdout.splitlines() == ["http True", "opened"]
